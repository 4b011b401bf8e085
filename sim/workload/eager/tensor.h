// A tensor without data: sizes and strides over a counted storage, and the autograd node that made it.
//
// Copying a Tensor copies a handle, as in Python: a storage lives until the last handle (a variable, an argument, a
// tensor saved for backward) is gone, and that moment is the free in the trace. Strides are in elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "sim/workload/dtype.h"
#include "sim/workload/eager/recorder.h"

namespace ridgeline::eager {

class Eager;
class Node;

/// Sizes or strides of up to five dimensions.
class Dims {
 public:
  static constexpr int kMost = 5;
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }
  [[nodiscard]] int rank() const { return rank_; }
  std::int64_t& operator[](int i) { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t operator[](int i) const { return values_[static_cast<std::size_t>(i)]; }
  /// Counted from the end: last(0) is the innermost dimension.
  [[nodiscard]] std::int64_t last(int from_end = 0) const { return (*this)[rank_ - 1 - from_end]; }
  [[nodiscard]] std::span<const std::int64_t> list() const {
    return std::span(values_).first(static_cast<std::size_t>(rank_));
  }
  void push_back(std::int64_t value) { values_[static_cast<std::size_t>(rank_++)] = value; }
  [[nodiscard]] std::int64_t product() const {
    std::int64_t result = 1;
    for (int i = 0; i < rank_; ++i) result *= (*this)[i];
    return result;
  }
  bool operator==(const Dims& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if ((*this)[i] != other[i]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, kMost> values_{};
  int rank_ = 0;
};

/// Strides of a contiguous tensor of these sizes.
Dims contiguous_strides(const Dims& sizes);
/// Strides under which `sizes` show the same elements as `old_sizes` with `old_strides`; false when only a copy can.
bool view_strides(const Dims& old_sizes, const Dims& old_strides, const Dims& sizes, Dims& strides);

class Tensor {
 public:
  StorageReference storage;
  Dims sizes, strides;
  DType type = DType::fp32;
  bool leaf = false;        ///< a parameter itself, not a view or result
  bool view = false;        ///< of a gradient: shows another tensor, which PyTorch keeps alive with it
  std::uint8_t output = 0;  ///< which output of `node`
  Node* node = nullptr;     ///< receives the gradient; null = needs none

  [[nodiscard]] bool defined() const { return storage.valid(); }
  /// Gives the handle up: undefined from here on.
  void reset() { storage = StorageReference{}; }
  [[nodiscard]] std::int64_t elements() const { return sizes.product(); }
  [[nodiscard]] std::int64_t bytes() const { return elements() * bytes_of(type); }
  [[nodiscard]] bool requires_gradient() const { return node != nullptr; }
  [[nodiscard]] bool contiguous() const;
  /// Every element in its own place and no gaps, in whatever order.
  [[nodiscard]] bool dense() const;
  /// A contiguous one becomes larger in a dimension, as if it had been made anew: its storage is not asked.
  void lengthen(int dimension, std::int64_t by) {
    sizes[dimension] += by;
    strides = contiguous_strides(sizes);
  }
  /// The same elements without history.
  [[nodiscard]] Tensor detached() const {
    Tensor result = *this;
    result.node = nullptr;
    result.leaf = false;
    return result;
  }
};

/// Strides of a fresh tensor that keeps the order of dimensions of `like` (PyTorch's preserve_format).
Dims preserved_strides(const Tensor& like);

}  // namespace ridgeline::eager
