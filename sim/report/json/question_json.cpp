#include "sim/report/json/question_json.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/config/data_folder.h"
#include "sim/config/files_read.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/study/file_states.h"
#include "sim/trace/read_recording.h"
#include "sim/workload/host_class.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

/// A scalar of YAML as JSON would write it.
ordered_json scalar_json(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole); read.ec == std::errc() && read.ptr == end)
    return whole;
  double number = 0.0;
  const auto read = std::from_chars(text.data(), end, number);
  // JSON has no number for "inf" and "nan", which may be a name besides.
  if (read.ec == std::errc() && read.ptr == end && std::isfinite(number)) return number;
  return text;
}

/// Shipped files by their place in the data folder, others as they were named.
std::string shown(const std::filesystem::path& path) {
  const std::filesystem::path root = config::data_folder("hw").parent_path();
  const std::filesystem::path inside = path.lexically_relative(std::filesystem::weakly_canonical(root));
  return inside.empty() || inside.native().starts_with("..") ? path.filename().string() : inside.string();
}

/// Reads the descriptions once more, each some tenths of a millisecond, to see which files they take.
ordered_json files_json(const Scenario& scenario) {
  const AskedScenario& asked = *scenario.asked;
  const config::FilesRead files;
  config::FilesRead::note(config::data_folder("hw") / "residuals.json");
  if (!asked.file.empty()) config::FilesRead::note(asked.file);
  if (scenario.recorded) config::FilesRead::note(scenario.recorded->file->path());
  load_gpu(asked.hardware);
  load_software(asked.software);
  load_host(asked.host, host_class_names());
  if (!asked.model.empty()) load_model(asked.model);
  ordered_json out = ordered_json::array();
  for (const std::string& path : files.paths()) out.push_back({{"path", shown(path)}, {"fnv1a64", hash_of_file(path)}});
  return out;
}

}  // namespace

ordered_json tree_json(const config::Node& node) {
  switch (node.kind) {
    case config::Node::Kind::null: return nullptr;
    case config::Node::Kind::scalar: return scalar_json(node.scalar);
    case config::Node::Kind::list: {
      ordered_json list = ordered_json::array();
      for (const config::Node& item : node.items) list.push_back(tree_json(item));
      return list;
    }
    case config::Node::Kind::mapping: break;
  }
  ordered_json mapping = ordered_json::object();
  for (const config::Entry& entry : node.entries) mapping[entry.key] = tree_json(entry.value);
  return mapping;
}

ordered_json question_json(const Scenario& scenario, const std::string& engine) {
  if (!scenario.asked) return nullptr;
  const AskedScenario& asked = *scenario.asked;
  ordered_json changes = ordered_json::array();
  for (const config::Override& change : asked.changes) changes.push_back(change.key + "=" + change.value);
  return {{"scenario", tree_json(asked.tree)}, {"changes", std::move(changes)}, {"engine", engine},
          {"datasheet_only", asked.datasheet}, {"hardware", scenario.gpu.name}, {"software", scenario.software.name},
          {"host", scenario.host.name},        {"files", files_json(scenario)}};
}

ordered_json measured_json(const Scenario& scenario) {
  const MeasuredBeside& m = scenario.measured;
  if (m.source.empty()) return nullptr;
  ordered_json out;
  if (m.step_time) out["step_time_s"] = m.step_time->value();
  if (m.samples_per_s) out["samples_per_s"] = *m.samples_per_s;
  if (m.peak_allocated) out["peak_allocated_bytes"] = m.peak_allocated->value();
  if (m.peak_reserved) out["peak_reserved_bytes"] = m.peak_reserved->value();
  if (m.device_used) out["device_used_bytes"] = m.device_used->value();
  out["source"] = m.source;
  return out;
}

}  // namespace ridgeline
