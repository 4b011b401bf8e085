// Image networks: batch normalisation, ReLU, 2x2 max pooling and nearest-neighbour upsampling, coarser than the rest.
// Batch normalisation gives each channel one block, so it is limited by channels, not by bandwidth. PyTorch 2.11 and
// cuDNN; tested by tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

/// Threads for `elements`: the smallest of 32 … 512 that covers them.
std::int64_t threads_for(std::int64_t elements) {
  std::int64_t threads = 32;
  while (threads < 512 && threads < elements) threads *= 2;
  return threads;
}

struct ImageSizes {
  double elements, bytes;
  std::int64_t spatial;
};
ImageSizes sizes_of(const ImageOp& op) {
  const std::int64_t spatial = op.size * op.size;
  const double elements =
      static_cast<double>(op.batch) * static_cast<double>(op.channels) * static_cast<double>(spatial);
  return {elements, elements * static_cast<double>(bytes_of(op.type)), spatial};
}

KernelLaunch batch_norm_update(const ImageOp& op) {
  return memory_bound_launch(MemoryBoundKernel::tiny, "batch_norm_update", TimeClass::normalization, DType::fp32,
                             {ceil_div(op.channels, 1024), 1, 128, 56},
                             {.iterations = 1.3 + 1.7 * std::min(1.0, static_cast<double>(op.channels) / 1024.0)});
}

/// Channels-last in bf16 (PyTorch's own kernels; cuDNN takes fp16 and fp32): tiles of channels by pixels, each thread
/// four loads ahead. Grids as in all of 284 profiled kernels.
LoweredOp batch_norm_last(const ImageOp& op) {
  constexpr std::int64_t kThreads = 512, kTile = 32, kAThread = 16, kAhead = 4, kMostRows = 128, kFewRows = 8;
  const ImageSizes s = sizes_of(op);
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
  result.launches.push_back(std::move(sums));
  if (!op.backward) result.launches.push_back(batch_norm_update(op));
  result.launches.push_back(std::move(sweep));
  return result;
}

LoweredOp batch_norm(const ImageOp& op) {
  if (op.channels_last && op.type == DType::bf16) return batch_norm_last(op);
  const ImageSizes s = sizes_of(op);
  const double per_channel = static_cast<double>(op.batch) * static_cast<double>(s.spatial);
  LoweredOp result;
  if (op.type != DType::bf16) {  // cuDNN: one kernel, a block a channel; the channel stays on the SM where it fits
    // Two blocks share an SM (25,088 values fit in all of 40 profiled kernels, 32,768 in none of 52). Backward keeps
    // image and gradient (6,272 values fit, 16,384 do not), 16 bits partly in registers (65,536 and 16,384 fit).
    constexpr double kMostInShared = 112.0 * 1024, kMostInRegisters = 40.0 * 1024;
    const double kept = per_channel * static_cast<double>(bytes_of(op.type)) * (op.backward ? 2.0 : 1.0);
    const bool fits = kept <= kMostInShared + (is_half(op.type) ? kMostInRegisters : 0.0);
    const std::int64_t whole = op.batch * ceil_div(s.spatial, 8) * 8 * bytes_of(op.type) * (op.backward ? 2 : 1);
    const std::int64_t shared = std::min(whole, static_cast<std::int64_t>(kMostInShared));
    // Where it does not, backward takes 2.6 to 3.0 times as long as forward (a ResNet-50 step on an NVIDIA H200).
    const int passes_over_input = !op.backward ? 1 : fits ? 2 : 3;
    KernelLaunch launch = memory_bound_launch(
        MemoryBoundKernel::batch_norm_single, op.backward ? "bn_bw" : "bn_fw_tr", TimeClass::normalization, op.type,
        {op.channels, 1, 512, fits ? 47 : 48, fits ? shared + 144 : 144},
        {.elements = s.elements,
         .iterations = per_channel / 2048.0 * (fits ? 1.0 : 2.0) * passes_over_input,
         .reread_bytes = fits ? 0.0 : s.bytes,
         .reread_row_bytes = per_channel * static_cast<double>(bytes_of(op.type))});
    launch.flops = 8.0 * s.elements;
    launch.reads = {{0, s.bytes}};
    if (op.backward) launch.reads.push_back({1, s.bytes});
    launch.writes = {{op.backward ? 2 : 1, s.bytes}};
    result.launches.push_back(std::move(launch));
    return result;
  }
  const std::int64_t width =
      std::max(threads_for(s.spatial), std::min<std::int64_t>(threads_for(s.spatial * op.batch), 64));
  const std::int64_t height = std::max<std::int64_t>(1, 512 / width);
  KernelLaunch statistics =
      memory_bound_launch(MemoryBoundKernel::batch_norm_statistics, "batch_norm_statistics", TimeClass::normalization,
                          op.type, {op.channels, 1, static_cast<int>(width * height), 27, 640},
                          {.elements = s.elements,
                           .iterations = static_cast<double>(ceil_div(s.spatial, width) * ceil_div(op.batch, height))});
  statistics.flops = 4.0 * s.elements;
  statistics.reads = {{0, s.bytes}};
  if (op.backward) statistics.reads.push_back({1, s.bytes});
  KernelLaunch update = batch_norm_update(op);
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
  transform.reads = statistics.reads;
  transform.writes = {{op.backward ? 2 : 1, s.bytes}};
  result.launches = {std::move(statistics), std::move(update), std::move(transform)};
  return result;
}

