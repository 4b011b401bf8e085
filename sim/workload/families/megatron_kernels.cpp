// Fused kernels of Megatron-LM and apex, and views of heads.
#include "sim/workload/aten/grouped.h"
#include "sim/workload/families/megatron_functions.h"

namespace ridgeline::families::megatron {

namespace aten = eager::aten;
using eager::Gradients;
using eager::Node;
using eager::SavedTensor;

namespace {

constexpr std::int64_t kGelu = 20, kGeluBackward = 35, kSilu = 12, kSiluBackward = 20, kSoftmax = 8, kRope = 6;
/// Instructions of a run of Philox, ten rounds that make four numbers. Triton's tl.rand takes one of them.
constexpr std::int64_t kDraw = 150, kNumbersOfDraw = 4;

struct Operand {
  const Tensor* tensor = nullptr;
  double share = 1.0;  ///< of its bytes that are moved
};

/// One kernel over the elements of `over`.
void launch(Eager& eager, std::string_view name, FusedKernel::Shape shape, const Tensor& over, std::int64_t arithmetic,
            std::initializer_list<Operand> inputs, std::initializer_list<Operand> outputs) {
  FusedKernel op;
  op.name = name;
  op.shape = shape;
  op.cols = over.sizes.last();
  op.rows = over.elements() / op.cols;
  op.type = over.type;
  op.arithmetic = arithmetic;
  std::vector<const Tensor*> read, written;
  const auto bytes = [](const Operand& o) {
    return static_cast<std::int64_t>(o.share * static_cast<double>(o.tensor->bytes()));
  };
  for (const Operand& o : inputs) {
    op.reads.push_back(bytes(o));
    read.push_back(o.tensor);
  }
  for (const Operand& o : outputs) {
    op.writes.push_back(bytes(o));
    written.push_back(o.tensor);
  }
  eager.recorder.op(op, read, written);
}

constexpr auto kPointwise = FusedKernel::Shape::pointwise;
constexpr auto kRows = FusedKernel::Shape::rows;

/// Of the scores, what lies on or below the diagonal: about.
double share_read(bool causal) { return causal ? 0.5 : 1.0; }

struct SoftmaxBackward final : Node {
  explicit SoftmaxBackward(bool masked) : Node(HostClass::megatron_function_backward), causal(masked) {}
  bool causal;
  SavedTensor result;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor y = result.unpack(eager);
    const double share = share_read(causal);
    launch(eager, "scaled_masked_softmax_backward", kRows, y, kSoftmax, {{&in[0], share}, {&y, share}}, {{&in[0]}});
    out[0] = in[0];  // written over the incoming gradient
  }
  void release() override { result.release(); }
};

struct BiasGeluBackward final : Node {
  BiasGeluBackward() : Node(HostClass::megatron_function_backward) {}
  SavedTensor bias, input;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor b = bias.unpack(eager), x = input.unpack(eager);
    out[0] = eager.empty_like(in[0]);
    launch(eager, "bias_gelu_back", kPointwise, x, kGeluBackward, {{&in[0]}, {&x}, {&b}}, {{&out[0]}});
    out[1] = out[0];
  }
  void release() override {
    bias.release();
    input.release();
  }
};

struct BiasDropoutAddBackward final : Node {
  BiasDropoutAddBackward() : Node(HostClass::megatron_function_backward) {}
  SavedTensor mask;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[1] = in[0];
    out[0] = in[0];
    if (mask.defined()) {
      const Tensor kept = mask.unpack(eager);
      out[0] = eager.empty_like(in[0]);
      aten::pointwise(eager, PointwiseFunction::dropout_backward, {&in[0], &kept}, out[0]);
    }
    if (edge_count == 3 && needs(2)) out[2] = out[0];
  }
  void release() override { mask.release(); }
};

struct SwigluBackward final : Node {
  SwigluBackward() : Node(HostClass::megatron_function_backward) {}
  SavedTensor input;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = input.unpack(eager);
    out[0] = eager.empty_like(x);
    launch(eager, "swiglu_back", kPointwise, in[0], kSiluBackward, {{&in[0]}, {&x}}, {{&out[0]}});
  }
  void release() override { input.release(); }
};

