#include "sim/kernels/convolution/convolution_tensors.h"

#include <algorithm>

namespace ridgeline {
namespace {

constexpr std::int64_t kTileOfHalf = 32, kTileOfTf32 = 64;  ///< channels
/// More groups than these count as one kernel.
constexpr std::int64_t kMostCopies = 64;

}  // namespace

ConvolutionTensors::ConvolutionTensors(const Convolution& op, bool tensor_cores) : op_(op) {
  if (tensor_cores) {
    const std::int64_t channels = std::max(op.in_channels, op.out_channels) / op.groups,
                       tile = is_half(op.type) ? kTileOfHalf : kTileOfTf32;
    while (together_ * channels < tile && op.groups % (2 * together_) == 0) together_ *= 2;
  } else if (op.groups <= kMostCopies) {
    copies_ = op.groups;
  }
  image_ = {op.batch, op.in_channels / copies_, op.pixels()};
  output_ = {op.batch, op.out_channels / copies_, op.out_pixels()};
  filter_ = {op.out_channels / copies_, op.in_channels / op.groups, op.taps()};
}

std::vector<ConvolutionTensors::Direction> ConvolutionTensors::directions() const {
  using Role = Gathering::Role;
  const auto image = [&](int index) { return Operand{index, Side::image, image_}; };
  const auto output = [&](int index) { return Operand{index, Side::output, output_}; };
  const auto filter = [&](int index) { return Operand{index, Side::filter, filter_}; };
  if (!op_.backward && op_.transposed) return {{Role::input_gradient, {output(0), filter(1)}, image(2)}};
  if (!op_.backward) return {{Role::forward, {image(0), filter(1)}, output(2)}};
  const bool both = op_.gradients == ConvolutionGradients::both;
  const int weight = both ? 2 : 1, first = both ? 3 : 2, second = both ? 4 : 2;
  std::vector<Direction> result;
  if (op_.gradients != ConvolutionGradients::weight)
    result.push_back(op_.transposed ? Direction{Role::forward, {image(0), filter(weight)}, output(first)}
                                    : Direction{Role::input_gradient, {output(0), filter(weight)}, image(first)});
  if (op_.gradients != ConvolutionGradients::input)
    result.push_back(
        {Role::weight_gradient, {output(op_.transposed ? 1 : 0), image(op_.transposed ? 0 : 1)}, filter(second)});
  return result;
}

ConvolutionProblem ConvolutionTensors::problem(Gathering::Role role) const {
  return {.role = role,
          .type = op_.type,
          .channels_last = op_.channels_last,
          .batch = op_.batch,
          .channels = op_.in_channels / op_.groups * together_,
          .size = op_.size,
          .filters = op_.out_channels / op_.groups * together_,
          .out_size = op_.out_rows(),
          .kernel = op_.kernel,
          .stride = op_.stride,
          .width = op_.columns(),
          .out_width = op_.out_columns(),
          .kernel_width = op_.kernel_columns(),
          .stride_width = op_.stride_columns(),
          .apart = op_.groups / copies_ / together_};
}

Access ConvolutionTensors::access(const Operand& operand) const {
  return {.operand = operand.index, .bytes = operand.tensor.elements() * static_cast<double>(bytes_of(op_.type))};
}

std::vector<Access> ConvolutionTensors::accesses(const std::vector<Operand>& operands) const {
  std::vector<Access> result;
  for (const Operand& operand : operands) result.push_back(access(operand));
  return result;
}

double ConvolutionTensors::gathered(const Operand& operand) const {
  const auto share = [](std::int64_t window, std::int64_t step) {
    return std::min(1.0, static_cast<double>(window) / static_cast<double>(step));
  };
  const double read = share(op_.kernel, op_.stride) * share(op_.kernel_columns(), op_.stride_columns());
  return access(operand).bytes * (operand.side == Side::image ? read : 1.0);
}

}  // namespace ridgeline
