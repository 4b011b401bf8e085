// Convolution as implicit matrix products: out = [images·height·width] x [kernel²·channels] x [filters].
//
// Sequences as profiled with PyTorch 2.11 and cuDNN on an H200. Tensor-core kernels want channels last, kernels of the
// CUDA cores channels first: images and filters in the other order are turned round and back. In NCHW whichever of both
// is faster is taken, with what it turns; channels last stays on the tensor cores where there are any. 1x1 convolutions
// of stride 1 are plain products. Channels that do not fill a load are padded to it. Padding is kernel/2.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <stdexcept>

#include "sim/kernels/convolution/convolution_forms.h"
#include "sim/kernels/convolution/convolution_kernel.h"
#include "sim/kernels/convolution/image_layout.h"
#include "sim/kernels/convolution/transformed_convolution.h"
#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/products/gemm_launch.h"
#include "sim/kernels/products/product_ways.h"
#include "sim/kernels/products/tile_menu.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/likely_time.h"
#include "sim/units/ceil_div.h"
#include "sim/workload/convolution_bounds.h"

namespace ridgeline {
namespace {

using Role = Gathering::Role;

constexpr std::int64_t kLargestDirectHalf = 5;

class ConvolutionLowering {
 public:
  ConvolutionLowering(const Convolution& op, const Gpu& gpu, const std::shared_ptr<const GpuMenus>& menus)
      : op_(op), gpu_(gpu), menus_(menus), engine_(gpu) {
    const std::int64_t out_size =
        op.transposed ? op.size * op.stride : (op.size + 2 * (op.kernel / 2) - op.kernel) / op.stride + 1;
    const Matmul probe{.type = op.type, .batch = 1, .m = 128, .n = 128, .k = 128, .layout = Layout::nt};
    tensor_ = gemm_problem(probe, gpu).family != GemmWork::Family::simt;
    element_ = static_cast<double>(bytes_of(op.type));
    problem_ = {.type = op.type,
                .channels_last = op.channels_last,
                .batch = op.batch,
                .channels = op.in_channels,
                .size = op.size,
                .filters = op.out_channels,
                .out_size = out_size,
                .kernel = op.kernel,
                .stride = op.stride};
    x_ = {op.batch, op.in_channels, op.size * op.size};
    y_ = {op.batch, op.out_channels, out_size * out_size};
    w_ = {op.out_channels, op.in_channels, op.kernel * op.kernel};
  }

  LoweredOp forward() {
    if (plain_product()) product(y_.pixels, op_.out_channels, op_.in_channels, {read(0, x_), read(1, w_)}, read(2, y_));
    else convolve(Role::forward, {{0, x_}, {1, w_}}, {2, y_});
    return std::move(out_);
  }

  LoweredOp backward() {
    if (plain_product()) {
      product(x_.pixels, op_.in_channels, op_.out_channels, {read(0, y_), read(2, w_)}, read(3, x_));
      weight_product();
    } else {
      convolve(Role::input_gradient, {{0, y_}, {2, w_}}, {3, x_});
      convolve(Role::weight_gradient, {{0, y_}, {1, x_}}, {4, w_});
    }
    return std::move(out_);
  }

  /// All that a direction could run here but products of transformed tensors.
  std::vector<KernelLaunch> forms(Role role) {
    if (plain_product()) return {};
    std::deque<Frame> frames;
    std::vector<KernelLaunch> launches;
    const std::vector<Operand> reads = role == Role::forward          ? std::vector<Operand>{{0, x_}, {1, w_}}
                                       : role == Role::input_gradient ? std::vector<Operand>{{0, y_}, {2, w_}}
                                                                      : std::vector<Operand>{{0, y_}, {1, x_}};
    const Operand write = role == Role::forward          ? Operand{2, y_}
                          : role == Role::input_gradient ? Operand{3, x_}
                                                         : Operand{4, w_};
    for (const Form& form : kinds(role, reads, write, frames, true)) launches.push_back(launch_for(form, reads, write));
    return launches;
  }

 private:
  struct Operand {
    int index;
    ImageTensor tensor;
  };
  /// What kernels of one kind need turned or transformed.
  struct Frame {
    std::vector<KernelLaunch> before{}, after{};
    double seconds = 0;
    bool transformed = false;
  };
  /// A kernel in its frame.
  struct Form {
    const Frame* frame = nullptr;
    ConvolutionKernel kernel{};
    KernelLaunch launch{};
    double cold = 0;  ///< its rank with nothing in the L2: seconds of all launches, weighted
  };

