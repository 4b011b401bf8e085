// A time that no kernel of a tile can beat, for a fraction of the law's cost: what lets the choice of a kernel look at
// a handful of a menu's entries in full.
//
// The terms are the law's (gemm_law.h) or less, in single precision, four tiles at a time. Which candidate is chosen
// does not depend on the floor, only how many are timed before that is known. So
//   - a term that is added to the law may be left out here as long as it is not negative: the choice only gets slower;
//   - a term that is taken out of the law, or can become less than it was, must follow here at once.
// Tested by a_floor_is_never_above_the_law (tests/kernels/gemm_selection_test.cpp).
#pragma once

#include <vector>

#include "sim/timing/products/gemm_law.h"

namespace ridgeline {

/// What tiles bring to their floors, whatever the product and the GPU: a list for each number, one place a tile. Lists
/// are filled up to whole groups of four with their last tile.
class GemmTileShapes {
 public:
  static constexpr std::size_t kGroup = 4;
  void push_back(const GemmTile& tile);
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Size rounded up to whole groups: what lists that stand beside these must hold.
  [[nodiscard]] std::size_t filled() const { return (size_ + kGroup - 1) / kGroup * kGroup; }

 private:
  friend class GemmFloor;
  std::size_t size_ = 0;
  std::vector<float> m_, n_, k_;  ///< sides, and the length of a k-step
  std::vector<float>
      panels_;  ///< elements of both operands in a k-step, as shared memory hands them to the tensor cores
  std::vector<float> depth_;  ///< one over the k-steps fetched ahead
  std::vector<float> stages_, blocks_;
};

/// Tiles on one product: how many along its sides, and the k-steps of each.
struct GemmTilings {
  const float *rows, *columns, *steps;
};

class GemmFloor {
 public:
  explicit GemmFloor(const GemmLaw& law);

  /// Seconds of the product with its memset without a split, for each tile (filled() of them).
  void whole(const GemmTileShapes& tiles, const GemmTilings& tilings, float* seconds) const;

  /// Which numbers of splits a tile may have: from 2 to `most`, not less than `least_steps` k-steps each, their blocks
  /// no more than `rounds` of the SMs, but up to `few` however many blocks that makes.
  struct SplitLimits {
    float few = 0, most = 0, rounds = 1, least_steps = 0;
  };
  /// Of any such number of splits with their helpers, added up in place or by a second kernel, for each tile; infinite
  /// where there is none.
  void splits(const GemmTileShapes& tiles, const GemmTilings& tilings, const SplitLimits& limits, bool in_place,
              float* seconds) const;
  /// The same for tile `i` and each of four numbers of splits.
  void split(const GemmTileShapes& tiles, const GemmTilings& tilings, std::size_t i, const float* splits, bool in_place,
             float* seconds) const;

 private:
  /// Room for the rounding of single precision, which may count one too many of 10,000 k-steps or tiles of an SM.
  static constexpr float kSure = 1.0F - 2e-4F;

  /// A tile on the product, or four of them: `count` times with its copies (batch and splits), `steps` k-steps each.
  template <class T>
  struct Tiling {
    T m, n, k, panels, depth, stages, blocks;
    T area, volume;
    T rows, columns, copies, count, steps;
  };
  /// The cycles of the fullest SM, and of them those in which its pipe is busy.
  template <class T>
  struct Cycles {
    T all, busy;
  };
  template <class T>
  [[nodiscard]] Tiling<T> tiling(const GemmTileShapes& tiles, const GemmTilings& on, std::size_t i) const;
  template <class T>
  [[nodiscard]] T rounds_of(T count) const;
  template <class T>
  [[nodiscard]] T least_drawn(const Tiling<T>& on, T count) const;
  template <class T>
  [[nodiscard]] T step_persistent(const Tiling<T>& on, T l2) const;
  template <class T>
  [[nodiscard]] T panels_tiled(const Tiling<T>& on) const;
  template <class T>
  [[nodiscard]] Cycles<T> persistent(const Tiling<T>& on, float store) const;
  template <class T>
  [[nodiscard]] Cycles<T> tiled(const Tiling<T>& on, float store, T handed) const;
  template <class T>
  [[nodiscard]] T busy(const Tiling<T>& on) const;
  template <class T>
  [[nodiscard]] T at_clock(const Cycles<T>& cycles) const;
  /// What the power limit makes of a time at least, by its seconds and what of it counts.
  struct Power {
    float seconds, charged;
  };
  template <class T>
  [[nodiscard]] static T limited(T time, const Power& power);
  template <class T>
  [[nodiscard]] T share_of_few(T count) const;
  template <class T>
  [[nodiscard]] T total(const Tiling<T>& on, const Cycles<T>& cycles, T results, const Power& power) const;
  template <bool kPersistent>
  void whole_group(const GemmTileShapes& tiles, const GemmTilings& tilings, std::size_t i, float* seconds) const;
  template <class T>
  [[nodiscard]] T split_range(const Tiling<T>& on, T most, bool in_place) const;

  bool persistent_, cuda_cores_;
  double k_;
  float batch_, sms_, per_sm_;
  float clusterable_;          ///< SMs that clusters of four and more can be placed on
  float grouped_from_;         ///< stages from which on a tiled kernel walks groups of columns
  float math_, busy_, panel_;  ///< cycles of a multiply-add, of an element
  float own_latency_, latency_, dram_latency_, dram_latency_each_;  ///< cycles of a stage
  float port_a_, port_b_, l2_a_, l2_b_, turn_both_, turn_b_;        ///< of persistent kernels: of an element of a panel
  float l2_latency_, l2_all_a_, l2_all_b_;  ///< of tiled kernels: cycles of a stage, of the whole L2
  float issue_, load_a_, load_b_;           ///< of tiled kernels
  float own_loads_, copies_;                ///< of kernels that are not CUTLASS's; of loads
  float store_, partial_store_, epilogue_, exposed_, exposed_step_, handoff_, handoff_each_;
  float clock_, droop_, droop_cycles_, stage_;
  float start_, operands_, results_, partial_results_, exposed_reads_;  ///< seconds
  float least_few_, few_each_;  ///< share of the time beside traffic with one block, more for twice as many
  Power power_, split_power_;   ///< of results written once, and of partial ones, which may stay in the L2
  float memset_, summed_, reduction_, reduction_each_;
  float common_reduction_, common_reduction_each_, own_reduction_, own_reduction_each_;
};

}  // namespace ridgeline
