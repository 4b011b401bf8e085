#include "sim/workload/parallel/zero.h"

#include <algorithm>
#include <numeric>

namespace ridgeline::parallel {

using eager::Tensor;

std::vector<std::size_t> share_out(std::span<const std::int64_t> elements, std::size_t ranks) {
  std::vector<std::size_t> order(elements.size()), rank_of(elements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return elements[a] > elements[b]; });
  std::vector<std::int64_t> held(ranks, 0);
  for (const std::size_t i : order) {
    rank_of[i] = static_cast<std::size_t>(std::min_element(held.begin(), held.end()) - held.begin());
    held[rank_of[i]] += elements[i];
  }
  return rank_of;
}

ZeroRedundancy::ZeroRedundancy(eager::Eager& eager, eager::Parameters& parameters, ProcessGroup& group, bool buckets)
    : eager_(eager), parameters_(parameters), group_(group) {
  std::vector<std::int64_t> elements;
  for (const auto& parameter : parameters) elements.push_back(parameter.value.elements());
  const auto ranks = static_cast<std::size_t>(group.ranks());
  rank_of_ = share_out(elements, ranks);
  std::vector<std::int64_t> held(ranks, 0);
  for (std::size_t i = 0; i < elements.size(); ++i) held[rank_of_[i]] += elements[i];
  rank_ = static_cast<std::size_t>(std::max_element(held.begin(), held.end()) - held.begin());
  if (buckets) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      buckets_.push_back(eager.empty({held[rank]}, parameters.front().value.type));
      eager.recorder.set_category(buckets_.back().storage.id(), Category::weights);
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].value.storage = buckets_[rank_of_[i]].storage;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (rank_of_[i] == rank_) own_.emplace_back().value = parameters[i].value.detached();
}

eager::Parameters& ZeroRedundancy::begin_step() {
  std::size_t next = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (rank_of_[i] == rank_) own_[next++].gradient = parameters_[i].gradient;
  return own_;
}

void ZeroRedundancy::finish_step() {
  for (auto& parameter : own_) parameter.gradient = Tensor{};
  std::vector<Work> sent;
  const auto send = [&](const Tensor& tensor) {
    eager_.recorder.host(HostClass::zero_broadcast);
    sent.push_back(group_.start(CollectiveKind::broadcast, tensor.type, tensor.bytes(), tensor, tensor));
  };
  for (const Tensor& bucket : buckets_) send(bucket);
  for (std::size_t rank = 0; buckets_.empty() && rank < static_cast<std::size_t>(group_.ranks()); ++rank)
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (rank_of_[i] == rank) send(parameters_[i].value);
  for (const Work work : sent) group_.wait(work);
}

}  // namespace ridgeline::parallel
