// Batch norm. In NCHW a block takes a channel, so that channels limit it and not bandwidth; with channels last blocks
// take tiles of channels by pixels. PyTorch 2.11 and cuDNN 9; tested by tests/kernels/stated_images_test.cpp.
#include <algorithm>

#include "sim/kernels/memory_bound/image_kernels.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

/// Threads for `elements`: the smallest of 32 … 512 that covers them.
std::int64_t threads_for(std::int64_t elements) {
  std::int64_t threads = 32;
  while (threads < 512 && threads < elements) threads *= 2;
  return threads;
}

KernelLaunch batch_norm_update(const ImageOp& op) {
  return memory_bound_launch(MemoryBoundKernel::tiny, "batch_norm_update", TimeClass::normalization, DType::fp32,
                             {ceil_div(op.channels, 1024), 1, 128, 56},
                             {.iterations = 1.3 + 1.7 * std::min(1.0, static_cast<double>(op.channels) / 1024.0)});
}

KernelLaunch cleared_counters(std::int64_t count) {
  KernelLaunch launch =
      memory_bound_launch(MemoryBoundKernel::fill, "fill", TimeClass::elementwise, DType::int32,
                          {ceil_div(count, 1024), 1, 128, 16}, {.elements = static_cast<double>(count)});
  launch.writes = {{Access::kTemporary, 4.0 * static_cast<double>(count)}};
  return launch;
}

/// Channels-last in PyTorch's own kernels: tiles of channels by pixels, each thread
/// four loads ahead. Grids as in all of 284 profiled kernels.
LoweredOp batch_norm_last(const ImageOp& op) {
  constexpr std::int64_t kThreads = 512, kTile = 32, kAThread = 16, kAhead = 4, kMostRows = 128, kFewRows = 8;
  const ImageSizes s = image_sizes(op);
  const std::int64_t pixels = op.batch * s.spatial;
  std::int64_t wide = std::min(power_of_two_below(op.channels), kTile);
  const std::int64_t high = std::min(power_of_two_below(ceil_div(pixels, kAThread)), kThreads / wide);
  wide = std::min(power_of_two_below(op.channels), kThreads / high);
  const std::int64_t across = ceil_div(op.channels, wide),
                     rows = std::min(ceil_div(pixels, high * kAThread), kMostRows);
  const auto launch = [&](MemoryBoundKernel kernel, const char* name, std::int64_t down, int registers,
                          std::int64_t shared) {
    return memory_bound_launch(
        kernel, name, TimeClass::normalization, op.type,
        {across, down, static_cast<int>(wide * high), registers, shared},
        {.elements = s.elements, .iterations = static_cast<double>(ceil_div(pixels, down * high * kAhead))});
  };
  const std::int64_t rows_of_sums = rows < kFewRows ? 1 : rows;
  KernelLaunch sums = op.backward ? launch(MemoryBoundKernel::batch_norm_sums_last,
                                           "batch_norm_backward_reduce_channels_last", rows_of_sums, 40, 4097)
                                  : launch(MemoryBoundKernel::batch_norm_moments_last,
                                           "batch_norm_collect_statistics_channels_last", rows_of_sums, 40, 6145);
  sums.flops = 4.0 * s.elements;
  sums.reads = {{0, s.bytes}};
  if (op.backward) sums.reads.push_back({1, s.bytes});
  KernelLaunch sweep = op.backward ? launch(MemoryBoundKernel::batch_norm_gradient_last,
                                            "batch_norm_backward_elemt_channels_last", rows, 32, 0)
                                   : launch(MemoryBoundKernel::batch_norm_transform_last,
                                            "batch_norm_transform_input_channels_last", rows, 32, 0);
  sweep.flops = 2.0 * s.elements;
  sweep.reads = sums.reads;
  sweep.writes = {{op.backward ? 2 : 1, s.bytes}};
  LoweredOp result;
  // Rows of blocks meet at counters, which are cleared first.
  if (rows_of_sums > 1) result.launches.push_back(cleared_counters(across));
  result.launches.push_back(std::move(sums));
  if (!op.backward) result.launches.push_back(batch_norm_update(op));
  result.launches.push_back(std::move(sweep));
  return result;
}

