// What the L2 still holds from kernel to kernel: a recency list of storages with the reuse-distance ramp of the chip.
//
// Reuse distance D of a storage = bytes touched since its last use; the share that still hits falls linearly from 1 at
// D = resident_full·C to 0 at D = resident_none·C. Source: rotating-buffer timings and counters on an H200.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

class L2Residency {
 public:
  explicit L2Residency(const L2Spec& l2);

  /// Writes the hit share of every access of `launch` (reads, then writes) into `out`, then marks them touched.
  /// `operands` are the storages the op runs on, inputs then outputs.
  void visit(const KernelLaunch& launch, std::span<const Operand> operands, std::vector<double>& out);

  /// Hit share at a reuse distance of `distance` bytes: the ramp itself.
  [[nodiscard]] double hit_share(double distance) const;

 private:
  L2Spec l2_;
  double clock_ = 0.0;  ///< bytes touched so far
  /// By storage (slot 0: memory internal to ops): clock_ when the kernel that last touched it began and ended; negative
  /// = never.
  std::vector<double> last_begin_, last_end_;
  /// Lists of tensors have no storage: a call sweeps them in the order of the call before. Launches of one name in a
  /// row are one call; `list_turn_` is what was touched from the beginning of the call before to that of this one.
  std::string list_call_;
  double list_begin_ = -1.0, list_turn_ = -1.0;
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
};

/// Sets of inputs are made one after the other and used in the same order. A first use finds what it reads at the age
/// of the sets made since, from all of them to none: in the middle of a dozen uses, of which some come again, this
/// share of all. Fitted on embeddings of the H200, whose tables were written whole.
inline constexpr double kMadeSince = 0.3;

/// Steady-state hit shares of an op repeated over `input_sets` different sets of inputs in turn, its outputs going to
/// the same buffers: one vector a launch, reads then writes. input_sets 0 = cold inputs, clean L2.
/// `partly_used`: bytes of one set's inputs as they were made where only part of them is read (0: all is).
std::vector<std::vector<double>> repeated_residency(std::span<const KernelLaunch> launches, int inputs, int input_sets,
                                                    const L2Spec& l2, double partly_used = 0.0);

}  // namespace ridgeline
