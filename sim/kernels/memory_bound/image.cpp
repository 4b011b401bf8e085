// Image networks: ReLU and upsampling to the nearest pixel, batch norm and pooling in files of their own. PyTorch 2.11
// and cuDNN; tested by tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/image_kernels.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

LoweredOp relu(const ImageOp& op, const ChipShape& chip, const Software& software) {
  Pointwise pointwise{.function = op.backward ? PointwiseFunction::relu_backward : PointwiseFunction::relu,
                      .rows = op.batch * op.channels,
                      .cols = op.pixels(),
                      .input_count = static_cast<std::uint8_t>(op.backward ? 2 : 1),
                      .output = op.type};
  for (auto& input : pointwise.inputs) input = op.type;
  return lower_pointwise(pointwise, chip, software);
}

/// `size` is the side of the output, twice that of the input.
LoweredOp upsample(const ImageOp& op) {
  const ImageSizes s = image_sizes(op);
  const std::int64_t planes = op.batch * op.channels;
  constexpr std::int64_t kMost = 512;
  const std::int64_t x = std::min(power_of_two_below(op.columns()), kMost),
                     y = std::min(power_of_two_below(op.size), kMost / x);
  const std::int64_t z = std::max<std::int64_t>(1, std::min(planes, kMost / x / y));
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::upsample, "upsample_nearest2d", TimeClass::elementwise, op.type,
      {ceil_div(op.columns(), x), ceil_div(op.size, y), static_cast<int>(x * y * z), 30}, {.elements = s.elements});
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
    case ImageFunction::batch_norm: return lower_batch_norm(op, chip);
    case ImageFunction::relu: return relu(op, chip, software);
    case ImageFunction::max_pool2d:
    case ImageFunction::avg_pool2d: return lower_pooling(op);
    case ImageFunction::upsample_nearest2d: return upsample(op);
  }
  throw std::invalid_argument("unknown image function");
}

}  // namespace ridgeline
