#include "sim/trace/profiler/optimizer_lists.h"

#include <algorithm>

namespace ridgeline::trace {

std::vector<ListRole> OptimizerLists::next(const MultiTensor& op) {
  using F = MultiTensorFunction;
  using R = ListRole;
  const bool counts = std::all_of(op.sizes->begin(), op.sizes->end(), [](std::int64_t size) { return size == 1; });
  if (counts) return op.function == F::add ? std::vector{R::count, R::count} : std::vector{R::count};
  const std::optional<F> before = before_;
  before_ = op.function;
  switch (op.function) {
    case F::norm:
    case F::unscale: return {R::gradient};
    // Clipping after the norm, momentum's or the second moment's decay, weight decay.
    case F::mul: return {before == F::norm ? R::gradient : before == F::lerp ? R::square : R::value};
    case F::lerp: return {R::average, R::gradient};
    case F::addcmul: return {R::square, R::gradient};
    case F::square_root: return {R::square, R::temporary};
    case F::divide:
    case F::add_scalar: return {R::temporary};
    case F::addcdiv: return {R::value, R::average, R::temporary};
    case F::copy: return {R::value, R::temporary};
    case F::fused_adamw:
    case F::fused_adam: return {R::value, R::gradient, R::average, R::square};
    case F::fused_sgd: return {R::value, R::gradient, R::average};
    case F::add:
      if (before == F::mul) {
        momentum_ = true;
        return {R::average, R::gradient};
      }
      return {R::value, momentum_ ? R::average : R::gradient};
  }
  return {};
}

}  // namespace ridgeline::trace
