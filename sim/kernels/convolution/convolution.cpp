// Convolution as implicit matrix products: out = [images·height·width] x [kernel²·channels] x [filters].
//
// Sequences as profiled with PyTorch 2.11 and cuDNN on an H200. Tensor-core kernels want channels last, kernels of the
// CUDA cores channels first: images and filters in the other order are turned round and back. In NCHW whichever of both
// is faster is taken, with what it turns; channels last stays on the tensor cores where there are any. 1x1 convolutions
// of stride 1 are plain products. Channels that do not fill a load are padded to it.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <stdexcept>

#include "sim/kernels/convolution/convolution_forms.h"
#include "sim/kernels/convolution/convolution_kernel.h"
#include "sim/kernels/convolution/convolution_tensors.h"
#include "sim/kernels/convolution/cudnn_depthwise.h"
#include "sim/kernels/convolution/depthwise.h"
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
#include "sim/workload/depthwise.h"

namespace ridgeline {
namespace {

using Role = Gathering::Role;
using Operand = ConvolutionTensors::Operand;
using Direction = ConvolutionTensors::Direction;
using Side = ConvolutionTensors::Side;

constexpr std::int64_t kLargestDirectHalf = 5;

class ConvolutionLowering {
 public:
  ConvolutionLowering(const Convolution& op, const Gpu& gpu, const std::shared_ptr<const GpuMenus>& menus)
      : op_(op),
        gpu_(gpu),
        menus_(menus),
        engine_(gpu),
        tensor_(has_tensor_cores(op.type, gpu)),
        tensors_(op, tensor_),
        x_(tensors_.image()),
        y_(tensors_.output()),
        w_(tensors_.filter()),
        element_(static_cast<double>(bytes_of(op.type))) {}

  LoweredOp lower() {
    for (const Direction& direction : tensors_.directions()) {
      if (!plain_product()) convolve(direction);
      else if (direction.role == Role::weight_gradient) weight_product(direction);
      else product(direction);
    }
    const LoweredOp of_group = out_;
    for (std::int64_t i = 1; i < tensors_.copies(); ++i) {
      out_.launches.insert(out_.launches.end(), of_group.launches.begin(), of_group.launches.end());
      out_.temporaries.insert(out_.temporaries.end(), of_group.temporaries.begin(), of_group.temporaries.end());
    }
    return std::move(out_);
  }

  /// All that a direction could run here but products of transformed tensors.
  std::vector<KernelLaunch> forms(Role role) {
    if (plain_product()) return {};
    std::deque<Frame> frames;
    std::vector<KernelLaunch> launches;
    for (const Direction& direction : tensors_.directions()) {
      if (direction.role != role) continue;
      for (const Form& form : kinds(direction, frames, true)) launches.push_back(launch_for(form, direction));
    }
    return launches;
  }

 private:
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

  /// Pixels as rows of a product without gathering: needs rows of pixels the kernels can load.
  [[nodiscard]] bool plain_product() const {
    if (op_.taps() != 1 || tensors_.phases() != 1 || op_.groups != 1 || !tensor_) return false;
    if (x_.pixels != y_.pixels) return false;  // padded
    const double unit = 16.0;
    return op_.channels_last || std::fmod(static_cast<double>(y_.pixels) * element_, unit) == 0.0;
  }

  [[nodiscard]] GemmWork problem_of(const Matmul& gemm) const {
    GemmWork problem = gemm_problem(gemm, gpu_);
    problem.of_convolution = true;
    return problem;
  }
  void product(const Direction& direction) {
    const std::int64_t n = direction.write.tensor.channels, k = direction.reads.front().tensor.channels;
    Matmul gemm{.type = op_.type, .layout = Layout::nt};
    if (op_.channels_last) {
      gemm.batch = 1;
      gemm.m = op_.batch * y_.pixels;
      gemm.n = n;
      gemm.k = k;
    } else {
      gemm.batch = op_.batch;
      gemm.m = n;
      gemm.n = y_.pixels;
      gemm.k = k;
      gemm.layout = Layout::nn;
    }
    append_fastest(out_.launches, {problem_of(gemm), menus_, {}}, gpu_, tensors_.accesses(direction.reads),
                   {tensors_.access(direction.write)});
  }

  /// Every pixel of every image is a step of the inner dimension.
  void weight_product(const Direction& direction) {
    const Matmul gemm{.type = op_.type,
                      .batch = 1,
                      .m = op_.out_channels,
                      .n = op_.in_channels,
                      .k = op_.batch * y_.pixels,
                      .layout = Layout::tn};
    append_fastest(out_.launches, {problem_of(gemm), menus_, {}}, gpu_, tensors_.accesses(direction.reads),
                   {tensors_.access(direction.write)});
  }

  [[nodiscard]] std::int64_t padded(std::int64_t channels) const {
    const std::int64_t unit = 16 / bytes_of(op_.type);
    return ceil_div(channels, unit) * unit;
  }

