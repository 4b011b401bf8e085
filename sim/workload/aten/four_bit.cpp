#include "sim/workload/aten/four_bit.h"

#include <string>
#include <string_view>
#include <utility>

#include "sim/units/ceil_div.h"
#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/aten/weight_only.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

std::int64_t stored_bytes(const Tensor& x) { return x.elements() * bytes_of(x.type); }

std::string_view expansion_of(FrozenWeights kind) {
  return kind == FrozenWeights::gptq  ? "gptq::dequantize"
         : kind == FrozenWeights::awq ? "awq::dequantize"
                                      : "hqq::dequantize";
}

Tensor with_type(Eager& eager, const Tensor& x, DType type) {
  if (x.type == type) return x;
  eager.recorder.host(HostClass::pointwise);
  return to(eager, x, type);
}

void library_kernel(Eager& eager, PointwiseFunction function, const Tensor& x, const Tensor& sizes,
                    const Tensor& result) {
  Pointwise op;
  op.function = function;
  op.cols = sizes.sizes.last();
  op.rows = sizes.elements() / op.cols;
  op.inputs[0] = x.type;
  op.output = result.type;
  eager.recorder.host(HostClass::pointwise);
  eager.recorder.op(op, {&x}, {&result});
}

/// The weight of LLM.int8 in `type`: a cast, then the scales of its rows, divided by 127.
Tensor expanded_rows(Eager& eager, const FourBitWeight& weight, DType type) {
  eager.recorder.host(HostClass::pointwise, 3);
  Tensor result = eager.empty({weight.out, weight.in}, type);
  pointwise(eager, PointwiseFunction::cast, {&weight.codes}, result);
  Tensor scales = eager.empty({weight.out, 1}, DType::fp32);
  pointwise(eager, PointwiseFunction::scale, {&weight.scales}, scales);
  pointwise(eager, PointwiseFunction::mul, {&result, &scales}, result);
  return result;
}

Tensor expanded(Eager& eager, const FourBitWeight& weight, DType type) {
  if (weight.kind == FrozenWeights::int8) return expanded_rows(eager, weight, type);
  Tensor scales = weight.scales;
  if (weight.outer_scales.defined()) {
    scales = eager.empty(weight.scales.sizes, DType::fp32);
    library_kernel(eager, PointwiseFunction::expand_8bit, weight.scales, scales, scales);
    eager.recorder.host(HostClass::pointwise);
    pointwise(eager, PointwiseFunction::add_in_place, {&scales}, scales);  // their mean was taken away
  }
  Tensor result = eager.empty({weight.out, weight.in}, type);
  if (weight.kind == FrozenWeights::nf4 || weight.kind == FrozenWeights::nf4_double) {
    library_kernel(eager, PointwiseFunction::expand_4bit, weight.codes, result, result);
    return result;
  }
  eager.recorder.host(HostClass::pointwise);
  const std::int64_t zeros = weight.zeros.defined() ? stored_bytes(weight.zeros) : 0;
  eager.recorder.op(UnknownOp{std::string(expansion_of(weight.kind)),
                              stored_bytes(weight.codes) + stored_bytes(scales) + zeros, stored_bytes(result)},
                    {&weight.codes}, {&result});
  return result;
}

/// The host asks whether a number of x is an outlier (llm_int8_threshold: 6); none is taken to be.
void look_for_outliers(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::pointwise, 3);
  Tensor large = eager.empty(x.sizes, DType::boolean);
  {
    const Tensor sizes = eager.empty(x.sizes, x.type);
    pointwise(eager, PointwiseFunction::other, {&x}, sizes);  // |x|
    pointwise(eager, PointwiseFunction::equal, {&sizes}, large);
  }
  const Tensor any = eager.empty({}, DType::boolean);
  eager.recorder.op(Reduction{ReductionKind::sum_all, DType::boolean, 1, x.elements()}, {&large}, {&any});
  eager.recorder.op(Copy{CopyKind::device_to_host, DType::boolean, 1, 1, 1}, {&any}, {});
  eager.recorder.wait_for_gpu();
}

