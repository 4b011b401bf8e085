#include "sim/hierarchy/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/hierarchy/tile_raster.h"
#include "sim/occupancy/occupancy.h"
#include "sim/timing/attention/attention_law.h"
#include "sim/timing/memory_bound/rereads.h"
#include "sim/timing/products/gemm_law.h"
#include "sim/units/budget.h"
#include "sim/units/ceil_div.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr const char* kSimulating = "simulating the traffic of a kernel";
/// Steps of one kernel: 64 bytes and some microseconds each, a hundred times as many as large models need.
constexpr double kMostTraffic = 4e6;

/// Parts of a tile's main loop that are followed one by one.
constexpr double kMostChunks = 8.0;
/// Of what tiles ask for, what reaches the L2: pairs of blocks share panels (TMA multicast), neighbouring SMs' requests
/// for one line are merged. Mean of 13 persistent and 4 tiled products counted on an H200 (0.46 to 0.8; 0.87 to 0.95).
constexpr double kMergedPersistent = 0.58, kMergedTiled = 0.9;

class Simulation {
 public:
  Simulation(const KernelLaunch& launch, std::span<const PlacedAccess> accesses, const Gpu& gpu, L2Cache& l2)
      : launch_(launch), accesses_(accesses), gpu_(gpu), l2_(l2) {
    touched_.resize(accesses.size());
    missed_.resize(accesses.size());
  }

  void operator()(const MemoryBoundWork& work) {
    const int resident = std::max(1, occupancy_of(gpu_.sm, launch_).blocks);
    const double blocks = std::max(1.0, launch_.blocks());
    const double wave = std::min(1.0, gpu_.sm.count * static_cast<double>(resident) / blocks);
    if (work.reread_bytes > 0.0) stream_again(work, at_work(launch_, work, gpu_.sm).of_chip / blocks);
    else stream(wave);
  }
  void operator()(const FixedWork&) { stream(1.0); }
  void operator()(const AttentionWork& work) {
    const bool helper = work.part != AttentionWork::Part::forward && work.part != AttentionWork::Part::backward;
    if (helper) return stream(1.0);
    attention(work);
  }
  void operator()(const GemmWork& work) {
    if (work.reduces_splits || accesses_.size() < 2 || launch_.reads.size() < 2) return stream(1.0);
    product(work);
  }

  KernelTraffic take() {
    double work = 0.0;
    for (const TrafficStep& step : result_.steps) work += step.work;
    if (work > 0.0)
      for (TrafficStep& step : result_.steps) step.work /= work;
    for (std::size_t i = 0; i < accesses_.size(); ++i)
      result_.hit_shares.push_back(touched_[i] > 0.0 ? std::clamp(1.0 - missed_[i] / touched_[i], 0.0, 1.0) : 0.0);
    return std::move(result_);
  }

 private:
  /// Room for about this much traffic between two operands' turns, a small part of any L2.
  static constexpr double kStepBytes = 1.0e6;
  static constexpr int kMostSteps = 256;

  [[nodiscard]] bool writes(std::size_t access) const { return access >= launch_.reads.size(); }

  /// Touches [begin, end) of an access for the first time and counts `requested` bytes asked of the L2 for it.
  void touch(std::size_t access, double begin, double end, double requested, double copies, TrafficStep& step,
             bool first = true) {
    const PlacedAccess& place = accesses_[access];
    L2Traffic moved;
    if (place.once) {
      const double bytes = place.run.bytes * (end - begin);
      moved = writes(access) ? l2_.write_once(bytes) : l2_.read_once(bytes);
    } else {
      L2Cache::Run run = place.run;
      run.begin = begin;
      run.end = end;
      moved = writes(access) ? l2_.write(run) : l2_.read(run, copies);
    }
    if (first) {
      touched_[access] += moved.bytes;
      missed_[access] += writes(access) ? moved.bytes - moved.dirty : moved.missed;
    }
    step.dram_write += moved.written_back;
    if (writes(access)) {
      step.l2_write += requested;
      step.lookups += requested * l2_.stream_copies();
      step.hits += l2_.absent() ? 0.0 : requested * l2_.stream_copies();
    } else {
      if (l2_.absent()) moved.missed = requested;
      step.l2_read += requested;
      step.dram_read += moved.missed;
      const double asked = requested + (l2_.stream_copies() - 1.0) * moved.missed;
      step.lookups += asked;
      step.hits += std::max(0.0, asked - copies * moved.missed);
    }
  }

