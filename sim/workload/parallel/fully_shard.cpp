#include "sim/workload/parallel/fully_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "sim/units/user_error.h"
#include "sim/workload/aten/pointwise.h"

namespace ridgeline::parallel {

using eager::Eager;
using eager::Gradients;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Pointers of a list of tensors go to the GPU before the kernel that walks them.
void send_pointers(Eager& eager, std::int64_t tensors) {
  const Tensor pointers = eager.empty({3 * tensors}, DType::int64);
  eager.recorder.op(Copy{CopyKind::host_to_device, DType::int64, 1, 3 * tensors, 1}, {&pointers}, {&pointers});
}

}  // namespace

/// At the output of a group: the gradient has come as far.
class FullyShard::BeforeBackward final : public eager::Node {
 public:
  BeforeBackward(FullyShard& owner, std::size_t group) : Node(HostClass::fsdp_hooks), owner_(owner), group_(group) {}
  void backward(Eager&, Gradients& in, Gradients& out) override {
    owner_.before_backward(group_);
    out[0] = std::move(in[0]);
  }

 private:
  FullyShard& owner_;
  std::size_t group_;
};

/// At its input: all gradients of its parameters are there.
class FullyShard::AfterBackward final : public eager::Node {
 public:
  AfterBackward(FullyShard& owner, std::size_t group) : Node(HostClass::fsdp_hooks), owner_(owner), group_(group) {}
  void backward(Eager&, Gradients& in, Gradients& out) override {
    owner_.after_backward(group_);
    out[0] = std::move(in[0]);
  }

 private:
  FullyShard& owner_;
  std::size_t group_;
};

FullyShard::FullyShard(Eager& eager, std::vector<eager::Parameter*> parameters, std::int64_t blocks,
                       const ParallelDescription& description, DType stored)
    : eager_(eager),
      parameters_(std::move(parameters)),
      how_(description),
      stored_(stored),
      blocks_(blocks),
      a_call_(description.wrap),
      group_(eager, GroupKind::shard, description.gradient_ranks() / std::max<std::int64_t>(1, description.replicate),
             "all-gathers"),
      copy_in_(eager.recorder.add_stream("copies of shards")),
      reduce_(eager.recorder.add_stream("reduce-scatters")),
      accumulated_(parameters_.size()) {
  if (how_.reshard_after_forward.ranks > 1)
    between_.emplace(eager, GroupKind::shard, how_.reshard_after_forward.ranks, group_.stream());
  if (how_.replicate > 1) replicas_.emplace(eager, GroupKind::replicate, how_.replicate, "all-reduces");
  const std::int64_t calls = a_call_ > 0 ? ceil_div(blocks, a_call_) : 0;
  if (description.expert > 1 && description.expert_copies() > 1)
    expert_copies_.emplace(eager, GroupKind::expert_data, description.expert_copies(), "all-gathers of experts");
  if (how_.offload) host_.emplace(eager);
  share_out(calls);
  for (Group& group : groups_) make_shards(group);
  eager.recorder.layer = -1;
  eager.recorder.module = 0;
}

std::vector<std::size_t> FullyShard::both_of(std::size_t number) const {
  const std::size_t experts = root_ + 1 + number;
  if (number >= root_ || experts >= groups_.size() || groups_[experts].parameters.empty()) return {number};
  return {number, experts};
}

void FullyShard::take_own_gradients() {
  if (expert_copies_) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i]->of_experts) shard_of_[i]->gradient = std::exchange(parameters_[i]->gradient, Tensor{});
}

void FullyShard::begin_forward(bool sync) {
  sync_ = sync;
  order_.clear();
  // What the optimizer did is waited for once.
  const std::uint32_t updated = eager_.recorder.record_event(0);
  eager_.recorder.wait_event(copy_in_, updated);
  eager_.recorder.wait_event(group_.stream(), updated);
  eager_.recorder.host(HostClass::fsdp_hooks);
  Group& root = groups_[root_];
  gather(root);
  copy_out(root, true);
}

void FullyShard::after_forward() {
  eager_.recorder.host(HostClass::fsdp_hooks);
  order_.push_back(root_);  // the root stays whole: its backward pass comes next
}

Tensor FullyShard::before_block(std::int64_t block, Tensor input) {
  if (a_call_ == 0 || block % a_call_ != 0) return input;
  eager_.recorder.host(HostClass::fsdp_hooks);
  const auto number = static_cast<std::size_t>(block / a_call_);
  const std::vector<std::size_t> both = both_of(number);
  for (const std::size_t i : both) gather(groups_[i]);
  for (const std::size_t i : both) copy_out(groups_[i], true);
  if (eager_.needs_node({&input})) Eager::attach(input, eager_.node<AfterBackward>({&input}, *this, number));
  return input;
}

