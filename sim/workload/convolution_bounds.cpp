#include "sim/workload/convolution_bounds.h"

#include <fmt/format.h>

#include <utility>

namespace ridgeline {

std::string out_of_bounds(const Convolution& op) {
  const struct {
    const char* name;
    std::int64_t value, most;
  } values[] = {{"batch", op.batch, static_cast<std::int64_t>(kMostTensorElements)},
                {"in_channels", op.in_channels, static_cast<std::int64_t>(kMostTensorElements)},
                {"out_channels", op.out_channels, static_cast<std::int64_t>(kMostTensorElements)},
                {"size", op.size, kLargestImageSide},
                {"width", op.columns(), kLargestImageSide},
                {"kernel", op.kernel, kLargestKernelOrStride},
                {"kernel_width", op.kernel_columns(), kLargestKernelOrStride},
                {"stride", op.stride, kLargestKernelOrStride},
                {"stride_width", op.stride_columns(), kLargestKernelOrStride},
                {"groups", op.groups, kMostGroups}};
  for (const auto& [name, value, most] : values)
    if (value < 1 || value > most) return fmt::format("{} must be 1 to {}, got {}", name, most, value);
  if (op.in_channels % op.groups != 0 || op.out_channels % op.groups != 0)
    return fmt::format("groups must divide in_channels and out_channels, got {} of {} and {}", op.groups,
                       op.in_channels, op.out_channels);
  if (op.out_rows() < 1 || op.out_rows() > kLargestImageSide || op.out_columns() < 1 ||
      op.out_columns() > kLargestImageSide)
    return fmt::format("outputs of {} x {} pixels: sides must be 1 to {}", op.out_rows(), op.out_columns(),
                       kLargestImageSide);
  const auto product = [](std::initializer_list<std::int64_t> sides) {
    double elements = 1.0;
    for (const std::int64_t side : sides) elements *= static_cast<double>(side);
    return elements;
  };
  const std::pair<const char*, double> tensors[] = {
      {"input", product({op.batch, op.in_channels, op.size, op.columns()})},
      {"output", product({op.batch, op.out_channels, op.out_rows(), op.out_columns()})},
      {"weight", product({op.in_channels / op.groups, op.out_channels, op.kernel, op.kernel_columns()})}};
  for (const auto& [name, elements] : tensors)
    if (elements > kMostTensorElements)
      return fmt::format("{} of {:.3g} elements is too large for any GPU", name, elements);
  return "";
}

}  // namespace ridgeline
