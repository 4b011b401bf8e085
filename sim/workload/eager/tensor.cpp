#include "sim/workload/eager/tensor.h"

#include <algorithm>
#include <array>

namespace ridgeline::eager {

Dims contiguous_strides(const Dims& sizes) {
  Dims strides = sizes;
  std::int64_t stride = 1;
  for (int i = sizes.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

// Walks both shapes from the innermost dimension: a run of old dimensions that lie one after another in memory can be
// cut in any way; a new dimension must not straddle two runs. The method of ATen's computeStride.
bool view_strides(const Dims& old_sizes, const Dims& old_strides, const Dims& sizes, Dims& strides) {
  strides = sizes;
  if (old_sizes.rank() == 0) {
    for (int i = 0; i < sizes.rank(); ++i) strides[i] = 1;
    return true;
  }
  int view = sizes.rank() - 1;
  std::int64_t base = old_strides.last(), run = 1, view_run = 1;
  for (int i = old_sizes.rank() - 1; i >= 0; --i) {
    run *= old_sizes[i];
    const bool run_ends = i == 0 || (old_sizes[i - 1] != 1 && old_strides[i - 1] != run * base);
    if (!run_ends) continue;
    while (view >= 0 && (view_run < run || sizes[view] == 1)) {
      strides[view] = view_run * base;
      view_run *= sizes[view];
      --view;
    }
    if (view_run != run) return false;
    if (i > 0) {
      base = old_strides[i - 1];
      run = 1;
      view_run = 1;
    }
  }
  return view < 0;
}

bool Tensor::contiguous() const {
  std::int64_t expected = 1;
  for (int i = sizes.rank() - 1; i >= 0; --i) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

namespace {

/// Dimensions from the innermost out by stride; ties keep the order of a contiguous tensor.
std::array<int, Dims::kMost> by_stride(const Tensor& tensor) {
  std::array<int, Dims::kMost> order{};
  const int rank = tensor.sizes.rank();
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = rank - 1 - i;
  std::stable_sort(order.begin(), order.begin() + rank,
                   [&](int a, int b) { return tensor.strides[a] < tensor.strides[b]; });
  return order;
}

}  // namespace

bool Tensor::dense() const {
  if (contiguous()) return true;
  const auto order = by_stride(*this);
  std::int64_t expected = 1;
  for (int i = 0; i < sizes.rank(); ++i) {
    const int d = order[static_cast<std::size_t>(i)];
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

Dims preserved_strides(const Tensor& like) {
  if (like.contiguous()) return contiguous_strides(like.sizes);
  const auto order = by_stride(like);
  Dims strides = like.sizes;
  std::int64_t stride = 1;
  for (int i = 0; i < like.sizes.rank(); ++i) {
    const int d = order[static_cast<std::size_t>(i)];
    strides[d] = stride;
    stride *= std::max<std::int64_t>(like.sizes[d], 1);
  }
  return strides;
}

}  // namespace ridgeline::eager
