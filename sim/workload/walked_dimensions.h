// The dimensions that a kernel of TensorIterator walks: in the order of the result, those that lie on end as one.
#pragma once

#include <cstdint>
#include <span>

#include "sim/workload/op.h"

namespace ridgeline {

/// A matrix whose result has `rows` rows of `cols`: whole rows of twice as long ones, rows of which no more is known,
/// or a transposed one.
SizeList halves_of_rows(std::int64_t rows, std::int64_t cols);
SizeList whole_rows(std::int64_t rows, std::int64_t cols);
SizeList transposed_matrix(std::int64_t rows, std::int64_t cols);

/// Sizes and strides of an operand in the order of the result's strides, the fastest first; `result` empty: the
/// result is contiguous. At least one dimension.
SizeList walked_dimensions(std::span<const std::int64_t> sizes, std::span<const std::int64_t> operand,
                           std::span<const std::int64_t> result = {});

}  // namespace ridgeline
