#include "sim/workload/families/loss_parallel.h"

#include "sim/workload/parallel/redistribute.h"

namespace ridgeline::families {

namespace aten = eager::aten;
using Function = PointwiseFunction;

namespace {

Tensor fresh(Eager& eager, Function function, std::initializer_list<const Tensor*> inputs, const Dims& sizes,
             DType type) {
  Tensor result = eager.empty(sizes, type);
  aten::pointwise(eager, function, inputs, result);
  return result;
}

/// Where targets stand in this rank's part: six small kernels.
Tensor own_places(Eager& eager, const Tensor& targets) {
  Tensor place;
  for (int i = 0; i < 6; ++i) place = fresh(eager, Function::other, {&targets}, targets.sizes, DType::int64);
  return place;
}

/// zeros, -1 at the target; plus the probabilities; times what comes in.
struct LossParallelBackward final : eager::Node {
  LossParallelBackward() : Node(HostClass::dtensor_op_backward) {}
  eager::SavedTensor log_probabilities, target;
  void backward(Eager& eager, eager::Gradients& in, eager::Gradients& out) override {
    const Tensor x = log_probabilities.unpack(eager), targets = target.unpack(eager);
    eager.recorder.host(HostClass::dtensor_op_backward, 2);
    eager.recorder.host(HostClass::pointwise, 14);
    const Tensor gradient = aten::full(eager, x.sizes, DType::fp32);
    const Tensor place = own_places(eager, targets);
    aten::pointwise(eager, Function::index, {&place},
                    fresh(eager, Function::other, {&place}, place.sizes, DType::fp32));
    Tensor sum;
    {
      const Tensor probabilities = fresh(eager, Function::other, {&x}, x.sizes, DType::fp32);
      sum = fresh(eager, Function::add, {&gradient, &probabilities}, x.sizes, DType::fp32);
    }
    const Tensor each = fresh(eager, Function::mul, {&in[0]}, {x.sizes[0], 1}, DType::fp32);
    out[0] = fresh(eager, Function::mul, {&sum, &each}, x.sizes, DType::fp32);
  }
  void release() override {
    log_probabilities.release();
    target.release();
  }
};

}  // namespace

Tensor loss_parallel(Eager& eager, parallel::TensorParallel& ranks, const Tensor& logits, const Tensor& targets) {
  eager.recorder.host(HostClass::dtensor_op, 3);
  eager.recorder.host(HostClass::pointwise, 20);
  LossParallelBackward* node = eager.needs_node({&logits}) ? &eager.node<LossParallelBackward>({&logits}) : nullptr;
  const std::int64_t rows = logits.sizes[0], cols = logits.sizes[1];
  const Dims column{rows, 1};
  const auto over_columns = [&](const Tensor& x) {
    const Tensor own = eager.empty(column, DType::fp32);
    eager.recorder.op(Reduction{ReductionKind::sum_cols, DType::fp32, rows, cols}, {&x}, {&own});
    return parallel::dtensor::sum_of_ranks(eager, ranks, own);
  };
  Tensor result;
  {
    const Tensor largest = over_columns(logits);  // takes as long as a sum
    const Tensor shifted = fresh(eager, Function::add, {&logits, &largest}, logits.sizes, DType::fp32);
    Tensor sum;
    {
      const Tensor exponentials = fresh(eager, Function::other, {&shifted}, logits.sizes, DType::fp32);
      sum = over_columns(exponentials);
    }
    const Tensor logarithm = fresh(eager, Function::other, {&sum}, column, DType::fp32);
    result = fresh(eager, Function::add, {&shifted, &logarithm}, logits.sizes, DType::fp32);
  }
  const Tensor place = own_places(eager, targets);
  const Tensor picked = fresh(eager, Function::gather, {&place}, column, DType::fp32);
  const Tensor every = parallel::dtensor::sum_of_ranks(eager, ranks, picked);
  Tensor loss = eager.empty({}, DType::fp32);
  eager.recorder.op(Reduction{ReductionKind::sum_all, DType::fp32, 1, rows}, {&every}, {&loss});
  if (node != nullptr) {
    node->log_probabilities = eager.save(result);
    node->target = eager.save(targets);
    Eager::attach(loss, *node);
  }
  return loss;
}

}  // namespace ridgeline::families
