#include "sim/trace/profiler/unrecorded_layouts.h"

#include <algorithm>

#include "sim/trace/profiler/profiler_arguments.h"

namespace ridgeline::trace {

std::optional<AtenTensor> image_after(const std::vector<OperatorEvent>& operators, std::size_t op, const AtenCall& call,
                                      const std::string& place) {
  constexpr std::size_t kFar = 64;  // operators, those inside the convolution among them
  constexpr double kTouch = 5e-4;   // microseconds: ends are sums of decimals
  const AtenTensor *x = call.tensor(0), *weight = call.tensor(1);
  const bool has_numbers = std::any_of(call.inputs.begin(), call.inputs.end(), [](const Argument& argument) {
    return std::holds_alternative<Numbers>(argument);
  });
  if (call.name.find("convolution") == call.name.npos || call.name.find("backward") != call.name.npos || has_numbers ||
      x == nullptr || weight == nullptr || x->sizes.size() < 3 || weight->sizes.empty())
    return std::nullopt;
  Defects counted;  // they are when the operators have their turn
  for (std::size_t i = op + 1; i < operators.size() && i < op + kFar; ++i) {
    const OperatorEvent& next = operators[i];
    if (next.thread != operators[op].thread || next.begin + kTouch < operators[op].end) continue;
    auto arguments = profiler_arguments(next.arguments, DType::fp32, place, counted);
    auto* image = arguments.empty() ? nullptr : std::get_if<AtenTensor>(&arguments.front());
    if (image != nullptr && image->sizes.size() == x->sizes.size() && image->sizes[0] == x->sizes[0] &&
        image->sizes[1] == weight->sizes[0])
      return std::move(*image);
  }
  return std::nullopt;
}

bool lies_apart(const std::string& arguments, const AtenCall& call) {
  if (arguments.find("\"Input Strides\"") != arguments.npos) return false;
  return std::any_of(call.kernels.begin(), call.kernels.end(), [](const MeasuredKernel& kernel) {
    return kernel.name.find("at::native::elementwise_kernel<") != kernel.name.npos;
  });
}

bool goes_over_host_link(const AtenCall& call) {
  constexpr std::int64_t kLarge = 1 << 20;  // smaller ones are mostly their start
  return !call.kernels.empty() && std::all_of(call.kernels.begin(), call.kernels.end(), [](const MeasuredKernel& k) {
    return (k.name.starts_with("Memcpy HtoD") || k.name.starts_with("Memcpy DtoH")) && k.bytes >= kLarge;
  });
}

}  // namespace ridgeline::trace
