// Lowering of batch norm and pooling, and sizes of images.
#pragma once

#include "sim/hardware/chip_shape.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {

struct ImageSizes {
  double elements, bytes;
  std::int64_t spatial;  ///< pixels of an image
};
inline ImageSizes image_sizes(const ImageOp& op) {
  const std::int64_t spatial = op.pixels();
  const double elements =
      static_cast<double>(op.batch) * static_cast<double>(op.channels) * static_cast<double>(spatial);
  return {elements, elements * static_cast<double>(bytes_of(op.type)), spatial};
}

/// PyTorch's kernels for bf16, cuDNN's for fp16 and fp32 (_select_batch_norm_backend), by layout and size.
LoweredOp lower_batch_norm(const ImageOp& op, const ChipShape& chip);
/// Maximum and mean of windows, by layout.
LoweredOp lower_pooling(const ImageOp& op);

}  // namespace ridgeline
