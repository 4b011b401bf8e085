#include "sim/report/page/lab_pieces.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/answer/kernel_caches.h"
#include "sim/answer/step_power.h"
#include "sim/memory/block_lives.h"
#include "sim/report/json/launch_json.h"
#include "sim/report/text/names.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

constexpr double kTenths = 10.0;  // of a watt, of a megahertz

/// Arrays of `rows`, one a key.
template <typename Rows, typename Value>
ordered_json column(const Rows& rows, Value value) {
  ordered_json::array_t out;
  out.reserve(rows.size());
  for (const auto& row : rows) out.emplace_back(value(row));
  return ordered_json(std::move(out));
}

/// Moments that begin with the same kernel are told once: the first of each, and when that kernel starts.
ordered_json moments_json(const StepRun& run, const BlockLives& lives, bool timed) {
  ordered_json out{{"count", lives.moments()}, {"cut_before", lives.cut_before}, {"cut_after", lives.cut_after}};
  if (!timed) return out;
  const StepProgram& program = run.program();
  const Timeline& line = run.timeline();
  ordered_json first = ordered_json::array(), at = ordered_json::array();
  const auto microseconds = [](Seconds t) { return std::round(t.value() * 1e9) / 1e3; };
  std::size_t kernel = 0, shown = static_cast<std::size_t>(-1);
  std::uint32_t action = program.steps.back().begin;
  const auto tell = [&](std::uint32_t moment) {
    if (kernel == shown) return;
    shown = kernel;
    first.push_back(moment);
    at.push_back(microseconds(kernel < line.kernels.size() ? line.kernels[kernel].start : line.step));
  };
  if (lives.cut_before == 0) tell(0);
  for (std::uint32_t m = 1; m < lives.moments(); ++m) {
    for (; action < lives.actions[m - 1]; ++action) kernel += program.actions[action].kind == Action::Kind::launch;
    tell(m);
  }
  out["first"] = std::move(first);
  out["at_us"] = std::move(at);
  return out;
}

ordered_json end_of(std::uint32_t to) { return to == BlockLives::kStays ? ordered_json() : ordered_json(to); }

ordered_json rows_json(const BlockLives& lives) {
  Address lowest = lives.segments.empty() ? 0 : lives.segments.front().address;
  for (const auto& block : lives.blocks) lowest = std::min(lowest, block.address);
  const auto place = [&](const auto& one) { return one.address - lowest; };
  const auto& b = lives.blocks;
  const auto& s = lives.segments;
  ordered_json blocks{{"address", column(b, place)},
                      {"bytes", column(b, [](const auto& o) { return o.bytes; })},
                      {"requested", column(b, [](const auto& o) { return o.requested; })},
                      {"from", column(b, [](const auto& o) { return o.from; })},
                      {"to", column(b, [](const auto& o) { return end_of(o.to); })},
                      {"category", column(b, [](const auto& o) { return static_cast<int>(o.category); })},
                      {"maker", column(b, [](const auto& o) { return o.maker; })},
                      {"count", column(b, [](const auto& o) { return o.count; })}};
  ordered_json segments{
      {"address", column(s, place)},
      {"bytes", column(s, [](const auto& o) { return o.bytes; })},
      {"from", column(s, [](const auto& o) { return o.from; })},
      {"to", column(s, [](const auto& o) { return end_of(o.to); })},
      {"pool", column(s, [](const auto& o) { return o.pool == PoolKind::small ? "small" : "large"; })},
      {"stream", column(s, [](const auto& o) { return o.stream; })}};
  return {{"blocks", std::move(blocks)}, {"segments", std::move(segments)}};
}

/// What was asked for, and what there was when it found no room.
ordered_json failure_json(const StepRun& run, const MemoryResult& result) {
  const MemoryFailure& failure = *result.failure;
  const OutOfMemory& details = failure.details;
  std::int64_t free_blocks = 0, free_bytes = 0, largest = 0;
  for (const SegmentView& segment : result.segments)
    for (const BlockView& block : segment.blocks)
      if (block.state == BlockView::State::free) {
        ++free_blocks;
        free_bytes += block.bytes;
        largest = std::max(largest, block.bytes);
      }
  return {{"op", op_name(run.program(), failure.moment.call)},
          {"phase", phase_name(failure.moment.phase)},
          {"layer", failure.moment.layer},
          {"step", failure.moment.step},
          {"category", kCategoryNames[static_cast<std::size_t>(failure.category)]},
          {"requested_bytes", details.requested},
          {"segment_bytes", details.segment},
          {"missing_bytes", details.missing},
          {"allocated_bytes", details.allocated},
          {"reserved_bytes", details.reserved},
          {"device_free_bytes", details.device_free},
          {"free_blocks", free_blocks},
          {"free_bytes", free_bytes},
          {"largest_free_bytes", largest},
          {"context_bytes", result.context},
          {"capacity_bytes", memory_options(run.scenario()).capacity}};
}

double tenths(double value) { return std::round(value * kTenths) / kTenths; }

}  // namespace

