// ridgeline memory: a recorded allocation history through the caching allocator, as it was or under other settings; of
// a memory snapshot without a history, its segments as they are.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/allocator/replay.h"
#include "sim/allocator/snapshot.h"
#include "sim/app/commands.h"
#include "sim/output/standard_output.h"
#include "sim/units/parse.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct Options {
  std::string file, settings, capacity, format = "text";
};

nlohmann::ordered_json as_json(const HistoryReplay& r) {
  return {{"source", "replay"},
          {"peak_allocated_bytes", r.peak_allocated},
          {"peak_reserved_bytes", r.peak_reserved},
          {"segment_allocations_bytes", r.segment_allocations},
          {"recorded_segments_bytes", r.recorded_segments},
          {"events", r.events},
          {"retries", r.statistics.retries},
          {"out_of_memory", r.out_of_memory}};
}

std::string as_text(const std::string& file, const HistoryReplay& r) {
  const auto gib = [](std::int64_t bytes) { return fmt::format("{:.3f} GiB", static_cast<double>(bytes) / kGiB); };
  std::string out = fmt::format("{}: replay of {} events\n\n", file, r.events);
  out += fmt::format("  peak allocated   {}\n  peak reserved    {}\n  device segments  {} asked for",
                     gib(r.peak_allocated), gib(r.peak_reserved), r.segment_allocations.size());
  if (!r.recorded_segments.empty())
    out += r.segment_allocations == r.recorded_segments
               ? ", the same as recorded, in the same order"
               : fmt::format("; the recording has {}", r.recorded_segments.size());
  out += fmt::format("\n  fragmentation    {} free in split segments at the end\n",
                     gib(r.statistics.all.inactive_split_bytes.current));
  if (r.out_of_memory) out += fmt::format("  OUT OF MEMORY at line {}\n", r.out_of_memory_line);
  return out;
}

struct SegmentSums {
  std::int64_t allocated = 0, active = 0, requested = 0, reserved = 0;
};
SegmentSums sums_of(const std::vector<SegmentView>& segments) {
  SegmentSums sums;
  for (const SegmentView& segment : segments) {
    sums.reserved += segment.bytes;
    for (const BlockView& block : segment.blocks) {
      if (block.state == BlockView::State::allocated) sums.allocated += block.bytes;
      if (block.state != BlockView::State::free) sums.active += block.bytes, sums.requested += block.requested;
    }
  }
  return sums;
}

void print_segments(const Options& options, const MemorySnapshot& snapshot) {
  const SegmentSums sums = sums_of(snapshot.segments);
  if (options.format == "json") {
    const nlohmann::ordered_json json = {{"source", "segments"},
                                         {"device", snapshot.device},
                                         {"segments", snapshot.segments.size()},
                                         {"allocated_bytes", sums.allocated},
                                         {"active_bytes", sums.active},
                                         {"requested_bytes", sums.requested},
                                         {"reserved_bytes", sums.reserved}};
    print("{}\n", json.dump());
    return;
  }
  const auto gib = [](std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; };
  print("{}: memory snapshot without a recorded history; its segments as they are, device {}\n\n", options.file,
        snapshot.device);
  print("  allocated        {:.3f} GiB\n  requested        {:.3f} GiB\n  reserved         {:.3f} GiB in {} segments\n",
        gib(sums.allocated), gib(sums.requested), gib(sums.reserved), snapshot.segments.size());
}

void run(const Options& options) {
  ReplayOptions replay_options;
  try {
    if (!options.settings.empty()) {
      replay_options.settings = AllocatorSettings::parse(options.settings);
      replay_options.recorded_addresses = false;
    }
  } catch (const std::invalid_argument& e) {
    throw UserError(fmt::format("--settings: {}", e.what()));
  }
  if (!options.capacity.empty()) {
    const auto capacity = parse_measure(options.capacity);
    if (!capacity || capacity->dimension != Dimension::bytes || capacity->value <= 0)
      throw UserError(fmt::format("--capacity: '{}' is not a size; write it as \"24 GiB\"", options.capacity));
    replay_options.capacity = static_cast<std::int64_t>(std::min(capacity->value, 9e18));
  }
  const std::string bytes = history_bytes(options.file);
  AllocationHistory history;
  if (looks_like_pickle(bytes)) {
    MemorySnapshot snapshot = read_snapshot(bytes, options.file);
    if (snapshot.devices > 1)
      fmt::print(stderr, "{}: the snapshot has {} devices; device {} is shown\n", options.file, snapshot.devices,
                 snapshot.device);
    if (snapshot.history.events.empty()) return print_segments(options, snapshot);
    if (options.settings.empty()) replay_options.settings = snapshot.settings;
    history = std::move(snapshot.history);
  } else {
    history = parse_history(bytes, options.file);
  }
  const HistoryReplay result = replay(history, replay_options);
  if (options.format == "json") print("{}\n", as_json(result).dump());
  else print("{}", as_text(options.file, result));
}

}  // namespace

void add_memory_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("memory", "replay an allocation history through the caching allocator");
  command->add_option("file", options->file, "csv history or PyTorch memory snapshot (plain or gzip)")->required();
  command->add_option("--settings", options->settings, "as PYTORCH_ALLOC_CONF, e.g. expandable_segments:True");
  command->add_option("--capacity", options->capacity, "memory of the device, e.g. \"24 GiB\"");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
