// Sides of recorded images and entries of lists that describe their dimensions.
#pragma once

#include <algorithm>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {

inline constexpr std::int64_t kNoSize = -1;  ///< a side that no bound lets pass

/// Entry `i` of a list of one value a dimension, or of one value for all of them.
inline std::int64_t of_dimension(const Numbers* list, std::size_t i, std::int64_t otherwise) {
  if (list == nullptr || list->empty()) return otherwise;
  return whole_number((*list)[std::min(i, list->size() - 1)], kNoSize);
}

/// Rows and columns of an image: rows of all planes of a volume count together, a signal is one row.
struct Sides {
  std::int64_t rows = 1, columns = 1;
};
inline Sides sides_of(const AtenTensor& tensor) {
  Sides result{1, tensor.last()};
  for (std::size_t i = 2; i + 1 < tensor.sizes.size(); ++i)
    if (__builtin_mul_overflow(result.rows, tensor.sizes[i], &result.rows)) return {kNoSize, kNoSize};
  return result;
}

}  // namespace ridgeline::trace
