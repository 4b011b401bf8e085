// ridgeline replay: a step that was recorded, predicted on a GPU of hw/.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/output/standard_output.h"
#include "sim/report/replay_report.h"
#include "sim/scenario/carried_time.h"
#include "sim/scenario/replay.h"
#include "sim/trace/read_recording.h"

namespace ridgeline::app {
namespace {

struct Options {
  std::string file, hardware, recorded_on, engine = "analytic", format = "text", host, software = "pytorch-2.11";
  bool cuda_graphs = false;
};

/// How kernels without shapes go from the GPU of the recording to the one replayed on.
trace::RecordedDevice recorded_device(const trace::RecordedGpu& gpu, const Options& options,
                                      const ReplaySetting& setting) {
  const std::string known =
      !options.recorded_on.empty() ? options.recorded_on : hardware_of_driver_name(gpu.name, gpu.memory);
  if (known.empty())
    fmt::print(
        stderr,
        "{}: recorded on {}: kernels without shapes keep their recorded time; --recorded-on names a GPU of hw/\n",
        options.file,
        gpu.name.empty() ? "a GPU the trace does not name" : "'" + gpu.name + "', which hw/ does not describe");
  const Gpu recorded = known.empty() ? setting.gpu : load_gpu(known);
  return {recorded.dram.bandwidth.value() * recorded.dram.read_efficiency, recorded.launch.kernel_fixed.value(),
          carried_bytes(recorded, setting.gpu, setting.software, setting.engine)};
}

void run(const Options& options) {
  ReplaySetting setting{load_gpu(options.hardware),
                        load_host(options.host.empty() ? "default" : options.host, host_class_names()),
                        load_software(options.software), options.engine, options.cuda_graphs};
  setting.host_as_recorded = options.host.empty();
  trace::Replayable recorded = trace::read_recording(
      options.file, [&](const trace::RecordedGpu& gpu) { return recorded_device(gpu, options, setting); });
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
  command->add_option("--recorded-on", options->recorded_on,
                      "GPU of the recording: a name of hw/ or a path (default: as the trace names it)");
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
