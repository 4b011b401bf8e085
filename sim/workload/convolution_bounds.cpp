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
                {"kernel", op.kernel, kLargestKernelOrStride},
                {"stride", op.stride, kLargestKernelOrStride}};
  for (const auto& [name, value, most] : values)
    if (value < 1 || value > most) return fmt::format("{} must be 1 to {}, got {}", name, most, value);
  const auto product = [](std::initializer_list<std::int64_t> sides) {
    double elements = 1.0;
    for (const std::int64_t side : sides) elements *= static_cast<double>(side);
    return elements;
  };
  const std::pair<const char*, double> tensors[] = {
      {"input", product({op.batch, op.in_channels, op.size, op.size})},
      {"output", product({op.batch, op.out_channels, op.size, op.size})},
      {"weight", product({op.in_channels, op.out_channels, op.kernel, op.kernel})}};
  for (const auto& [name, elements] : tensors)
    if (elements > kMostTensorElements)
      return fmt::format("{} of {:.3g} elements is too large for any GPU", name, elements);
  return "";
}

}  // namespace ridgeline