  [[nodiscard]] Access read(int operand, const ImageTensor& tensor) const {
    return {.operand = operand, .bytes = tensor.elements() * element_};
  }

  /// Pixels as rows of a product without gathering: needs rows of pixels the kernels can load.
  [[nodiscard]] bool plain_product() const {
    if (op_.kernel != 1 || op_.stride != 1 || !tensor_) return false;
    const double unit = 16.0;
    return op_.channels_last || std::fmod(static_cast<double>(y_.pixels) * element_, unit) == 0.0;
  }

  [[nodiscard]] GemmWork problem_of(const Matmul& gemm) const {
    GemmWork problem = gemm_problem(gemm, gpu_);
    problem.of_convolution = true;
    return problem;
  }
  void product(std::int64_t pixels, std::int64_t n, std::int64_t k, std::vector<Access> reads, const Access& write) {
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
    append_fastest(out_.launches, {problem_of(gemm), menus_, {}}, gpu_, std::move(reads), {write});
  }

  /// Every pixel of every image is a step of the inner dimension.
  void weight_product() {
    const Matmul gemm{.type = op_.type,
                      .batch = 1,
                      .m = op_.out_channels,
                      .n = op_.in_channels,
                      .k = op_.batch * y_.pixels,
                      .layout = Layout::tn};
    append_fastest(out_.launches, {problem_of(gemm), menus_, {}}, gpu_, {read(0, y_), read(1, x_)}, {read(4, w_)});
  }

  [[nodiscard]] std::int64_t padded(std::int64_t channels) const {
    const std::int64_t unit = 16 / bytes_of(op_.type);
    return ceil_div(channels, unit) * unit;
  }

  /// What of an image a kernel reads: a stride wider than the kernel leaves pixels out.
  [[nodiscard]] double gathered(const Operand& operand) const {
    const double side = std::min(1.0, static_cast<double>(op_.kernel) / static_cast<double>(op_.stride));
    const bool image = operand.tensor.pixels == x_.pixels && operand.tensor.channels == x_.channels &&
                       operand.tensor.count == x_.count;
    return operand.tensor.elements() * element_ * (image ? side * side : 1.0);
  }

  /// Whether a counter of tiles is cleared before it.
  static bool clears_counter(const GemmWork& work) {
    return work.family == GemmWork::Family::wgmma && work.gathering.role != Role::weight_gradient;
  }

  /// Whether a kernel of the CUDA cores takes channels last as they are: those that sum weights in parts.
  [[nodiscard]] bool in_order(const ConvolutionKernel& kernel) const {
    if (kernel.work.family != GemmWork::Family::simt) return op_.channels_last;
    return !op_.channels_last || kernel.work.gathering.role == Role::scattered_filters;
  }

  /// Of a turned tensor whose channels are filled up to whole loads, which is cleared first; 0: they are whole.
  [[nodiscard]] double padded_bytes(const ConvolutionKernel& kernel, const ImageTensor& tensor) const {
    if (kernel.work.family == GemmWork::Family::simt || padded(tensor.channels) == tensor.channels) return 0.0;
    ImageTensor whole = tensor;
    whole.channels = padded(tensor.channels);
    return whole.elements() * element_;
  }

  [[nodiscard]] Frame frame_of(const ConvolutionKernel& kernel, const std::vector<Operand>& reads,
                               const Operand& write) const {
    Frame result;
    // A single tap is in either order what it is in the other.
    const auto turns = [](const ImageTensor& tensor) { return tensor.pixels > 1; };
    if (!in_order(kernel)) {
      for (const Operand& operand : reads) {
        if (!turns(operand.tensor)) continue;
        if (const double bytes = padded_bytes(kernel, operand.tensor); bytes > 0.0)
          result.before.push_back(memset_launch(bytes, Access::kTemporary));
        result.before.push_back(turned(operand.index, operand.tensor, op_.type));
      }
      if (turns(write.tensor)) result.after.push_back(turned(write.index, write.tensor, op_.type));
    } else if (kernel.work.family == GemmWork::Family::mma_sync && op_.type == DType::tf32 && op_.channels_last) {
      for (const Operand& operand : reads) result.before.push_back(rounded(operand.index, operand.tensor, op_.type));
    }
    add_seconds(result);
    if (clears_counter(kernel.work)) result.seconds += engine_.time(counter_memset(), {}).time.value();
    return result;
  }
  void add_seconds(Frame& frame) const {
    for (const auto* launches : {&frame.before, &frame.after})
      for (const KernelLaunch& launch : *launches) frame.seconds += engine_.time(launch, {}).time.value();
  }

