// Operands of operations on lists of tensors: hundreds each, which every launch of the operation and every chip would
// go through again.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/launch/kernel_launch.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

class ListOperands {
 public:
  explicit ListOperands(const OpTrace& trace);

  struct OfCall {
    std::uint64_t hash = 0;      ///< of all operands: storages and bytes
    bool reads_once = true;      ///< no input is there twice
    std::uint32_t inputs = 0;    ///< operands that are
    std::vector<double> before;  ///< bytes of the operands in front of each, and of all
  };
  /// Null for a call on no lists.
  [[nodiscard]] const OfCall* of(std::uint32_t call) const {
    return call < entries_.size() && entries_[call] > 0 ? &lists_[entries_[call] - 1] : nullptr;
  }

 private:
  std::vector<std::uint32_t> entries_;  ///< by call: of `lists_`, counted from 1; 0: none
  std::vector<OfCall> lists_;
};

/// Bytes that a launch reads of its lists, where it reads nothing else and nothing twice; else 0.
double bytes_read_once(const ListOperands::OfCall& operands, const KernelLaunch& launch);

}  // namespace ridgeline
