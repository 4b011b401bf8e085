#include "sim/study/validation/measured_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/input/lines.h"
#include "sim/study/validation/published_runs.h"
#include "sim/units/meant_name.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<std::string_view, Split> kSplits[] = {
    {"fit", Split::fit}, {"held-out", Split::held_out}, {"rows", Split::by_row}, {"hash", Split::by_shape}};
constexpr std::pair<std::string_view, bool> kShapes[] = {{"usual", false}, {"unusual", true}};
constexpr std::string_view kKinds[] = {"kernels",
                                       "published-kernels",
                                       "steps",
                                       "published-steps",
                                       "published-runs",
                                       "step-times",
                                       "generations",
                                       "parallel",
                                       "sequences",
                                       "profiler-traces",
                                       "recordings",
                                       "execution-traces",
                                       "fused-kernels",
                                       "allocations",
                                       "snapshots",
                                       "counters",
                                       "loads",
                                       "host",
                                       "microarchitecture",
                                       "power-limits",
                                       "published-ops",
                                       "graphs",
                                       "calls",
                                       "collectives",
                                       "overlaps",
                                       "parallel-steps",
                                       "host-steps",
                                       "host-bound-steps",
                                       "compiled-host",
                                       "host-operations",
                                       "threads",
                                       "networks",
                                       "published-training",
                                       "split-training",
                                       "expert-training",
                                       "offloaded-steps",
                                       "packed-attention",
                                       "attention-backends",
                                       "context-attention",
                                       "fp8-products"};

std::map<std::string, MeasuringMachine> read_machines(const config::Value& list) {
  std::map<std::string, MeasuringMachine> machines;
  for (const config::Entry& entry : list.node().entries) {
    const config::Mapping one(config::Value(entry.value, "machines." + entry.key),
                              {"hardware", "software", "stack", "host", "clocks", "graph_of"});
    machines[entry.key] = {.name = entry.key,
                           .hardware = one["hardware"].text(),
                           .software = one["software"].text(),
                           .host = one["host"].text(),
                           .stack = one["stack"].text(),
                           .clocks = one["clocks"].text(),
                           .graph_of = static_cast<int>(one["graph_of"].integer({0, 1000}, 0))};
  }
  return machines;
}

/// The names of the files that `pattern` stands for: itself, or those of its folder that match where it holds a *.
std::vector<std::string> names_of(const fs::path& folder, const config::Value& path) {
  const std::string pattern = path.text();
  std::vector<std::string> names;
  if (pattern.find('*') == std::string::npos) {
    if (fs::is_regular_file(folder / pattern)) names.push_back(pattern);
  } else if (const fs::path place = fs::path(pattern).parent_path(); fs::is_directory(folder / place)) {
    for (const auto& entry : fs::directory_iterator(folder / place))
      if (const std::string name = (place / entry.path().filename()).generic_string();
          entry.is_regular_file() && matches_pattern(pattern, name))
        names.push_back(name);
  }
  if (names.empty()) path.fail(fmt::format("\"{}\": no such file in {}", pattern, folder.string()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

MeasurementIndex::MeasurementIndex(const fs::path& folder) : folder_(folder) {
  const config::Node tree = config::load_yaml(folder / "index.yaml");
  const config::Mapping root(config::Value(tree), {"machines", "files"});
  const auto machines = read_machines(root["machines"]);
  for (const config::Value& item : root["files"].list()) {
    const config::Mapping one(
        item, {"path", "kind", "machine", "split", "licence", "seen_by", "shapes", "attention_on_views"});
    const std::string kind = one["kind"].text(), machine = one["machine"].text();
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds))
      one["kind"].fail(fmt::format("\"{}\" is no kind of measurements; {}", kind, expected_names(kind, kKinds)));
    if (!machines.contains(machine))
      one["machine"].fail(fmt::format("\"{}\" is not described under machines", machine));
    MeasuredFile file;
    file.kind = kind;
    file.machine = machines.at(machine);
    file.split = one["split"].choice<Split>(kSplits);
    file.seen_by = one["seen_by"].text("");
    file.unusual_shapes = one["shapes"].choice<bool>(kShapes, false);
    file.attention_on_views = one["attention_on_views"].boolean(false);
    for (const std::string& name : names_of(folder, one["path"])) {
      file.name = name;
      file.path = folder / name;
      files_.push_back(file);
    }
  }
}

std::vector<const MeasuredFile*> MeasurementIndex::of_kind(std::string_view kind) const {
  std::vector<const MeasuredFile*> found;
  for (const MeasuredFile& file : files_)
    if (file.kind == kind) found.push_back(&file);
  return found;
}

const MeasuredFile& MeasurementIndex::file(std::string_view name) const {
  for (const MeasuredFile& file : files_)
    if (file.name == name) return file;
  throw UserError(fmt::format("{}: {} is not listed", (folder_ / "index.yaml").string(), name));
}

void for_each_row(const MeasuredFile& file, const std::function<void(const nlohmann::json& row)>& use) {
  std::size_t number = 0;
  for_each_line(file.path.string(), [&](std::string_view text) {
    ++number;
    const nlohmann::json row = nlohmann::json::parse(text, nullptr, false);
    if (row.is_discarded()) throw UserError(fmt::format("{}:{}: no JSON", file.path.string(), number));
    use(row);
  });
}

}  // namespace ridgeline
