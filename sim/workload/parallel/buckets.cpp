#include "sim/workload/parallel/buckets.h"

#include <algorithm>

namespace ridgeline::parallel {
namespace {

/// A bucket of one type that is being filled.
struct Filling {
  DType type = DType::fp32;
  std::vector<std::size_t> members;
  std::int64_t bytes = 0;
  std::size_t limit = 0;
};

}  // namespace

std::vector<std::vector<std::size_t>> assign_buckets(std::span<const BucketMember> tensors,
                                                     std::span<const std::int64_t> limits) {
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<Filling> fillings;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto filling =
        std::find_if(fillings.begin(), fillings.end(), [&](const Filling& one) { return one.type == tensors[i].type; });
    if (filling == fillings.end())
      filling = fillings.insert(fillings.end(), Filling{.type = tensors[i].type, .members = {}});
    filling->members.push_back(i);
    filling->bytes += tensors[i].bytes;
    if (filling->bytes < limits[filling->limit]) continue;
    buckets.push_back(std::move(filling->members));
    filling->members.clear();
    filling->bytes = 0;
    if (filling->limit + 1 < limits.size()) ++filling->limit;
  }
  for (Filling& filling : fillings)
    if (!filling.members.empty()) buckets.push_back(std::move(filling.members));
  return buckets;
}

}  // namespace ridgeline::parallel