ordered_json blocks_json(const StepRun& held) {
  const StepRun& run = held.every_token();
  if (run.program().steps.empty() || !knows_allocations(run.scenario())) return nullptr;
  const MemoryResult& result = run.memory_run();
  const BlockLives lives = block_lives(run.program(), result);
  ordered_json out = rows_json(lives);
  const auto& makers = lives.makers;
  out["makers"] = {{"op", column(makers, [](const auto& m) { return m.op; })},
                   {"phase", column(makers, [](const auto& m) { return phase_name(m.phase); })},
                   {"layer", column(makers, [](const auto& m) { return m.layer; })},
                   {"module", column(makers, [](const auto& m) { return m.module; })}};
  out["moments"] = moments_json(run, lives, !result.failure && !result.samples.empty());
  out["peak"] = {{"moment", lives.peak}, {"allocated_bytes", lives.allocated}, {"reserved_bytes", lives.reserved}};
  if (result.failure) out["failure"] = failure_json(run, result);
  return out;
}

ordered_json power_json(const StepRun& run) {
  const StepPower power = step_power(run.every_token());
  ordered_json by_class;
  double total = power.idling.value();
  for (std::size_t i = 0; i < kTimeClasses; ++i) {
    by_class[std::string(kTimeClassNames[i])] = power.by_class[i].value();
    total += power.by_class[i].value();
  }
  by_class["idle"] = power.idling.value();
  return {{"limit_w", power.limit.value()},
          {"idle_w", power.idle.value()},
          {"average_w", power.average.value()},
          {"energy_j", total},
          {"energy_by_class_j", std::move(by_class)},
          {"power_w", column(power.kernels, [](const auto& k) { return tenths(k.power.value()); })},
          {"clock_mhz", column(power.kernels, [](const auto& k) { return tenths(k.clock.value() / 1e6); })}};
}

ordered_json lanes_json(const PipelineRun& pipeline) {
  const PipelineTimeline& line = pipeline.timeline();
  ordered_json out = ordered_json::array();
  const auto microseconds = [](Seconds t) { return std::round(t.value() * 1e9) / 1e3; };
  for (std::size_t rank = 0; rank < line.lanes.size(); ++rank) {
    const std::vector<StagePass>& passes = line.lanes[rank];
    out.push_back(
        {{"rank", rank},
         {"busy_s", line.ranks[rank].busy.value()},
         {"bubble_s", line.ranks[rank].bubble.value()},
         {"transfers_s", line.ranks[rank].transfers.value()},
         {"pass", column(passes, [](const StagePass& p) { return to_string(p.action); })},
         {"forward",
          column(passes, [](const StagePass& p) { return p.action.kind == parallel::StageAction::Kind::forward; })},
         {"start_us", column(passes, [&](const StagePass& p) { return microseconds(p.start); })},
         {"end_us", column(passes, [&](const StagePass& p) { return microseconds(p.end); })}});
  }
  return out;
}

ordered_json caches_json(const StepRun& run, const StepDetail& detail) {
  struct LevelBytes {
    double operands = 0, loaded = 0, l2 = 0, dram_read = 0, dram_write = 0;
  };
  std::vector<LevelBytes> all(detail.kinds.size());
  const std::vector<KernelTime>& times = run.every_token().times();
  for (std::size_t i = 0; i < detail.spans.size(); ++i) {
    const KernelLaunch& launch = detail.kinds[detail.spans[i].kind].launch;
    LevelBytes& bytes = all[detail.spans[i].kind];
    for (const auto* accesses : {&launch.reads, &launch.writes})
      for (const Access& access : *accesses) bytes.operands += access.bytes;
    bytes.loaded += loaded_bytes(launch);
    bytes.l2 += times[i].l2_bytes;
    bytes.dram_read += times[i].dram_read_bytes;
    bytes.dram_write += times[i].dram_write_bytes;
  }
  return {{"operand_bytes", column(all, [](const LevelBytes& b) { return std::round(b.operands); })},
          {"loaded_bytes", column(all, [](const LevelBytes& b) { return std::round(b.loaded); })},
          {"l2_bytes", column(all, [](const LevelBytes& b) { return std::round(b.l2); })},
          {"dram_read_bytes", column(all, [](const LevelBytes& b) { return std::round(b.dram_read); })},
          {"dram_write_bytes", column(all, [](const LevelBytes& b) { return std::round(b.dram_write); })}};
}

ordered_json kernel_caches_json(const StepRun& run, const StepDetail& detail, std::uint32_t kind) {
  const auto first =
      std::find_if(detail.spans.begin(), detail.spans.end(), [&](const LaunchSpan& span) { return span.kind == kind; });
  const KernelCaches caches = kernel_caches(run.every_token(), static_cast<std::size_t>(first - detail.spans.begin()));
  return {{"l2_capacity_bytes", run.scenario().gpu.l2.capacity.value()},
          {"held_before_bytes", caches.held_before},
          {"held_after_bytes", caches.held_after},
          {"evicted_bytes", caches.evicted_bytes},
          {"operands", column(caches.operands,
                              [](const KernelCaches::Operand& o) {
                                return ordered_json{{"name", o.name},
                                                    {"written", o.written},
                                                    {"bytes", o.bytes},
                                                    {"loaded_bytes", o.loaded},
                                                    {"l2_bytes", o.requested},
                                                    {"dram_bytes", o.dram},
                                                    {"resident", o.resident},
                                                    {"l1_hit_share", o.l1_hit_share()},
                                                    {"l2_hit_share", o.l2_hit_share()}};
                              })},
          {"evicted", column(caches.evicted, [](const KernelCaches::Evicted& e) {
             return ordered_json{
                 {"op", e.op},           {"category", kCategoryNames[static_cast<std::size_t>(e.category)]},
                 {"layer", e.layer},     {"bytes", e.bytes},
                 {"gone_bytes", e.gone}, {"kernels_to_next", e.kernels_to_next}};
           })}};
}

}  // namespace ridgeline
