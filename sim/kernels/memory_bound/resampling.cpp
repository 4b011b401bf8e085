// Interpolation, padding, sampling and unfolding of images: a thread an output pixel, or a thread a pixel of one image
// whose planes it walks. PyTorch 2.11's UpSample*.cu, ReflectionPad.cu, ReplicationPadding.cu, GridSampler.cu and
// im2col.cuh; tested by tests/kernels/resampling_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

/// Threads, what each of them walks and the pixels that one of its results is made of.
struct ResamplingPlan {
  MemoryBoundKernel kernel = MemoryBoundKernel::interpolate_linear;
  std::int64_t threads = 0;  ///< in all
  std::int64_t steps = 1;    ///< planes that a thread walks, one after the other
  int block = 256;
  double weights = 1.0;       ///< pixels read, or added to, for one result
  bool clears = false;        ///< the result is cleared first, for atomic additions or by habit
  std::int64_t launches = 1;  ///< kernels, one for each image
};

ResamplingPlan resampling_plan(const Resampling& op) {
  using R = ResamplingFunction;
  using K = MemoryBoundKernel;
  switch (op.function) {
    case R::linear:
    case R::bilinear: {
      const double weights = op.function == R::linear ? 2.0 : 4.0;
      constexpr std::int64_t kFewestChannels = 4;  // of a thread for each result
      if (!op.backward && op.function == R::bilinear && op.channels_last && op.channels >= kFewestChannels)
        return {K::interpolate_linear, op.outputs * op.planes(), 1, 1024, weights, false};
      if (!op.backward)
        return {K::interpolate_linear,   op.outputs, op.planes(), op.function == R::linear ? 512 : 1024, weights,
                op.function == R::linear};
      if (op.function == R::linear)
        return {K::interpolate_linear_backward, op.outputs, op.planes(), 512, weights, true};
      return {K::interpolate_linear_backward, op.outputs * op.planes(), 1, 1024, weights, true};
    }
    case R::bicubic:
      if (op.backward) return {K::interpolate_cubic_backward, op.outputs, op.planes(), 1024, 16.0, true};
      return {K::interpolate_cubic, op.outputs, op.planes(), 1024, 16.0, true};
    case R::nearest:
      if (op.backward) return {K::upsample, op.inputs * op.planes(), 1, 512, 1.0};
      return {K::upsample, op.outputs * op.planes(), 1, 512, 1.0};
    case R::reflection_pad:
    case R::replication_pad:
      return {op.backward ? K::pad_backward : K::pad,
              ceil_div(op.outputs, 256) * 256 * op.planes(),
              1,
              256,
              1.0,
              op.backward};  // blocks of one plane each
    case R::grid_nearest:
    case R::grid_bilinear:
      return {op.backward ? K::grid_sample_backward : K::grid_sample,
              op.outputs * op.batch,
              op.channels,
              256,
              op.function == R::grid_bilinear ? 4.0 : 1.0,
              op.backward};
    case R::unfold: return {K::unfold, op.outputs * op.channels, op.taps, 1024, 1.0, false, op.batch};
    case R::fold: return {K::fold, op.inputs * op.planes(), 1, 512, static_cast<double>(op.taps)};
  }
  throw std::invalid_argument("unknown resampling function");
}

std::string kernel_name(const Resampling& op) {
  using R = ResamplingFunction;
  switch (op.function) {
    case R::nearest: return "upsample_nearest";
    case R::linear: return "upsample_linear1d_out_frame";
    case R::reflection_pad: return "reflection_pad";
    case R::replication_pad: return "replication_pad";
    case R::unfold: return "im2col_kernel";
    case R::fold: return "col2im";
    case R::grid_nearest:
    case R::grid_bilinear: return op.backward ? "grid_sampler_2d_backward_kernel" : "grid_sampler_2d_kernel";
    default: return name_of(Op{op});
  }
}

}  // namespace

LoweredOp lower_resampling(const Resampling& op, const ChipShape& /*chip*/, const Software& /*software*/) {
  if (op.batch < 1 || op.channels < 1 || op.inputs < 1 || op.outputs < 1 || op.taps < 1)
    throw std::invalid_argument("a resampling needs a batch, channels and pixels on both sides");
  using R = ResamplingFunction;
  const ResamplingPlan plan = resampling_plan(op);
  const auto planes = static_cast<double>(op.planes()), element = static_cast<double>(bytes_of(op.type));
  const bool windows = op.function == R::unfold || op.function == R::fold;
  const double taps = windows ? static_cast<double>(op.taps) : 1.0;
  const double inputs = planes * static_cast<double>(op.inputs) * element,
               outputs = planes * static_cast<double>(op.outputs) * taps * element;
  const bool reversed = op.backward || op.function == R::fold;  // results of the forward pass are read
  LoweredOp result;
  const bool grid = op.function == R::grid_nearest || op.function == R::grid_bilinear;
  const int written = grid ? (op.backward ? 3 : 2) : 1;
  if (plan.clears) {
    const std::int64_t cleared = reversed ? op.inputs : op.outputs;
    KernelLaunch clear = memory_bound_launch(MemoryBoundKernel::fill, "fill", TimeClass::elementwise, op.type,
                                             {ceil_div(op.planes() * cleared, 1024), 1, 128, 16},
                                             {.elements = planes * static_cast<double>(cleared)});
    clear.writes = {{written, reversed ? inputs : outputs}};
    result.launches.push_back(std::move(clear));
  }
  const double share = 1.0 / static_cast<double>(plan.launches);
  for (std::int64_t i = 0; i < plan.launches; ++i) {
    const double results = static_cast<double>(plan.threads) * static_cast<double>(plan.steps);
    KernelLaunch launch = memory_bound_launch(plan.kernel, kernel_name(op), TimeClass::elementwise, op.type,
                                              {ceil_div(plan.threads, plan.block), 1, plan.block, 32},
                                              {.elements = results,
                                               .padded_elements = results * plan.weights,
                                               .iterations = static_cast<double>(plan.steps)});
    const double asked = results * plan.weights * element;
    launch.flops = 2.0 * results * plan.weights;
    if (reversed) {
      launch.reads = {{0, outputs * share}};
      if (grid) launch.reads.push_back({2, 2.0 * static_cast<double>(op.batch * op.outputs) * element});
      launch.writes = {{written, inputs * share, plan.clears ? std::max(inputs, asked) * share : 0.0}};
    } else {
      // Four neighbours' pixels are in the L1.
      const bool found = grid || op.function == R::linear || op.function == R::bilinear;
      launch.reads = {{0, inputs * share, found ? 0.0 : std::max(inputs * share, asked)}};
      if (grid) launch.reads.push_back({1, 2.0 * static_cast<double>(op.batch * op.outputs) * element});
      launch.writes = {{written, outputs * share}};
    }
    result.launches.push_back(std::move(launch));
  }
  return result;
}

}  // namespace ridgeline
