#include "sim/trace/aten/aten_call.h"

#include <algorithm>
#include <numeric>

namespace ridgeline::trace {
namespace {

/// Dimensions of more than one element, in the order given, lie one after another without gaps.
bool packed(const AtenTensor& tensor, const std::vector<std::size_t>& from_innermost) {
  std::int64_t expected = 1;
  for (const std::size_t d : from_innermost) {
    if (tensor.sizes[d] == 1) continue;
    if (tensor.strides[d] != expected) return false;
    expected *= tensor.sizes[d];
  }
  return true;
}

}  // namespace

bool AtenTensor::contiguous() const {
  if (strides.size() != sizes.size()) return true;
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  return packed(*this, order);
}

std::vector<std::int64_t> AtenTensor::given_strides() const {
  if (strides.size() == sizes.size()) return strides;
  std::vector<std::int64_t> result(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) result[i - 1] = result[i] * std::max<std::int64_t>(1, sizes[i]);
  return result;
}

bool AtenTensor::dense() const {
  if (strides.size() != sizes.size()) return true;
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  return packed(*this, order);
}

bool AtenTensor::channels_last() const {
  if (sizes.size() != 4 || strides.size() != 4 || sizes[1] == 1) return false;
  return !contiguous() && packed(*this, {1, 3, 2, 0});
}

}  // namespace ridgeline::trace
