#include "sim/kernels/lowering.h"

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "sim/kernels/families.h"
#include "sim/kernels/products/tile_menu.h"

namespace ridgeline {
namespace {

struct Lowerer {
  const Gpu& gpu;
  const Software& software;
  const std::shared_ptr<const GpuMenus>& menus;
  LoweredOp operator()(const Matmul& op) const { return lower_matmul(op, gpu, software, menus); }
  LoweredOp operator()(const Attention& op) const {
    return op.backend == AttentionBackend::math ? lower_math_attention(op, Lowering(gpu, software, menus))
                                                : lower_attention(op, gpu, software);
  }
  LoweredOp operator()(const Convolution& op) const { return lower_convolution(op, gpu, software, menus); }
  LoweredOp operator()(const auto& op) const { return KernelsByShape{gpu, software}(op); }
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
    : Lowering(gpu, software, std::make_shared<const GpuMenus>(gpu)) {}

Lowering::Lowering(const Gpu& gpu, const Software& software, std::shared_ptr<const GpuMenus> menus)
    : gpu_(&gpu), software_(&software), menus_(std::move(menus)) {}

namespace {

/// What `lowerer` makes of an op as the libraries of a chip with these SMs take it.
template <class Any>
LoweredOp visited(const Op& op, const SmSpec& sm, const Any& lowerer) {
  if (sm.rates.tensor_tf32 > 0.0) return std::visit(lowerer, op);
  return std::visit(lowerer, without_tf32(op));
}

}  // namespace

LoweredOp Lowering::lower(const Op& op) const { return visited(op, gpu_->sm, Lowerer{*gpu_, *software_, menus_}); }

LoweredOp lower(const Op& op, const Gpu& gpu, const Software& software) { return Lowering(gpu, software).lower(op); }

bool is_lowered_by_shape(const Op& op) {
  return std::visit([](const auto& of) { return std::is_invocable_v<KernelsByShape, decltype(of)>; }, op);
}

LoweredOp lower_by_shape(const Op& op, const ChipShape& chip, const Software& software) {
  const KernelsByShape rules{chip, software};
  return visited(op, chip.sm, [&](const auto& of) -> LoweredOp {
    if constexpr (std::is_invocable_v<KernelsByShape, decltype(of)>) return rules(of);
    throw std::logic_error("the kernels of this op do not follow from the shape of a chip");
  });
}

}  // namespace ridgeline
