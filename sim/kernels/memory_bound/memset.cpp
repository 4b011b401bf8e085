#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {

LoweredOp lower_memset(const Memset& op, const ChipShape& /*chip*/, const Software& /*software*/) {
  if (op.bytes < 0) throw std::invalid_argument("a memset cannot clear less than nothing");
  return {{memset_launch(static_cast<double>(op.bytes), 0)}, {}, false};
}

}  // namespace ridgeline
