#include "sim/workload/deepspeed/sharded_zero.h"

#include <algorithm>
#include <utility>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/deepspeed/flat_zero.h"
#include "sim/workload/deepspeed/share_update.h"

namespace ridgeline::deepspeed {

using eager::Eager;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

Tensor lasting(Eager& eager, std::int64_t elements, DType type, Category category) {
  Tensor result = eager.empty({elements}, type);
  eager.recorder.set_category(result.storage.id(), category);
  return result;
}

/// Where each trained parameter stands among all.
std::vector<std::size_t> places_in(const eager::Parameters& parameters, const std::vector<eager::Parameter*>& all) {
  std::vector<std::size_t> places;
  for (const eager::Parameter& parameter : parameters)
    places.push_back(static_cast<std::size_t>(std::find(all.begin(), all.end(), &parameter) - all.begin()));
  return places;
}

}  // namespace

std::unique_ptr<Engine> make_engine(Eager& eager, eager::Parameters& parameters, const TrainingDescription& training,
                                    std::vector<eager::Parameter*> all) {
  if (training.parallel.strategy == DataStrategy::zero3 && training.parallel.gradient_ranks() > 1)
    return std::make_unique<ShardedZero>(eager, parameters, training, std::move(all));
  return std::make_unique<FlatZero>(eager, parameters, training);
}

ShardedZero::ShardedZero(Eager& eager, eager::Parameters& parameters, const TrainingDescription& training,
                         std::vector<eager::Parameter*> all)
    : eager_(eager),
      parameters_(parameters),
      all_(all.empty() ? pointers_to(parameters) : std::move(all)),
      place_of_(places_in(parameters, all_)),
      training_(training),
      zero_(training.parallel.zero),
      group_(eager, GroupKind::shard, training.parallel.gradient_ranks(), "data parallel collectives"),
      type_(parameters.front().value.type),
      shards_(make_shards()),
      fetch_(eager, all_, zero_, group_, shards_),
      reducing_(zero_.overlap_comm.value_or(true) ? eager.recorder.add_stream("reductions of gradients")
                                                  : std::uint8_t{0}) {
  make_sub_groups();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].after_accumulate = [this, i] { gradient_arrived(i); };
}

Tensor ShardedZero::make_shards() {
  std::vector<StorageId> whole;
  std::int64_t elements = 0;
  for (const eager::Parameter* parameter : all_) {
    whole.push_back(parameter->value.storage.id());
    elements += (parameter->value.elements() + group_.ranks() - 1) / group_.ranks();
  }
  eager_.recorder.never_allocated(whole);
  return lasting(eager_, elements, type_, Category::weights);
}

void ShardedZero::make_sub_groups() {
  std::int64_t all = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) all += shard_elements(i);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (i == 0 || (zero_.sub_group_size < all && sub_groups_.back().elements >= zero_.sub_group_size))
      sub_groups_.emplace_back();
    sub_groups_.back().parts.push_back(shard_elements(i));
    sub_groups_.back().elements += shard_elements(i);
  }
  std::int64_t largest = 0;
  for (SubGroup& group : sub_groups_) {
    largest = std::max(largest, group.elements);
    // Numbers in fp32 need no copy.
    group.share.emplace_back().value = type_ == DType::fp32
                                           ? part_of(shards_, group.elements)
                                           : lasting(eager_, group.elements, DType::fp32, Category::optimizer_state);
  }
  { const Tensor zeros = eager_.empty({largest}, DType::fp32); }  // a gradient, to try
  if (zero_.contiguous_gradients) bucket_ = lasting(eager_, zero_.reduce_bucket_size, type_, Category::gradients);
  gradients_ = lasting(eager_, all, type_, Category::gradients);
}

void ShardedZero::before_forward() {
  fetch_.watch(true);
  fetch_.begin_pass();
}

void ShardedZero::gradient_arrived(std::size_t parameter) {
  eager::Recorder& recorder = eager_.recorder;
  fetch_.visit_of(place_of_[parameter]);
  recorder.host(HostClass::main_gradient_hook);
  Tensor& gradient = parameters_[parameter].gradient;
  const std::int64_t elements = gradient.elements();
  if (filled_ + elements > zero_.reduce_bucket_size && filled_ > 0) reduce_bucket();
  recorder.wait_event(reducing_, recorder.record_event(recorder.stream));
  if (zero_.contiguous_gradients && filled_ + elements <= zero_.reduce_bucket_size) {
    const parallel::OnStream there(recorder, reducing_);
    Tensor place = gradient.detached();
    place.storage = bucket_.storage;
    place.view = true;
    copy(eager_, gradient, place);
    gradient = std::move(place);
  }
  members_.push_back(parameter);
  filled_ += elements;
}

