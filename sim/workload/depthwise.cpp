#include "sim/workload/depthwise.h"

namespace ridgeline {
namespace {

/// PyTorch's table of fp16 convolutions that cuDNN runs faster (check_cudnn_depthwise_workload_with_filter).
bool is_faster_in_cudnn(const Convolution& op) {
  constexpr std::int64_t kFewestChannels = 32, kLeastWidth = 7;
  if (op.in_channels < kFewestChannels) return false;
  const std::int64_t stride = op.stride_columns(), filter = op.kernel_columns(), width = op.columns();
  if (op.size != 1 && op.stride != stride) return false;
  if (op.size == 1 && stride == 1) return true;
  if (op.kernel != filter || (filter != 1 && filter != 3 && filter != 5) || width < kLeastWidth) return false;
  if (stride == 1) return true;
  if (stride != 2) return false;
  if (op.batch == 1) return filter != 1 || width <= 28;
  if (filter == 1) return op.batch <= 16 && op.in_channels >= 128 && width <= kLeastWidth;
  return op.in_channels >= 512 || (op.in_channels >= 256 && width >= 28);
}

}  // namespace

bool runs_pytorch_depthwise(const Convolution& op) {
  if (!op.depthwise() || op.channels_last) return false;
  return op.type != DType::fp16 || !is_faster_in_cudnn(op);
}

}  // namespace ridgeline
