#include "sim/workload/deepspeed/flat_zero.h"

#include <algorithm>
#include <utility>

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::deepspeed {

using eager::Eager;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

std::vector<std::int64_t> elements_of(const eager::Parameters& parameters) {
  std::vector<std::int64_t> result;
  for (const eager::Parameter& parameter : parameters) result.push_back(parameter.value.elements());
  return result;
}

Tensor of_category(Eager& eager, std::int64_t elements, DType type, Category category) {
  Tensor result = eager.empty({elements}, type);
  eager.recorder.set_category(result.storage.id(), category);
  return result;
}

}  // namespace

FlatZero::FlatZero(Eager& eager, eager::Parameters& parameters, const TrainingDescription& training)
    : eager_(eager),
      parameters_(parameters),
      training_(training),
      how_(training.parallel),
      zero_(training.parallel.zero),
      partition_(elements_of(parameters), how_.gradient_ranks()),
      rank_(partition_.fullest_rank()),
      type_(parameters.front().value.type) {
  if (how_.gradient_ranks() > 1) {
    group_.emplace(eager, GroupKind::data, how_.gradient_ranks(), "data parallel collectives");
    if (zero_.overlap_comm.value_or(false)) reducing_ = eager.recorder.add_stream("reductions of gradients");
  }
  make_buffers();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].after_accumulate = [this, i] { gradient_arrived(i); };
}

void FlatZero::make_buffers() {
  if (group_)
    for (const eager::Parameter& parameter : parameters_)
      group_->run(CollectiveKind::broadcast, type_, parameter.value.bytes(), parameter.value, parameter.value);
  values_ = of_category(eager_, partition_.elements(), type_, Category::weights);
  for (eager::Parameter& parameter : parameters_) parameter.value.storage = values_.storage;
  const Tensor copied = eager_.empty({partition_.share()}, type_);
  share_.emplace_back().value = of_category(eager_, partition_.share(), DType::fp32, Category::optimizer_state);
  const Tensor zeros = eager_.empty({partition_.share()}, DType::fp32);  // a gradient, to try
}

void FlatZero::before_backward(bool last) { last_ = last; }

void FlatZero::make_buckets() {
  if (!buckets_.empty() || !zero_.contiguous_gradients) return;
  for (int i = 0; i < (overlaps() ? 2 : 1); ++i)
    buckets_.push_back(of_category(eager_, zero_.reduce_bucket_size, type_, Category::gradients));
  filling_ = 0;
}

void FlatZero::gradient_arrived(std::size_t parameter) {
  eager_.recorder.host(HostClass::main_gradient_hook);
  make_buckets();
  if (partitions_gradients() || (overlaps() && last_)) put(parameter);
}

void FlatZero::put(std::size_t parameter) {
  Tensor& gradient = parameters_[parameter].gradient;
  const std::int64_t elements = gradient.elements();
  if (filled_ + elements > zero_.reduce_bucket_size) {
    reduce_bucket();
    if (zero_.contiguous_gradients && overlaps()) filling_ = 1 - filling_;
  }
  if (zero_.contiguous_gradients && elements <= zero_.reduce_bucket_size) {
    Tensor there = gradient.detached();
    there.storage = buckets_[filling_].storage;
    there.view = true;
    copy(eager_, gradient, there);
    gradient = std::move(there);
  }
  members_.push_back(parameter);
  filled_ += elements;
}

void FlatZero::reduce_bucket() {
  if (members_.empty()) return;
  eager::Recorder& recorder = eager_.recorder;
  if (!zero_.contiguous_gradients) {
    average_apart();
  } else {
    if (overlaps()) {  // two buffers: the next one is filled when this one's last reduction is done
      recorder.wait_event(reducing_, recorder.record_event(0));
      recorder.wait_event(0, recorder.record_event(reducing_));
    }
    const parallel::OnStream there(recorder, reducing());
    const Tensor& first = parameters_[members_.front()].gradient;  // alone where it is larger than a bucket
    average(part_of(filled_ > zero_.reduce_bucket_size ? first : buckets_[filling_], filled_));
  }
  const parallel::OnStream there(recorder, reducing());
  for (const std::size_t member : members_) take(member);
  members_.clear();
  filled_ = 0;
}

