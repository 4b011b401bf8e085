#include "sim/report/history_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "sim/allocator/recorded_run.h"
#include "sim/allocator/replay.h"
#include "sim/allocator/snapshot.h"
#include "sim/allocator/snapshot_container.h"
#include "sim/recognition/recognise.h"
#include "sim/report/out_of_memory_report.h"
#include "sim/units/parse.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

std::string exact_gib(std::int64_t bytes) { return fmt::format("{:.3f} GiB", static_cast<double>(bytes) / kGiB); }

struct SegmentSums {
  std::size_t count = 0;
  std::int64_t allocated = 0, active = 0, requested = 0, reserved = 0;
};
SegmentSums sums_of(const std::vector<SegmentView>& segments) {
  SegmentSums sums;
  sums.count = segments.size();
  for (const SegmentView& segment : segments) {
    sums.reserved += segment.bytes;
    for (const BlockView& block : segment.blocks) {
      if (block.state == BlockView::State::allocated) sums.allocated += block.bytes;
      if (block.state != BlockView::State::free) sums.active += block.bytes, sums.requested += block.requested;
    }
  }
  return sums;
}

/// What is known of one device, or of a history without a device.
struct DeviceMemoryReport {
  std::int64_t device = -1;
  std::optional<SegmentSums> segments;  ///< at the moment of the snapshot
  std::optional<RecordedRun> recorded;  ///< of a snapshot with a history
  std::optional<HistoryReplay> replay;
  std::optional<OutOfMemoryState> out_of_memory;
  bool as_it_was = true;  ///< neither settings nor a capacity of the person's own

  /// Of the recording where that is what was asked for; of the replay under other settings.
  [[nodiscard]] std::int64_t peak_allocated() const {
    if (recorded && as_it_was) return recorded->allocated.peak;
    return replay ? replay->peak_allocated : segments->allocated;
  }
  [[nodiscard]] std::int64_t peak_reserved() const {
    if (recorded && as_it_was) return recorded->reserved.peak;
    return replay ? replay->peak_reserved : segments->reserved;
  }
};

nlohmann::ordered_json segments_json(const SegmentSums& sums) {
  return {{"segments", sums.count},
          {"allocated_bytes", sums.allocated},
          {"active_bytes", sums.active},
          {"requested_bytes", sums.requested},
          {"reserved_bytes", sums.reserved}};
}

nlohmann::ordered_json recorded_json(const RecordedRun& run) {
  nlohmann::ordered_json pools = nlohmann::ordered_json::array();
  for (const PoolTotals& pool : run.pools) {
    pools.push_back({{"stream", pool.owner.stream},
                     {"pool_id", {pool.owner.graph, pool.owner.graph_pool}},
                     {"kind", pool.kind == PoolKind::small ? "small" : "large"},
                     {"peak_allocated_bytes", pool.allocated.peak},
                     {"peak_reserved_bytes", pool.reserved.peak},
                     {"allocated_bytes", pool.allocated.current},
                     {"reserved_bytes", pool.reserved.current}});
  }
  return {{"blocks_before", run.blocks_before},
          {"allocated_before_bytes", run.allocated_before},
          {"reserved_before_bytes", run.reserved_before},
          {"peak_allocated_bytes", run.allocated.peak},
          {"peak_reserved_bytes", run.reserved.peak},
          {"allocated_bytes", run.allocated.current},
          {"reserved_bytes", run.reserved.current},
          {"pools", pools},
          {"incomplete", run.gaps}};
}

nlohmann::ordered_json as_json(const DeviceMemoryReport& report) {
  nlohmann::ordered_json device = {{"source", report.replay ? "replay" : "segments"}};
  if (report.device >= 0) device["device"] = report.device;
  device["peak_allocated_bytes"] = report.peak_allocated();
  device["peak_reserved_bytes"] = report.peak_reserved();
  if (report.replay) {
    const HistoryReplay& r = *report.replay;
    device["segment_allocations_bytes"] = r.segment_allocations;
    device["recorded_segments_bytes"] = r.recorded_segments;
    device["events"] = r.events;
    device["retries"] = r.statistics.retries;
    device["out_of_memory"] = r.out_of_memory;
    device["replayed"] = {{"peak_allocated_bytes", r.peak_allocated},
                          {"peak_reserved_bytes", r.peak_reserved},
                          {"moved_blocks", r.moved_blocks}};
  }
  if (report.segments) device.update(segments_json(*report.segments));
  if (report.recorded) device["recorded"] = recorded_json(*report.recorded);
  if (report.out_of_memory) device["out_of_memory_event"] = out_of_memory_json(*report.out_of_memory);
  return device;
}

