#include "sim/timing/products/gemm_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/timing/clock_law.h"
#include "sim/timing/products/four_floats.h"

namespace ridgeline {

void GemmTileShapes::push_back(const GemmTile& tile) {
  const auto note = [this](std::vector<float>& list, double value) {
    list.resize(size_);
    list.resize((size_ / kGroup + 1) * kGroup, static_cast<float>(value));
  };
  const bool persistent = tile.wgmma_m > 0;
  note(m_, tile.m);
  note(n_, tile.n);
  note(k_, tile.k);
  note(panels_, tile.k * (tile.wgmma_m + reads_of_n(tile) * tile.wgmma_n));
  note(depth_, 1.0 / (tile.ahead == 0.0 ? std::max(1, tile.stages - 1) : std::max(1.0, tile.ahead)));
  note(stages_, tile.first_stages);
  note(blocks_, persistent ? 1 : tile.blocks_per_sm);
  ++size_;
}

template <class T>
inline GemmFloor::Tiling<T> GemmFloor::tiling(const GemmTileShapes& tiles, const GemmTilings& on, std::size_t i) const {
  const auto of = [i](const std::vector<float>& list) { return loaded<T>(list.data() + i); };
  Tiling<T> all{.m = of(tiles.m_),
                .n = of(tiles.n_),
                .k = of(tiles.k_),
                .panels = of(tiles.panels_),
                .depth = of(tiles.depth_),
                .stages = of(tiles.stages_),
                .blocks = of(tiles.blocks_),
                .area = {},
                .volume = {},
                .rows = loaded<T>(on.rows + i),
                .columns = loaded<T>(on.columns + i),
                .copies = every<T>(batch_),
                .count = {},
                .steps = loaded<T>(on.steps + i)};
  all.area = all.m * all.n;
  all.volume = all.area * all.k;
  all.count = all.rows * all.columns * batch_;
  return all;
}

/// ⌈count / SMs⌉, at least 1.
template <class T>
inline T GemmFloor::rounds_of(T count) const {
  return larger(every<T>(1.0F), nearest(count * per_sm_ + 0.498F));
}

/// Elements of both panels that a block draws from the L2 for one place of k, in seconds of the L2: in the best of
/// clusters, whether it fits or not.
template <class T>
inline T GemmFloor::least_drawn(const Tiling<T>& on, T count) const {
  const T a = l2_a_ * on.m, b = l2_b_ * on.n, more = larger(a, b), sum = a + b;
  return where(count > every<T>(clusterable_), sum - 0.5F * more, 0.5F * sum - 0.25F * more);
}

/// `l2`: cycles of the whole L2 for all blocks of a round, for one place of k.
template <class T>
inline T GemmFloor::step_persistent(const Tiling<T>& on, T l2) const {
  const T math = on.volume * math_ + on.k * (turn_both_ * (on.m + on.n) + turn_b_ / on.n);
  const T port = on.k * (port_a_ * on.m + port_b_ * on.n);
  const T latency = latency_ + smaller(every<T>(dram_latency_), on.k * dram_latency_each_);
  return larger(math, least_rounded_maximum(on.panels * panel_, on.depth * latency, port, on.k * l2));
}

template <class T>
inline GemmFloor::Cycles<T> GemmFloor::persistent(const Tiling<T>& on, float store) const {
  const T rounds = rounds_of(on.count), epilogue = epilogue_ + on.area * store;
  const T l2 = least_drawn(on, on.count) * on.count / rounds;
  return {rounds * on.steps * step_persistent(on, l2) + epilogue * (1.0F + (rounds - 1.0F) * exposed_), busy(on)};
}

template <class T>
inline T GemmFloor::panels_tiled(const Tiling<T>& on) const {
  return (load_a_ / on.rows + load_b_ / on.columns) * on.k;
}

/// `handed`: cycles of blocks that add up their splits one after the other.
template <class T>
inline GemmFloor::Cycles<T> GemmFloor::tiled(const Tiling<T>& on, float store, T handed) const {
  const T rounds = rounds_of(on.count), panels = panels_tiled(on);
  const T loads = where(on.stages >= every<T>(grouped_from_), panels, own_loads_ * panels);
  const T bound = on.volume * math_, step = (cuda_cores_ ? on.volume * issue_ : bound) + loads;
  const T epilogue = epilogue_ + on.area * store;
  const T sets = larger(every<T>(1.0F), nearest(rounds / on.blocks + 0.48F)), resident = rounds / sets;
  const T latency = on.depth * (l2_latency_ + smaller(every<T>(dram_latency_), on.k * dram_latency_each_));
  const T pace =
      larger(larger(resident * bound, latency),
             least_rounded_maximum(resident * step, resident * panels * copies_, every<T>(own_latency_), T{}) +
                 exposed_step_ * on.k);
  const T cycles = sets * (on.steps * pace + epilogue * (1.0F + (resident - 1.0F) * exposed_)) + handed;
  const T l2 = (l2_all_a_ / on.rows + l2_all_b_ / on.columns) * on.k * on.steps * on.count;
  return {larger(cycles, l2), busy(on)};
}

template <class T>
inline T GemmFloor::busy(const Tiling<T>& on) const {
  return on.count * on.steps * on.volume * busy_;
}

/// Less busy, faster clock. The order keeps the largest products' numbers finite.
template <class T>
inline T GemmFloor::at_clock(const Cycles<T>& cycles) const {
  const T drooped = cycles.all + droop_cycles_;
  return cycles.all * (drooped / (clock_ * drooped - droop_ * smaller(cycles.busy, cycles.all)));
}

template <class T>
inline T GemmFloor::limited(T time, const Power& power) {
  return time + larger(T{}, power.seconds - time) * power.charged;
}

/// Share of the time beside traffic that few blocks take: the logarithm from below, by the bits of a number.
template <class T>
inline T GemmFloor::share_of_few(T count) const {
  return least_few_ + few_each_ * least_logarithm(larger(every<T>(1.0F), smaller(count, every<T>(sms_))));
}

/// Seconds without helpers.
template <class T>
inline T GemmFloor::total(const Tiling<T>& on, const Cycles<T>& cycles, T results, const Power& power) const {
  const T fetched = smaller(on.stages, on.steps), few = share_of_few(on.count);
  const T sets = larger(every<T>(1.0F), nearest(rounds_of(on.count) / on.blocks + 0.48F));
  const T streamed = exposed_reads_ * fetched / (sets * on.steps);
  return limited(few * (start_ + streamed + fetched * stage_) +
                     least_rounded_maximum(few * at_clock(cycles), operands_ + results - streamed),
                 power);
}

template <bool kPersistent>
inline void GemmFloor::whole_group(const GemmTileShapes& tiles, const GemmTilings& tilings, std::size_t i,
                                   float* seconds) const {
  static_assert(GemmTileShapes::kGroup * sizeof(float) == sizeof(FourFloats));
  const Tiling<FourFloats> on = tiling<FourFloats>(tiles, tilings, i);
  FourFloats time;
  if constexpr (kPersistent) {
    time = total(on, persistent(on, store_), every<FourFloats>(results_), power_) +
           where(on.count > every<FourFloats>(2.0F * sms_ + 0.5F), every<FourFloats>(memset_), FourFloats{});
  } else {
    time = total(on, tiled(on, store_, FourFloats{}), every<FourFloats>(results_), power_);
  }
  time = kSure * (time + summed_);
  std::memcpy(seconds + i, &time, sizeof time);
}

void GemmFloor::whole(const GemmTileShapes& tiles, const GemmTilings& tilings, float* seconds) const {
  const GemmFloor floor = *this;  // a copy that nothing else can point to: its numbers need not be read anew
  const std::size_t size = tiles.size();
  if (persistent_)
    for (std::size_t i = 0; i < size; i += GemmTileShapes::kGroup) floor.whole_group<true>(tiles, tilings, i, seconds);
  else
    for (std::size_t i = 0; i < size; i += GemmTileShapes::kGroup) floor.whole_group<false>(tiles, tilings, i, seconds);
}

template <class T>
inline T GemmFloor::split_range(const Tiling<T>& on, T most, bool in_place) const {
  const T fewest = every<T>(2.0F), one = every<T>(1.0F), share = on.count * per_sm_,
          all_steps = static_cast<float>(k_) / on.k;
  const T step = persistent_ ? step_persistent(on, T{})
                             : (cuda_cores_ ? on.volume * issue_ : on.volume * math_) +
                                   panels_tiled(on) * (own_loads_ < 1.0F ? own_loads_ : 1.0F);
  const T blocks = persistent_ ? one : larger(one, share * fewest);
  const T store = epilogue_ + on.area * (in_place ? store_ : partial_store_);
  const T alone = all_steps * step * larger(share, one / most) + store * (1.0F + (blocks - 1.0F) * exposed_);
  const Cycles<T> cycles{in_place ? alone + (fewest - 1.0F) * (handoff_ + on.area * handoff_each_) : alone,
                         busy(on) / on.steps * all_steps};
  const T helper = in_place ? every<T>(memset_) : reduction_ + fewest * reduction_each_;
  const T few = share_of_few(on.count * fewest);
  // Of few blocks the loads that nothing hides take less, too.
  const T moved = every<T>(operands_ + (in_place ? results_ : 0.0F)) - (1.0F - few) * exposed_reads_;
  return kSure *
         (limited(few * start_ + larger(few * at_clock(cycles), moved), in_place ? power_ : split_power_) + helper);
}

void GemmFloor::split(const GemmTileShapes& tiles, const GemmTilings& tilings, std::size_t i, const float* splits,
                      bool in_place, float* seconds) const {
  const auto times = loaded<FourFloats>(splits);
  const Tiling<float> one = tiling<float>(tiles, tilings, i);
  const Tiling<FourFloats> on{.m = every<FourFloats>(one.m),
                              .n = every<FourFloats>(one.n),
                              .k = every<FourFloats>(one.k),
                              .panels = every<FourFloats>(one.panels),
                              .depth = every<FourFloats>(one.depth),
                              .stages = every<FourFloats>(one.stages),
                              .blocks = every<FourFloats>(one.blocks),
                              .area = every<FourFloats>(one.area),
                              .volume = every<FourFloats>(one.volume),
                              .rows = every<FourFloats>(one.rows),
                              .columns = every<FourFloats>(one.columns),
                              .copies = one.copies * times,
                              .count = one.count * times,
                              .steps = nearest(static_cast<float>(k_) / (one.k * times) + 0.499F)};
  const float store = in_place ? store_ : partial_store_;
  const FourFloats handed = in_place ? (times - 1.0F) * (handoff_ + one.area * handoff_each_) : FourFloats{};
  const Cycles<FourFloats> cycles = persistent_ ? persistent(on, store) : tiled(on, store, handed);
  FourFloats time;
  if (in_place) {
    time = total(on, cycles, every<FourFloats>(results_), power_) + memset_;
  } else {
    const bool own = cuda_cores_ && one.stages < grouped_from_;
    time = total(on, cycles, times * partial_results_, split_power_) +
           ((own ? own_reduction_ : common_reduction_) + times * (own ? own_reduction_each_ : common_reduction_each_));
  }
  time *= kSure;
  std::memcpy(seconds, &time, sizeof time);
}

void GemmFloor::splits(const GemmTileShapes& tiles, const GemmTilings& tilings, const SplitLimits& limits,
                       bool in_place, float* seconds) const {
  constexpr float kSlack = 1.0F + 1e-5F;
  const GemmFloor floor = *this;
  for (std::size_t i = 0; i < tiles.size(); i += GemmTileShapes::kGroup) {
    const Tiling<FourFloats> on = floor.tiling<FourFloats>(tiles, tilings, i);
    const FourFloats two = every<FourFloats>(2.0F), rounds = (limits.rounds * floor.sms_ * kSlack) / on.count;
    const FourFloats most =
        smaller(smaller(larger(every<FourFloats>(limits.few), rounds), every<FourFloats>(limits.most)),
                static_cast<float>(floor.k_) * kSlack / (limits.least_steps * on.k));
    if (!any(most >= two)) {
      std::fill_n(seconds + i, GemmTileShapes::kGroup, std::numeric_limits<float>::infinity());
      continue;
    }
    const FourFloats least = where(most >= two, floor.split_range(on, most, in_place),
                                   every<FourFloats>(std::numeric_limits<float>::infinity()));
    std::memcpy(seconds + i, &least, sizeof least);
  }
}

GemmFloor::GemmFloor(const GemmLaw& law) : persistent_(law.persistent_), cuda_cores_(law.cuda_cores_), k_(law.k_) {
  const GemmConstants& c = law.c_;
  const auto single = [](double value) { return static_cast<float>(value); };
  batch_ = single(law.batch_);
  sms_ = single(law.sms_);
  per_sm_ = single(law.per_sms_);
  clusterable_ = single(law.clusterable_);
  grouped_from_ = c.grouped == 0.0 ? 1e9F : cuda_cores_ ? static_cast<float>(GemmLaw::kCutlassStages) : 0.0F;
  math_ = single(law.per_rate_ / c.utilization);
  busy_ = single(law.per_rate_ * law.per_sms_);
  panel_ = single(std::min(law.a_stored_, law.b_stored_) * law.element_ * law.per_shared_);
  own_latency_ = single(c.latency_cycles);
  latency_ = single(c.latency_cycles + law.l2_latency_);
  dram_latency_ = single(law.dram_latency_);
  dram_latency_each_ = single(law.dram_latency_ * law.element_ / 128.0);
  const double a = law.a_straddle_ * law.a_stored_, b = law.b_straddle_ * law.b_stored_;
  port_a_ = single(a * law.element_ * law.per_port_);
  port_b_ = single(b * law.element_ * law.per_port_);
  l2_latency_ = single(law.l2_latency_);
  l2_all_a_ = single(a * law.element_ * law.per_l2_ * law.m_);
  l2_all_b_ = single(b * law.element_ * law.per_l2_ * law.n_);
  l2_a_ = single(a * law.element_ * law.per_l2_);
  l2_b_ = single(b * law.element_ * law.per_l2_);
  turn_both_ = single(law.transpose_both_);
  turn_b_ = single(law.transpose_b_);
  issue_ = single(1.0 / law.issue_rate_);
  load_a_ = single(a * law.load_slots_ * law.m_);
  load_b_ = single(b * law.load_slots_ * law.n_);
  own_loads_ = single(c.own_load_slots);
  copies_ = single(law.load_slots_ > 0.0 ? law.element_ * law.per_copy_ / law.load_slots_ : 0.0);
  const double penalty = law.store_penalty_;
  store_ = single(law.output_element_ * penalty * law.per_epilogue_);
  partial_store_ = single(4.0 * penalty * law.per_epilogue_);
  epilogue_ = single(c.epilogue_cycles);
  exposed_ = single(1.0 - c.epilogue_overlap);
  exposed_step_ = single(c.exposed_cycles);
  handoff_ = single(c.handoff_cycles);
  handoff_each_ = single(law.output_element_ * law.per_handoff_);
  clock_ = single(law.clock_);
  droop_ = single(law.droop_);
  droop_cycles_ = single(c.droop_cycles);
  stage_ = single(c.stage_cycles / law.clock_);
  start_ = single(law.fixed_);
  operands_ = single(law.first_loads_);
  results_ = single(law.written_time_);
  partial_results_ = single(c.partial_writes * 4.0 * law.m_ * law.n_ * law.batch_ / law.write_bandwidth_);
  exposed_reads_ = single(c.first_loads * law.first_loads_);
  least_few_ = single(1.0 - c.few_blocks);
  few_each_ = single(c.few_blocks * law.per_log_);
  const Pipe pipe = law.cuda_cores_ ? Pipe::fp32 : Pipe::tensor_mma;
  const auto power = [&](double written) {
    const PowerLimit limit = power_limit(law.gpu_, pipe, law.type_, law.flops_, law.cold_bytes_ + written);
    return Power{single(limit.floor.value()), single(limit.charged)};
  };
  power_ = power(law.written_bytes_);
  split_power_ = power(0.0);
  memset_ = single(law.memset_);
  // Which fp32 kernels are CUTLASS's the tile says; for all tiles at once the cheaper of both.
  const double results = law.m_ * law.n_ * law.batch_;
  const auto reduced = [&](const SplitReduction& kernel, double splits) {
    return (kernel.start_cycles + splits * kernel.split_cycles + results * law.per_sms_ * kernel.element_cycles) /
               law.gpu_.clock.sustained.value() +
           4.0 * splits * results / (kernel.l2_share * law.gpu_.l2.read_bandwidth.value());
  };
  const SplitReduction &common = split_reduction_of(false), &own = split_reduction_of(law.cuda_cores_);
  common_reduction_ = single(reduced(common, 0.0));
  common_reduction_each_ = single(reduced(common, 1.0) - reduced(common, 0.0));
  own_reduction_ = single(reduced(own, 0.0));
  own_reduction_each_ = single(reduced(own, 1.0) - reduced(own, 0.0));
  summed_ = single(law.always_summed_ ? reduced(own, 1.0) : 0.0);
  reduction_ = std::min(common_reduction_, own_reduction_);
  reduction_each_ = std::min(common_reduction_each_, own_reduction_each_);
}

}  // namespace ridgeline