void ShardedZero::reduce_bucket() {
  if (members_.empty()) return;
  constexpr std::size_t kOngoing = 2;
  eager::Recorder& recorder = eager_.recorder;
  if (reduced_.size() > kOngoing) {
    recorder.host_waits_for_event(reduced_.front());
    reduced_.pop_front();
  }
  const parallel::OnStream there(recorder, reducing_);
  recorder.host(HostClass::optimizer_op);
  if (zero_.contiguous_gradients && filled_ <= zero_.reduce_bucket_size && !zero_.reduce_scatter) {
    const Tensor buffer = part_of(bucket_, filled_);
    aten::pointwise(eager_, PointwiseFunction::scale, {&buffer}, buffer);
    group_.run(CollectiveKind::all_reduce, type_, buffer.bytes(), buffer, buffer);
    for (const std::size_t member : members_) take(member, buffer);
  } else {
    scatter();
  }
  for (const std::size_t member : members_) parameters_[member].gradient = Tensor{};
  members_.clear();
  filled_ = 0;
  reduced_.push_back(recorder.record_event(reducing_));
}

/// One gradient that needs no padding is reduced where it is.
void ShardedZero::scatter() {
  std::sort(members_.begin(), members_.end());
  std::int64_t shards = 0;
  for (const std::size_t member : members_) shards += shard_elements(member);
  const Tensor& first = parameters_[members_.front()].gradient;
  const bool alone = members_.size() == 1 && first.elements() == shards * group_.ranks();
  Tensor ordered = part_of(first, first.elements());
  if (!alone) {
    ordered = eager_.empty({shards * group_.ranks()}, type_);
    Tensor given = first.detached();
    given.sizes = ordered.sizes;
    given.strides = ordered.strides;
    copy(eager_, given, ordered);
  }
  eager_.recorder.host(HostClass::optimizer_op);
  aten::pointwise(eager_, PointwiseFunction::scale, {&ordered}, ordered);
  const Tensor mine = part_of(ordered, shards);
  group_.run(CollectiveKind::reduce_scatter, type_, ordered.bytes(), ordered, mine);
  for (const std::size_t member : members_) take(member, mine);
}

void ShardedZero::take(std::size_t parameter, const Tensor& reduced) {
  const std::int64_t elements = shard_elements(parameter);
  const Tensor from = part_of(reduced, elements), to = part_of(gradients_, elements);
  eager_.recorder.host(HostClass::optimizer_op);
  if (micro_batch_ == 0) copy(eager_, from, to);
  else aten::add_in_place(eager_, to, from);
}

void ShardedZero::after_backward() {
  fetch_.end_visit();
  reduce_bucket();
  if (!reduced_.empty()) eager_.recorder.host_waits_for_event(reduced_.back());
  reduced_.clear();
  ++micro_batch_;
  fetch_.watch(false);
}

/// isinf, isnan, any of either, on the stream of reductions.
void ShardedZero::look_for_overflow() {
  if (type_ != DType::fp16) return;
  constexpr std::int64_t kCalls = 9;
  eager_.recorder.host(HostClass::optimizer_op, kCalls);
  {
    const parallel::OnStream there(eager_.recorder, reducing_);
    for (int i = 0; i < 2; ++i) {
      const Tensor found = eager_.empty_like(gradients_, DType::boolean), any = eager_.empty({}, DType::boolean);
      aten::pointwise(eager_, PointwiseFunction::equal, {&gradients_}, found);
      eager_.recorder.op(Reduction{ReductionKind::sum_all, DType::uint8, 1, found.elements()}, {&found}, {&any});
    }
  }
  eager_.recorder.wait_event(0, eager_.recorder.record_event(reducing_));
  agree({eager_, &group_}, DType::uint8);
  optimizers::read_on_host(eager_, eager_.empty({}, DType::fp32));
}

void ShardedZero::step(optimizers::Optimizer& optimizer) {
  eager_.recorder.phase = Phase::optimizer;
  const bool gradients_enabled = std::exchange(eager_.gradients_enabled, false);
  micro_batch_ = 0;
  fetch_.release_all();
  look_for_overflow();
  std::vector<std::vector<Tensor>> parts;
  for (const SubGroup& group : sub_groups_) {
    std::vector<Tensor>& own = parts.emplace_back();
    for (const std::int64_t elements : group.parts) own.push_back(part_of(gradients_, elements));
    norm_of({eager_, &group_}, own);
  }
  for (std::size_t i = 0; i < sub_groups_.size(); ++i) {
    SubGroup& group = sub_groups_[i];
    Tensor flat = flattened(eager_, parts[i]);
    Tensor wide = aten::to(eager_, flat, DType::fp32);
    flat = Tensor{};
    update(eager_, optimizer, group.share, std::move(wide), training_.gradient_clipping.has_value(),
           part_of(shards_, group.elements));
  }
  fetch_.gather_persistent();
  eager_.gradients_enabled = gradients_enabled;
}

}  // namespace ridgeline::deepspeed
