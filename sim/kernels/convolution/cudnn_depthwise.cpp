// Kernels by name, layout, type and filter as profiled with cuDNN 9 on an NVIDIA H200 (1,100 launches).
//
// Square filters of 1, 3, 5 and 7 have kernels of their own (conv2d_c1_k1_nhwc and its kin): a thread computes 2 x 2
// outputs of a channel from a window that it keeps in registers. Other filters run direct kernels, a thread a result
// or, of weights, a warp a tap.
#include "sim/kernels/convolution/cudnn_depthwise.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kTileSide = 2, kChannelsOfVector = 8, kVectorColumns = 3, kLanesOfTap = 32, kTapsOfBlock = 8;
constexpr int kTileThreads = 256, kVectorThreads = 128, kDirectThreads = 1024;
/// cuDNN takes vectors of channels from this batch on, and a single block an image's channels below these outputs.
constexpr std::int64_t kVectorBatch = 8, kFewOutputs = 600;

class CudnnDepthwise {
 public:
  CudnnDepthwise(const Convolution& op, const ChipShape& chip)
      : op_(op), sms_(chip.sm.count), element_(static_cast<double>(bytes_of(op.type))) {
    const auto images = static_cast<double>(op.batch);
    x_ = images * static_cast<double>(op.in_channels * op.pixels());
    y_ = images * static_cast<double>(op.out_channels * op.out_pixels());
    w_ = static_cast<double>(op.out_channels * op.taps());
    taps_ = static_cast<double>(op.taps());
    const std::int64_t k = op.kernel, s = op.stride;
    tiled_ = k == op.kernel_columns() && (k == 1 || k == 3 || k == 5 || k == 7) && s == op.stride_columns() &&
             (s == 1 || s == 2) && (k > 1 || s == 1);
  }

  LoweredOp lower() {
    const bool both = op_.gradients == ConvolutionGradients::both;
    if (!op_.backward) {
      add(forward(), {{0, x_}, {1, w_}}, {2, y_});
      return std::move(out_);
    }
    if (op_.gradients != ConvolutionGradients::weight)
      add(input_gradient(), {{0, y_}, {both ? 2 : 1, w_}}, {both ? 3 : 2, x_});
    if (op_.gradients != ConvolutionGradients::input) add_weights({{0, y_}, {1, x_}}, {both ? 4 : 2, w_});
    return std::move(out_);
  }

 private:
  struct Tensor {
    int operand;
    double elements;
  };

  void add(KernelLaunch launch, const std::vector<Tensor>& reads, const Tensor& write) {
    launch.flops = 2.0 * y_ * taps_;
    for (const Tensor& tensor : reads) launch.reads.push_back({tensor.operand, tensor.elements * element_});
    launch.writes = {{write.operand, write.elements * element_}};
    out_.launches.push_back(std::move(launch));
  }

  KernelLaunch kernel(MemoryBoundKernel kernel_class, std::string name, const ridgeline::Geometry& geometry,
                      const MemoryBoundWork& work) const {
    return memory_bound_launch(kernel_class, std::move(name), TimeClass::tensor_contraction, op_.type, geometry, work);
  }

  /// Loads of a tile of `rows` by `columns` results: its window and the filter.
  [[nodiscard]] double loads_of_tile(std::int64_t rows, std::int64_t columns, std::int64_t step) const {
    return static_cast<double>((op_.kernel + (rows - 1) * step) * (op_.kernel_columns() + (columns - 1) * step)) +
           taps_;
  }
  /// Tiles of 2 x 2 pixels of every channel of an image.
  static std::int64_t tiles_of(std::int64_t channels, std::int64_t rows, std::int64_t columns) {
    return channels * ceil_div(rows, kTileSide) * ceil_div(columns, kTileSide);
  }
  [[nodiscard]] int of_filter(int one, int three, int five, int seven) const {
    return op_.kernel == 1 ? one : op_.kernel == 3 ? three : op_.kernel == 5 ? five : seven;
  }

