#include "sim/scenario/read_recorded.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "sim/config/named_file.h"
#include "sim/hardware/software_choice.h"
#include "sim/scenario/driver_names.h"
#include "sim/trace/read_recording.h"
#include "sim/workload/host_class.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

/// Twenty-four of twenty-eight steps lie this close to their replays (fourteen networks beside a rented
/// NVIDIA H200, whose host changed its speed by up to two within a minute).
constexpr double kSpreadAsRecorded = 0.35;

std::optional<Precision> precision_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Precision>, 5> kNames{{{"fp32", Precision::fp32},
                                                                          {"tf32", Precision::tf32},
                                                                          {"amp-fp16", Precision::amp_fp16},
                                                                          {"amp-bf16", Precision::amp_bf16},
                                                                          {"bf16", Precision::bf16}}};
  for (const auto& [known, precision] : kNames)
    if (known == name) return precision;
  return std::nullopt;
}

std::shared_ptr<const trace::RecordingFile> recording_of(const Mapping& root, Descriptions& known) {
  const std::string path = config::named_file(root["trace"]);
  return known.recordings.get(path, [&] { return trace::RecordingFile(path); });
}

/// The recorded work is that of the default host, in units of a microsecond at a scale of 1.
void take_host_of(const trace::RecordingFile& file, Host& host) {
  host.name = "as recorded";
  if (file.host_as_it_was()) {  // a microsecond of it is one
    constexpr auto kRecorded = static_cast<std::size_t>(HostClass::python_fixed);
    const double cost = kRecorded < host.class_costs.size() ? in_microseconds(host.class_costs[kRecorded]) : 1.0;
    host.scale = cost > 0.0 ? 1.0 / cost : 1.0;
  } else {
    host.scale *= file.host_slowness();
  }
  host.known = true;
  host.spread = kSpreadAsRecorded;
}

/// What of a recorded step can be changed, and what is to be known of it.
void read_step(const Value& section, RecordedWorkload& recorded, Scenario& scenario) {
  scenario.cuda_graphs = recorded.file->in_cuda_graphs();
  if (!section.exists()) return;
  static constexpr std::array<std::string_view, 3> kKeys{"cuda_graphs", "samples", "tokens"};
  if (section.is_mapping())
    for (const config::Entry& entry : section.node().entries)
      if (std::find(kKeys.begin(), kKeys.end(), entry.key) == kKeys.end())
        section[entry.key].fail(
            "a recorded step runs as it was recorded; of training it takes cuda_graphs, samples and tokens (of a "
            "step) only");
  const Mapping step(section, {"cuda_graphs", "samples", "tokens"});
  scenario.cuda_graphs = step["cuda_graphs"].boolean(scenario.cuda_graphs);
  if (step.has("samples")) recorded.samples = step["samples"].number(config::Range::positive());
  if (step.has("tokens")) recorded.tokens = step["tokens"].number(config::Range::positive());
}

}  // namespace

std::string recorded_hardware(const Mapping& root, Descriptions& known) {
  return root.has("trace") ? hardware_of_recorded_gpu(recording_of(root, known)->gpu()) : "";
}

std::string recorded_software(const Mapping& root, Descriptions& known, const Gpu& gpu) {
  return software_of_toolkit(recording_of(root, known)->toolkit(), gpu);
}

void read_recorded(const Mapping& root, bool host_given, bool model_changed, Descriptions& known, Scenario& scenario) {
  const Value trace = root["trace"];
  for (const char* key : {"model", "inference"})
    if (root.has(key))
      root[key].fail(fmt::format("the recording ({}) says what ran: leave out trace or {}", trace.text(), key));
  if (model_changed) trace.fail("a recorded step has no model whose keys could be changed");
  const std::string path = config::named_file(trace);
  auto recorded = std::make_shared<RecordedWorkload>();
  recorded->file = recording_of(root, known);
  const trace::RecordingFile& file = *recorded->file;
  recorded->samples = file.info().samples;
  recorded->tokens = file.info().tokens;
  recorded->precision = precision_of(file.info().precision);
  read_step(root["training"], *recorded, scenario);
  const std::string on = root.has("recorded_on") ? root["recorded_on"].text() : hardware_of_recorded_gpu(file.gpu());
  if (!on.empty()) recorded->recorded_on = *known.gpus.get(Descriptions::key(on, {}), [&] { return load_gpu(on); });
  if (file.host_measured() && !host_given) take_host_of(file, scenario.host);
  if (scenario.cluster) scenario.training.parallel = file.info().ranks;
  scenario.training.precision = recorded->precision.value_or(Precision::fp32);
  const std::string name = std::filesystem::path(path).filename().string();
  scenario.title = root["title"].text(file.info().title.empty() ? name : file.info().title);
  scenario.recorded = std::move(recorded);
}

}  // namespace ridgeline