void FlatZero::average(const Tensor& buffer) {
  if (!group_) {
    eager_.recorder.host(HostClass::optimizer_op);
    aten::pointwise(eager_, PointwiseFunction::scale, {&buffer}, buffer);
    return;
  }
  if (!zero_.reduce_scatter) {
    group_->run(CollectiveKind::all_reduce, type_, buffer.bytes(), buffer, buffer);
    eager_.recorder.host(HostClass::optimizer_op);
    aten::pointwise(eager_, PointwiseFunction::scale, {&buffer}, buffer);
    return;
  }
  // Neighbours in the bucket that lie in one rank's share are one slice.
  std::vector<Slice> slices;
  for (const std::size_t member : members_)
    for (const Slice& slice : partition_.slices(member)) {
      if (!slices.empty() && slices.back().rank == slice.rank) slices.back().elements += slice.elements;
      else slices.push_back(slice);
    }
  eager_.recorder.host(HostClass::optimizer_op);
  aten::pointwise(eager_, PointwiseFunction::scale, {&buffer}, buffer);
  if (zero_.use_multi_rank_bucket_allreduce) sum_over_ranks(slices, buffer);
  else sum_at_owners(slices, buffer);
}

void FlatZero::sum_over_ranks(const std::vector<Slice>& slices, const Tensor& buffer) {
  std::vector<Tensor> parts;
  for (const Slice& slice : slices) parts.push_back(part_of(buffer, slice.elements));
  const Tensor flat = flattened(eager_, parts);
  group_->run(CollectiveKind::all_reduce, type_, flat.bytes(), flat, flat);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].rank != rank_) continue;
    eager_.recorder.host(HostClass::optimizer_op);
    copy(eager_, part_of(flat, slices[i].elements), parts[i]);
  }
}

/// One reduction to each rank that has a part; the host waits for the GPU before each, where they overlap.
void FlatZero::sum_at_owners(const std::vector<Slice>& slices, const Tensor& buffer) {
  std::vector<std::int64_t> owners;
  for (const Slice& slice : slices)
    if (std::find(owners.begin(), owners.end(), slice.rank) == owners.end()) owners.push_back(slice.rank);
  for (const std::int64_t owner : owners) {
    std::vector<Tensor> parts;
    for (const Slice& slice : slices)
      if (slice.rank == owner) parts.push_back(part_of(buffer, slice.elements));
    if (overlaps()) eager_.recorder.wait_for_gpu();
    const Tensor flat = flattened(eager_, parts);
    group_->run(CollectiveKind::reduce, type_, flat.bytes(), flat, flat);
    if (owner != rank_) continue;
    for (const Tensor& part : parts) {
      eager_.recorder.host(HostClass::optimizer_op);
      copy(eager_, part_of(flat, part.elements()), part);
    }
  }
}

/// Without a buffer gradients stay where they are: a copy of the bucket's is averaged and copied back.
void FlatZero::average_apart() {
  if (overlaps()) {
    eager_.recorder.wait_for_gpu();
    for (const std::size_t parameter : std::exchange(reduced_, {})) parameters_[parameter].gradient = Tensor{};
  }
  const parallel::OnStream there(eager_.recorder, reducing());
  std::vector<Tensor> parts;
  for (const std::size_t member : members_)
    parts.push_back(part_of(parameters_[member].gradient, parameters_[member].gradient.elements()));
  const Tensor flat = flattened(eager_, parts);
  eager_.recorder.host(HostClass::optimizer_op);
  aten::pointwise(eager_, PointwiseFunction::scale, {&flat}, flat);
  if (group_) group_->run(CollectiveKind::all_reduce, type_, flat.bytes(), flat, flat);
  for (const Tensor& part : parts) {
    eager_.recorder.host(HostClass::optimizer_op);
    copy(eager_, part_of(flat, part.elements()), part);
  }
}

/// A reduced gradient: this rank keeps it, or drops it.
void FlatZero::take(std::size_t parameter) {
  Tensor& gradient = parameters_[parameter].gradient;
  if (!own(parameter)) {
    if (!partitions_gradients()) return;
    if (overlaps() && !zero_.contiguous_gradients) reduced_.push_back(parameter);
    else gradient = Tensor{};
    return;
  }
  if (!zero_.contiguous_gradients) return;
  if (!kept_.defined()) kept_ = of_category(eager_, partition_.kept(rank_), type_, Category::gradients);
  Tensor there = gradient.detached();
  there.storage = kept_.storage;
  there.view = true;
  eager_.recorder.host(HostClass::optimizer_op);
  copy(eager_, gradient, there);
  gradient = std::move(there);
}

