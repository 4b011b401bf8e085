#include "sim/workload/deepspeed/share_update.h"

#include <algorithm>
#include <vector>

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::deepspeed {

using eager::Eager;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

/// torch.stack of single numbers; one kernel takes 128.
Tensor stacked(Eager& eager, const std::vector<Tensor>& numbers) {
  constexpr std::size_t kMostInputs = 128;
  const Tensor result = eager.empty({static_cast<std::int64_t>(numbers.size())}, numbers.front().type);
  std::vector<const Tensor*> inputs;
  for (const Tensor& number : numbers) inputs.push_back(&number);
  const Tensor* output = &result;
  for (std::size_t done = 0; done < inputs.size(); done += kMostInputs) {
    const std::size_t parts = std::min(kMostInputs, inputs.size() - done);
    eager.recorder.op(Copy{CopyKind::concatenate, result.type, 1, 1, static_cast<std::int64_t>(parts)},
                      std::span(inputs).subspan(done, parts), std::span(&output, 1));
  }
  return result;
}

}  // namespace

void on_numbers(Eager& eager, int calls) {
  eager.recorder.host(HostClass::optimizer_op, calls);
  for (int i = 0; i < calls; ++i) {
    const Tensor number = eager.empty({}, DType::fp32);
    aten::pointwise(eager, PointwiseFunction::other, {&number}, number);
  }
}

Tensor part_of(const Tensor& buffer, std::int64_t elements) {
  Tensor part = buffer.detached();
  part.sizes = {elements};
  part.strides = {1};
  part.view = true;
  return part;
}

void copy(Eager& eager, const Tensor& from, const Tensor& to) {
  eager.recorder.op(Copy{CopyKind::contiguous, from.type, 1, from.elements(), 1}, {&from}, {&to});
}

Tensor flattened(Eager& eager, std::span<const Tensor> parts) {
  eager.recorder.host(HostClass::optimizer_op);
  if (parts.size() == 1) return parts.front();
  std::int64_t elements = 0;
  for (const Tensor& part : parts) elements += part.elements();
  Tensor flat = eager.empty({elements}, parts.front().type);
  // One kernel takes up to 128 tensors; counted as a copy of all.
  Tensor all = parts.front();
  all.sizes = {elements};
  copy(eager, all, flat);
  return flat;
}

void agree(const StepPlace& place, DType type) {
  if (place.group == nullptr) return;
  const Tensor number = place.eager.empty({1}, type);
  place.group->run(CollectiveKind::all_reduce, type, number.bytes(), number, number);
}

void norm_of(const StepPlace& place, std::span<const Tensor> gradients) {
  Eager& eager = place.eager;
  std::vector<Tensor> norms;
  eager.recorder.host(HostClass::optimizer_op, 2 * static_cast<std::int64_t>(gradients.size()));
  for (const Tensor& gradient : gradients) {
    const Tensor wide = aten::to(eager, gradient, DType::fp64);
    norms.push_back(eager.empty({}, DType::fp64));
    eager.recorder.op(Reduction{ReductionKind::norm_all, DType::fp64, 1, wide.elements()}, {&wide}, {&norms.back()});
  }
  eager.recorder.host(HostClass::optimizer_op);
  const Tensor all = stacked(eager, norms);
  constexpr int kToTheSum = 3, kOfTheSum = 8;  // square, sum, float; root, no number or infinity, over the loss scale
  on_numbers(eager, kToTheSum);
  agree(place, DType::fp32);
  on_numbers(eager, kOfTheSum);
}

void scale_share(Eager& eager, const Tensor& gradient, bool clips) {
  constexpr int kFactor = 6;
  if (clips) on_numbers(eager, kFactor);
  eager.recorder.host(HostClass::optimizer_op);
  aten::pointwise(eager, PointwiseFunction::scale, {&gradient}, gradient);
}

void update(Eager& eager, optimizers::Optimizer& optimizer, eager::Parameters& share, Tensor gradient, bool clips,
            const Tensor& stored) {
  eager::Parameter& flat = share.front();
  flat.gradient = std::move(gradient);
  eager.recorder.set_category(flat.gradient.storage.id(), Category::gradients);
  scale_share(eager, flat.gradient, clips);
  optimizer.step(eager, share, Tensor{});
  flat.gradient = Tensor{};
  if (stored.storage.id() == flat.value.storage.id()) return;
  eager.recorder.host(HostClass::optimizer_op);
  aten::pointwise(eager, PointwiseFunction::cast, {&flat.value}, stored);
}

}  // namespace ridgeline::deepspeed