struct RotateBackward final : Node {
  RotateBackward() : Node(HostClass::megatron_function_backward) {}
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[0] = eager.empty(in[0].sizes, in[0].type);
    launch(eager, "fused_rope_backward", kPointwise, in[0], kRope, {{&in[0]}}, {{&out[0]}});
  }
};

struct RmsNormBackward final : Node {
  RmsNormBackward() : Node(HostClass::layer_norm_backward) {}
  SavedTensor input, weight, deviation;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = input.unpack(eager), w = weight.unpack(eager), d = deviation.unpack(eager);
    const std::int64_t cols = x.sizes.last();
    out[0] = eager.empty_like(x);
    out[1] = eager.empty_like(w);
    eager.recorder.op(Norm{true, true, false, x.type, x.elements() / cols, cols}, {&in[0], &x, &w, &d},
                      {&out[0], &out[1]});
  }
  void release() override {
    input.release();
    weight.release();
    deviation.release();
  }
};

struct SplitHeadsBackward final : Node {
  SplitHeadsBackward() : Node(HostClass::split_backward) {}
  Dims sizes;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[0] = eager.empty(sizes, output_type);
    std::int64_t parts = 0;
    for (const Tensor& part : in) parts += part.defined();
    std::vector<const Tensor*> given;
    for (const Tensor& part : in)
      if (part.defined()) given.push_back(&part);
    const std::int64_t cols = sizes.last(), rows = sizes.product() / cols;
    const Tensor* result = &out[0];
    eager.recorder.op(Copy{CopyKind::concatenate_strided, output_type, rows, cols / parts, parts}, given,
                      std::span(&result, 1));
  }
};

}  // namespace

Tensor scale_mask_softmax(Eager& eager, const Tensor& scores, bool causal) {
  eager.recorder.host(HostClass::megatron_function);
  SoftmaxBackward* node = eager.needs_node({&scores}) ? &eager.node<SoftmaxBackward>({&scores}, causal) : nullptr;
  Tensor result = eager.empty(scores.sizes, scores.type);
  launch(eager, causal ? "scaled_upper_triang_masked_softmax" : "scaled_masked_softmax", kRows, scores, kSoftmax,
         {{&scores, share_read(causal)}}, {{&result}});
  if (node != nullptr) {
    node->result = eager.save(result);
    Eager::attach(result, *node);
  }
  return result;
}

bool fused_softmax_takes(const Tensor& scores) {
  const std::int64_t matrices = scores.sizes[0] * scores.sizes[1], queries = scores.sizes[2], keys = scores.sizes[3];
  return scores.type != DType::fp32 && keys > 16 && keys <= 4096 && queries % 4 == 0 && keys % 4 == 0 &&
         matrices % 4 == 0;
}

Tensor separate_softmax(Eager& eager, const Tensor& scores, const Tensor& hidden) {
  const bool widened = scores.type == DType::fp16;
  Tensor x = scores;
  if (widened) {
    eager.recorder.host(HostClass::cast);
    x = scale(eager, aten::to(eager, scores, DType::fp32));
  }
  eager.recorder.host(HostClass::masked_fill);
  x = aten::masked_in_place(eager, std::move(x), hidden);
  x = softmax(eager, x);
  if (widened) eager.recorder.host(HostClass::cast);
  return aten::to(eager, x, scores.type);
}

