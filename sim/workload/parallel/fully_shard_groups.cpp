// What fully_shard gathers and reduces together, and each rank's part of it.
//
// A group's parameters need not be trained, nor have one type: they are gathered as bytes then (_fsdp_collectives.py of
// PyTorch 2.11), and the gradients of the trained ones are reduced, which have one type.
#include <algorithm>
#include <memory>
#include <utility>

#include "sim/workload/parallel/fully_shard.h"

namespace ridgeline::parallel {

using eager::Tensor;

namespace {

/// Elements of one rank's part of a parameter, cut along its first dimension and padded.
std::int64_t shard_elements(const Tensor& parameter, std::int64_t ranks) {
  if (parameter.sizes.rank() == 0) return 1;
  const std::int64_t rows = std::max<std::int64_t>(1, parameter.sizes[0]);
  return ((rows + ranks - 1) / ranks) * (parameter.elements() / rows);
}

}  // namespace

void FullyShard::share_out(std::int64_t calls) {
  root_ = static_cast<std::size_t>(calls);
  groups_.resize(expert_copies_ ? 2 * root_ + 1 : root_ + 1);
  std::vector<StorageId> whole;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    eager::Parameter& parameter = *parameters_[i];
    eager::Parameters& list = parameter.frozen ? frozen_shards_ : parameter.of_experts ? expert_shards_ : shards_;
    shard_of_.push_back(&list.emplace_back());
    shard_of_.back()->partial_gradient = parameter.partial_gradient;
    if (!parameter.frozen) trained_.push_back(i);
    if (parameter.of_experts && !expert_copies_) {  // nobody has another part of it
      shard_of_.back()->value = parameter.value;
      continue;
    }
    const std::int64_t block = parameter.accumulate.layer;
    const std::size_t number = block >= 0 && calls > 0 ? static_cast<std::size_t>(block / a_call_) : root_;
    groups_[parameter.of_experts && number < root_ ? root_ + 1 + number : number].parameters.push_back(i);
    whole.push_back(parameter.value.storage.id());
  }
  eager_.recorder.never_allocated(whole);
}

Tensor& FullyShard::gradient_of(std::size_t trained) {
  eager::Parameter& parameter = *parameters_[trained_[trained]];
  const bool own = parameter.of_experts && !expert_copies_;
  return own ? parameter.gradient : shard_of_[trained_[trained]]->gradient;
}

void FullyShard::make_shards(Group& group) {
  const bool of_experts = &group - groups_.data() > static_cast<std::ptrdiff_t>(root_);
  group.among = of_experts ? &*expert_copies_ : &group_;
  auto sizes = std::make_shared<std::vector<std::int64_t>>();
  auto cast = std::make_shared<std::vector<std::int64_t>>();
  bool alike = true;
  group.type = group.parameters.empty() ? how_.parameter_type.value_or(stored_) : gathered(group.parameters.front());
  for (const std::size_t i : group.parameters) alike = alike && gathered(i) == group.type;
  if (!alike) group.type = DType::uint8;  // gathered as bytes
  for (const std::size_t i : group.parameters) {
    const std::int64_t elements = shard_elements(parameters_[i]->value, group.among->ranks());
    eager_.recorder.layer = parameters_[i]->accumulate.layer;
    eager_.recorder.module = parameters_[i]->accumulate.module;
    if (host_) {
      shard_of_[i]->value = HostShards::shard(elements, stored(i));
    } else {
      shard_of_[i]->value = eager_.empty({elements}, stored(i));
      eager_.recorder.set_category(shard_of_[i]->value.storage.id(), Category::weights);
    }
    sizes->push_back(alike ? elements : elements * bytes_of(gathered(i)));
    group.shard_elements += sizes->back();
    if (gathered(i) != stored(i)) {
      if (cast->empty()) group.cast_from = stored(i);
      cast->push_back(elements);
    }
    if (parameters_[i]->frozen) continue;
    group.trained.push_back(i);
    group.gradient_elements += elements;
  }
  group.sizes = std::move(sizes);
  group.cast = std::move(cast);
}

}  // namespace ridgeline::parallel
