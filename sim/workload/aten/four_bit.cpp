#include "sim/workload/aten/four_bit.h"

#include "sim/units/ceil_div.h"
#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

std::int64_t stored_bytes(const Tensor& x) { return x.elements() * bytes_of(x.type); }

Tensor expanded(Eager& eager, const FourBitWeight& weight, DType type) {
  Tensor scales = weight.scales;
  if (weight.outer_scales.defined()) {
    eager.recorder.host(HostClass::pointwise, 2);
    scales = eager.empty(weight.scales.sizes, DType::fp32);
    eager.recorder.op(UnknownOp{"bitsandbytes::dequantize_blockwise",
                                stored_bytes(weight.scales) + stored_bytes(weight.outer_scales), stored_bytes(scales)},
                      {&weight.scales}, {&scales});
    pointwise(eager, PointwiseFunction::add_in_place, {&scales}, scales);  // their mean was taken away
  }
  eager.recorder.host(HostClass::pointwise);
  Tensor result = eager.empty({weight.out, weight.in}, type);
  eager.recorder.op(UnknownOp{"bitsandbytes::dequantize_4bit", stored_bytes(weight.codes) + stored_bytes(scales),
                              stored_bytes(result)},
                    {&weight.codes}, {&result});
  return result;
}

struct FourBitBackward final : Node {
  FourBitBackward() : Node(HostClass::mm_backward) {}
  FourBitWeight weight;
  SavedTensor input;  ///< kept and never read, before bitsandbytes 0.43.2
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

FourBitWeight four_bit_weight(Eager& eager, std::int64_t out, std::int64_t in, bool scales_too) {
  FourBitWeight weight;
  weight.out = out;
  weight.in = in;
  const std::int64_t blocks = ceil_div(out * in, kFourBitBlock);
  weight.codes = eager.empty({ceil_div(out * in, std::int64_t{2}), 1}, DType::uint8);
  weight.scales = eager.empty({blocks}, scales_too ? DType::uint8 : DType::fp32);
  if (scales_too) weight.outer_scales = eager.empty({ceil_div(blocks, kScaleBlock)}, DType::fp32);
  for (const Tensor* part : {&weight.codes, &weight.scales, &weight.outer_scales})
    if (part->defined()) eager.recorder.set_category(part->storage.id(), Category::weights);
  return weight;
}

Tensor four_bit_linear(Eager& eager, const Tensor& x, const FourBitWeight& weight, const Tensor* bias) {
  FourBitBackward* node = nullptr;
  if (eager.needs_node({&x})) {
    node = &eager.node<FourBitBackward>({&x});
    node->weight = weight;
    if (eager.four_bit_keeps_input) node->input = eager.save(x);
  }
  const bool gradients_enabled = std::exchange(eager.gradients_enabled, false);
  Tensor result = linear(eager, x, expanded(eager, weight, x.type), bias);
  eager.gradients_enabled = gradients_enabled;
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace ridgeline::eager::aten