void FlatZero::after_backward() {
  if (!partitions_gradients() && !last_) return;
  if (!partitions_gradients() && !overlaps())
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].gradient.defined()) put(i);
  reduce_bucket();
  if (overlaps()) eager_.recorder.wait_for_gpu();
  reduced_.clear();
  keep_own();
  buckets_.clear();
  kept_ = Tensor{};
  for (eager::Parameter& parameter : parameters_) parameter.gradient = Tensor{};
}

void FlatZero::keep_own() {
  const bool first = sums_.empty();
  std::size_t next = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!own(i)) continue;
    // As get_flat_partition does, zeros for a parameter that nothing depends on.
    const Tensor gradient = parameters_[i].gradient.defined() ? parameters_[i].gradient
                                                              : aten::full(eager_, parameters_[i].value.sizes, type_);
    if (first) {
      sums_.push_back(gradient);
      continue;
    }
    eager_.recorder.host(HostClass::optimizer_op);
    aten::add_in_place(eager_, sums_[next++], gradient);
  }
}

std::vector<Tensor> FlatZero::pieces_of_share() {
  std::vector<Tensor> pieces;
  std::int64_t elements = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::int64_t part = partition_.part(i, rank_);
    if (part == 0) continue;
    pieces.push_back(part_of(sums_[next++], part));
    elements += part;
  }
  if (elements < partition_.share()) pieces.push_back(aten::full(eager_, {partition_.share() - elements}, type_));
  return pieces;
}

/// float(), isnan, isinf, their union, float() again and max of each gradient; the host asks whether any was.
void FlatZero::look_for_overflow(const std::vector<Tensor>& gradients) {
  if (!is_half(type_)) return;
  constexpr std::int64_t kCalls = 7;
  eager_.recorder.host(HostClass::optimizer_op, kCalls * static_cast<std::int64_t>(gradients.size()));
  const Tensor count = eager_.empty({1}, DType::fp32);
  for (const Tensor& gradient : gradients) {
    const Tensor wide = aten::to(eager_, gradient, DType::fp32);
    const Tensor no_number = eager_.empty_like(wide, DType::boolean), infinite = eager_.empty_like(no_number);
    aten::pointwise(eager_, PointwiseFunction::equal, {&wide}, no_number);
    aten::pointwise(eager_, PointwiseFunction::equal, {&wide}, infinite);
    const Tensor either = eager_.empty_like(no_number);
    aten::pointwise(eager_, PointwiseFunction::other, {&no_number, &infinite}, either);
    const Tensor counted = aten::to(eager_, either, DType::fp32);
    const Tensor most = eager_.empty({}, DType::fp32);
    eager_.recorder.op(Reduction{ReductionKind::sum_all, DType::fp32, 1, counted.elements()}, {&counted}, {&most});
    aten::add_in_place(eager_, count, most);
  }
  constexpr int kToBytes = 2;
  on_numbers(eager_, kToBytes);
  agree(place(), DType::uint8);
  optimizers::read_on_host(eager_, count);
}

void FlatZero::step(optimizers::Optimizer& optimizer) {
  eager_.recorder.phase = Phase::optimizer;
  const bool gradients_enabled = std::exchange(eager_.gradients_enabled, false);
  {
    std::vector<Tensor> pieces = pieces_of_share();
    look_for_overflow(pieces);
    norm_of(place(), pieces);
    Tensor flat = flattened(eager_, pieces);
    Tensor wide = aten::to(eager_, flat, DType::fp32);
    flat = Tensor{};
    pieces.clear();
    sums_.clear();
    update(eager_, optimizer, share_, std::move(wide), training_.gradient_clipping.has_value(),
           part_of(values_, partition_.share()));
  }
  if (group_) group_->run(CollectiveKind::all_gather, type_, values_.bytes(), values_, values_);
  // Parameters become views of the buffer again.
  eager_.recorder.host(HostClass::view, static_cast<std::int64_t>(parameters_.size()));
  eager_.gradients_enabled = gradients_enabled;
}

}  // namespace ridgeline::deepspeed
