// The law of tiled matrix products: T = start + fill + (compute⁴ + memory⁴)^¼, quantised by tiles an SM.
//
// compute = rounds · (k-steps · cycles of a k-step + epilogue) / clock, where rounds = ⌈tiles·splits / SMs⌉: blocks on
// one SM share its pipes, so residency hides latency and is not the quantum. A k-step of a persistent (wgmma) kernel
// takes the slowest of tensor pipe, shared memory, L2 and the latency of a pipeline stage; in cp.async and SIMT kernels
// loads compete with the math for issue slots, so their cycles add up. fill = the first stages of the first wave, which
// nothing overlaps.
//
// T never grows with a better number of the chip: what a kernel may do either way (pairs of blocks or none) is a
// minimum over all ways, what the SMs share (L2, DRAM) is bytes of the whole grid over its bandwidth, and more blocks
// at once only share more panels. A new term must keep to that. The floors of the choice (gemm_floor.h) stay right as
// long as it only adds time. Sources: fits to 13,922 products on an H200, counters of 20; see
// data/laws/products.yaml for constants and errors.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/timing/products/gemm_constants.h"

namespace ridgeline {

/// As ceil_div on doubles, but inline: the choice of a kernel asks for hundreds of them.
inline double pieces_of(double length, double piece) {
  const double quotient = (piece == 1.0 ? length : length / piece) - 1e-9;
  const auto whole = static_cast<double>(static_cast<std::int64_t>(quotient));
  return whole < quotient ? whole + 1.0 : whole;
}

/// One entry of a tile menu. `wgmma_m` is the side fed as M of wgmma (a multiple of 64), `wgmma_n` the other one.
/// `stream_k`: persistent kernels share out k-steps; tiled ones add up their splits in place, block after block.
struct GemmTile {
  int m = 128, n = 128, k = 8, stages = 2;
  int first_stages = 2;  ///< of them where shared memory holds all that the kernel was built with
  int blocks_per_sm = 1;
  int wgmma_m = 0, wgmma_n = 0;
  int mma_rows = 64;    ///< of them, what one instruction takes: 64 with wgmma, 128 with tcgen05
  bool paired = false;  ///< tcgen05: a pair of SMs works on twice the rows, each holding half of the other panel
  bool stream_k = false;
  double spilled = 0;  ///< bytes of sums that find no registers: stored and loaded again in every k-step
  /// k-steps on their way while one is worked on, where shared memory does not hold all stages that the kernel was
  /// built with (0: all of them but one). A part of one: between whole stages lie those of shorter k-steps, and below
  /// two stages the k-steps themselves are that much shorter.
  double ahead = 0;
};
GemmTile tile_of(const GemmWork& work);

/// How often instructions read the panel of `wgmma_n` from an SM's shared memory: once for each of its rows' pieces,
/// half of it where a pair of SMs has the other half.
inline double reads_of_n(const GemmTile& tile) {
  return (tile.paired ? 0.5 : 1.0) * ((tile.wgmma_m + tile.mma_rows - 1) / tile.mma_rows);
}

/// Share of a dense operand's bytes that is stored of one: 9/16 where it is 2:4 sparse.
double stored_share(bool sparse);

/// FLOPs that the pipes execute: of products with zeros that are known none.
double gemm_flops(const GemmWork& work);

/// Where the time of one candidate goes (seconds, bytes).
struct GemmTime {
  double total = 0;  ///< the product alone
  double compute = 0, memory = 0, fill = 0, fixed = 0;
  double math = 0, shared = 0, latency = 0, port = 0;  ///< parts of compute
  double dram_read = 0, dram_write = 0, l2_bytes = 0;
  double rounds = 0, activity = 0;
  double clocked = 0;  ///< seconds of start and compute that go with the clock of the SMs
  /// The total with other bytes to move.
  [[nodiscard]] double total_with(double memory_seconds) const;
};

/// Tiles along a side of the largest square whose panels the L2 holds while they are shared: 0 without an L2.
double sharing_tiles(const GemmWork& work, const Gpu& gpu);

/// Shares of a product's reads and writes that are not in the L2.
struct GemmMisses {
  double read = 1.0, write = 1.0;
};
GemmMisses gemm_misses(const KernelLaunch& launch, std::span<const double> residency);

/// The law for one problem on one GPU; candidates differ in tile and split. Cheap to construct, no allocation.
class GemmLaw {
 public:
  /// `read_miss`: share of the operands that has to come from DRAM; `write_miss`: of the results that goes there.
  GemmLaw(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, double read_miss = 1.0,
          double write_miss = 1.0);