  /// Before the first step: nobody waits minutes for a refusal.
  void refuse_endless(double steps) const {
    if (steps <= kMostTraffic) return;
    throw UserError(
        fmt::format("{} would be simulated in {:.3g} steps, more than {:.0f} million: engine analytic predicts it",
                    launch_.name, steps, kMostTraffic / 1e6));
  }

  /// Every access from its begin to its end, side by side.
  void stream(double wave) {
    double bytes = 0.0;
    for (const PlacedAccess& access : accesses_) bytes += access.run.bytes;
    const int steps = std::clamp(static_cast<int>(bytes / kStepBytes), 1, kMostSteps);
    for (int i = 0; i < steps; ++i) {
      TrafficStep& step = result_.steps.emplace_back();
      const double begin = static_cast<double>(i) / steps, end = static_cast<double>(i + 1) / steps;
      step.cohort = static_cast<int>(begin / wave);
      step.work = 1.0;
      for (std::size_t a = 0; a < accesses_.size(); ++a)
        touch(a, begin, end, accesses_[a].requested / steps, l2_.stream_copies(), step);
    }
    result_.cohorts = static_cast<int>(std::ceil(1.0 / wave - 1e-9));
  }

  /// Blocks that read their rows more than once, and write in the last pass. Blocks are not in step: a quarter of the
  /// cohort's rows is a quarter of the way ahead of the next.
  void stream_again(const MemoryBoundWork& work, double wave) {
    constexpr int kGroups = 4;
    double large = 0.0;
    for (std::size_t a = 0; a < launch_.reads.size(); ++a) large = std::max(large, accesses_[a].run.bytes);
    std::vector<std::size_t> rows;  // what is read again
    double row_bytes = 0.0;
    for (std::size_t a = 0; a < launch_.reads.size(); ++a)
      if (accesses_[a].run.bytes >= 0.5 * large) {
        rows.push_back(a);
        row_bytes += accesses_[a].run.bytes;
      }
    const double passes_again = std::max(work.reread_bytes / std::max(1.0, row_bytes), 1e-3);
    const int again = std::max(1, static_cast<int>(std::lround(passes_again)));
    const double l1_miss = l1_miss_again(launch_, work, gpu_.sm);
    if (work.reread_through_l1) {
      result_.l1_read = work.reread_bytes;
      result_.l1_hit = work.reread_bytes * (1.0 - l1_miss);
    }
    const double part = wave / kGroups;  // of the data, that a group of blocks works on
    refuse_endless((1.0 / part + kGroups) * (again + 1.0));
    const int parts = static_cast<int>(std::ceil(1.0 / part - 1e-9));
    const int ticks = kGroups * (again + 1);  // a group's turn, in steps of a quarter pass
    const int turns = (parts + kGroups - 1) / kGroups;
    const int stride = again + 1;  // ticks between the starts of two groups
    for (int tick = 0; tick < turns * ticks + kGroups * stride; ++tick) {
      keep_budget(kSimulating);
      TrafficStep step;
      step.cohort = tick / ticks;
      bool busy = false;
      for (int g = 0; g < kGroups; ++g) {
        const int own = tick - g * stride;
        if (own < 0) continue;
        const int p = own / ticks * kGroups + g;
        if (p >= parts) continue;
        const int pass = own % ticks / kGroups, quarter = own % ticks % kGroups;
        const double width = std::min(part, 1.0 - p * part) / kGroups;
        const double begin = p * part + quarter * width, end = std::min(1.0, begin + width);
        busy = true;
        step.work += width;
        if (pass == 0) {
          for (std::size_t a = 0; a < launch_.reads.size(); ++a)
            touch(a, begin, end, accesses_[a].requested * width, l2_.stream_copies(), step);
        } else if (l1_miss > 0.0) {
          for (const std::size_t a : rows) {
            TrafficStep all;
            touch(a, begin, end, accesses_[a].run.bytes * width, l2_.stream_copies(), all, false);
            const double share = l1_miss * passes_again / again;
            step.l2_read += all.l2_read * share;
            step.dram_read += all.dram_read * share;
            step.dram_write += all.dram_write;
            step.lookups += all.lookups * share;
            step.hits += all.hits * share;
          }
        }
        if (pass == again)
          for (std::size_t a = launch_.reads.size(); a < accesses_.size(); ++a)
            touch(a, begin, end, accesses_[a].requested * width, l2_.stream_copies(), step);
      }
      if (busy) result_.steps.push_back(step);
    }
    result_.cohorts = std::max(1, turns);
  }