  [[nodiscard]] KernelLaunch forward() const {
    const bool strided = op_.stride > 1;
    if (!op_.channels_last) return shared("conv2d_c1_k1_nchw_shmem_tiling", y_);
    if (!tiled_)
      return kernel(MemoryBoundKernel::depthwise_direct, "conv2d_grouped_direct",
                    {ceil_div(static_cast<std::int64_t>(y_), kDirectThreads), 1, kDirectThreads, 40},
                    {.elements = y_ * taps_, .padded_elements = y_});
    if (is_half(op_.type) && op_.batch >= kVectorBatch && op_.in_channels % kChannelsOfVector == 0) {
      const std::int64_t tiles = op_.in_channels / kChannelsOfVector * op_.batch * ceil_div(op_.out_rows(), kTileSide) *
                                 ceil_div(op_.out_columns(), kVectorColumns);
      const double loads = loads_of_tile(kTileSide, kVectorColumns, op_.stride);
      return kernel(
          MemoryBoundKernel::depthwise_last_vectors, "conv2d_c1_k1_nhwc_specialized",
          {ceil_div(tiles, kVectorThreads), 1, kVectorThreads, of_filter(32, 76, 158, 255)},
          {.elements = y_ * taps_, .padded_elements = static_cast<double>(tiles) * loads, .iterations = loads});
    }
    const std::int64_t tiles = op_.batch * tiles_of(op_.in_channels, op_.out_rows(), op_.out_columns());
    const double loads = loads_of_tile(kTileSide, kTileSide, op_.stride);
    return kernel(MemoryBoundKernel::depthwise_last, "conv2d_c1_k1_nhwc",
                  {ceil_div(tiles, kTileThreads), 1, kTileThreads,
                   strided ? of_filter(24, 48, 97, 159) : of_filter(24, 42, 80, 128)},
                  {.elements = y_ * taps_, .padded_elements = static_cast<double>(tiles) * loads, .iterations = loads});
  }

  [[nodiscard]] KernelLaunch input_gradient() const {
    if (!op_.channels_last) return shared("dgrad2d_c1_k1_nchw_shmem_tiling", x_);
    const bool strided = op_.stride > 1;
    const std::int64_t tiles = tiles_of(op_.in_channels, op_.size, op_.columns());
    const ridgeline::Geometry geometry{ceil_div(tiles, kTileThreads), op_.batch, kTileThreads,
                                       !tiled_   ? 32
                                       : strided ? of_filter(24, 32, 39, 48)
                                                 : of_filter(27, 40, 64, 125)};
    const double loads = loads_of_tile(kTileSide, kTileSide, 1);
    const MemoryBoundKernel kernel_class = !tiled_   ? MemoryBoundKernel::depthwise_direct_gradient
                                           : strided ? MemoryBoundKernel::depthwise_strided_gradient
                                                     : MemoryBoundKernel::depthwise_last_gradient;
    return kernel(kernel_class, tiled_ ? "dgrad2d_c1_k1_nhwc_specialized" : "dgrad2d_c1_k1_nhwc", geometry,
                  {.elements = x_ * taps_,
                   .padded_elements = static_cast<double>(tiles * op_.batch) * loads,
                   .iterations = loads});
  }

  /// Windows of a plane in shared memory, eight results a thread.
  [[nodiscard]] KernelLaunch shared(const char* name, double results) const {
    constexpr double kResultsOfBlock = 3072.0;
    return kernel(MemoryBoundKernel::depthwise_shared, name,
                  {std::max<std::int64_t>(1, std::llround(results / kResultsOfBlock)), 1, kTileThreads,
                   op_.taps() > 9 ? 138 : 75, 18944},
                  {.elements = results * taps_, .padded_elements = results});
  }