  [[nodiscard]] GemmTime time(const GemmTile& tile, int splits) const;
  /// Seconds of the product, its memset and its split reduction: what a library minimises. Infinite once it must exceed
  /// `give_up`.
  [[nodiscard]] double seconds(const GemmTile& tile, int splits,
                               double give_up = std::numeric_limits<double>::infinity()) const {
    return seconds(tile, splits, give_up, tiles(tile));
  }
  /// `count`: tiles(tile).
  [[nodiscard]] double seconds(const GemmTile& tile, int splits, double give_up, double count) const;
  /// Seconds of the kernel that adds up `splits` partial products.
  [[nodiscard]] double split_reduction(const GemmTile& tile, int splits) const {
    return split_reduction(splits, split_reduction_of(adds_up_its_own(tile)));
  }
  /// With constants other than those of the kernel's class.
  [[nodiscard]] double split_reduction(int splits, const SplitReduction& kernel) const;
  /// Whether partial sums are added by the kernel of fp32 products that are not CUTLASS's.
  [[nodiscard]] bool adds_up_its_own(const GemmTile& tile) const { return cuda_cores_ && !grouped(tile); }
  /// Seconds of what runs beside the product: a memset, the kernel that adds up splits.
  [[nodiscard]] double helper_seconds(const GemmTile& tile, int splits) const {
    return helper_seconds(tile, splits, tiles(tile));
  }
  /// Whether the kernel first clears a counter of its tiles or splits with a memset.
  [[nodiscard]] bool needs_counter(const GemmTile& tile, int splits) const {
    return needs_counter(tile, splits, tiles(tile));
  }
  [[nodiscard]] double tiles(const GemmTile& tile) const;
  /// `count`: tiles(tile).
  /// Least k of a split of a tiled kernel (profiled products of an H200).
  static constexpr int kLeastSplit = 64;
  /// Fewest k-steps of a split of a persistent kernel (147 of 152 profiled ones).
  static constexpr int kLeastStepsOfSplit = 20;
  [[nodiscard]] bool may_split(const GemmTile& tile, int splits, double count) const;
  [[nodiscard]] bool may_split(const GemmTile& tile, int splits) const { return may_split(tile, splits, tiles(tile)); }

 private:
  friend class GemmFloor;
  [[nodiscard]] bool needs_counter(const GemmTile& tile, int splits, double count) const {
    if (!persistent_) return tile.stream_k;
    return splits == 1 && !stores_between_tiles_ && (tile.stream_k || count > 2.0 * sms_);
  }
  [[nodiscard]] double helper_seconds(const GemmTile& tile, int splits, double count) const {
    const bool summed = (splits > 1 || always_summed_) && !tile.stream_k;
    return (needs_counter(tile, splits, count) ? memset_ : 0.0) + (summed ? split_reduction(tile, splits) : 0.0);
  }
  struct Compute {
    double cycles, math, shared, latency, port, busy, rounds, tiles, k_steps;
    double asked;    ///< bytes that blocks ask of the L2; what a cluster shares is asked for once
    double clocked;  ///< of the cycles, what goes with the clock: not the L2's bandwidth, not the DRAM's latency
  };
  /// The clock falls as the pipes get busy, not at once.
  [[nodiscard]] double clock_of(const Compute& work) const {
    const double busy = work.busy < work.cycles ? work.busy : work.cycles;
    return clock_ - droop_ * busy / (work.cycles + c_.droop_cycles);
  }
  /// Clusters of blocks share panels of operands: what a tile's blocks draw for an element of k, and how many rounds.
  struct Drawn {
    double rounds, elements;
  };
  struct Clusters {
    Drawn fewest_rounds;  ///< of all that take no more rounds than single blocks, the one that draws least
    Drawn pair_along_m, pair_along_n;
  };
  [[nodiscard]] Clusters clusters(const GemmTile& tile, int splits, double count) const;
  [[nodiscard]] Compute persistent(const GemmTile& tile, int splits, double whole) const;
  [[nodiscard]] Compute tiled(const GemmTile& tile, int splits, double whole) const;
  /// Whether the kernel is one of CUTLASS: of the fp32 kernels those with four stages or more.
  static constexpr int kCutlassStages = 4;
  [[nodiscard]] bool grouped(const GemmTile& tile) const {
    return c_.grouped != 0.0 && (!cuda_cores_ || tile.first_stages >= kCutlassStages);
  }
  /// Cycles from asking for a stage of a block's pipeline to having it. Lines of 128 bytes come from the DRAM at once.
  [[nodiscard]] double stage_latency(const GemmTile& tile) const {
    const double line = tile.k * element_ * (1.0 / 128.0);
    return l2_latency_ + dram_latency_ * (line < 1.0 ? line : 1.0);
  }
  /// How many k-steps' latency is waited for at once. Shorter k-steps wait more often, but not where k ends before.
  [[nodiscard]] double ahead(const GemmTile& tile, int splits, double steps) const {
    if (tile.ahead == 0.0) return std::max(1, tile.stages - 1);
    return tile.ahead >= 1.0 ? tile.ahead : std::min(1.0, tile.ahead * steps * tile.k * splits / k_);
  }
  /// What a grid of `blocks` takes of its law's time beside traffic: a grid ends with its slowest block, and of few the
  /// slowest is less slow.
  [[nodiscard]] double share_of_few(double blocks) const;
  [[nodiscard]] double blocks_of(const GemmTile& tile, double tiles) const {
    return persistent_ && (tile.stream_k || tiles > sms_) ? sms_ : tiles;
  }
  [[nodiscard]] double refetched(const Compute& work, const GemmTile& tile, int splits) const;
  [[nodiscard]] GemmTime time_of(const Compute& work, const GemmTile& tile, int splits) const;
  /// `whole`: tiles(tile).
  [[nodiscard]] Compute compute(const GemmTile& tile, int splits, double whole) const {
    return persistent_ ? persistent(tile, splits, whole) : tiled(tile, splits, whole);
  }
  /// How far the operands of a matrix have outgrown the L2: the share of what waves read again that comes from the DRAM
  /// again.
  [[nodiscard]] double refetched_share() const {
    const double beyond = read_bytes_ / batch_ - reuse_from_;
    return beyond <= 0.0 ? 0.0 : beyond < reuse_over_ ? beyond / reuse_over_ : 1.0;
  }
  /// Tiles of the fullest SM.
  [[nodiscard]] double rounds_of(double count) const { return pieces_of(count * per_sms_, 1.0); }