  /// Cohorts of blocks in launch order; each head's operands are read by all its blocks.
  void attention(const AttentionWork& work) {
    const bool backward = work.part == AttentionWork::Part::backward;
    const double owned = backward ? work.tile_k : work.tile_q;
    double of_head = ceil_div(static_cast<double>(longest_of(work, backward)), owned) * work.splits;
    double heads = static_cast<double>(work.batch * work.heads), tokens = 0.0, met = 0.0;
    if (work.lengths.any()) heads *= static_cast<double>(work.lengths.list->size());
    const double blocks = of_head * heads;
    if (work.lengths.any()) {  // each key is read by the blocks of its own sequence
      for (const std::int64_t length : *work.lengths.list) {
        const auto own = static_cast<double>(length);
        tokens += own;
        met += own * ceil_div(own, owned);
      }
      of_head = met / tokens;
    }
    const double at_once = gpu_.sm.count * static_cast<double>(std::max(1, work.blocks_per_sm));
    refuse_endless(4.0 * blocks / at_once);
    const int cohorts = static_cast<int>(std::ceil(blocks / at_once));
    const double halved = work.causal ? 0.5 * (1.0 + 1.0 / std::max(1.0, of_head)) : 1.0;
    for (int c = 0; c < cohorts; ++c) {
      keep_budget(kSimulating);
      const double begin = c * at_once / blocks, end = std::min(1.0, (c + 1) * at_once / blocks);
      // Heads the cohort works on: those it shares with its predecessor are read again.
      const double first_head = std::floor(begin * heads) / heads, last_head = std::ceil(end * heads - 1e-9) / heads;
      constexpr int kParts = 4;
      for (int part = 0; part < kParts; ++part) {
        TrafficStep& step = result_.steps.emplace_back();
        step.cohort = c;
        step.work = (end - begin) / kParts;
        const auto at = [&](double from, double to, int i) { return from + (to - from) * i / kParts; };
        const double again = of_head / work.splits;  // blocks of a head that read what they do not own
        for (std::size_t a = 0; a < launch_.reads.size(); ++a) {
          const bool own = backward ? a == 1 || a == 2 : a == 0;
          const double bytes = accesses_[a].run.bytes;
          const double requested =
              own ? bytes * (end - begin) / kParts : bytes * (end - begin) * halved * again / kParts;
          touch(a, at(first_head, last_head, part), at(first_head, last_head, part + 1), requested,
                l2_.shared_copies(own ? 1.0 : again), step);
        }
        for (std::size_t a = launch_.reads.size(); a < accesses_.size(); ++a)
          touch(a, at(begin, end, part), at(begin, end, part + 1), accesses_[a].requested * (end - begin) / kParts,
                l2_.stream_copies(), step);
      }
    }
    result_.cohorts = cohorts;
  }

  /// Convolutions may read their weights before what they are applied to: the operand of A's size is A.
  [[nodiscard]] bool second_is_a(const GemmWork& work, double element) const {
    const double depth = element * static_cast<double>(work.batch * work.k);
    const double a = depth * static_cast<double>(work.m), b = depth * static_cast<double>(work.n);
    const auto apart = [](double x, double y) { return std::abs(std::log(std::max(1.0, x) / std::max(1.0, y))); };
    const double first = accesses_[0].run.bytes, second = accesses_[1].run.bytes;
    return apart(first, b) + apart(second, a) < apart(first, a) + apart(second, b) - 1e-9;
  }

