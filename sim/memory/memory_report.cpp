#include "sim/memory/memory_report.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ridgeline {
namespace {

/// The call in front of which each storage of the last step is allocated; kNoCall for older ones.
std::vector<std::uint32_t> makers(const StepProgram& program) {
  std::vector<std::uint32_t> result(program.storages.size(), Action::kNoCall);
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    for (std::uint32_t i = program.steps[step].begin; i < program.steps[step].end; ++i) {
      const Action& action = program.actions[i];
      if (action.kind == Action::Kind::allocate) result[action.index] = action.call;
    }
  }
  return result;
}

void add_holders(MemoryReport& report, const StepProgram& program, const MemoryResult& result) {
  const std::vector<std::uint32_t> made_by = makers(program);
  std::map<std::tuple<Category, Phase, std::string>, MemoryReport::Holder> holders;
  std::map<std::int64_t, BytesByCategory> layers;
  for (const LiveStorage& live : result.at_peak) {
    const Storage& storage = program.storages[live.storage];
    layers[storage.layer][static_cast<std::size_t>(storage.category)] += live.bytes;
    report.unused.rounding += live.bytes - storage.bytes;
    const std::uint32_t call = made_by[live.storage];
    std::string op = "set-up";
    Phase phase = Phase::setup;
    if (call != Action::kNoCall) {
      op = name_of(program.trace->ops[program.trace->calls[call].op]);
      phase = program.trace->calls[call].phase;
    }
    MemoryReport::Holder& holder = holders[{storage.category, phase, op}];
    holder.op = op;
    holder.category = storage.category;
    holder.phase = phase;
    ++holder.count;
    holder.bytes += live.bytes;
  }
  for (auto& [key, holder] : holders) report.holders.push_back(std::move(holder));
  std::stable_sort(report.holders.begin(), report.holders.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  for (const auto& [layer, bytes] : layers) report.layers.push_back({layer, bytes});
}

void add_unused(MemoryReport& report, const MemoryResult& result) {
  MemoryReport::Unused& unused = report.unused;
  for (const SegmentView& segment : result.segments_at_peak) {
    ++unused.segments;
    for (const BlockView& block : segment.blocks) {
      if (block.state != BlockView::State::free) continue;
      unused.free += block.bytes;
      unused.largest_free = std::max(unused.largest_free, block.bytes);
      if (segment.blocks.size() == 1) unused.whole_segments += block.bytes;
    }
  }
}

/// Runs of samples in the same phase and layer, each with its fullest moment.
std::vector<MemoryReport::Stretch> stretches_of(const StepProgram& program, const MemoryResult& result) {
  std::vector<MemoryReport::Stretch> out;
  for (const MemorySample& sample : result.samples) {
    const std::uint32_t call = program.actions[sample.action].call;
    Phase phase = out.empty() ? Phase::forward : out.back().phase;
    std::int64_t layer = out.empty() ? -1 : out.back().last_layer;
    if (call != Action::kNoCall) {
      phase = program.trace->calls[call].phase;
      layer = program.trace->calls[call].layer;
    }
    if (out.empty() || out.back().phase != phase || out.back().last_layer != layer)
      out.push_back({phase, layer, layer, 0, 0, {}});
    MemoryReport::Stretch& stretch = out.back();
    if (sample.allocated <= stretch.allocated) continue;
    stretch.allocated = sample.allocated;
    stretch.reserved = sample.reserved;
    stretch.bytes = sample.by_category;
  }
  return out;
}

/// Joins neighbours of one phase, inside or outside the blocks, into groups of `group`.
std::vector<MemoryReport::Stretch> joined(const std::vector<MemoryReport::Stretch>& stretches, std::size_t group) {
  std::vector<MemoryReport::Stretch> out;
  std::size_t in_group = 0;
  for (const MemoryReport::Stretch& next : stretches) {
    const bool starts = out.empty() || out.back().phase != next.phase || in_group >= group ||
                        (group < stretches.size() && (out.back().last_layer < 0) != (next.first_layer < 0));
    if (starts) {
      out.push_back(next);
      in_group = 1;
      continue;
    }
    ++in_group;
    MemoryReport::Stretch& last = out.back();
    const auto first_layer = last.first_layer;
    if (next.allocated > last.allocated) last = next;
    last.first_layer = first_layer;
    last.last_layer = next.last_layer;
  }
  return out;
}

}  // namespace

MemoryReport report_memory(const StepProgram& program, const MemoryResult& result, std::size_t most_stretches) {
  MemoryReport report;
  if (result.samples.empty()) return report;
  const auto highest =
      std::max_element(result.samples.begin(), result.samples.end(),
                       [](const MemorySample& a, const MemorySample& b) { return a.allocated < b.allocated; });
  report.peak = result.peak;
  report.allocated = highest->allocated;
  report.reserved = highest->reserved;
  report.bytes = highest->by_category;
  const std::uint32_t call = program.actions[highest->action].call;
  if (call != Action::kNoCall) {
    report.peak_op = name_of(program.trace->ops[program.trace->calls[call].op]);
    report.peak.phase = program.trace->calls[call].phase;
    report.peak.layer = program.trace->calls[call].layer;
  }
  add_holders(report, program, result);
  add_unused(report, result);
  const auto stretches = stretches_of(program, result);
  std::size_t group = 1;
  do {
    report.stretches = joined(stretches, group);
    group *= 2;
  } while (report.stretches.size() > most_stretches && group <= 2 * stretches.size());
  return report;
}

}  // namespace ridgeline