  const GemmConstants& c_;
  bool persistent_;
  bool cuda_cores_;
  bool fused_bias_;
  bool always_summed_, stores_between_tiles_;
  double batch_, m_, n_, k_;
  double element_, output_element_;
  double a_stored_, b_stored_;  ///< share of an operand's values that is stored and moved: all unless it is 2:4 sparse
  double a_straddle_, b_straddle_, store_penalty_, write_penalty_;
  double load_slots_, transpose_both_ = 0.0, transpose_b_ = 0.0;
  double sms_, clusterable_, rate_, issue_rate_, shared_bytes_;
  double clock_, droop_;
  double l2_latency_, dram_latency_;  ///< cycles
  double read_bytes_, cold_bytes_, written_bytes_;
  double read_bandwidth_, write_bandwidth_, l2_bandwidth_;
  double held_panels_;              ///< bytes of the L2 that keep panels for the blocks of a wave
  double reuse_from_, reuse_over_;  ///< bytes
  double per_rate_, per_sms_, per_shared_, per_port_, per_epilogue_, per_handoff_,
      per_copy_;    ///< one over what the name says
  double per_l2_;   ///< cycles of the whole L2 for a byte that blocks ask for
  double per_log_;  ///< one over the logarithm of the number of SMs
  double fixed_, memset_;
  double first_loads_, hit_time_, written_time_;  ///< seconds of all operands once, of those in the L2, of the results
  double flops_;
  const Gpu& gpu_;
  DType type_;
};

inline double GemmLaw::tiles(const GemmTile& tile) const {
  return pieces_of(m_, tile.m) * pieces_of(n_, tile.n) * batch_;
}

inline bool GemmLaw::may_split(const GemmTile& tile, int splits, double count) const {
  /// Tiles an SM up to which split-K is considered: with a second kernel that adds up, and in place (profiled
  /// products of an H200). Of older chips no profile is known; on their tensor cores published tf32 products of 2048
  /// and 4096 on an RTX 3080 Ti take the time of whole rounds of tiles, not of splits that fill the last one.
  constexpr double kSplitBelow = 1.0, kSplitInPlaceBelow = 10.0;
  if (splits == 1) return true;
  // The epilogue that adds a bias cannot run on partial sums: 1 of 152 profiled ones splits. Very few tiles are split
  // all the same, where a second kernel can add it.
  constexpr double kSplitWithBiasBelow = 1.0 / 8.0;
  if (fused_bias_ && (persistent_ || tile.stream_k || count > kSplitWithBiasBelow * sms_)) return false;
  if (persistent_ && (tile.stream_k || element_ > 2.0)) return false;  // the tf32 kernels share out k-steps instead
  if (persistent_) return count * splits <= sms_ && k_ >= kLeastStepsOfSplit * splits * tile.k;
  if (batch_ != 1.0 || k_ < kLeastSplit * splits) return false;
  if (tile.stream_k)
    return cuda_cores_
               ? count <= kSplitInPlaceBelow * sms_
               : grouped(tile) &&
                     count <= (gpu_.architecture < Architecture::hopper ? kSplitBelow : kSplitInPlaceBelow) * sms_;
  return count <= kSplitBelow * sms_;
}

}  // namespace ridgeline
