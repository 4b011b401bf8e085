#include "sim/kernels/lowering.h"

#include "sim/kernels/families.h"
#include "sim/kernels/products/tile_menu.h"

namespace ridgeline {
namespace {

struct Lowerer {
  const Gpu& gpu;
  const Software& software;
  const std::shared_ptr<const GpuMenus>& menus;
  LoweredOp operator()(const Matmul& op) const { return lower_matmul(op, gpu, software, menus); }
  LoweredOp operator()(const Attention& op) const { return lower_attention(op, gpu, software); }
  LoweredOp operator()(const Convolution& op) const { return lower_convolution(op, gpu, software, menus); }
  LoweredOp operator()(const Pointwise& op) const { return lower_pointwise(op, gpu, software); }
  LoweredOp operator()(const Copy& op) const { return lower_copy(op, gpu, software); }
  LoweredOp operator()(const Softmax& op) const { return lower_softmax(op, gpu, software); }
  LoweredOp operator()(const Norm& op) const { return lower_norm(op, gpu, software); }
  LoweredOp operator()(const Reduction& op) const { return lower_reduction(op, gpu, software); }
  LoweredOp operator()(const Dropout& op) const { return lower_dropout(op, gpu, software); }
  LoweredOp operator()(const Embedding& op) const { return lower_embedding(op, gpu, software); }
  LoweredOp operator()(const NllLoss& op) const { return lower_nll_loss(op, gpu, software); }
  LoweredOp operator()(const MultiTensor& op) const { return lower_multi_tensor(op, gpu, software); }
  LoweredOp operator()(const ImageOp& op) const { return lower_image(op, gpu, software); }
  LoweredOp operator()(const Memset& op) const { return lower_memset(op, gpu, software); }
  LoweredOp operator()(const Sort& op) const { return lower_sort(op, gpu, software); }
  LoweredOp operator()(const FusedKernel& op) const { return lower_fused(op, gpu, software); }
  LoweredOp operator()(const Collective& op) const { return lower_collective(op, gpu, software); }
  LoweredOp operator()(const UnknownOp& op) const { return lower_unknown(op, gpu, software); }
};

/// Libraries ignore that TF32 is allowed where there is no unit for it.
Op without_tf32(Op op) {
  std::visit(
      [](auto& of) {
        if constexpr (requires { of.type == DType::tf32; })
          if (of.type == DType::tf32) of.type = DType::fp32;
      },
      op);
  return op;
}

}  // namespace

Lowering::Lowering(const Gpu& gpu, const Software& software)
    : gpu_(&gpu), software_(&software), menus_(std::make_shared<const GpuMenus>(gpu)) {}

LoweredOp Lowering::lower(const Op& op) const {
  const Lowerer lowerer{*gpu_, *software_, menus_};
  if (gpu_->sm.rates.tensor_tf32 > 0.0) return std::visit(lowerer, op);
  return std::visit(lowerer, without_tf32(op));
}

LoweredOp lower(const Op& op, const Gpu& gpu, const Software& software) { return Lowering(gpu, software).lower(op); }

}  // namespace ridgeline