/// cuDNN in NCHW: one kernel, a block a channel; the channel stays on the SM where it fits.
LoweredOp batch_norm_single(const ImageOp& op) {
  const ImageSizes s = image_sizes(op);
  const double per_channel = static_cast<double>(op.batch) * static_cast<double>(s.spatial);
  // Two blocks share an SM (25,088 values fit in all of 40 profiled kernels, 32,768 in none of 52). Backward keeps
  // image and gradient (6,272 values fit, 16,384 do not), 16 bits partly in registers (65,536 and 16,384 fit).
  constexpr double kMostInShared = 112.0 * 1024, kMostInRegisters = 40.0 * 1024;
  const double tensors = op.backward ? 2.0 : 1.0;
  const double kept = per_channel * static_cast<double>(bytes_of(op.type)) * tensors;
  const bool fits = kept <= kMostInShared + (is_half(op.type) ? kMostInRegisters : 0.0);
  const std::int64_t whole = op.batch * ceil_div(s.spatial, 8) * 8 * bytes_of(op.type) * (op.backward ? 2 : 1);
  const std::int64_t shared = std::min(whole, static_cast<std::int64_t>(kMostInShared));
  KernelLaunch launch = memory_bound_launch(
      op.backward ? MemoryBoundKernel::batch_norm_single_backward : MemoryBoundKernel::batch_norm_single,
      op.backward ? "bn_bw" : "bn_fw_tr", TimeClass::normalization, op.type,
      {op.channels, 1, 512, fits ? 47 : 48, fits ? shared + 144 : 144},
      {.elements = s.elements,
       .iterations = per_channel / 2048.0 * (fits ? 1.0 : 2.0) * tensors,
       .reread_bytes = fits ? 0.0 : s.bytes * tensors,
       .reread_row_bytes = kept});
  launch.flops = 8.0 * s.elements;
  launch.reads = {{0, s.bytes}};
  if (op.backward) launch.reads.push_back({1, s.bytes});
  launch.writes = {{op.backward ? 2 : 1, s.bytes}};
  return {{std::move(launch)}, {}, false};
}

/// cuDNN with channels last: two blocks an SM keep what they can of their rows between sums and results
/// (batchnorm_fwtr_nhwc_semiPersist). Channels that are no whole vectors are loaded one by one.
LoweredOp batch_norm_persistent(const ImageOp& op, const ChipShape& chip) {
  constexpr std::int64_t kThreads = 512, kChannels = 64, kPixels = 256, kBlocksOfSm = 2, kVector = 4;
  const ImageSizes s = image_sizes(op);
  const std::int64_t pixels = op.batch * s.spatial;
  const std::int64_t blocks =
      std::min<std::int64_t>(kBlocksOfSm * chip.sm.count, ceil_div(op.channels, kChannels) * ceil_div(pixels, kPixels));
  const bool vectors = op.channels % kVector == 0;
  const double element = static_cast<double>(bytes_of(op.type)), tensors = op.backward ? 2.0 : 1.0;
  const double of_block = s.elements / static_cast<double>(blocks);
  KernelLaunch launch = memory_bound_launch(
      op.backward ? MemoryBoundKernel::batch_norm_persistent_backward : MemoryBoundKernel::batch_norm_persistent,
      op.backward ? "batchnorm_bwtr_nhwc_semiPersist" : "batchnorm_fwtr_nhwc_semiPersist", TimeClass::normalization,
      op.type, {blocks, 1, kThreads, 63, 61440},
      {.elements = s.elements,
       .padded_elements = vectors ? 0.0 : s.elements,
       .iterations = of_block / static_cast<double>(kThreads * kVector),
       .reread_bytes = s.bytes * tensors,
       .reread_row_bytes = of_block * element * tensors});
  launch.flops = 8.0 * s.elements;
  launch.reads = {{0, s.bytes}};
  if (op.backward) launch.reads.push_back({1, s.bytes});
  launch.writes = {{op.backward ? 2 : 1, s.bytes}};
  return {{memset_launch(8.0 * static_cast<double>(op.channels), Access::kTemporary), std::move(launch)}, {}, false};
}

/// Threads of a block over a channel of PyTorch's kernels: along pixels, and over images.
struct ChannelBlock {
  std::int64_t width, height;
};
ChannelBlock channel_block(const ImageOp& op, bool wide) {
  const std::int64_t spatial = op.pixels();
  std::int64_t width = threads_for(spatial);
  if (wide) width = std::max(width, std::min<std::int64_t>(threads_for(spatial * op.batch), 64));
  return {width, std::max<std::int64_t>(1, 512 / width)};
}