std::string pool_lines(const RecordedRun& run) {
  if (run.pools.size() < 3) return "";  // one stream: its small and its large pool
  std::string out = "\n  pool                                  peak allocated     peak reserved\n";
  for (const PoolTotals& pool : run.pools) {
    std::string name = fmt::format("stream {:#x}, {}", static_cast<std::uint64_t>(pool.owner.stream),
                                   pool.kind == PoolKind::small ? "small" : "large");
    if (pool.owner.graph != 0 || pool.owner.graph_pool != 0)
      name += fmt::format(", private ({}, {})", pool.owner.graph, pool.owner.graph_pool);
    out += fmt::format("  {:<36} {:>15} {:>17}\n", name, exact_gib(pool.allocated.peak), exact_gib(pool.reserved.peak));
  }
  return out;
}

std::string replay_lines(const DeviceMemoryReport& report) {
  const HistoryReplay& r = *report.replay;
  std::string out = fmt::format("  device segments  {} asked for", r.segment_allocations.size());
  if (!r.recorded_segments.empty())
    out += r.segment_allocations == r.recorded_segments
               ? ", the same as recorded, in the same order"
               : fmt::format("; the recording has {}", r.recorded_segments.size());
  out += fmt::format("\n  fragmentation    {} free in split segments at the end\n",
                     exact_gib(r.statistics.all.inactive_split_bytes.current));
  if (report.as_it_was && report.recorded &&
      (r.peak_allocated != report.peak_allocated() || r.peak_reserved != report.peak_reserved()))
    out += fmt::format("  our allocator    would peak at {} allocated, {} reserved\n", exact_gib(r.peak_allocated),
                       exact_gib(r.peak_reserved));
  if (r.out_of_memory && r.out_of_memory_line == 0) out += "  OUT OF MEMORY before the history begins\n";
  else if (r.out_of_memory) out += fmt::format("  OUT OF MEMORY at line {}\n", r.out_of_memory_line);
  return out;
}

std::string as_text(const std::string& file, const DeviceMemoryReport& report) {
  const std::string device = report.device >= 0 ? fmt::format(", device {}", report.device) : "";
  if (!report.replay) {
    return fmt::format(
        "{}: memory snapshot without a recorded history; its segments as they are{}\n\n  allocated        {}\n"
        "  requested        {}\n  reserved         {} in {} segments\n",
        file, device, exact_gib(report.segments->allocated), exact_gib(report.segments->requested),
        exact_gib(report.segments->reserved), report.segments->count);
  }
  std::string out = fmt::format("{}: replay of {} events{}\n\n", file, report.replay->events, device);
  out += fmt::format("  peak allocated   {}\n  peak reserved    {}\n", exact_gib(report.peak_allocated()),
                     exact_gib(report.peak_reserved()));
  if (report.recorded && report.recorded->blocks_before > 0)
    out +=
        fmt::format("  before it began  {} in {} blocks, {} reserved\n", exact_gib(report.recorded->allocated_before),
                    report.recorded->blocks_before, exact_gib(report.recorded->reserved_before));
  out += replay_lines(report);
  if (report.recorded) out += pool_lines(*report.recorded);
  if (report.out_of_memory) out += out_of_memory_text(*report.out_of_memory);
  if (report.recorded)
    for (const std::string& gap : report.recorded->gaps) out += fmt::format("  INCOMPLETE: {}\n", gap);
  return out;
}

DeviceMemoryReport report_of(const MemorySnapshot& snapshot, ReplayOptions replay_options,
                             const HistoryQuestion& options) {
  DeviceMemoryReport report;
  report.device = snapshot.device;
  report.segments = sums_of(snapshot.segments);
  report.as_it_was = options.settings.empty() && options.capacity.empty();
  if (snapshot.history.events.empty()) return report;
  report.recorded = recorded_run(snapshot);
  if (!snapshot.out_of_memory.empty()) report.out_of_memory = out_of_memory_state(snapshot, *report.recorded);
  if (options.settings.empty()) replay_options.settings = snapshot.settings;
  replay_options.before = report.recorded->before;
  report.replay = replay(report.recorded->history, replay_options);
  return report;
}

