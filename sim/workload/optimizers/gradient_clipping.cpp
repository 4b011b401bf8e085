#include "sim/workload/optimizers/gradient_clipping.h"

#include <algorithm>
#include <span>
#include <vector>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

void clip_gradients(Eager& eager, Parameters& parameters) {
  const auto count = static_cast<std::int64_t>(parameters.size());
  eager.recorder.host(HostClass::clip_fixed);
  eager.recorder.host(HostClass::per_parameter_clip, count);
  const DType type = parameters.front().value.type;
  const auto sizes = sizes_of(parameters);
  std::vector<Tensor> norms;
  {
    // Each tensor's chunks leave a partial norm: as many places for every tensor as the largest has chunks.
    constexpr std::int64_t kChunk = 65536;
    const std::int64_t largest = *std::max_element(sizes->begin(), sizes->end());
    const Tensor partial = eager.empty({count * ((largest + kChunk - 1) / kChunk)}, DType::fp32);
    for (std::int64_t i = 0; i < count; ++i) norms.push_back(eager.empty({}, type));
    foreach (eager, MultiTensorFunction::norm, type, sizes, {gradients_of(parameters)})
      ;
  }
  Tensor total = [&] {
    const Tensor stacked = eager.empty({count}, type);
    // torch.cat takes at most this many inputs a kernel.
    constexpr std::int64_t kMostInputs = 128;
    std::vector<const Tensor*> inputs;
    for (const Tensor& norm : norms) inputs.push_back(&norm);
    const Tensor* output = &stacked;
    for (std::int64_t done = 0; done < count; done += kMostInputs) {
      const std::int64_t parts = std::min(kMostInputs, count - done);
      const auto some = std::span(inputs).subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(parts));
      eager.recorder.op(Copy{CopyKind::concatenate, type, 1, 1, parts}, some, std::span(&output, 1));
    }
    Tensor norm = eager.empty({}, type);
    eager.recorder.op(Reduction{ReductionKind::norm_all, type, 1, count}, {&stacked}, {&norm});
    return norm;
  }();
  while (!norms.empty()) norms.pop_back();  // a Python list gives up its last element first
  Tensor coefficient;
  {
    const Tensor sum = aten::add_number(eager, total);
    Tensor reciprocal = eager.empty_like(sum);
    aten::pointwise(eager, PointwiseFunction::reciprocal, {&sum}, reciprocal);
    coefficient = aten::scale(eager, reciprocal);
    reciprocal = Tensor{};
  }
  Tensor clamped = eager.empty_like(coefficient);
  aten::pointwise(eager, PointwiseFunction::clamp, {&coefficient}, clamped);
  foreach (eager, MultiTensorFunction::mul, type, sizes, {gradients_of(parameters)})
    ;
  coefficient = Tensor{};
  clamped = Tensor{};
  total = Tensor{};
}

}  // namespace ridgeline::optimizers
