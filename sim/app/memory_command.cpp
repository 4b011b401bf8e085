// ridgeline memory: a recorded allocation history through the caching allocator, as it was or under other settings; of
// a memory snapshot without a history, its segments as they are; of what PyTorch printed, why memory ran out.
#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/app/print_report.h"
#include "sim/output/standard_output.h"
#include "sim/report/history_report.h"

namespace ridgeline::app {

void add_memory_command(CLI::App& program, Outcome&) {
  struct Options {
    HistoryQuestion question;
    std::string format = "text";
  };
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand(
      "memory", "an allocation history or snapshot through the caching allocator; an out-of-memory error explained");
  command
      ->add_option("file", options->question.file,
                   "PyTorch memory snapshot (pickle, torch.save, the viewer's page), csv history, or a log with an "
                   "out-of-memory "
                   "error, memory_summary() or memory_stats(); plain or gzip")
      ->required();
  command->add_option("--settings", options->question.settings, "as PYTORCH_ALLOC_CONF, e.g. expandable_segments:True");
  command->add_option("--capacity", options->question.capacity, "memory of the device, e.g. \"24 GiB\"");
  command->add_option("--device", options->question.device, "of a snapshot of several")->check(CLI::Range(0, 1 << 20));
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] {
    if (options->format == "json") print("{}\n", history_json(options->question).dump());
    else print_report(history_text(options->question));
  });
}

}  // namespace ridgeline::app