Tensor FullyShard::after_block(std::int64_t block, Tensor output) {
  if (a_call_ == 0) return output;
  const auto number = static_cast<std::size_t>(block / a_call_);
  if ((block + 1) % a_call_ != 0 && block + 1 < blocks_) return output;
  eager_.recorder.host(HostClass::fsdp_hooks);
  const std::vector<std::size_t> both = both_of(number);
  for (auto i = both.rbegin(); i != both.rend(); ++i) {
    reshard_after_forward(groups_[*i]);
    order_.push_back(*i);
  }
  if (eager_.needs_node({&output})) Eager::attach(output, eager_.node<BeforeBackward>({&output}, *this, number));
  return output;
}

void FullyShard::gather(Group& group) {
  if (group.whole || group.gathered.defined() || group.parameters.empty()) return;
  if (!group.between.empty()) return gather_between(group);
  eager::Recorder& recorder = eager_.recorder;
  recorder.host(HostClass::fsdp_gather);
  Tensor mine;  // this rank's part of the buffer
  {
    const OnStream there(recorder, copy_in_);
    Tensor cast;
    std::vector<Tensor> brought;
    if (host_) {
      brought = host_->bring(*group.sizes, stored_, group.type);
    } else if (!group.cast->empty()) {
      cast = eager_.empty({std::accumulate(group.cast->begin(), group.cast->end(), std::int64_t{0})},
                          *how_.parameter_type);
      recorder.op(MultiTensor{MultiTensorFunction::copy, group.cast_from, group.cast}, {}, {});
    }
    group.gathered = eager_.empty({elements_of(group)}, group.type);
    recorder.set_category(group.gathered.storage.id(), Category::temporaries);
    mine = group.gathered;
    mine.sizes = {group.shard_elements};
    recorder.op(MultiTensor{MultiTensorFunction::copy, group.type, group.sizes}, {}, {});
  }
  recorder.wait_event(group_.stream(), recorder.record_event(copy_in_));
  const OnStream there(recorder, group_.stream());
  group.among->run(CollectiveKind::all_gather, group.type, group.gathered.bytes(), mine, group.gathered);
  group.gathering = recorder.record_event(group_.stream());
}

void FullyShard::copy_out(Group& group, bool forward) {
  if (!group.gathered.defined()) return;
  eager::Recorder& recorder = eager_.recorder;
  recorder.host(HostClass::fsdp_copy_out);
  if (forward && held_.defined())
    for (const std::uint8_t stream : {copy_in_, group_.stream()}) recorder.wait_event(stream, held_until_);
  recorder.wait_event(0, group.gathering);
  for (const std::size_t i : group.parameters) recorder.fill_storage(parameters_[i]->value.storage.id());
  send_pointers(eager_, static_cast<std::int64_t>(group.parameters.size()));
  recorder.op(Copy{CopyKind::contiguous, group.type, 1, elements_of(group), 1}, {&group.gathered}, {&group.gathered});
  group.whole = true;
  const std::uint32_t copied = recorder.record_event(0);
  if (forward) {
    held_ = std::move(group.gathered);
    held_until_ = copied;
  } else {
    for (const std::uint8_t stream : {copy_in_, group_.stream()}) recorder.wait_event(stream, copied);
  }
  group.gathered = Tensor{};
  group.between.clear();
}

void FullyShard::reshard(Group& group) {
  if (!group.whole) return;
  for (const std::size_t i : group.parameters) eager_.recorder.empty_storage(parameters_[i]->value.storage.id());
  group.whole = false;
}

void FullyShard::begin_backward() {
  eager_.recorder.host(HostClass::fsdp_hooks);
  for (Group& group : groups_) group.behind = false;
  before_backward(root_);
}

void FullyShard::before_backward(std::size_t number) {
  held_ = Tensor{};
  for (const std::size_t i : both_of(number)) {
    gather(groups_[i]);
    copy_out(groups_[i], false);
    // One group ahead.
    const auto here = std::find(order_.begin(), order_.end(), i);
    if (here != order_.end() && here != order_.begin()) gather(groups_[*std::prev(here)]);
  }
}

void FullyShard::after_backward(std::size_t number) {
  const std::vector<std::size_t> both = both_of(number);
  for (auto i = both.rbegin(); i != both.rend(); ++i) {
    Group& group = groups_[*i];
    group.behind = true;
    for (const std::size_t parameter : group.trained) accumulate(parameter);
    if (sync_) {
      take_gradients(group);
      reshard(group);
      reduce(group);
    } else if (!keeps_) {
      reshard(group);
    }
  }
}