LoweredOp relu(const ImageOp& op, const ChipShape& chip, const Software& software) {
  Pointwise pointwise{.function = op.backward ? PointwiseFunction::relu_backward : PointwiseFunction::relu,
                      .rows = op.batch * op.channels,
                      .cols = op.size * op.size,
                      .input_count = static_cast<std::uint8_t>(op.backward ? 2 : 1),
                      .output = op.type};
  for (auto& input : pointwise.inputs) input = op.type;
  return lower_pointwise(pointwise, chip, software);
}

LoweredOp max_pool(const ImageOp& op) {
  const std::int64_t planes = op.batch * op.channels, half = op.size / 2;
  if (half < 1) throw std::invalid_argument("2x2 max pooling needs images of at least two pixels");
  const ImageSizes s = sizes_of(op);
  const auto outputs = static_cast<double>(planes * half * half);
  const double out_bytes = outputs * static_cast<double>(bytes_of(op.type)), index_bytes = 8.0 * outputs;
  if (op.backward) {
    // The gradient is cleared; then a block takes 256 of a plane's pixels.
    KernelLaunch fill = memory_bound_launch(MemoryBoundKernel::fill, "fill", TimeClass::elementwise, op.type,
                                            {ceil_div(static_cast<std::int64_t>(s.elements), 1024), 1, 128, 16},
                                            {.elements = s.elements});
    fill.writes = {{2, s.bytes}};
    KernelLaunch launch =
        memory_bound_launch(MemoryBoundKernel::max_pool_backward, "max_pool_backward", TimeClass::elementwise, op.type,
                            {ceil_div(s.spatial, 256), op.batch, 256, 32}, {.elements = s.elements});
    launch.grid[2] = op.channels;
    launch.flops = 3.0 * outputs;
    launch.reads = {{0, out_bytes}, {1, index_bytes}};
    launch.writes = {{2, s.bytes}};
    return {{std::move(fill), std::move(launch)}, {}, false};
  }
  KernelLaunch launch =
      memory_bound_launch(MemoryBoundKernel::max_pool, "max_pool_forward", TimeClass::elementwise, op.type,
                          {ceil_div(static_cast<std::int64_t>(outputs), 256), 1, 256, 23}, {.elements = outputs});
  launch.flops = 3.0 * outputs;
  launch.reads = {{0, s.bytes}};
  launch.writes = {{1, out_bytes}, {Access::kTemporary, index_bytes}};
  return {{std::move(launch)}, {}, false};
}

/// `size` is the side of the output, twice that of the input.
LoweredOp upsample(const ImageOp& op) {
  const ImageSizes s = sizes_of(op);
  const std::int64_t planes = op.batch * op.channels;
  constexpr std::int64_t kMost = 512;
  const std::int64_t x = std::min(power_of_two_below(op.size), kMost),
                     y = std::min(power_of_two_below(op.size), kMost / x);
  const std::int64_t z = std::max<std::int64_t>(1, std::min(planes, kMost / x / y));
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::upsample, "upsample_nearest2d", TimeClass::elementwise, op.type,
      {ceil_div(op.size, x), ceil_div(op.size, y), static_cast<int>(x * y * z), 30}, {.elements = s.elements});
  launch.grid[2] = std::min<std::int64_t>(65535, ceil_div(planes, z * 4));
  auto& work = std::get<MemoryBoundWork>(launch.work);
  work.iterations = static_cast<double>(ceil_div(planes, z * launch.grid[2]));
  // Threads beyond an edge skip their pixel in every plane.
  work.padded_elements = static_cast<double>(launch.grid[0] * x * launch.grid[1] * y * planes);
  const double small = s.bytes / 4.0;
  launch.reads = {{0, op.backward ? s.bytes : small}};
  launch.writes = {{1, op.backward ? small : s.bytes}};
  return {{std::move(launch)}, {}, false};
}

}  // namespace

LoweredOp lower_image(const ImageOp& op, const ChipShape& chip, const Software& software) {
  if (op.batch < 1 || op.channels < 1 || op.size < 1)
    throw std::invalid_argument("an image op needs a batch, channels and a size");
  switch (op.function) {
    case ImageFunction::batch_norm: return batch_norm(op);
    case ImageFunction::relu: return relu(op, chip, software);
    case ImageFunction::max_pool2d: return max_pool(op);
    case ImageFunction::upsample_nearest2d: return upsample(op);
  }
  throw std::invalid_argument("unknown image function");
}

}  // namespace ridgeline
