// Automatic mixed precision: casts of operands to a 16-bit type, and the cache of cast parameters.
//
// A parameter is cast once in an outermost region; the cache is dropped when the region ends, while products keep the
// casts they saved. Policies per op after aten/src/ATen/autocast_mode.cpp.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager {

class Eager;

class Autocast {
 public:
  void enter(DType type) { type_ = type; }
  /// Drops the cached casts in the order they were made.
  void leave();
  /// The region goes on, but what runs meanwhile is not cast: a backward pass inside it.
  std::optional<DType> pause() { return std::exchange(type_, std::nullopt); }
  void resume(std::optional<DType> type) { type_ = type; }
  [[nodiscard]] bool on() const { return type_.has_value(); }
  [[nodiscard]] DType type() const { return *type_; }

  /// An operand of a matrix product: in the 16-bit type while autocast is on, as it is otherwise.
  Tensor lowered(Eager& eager, const Tensor& tensor);

 private:
  std::optional<DType> type_;
  std::vector<Tensor> cache_;
  std::unordered_map<const Node*, std::uint32_t> cached_;  ///< by where the parameter's gradient goes
};

}  // namespace ridgeline::eager
