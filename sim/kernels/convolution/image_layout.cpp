#include "sim/kernels/convolution/image_layout.h"

#include <algorithm>

#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

KernelLaunch moving(int operand, const ImageTensor& tensor, DType type) {
  KernelLaunch launch;
  launch.time_class = TimeClass::copy;
  launch.type = type;
  const double bytes = tensor.elements() * static_cast<double>(bytes_of(type));
  launch.reads = {{.operand = operand, .bytes = bytes}};
  launch.writes = {{.operand = Access::kTemporary, .bytes = bytes}};
  return launch;
}

}  // namespace

KernelLaunch turned(int operand, const ImageTensor& tensor, DType type) {
  constexpr std::int64_t kSide = 32;
  KernelLaunch launch = moving(operand, tensor, type);
  launch.name = "nchwToNhwc";
  launch.threads_per_block = 256;
  launch.shared_bytes_per_block = kSide * (kSide + 1) * bytes_of(type);
  launch.grid = {ceil_div(tensor.pixels, kSide), ceil_div(tensor.channels, kSide), tensor.count};
  launch.work = FixedWork{.what = FixedWork::What::layout_change,
                          .bytes = launch.read_bytes() + launch.written_bytes(),
                          .blocks = launch.blocks()};
  return launch;
}

KernelLaunch cleared(const ImageTensor& tensor, DType type) {
  KernelLaunch launch = moving(Access::kTemporary, tensor, type);
  launch.name = "scalePackedTensor";
  launch.work = FixedWork{.what = FixedWork::What::memcpy_device, .bytes = launch.read_bytes()};
  launch.reads.clear();  // of what was there before nothing is left
  return launch;
}

KernelLaunch padded_channels(int operand, const ImageTensor& tensor, DType type, double bytes, const Gpu& gpu) {
  constexpr std::int64_t kBlocksOfSm = 2;
  constexpr int kThreads = 256;
  const double blocks = static_cast<double>(kBlocksOfSm * gpu.sm.count);
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::channel_padding, "nhwcAddPadding", TimeClass::copy, type,
      {kBlocksOfSm * gpu.sm.count, 1, kThreads},
      {.elements = tensor.elements(), .iterations = std::max(1.0, tensor.elements() / (blocks * kThreads))});
  launch.reads = {{.operand = operand, .bytes = tensor.elements() * static_cast<double>(bytes_of(type))}};
  launch.writes = {{.operand = Access::kTemporary, .bytes = bytes}};
  return launch;
}

KernelLaunch rounded(int operand, const ImageTensor& tensor, DType type) {
  KernelLaunch launch = moving(operand, tensor, type);
  launch.name = "convertTensor";
  launch.grid = {4096, 1, 1};
  launch.work = FixedWork{.what = FixedWork::What::memcpy_device, .bytes = launch.read_bytes(), .blocks = 4096};
  return launch;
}

}  // namespace ridgeline
