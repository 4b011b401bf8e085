// An op without a rule costs what a point-wise kernel over its bytes would; the result says so.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/workload/kernel_family.h"

namespace ridgeline {
namespace {

TimeClass class_of(std::string_view name) {
  if (name.starts_with("c10d::")) return TimeClass::communication;
  switch (family_of_kernel(name)) {
    case KernelFamily::gemm:
    case KernelFamily::attention:
    case KernelFamily::convolution: return TimeClass::tensor_contraction;
    case KernelFamily::normalization: return TimeClass::normalization;
    case KernelFamily::optimizer: return TimeClass::optimizer;
    case KernelFamily::copy: return TimeClass::copy;
    case KernelFamily::communication: return TimeClass::communication;
    default: return TimeClass::elementwise;
  }
}

}  // namespace

LoweredOp lower_unknown(const UnknownOp& op, const ChipShape& /*chip*/, const Software& /*software*/) {
  if (op.read_bytes < 0 || op.written_bytes < 0) throw std::invalid_argument("an op cannot move less than no bytes");
  const std::int64_t elements = std::max<std::int64_t>(1, std::max(op.read_bytes, op.written_bytes) / 4);
  KernelLaunch launch =
      memory_bound_launch(MemoryBoundKernel::unary, op.name.empty() ? "unknown" : op.name, class_of(op.name),
                          DType::fp32, {ceil_div(elements, 1024)}, {.elements = static_cast<double>(elements)});
  if (op.read_bytes > 0) launch.reads = {{0, static_cast<double>(op.read_bytes)}};
  if (op.written_bytes > 0) launch.writes = {{1, static_cast<double>(op.written_bytes)}};
  return {{std::move(launch)}, {}, true};
}

}  // namespace ridgeline