void FullyShard::reduce_all() {
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    if (group->parameters.empty()) continue;
    take_gradients(*group);
    reshard(*group);
    reduce(*group);
  }
  for (const Group& group : groups_)
    if (!group.trained.empty()) eager_.recorder.wait_event(0, group.ready);
  if (reducing_.defined()) eager_.recorder.wait_event(0, reduced_);
  reducing_ = Tensor{};
  held_ = Tensor{};
  sync_ = false;
}

/// Gradients of micro-batches that are not exchanged stay whole, in the type they will be reduced in.
void FullyShard::accumulate(std::size_t parameter) {
  Tensor& gradient = parameters_[parameter]->gradient;
  Tensor& sum = accumulated_[parameter];
  if (!gradient.defined()) return;
  if (sum.defined()) {
    aten::add_in_place(eager_, sum, gradient);
    gradient = Tensor{};
  } else if (!sync_) {
    sum = aten::to(eager_, gradient, how_.reduce_type.value_or(gradient.type));
    eager_.recorder.set_category(sum.storage.id(), Category::gradients);
    gradient = Tensor{};
  }
}

void FullyShard::take_gradients(Group& group) {
  for (const std::size_t i : group.trained) {
    Tensor& whole = accumulated_[i].defined() ? accumulated_[i] : parameters_[i]->gradient;
    if (!whole.defined())
      throw UserError(fmt::format("model: {} numbers have no gradient when fully_shard sends those of their block",
                                  parameters_[i]->value.elements()));
    group.gradients.push_back(std::move(whole));
    whole = Tensor{};
  }
}

void FullyShard::reduce(Group& group) {
  if (group.trained.empty() && !group.parameters.empty()) return;  // nothing has a gradient
  eager::Recorder& recorder = eager_.recorder;
  recorder.host(HostClass::fsdp_reduce);
  if (reducing_.defined()) {
    recorder.wait_event(0, reduced_);
    reducing_ = Tensor{};
  }
  const DType given = group.gradients.front().type, type = how_.reduce_type.value_or(given);
  reducing_ = eager_.empty({group.gradient_elements * group.among->ranks()}, type);
  send_pointers(eager_, static_cast<std::int64_t>(group.trained.size()));
  Tensor flat = reducing_;
  flat.type = given;
  aten::pointwise(eager_, PointwiseFunction::cast, {&flat}, reducing_);
  group.gradients.clear();
  recorder.wait_event(reduce_, recorder.record_event(0));
  const OnStream there(recorder, reduce_);
  Tensor mine = eager_.empty({group.gradient_elements}, type);
  group.among->run(CollectiveKind::reduce_scatter, type, reducing_.bytes(), reducing_, mine);
  reduced_ = recorder.record_event(reduce_);
  std::uint8_t last = reduce_;
  if (replicas_) {
    last = replicas_->stream();
    recorder.wait_event(last, reduced_);
    const OnStream among_replicas(recorder, last);
    replicas_->run(CollectiveKind::all_reduce, type, mine.bytes(), mine, mine);
  }
  const OnStream after(recorder, last);
  mine = aten::to(eager_, mine, stored(group.trained.front()));
  recorder.set_category(mine.storage.id(), Category::gradients);
  if (host_) {
    host_->take(*group.sizes, mine, added_);
    group.ready = recorder.record_event(last);
    return;
  }
  for (const std::size_t i : group.trained) {
    eager::Parameter& shard = *shard_of_[i];
    Tensor part = mine;
    part.sizes = shard.value.sizes;
    part.strides = shard.value.strides;
    if (shard.gradient.defined()) aten::add_in_place(eager_, shard.gradient, part);
    else shard.gradient = part;
  }
  group.ready = recorder.record_event(last);
}

void FullyShard::after_backward() {
  after_backward(root_);
  // Blocks whose input requires no gradient have no hook there: the last callback of the pass runs for them.
  for (std::size_t i = 0; i < root_; ++i)
    if (!groups_[i].behind && groups_[i].whole) after_backward(i);
  eager::Recorder& recorder = eager_.recorder;
  if (sync_)
    for (const Group& group : groups_)
      if (group.parameters.empty() ? group.among == &group_ : !group.trained.empty())
        recorder.wait_event(0, group.ready);
  if (reducing_.defined()) recorder.wait_event(0, reduced_);
  reducing_ = Tensor{};
  held_ = Tensor{};
  if (!host_) return;
  host_->wait_for_gradients();
  added_ = added_ || sync_;
}

void FullyShard::update_on_host(OptimizerDescription optimizer) {
  host_->update(shards_, optimizer);
  added_ = false;
}

void FullyShard::add_up_norm() {
  const Tensor norm = eager_.empty({}, DType::fp32);
  group_.run(CollectiveKind::all_reduce, DType::fp32, norm.bytes(), norm, norm);
}

}  // namespace ridgeline::parallel
