#include "sim/workload/parallel/apex_data_parallel.h"

#include <array>
#include <limits>
#include <memory>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/optimizer.h"
#include "sim/workload/parallel/buckets.h"

namespace ridgeline::parallel {

using eager::Tensor;
namespace aten = eager::aten;

namespace {

constexpr std::int64_t kMessage = 10'000'000;  ///< elements, message_size of apex

/// Numbers of `tensors`, in order, put together by type: up to `elements` or more, or all of a type.
std::vector<std::vector<std::size_t>> by_type(const std::vector<const Tensor*>& tensors, std::int64_t elements) {
  std::vector<BucketMember> members;
  for (const Tensor* tensor : tensors) members.push_back({tensor->elements(), tensor->type});
  return assign_buckets(members, std::array{elements});
}

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

}  // namespace

ApexDataParallel::ApexDataParallel(eager::Eager& eager, eager::Parameters& parameters,
                                   const ParallelDescription& description)
    : eager_(eager), parameters_(parameters), bucket_of_(parameters.size()) {
  if (description.gradient_ranks() == 1) return;
  group_.emplace(eager, GroupKind::data, description.gradient_ranks(), "data parallel collectives");
  broadcast_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].after_accumulate = [this, i] { gradient_arrived(i); };
}

void ApexDataParallel::broadcast_parameters() {
  std::vector<const Tensor*> values;
  for (const auto& parameter : parameters_) values.push_back(&parameter.value);
  for (const auto& members : by_type(values, kAll)) {
    std::int64_t elements = 0;
    for (const std::size_t i : members) elements += values[i]->elements();
    const Tensor flat = eager_.empty({elements}, values[members.front()]->type);
    group_->run(CollectiveKind::broadcast, flat.type, flat.bytes(), flat, flat);
  }
}

void ApexDataParallel::gradient_arrived(std::size_t parameter) {
  eager_.recorder.host(HostClass::ddp_hook);
  if (buckets_.empty()) {
    arrived_.push_back(parameter);
    return;
  }
  --buckets_[bucket_of_[parameter]].missing;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) {
    reduce(buckets_[next_++].members, group_->stream());
    wait_for_buckets();
  }
}

void ApexDataParallel::wait_for_buckets() {
  eager_.recorder.wait_event(eager_.recorder.stream, eager_.recorder.record_event(group_->stream()));
}

void ApexDataParallel::reduce(const Members& members, std::uint8_t stream) {
  auto sizes = std::make_shared<std::vector<std::int64_t>>();
  std::int64_t elements = 0;
  for (const std::size_t i : members) elements += sizes->emplace_back(parameters_[i].gradient.elements());
  // The lists of the buffer's parts are not told apart: both passes over them are taken as going to the DRAM.
  const Tensor flat = eager_.empty({elements}, parameters_[members.front()].gradient.type);
  optimizers::foreach (eager_, MultiTensorFunction::copy, flat.type, sizes, {});
  if (stream != eager_.recorder.stream)
    eager_.recorder.wait_event(stream, eager_.recorder.record_event(eager_.recorder.stream));
  const OnStream there(eager_.recorder, stream);
  if (group_) group_->run(CollectiveKind::all_reduce, flat.type, flat.bytes(), flat, flat);
  aten::pointwise(eager_, PointwiseFunction::scale, {&flat}, flat);
  optimizers::foreach (eager_, MultiTensorFunction::copy, flat.type, sizes, {});
}

void ApexDataParallel::after_backward() {
  if (!buckets_.empty()) {
    wait_for_buckets();
    next_ = 0;
    for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
    return;
  }
  if (!group_) {
    arrived_.clear();
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].gradient.defined()) arrived_.push_back(i);
  }
  std::vector<const Tensor*> gradients;
  for (const std::size_t i : arrived_) gradients.push_back(&parameters_[i].gradient);
  const auto named = [&](const std::vector<std::size_t>& numbers) {
    Members members;
    for (const std::size_t number : numbers) members.push_back(arrived_[number]);
    return members;
  };
  for (const auto& numbers : by_type(gradients, kAll)) reduce(named(numbers), eager_.recorder.stream);
  if (!group_) return;
  for (const auto& numbers : by_type(gradients, kMessage)) {
    buckets_.push_back({named(numbers), numbers.size()});
    for (const std::size_t i : buckets_.back().members) bucket_of_[i] = buckets_.size() - 1;
  }
}

}  // namespace ridgeline::parallel
