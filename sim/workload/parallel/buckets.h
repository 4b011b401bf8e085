// Which gradients DistributedDataParallel sends together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/workload/dtype.h"

namespace ridgeline::parallel {

inline constexpr std::int64_t kFirstBucket = std::int64_t{1} << 20, kBucket = std::int64_t{25} << 20;

/// A tensor to be put into a bucket.
struct BucketMember {
  std::int64_t bytes = 0;
  DType type = DType::fp32;
};

/// Tensors, in order, put together with others of their type until a bucket holds its limit or more; `limits` are those
/// of the first buckets of a type, the last holds for all further ones. Indices into `tensors`; buckets stand in the
/// order in which they were filled, those that never were behind them. As compute_bucket_assignment_by_size of
/// PyTorch's reducer does.
std::vector<std::vector<std::size_t>> assign_buckets(std::span<const BucketMember> tensors,
                                                     std::span<const std::int64_t> limits);

}  // namespace ridgeline::parallel
