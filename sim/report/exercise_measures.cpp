#include "sim/report/exercise_measures.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/answer/step_run.h"
#include "sim/config/data_folder.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/occupancy/occupancy.h"
#include "sim/report/json/kernel_json.h"
#include "sim/report/json/prediction_json.h"
#include "sim/scenario/descriptions.h"
#include "sim/study/kernel_prediction.h"
#include "sim/units/parse.h"
#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using Kind = MeasureSource::Kind;

/// Files of the shipped folders are named from above them: "scenarios/bert-large-fp32.yaml".
std::string place_of(const std::string& file) {
  return (config::data_folder("scenarios").parent_path() / file).string();
}

json predicted(const MeasureSource& source) {
  ScenarioSource from;
  from.file = place_of(source.subject);
  from.overrides = source.changes;
  return prediction_json(predict(load_scenario(from), "analytic"));
}

json of_kernel(const MeasureSource& source) {
  const Gpu gpu = load_gpu(source.hardware, source.changes);
  const Software software = load_software("pytorch-2.11");
  const auto engine = make_timing_engine("analytic", gpu);
  const KernelCase kernel = kernel_case_from(json::parse(source.subject));
  return kernel_json(predict_kernel(kernel, gpu, software, *engine), Range{}, "");
}

json of_occupancy(const MeasureSource& source) {
  const Gpu gpu = load_gpu(source.hardware, source.changes);
  const Occupancy o = occupancy_of(gpu.sm, source.threads, source.registers, source.shared_bytes);
  return {{"blocks", o.blocks}, {"warps", o.blocks * o.warps_per_block}, {"share", o.share(gpu.sm)}};
}

double of_hardware(const MeasureSource& source) {
  const HardwareSheet sheet = load_hardware_sheet(source.subject, source.changes);
  for (const auto* rows : {&sheet.values, &sheet.derived})
    for (const SheetRow& row : *rows)
      if (row.key == source.key)
        // Units that are only printed (FLOP/B) leave the number as it stands.
        for (const std::string& text : {row.unit.empty() ? row.value : row.value + " " + row.unit, row.value})
          if (const auto measure = parse_measure(text)) return measure->value;
  throw UserError(fmt::format("measure {}: {} has no number '{}'", source.name, source.subject, source.key));
}

double of_model(const MeasureSource& source) {
  const ModelDescription m = load_model(source.subject, source.changes);
  const std::pair<const char*, double> values[] = {{"parameters", static_cast<double>(parameter_count(m))},
                                                   {"layers", static_cast<double>(m.layers)},
                                                   {"hidden", static_cast<double>(m.hidden)},
                                                   {"heads", static_cast<double>(m.heads)},
                                                   {"vocabulary", static_cast<double>(m.vocabulary)}};
  for (const auto& [key, value] : values)
    if (source.key == key) return value;
  throw UserError(fmt::format("measure {}: a model has no number '{}'", source.name, source.key));
}

}  // namespace

double number_at(const json& json, const std::string& path) {
  const auto missing = [&] { return UserError(fmt::format("there is no number '{}'", path)); };
  if (path.empty()) {
    if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
    if (!json.is_number()) throw missing();
    return json.get<double>();
  }
  const std::size_t end = std::min(path.find('.'), path.size());
  const std::string step = path.substr(0, end), rest = end < path.size() ? path.substr(end + 1) : "";
  const std::size_t bracket = step.find('[');
  const std::string name = step.substr(0, bracket);
  if (!json.is_object() || !json.contains(name)) throw missing();
  const auto& value = json.at(name);
  if (!value.is_array()) return number_at(value, rest);
  std::string field, wanted;
  if (bracket != std::string::npos) {
    const std::size_t equals = step.find('=', bracket);
    if (equals == std::string::npos || step.back() != ']') throw missing();
    field = step.substr(bracket + 1, equals - bracket - 1);
    wanted = step.substr(equals + 1, step.size() - equals - 2);
  }
  double sum = 0;
  for (const auto& entry : value)
    if (field.empty() || (entry.contains(field) && entry.at(field) == wanted)) sum += number_at(entry, rest);
  return sum;
}

std::string ExerciseMeasures::key_of(const MeasureSource& source) {
  return fmt::format("{} {} {} {} {} {} {}", static_cast<int>(source.kind),
                     Descriptions::key(source.subject, source.changes), source.hardware, source.threads,
                     source.registers, source.shared_bytes, source.key);
}

double ExerciseMeasures::operator()(const MeasureSource& source) {
  if (source.kind == Kind::hardware) return of_hardware(source);
  if (source.kind == Kind::model) return of_model(source);
  const std::string key =
      fmt::format("{} {} {} {} {} {}", static_cast<int>(source.kind), Descriptions::key(source.subject, source.changes),
                  source.hardware, source.threads, source.registers, source.shared_bytes);
  auto found = known_.find(key);
  if (found == known_.end()) {
    json value = source.kind == Kind::prediction ? predicted(source)
                 : source.kind == Kind::kernel   ? of_kernel(source)
                                                 : of_occupancy(source);
    found = known_.emplace(key, std::move(value)).first;
  }
  return number_at(found->second, source.key);
}

}  // namespace ridgeline