// MatMul8bitLt: rows of the input are quantized from fp16, the product gives 32-bit integers, a kernel scales them to
// fp16.
Tensor product_of_eight_bits(Eager& eager, const Tensor& x, const FourBitWeight& weight, const Tensor* bias) {
  const std::int64_t rows = x.elements() / weight.in;
  Tensor codes, scales;
  {
    const Tensor given = with_type(eager, x, DType::fp16);
    look_for_outliers(eager, given);
    codes = eager.empty({rows, weight.in}, DType::uint8);
    scales = eager.empty({rows}, DType::fp32);
    library_kernel(eager, PointwiseFunction::quantize_rows, given, codes, codes);
  }
  Tensor sums = eager.empty({rows, weight.out}, DType::int32);
  const Matmul product = integer_product(rows, weight.out, weight.in, eager.product_type(x.type));
  eager.recorder.host(HostClass::matmul);
  eager.recorder.op(product, {&codes, &weight.codes}, {&sums});
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = weight.out;
  Tensor result = eager.empty(sizes, DType::fp16);
  library_kernel(eager, PointwiseFunction::scale_sums, sums, result, result);
  sums = Tensor{};
  result = with_type(eager, result, x.type);
  if (bias != nullptr) pointwise(eager, PointwiseFunction::add, {&result, bias}, result);
  return result;
}

struct FourBitBackward final : Node {
  FourBitBackward() : Node(HostClass::mm_backward) {}
  FourBitWeight weight;
  SavedTensor input;  ///< kept and never read: of int8, and of NF4 before bitsandbytes 0.43.2
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor rows = reshape(eager, in[0], {in[0].elements() / weight.out, weight.out});
    const Tensor gradient = mm(eager, rows, expanded(eager, weight, in[0].type));
    Dims sizes = in[0].sizes;
    sizes[sizes.rank() - 1] = weight.in;
    out[0] = view(eager, gradient, sizes);
  }
  void release() override {
    input.release();
    weight = {};
  }
};

}  // namespace

FourBitWeight four_bit_weight(Eager& eager, std::int64_t out, std::int64_t in, FrozenWeights kind, DType type) {
  FourBitWeight weight;
  weight.kind = kind;
  weight.out = out;
  weight.in = in;
  const std::int64_t blocks = ceil_div(out * in, kFourBitBlock), groups = ceil_div(in, kFourBitGroup);
  const bool eight = kind == FrozenWeights::int8 || kind == FrozenWeights::int8_only || kind == FrozenWeights::fp8;
  weight.codes = eager.empty(eight ? Dims{out, in} : Dims{ceil_div(out * in, std::int64_t{2}), 1}, DType::uint8);
  switch (kind) {
    case FrozenWeights::int8:
    case FrozenWeights::fp8: weight.scales = eager.empty({out}, DType::fp32); break;
    case FrozenWeights::int8_only: weight.scales = eager.empty({out}, type); break;
    case FrozenWeights::int4_only: weight.scales = eager.empty({groups, out, 2}, DType::bf16); break;
    case FrozenWeights::gptq:
    case FrozenWeights::awq: {
      weight.scales = eager.empty({groups, out}, DType::fp16);
      constexpr std::int64_t kInWord = 8;
      const std::int64_t order = kind == FrozenWeights::gptq ? in : 0;
      weight.zeros = eager.empty({groups * ceil_div(out, kInWord) + order}, DType::int32);
      break;
    }
    case FrozenWeights::hqq:
      weight.scales = eager.empty({blocks}, type);
      weight.zeros = eager.empty({blocks}, type);
      break;
    case FrozenWeights::nf4_double:
      weight.scales = eager.empty({blocks}, DType::uint8);
      weight.outer_scales = eager.empty({ceil_div(blocks, kScaleBlock)}, DType::fp32);
      break;
    case FrozenWeights::as_stored:
    case FrozenWeights::nf4: weight.scales = eager.empty({blocks}, DType::fp32); break;
  }
  for (const Tensor* part : {&weight.codes, &weight.scales, &weight.outer_scales, &weight.zeros})
    if (part->defined()) eager.recorder.set_category(part->storage.id(), Category::weights);
  return weight;
}

Tensor four_bit_linear(Eager& eager, const Tensor& x, const FourBitWeight& weight, const Tensor* bias) {
  FourBitBackward* node = nullptr;
  if (eager.needs_node({&x})) {
    node = &eager.node<FourBitBackward>({&x});
    node->weight = weight;
    const bool nf4 = weight.kind == FrozenWeights::nf4 || weight.kind == FrozenWeights::nf4_double;
    const bool keeps = nf4 ? eager.four_bit_keeps_input : weight.kind == FrozenWeights::int8;
    if (keeps) node->input = eager.save(x);
  }
  const bool gradients_enabled = std::exchange(eager.gradients_enabled, false);
  // Libraries expand the weight wherever their script runs with gradients, those of adapters too.
  Tensor result = weight.kind == FrozenWeights::int8 ? product_of_eight_bits(eager, x, weight, bias)
                  : multiplies_codes(x, weight, gradients_enabled)
                      ? product_of_codes(eager, x, weight, bias)
                      : linear(eager, x, expanded(eager, weight, x.type), bias);
  eager.gradients_enabled = gradients_enabled;
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace ridgeline::eager::aten
