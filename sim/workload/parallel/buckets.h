// Which gradients DistributedDataParallel sends together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ridgeline::parallel {

inline constexpr std::int64_t kFirstBucket = std::int64_t{1} << 20, kBucket = std::int64_t{25} << 20;

/// Tensors of `bytes`, in order, put together until a bucket holds its limit or more; `limits` are those of the first
/// buckets, the last holds for all further ones. Indices into `bytes`. As compute_bucket_assignment_by_size of
/// PyTorch's reducer does for tensors of one type.
std::vector<std::vector<std::size_t>> assign_buckets(std::span<const std::int64_t> bytes,
                                                     std::span<const std::int64_t> limits);

}  // namespace ridgeline::parallel