  void add_weights(const std::vector<Tensor>& reads, const Tensor& write) {
    const bool half = is_half(op_.type);
    const std::int64_t outputs = op_.batch * op_.out_pixels();
    if (half && (tiled_ || !op_.channels_last)) {
      if (!op_.channels_last || outputs < kFewOutputs) return add(shared("wgrad2d_shmem_tiling", y_), reads, write);
      return add_weights_in_parts(reads, write);
    }
    // 3 x 3 and 5 x 5 filters over many outputs run on tiles of outputs that blocks share out.
    constexpr std::int64_t kMostTensorTaps = 25, kFewestOutputs = 400'000;
    if (tiled_ && op_.kernel > 1 && op_.taps() <= kMostTensorTaps &&
        y_ * taps_ >= static_cast<double>(kFewestOutputs) * 9.0 && op_.type != DType::fp32)
      return add_weights_in_tiles(reads, write);
    const std::int64_t filters = op_.out_channels * op_.taps(), passes = ceil_div(outputs, kLanesOfTap);
    add(kernel(MemoryBoundKernel::depthwise_direct_weights, "wgrad2d_grouped_direct",
               {ceil_div(filters, kTapsOfBlock), 1, static_cast<int>(kTapsOfBlock * kLanesOfTap), 34},
               {.elements = static_cast<double>(filters * passes * kLanesOfTap),
                .iterations = static_cast<double>(passes)}),
        reads, write);
  }

  /// 32 channels of an image a block, in up to eight parts of its rows; a second kernel adds up.
  void add_weights_in_parts(const std::vector<Tensor>& reads, const Tensor& write) {
    constexpr std::int64_t kMostParts = 8, kBlocksOfSm = 6, kRowsOfBlock = 4;
    const std::int64_t groups = ceil_div(op_.in_channels, kLanesOfTap), blocks = groups * op_.batch;
    const std::int64_t parts = std::clamp<std::int64_t>(kBlocksOfSm * sms_ / blocks, 1, kMostParts);
    const double passes = static_cast<double>(ceil_div(op_.out_pixels(), parts * kRowsOfBlock));
    KernelLaunch sums = kernel(
        MemoryBoundKernel::depthwise_last_weights, "wgrad2d_c1_k1_nhwc",
        {groups, op_.batch, static_cast<int>(kLanesOfTap * kRowsOfBlock),
         op_.stride > 1 ? of_filter(64, 128, 168, 221) : of_filter(64, 81, 128, 168), 1024 * op_.kernel * op_.kernel},
        {.elements = y_ * taps_, .padded_elements = y_, .iterations = passes * taps_});
    sums.grid[2] = parts;
    add(std::move(sums), reads, write);
    out_.launches.push_back(memory_bound_launch(MemoryBoundKernel::tiny, "wgrad2d_c1_k1_nhwc_reduce",
                                                TimeClass::tensor_contraction, DType::fp32,
                                                {op_.taps() * groups, 1, static_cast<int>(kLanesOfTap), 64}, {}));
  }

  void add_weights_in_tiles(const std::vector<Tensor>& reads, const Tensor& write) {
    constexpr std::int64_t kBlocksOfSm = 2, kTileOutputs = 64;
    const std::int64_t groups = ceil_div(op_.in_channels, kLanesOfTap),
                       tiles = op_.batch * ceil_div(op_.out_pixels(), kTileOutputs);
    const std::int64_t parts = std::clamp<std::int64_t>(kBlocksOfSm * sms_ / groups, 1, tiles);
    out_.launches.push_back(memset_launch(write.elements * 4.0, Access::kTemporary));
    add(kernel(
            MemoryBoundKernel::depthwise_tensor_weights, "depthwise_convolution_wgrad",
            {groups, parts, kVectorThreads, 200, 67584},
            {.elements = y_ * taps_, .padded_elements = y_, .iterations = static_cast<double>(ceil_div(tiles, parts))}),
        reads, write);
    out_.launches.push_back(memory_bound_launch(MemoryBoundKernel::tiny, "depthwise_convolution_wgrad_post",
                                                TimeClass::tensor_contraction, DType::fp32,
                                                {groups, 1, kVectorThreads, 64}, {}));
  }

  const Convolution& op_;
  int sms_;
  double element_, x_ = 0, y_ = 0, w_ = 0, taps_ = 1;
  bool tiled_ = false;  ///< has kernels of its filter
  LoweredOp out_;
};

}  // namespace

LoweredOp lower_cudnn_depthwise(const Convolution& op, const ChipShape& chip) {
  return CudnnDepthwise(op, chip).lower();
}

}  // namespace ridgeline
