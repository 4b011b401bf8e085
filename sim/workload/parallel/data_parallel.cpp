#include "sim/workload/parallel/data_parallel.h"

#include <array>
#include <deque>
#include <limits>
#include <utility>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/parallel/buckets.h"

namespace ridgeline::parallel {

using eager::Tensor;
namespace aten = eager::aten;

namespace {

DType type_of(GradientCompression compression) {
  return compression == GradientCompression::fp16 ? DType::fp16 : DType::bf16;
}

/// Tensors that are broadcast are put together up to this.
constexpr std::int64_t kCoalesced = std::int64_t{250} << 20;

void copy(eager::Eager& eager, const Tensor& from, const Tensor& to) {
  eager.recorder.op(Copy{CopyKind::contiguous, to.type, 1, to.elements(), 1}, {&from}, {&to});
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(eager::Eager& eager, eager::Parameters& parameters,
                                                 const ParallelDescription& description, bool holds_first_buckets,
                                                 std::vector<Tensor> buffers)
    : eager_(eager),
      parameters_(parameters),
      how_(description),
      group_(eager, GroupKind::data, description.gradient_ranks(), "data parallel collectives"),
      holds_first_buckets_(holds_first_buckets),
      bucket_of_(parameters.size()),
      buffers_(std::move(buffers)) {
  if (how_.compression != GradientCompression::none)
    decompressing_ = eager.recorder.add_stream("decompression of gradients");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].of_experts) kept_equal_.push_back(i);
  broadcast_parameters();
  const std::vector<std::size_t>& order = kept_equal_;
  if (how_.find_unused_parameters) {
    const std::array limits{how_.bucket_cap.value_or(kFirstBucket), how_.bucket_cap.value_or(kBucket)};
    make_buckets({order.rbegin(), order.rend()}, limits);
    rebuilt_ = true;  // which gradients come may change from step to step: never again
  } else {
    make_buckets(order, std::array{std::numeric_limits<std::int64_t>::max()});
  }
  for (const std::size_t i : kept_equal_)
    parameters[i].after_accumulate = [this, i] {
      if (holds_) held_.push_back(i);
      else gradient_arrived(i);
    };
}

void DistributedDataParallel::release(std::span<const std::size_t> order) {
  for (const std::size_t parameter : order)
    if (std::erase(held_, parameter) > 0) gradient_arrived(parameter);
}

// Coalesced by 250 MiB, all copies held until the last was sent.
void DistributedDataParallel::broadcast_parameters() {
  std::vector<BucketMember> tensors;
  for (const std::size_t i : kept_equal_) tensors.push_back({parameters_[i].value.bytes(), parameters_[i].value.type});
  std::vector<Tensor> flat;
  for (const auto& members : assign_buckets(tensors, std::array{kCoalesced})) {
    std::int64_t elements = 0;
    for (const std::size_t i : members) elements += parameters_[kept_equal_[i]].value.elements();
    flat.push_back(eager_.empty({elements}, parameters_[kept_equal_[members.front()]].value.type));
    group_.run(CollectiveKind::broadcast, flat.back().type, flat.back().bytes(), flat.back(), flat.back());
  }
}

// Those of a type together: in a copy, sent beside the copy of the next, and back (broadcast_coalesced of c10d).
void DistributedDataParallel::broadcast_buffers() {
  if (!how_.broadcast_buffers || buffers_.empty()) return;
  std::vector<BucketMember> tensors;
  for (const Tensor& buffer : buffers_) tensors.push_back({buffer.bytes(), buffer.type});
  struct Sent {
    Tensor flat;
    std::vector<std::size_t> members;
    Work work;
  };
  std::deque<Sent> under_way;
  const auto finish = [&] {
    group_.wait(under_way.front().work);
    for (const std::size_t i : under_way.front().members) {
      eager_.recorder.host(HostClass::ddp_copy_back);
      copy(eager_, under_way.front().flat, buffers_[i]);
    }
    under_way.pop_front();
  };
  constexpr std::size_t kUnderWay = 2;
  for (auto& members : assign_buckets(tensors, std::array{kCoalesced})) {
    if (under_way.size() == kUnderWay) finish();
    Tensor flat = buffers_[members.front()].detached();
    if (members.size() > 1) {
      std::int64_t elements = 0;
      for (const std::size_t i : members) elements += buffers_[i].elements();
      const Tensor first = flat;
      flat = eager_.empty({elements}, first.type);
      eager_.recorder.host(HostClass::concatenate);
      eager_.recorder.op(Copy{CopyKind::contiguous, flat.type, 1, elements, 1}, {&first}, {&flat});
    }
    const Work work = group_.start(CollectiveKind::broadcast, flat.type, flat.bytes(), flat, flat);
    under_way.push_back({std::move(flat), std::move(members), work});
  }
  while (!under_way.empty()) finish();
}

void DistributedDataParallel::make_buckets(const std::vector<std::size_t>& order,
                                           std::span<const std::int64_t> limits) {
  std::vector<BucketMember> tensors;
  for (const std::size_t i : order) tensors.push_back({parameters_[i].value.bytes(), parameters_[i].value.type});
  for (const auto& members : assign_buckets(tensors, limits)) {
    Bucket& bucket = buckets_.emplace_back();
    std::int64_t elements = 0;
    for (const std::size_t member : members) {
      bucket.members.push_back(order[member]);
      bucket_of_[order[member]] = buckets_.size() - 1;
      elements += parameters_[order[member]].value.elements();
    }
    bucket.buffer = eager_.empty({elements}, parameters_[bucket.members.front()].value.type);
    eager_.recorder.set_category(bucket.buffer.storage.id(), Category::gradients);
    bucket.missing = bucket.members.size();
  }
}

Tensor DistributedDataParallel::place_of(std::size_t parameter) const {
  Tensor place = parameters_[parameter].value.detached();
  place.storage = buckets_[bucket_of_[parameter]].buffer.storage;
  return place;
}

void DistributedDataParallel::before_forward(bool sync) {
  eager_.recorder.host(HostClass::ddp_forward);
  if (std::exchange(synced_before_, sync)) broadcast_buffers();
  sync_ = sync;
  if (!sync) return;
  if (!rebuilt_ && arrived_.size() == kept_equal_.size()) rebuild();
  next_ = 0;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
  // The whole graph is searched for parameters that it does not reach.
  if (how_.find_unused_parameters)
    eager_.recorder.host(HostClass::ddp_unused, static_cast<std::int64_t>(kept_equal_.size()));
}

void DistributedDataParallel::rebuild() {
  rebuilt_ = true;
  if (holds_first_buckets_)
    for (Bucket& bucket : buckets_)
      outlived_.push_back(std::move(how_.compression == GradientCompression::none ? bucket.buffer : bucket.compressed));
  buckets_.clear();
  const std::array limits{how_.bucket_cap.value_or(kFirstBucket), how_.bucket_cap.value_or(kBucket)};
  make_buckets(arrived_, limits);
}

void DistributedDataParallel::gradient_arrived(std::size_t parameter) {
  if (!sync_) return;
  eager_.recorder.host(HostClass::ddp_hook);
  if (!rebuilt_) arrived_.push_back(parameter);
  Tensor& gradient = parameters_[parameter].gradient;
  const Tensor place = place_of(parameter);
  if (gradient.storage.id() != place.storage.id()) {
    if (how_.compression == GradientCompression::none)
      aten::pointwise(eager_, PointwiseFunction::scale, {&gradient}, place);
    else copy(eager_, gradient, place);
    if (how_.gradient_as_bucket_view) gradient = place;
  } else {
    aten::pointwise(eager_, PointwiseFunction::scale, {&place}, place);
  }
  Bucket& bucket = buckets_[bucket_of_[parameter]];
  if (--bucket.missing > 0) return;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) send(buckets_[next_++]);
}

