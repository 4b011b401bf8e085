// Linear layers of Megatron-LM.
#include "sim/workload/families/megatron_functions.h"

namespace ridgeline::families::megatron {

namespace aten = eager::aten;
using eager::Gradients;
using eager::Node;
using eager::SavedTensor;

namespace {

/// [rows, last dimension].
Tensor rows_of(Eager& eager, const Tensor& x) {
  return aten::reshape(eager, x, {x.elements() / x.sizes.last(), x.sizes.last()});
}

/// x times the transposed weight, with the leading dimensions of x.
Tensor product(Eager& eager, const Tensor& x, const Tensor& weight) {
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = weight.sizes[0];
  return aten::view(eager, aten::mm(eager, rows_of(eager, x), aten::t(eager, weight)), sizes);
}

/// A product that adds to a buffer is counted as one into what stands for it; the sum follows it as a kernel.
Tensor weight_gradient(Eager& eager, const Split& split, const Tensor& gradient, const Tensor& input) {
  if (split.stand_ins == nullptr) return aten::mm(eager, gradient, input);
  Tensor result = split.stand_ins->of(eager, {gradient.sizes[0], input.sizes[1]}, input.type);
  aten::mm_into(eager, gradient, input, result);
  return result;
}

/// Gradients of a product: of the input, whatever is exchanged meanwhile, then of the weight.
struct LinearBackward final : Node {
  LinearBackward(const Split& how, bool of_columns)
      : Node(HostClass::megatron_linear_backward), split(how), columns(of_columns) {}
  Split split;
  bool columns;
  SavedTensor input, weight;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor w = weight.unpack(eager);
    Tensor x = input.unpack(eager), gradient = in[0];
    const bool gathers = columns && split.several() && split.sequence;
    parallel::ProcessGroup* group = split.several() ? &split.ranks->group() : nullptr;
    if (!columns && split.several() && split.sequence) gradient = split.ranks->all_gather(gradient, 0);
    Tensor whole = x;
    parallel::Work gathering, sending;
    if (gathers) {
      whole.sizes[0] *= split.ranks->ranks();
      whole = eager.empty(whole.sizes, x.type);
      gathering = group->start(CollectiveKind::all_gather, x.type, whole.bytes(), x, whole);
    }
    const Tensor rows = rows_of(eager, gradient);
    Tensor to_input = aten::view(eager, aten::mm(eager, rows, w), whole.sizes);
    Tensor part;
    if (gathers) {
      group->wait(gathering);
      part = eager.empty(x.sizes, x.type);
      sending = group->start(CollectiveKind::reduce_scatter, x.type, to_input.bytes(), to_input, part);
    } else if (columns && split.several()) {
      sending = group->start(CollectiveKind::all_reduce, x.type, to_input.bytes(), to_input, to_input);
    }
    out[1] = weight_gradient(eager, split, aten::t(eager, rows), rows_of(eager, whole));
    if (gathers || (columns && split.several())) group->wait(sending);
    out[0] = gathers ? std::move(part) : std::move(to_input);
    if (edge_count == 3 && needs(2)) out[2] = gradient;  // the engine sums it to the size of the bias
  }
  void release() override {
    input.release();
    weight.release();
  }
};

/// The product without autograd of its own.
Tensor forward(Eager& eager, const Tensor& x, const Tensor& weight) {
  const bool gradients = std::exchange(eager.gradients_enabled, false);
  Tensor result = product(eager, x.detached(), weight.detached());
  eager.gradients_enabled = gradients;
  result.view = false;
  return result;
}

/// As Megatron-LM before 2022-01 and Megatron-DeepSpeed before 2023-07 have it: torch.nn.functional.linear, which adds
/// a bias in the product, and autograd functions of their own around what is exchanged.
Tensor separate_linear(Eager& eager, const Tensor& x, Parameter& weight, Parameter* bias) {
  eager.recorder.host(HostClass::linear);
  return aten::linear(eager, x, weight.value, bias != nullptr ? &bias->value : nullptr);
}

}  // namespace

const Tensor& StandIns::of(Eager& eager, const Dims& sizes, DType type) {
  for (const Tensor& tensor : kept_)
    if (tensor.sizes == sizes && tensor.type == type) return tensor;
  kept_.push_back(eager.empty(sizes, type));
  eager.recorder.set_category(kept_.back().storage.id(), Category::gradients);
  return kept_.back();
}

Tensor column_linear(Eager& eager, const Split& split, const Tensor& x, Parameter& weight, Parameter* bias) {
  if (split.separate()) {
    if (split.several()) eager.recorder.host(HostClass::tensor_boundary);
    return separate_linear(eager, split.several() ? split.ranks->enter(x) : x, weight, bias);
  }
  eager.recorder.host(HostClass::megatron_linear);
  LinearBackward* node = nullptr;
  if (eager.needs_node({&x, &weight.value})) {
    node = bias != nullptr ? &eager.node<LinearBackward>({&x, &weight.value, &bias->value}, split, true)
                           : &eager.node<LinearBackward>({&x, &weight.value}, split, true);
    node->input = eager.save(x);
    node->weight = eager.save(weight.value);
  }
  Tensor whole = split.several() && split.sequence ? split.ranks->all_gather(x.detached(), 0) : x;
  Tensor result = forward(eager, whole, weight.value);
  whole = Tensor{};
  if (bias != nullptr) {
    Tensor sum = eager.empty_like(result);
    aten::pointwise(eager, PointwiseFunction::add, {&result, &bias->value}, sum);
    result = std::move(sum);
  }
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor row_linear(Eager& eager, const Split& split, const Tensor& x, Parameter& weight) {
  if (split.separate()) {
    const Tensor part = separate_linear(eager, x, weight, nullptr);
    if (!split.several()) return part;
    eager.recorder.host(HostClass::tensor_boundary);
    return split.ranks->leave(part);
  }
  eager.recorder.host(HostClass::megatron_linear);
  LinearBackward* node = nullptr;
  if (eager.needs_node({&x, &weight.value})) {
    node = &eager.node<LinearBackward>({&x, &weight.value}, split, false);
    node->input = eager.save(x);
    node->weight = eager.save(weight.value);
  }
  Tensor result = forward(eager, x, weight.value);
  if (split.several()) {
    eager.recorder.host(HostClass::tensor_boundary);
    if (split.sequence) result = split.ranks->reduce_scatter(result, 0);
    else split.ranks->all_reduce(result);
  }
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace ridgeline::families::megatron