  /// Images of so few channels have kernels of the CUDA cores for channels last (convolve_common_engine_float_NHWC).
  [[nodiscard]] bool has_few_channels() const {
    constexpr std::int64_t kFewChannels = 17;
    return op_.in_channels <= kFewChannels;
  }

  /// Whether a counter of tiles is cleared before it.
  static bool clears_counter(const GemmWork& work) {
    return work.family == GemmWork::Family::wgmma && work.gathering.role != Role::weight_gradient;
  }

  /// Whether a kernel of the CUDA cores takes channels last as they are: those that sum weights in parts.
  [[nodiscard]] bool in_order(const ConvolutionKernel& kernel) const {
    if (kernel.work.family != GemmWork::Family::simt) return op_.channels_last;
    const Role role = kernel.work.gathering.role;
    return !op_.channels_last || role == Role::scattered_filters || (role == Role::forward && has_few_channels());
  }

  /// Of a turned tensor whose channels are filled up to whole loads, which is cleared first; 0: they are whole.
  [[nodiscard]] double padded_bytes(const ConvolutionKernel& kernel, const ImageTensor& tensor) const {
    if (kernel.work.family == GemmWork::Family::simt || padded(tensor.channels) == tensor.channels) return 0.0;
    ImageTensor whole = tensor;
    whole.channels = padded(tensor.channels);
    return whole.elements() * element_;
  }

  [[nodiscard]] Frame frame_of(const ConvolutionKernel& kernel, const Direction& direction) const {
    const Operand& write = direction.write;
    Frame result;
    // A single tap is in either order what it is in the other.
    const auto turns = [](const ImageTensor& tensor) { return tensor.pixels > 1; };
    if (!in_order(kernel)) {
      for (const Operand& operand : direction.reads) {
        if (!turns(operand.tensor)) continue;
        if (const double bytes = padded_bytes(kernel, operand.tensor); bytes > 0.0)
          result.before.push_back(memset_launch(bytes, Access::kTemporary));
        result.before.push_back(turned(operand.index, operand.tensor, op_.type));
      }
      if (turns(write.tensor)) result.after.push_back(turned(write.index, write.tensor, op_.type));
    } else if (op_.channels_last && kernel.work.family != GemmWork::Family::simt) {
      fill_channels(result, kernel, direction);
      if (kernel.work.family == GemmWork::Family::mma_sync && op_.type == DType::tf32)
        for (const Operand& operand : direction.reads)
          result.before.push_back(rounded(operand.index, operand.tensor, op_.type));
    }
    if (kernel.work.gathering.role == Role::scattered_images) result.before.push_back(cleared(write.tensor, op_.type));
    add_seconds(result);
    if (clears_counter(kernel.work)) result.seconds += engine_.time(counter_memset(), {}).time.value();
    return result;
  }
  /// Channels last that do not fill a load are copied into cleared memory, and results out of it. Forward kernels of
  /// fp16 and TF32 load few channels one by one instead.
  void fill_channels(Frame& frame, const ConvolutionKernel& kernel, const Direction& direction) const {
    if (direction.role == Role::forward && op_.type != DType::bf16 && has_few_channels()) return;
    for (const Operand& operand : direction.reads) {
      const double bytes = padded_bytes(kernel, operand.tensor);
      if (bytes <= 0.0) continue;
      frame.before.push_back(memset_launch(bytes, Access::kTemporary));
      frame.before.push_back(padded_channels(operand.index, operand.tensor, op_.type, bytes, gpu_));
    }
    const double bytes = padded_bytes(kernel, direction.write.tensor);
    if (bytes > 0.0)
      frame.after.push_back(padded_channels(direction.write.index, direction.write.tensor, op_.type, bytes, gpu_));
  }
  void add_seconds(Frame& frame) const {
    for (const auto* launches : {&frame.before, &frame.after})
      for (const KernelLaunch& launch : *launches) frame.seconds += engine_.time(launch, {}).time.value();
  }

