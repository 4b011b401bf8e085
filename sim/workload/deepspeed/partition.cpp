#include "sim/workload/deepspeed/partition.h"

#include <algorithm>

namespace ridgeline::deepspeed {

Partition::Partition(const std::vector<std::int64_t>& elements, std::int64_t ranks) : ranks_(ranks) {
  std::int64_t end = 0;
  for (const std::int64_t one : elements) ends_.push_back(end += one);
  // A share begins at a multiple of 4 bytes, whatever 16-bit numbers lie before it.
  const std::int64_t alignment = 2 * ranks;
  share_ = (end + alignment - 1) / alignment * 2;
}

std::int64_t Partition::part(std::size_t tensor, std::int64_t rank) const {
  const std::int64_t begin = tensor == 0 ? 0 : ends_[tensor - 1];
  const std::int64_t from = std::max(begin, rank * share_), to = std::min(ends_[tensor], (rank + 1) * share_);
  return std::max<std::int64_t>(0, to - from);
}

std::vector<Slice> Partition::slices(std::size_t tensor) const {
  std::vector<Slice> result;
  const std::int64_t begin = tensor == 0 ? 0 : ends_[tensor - 1];
  for (std::int64_t rank = begin / share_; rank * share_ < ends_[tensor]; ++rank)
    if (const std::int64_t elements = part(tensor, rank); elements > 0) result.push_back({rank, elements});
  return result;
}

std::int64_t Partition::kept(std::int64_t rank) const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < ends_.size(); ++i)
    if (part(i, rank) > 0) sum += ends_[i] - (i == 0 ? 0 : ends_[i - 1]);
  return sum;
}

std::int64_t Partition::fullest_rank() const {
  std::int64_t best = 0;
  for (std::int64_t rank = 1; rank < ranks_; ++rank)
    if (kept(rank) > kept(best)) best = rank;
  return best;
}

}  // namespace ridgeline::deepspeed