/// The device that is answered for: the person's, else the first with a history, else the first.
std::size_t chosen_device(const std::vector<DeviceMemoryReport>& reports, const HistoryQuestion& options) {
  for (std::size_t i = 0; i < reports.size(); ++i)
    if (options.device >= 0 ? reports[i].device == options.device : reports[i].replay.has_value()) return i;
  if (options.device >= 0) {
    std::vector<std::int64_t> known;
    for (const DeviceMemoryReport& report : reports) known.push_back(report.device);
    throw UserError(
        fmt::format("--device: {} has no device {}; it has {}", options.file, options.device, fmt::join(known, ", ")));
  }
  return 0;
}

ReplayOptions replay_options_of(const HistoryQuestion& options) {
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
  return replay_options;
}

/// A file of memory, read once.
struct MemoryFile {
  std::string_view kind;  ///< of recognition's table; "history" where it cannot be told
  std::string bytes;
};

MemoryFile read_memory_file(const std::string& file) {
  MemoryFile memory{"history", history_bytes(file)};
  if (const recognition::FileKind* kind = recognition::recognise_bytes(file, memory.bytes).kind; kind != nullptr)
    memory.kind = kind->name;
  return memory;
}

/// The text that PyTorch printed, where the file holds one.
struct PrintedMemory {
  std::vector<OutOfMemoryText> errors;
  std::vector<AllocatorTotals> totals;
  std::string_view name;  ///< of the function that printed the totals
};

std::optional<PrintedMemory> printed_memory(const MemoryFile& memory) {
  PrintedMemory printed;
  if (memory.kind == "out-of-memory") printed.errors = out_of_memory_texts(memory.bytes);
  if (memory.kind == "memory-summary") printed.totals = memory_summaries(memory.bytes);
  printed.name = "memory_summary()";
  if (memory.kind == "memory-stats")
    if (const auto stats = memory_stats(memory.bytes)) printed.totals = {*stats}, printed.name = "memory_stats()";
  if (printed.errors.empty() && printed.totals.empty()) return {};
  return printed;
}

std::vector<DeviceMemoryReport> reports_of(const MemoryFile& memory, const HistoryQuestion& options) {
  const ReplayOptions replay_options = replay_options_of(options);
  std::vector<DeviceMemoryReport> reports;
  if (memory.kind == "snapshot" || memory.kind == "memory-page" || memory.kind == "pickle") {
    for (const MemorySnapshot& snapshot : read_snapshots(unpacked_snapshot(memory.bytes, options.file), options.file))
      reports.push_back(report_of(snapshot, replay_options, options));
    if (reports.empty()) reports.push_back(report_of({}, replay_options, options));
  } else {
    if (options.device >= 0) throw UserError(fmt::format("--device: {} is a history of one device", options.file));
    DeviceMemoryReport& report = reports.emplace_back();
    const AllocationHistory history = parse_history(memory.bytes, options.file);
    if (history.events.empty()) throw UserError(fmt::format("{}: no allocations after the header", options.file));
    report.replay = replay(history, replay_options);
  }
  return reports;
}

}  // namespace

nlohmann::ordered_json history_json(const HistoryQuestion& question) {
  const MemoryFile memory = read_memory_file(question.file);
  if (const auto printed = printed_memory(memory))
    return printed->errors.empty() ? totals_json(printed->totals) : out_of_memory_json(printed->errors);
  const std::vector<DeviceMemoryReport> reports = reports_of(memory, question);
  nlohmann::ordered_json json = as_json(reports[chosen_device(reports, question)]);
  if (reports.size() > 1)
    for (const DeviceMemoryReport& report : reports) json["devices"].push_back(as_json(report));
  return json;
}

std::string history_text(const HistoryQuestion& question) {
  const MemoryFile memory = read_memory_file(question.file);
  if (const auto printed = printed_memory(memory))
    return printed->errors.empty() ? totals_text(question.file, printed->name, printed->totals)
                                   : out_of_memory_text(question.file, printed->errors);
  const std::vector<DeviceMemoryReport> reports = reports_of(memory, question);
  std::string text = as_text(question.file, reports[chosen_device(reports, question)]);
  if (reports.size() < 2) return text;
  text += "\n  device   peak allocated    peak reserved   (--device shows one)\n";
  for (const DeviceMemoryReport& report : reports)
    text += fmt::format("  {:>6} {:>16} {:>16}\n", report.device, exact_gib(report.peak_allocated()),
                        exact_gib(report.peak_reserved()));
  return text;
}

}  // namespace ridgeline