  /// Kernels on tensor cores, and on the CUDA cores where the library looks at those (or for `all`).
  std::vector<Form> kinds(const Direction& direction, std::deque<Frame>& frames, bool all) const {
    ConvolutionBytes bytes{.read = 0.0, .written = direction.write.tensor.elements() * element_};
    for (const Operand& operand : direction.reads) bytes.read += tensors_.gathered(operand);
    ConvolutionProblem problem = tensors_.problem(direction.role);
    std::vector<Form> forms;
    const auto add_kinds = [&](const std::vector<ConvolutionKernel>& kernels) {
      for (const ConvolutionKernel& kernel : kernels) {
        // Neighbours in the list are of one kind.
        const GemmWork* last = forms.empty() ? nullptr : &forms.back().kernel.work;
        if (last == nullptr || last->family != kernel.work.family || last->gathering.role != kernel.work.gathering.role)
          frames.push_back(frame_of(kernel, direction));
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
    const bool few =
        direction.role == Role::forward && has_few_channels() && padded(problem.channels) != problem.channels;
    const bool cuda_cores = (!op_.channels_last || few) &&
                            !(is_half(op_.type) && std::max(op_.kernel, op_.kernel_columns()) > kLargestDirectHalf);
    if (all || forms.empty() || cuda_cores) {
      add_kinds(cuda_core_convolutions(problem, bytes, gpu_));
      if (op_.type == DType::fp32 && !all) add_transformed(forms, frames, problem, direction);
    }
    return forms;
  }

  void convolve(const Direction& direction) {
    std::deque<Frame> frames;
    std::vector<Form> forms = kinds(direction, frames, false);
    narrow(forms, direction.role == Role::weight_gradient ? op_.ran_weights : op_.ran);
    append(std::move(forms), direction);
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
                       const Direction& direction) const {
    const auto form = transformed_convolution(problem, gpu_);
    if (!form) return;
    Frame frame = frame_of(form->kernels.front(), direction);
    frame.transformed = true;
    const auto transform = [&](const Operand& operand) {
      const bool filter = operand.side == Side::filter;
      const double growth = filter                         ? form->filter_growth
                            : operand.side == Side::output ? form->output_growth
                                                           : form->image_growth;
      return transform_of(*form, operand.index, op_.type, operand.tensor.elements() * element_, filter, growth);
    };
    for (const Operand& operand : direction.reads) frame.before.push_back(transform(operand));
    frame.after.push_back(transform(direction.write));
    frame.seconds = 0.0;
    add_seconds(frame);
    frames.push_back(std::move(frame));
    if (form->preferred) forms.clear();
    for (const ConvolutionKernel& kernel : form->kernels) forms.push_back({.frame = &frames.back(), .kernel = kernel});
  }

  /// Takes the form that is fastest with cold operands. Of the other tiles, each with its best split, those that the
  /// library may take instead go with it (KernelLaunch::others).
  void append(std::vector<Form> forms, const Direction& direction) {
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
      form.launch = launch_for(form, direction);
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

  [[nodiscard]] KernelLaunch launch_for(const Form& form, const Direction& direction) const {
    const std::vector<Operand>& reads = direction.reads;
    const GemmWork& work = form.kernel.work;
    KernelLaunch kernel = launch_of(form.kernel, gpu_);
    // Input pixels of a stride that does not divide the image meet fewer taps than its outputs have.
    const double direct = 2.0 * y_.elements() * static_cast<double>(w_.channels * op_.taps());
    kernel.flops = form.frame->transformed ? gemm_flops(work) : std::min(direct, gemm_flops(work));
    const double element = static_cast<double>(bytes_of(work.type));
    const double panels[] = {form.kernel.blocks * work.tile_m * static_cast<double>(work.k) / work.split_k * element,
                             form.kernel.blocks * work.tile_n * static_cast<double>(work.k) / work.split_k * element};
    for (std::size_t i = 0; i < reads.size(); ++i)
      kernel.reads.push_back({.operand = reads[i].index,
                              .bytes = tensors_.gathered(reads[i]),
                              .requested = std::max(tensors_.gathered(reads[i]), panels[i])});
    kernel.writes = {tensors_.access(direction.write)};
    return kernel;
  }

  /// A launch of this op and the tensor that it fills.
  void keep(const KernelLaunch& launch) {
    out_.launches.push_back(launch);
    double bytes = 0.0;
    for (const Access& write : launch.writes) bytes += write.bytes;
    out_.temporaries.push_back(static_cast<std::int64_t>(bytes));
  }

  static bool has_tensor_cores(DType type, const Gpu& gpu) {
    const Matmul probe{.type = type, .batch = 1, .m = 128, .n = 128, .k = 128, .layout = Layout::nt};
    return gemm_problem(probe, gpu).family != GemmWork::Family::simt;
  }

  const Convolution& op_;
  const Gpu& gpu_;
  const std::shared_ptr<const GpuMenus>& menus_;
  AnalyticEngine engine_;
  bool tensor_;
  ConvolutionTensors tensors_;
  ImageTensor x_, y_, w_;
  double element_;
  LoweredOp out_;
};

}  // namespace

LoweredOp lower_convolution(const Convolution& op, const Gpu& gpu, const Software& /*software*/,
                            const std::shared_ptr<const GpuMenus>& menus) {
  if (const std::string why = out_of_bounds(op); !why.empty()) throw std::invalid_argument(why);
  if (runs_pytorch_depthwise(op)) return lower_pytorch_depthwise(op);
  if (op.depthwise() && op.out_channels == op.in_channels) return lower_cudnn_depthwise(op, gpu);
  return ConvolutionLowering(op, gpu, menus).lower();
}

std::vector<KernelLaunch> convolution_forms(const Convolution& op, Gathering::Role role, const Gpu& gpu) {
  return ConvolutionLowering(op, gpu, std::make_shared<const GpuMenus>(gpu)).forms(role);
}

}  // namespace ridgeline
