// One call of PyTorch's dispatcher as a recording shows it: name, tensors, numbers. What is not known is left out.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/workload/dtype.h"
#include "sim/workload/op_trace.h"

namespace ridgeline::trace {

struct AtenTensor {
  static constexpr std::int64_t kNoStorage = -1;
  DType type = DType::fp32;
  std::vector<std::int64_t> sizes, strides;  ///< strides in elements; empty = contiguous
  std::int64_t storage = kNoStorage;         ///< where the recording tells storages apart
  bool on_host = false;                      ///< lives in the memory of the host

  /// At most 2^53, more than any device holds, whatever the sizes.
  [[nodiscard]] std::int64_t elements() const {
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    std::int64_t product = 1;
    for (const std::int64_t size : sizes)
      if (__builtin_mul_overflow(product, size, &product) || product > kMost) product = kMost;
    return product;
  }
  [[nodiscard]] std::int64_t bytes() const { return elements() * bytes_of(type); }
  /// Counted from the end: last(0) is the innermost dimension; 1 beyond the rank.
  [[nodiscard]] std::int64_t last(std::size_t from_end = 0) const {
    return from_end < sizes.size() ? sizes[sizes.size() - 1 - from_end] : 1;
  }
  [[nodiscard]] bool contiguous() const;
  /// Those given, or those of a contiguous tensor.
  [[nodiscard]] std::vector<std::int64_t> given_strides() const;
  /// Every element in its own place and no gaps, in whatever order.
  [[nodiscard]] bool dense() const;
  /// Innermost in memory is the channel dimension of [batch, channels, height, width].
  [[nodiscard]] bool channels_last() const;
};

using Numbers = std::vector<double>;  ///< a list of integers or numbers: sizes, strides, flags
/// A list of tensors; empty where the recording leaves out what is in it.
using TensorList = std::vector<AtenTensor>;
/// Nothing (None, or not recorded), a tensor, a list of tensors, a number or flag, a list of numbers, a word.
using Argument = std::variant<std::monostate, AtenTensor, TensorList, double, Numbers, std::string>;

/// A kernel as a profiler measured it.
struct MeasuredKernel {
  std::string name;
  double seconds = 0.0, start = 0.0;  ///< start: seconds after the first of the recording
  std::int64_t stream = 0, blocks = 0, bytes = 0;
  double beside = 0.0;           ///< seconds in which kernels of other streams ran too
  std::int64_t blocks_down = 0;  ///< the second side of the grid
};

/// A storage a call touches, where the recording names it: bytes touched, and of the whole.
struct NamedOperand {
  std::int64_t storage = AtenTensor::kNoStorage, bytes = 0, whole = 0;
};

/// What a recording's number says as a size, a count or a dimension; `otherwise` for one that is none (not finite, or
/// beyond what a double counts one by one).
inline std::int64_t whole_number(double value, std::int64_t otherwise) {
  constexpr double kCountedOneByOne = 9007199254740992.0;  // 2^53
  return std::abs(value) <= kCountedOneByOne ? static_cast<std::int64_t>(value) : otherwise;
}

struct AtenCall {
  std::string name;  ///< "aten::addmm", without the overload
  std::vector<Argument> inputs;
  std::vector<AtenTensor> outputs;  ///< empty where the recording has none
  std::vector<MeasuredKernel> kernels;
  std::vector<NamedOperand> reads, writes;  ///< in the order of workload/op_operands.h; empty where not recorded
  Phase phase = Phase::forward;
  std::int16_t layer = -1;
  std::uint16_t module = 0;     ///< of OpTrace::modules
  bool laid_out_apart = false;  ///< strides are not recorded, and its kernels compute where operands lie

  /// The tensor at a position; null when there is none, or it is something else.
  [[nodiscard]] const AtenTensor* tensor(std::size_t i) const {
    return i < inputs.size() ? std::get_if<AtenTensor>(&inputs[i]) : nullptr;
  }
  [[nodiscard]] const TensorList* list(std::size_t i) const {
    return i < inputs.size() ? std::get_if<TensorList>(&inputs[i]) : nullptr;
  }
  [[nodiscard]] std::optional<double> number(std::size_t i) const {
    const double* value = i < inputs.size() ? std::get_if<double>(&inputs[i]) : nullptr;
    return value != nullptr ? std::optional(*value) : std::nullopt;
  }
  /// The number at a position as a size, a count or a dimension.
  [[nodiscard]] std::int64_t whole(std::size_t i, std::int64_t otherwise) const {
    return whole_number(number(i).value_or(std::numeric_limits<double>::quiet_NaN()), otherwise);
  }
  [[nodiscard]] const Numbers* numbers(std::size_t i) const {
    return i < inputs.size() ? std::get_if<Numbers>(&inputs[i]) : nullptr;
  }
  [[nodiscard]] std::string_view word(std::size_t i) const {
    const std::string* value = i < inputs.size() ? std::get_if<std::string>(&inputs[i]) : nullptr;
    return value != nullptr ? std::string_view(*value) : std::string_view();
  }
};

}  // namespace ridgeline::trace
