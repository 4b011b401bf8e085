// Pooling: maxima and means of windows. In NCHW a thread takes a result; maxima with channels last take blocks of
// channels by pixels. PyTorch 2.11.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/memory_bound/image_kernels.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

struct PoolSizes {
  double image, results;             ///< elements
  double taps, windows;              ///< of a result; that a pixel lies in, along both sides
  double image_bytes, result_bytes;  ///< results without indices
  [[nodiscard]] double index_bytes() const { return 8.0 * results; }
};
PoolSizes pool_sizes(const ImageOp& op) {
  const ImageSizes s = image_sizes(op);
  const std::int64_t out_pixels = op.out_rows() * op.out_columns();
  if (out_pixels < 1) throw std::invalid_argument("pooling needs images of at least one window");
  PoolSizes sizes{};
  sizes.image = s.elements;
  sizes.results = static_cast<double>(op.batch * op.channels * out_pixels);
  sizes.taps = static_cast<double>(op.taps());
  const std::int64_t window = op.window > 0 ? op.window : 2, step = op.stride > 0 ? op.stride : window;
  sizes.windows = static_cast<double>(ceil_div(window, step) * ceil_div(window, step));
  sizes.image_bytes = s.bytes;
  sizes.result_bytes = sizes.results * static_cast<double>(bytes_of(op.type));
  return sizes;
}

/// Blocks of channels by columns by rows, each two of these on.
struct PoolBlocks {
  std::int64_t x, y, z;             ///< threads
  std::int64_t across, down, deep;  ///< blocks
  std::int64_t passes;              ///< of a thread over its channels and pixels
};
PoolBlocks pool_blocks(const ImageOp& op, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kMostThreads = 1024, kLanes = 32, kChannelsOfThread = 4, kPixelsOfThread = 2;
  PoolBlocks b{};
  b.x = std::min(power_of_two_below(op.channels), kLanes);
  b.y = std::min(power_of_two_below(columns), kMostThreads / b.x);
  b.z = std::min(power_of_two_below(rows), kMostThreads / b.x / b.y);
  b.x = std::min(power_of_two_below(op.channels), kMostThreads / b.y / b.z);
  const std::int64_t pieces = ceil_div(op.channels, b.x * kChannelsOfThread);
  b.across = op.batch * pieces;
  b.down = ceil_div(columns, b.y * kPixelsOfThread);
  b.deep = ceil_div(rows, b.z * kPixelsOfThread);
  b.passes = ceil_div(op.channels, b.x * pieces) * ceil_div(columns, b.y * b.down) * ceil_div(rows, b.z * b.deep);
  return b;
}
KernelLaunch launch_of_blocks(MemoryBoundKernel kernel, const char* name, const ImageOp& op, const PoolBlocks& b,
                              MemoryBoundWork work, double passes) {
  work.iterations = static_cast<double>(b.passes) * passes;
  KernelLaunch launch = memory_bound_launch(kernel, name, TimeClass::elementwise, op.type,
                                            {b.across, b.down, static_cast<int>(b.x * b.y * b.z), 32, 24576}, work);
  launch.grid[2] = b.deep;
  return launch;
}

LoweredOp max_pool_backward(const ImageOp& op, const PoolSizes& s) {
  // The gradient is cleared; then a block takes 256 of a plane's pixels.
  KernelLaunch fill =
      memory_bound_launch(MemoryBoundKernel::fill, "fill", TimeClass::elementwise, op.type,
                          {ceil_div(static_cast<std::int64_t>(s.image), 1024), 1, 128, 16}, {.elements = s.image});
  fill.writes = {{2, s.image_bytes}};
  const MemoryBoundWork work{.elements = s.image, .padded_elements = s.image * s.windows};
  KernelLaunch launch;
  if (op.channels_last) {
    launch = launch_of_blocks(MemoryBoundKernel::max_pool_last_backward, "max_pool_backward_nhwc", op,
                              pool_blocks(op, op.size, op.columns()), work, s.windows);
  } else {
    launch = memory_bound_launch(MemoryBoundKernel::max_pool_backward, "max_pool_backward", TimeClass::elementwise,
                                 op.type, {ceil_div(op.pixels(), 256), op.batch, 256, 32}, work);
    launch.grid[2] = op.channels;
  }
  launch.flops = 3.0 * s.results;
  launch.reads = {{0, s.result_bytes}, {1, s.index_bytes()}};
  launch.writes = {{2, s.image_bytes}};
  return {{std::move(fill), std::move(launch)}, {}, false};
}

LoweredOp max_pool(const ImageOp& op, const PoolSizes& s) {
  const MemoryBoundWork work{.elements = s.results, .padded_elements = s.results * s.taps};
  KernelLaunch launch =
      op.channels_last
          ? launch_of_blocks(MemoryBoundKernel::max_pool_last, "max_pool_forward_nhwc", op,
                             pool_blocks(op, op.out_rows(), op.out_columns()), work, s.taps)
          : memory_bound_launch(MemoryBoundKernel::max_pool, "max_pool_forward", TimeClass::elementwise, op.type,
                                {ceil_div(static_cast<std::int64_t>(s.results), 256), 1, 256, 23}, work);
  launch.flops = 3.0 * s.results;
  launch.reads = {{0, s.image_bytes}};
  if (op.channels_last) launch.reads[0].loaded = std::max(s.image_bytes, s.result_bytes * s.taps);
  launch.writes = {{1, s.result_bytes}, {Access::kTemporary, s.index_bytes()}};
  return {{std::move(launch)}, {}, false};
}

/// A thread a result, or a pixel, in either layout.
LoweredOp avg_pool(const ImageOp& op, const PoolSizes& s) {
  constexpr std::int64_t kPoolThreads = 1024, kMostBlocks = 65535;
  const double threads = op.backward ? s.image : s.results, walked = op.backward ? s.windows : s.taps;
  const MemoryBoundKernel forward = op.channels_last ? MemoryBoundKernel::avg_pool_last : MemoryBoundKernel::avg_pool;
  const int registers = op.backward ? 47 : op.channels_last ? 40 : 32;
  KernelLaunch launch =
      memory_bound_launch(op.backward ? MemoryBoundKernel::avg_pool_backward : forward,
                          op.backward ? "avg_pool2d_backward" : "avg_pool2d", TimeClass::elementwise, op.type,
                          {std::min(kMostBlocks, ceil_div(static_cast<std::int64_t>(threads), kPoolThreads)), 1,
                           static_cast<int>(kPoolThreads), registers},
                          {.elements = threads, .padded_elements = threads * walked});
  launch.flops = s.results * s.taps;
  launch.reads = {{0, op.backward ? s.result_bytes : s.image_bytes}};
  launch.writes = {{op.backward ? 2 : 1, op.backward ? s.image_bytes : s.result_bytes}};
  return {{std::move(launch)}, {}, false};
}

}  // namespace

LoweredOp lower_pooling(const ImageOp& op) {
  const PoolSizes s = pool_sizes(op);
  if (op.function == ImageFunction::avg_pool2d) return avg_pool(op, s);
  return op.backward ? max_pool_backward(op, s) : max_pool(op, s);
}

}  // namespace ridgeline