void DistributedDataParallel::send(Bucket& bucket) {
  if (how_.compression == GradientCompression::none) {
    bucket.work = group_.start(CollectiveKind::all_reduce, bucket.buffer.type, bucket.buffer.bytes(), bucket.buffer,
                               bucket.buffer);
    return;
  }
  // The hook is Python: cast, divide, send; what comes back is widened on a stream of its own.
  eager_.recorder.host(HostClass::ddp_compression);
  bucket.compressed = aten::to(eager_, bucket.buffer, type_of(how_.compression));
  aten::pointwise(eager_, PointwiseFunction::scale, {&bucket.compressed}, bucket.compressed);
  const Work sent = group_.start(CollectiveKind::all_reduce, bucket.compressed.type, bucket.compressed.bytes(),
                                 bucket.compressed, bucket.compressed);
  const OnStream there(eager_.recorder, decompressing_);
  group_.wait(sent);
  aten::pointwise(eager_, PointwiseFunction::cast, {&bucket.compressed}, bucket.buffer);
  bucket.work = {eager_.recorder.record_event(decompressing_)};
}

void DistributedDataParallel::after_backward() {
  if (!sync_) return;
  for (Bucket& bucket : buckets_) {
    group_.wait(bucket.work);
    if (rebuilt_) bucket.compressed = Tensor{};
    if (how_.gradient_as_bucket_view) continue;
    for (const std::size_t member : bucket.members) {
      eager_.recorder.host(HostClass::ddp_copy_back);
      copy(eager_, place_of(member), parameters_[member].gradient);
    }
  }
  outlived_.clear();
}

}  // namespace ridgeline::parallel
