// TransformerEngine's cross entropy: loss and gradient in two Triton kernels, the gradient over the logits.
//
// Follows transformer_engine/pytorch/{cross_entropy,triton/cross_entropy}.py of version 2.11.
#include "sim/workload/families/megatron_functions.h"

namespace ridgeline::families::megatron {

namespace aten = eager::aten;
using eager::Gradients;
using eager::Node;
using eager::SavedTensor;

namespace {

/// Instructions an element beyond loading, converting and storing (estimated from the loops of the source; not
/// measured).
constexpr std::int64_t kStatistics = 10, kProbabilities = 10, kScale = 2;

/// A kernel with a block a row.
void over_rows(Eager& eager, std::string_view name, const Tensor& logits, std::int64_t arithmetic,
               std::span<const Tensor* const> inputs, std::span<const Tensor* const> outputs) {
  FusedKernel op;
  op.name = name;
  op.shape = FusedKernel::Shape::long_rows;
  op.cols = logits.sizes.last();
  op.rows = logits.elements() / op.cols;
  op.type = logits.type;
  op.arithmetic = arithmetic;
  for (const Tensor* tensor : inputs) op.reads.push_back(tensor->bytes());
  for (const Tensor* tensor : outputs) op.writes.push_back(tensor->bytes());
  eager.recorder.op(op, inputs, outputs);
}

struct FusedCrossEntropyBackward final : Node {
  FusedCrossEntropyBackward() : Node(HostClass::megatron_function_backward) {}
  SavedTensor gradient;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    Tensor result = gradient.unpack(eager);
    const std::int64_t rows = result.elements() / result.sizes.last();
    eager.recorder.host(HostClass::pointwise_backward, 4);  // of the mean over tokens
    const Tensor each = eager.empty({rows}, DType::fp32);
    aten::pointwise(eager, PointwiseFunction::mul, {&in[0]}, each);
    // Whether what comes in is one: the one is made on the host, which waits until the GPU has it.
    eager.recorder.host(HostClass::pointwise);
    const Tensor one = eager.empty({}, DType::fp32);
    eager.recorder.op(Copy{CopyKind::host_to_device, DType::fp32, 1, 1, 1}, {&one}, {&one});
    eager.recorder.wait_for_gpu();
    const std::array<const Tensor*, 2> read{&result, &each};
    const Tensor* written = &result;
    over_rows(eager, "element_mul", result, kScale, read, std::span(&written, 1));
    out[0] = std::move(result);
  }
  void release() override { gradient.release(); }
};

}  // namespace

Tensor fused_cross_entropy(Eager& eager, const Split& split, const Tensor& logits, const Tensor& targets) {
  eager.recorder.host(HostClass::megatron_function);
  FusedCrossEntropyBackward* node =
      eager.needs_node({&logits}) ? &eager.node<FusedCrossEntropyBackward>({&logits}) : nullptr;
  const Tensor x = logits.detached();
  const std::int64_t rows = targets.elements();
  eager.recorder.host(HostClass::pointwise, 2);
  const Tensor losses = aten::full(eager, {rows}, DType::fp32);
  const Tensor statistics = aten::full(eager, {3 * rows}, DType::fp32);
  const std::array<const Tensor*, 2> read{&x, &targets};
  const Tensor* written = &statistics;
  over_rows(eager, "online_softmax", x, kStatistics, read, std::span(&written, 1));
  Tensor all = statistics;
  if (split.several()) {
    eager.recorder.host(HostClass::pointwise);
    all = aten::full(eager, {split.ranks->ranks() * 3 * rows}, DType::fp32);
    split.ranks->group().run(CollectiveKind::all_gather, all.type, all.bytes(), statistics, all);
  }
  const std::array<const Tensor*, 3> given{&x, &targets, &all};
  const std::array<const Tensor*, 2> made{&x, &losses};
  over_rows(eager, "cross_entropy", x, kProbabilities, given, made);
  Tensor result = mean_of_losses(eager, losses);
  if (node != nullptr) {
    node->gradient = eager.save(x);
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace ridgeline::families::megatron
