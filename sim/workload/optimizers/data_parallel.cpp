#include "sim/workload/optimizers/data_parallel.h"

#include <memory>
#include <vector>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

void exchange_gradients(Eager& eager, const Parameters& parameters) {
  auto sizes = std::make_shared<std::vector<std::int64_t>>();
  std::int64_t elements = 0;
  for (const auto& parameter : parameters) {
    if (!parameter.gradient.defined()) continue;
    sizes->push_back(parameter.gradient.elements());
    elements += sizes->back();
  }
  if (sizes->empty()) return;
  const DType type = parameters.front().value.type;
  // The lists of the buffer's parts are not told apart: both passes are taken as going to the DRAM.
  const Tensor buffer = eager.empty({elements}, type);
  foreach (eager, MultiTensorFunction::copy, type, sizes, {})
    ;
  aten::pointwise(eager, PointwiseFunction::scale, {&buffer}, buffer);
  foreach (eager, MultiTensorFunction::copy, type, sizes, {})
    ;
}

}  // namespace ridgeline::optimizers