  /// Tiles of a product in raster order: each needs a panel of rows of A and a panel of columns of B.
  void product(const GemmWork& work) {
    const TileRaster raster(work, gpu_);
    const auto tiles = raster.tiles();
    const std::int64_t at_once =
        gpu_.sm.count * (work.family == GemmWork::Family::wgmma ? 1 : std::max(1, work.blocks_per_sm));
    const std::int64_t cohorts = (tiles + at_once - 1) / at_once;
    const double k_steps =
        std::max(1.0, ceil_div(static_cast<double>(work.k), static_cast<double>(work.tile_k) * work.split_k));
    const int chunks = static_cast<int>(std::clamp(k_steps, 1.0, kMostChunks));
    refuse_endless(static_cast<double>(cohorts) * chunks);
    const double element = static_cast<double>(bytes_of(work.type));
    // What one tile asks for; pairs of blocks and the L2's own merging save a part of it.
    const bool clusters = work.family == GemmWork::Family::wgmma;
    const double merged = clusters ? kMergedPersistent : kMergedTiled;
    const bool swapped = second_is_a(work, element);
    // Tiles share panels as far as the L2 holds them while they do.
    const double side = std::max(1.0, sharing_tiles(work, gpu_));
    const std::int64_t together =
        l2_.absent() ? at_once : static_cast<std::int64_t>(std::min(static_cast<double>(at_once), side * side));
    struct Group {
      double count = 0;
      std::vector<std::int64_t> a_panels, b_panels;
    };
    std::vector<Group> groups;
    for (std::int64_t c = 0; c < cohorts; ++c) {
      keep_budget(kSimulating);
      const std::int64_t first = c * at_once, last = std::min(tiles, first + at_once);
      groups.clear();
      for (std::int64_t begin = first; begin < last; begin += together) {
        Group& group = groups.emplace_back();
        const std::int64_t end = std::min(last, begin + together);
        group.count = static_cast<double>(end - begin);
        raster.panels(begin, end, group.a_panels, group.b_panels);
      }
      const double of_tile =
          element * static_cast<double>(work.k) / work.split_k * merged / chunks * work.distinct_reads;
      for (int chunk = 0; chunk < chunks; ++chunk) {
        TrafficStep& step = result_.steps.emplace_back();
        step.cohort = static_cast<int>(c);
        step.work = static_cast<double>(last - first) / chunks;
        const auto panel = [&](bool of_a, const Group& group, double size) {
          const std::vector<std::int64_t>& list = of_a ? group.a_panels : group.b_panels;
          const std::size_t access = of_a != swapped ? 0 : 1;
          // The SMs of a cluster sit on one side.
          const double readers = group.count / static_cast<double>(list.size()) * (clusters ? 0.5 : 1.0);
          const double copies = l2_.shared_copies(std::max(1.0, readers));
          for (const std::int64_t p : list) {
            const auto i = static_cast<double>(p % raster.panel_splits());
            const auto [from, to] = raster.extent(of_a, p / raster.panel_splits());
            const double begin = from + (to - from) * (i + static_cast<double>(chunk) / chunks) / raster.panel_splits();
            const double end =
                from + (to - from) * (i + static_cast<double>(chunk + 1) / chunks) / raster.panel_splits();
            touch(access, begin, end, group.count * of_tile * size / static_cast<double>(list.size()), copies, step);
          }
        };
        for (const Group& group : groups) {
          panel(true, group, work.tile_m);
          panel(false, group, work.tile_n);
        }
        if (chunk == chunks - 1) {
          const double begin = static_cast<double>(first) / static_cast<double>(tiles),
                       end = static_cast<double>(last) / static_cast<double>(tiles);
          for (std::size_t a = 2; a < accesses_.size(); ++a)
            touch(a, begin, end, accesses_[a].requested * (end - begin), l2_.stream_copies(), step);
        }
      }
    }
    result_.cohorts = static_cast<int>(cohorts);
  }

  const KernelLaunch& launch_;
  std::span<const PlacedAccess> accesses_;
  const Gpu& gpu_;
  L2Cache& l2_;
  std::vector<double> touched_, missed_;
  KernelTraffic result_;
};

}  // namespace

TrafficStep& TrafficStep::operator+=(const TrafficStep& other) {
  work += other.work;
  l2_read += other.l2_read;
  l2_write += other.l2_write;
  dram_read += other.dram_read;
  dram_write += other.dram_write;
  lookups += other.lookups;
  hits += other.hits;
  return *this;
}

TrafficStep KernelTraffic::total() const {
  TrafficStep sum;
  for (const TrafficStep& step : steps) sum += step;
  return sum;
}

KernelTraffic simulate_traffic(const KernelLaunch& launch, std::span<const PlacedAccess> accesses, const Gpu& gpu,
                               L2Cache& l2) {
  Simulation simulation(launch, accesses, gpu, l2);
  std::visit(simulation, launch.work);
  return simulation.take();
}

}  // namespace ridgeline
