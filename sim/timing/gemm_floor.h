// A time that no kernel of a tile can beat, for a fraction of the law's cost: what lets the choice of a kernel look at
// a handful of a menu's entries in full.
//
// Every term is one of the law's (gemm_law.h) or less: a k-step takes at least its math and its slowest other pipe, the
// fullest SM its share of tiles, operands and results their time on the DRAM, partial sums their addition. A choice
// asks for a hundred: the loop over a menu is plain arithmetic on arrays, which compilers turn into vector
// instructions. Tested by tests/kernels/gemm_selection_test.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/timing/gemm_law.h"

namespace ridgeline {

/// What tiles bring to their floors, whatever the product and the GPU; one place a tile in each list.
struct GemmTileShapes {
  std::vector<double> volume;  ///< multiply-adds of a k-step
  std::vector<double>
      panels;  ///< elements of both operands in a k-step, as shared memory hands them to the tensor cores
  std::vector<double> sides;  ///< elements of both operands in a k-step, as a block receives them
  std::vector<double> depth;  ///< one over the k-steps fetched ahead
  std::vector<double> area, k, stages, blocks;
  void push_back(const GemmTile& tile);
};

/// Tiles on one product: how often each occurs, how many k-steps it has, and how much of the matrix it covers (less
/// than its sides at edges).
struct GemmTilings {
  const double *count, *steps, *rows, *columns;
};

class GemmFloor {
 public:
  explicit GemmFloor(const GemmLaw& law);

  /// Seconds of the product with its memset without a split, for each tile.
  void whole(const GemmTileShapes& tiles, const GemmTilings& tilings, double* seconds) const;

  /// A higher floor of one tile: with the law's rounded maximum of compute and memory.
  [[nodiscard]] double raised(const GemmTileShapes& tiles, const GemmTilings& tilings, std::size_t i) const {
    const Parts parts = persistent_ ? whole_persistent(tiles, tilings, i) : whole_tiled(tiles, tilings, i);
    const double first = exposed_reads_ *
                         std::min(1.0, sms_ * (persistent_ ? 1.0 : tiles.blocks[i]) / tilings.count[i]) *
                         (std::min(tiles.stages[i], tilings.steps[i]) / tilings.steps[i]);
    const double other = traffic_ - first, c = parts.compute * parts.compute, t = other * other;
    return kSure * (parts.start + first + std::sqrt(std::sqrt(c * c + t * t)));
  }

  /// Of `fewest` to `most` splits (2 and more) with their helpers, added up in place or by a second kernel.
  [[nodiscard]] double split(const GemmTileShapes& tiles, const GemmTilings& tilings, std::size_t i, double fewest,
                             double most, bool in_place) const {
    const double step =
        persistent_ ? step_persistent(tiles, i) : larger(tiles.volume[i] * math_, issue_tiled(tiles, tilings, i));
    const double share = tilings.count[i] * per_sm_, all_steps = k_ / tiles.k[i];
    const double store = epilogue_ + tiles.area[i] * (in_place ? store_ : partial_store_);
    const double rounds = std::max(1.0, share * fewest);
    double cycles = all_steps * step * std::max(share, 1.0 / most) + store * (persistent_ ? 1.0 : overlapped(rounds));
    if (in_place) cycles += (fewest - 1.0) * handoff_;
    const double busy = share * all_steps * tiles.volume[i] * busy_;
    const double helper = in_place ? memset_ : reduction_ + fewest * reduction_each_;
    return kSure * (start_ + helper + std::max(at_clock(cycles, busy), in_place ? traffic_ : read_));
  }

 private:
  /// Room for the rounding of a sum whose terms come in another order than the law's.
  static constexpr double kSure = 1.0 - 1e-9;

  /// Seconds: what nothing hides, and the cycles of the fullest SM; traffic_ beside them.
  struct Parts {
    double start, compute;
  };
  [[nodiscard]] double least(const Parts& parts) const {
    return kSure * (parts.start + larger(parts.compute, traffic_));
  }

  [[nodiscard]] Parts whole_persistent(const GemmTileShapes& tiles, const GemmTilings& on, std::size_t i) const {
    const double rounds = rounds_of(on.count[i]);
    const double cycles = rounds * (on.steps[i] * step_persistent(tiles, i) + epilogue_ + tiles.area[i] * store_);
    const double cleared = on.count[i] > 2.0 * sms_ ? memset_ : 0.0;
    return {start_ + cleared + smaller(tiles.stages[i], on.steps[i]) * stage_,
            at_clock(cycles, on.count[i] * per_sm_ * on.steps[i] * tiles.volume[i] * busy_)};
  }
  [[nodiscard]] Parts whole_tiled(const GemmTileShapes& tiles, const GemmTilings& on, std::size_t i) const {
    const double rounds = rounds_of(on.count[i]);
    const double step =
        larger(rounds * tiles.volume[i] * math_, larger(rounds * issue_tiled(tiles, on, i), latency_) + exposed_step_);
    const double cycles = on.steps[i] * step + (epilogue_ + tiles.area[i] * store_) * overlapped(rounds);
    return {start_ + smaller(tiles.stages[i], on.steps[i]) * stage_,
            at_clock(cycles, on.count[i] * per_sm_ * on.steps[i] * tiles.volume[i] * busy_)};
  }

  static double larger(double a, double b) { return a < b ? b : a; }
  static double smaller(double a, double b) { return a < b ? a : b; }
  /// ⌈count / SMs⌉, at least 1: the law's or less. Adding and taking away 2^52 rounds to a whole number.
  [[nodiscard]] double rounds_of(double count) const {
    constexpr double kWhole = 4503599627370496.0;
    const double x = count * per_sm_ - 2e-9, nearest = (x + kWhole) - kWhole;
    return larger(1.0, nearest < x ? nearest + 1.0 : nearest);
  }
  [[nodiscard]] double step_persistent(const GemmTileShapes& tiles, std::size_t i) const {
    return larger(larger(tiles.volume[i] * math_, tiles.panels[i] * panel_),
                  larger(tiles.depth[i] * latency_, tiles.sides[i] * side_));
  }
  /// A k-step of one block as its SM issues it, with its loads.
  [[nodiscard]] double issue_tiled(const GemmTileShapes& tiles, const GemmTilings& on, std::size_t i) const {
    return tiles.volume[i] * (cuda_cores_ ? issue_ : math_) +
           (on.rows[i] * load_a_ + on.columns[i] * load_b_) * tiles.k[i] + load_step_;
  }
  /// Epilogues of `rounds` blocks on an SM, other blocks hiding what they can.
  [[nodiscard]] double overlapped(double rounds) const { return 1.0 + (rounds - 1.0) * exposed_; }
  /// Seconds of an SM's `cycles` whose pipes are busy for `busy` of them: less busy, faster clock.
  [[nodiscard]] double at_clock(double cycles, double busy) const {
    return cycles * cycles / (clock_ * cycles - droop_ * smaller(busy, cycles));
  }

  bool persistent_, cuda_cores_;
  double k_, sms_, per_sm_;
  double math_, busy_, panel_, side_, latency_;  ///< cycles of a multiply-add, of an element, of a stage
  double issue_, load_a_, load_b_, load_step_;   ///< of tiled kernels
  double store_, partial_store_, epilogue_, exposed_, exposed_step_, handoff_;
  double clock_, droop_, stage_;
  double start_, read_, exposed_reads_, traffic_, memset_, reduction_, reduction_each_;  ///< seconds
};

}  // namespace ridgeline
