// What the L2 still holds from kernel to kernel: a recency list of storages with the reuse-distance ramp of the chip.
// A list of tensors is a storage for each; a launch sweeps those it works on one after the other, all lists side by
// side.
//
// Reuse distance D of a storage = distinct bytes touched since its last use; the share that still hits falls linearly
// from 1 at D = resident_full·C to 0 at D = resident_none·C. Source: rotating-buffer timings and counters on an H200.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

/// Lists of tensors among a launch's operands, one after the other; 0 where it works on none.
std::size_t lists_of(const KernelLaunch& launch);

class L2Residency {
 public:
  explicit L2Residency(const L2Spec& l2);

  /// Room for what so many launches on storages below `storages` leave behind: nothing moves while they are visited.
  void reserve(std::size_t launches, std::size_t storages);

  /// Writes the hit share of every access of `launch` (reads, then writes) into `out`, then marks them touched.
  /// `operands` are the storages the op runs on, inputs then outputs.
  void visit(const KernelLaunch& launch, std::span<const Operand> operands, std::vector<double>& out);

  /// The number of a storage that nothing touches any more stands for a new one.
  void forget(StorageId storage) { place_of(std::size_t{storage} + 1) = Place{}; }

  /// Passes over so many launches, before the first that is visited. Where forgets_before() holds for that one, what is
  /// found after it is the same as if all had been visited.
  void pass_over(std::size_t launches);
  /// Whether nothing that only launches before it touched hits after this launch: it alone reads more than the L2
  /// holds, and begins no tensor in its middle.
  [[nodiscard]] bool forgets_before(const KernelLaunch& launch, std::span<const Operand> operands) const;
  /// The same where what the launch reads is known: so many bytes, of them none twice.
  [[nodiscard]] bool forgets_before(const KernelLaunch& launch, double bytes_read_once) const;

  /// What would hit now were it read: by storage, all of those of which anything would.
  struct Held {
    StorageId storage = 0;
    double share = 0.0, bytes = 0.0;  ///< of the bytes that were touched last
  };
  [[nodiscard]] std::vector<Held> held() const;

  /// Hit share at a reuse distance of `distance` bytes: the ramp itself.
  [[nodiscard]] double hit_share(double distance) const;

  /// When a kernel swept a storage (bytes touched by all kernels before it began and after it ended), or a part of a
  /// storage as shares of it.
  struct Swept {
    double begin = 0.0, end = 0.0;
  };

 private:
  /// The last launch that swept a storage to its end (negative: none), the bytes that this launch touched after the
  /// storage's first and last byte, the former of the sweep that has not got to the end,
  /// and the bytes that the last sweep touched.
  struct Place {
    std::int64_t launch = -1;
    Swept after;
    double begun = 0.0, bytes = 0.0;
  };
  Place& place_of(std::size_t slot) {
    if (slot >= places_.size()) places_.resize(std::max(slot + 1, 2 * places_.size()));
    return places_[slot];
  }
  template <bool sweeps, typename Visit>
  static void for_each_part(const Access& access, std::span<const Operand> operands, std::size_t lists, Swept now,
                            Visit visit);
  [[nodiscard]] double hits(const Access& access, std::span<const Operand> operands, std::size_t lists, Swept now,
                            double factor);
  void mark(const Access& access, std::span<const Operand> operands, std::size_t lists, Swept now);

  void move(std::int64_t then, double bytes);
  [[nodiscard]] double touched_between(std::int64_t first, std::int64_t last) const;
  [[nodiscard]] double touched_after(std::int64_t then) const;

  static constexpr int kLevels = 3, kShift = 4;
  L2Spec l2_;
  double all_gone_;           ///< bytes of distance at which not even what was written hits
  std::int64_t launch_ = -1;  ///< the launch at hand
  /// Bytes by the launch that touched them last, and their sums over 16 and over 256 launches: most questions go a few
  /// launches back.
  std::array<std::vector<double>, kLevels> latest_;
  std::vector<char> gone_;     ///< by launch
  std::vector<Place> places_;  ///< by storage; the first is memory internal to ops
};

/// Sets of inputs are made one after the other and used in the same order. A first use finds what it reads at the age
/// of the sets made since, from all of them to none: in the middle of a dozen uses, of which some come again, this
/// share of all. Fitted on embeddings of the H200, whose tables were written whole.
inline constexpr double kMadeSince = 0.3;

/// Steady-state hit shares of an op repeated over `input_sets` different sets of inputs in turn, its outputs going to
/// the same buffers: one vector a launch, reads then writes. input_sets 0 = cold inputs, clean L2.
/// `partly_used`: bytes of one set's inputs as they were made where only part of them is read (0: all is).
/// `shared`: an input that all sets have in common (-1: none).
std::vector<std::vector<double>> repeated_residency(std::span<const KernelLaunch> launches, int inputs, int input_sets,
                                                    const L2Spec& l2, double partly_used = 0.0, int shared = -1);

}  // namespace ridgeline
