// The lowering rule of each op family, one file a family. `lower` (lowering.h) dispatches to them.
#pragma once

#include "sim/hardware/chip_shape.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {

LoweredOp lower_matmul(const Matmul& op, const Gpu& gpu, const Software& software,
                       const std::shared_ptr<const GpuMenus>& menus);
LoweredOp lower_attention(const Attention& op, const Gpu& gpu, const Software& software);
LoweredOp lower_math_attention(const Attention& op, const Lowering& lowering);
LoweredOp lower_convolution(const Convolution& op, const Gpu& gpu, const Software& software,
                            const std::shared_ptr<const GpuMenus>& menus);
LoweredOp lower_pointwise(const Pointwise& op, const ChipShape& chip, const Software& software);
LoweredOp lower_copy(const Copy& op, const ChipShape& chip, const Software& software);
LoweredOp lower_softmax(const Softmax& op, const ChipShape& chip, const Software& software);
LoweredOp lower_norm(const Norm& op, const ChipShape& chip, const Software& software);
LoweredOp lower_reduction(const Reduction& op, const ChipShape& chip, const Software& software);
LoweredOp lower_dropout(const Dropout& op, const ChipShape& chip, const Software& software);
LoweredOp lower_embedding(const Embedding& op, const ChipShape& chip, const Software& software);
LoweredOp lower_embedding_bags(const Embedding& op, const ChipShape& chip);
LoweredOp lower_nll_loss(const NllLoss& op, const ChipShape& chip, const Software& software);
LoweredOp lower_multi_tensor(const MultiTensor& op, const ChipShape& chip, const Software& software);
LoweredOp lower_image(const ImageOp& op, const ChipShape& chip, const Software& software);
LoweredOp lower_resampling(const Resampling& op, const ChipShape& chip, const Software& software);
LoweredOp lower_memset(const Memset& op, const ChipShape& chip, const Software& software);
LoweredOp lower_sort(const Sort& op, const ChipShape& chip, const Software& software);
LoweredOp lower_fused(const FusedKernel& op, const ChipShape& chip, const Software& software);
LoweredOp lower_collective(const Collective& op, const ChipShape& chip, const Software& software);
LoweredOp lower_unknown(const UnknownOp& op, const ChipShape& chip, const Software& software);

/// Operations whose kernels follow from the shape of a chip: a declaration above and a line here each.
struct KernelsByShape {
  const ChipShape& chip;
  const Software& software;
  LoweredOp operator()(const Pointwise& op) const { return lower_pointwise(op, chip, software); }
  LoweredOp operator()(const Copy& op) const { return lower_copy(op, chip, software); }
  LoweredOp operator()(const Softmax& op) const { return lower_softmax(op, chip, software); }
  LoweredOp operator()(const Norm& op) const { return lower_norm(op, chip, software); }
  LoweredOp operator()(const Reduction& op) const { return lower_reduction(op, chip, software); }
  LoweredOp operator()(const Dropout& op) const { return lower_dropout(op, chip, software); }
  LoweredOp operator()(const Embedding& op) const { return lower_embedding(op, chip, software); }
  LoweredOp operator()(const NllLoss& op) const { return lower_nll_loss(op, chip, software); }
  LoweredOp operator()(const MultiTensor& op) const { return lower_multi_tensor(op, chip, software); }
  LoweredOp operator()(const ImageOp& op) const { return lower_image(op, chip, software); }
  LoweredOp operator()(const Memset& op) const { return lower_memset(op, chip, software); }
  LoweredOp operator()(const Resampling& op) const { return lower_resampling(op, chip, software); }
  LoweredOp operator()(const Sort& op) const { return lower_sort(op, chip, software); }
  LoweredOp operator()(const FusedKernel& op) const { return lower_fused(op, chip, software); }
  LoweredOp operator()(const Collective& op) const { return lower_collective(op, chip, software); }
  LoweredOp operator()(const UnknownOp& op) const { return lower_unknown(op, chip, software); }
};

}  // namespace ridgeline
