// The part of the API that tells of what is shipped.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>

#include "sim/config/data_folder.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/network/load_cluster.h"
#include "sim/report/exercise_measures.h"
#include "sim/report/history_report.h"
#include "sim/report/json/exercise_json.h"
#include "sim/report/json/microkernel_json.h"
#include "sim/report/json/question_json.h"
#include "sim/report/schema/schema_json.h"
#include "sim/report/text/hardware_text.h"
#include "sim/report/text/model_text.h"
#include "sim/serve/asked.h"
#include "sim/study/microkernels/committed_results.h"
#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"

namespace ridgeline::serve {
namespace {

using nlohmann::ordered_json;

std::vector<config::Override> hardware_changes(const Target& target) {
  constexpr std::string_view kPrefix = "hardware.";
  std::vector<config::Override> changes;
  for (const std::string& text : target.all("set")) {
    changes.push_back(config::parse_override(text));
    if (changes.back().key.starts_with(kPrefix)) changes.back().key.erase(0, kPrefix.size());
  }
  return changes;
}

ordered_json hardware(const Target& target, const std::string& name) {
  const Numbers numbers = target.flag("datasheet") ? Numbers::datasheet : Numbers::measured;
  if (!name.empty()) {
    const auto changes = hardware_changes(target);
    return hardware_json(describes_cluster(name) ? load_cluster_sheet(name, changes)
                                                 : load_hardware_sheet(name, changes, numbers));
  }
  ordered_json names = ordered_json::array();
  for (const std::string& one : hardware_names()) names.push_back({{"name", one}, {"title", load_gpu(one).title}});
  return names;
}

ordered_json clusters() {
  ordered_json names = ordered_json::array();
  for (const std::string& one : cluster_names()) names.push_back({{"name", one}, {"title", load_cluster(one).title}});
  return names;
}

ordered_json models(const std::string& name) {
  if (!name.empty()) return model_json(load_model(name));
  ordered_json all = ordered_json::array();
  for (const std::string& one : model_names()) all.push_back(model_json(load_model(one)));
  return all;
}

/// Names below scenarios/, as its files and folders go, or what one of them says.
ordered_json scenarios(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path root = config::data_folder("scenarios");
  if (!name.empty()) return tree_json(load_scenario_tree((root / (name + ".yaml")).string()));
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    fs::path file = entry.path().lexically_relative(root);
    const std::string folder = file.begin()->string();
    if (file.extension() != ".yaml" || folder == "exercises" || folder == "sweeps") continue;
    names.push_back(file.replace_extension().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Numbers of exercises that were worked out before: whoever checks an answer asks for them again.
double remembered(const MeasureSource& source, ExerciseMeasures& measures) {
  static std::mutex guard;
  static std::map<std::string, double> known;
  const std::string key = ExerciseMeasures::key_of(source);
  {
    const std::scoped_lock lock(guard);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  const double value = measures(source);
  const std::scoped_lock lock(guard);
  return known.emplace(key, value).first->second;
}

ordered_json exercises(const Target& target, const std::string& number) {
  const std::vector<Exercise> all = shipped_exercises();
  if (number.empty()) return exercise_list_json(all);
  int wanted = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), wanted);
  if (read.ec != std::errc() || read.ptr != number.data() + number.size())
    throw UserError(fmt::format("exercises: '{}' is no number", number));
  const Exercise& exercise = exercise_of(all, wanted);
  ExerciseMeasures measures;
  ExerciseNumbers numbers(exercise, [&measures](const MeasureSource& source) { return remembered(source, measures); });
  return exercise_json(exercise, target.get("answer"), target.flag("solution"), numbers);
}

/// The committed results of the probe against the engines, worked out once: it takes a second.
const ordered_json& microkernels() {
  static const ordered_json all =
      microkernels_json(CommittedResults(config::data_folder("hw") / "probe" / "results").evidence());
  return all;
}

}  // namespace

std::optional<Reply> library_reply(const Target& target) {
  constexpr std::string_view kApi = "/api/";
  if (!target.path.starts_with(kApi)) return std::nullopt;
  const std::string rest = target.path.substr(kApi.size());
  const std::string kind = rest.substr(0, rest.find('/'));
  const std::string name = kind.size() < rest.size() ? rest.substr(kind.size() + 1) : "";
  const auto takes = [&](std::vector<std::string> names) {
    names.push_back("token");
    target.refuse_others(names);
  };
  const auto alone = [&] { return name.empty() && kind.size() == rest.size(); };
  if (kind == "hardware") return takes({"set", "datasheet"}), json_reply(hardware(target, name));
  if (kind == "models") return takes({}), json_reply(models(name));
  if (kind == "scenarios") return takes({}), json_reply(scenarios(name));
  if (kind == "schema") return takes({}), json_reply(schema_json(input_documents(), name));
  if (kind == "exercises") return takes({"answer", "solution"}), json_reply(exercises(target, name));
  if (!alone()) return std::nullopt;
  if (kind == "clusters") return takes({}), json_reply(clusters());
  if (kind == "microkernels") return takes({}), json_reply(microkernels());
  if (kind == "hosts") return takes({}), json_reply(host_names());
  if (kind == "software") return takes({}), json_reply(software_names());
  if (kind == "memory") {
    takes({"file", "settings", "capacity", "device"});
    if (target.get("file").empty()) throw UserError("file: say which recording (below a --folder of the server)");
    const std::optional<std::uint64_t> device = target.number("device");
    return json_reply(history_json({target.get("file"), target.get("settings"), target.get("capacity"),
                                    device ? static_cast<std::int64_t>(std::min<std::uint64_t>(*device, 1024)) : -1}));
  }
  return std::nullopt;
}

}  // namespace ridgeline::serve