Tensor bias_gelu(Eager& eager, const Tensor& x, const Tensor& bias) {
  eager.recorder.host(HostClass::megatron_function);
  BiasGeluBackward* node = nullptr;
  if (eager.needs_node({&x, &bias})) {
    node = &eager.node<BiasGeluBackward>({&x, &bias});
    node->bias = eager.save(bias);
    node->input = eager.save(x);
  }
  Tensor result = eager.empty_like(x);
  launch(eager, "bias_gelu", kPointwise, x, kGelu, {{&x}, {&bias}}, {{&result}});
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor bias_dropout_add(Eager& eager, const Tensor& x, const Tensor& bias, const Tensor& residual, double dropout) {
  eager.recorder.host(HostClass::megatron_function);
  BiasDropoutAddBackward* node = nullptr;
  if (eager.needs_node({&x, &residual}))
    node = bias.defined() ? &eager.node<BiasDropoutAddBackward>({&x, &residual, &bias})
                          : &eager.node<BiasDropoutAddBackward>({&x, &residual});
  Tensor mask;
  if (dropout > 0.0) mask = eager.empty_like(x, DType::boolean);
  Tensor result = eager.empty_like(x);
  const Tensor& row = bias.defined() ? bias : residual;
  if (mask.defined()) {
    const std::int64_t random = eager.jit_draws_by_four ? kDraw / kNumbersOfDraw : kDraw;
    launch(eager, "bias_dropout_add", kPointwise, x, random, {{&x}, {&residual}, {&row, bias.defined() ? 1.0 : 0.0}},
           {{&result}, {&mask}});
    if (node != nullptr) node->mask = eager.save(mask);
  } else {
    launch(eager, "bias_dropout_add", kPointwise, x, 2, {{&x}, {&residual}, {&row, bias.defined() ? 1.0 : 0.0}},
           {{&result}});
  }
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor swiglu(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::megatron_function);
  SwigluBackward* node = eager.needs_node({&x}) ? &eager.node<SwigluBackward>({&x}) : nullptr;
  if (node != nullptr) node->input = eager.save(x);
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] /= 2;
  Tensor result = eager.empty(sizes, x.type);
  launch(eager, "swiglu", kPointwise, result, kSilu, {{&x}}, {{&result}});
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor rotate(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::megatron_function);
  RotateBackward* node = eager.needs_node({&x}) ? &eager.node<RotateBackward>({&x}) : nullptr;
  Tensor result = eager.empty(x.sizes, x.type);
  launch(eager, "fused_rope", kPointwise, x, kRope, {{&x}}, {{&result}});
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor rms_norm(Eager& eager, const Tensor& x, const Parameter& weight) {
  eager.recorder.host(HostClass::layer_norm_module);
  RmsNormBackward* node = nullptr;
  if (eager.needs_node({&x, &weight.value})) {
    node = &eager.node<RmsNormBackward>({&x, &weight.value});
    node->input = eager.save(x);
    node->weight = eager.save(weight.value);
  }
  const std::int64_t cols = x.sizes.last(), rows = x.elements() / cols;
  Tensor result = eager.empty(x.sizes, x.type);
  const Tensor deviation = eager.empty({rows}, DType::fp32);
  eager.recorder.op(Norm{true, false, false, x.type, rows, cols}, {&x, &weight.value}, {&result, &deviation});
  if (node != nullptr) {
    node->deviation = eager.save(deviation);
    Eager::attach(result, *node);
  }
  return result;
}

std::array<Tensor, 3> split_heads(Eager& eager, const Tensor& mixed, std::int64_t queries, std::int64_t keys,
                                  std::int64_t width) {
  eager.recorder.host(HostClass::view);
  eager.recorder.host(HostClass::split);
  SplitHeadsBackward* node = eager.needs_node({&mixed}) ? &eager.node<SplitHeadsBackward>({&mixed}) : nullptr;
  const std::int64_t sharing = queries / keys, of_group = (sharing + 2) * width, row = mixed.sizes.last();
  std::array<Tensor, 3> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Tensor& part = parts[i];
    part = mixed.detached();
    part.sizes = {mixed.sizes[0], mixed.sizes[1], keys, i == 0 ? sharing * width : width};
    part.strides = {mixed.sizes[1] * row, row, of_group, 1};
    if (node != nullptr) Eager::attach(part, *node, static_cast<int>(i));
  }
  if (node != nullptr) {
    node->sizes = mixed.sizes;
    node->sizes_differ = sharing > 1;
  }
  if (sharing > 1) {
    eager.recorder.host(HostClass::contiguous);
    parts[0] = aten::reshape(eager, parts[0], {mixed.sizes[0], mixed.sizes[1], queries, width});
  }
  return parts;
}

}  // namespace ridgeline::families::megatron