KernelLaunch batch_norm_transform(const ImageOp& op) {
  const ImageSizes s = image_sizes(op);
  const std::int64_t quarter = std::max<std::int64_t>(1, s.spatial / 4);
  const std::int64_t threads = std::max(threads_for(quarter), std::min<std::int64_t>(threads_for(quarter), 64));
  const std::int64_t block_x = std::max<std::int64_t>(64, threads);
  const std::int64_t grid_y = std::max<std::int64_t>(1, std::min<std::int64_t>(256 * 1024 / op.channels, op.batch));
  KernelLaunch transform = memory_bound_launch(
      MemoryBoundKernel::batch_norm_transform, "batch_norm_transform", TimeClass::normalization, op.type,
      {op.channels, grid_y, static_cast<int>(block_x), 23},
      {.elements = s.elements,
       .iterations = static_cast<double>(ceil_div(s.spatial, block_x) * ceil_div(op.batch, grid_y))});
  transform.flops = 2.0 * s.elements;
  transform.reads = {{0, s.bytes}};
  transform.writes = {{1, s.bytes}};
  return transform;
}

/// PyTorch's kernel of all gradients: a block sums over its channel, then walks it again.
LoweredOp batch_norm_backward(const ImageOp& op) {
  const ImageSizes s = image_sizes(op);
  const auto [width, height] = channel_block(op, false);
  const double per_channel = 2.0 * s.bytes / static_cast<double>(op.channels);
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::batch_norm_backward, "batch_norm_backward", TimeClass::normalization, op.type,
      {op.channels, 1, static_cast<int>(width * height), 32, 256},
      {.elements = s.elements,
       .iterations = static_cast<double>(2 * ceil_div(s.spatial, width) * ceil_div(op.batch, height)),
       .reread_bytes = 2.0 * s.bytes,
       .reread_row_bytes = per_channel});
  launch.flops = 8.0 * s.elements;
  launch.reads = {{0, s.bytes}, {1, s.bytes}};
  launch.writes = {{2, s.bytes}};
  return {{std::move(launch)}, {}, false};
}

/// PyTorch in NCHW.
LoweredOp batch_norm_first(const ImageOp& op) {
  const ImageSizes s = image_sizes(op);
  const auto [width, height] = channel_block(op, true);
  KernelLaunch statistics =
      memory_bound_launch(MemoryBoundKernel::batch_norm_statistics, "batch_norm_statistics", TimeClass::normalization,
                          op.type, {op.channels, 1, static_cast<int>(width * height), 27, 640},
                          {.elements = s.elements,
                           .iterations = static_cast<double>(ceil_div(s.spatial, width) * ceil_div(op.batch, height))});
  statistics.flops = 4.0 * s.elements;
  statistics.reads = {{0, s.bytes}};
  return {{std::move(statistics), batch_norm_update(op), batch_norm_transform(op)}, {}, false};
}

/// With running statistics: cuDNN's kernel for fp16 and fp32; PyTorch computes the factors first.
LoweredOp batch_norm_evaluation(const ImageOp& op) {
  if (op.backward) {
    if (!op.channels_last) return batch_norm_backward(op);
    LoweredOp result = batch_norm_last(op);
    result.launches.back().reads.pop_back();  // dy times a factor
    return result;
  }
  if (op.type != DType::bf16) {
    KernelLaunch launch = batch_norm_transform(op);
    launch.name = "bn_fw_inf";
    return {{std::move(launch)}, {}, false};
  }
  LoweredOp result;
  result.launches.push_back(device_copy_launch(DType::fp32, op.channels, Access::kTemporary, Access::kTemporary));
  result.launches.push_back(batch_norm_update(op));
  if (op.channels_last) result.launches.push_back(batch_norm_last(op).launches.back());
  else result.launches.push_back(batch_norm_transform(op));
  return result;
}

}  // namespace

LoweredOp lower_batch_norm(const ImageOp& op, const ChipShape& chip) {
  if (op.evaluation) return batch_norm_evaluation(op);
  if (op.type != DType::bf16) {
    // A single pixel has no order.
    const bool last = op.channels_last && op.pixels() > 1;
    return last ? batch_norm_persistent(op, chip) : batch_norm_single(op);
  }
  if (op.channels_last) return batch_norm_last(op);
  return op.backward ? batch_norm_backward(op) : batch_norm_first(op);
}

}  // namespace ridgeline
