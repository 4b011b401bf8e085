// Convolution as implicit matrix products: out = [images·height·width] x [kernel²·channels] x [filters].
//
// Sequences as profiled with PyTorch 2.11 and cuDNN on an H200. Tensor-core kernels want channels last: images in NCHW
// are turned round and back. 1x1 convolutions of stride 1 are plain products. Few input channels run on the CUDA cores
// (NCHW) or padded to the alignment (channels last). fp32 runs as an implicit product in NCHW; its backward often takes
// FFT or Winograd forms, costed here as the product they replace. Padding is kernel/2.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/gemm_launch.h"

namespace ridgeline {
namespace {

/// Fewest input channels for which cuDNN takes a tensor-core kernel in NCHW.
constexpr std::int64_t kFewestChannels = 32;
/// Channels last: images of up to this many channels are padded to a load of a tensor-core kernel instead.
constexpr std::int64_t kPaddedChannels = 4;
/// Share of a plain fp32 product's rate that cuDNN's CUDA-core convolutions reach, and their gradients (24 cases of an
/// H200, 12 each way, 4 held out: median ratios; FFT and Winograd forms included).
constexpr double kCudaCoreForward = 0.80, kCudaCoreBackward = 0.57;
/// The same of tensor-core kernels, which compute addresses for every tap: outputs and input gradients, and weight
/// gradients, which gather both operands (91 fitted, 53 held out).
constexpr double kGatheringForward = 0.72, kGatheringWeights = 0.68;
/// Turning filters round moves a 32-byte sector for a few taps: times the time of as many bytes of an image.
constexpr double kScatteredTaps = 3.0;

class ConvolutionLowering {
 public:
  ConvolutionLowering(const Convolution& op, const Gpu& gpu, const GpuMenus& menus)
      : op_(op), gpu_(gpu), menus_(menus) {
    out_size_ = op.transposed ? op.size * op.stride : (op.size + 2 * (op.kernel / 2) - op.kernel) / op.stride + 1;
    const double batch = static_cast<double>(op.batch);
    element_ = static_cast<double>(bytes_of(op.type));
    x_ = batch * static_cast<double>(op.in_channels * op.size * op.size);
    // A stride wider than the kernel leaves pixels out.
    const double side = std::min(1.0, static_cast<double>(op.kernel) / static_cast<double>(op.stride));
    gathered_x_ = x_ * side * side;
    y_ = batch * static_cast<double>(op.out_channels * out_size_ * out_size_);
    w_ = static_cast<double>(op.in_channels * op.out_channels * op.kernel * op.kernel);
    const Matmul probe{.type = op.type, .batch = 1, .m = 128, .n = 128, .k = 128, .layout = Layout::nt};
    tensor_ = gemm_problem(probe, gpu).family != GemmWork::Family::simt;
  }

  LoweredOp forward() {
    if (plain_product()) {
      product(out_size_ * out_size_, op_.out_channels, op_.in_channels, {access(0, x_), access(1, w_)}, access(2, y_),
              true);
      return std::move(out_);
    }
    turn({{0, x_}, {1, w_, op_.kernel > 1}});
    implicit("fprop", op_.batch * out_size_ * out_size_, op_.out_channels, op_.in_channels,
             {access(0, gathered_x_), access(1, w_)}, access(2, y_));
    turn({{2, y_}});
    return std::move(out_);
  }

  LoweredOp backward() {
    const bool plain = plain_product();
    // dx
    if (plain) {
      product(op_.size * op_.size, op_.in_channels, op_.out_channels, {access(0, y_), access(2, w_)}, access(3, x_),
              true);
    } else {
      turn({{2, w_, op_.kernel > 1}, {0, y_}});
      implicit("dgrad", op_.batch * op_.size * op_.size, op_.in_channels, op_.out_channels,
               {access(0, y_), access(2, w_)}, access(3, x_), op_.stride);
      turn({{3, x_}});
    }
    // dw: every pixel of every image is a step of the product's inner dimension.
    if (!plain) turn({{1, x_}, {0, y_}});
    GemmWork work = problem(op_.out_channels, op_.in_channels * op_.kernel * op_.kernel,
                            op_.batch * out_size_ * out_size_, y_ + x_, true);
    work.layout = static_cast<int>(Layout::tn);
    append_gemm(out_.launches, work, gpu_, menus_, {access(0, y_), access(1, gathered_x_)}, {access(4, w_)}, "wgrad");
    if (!plain) turn({{4, w_, op_.kernel > 1}});
    return std::move(out_);
  }

 private:
  struct Turned {
    int operand;
    double elements;
    bool taps = false;
  };

  [[nodiscard]] Access access(int operand, double elements) const {
    return {.operand = operand, .bytes = elements * element_};
  }

  /// Pixels as rows of a product without gathering: needs rows of pixels the kernels can load.
  [[nodiscard]] bool plain_product() const {
    if (op_.kernel != 1 || op_.stride != 1 || !tensor_) return false;
    const double unit = 16.0;
    return op_.channels_last || std::fmod(static_cast<double>(out_size_ * out_size_) * element_, unit) == 0.0;
  }

