// ridgeline replay: a step that was recorded, predicted on a GPU of hw/.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/output/standard_output.h"
#include "sim/report/replay_report.h"
#include "sim/scenario/replay.h"
#include "sim/trace/read_recording.h"

namespace ridgeline::app {
namespace {

struct Options {
  std::string file, hardware, engine = "analytic", format = "text", host, software = "pytorch-2.11";
  bool cuda_graphs = false;
};

/// The description in hw/ of a device as its driver calls it ("NVIDIA H200"), or that of the GPU replayed on.
trace::RecordedDevice recorded_device(const std::string& name, const Gpu& otherwise) {
  const auto device_of = [](const Gpu& gpu) {
    return trace::RecordedDevice{gpu.dram.bandwidth.value() * gpu.dram.read_efficiency,
                                 gpu.launch.kernel_fixed.value()};
  };
  if (name.empty()) return device_of(otherwise);
  for (const std::string& known : hardware_names()) {
    const Gpu gpu = load_gpu(known);
    if (gpu.title.starts_with(name)) return device_of(gpu);
  }
  return device_of(otherwise);
}

void run(const Options& options) {
  ReplaySetting setting{load_gpu(options.hardware),
                        load_host(options.host.empty() ? "default" : options.host, host_class_names()),
                        load_software(options.software), options.engine, options.cuda_graphs};
  setting.host_as_recorded = options.host.empty();
  trace::Replayable recorded =
      trace::read_recording(options.file, [&](const std::string& name) { return recorded_device(name, setting.gpu); });
  const ReplayResult result = predict_replay(std::move(recorded), setting);
  if (options.format == "json")
    print("{}\n",
          replay_json(options.file, result).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print("{}", replay_text(options.file, result));
}

}  // namespace

void add_replay_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("replay", "a step that was recorded, predicted on a GPU");
  command
      ->add_option("trace", options->file,
                   "op trace, PyTorch profiler trace or PyTorch execution trace (plain or gzip)")
      ->required();
  command->add_option("--hardware", options->hardware, "GPU: a name of hw/ or a path")->required();
  command->add_option("--engine", options->engine, "roofline (datasheet ceilings only), analytic or simulate");
  command->add_option(
      "--host", options->host,
      "cost of dispatching: a name of hw/hosts/ or a path; without it the recording's own host, if it says");
  command->add_option("--software", options->software, "software stack: a name of hw/software/ or a path");
  command->add_flag("--cuda-graphs", options->cuda_graphs, "the whole step as one CUDA graph");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
