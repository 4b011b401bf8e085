#include "sim/workload/walked_dimensions.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace ridgeline {

namespace {

SizeList listed(std::vector<std::int64_t> sizes) {
  return {std::make_shared<const std::vector<std::int64_t>>(std::move(sizes))};
}

}  // namespace

SizeList halves_of_rows(std::int64_t rows, std::int64_t cols) { return listed({cols, 1, rows, 2 * cols}); }
SizeList whole_rows(std::int64_t rows, std::int64_t cols) { return listed({cols, 1, rows, cols}); }
SizeList transposed_matrix(std::int64_t rows, std::int64_t cols) { return listed({cols, rows, rows, 1}); }

SizeList walked_dimensions(std::span<const std::int64_t> sizes, std::span<const std::int64_t> operand,
                           std::span<const std::int64_t> result) {
  struct Dimension {
    std::int64_t size, from, to;
  };
  std::vector<Dimension> dimensions;
  std::int64_t contiguous = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] > 1) dimensions.push_back({sizes[i], operand[i], result.empty() ? contiguous : result[i]});
    contiguous *= std::max<std::int64_t>(1, sizes[i]);
  }
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const Dimension& a, const Dimension& b) { return a.to < b.to; });
  std::vector<Dimension> joined;
  for (const Dimension& d : dimensions) {
    if (!joined.empty() && joined.back().size * joined.back().from == d.from &&
        joined.back().size * joined.back().to == d.to)
      joined.back().size *= d.size;
    else joined.push_back(d);
  }
  if (joined.empty()) joined.push_back({1, 1, 1});
  std::vector<std::int64_t> list;
  for (const Dimension& d : joined) {
    list.push_back(d.size);
    list.push_back(d.from);
  }
  return listed(std::move(list));
}

}  // namespace ridgeline
