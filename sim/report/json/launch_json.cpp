#include "sim/report/json/launch_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <variant>

#include "sim/occupancy/occupancy.h"
#include "sim/report/json/kernel_json.h"
#include "sim/timing/math_rate.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

constexpr std::array<const char*, 4> kLimitNames{"blocks", "warps", "registers", "shared_memory"};

std::int64_t pieces(std::int64_t whole, std::int64_t tile) { return tile > 0 ? (whole + tile - 1) / tile : 1; }

ordered_json tiles_of(const GemmWork& w) {
  constexpr std::array<const char*, 3> kFamilies{"wgmma", "mma.sync", "simt"};
  const std::int64_t rows = pieces(w.m, w.tile_m), columns = pieces(w.n, w.tile_n);
  const int of_pairs = w.scaling != Scaling::none ? 2 : 1;
  return {{"kind", "matrix product"},
          {"family", kFamilies[static_cast<std::size_t>(w.family)]},
          {"batch", w.batch},
          {"m", w.m},
          {"n", w.n},
          {"k", w.k * of_pairs},
          {"tile", {w.tile_m, w.tile_n, w.tile_k * of_pairs}},
          {"stages", w.stages},
          {"split_k", w.split_k},
          {"cluster", {w.cluster_m, w.cluster_n}},
          {"rows", rows},
          {"columns", columns},
          {"count", w.batch * rows * columns * w.split_k}};
}

ordered_json tiles_of(const AttentionWork& w) {
  const bool forward = w.part != AttentionWork::Part::backward;
  const int owned = forward ? w.tile_q : w.tile_k;
  std::int64_t rows = pieces(forward ? w.seq_q : w.seq_k, owned);
  if (w.lengths.any()) {
    rows = 0;
    for (const std::int64_t length : *w.lengths.list) rows += pieces(length, owned);
  }
  return {{"kind", "attention"}, {"batch", w.batch},
          {"heads", w.heads},    {"queries", w.seq_q},
          {"keys", w.seq_k},     {"head_dim", w.head_dim},
          {"causal", w.causal},  {"tile", {w.tile_q, w.tile_k}},
          {"splits", w.splits},  {"count", w.batch * w.heads * rows * w.splits}};
}

ordered_json tiles_of(const MemoryBoundWork& w) {
  return {{"kind", "memory-bound"}, {"elements", w.elements}, {"iterations", w.iterations}};
}

ordered_json tiles_of(const FixedWork& w) { return {{"kind", "fixed cost"}, {"bytes", w.bytes}}; }

ordered_json occupancy_json(const KernelKind& kind, const Gpu& gpu, const Occupancy& held) {
  return {{"blocks_per_sm", held.blocks},
          {"warps_per_block", held.warps_per_block},
          {"warps_per_sm", held.blocks * held.warps_per_block},
          {"most_warps_per_sm", gpu.sm.max_warps},
          {"limit", kLimitNames[static_cast<std::size_t>(held.limit)]},
          {"of_kernel", kind.each.occupancy}};
}

/// amount / rate = seconds.
void add_term(ordered_json& terms, const char* name, const char* unit, double amount, double rate) {
  if (amount > 0.0 && rate > 0.0)
    terms.push_back({{"name", name}, {"unit", unit}, {"amount", amount}, {"rate", rate}, {"time_s", amount / rate}});
}

/// What each resource would take were it alone and at its peak.
ordered_json terms_json(const KernelKind& kind, const Gpu& gpu) {
  const KernelLaunch& launch = kind.launch;
  ordered_json terms = ordered_json::array();
  const MathRate math = math_rate(launch.pipe, launch.type, gpu);
  const FlopsPerSecond peak =
      launch.on_tensor_cores() ? gpu.tensor_peak(math.multiply_adds) : gpu.peak(math.multiply_adds);
  add_term(terms, "arithmetic", "FLOP", launch.flops, peak.value());
  add_term(terms, "DRAM", "B", kind.each.dram_read_bytes + kind.each.dram_write_bytes, gpu.dram.bandwidth.value());
  add_term(terms, "L2", "B", kind.each.l2_bytes, gpu.l2.read_bandwidth.value());
  add_term(terms, "L1 and shared memory", "B", loaded_bytes(kind),
           gpu.sm.count * gpu.sm.shared_bandwidth.value() * gpu.clock.sustained.value());
  return terms;
}

ordered_json traffic_json(const KernelKind& kind) {
  const KernelTime& each = kind.each;
  return {{"operands_read_bytes", kind.launch.read_bytes()},
          {"operands_written_bytes", kind.launch.written_bytes()},
          {"loaded_bytes", loaded_bytes(kind)},
          {"l2_bytes", each.l2_bytes},
          {"l2_hit_rate", each.l2_hit_rate},
          {"dram_read_bytes", each.dram_read_bytes},
          {"dram_write_bytes", each.dram_write_bytes}};
}

}  // namespace

double loaded_bytes(const KernelLaunch& launch) {
  double loaded = 0;
  for (const auto* accesses : {&launch.reads, &launch.writes})
    for (const Access& access : *accesses) loaded += std::max({access.bytes, access.requested, access.loaded});
  if (const auto* work = std::get_if<MemoryBoundWork>(&launch.work)) loaded += work->reread_bytes;
  return loaded;
}

double loaded_bytes(const KernelKind& kind) { return std::max(loaded_bytes(kind.launch), kind.each.l2_bytes); }

ordered_json launch_json(const KernelKind& kind, const Gpu& gpu) {
  const KernelLaunch& launch = kind.launch;
  const Occupancy held = occupancy_of(gpu.sm, launch);
  ordered_json out{{"name", launch.name},
                   {"shape", kind.shape},
                   {"time_s", kind.each.time.value()},
                   {"limiter", name_of(kind.each.limited_by())},
                   {"grid", launch.grid},
                   {"blocks", launch.blocks()},
                   {"threads", launch.threads_per_block},
                   {"registers", launch.registers_per_thread},
                   {"shared_bytes", launch.shared_bytes_per_block},
                   {"sm_count", gpu.sm.count},
                   {"waves", kind.each.waves},
                   {"tiles", std::visit([](const auto& work) { return tiles_of(work); }, launch.work)},
                   {"occupancy", occupancy_json(kind, gpu, held)},
                   {"traffic", traffic_json(kind)},
                   {"terms", terms_json(kind, gpu)},
                   {"math_utilization", kind.each.math_utilization}};
  if (kind.each.clock.value() > 0.0) out["clock_hz"] = kind.each.clock.value();
  if (kind.each.profile) out["profile"] = profile_json(*kind.each.profile);
  return out;
}

}  // namespace ridgeline