  [[nodiscard]] GemmWork problem(std::int64_t m, std::int64_t n, std::int64_t k, double distinct,
                                 bool weights = false) const {
    // Channels that do not fill a load are padded to it.
    const std::int64_t unit = tensor_ ? 16 / bytes_of(op_.type) : 1;
    const auto padded = [unit](std::int64_t size) { return (size + unit - 1) / unit * unit; };
    Matmul product{.type = op_.type, .batch = 1, .m = m, .n = padded(n), .k = padded(k), .layout = Layout::nt};
    if (on_cuda_cores()) product.type = DType::fp32;
    GemmWork work = gemm_problem(product, gpu_);
    work.type = op_.type;
    const double operands =
        static_cast<double>(m) * static_cast<double>(k) + static_cast<double>(n) * static_cast<double>(k);
    work.distinct_reads = std::min(1.0, distinct / operands);
    work.rate_share = work.family == GemmWork::Family::simt ? (op_.backward ? kCudaCoreBackward : kCudaCoreForward)
                      : weights                             ? kGatheringWeights
                                                            : kGatheringForward;
    return work;
  }

  [[nodiscard]] bool on_cuda_cores() const {
    return !tensor_ || (!op_.backward && op_.in_channels < kFewestChannels &&
                        (!op_.channels_last || op_.in_channels > kPaddedChannels));
  }

  void implicit(std::string_view kind, std::int64_t m, std::int64_t n, std::int64_t channels, std::vector<Access> reads,
                Access write, std::int64_t stride = 1) {
    // A strided convolution's input gradient skips the taps that fall between pixels.
    const std::int64_t taps = std::max<std::int64_t>(1, op_.kernel * op_.kernel / (stride * stride));
    const std::int64_t unit = tensor_ && !on_cuda_cores() ? 16 / bytes_of(op_.type) : 1;
    double distinct = 0.0;
    for (const Access& read : reads) distinct += read.bytes / element_;
    append_gemm(out_.launches, problem(m, n, (channels + unit - 1) / unit * unit * taps, distinct), gpu_, menus_,
                std::move(reads), {write}, kind);
  }

  void product(std::int64_t pixels, std::int64_t n, std::int64_t k, std::vector<Access> reads, Access write, bool) {
    Matmul gemm{.type = op_.type, .layout = Layout::nt};
    if (op_.channels_last) {
      gemm.batch = 1;
      gemm.m = op_.batch * pixels;
      gemm.n = n;
      gemm.k = k;
    } else {
      gemm.batch = op_.batch;
      gemm.m = n;
      gemm.n = pixels;
      gemm.k = k;
      gemm.layout = Layout::nn;
    }
    append_gemm(out_.launches, gemm_problem(gemm, gpu_), gpu_, menus_, std::move(reads), {write});
  }

  /// NCHW to NHWC or back, where the product needs it.
  void turn(std::initializer_list<Turned> tensors) {
    if (op_.channels_last || on_cuda_cores()) return;
    for (const Turned& tensor : tensors) {
      KernelLaunch launch;
      launch.name = "nchwToNhwc";
      launch.time_class = TimeClass::copy;
      launch.type = op_.type;
      launch.threads_per_block = 256;
      launch.shared_bytes_per_block = 1056 * bytes_of(op_.type);
      launch.grid = {static_cast<std::int64_t>(std::max(1.0, std::ceil(tensor.elements / 1024.0))), 1, 1};
      launch.reads = {access(tensor.operand, tensor.elements)};
      launch.writes = {{.operand = Access::kTemporary, .bytes = tensor.elements * element_}};
      launch.work = FixedWork{.what = FixedWork::What::layout_change,
                              .bytes = 2.0 * tensor.elements * element_ * (tensor.taps ? kScatteredTaps : 1.0),
                              .blocks = launch.blocks()};
      out_.launches.push_back(std::move(launch));
      out_.temporaries.push_back(static_cast<std::int64_t>(tensor.elements * element_));
    }
  }

  const Convolution& op_;
  const Gpu& gpu_;
  const GpuMenus& menus_;
  std::int64_t out_size_ = 1;
  double element_ = 4, x_ = 0, y_ = 0, w_ = 0;
  double gathered_x_ = 0;  ///< pixels that the products read
  bool tensor_ = false;
  LoweredOp out_;
};

}  // namespace

LoweredOp lower_convolution(const Convolution& op, const Gpu& gpu, const Software& /*software*/,
                            const GpuMenus& menus) {
  if (op.batch < 1 || op.in_channels < 1 || op.out_channels < 1 || op.size < 1 || op.kernel < 1 || op.stride < 1)
    throw std::invalid_argument("a convolution of an empty image");
  ConvolutionLowering lowering(op, gpu, menus);
  return op.backward ? lowering.backward() : lowering.forward();
}

}  // namespace ridgeline
