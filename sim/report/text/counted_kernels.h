// Kernels that Nsight Compute counted, alone or beside what is predicted of kernel cases.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/nsight/ncu_counters.h"

namespace ridgeline {

/// The kernels of a file, joined to predicted ones in their order: each takes the next counted kernel of its family.
class CountedKernels {
 public:
  explicit CountedKernels(std::vector<trace::CountedKernel> kernels) : kernels_(std::move(kernels)) {}

  /// Adds "measured" to each entry of answer["predicted"]["kernels"] that has a counterpart.
  void join(nlohmann::ordered_json& answer);
  /// Lines below a case in text: measured and predicted time, traffic, hit rate and occupancy of what `join` added.
  static std::string lines_of(const nlohmann::ordered_json& answer);
  /// A table of the counted kernels with what limits each by its counters, where none is predicted.
  [[nodiscard]] std::string table(const std::string& file) const;
  /// One object a kernel.
  [[nodiscard]] std::vector<std::string> json_lines() const;
  [[nodiscard]] std::size_t left() const { return kernels_.size() - next_; }

 private:
  std::vector<trace::CountedKernel> kernels_;
  std::size_t next_ = 0;
};

}  // namespace ridgeline