  /// Kernels on tensor cores, and on the CUDA cores where the library looks at those (or for `all`).
  std::vector<Form> kinds(Role role, const std::vector<Operand>& reads, const Operand& write, std::deque<Frame>& frames,
                          bool all) const {
    ConvolutionBytes bytes{.read = 0.0, .written = write.tensor.elements() * element_};
    for (const Operand& operand : reads) bytes.read += gathered(operand);
    ConvolutionProblem problem = problem_;
    problem.role = role;
    std::vector<Form> forms;
    const auto add_kinds = [&](const std::vector<ConvolutionKernel>& kernels) {
      for (const ConvolutionKernel& kernel : kernels) {
        // Neighbours in the list are of one kind.
        const GemmWork* last = forms.empty() ? nullptr : &forms.back().kernel.work;
        if (last == nullptr || last->family != kernel.work.family || last->gathering.role != kernel.work.gathering.role)
          frames.push_back(frame_of(kernel, reads, write));
        forms.push_back({.frame = &frames.back(), .kernel = kernel});
      }
    };
    if (tensor_) {
      ConvolutionProblem whole_loads = problem;
      whole_loads.channels = padded(problem.channels);
      whole_loads.filters = padded(problem.filters);
      add_kinds(tensor_convolutions(whole_loads, bytes, gpu_));
    }
    // The CUDA cores' kernels of 16 bits end at filters of 5 x 5 (implicit_convolve_sgemm).
    const bool cuda_cores = !op_.channels_last && !(is_half(op_.type) && op_.kernel > kLargestDirectHalf);
    if (all || forms.empty() || cuda_cores) {
      add_kinds(cuda_core_convolutions(problem, bytes, gpu_));
      if (op_.type == DType::fp32 && !all) add_transformed(forms, frames, problem, reads, write);
    }
    return forms;
  }

  void convolve(Role role, const std::vector<Operand>& reads, const Operand& write) {
    std::deque<Frame> frames;
    std::vector<Form> forms = kinds(role, reads, write, frames, false);
    narrow(forms, role == Role::weight_gradient ? op_.ran_weights : op_.ran);
    append(std::move(forms), reads, write);
  }

  /// To those of the form that a recording names, where there are any.
  static void narrow(std::vector<Form>& forms, const RecordedConvolution& ran) {
    if (!ran.known()) return;
    const auto suits = [&](const Form& form) {
      if (ran.transformed || form.frame->transformed) return ran.transformed && form.frame->transformed;
      return form.kernel.work.family == family_named(ran.instructions);
    };
    if (std::any_of(forms.begin(), forms.end(), suits)) std::erase_if(forms, [&](const Form& f) { return !suits(f); });
  }
  static GemmWork::Family family_named(LibraryKernel::Instructions instructions) {
    switch (instructions) {
      case LibraryKernel::Instructions::wgmma: return GemmWork::Family::wgmma;
      case LibraryKernel::Instructions::mma_sync: return GemmWork::Family::mma_sync;
      default: return GemmWork::Family::simt;
    }
  }

  /// Winograd's weight gradients and Fourier transforms of input gradients, products of transformed tensors.
  void add_transformed(std::vector<Form>& forms, std::deque<Frame>& frames, const ConvolutionProblem& problem,
                       const std::vector<Operand>& reads, const Operand& write) const {
    const auto form = transformed_convolution(problem, gpu_);
    if (!form) return;
    Frame frame = frame_of(form->kernels.front(), reads, write);
    frame.transformed = true;
    const auto transform = [&](const Operand& operand) {
      const bool filter = operand.tensor.pixels == w_.pixels && operand.tensor.count == w_.count;
      const double growth = filter               ? form->filter_growth
                            : operand.index == 0 ? form->output_growth
                                                 : form->image_growth;
      return transform_of(*form, operand.index, op_.type, operand.tensor.elements() * element_, filter, growth);
    };
    for (const Operand& operand : reads) frame.before.push_back(transform(operand));
    frame.after.push_back(transform(write));
    frame.seconds = 0.0;
    add_seconds(frame);
    frames.push_back(std::move(frame));
    if (form->preferred) forms.clear();
    for (const ConvolutionKernel& kernel : form->kernels) forms.push_back({.frame = &frames.back(), .kernel = kernel});
  }

