#include "sim/workload/parallel/buckets.h"

namespace ridgeline::parallel {

std::vector<std::vector<std::size_t>> assign_buckets(std::span<const std::int64_t> bytes,
                                                     std::span<const std::int64_t> limits) {
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<std::size_t> filling;
  std::int64_t size = 0;
  std::size_t limit = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    filling.push_back(i);
    size += bytes[i];
    if (size < limits[limit]) continue;
    buckets.push_back(std::move(filling));
    filling.clear();
    size = 0;
    if (limit + 1 < limits.size()) ++limit;
  }
  if (!filling.empty()) buckets.push_back(std::move(filling));
  return buckets;
}

}  // namespace ridgeline::parallel