  /// Takes the form that is fastest with cold operands. Of the other tiles, each with its best split, those that the
  /// library may take instead go with it (KernelLaunch::others).
  void append(std::vector<Form> forms, const std::vector<Operand>& reads, const Operand& write) {
    const auto at_full_clock = [&](const Form& form) {
      return (form.kernel.seconds + form.frame->seconds) * dislike_of_form(form.kernel.work);
    };
    std::sort(forms.begin(), forms.end(),
              [&](const Form& a, const Form& b) { return at_full_clock(a) < at_full_clock(b); });
    const auto of_one_tile = [](const Form& a, const Form& b) {
      const GemmWork &x = a.kernel.work, &y = b.kernel.work;
      return a.frame == b.frame && x.tile_m == y.tile_m && x.tile_n == y.tile_n && x.tile_k == y.tile_k;
    };
    std::vector<Form> kept;
    double best = std::numeric_limits<double>::infinity();
    for (Form& form : forms) {
      if (at_full_clock(form) > kMostSlower * best) break;
      if (std::any_of(kept.begin(), kept.end(), [&](const Form& other) { return of_one_tile(form, other); })) continue;
      form.launch = launch_for(form, reads, write);
      form.launch.around = form.frame->seconds;
      form.cold =
          (engine_.time(form.launch, {}).time.value() + form.frame->seconds) * dislike_of_form(form.kernel.work);
      best = std::min(best, form.cold);
      kept.push_back(std::move(form));
    }
    std::stable_sort(kept.begin(), kept.end(), [](const Form& a, const Form& b) { return a.cold < b.cold; });
    auto others = std::make_shared<std::vector<OtherForm>>();
    for (std::size_t i = 1; i < kept.size(); ++i)
      others->push_back({std::move(kept[i].launch), kept[i].frame->seconds});
    Form& own = kept.front();
    own.launch.name = own.frame->transformed ? "gemm_of_transforms" : name_of_convolution(own.kernel.work);
    own.launch.others = std::move(others);
    for (const KernelLaunch& launch : own.frame->before) {
      if (launch.writes.empty() || launch.reads.empty()) out_.launches.push_back(launch);  // clears what the next fills
      else keep(launch);
    }
    if (clears_counter(own.kernel.work)) out_.launches.push_back(counter_memset());
    out_.launches.push_back(std::move(own.launch));
    for (const KernelLaunch& launch : own.frame->after) keep(launch);
  }

  [[nodiscard]] KernelLaunch launch_for(const Form& form, const std::vector<Operand>& reads,
                                        const Operand& write) const {
    const GemmWork& work = form.kernel.work;
    KernelLaunch kernel = launch_of(form.kernel, gpu_);
    // Input pixels of a stride that does not divide the image meet fewer taps than its outputs have.
    const double direct = 2.0 * y_.elements() * static_cast<double>(op_.in_channels * op_.kernel * op_.kernel);
    kernel.flops = form.frame->transformed ? gemm_flops(work) : std::min(direct, gemm_flops(work));
    const double element = static_cast<double>(bytes_of(work.type));
    const double panels[] = {form.kernel.blocks * work.tile_m * static_cast<double>(work.k) / work.split_k * element,
                             form.kernel.blocks * work.tile_n * static_cast<double>(work.k) / work.split_k * element};
    for (std::size_t i = 0; i < reads.size(); ++i)
      kernel.reads.push_back({.operand = reads[i].index,
                              .bytes = gathered(reads[i]),
                              .requested = std::max(gathered(reads[i]), panels[i])});
    kernel.writes = {read(write.index, write.tensor)};
    return kernel;
  }

  /// A launch of this op and the tensor that it fills.
  void keep(const KernelLaunch& launch) {
    out_.launches.push_back(launch);
    double bytes = 0.0;
    for (const Access& write : launch.writes) bytes += write.bytes;
    out_.temporaries.push_back(static_cast<std::int64_t>(bytes));
  }

  const Convolution& op_;
  const Gpu& gpu_;
  const std::shared_ptr<const GpuMenus>& menus_;
  AnalyticEngine engine_;
  ConvolutionProblem problem_;
  ImageTensor x_, y_, w_;
  double element_ = 4;
  bool tensor_ = false;
  LoweredOp out_;
};

}  // namespace

LoweredOp lower_convolution(const Convolution& op, const Gpu& gpu, const Software& /*software*/,
                            const std::shared_ptr<const GpuMenus>& menus) {
  if (const std::string why = out_of_bounds(op); !why.empty()) throw std::invalid_argument(why);
  ConvolutionLowering lowering(op, gpu, menus);
  return op.backward ? lowering.backward() : lowering.forward();
}

std::vector<KernelLaunch> convolution_forms(const Convolution& op, Gathering::Role role, const Gpu& gpu) {
  return ConvolutionLowering(op, gpu, std::make_shared<const GpuMenus>(gpu)).forms(role);
}

}  // namespace ridgeline
