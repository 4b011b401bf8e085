#include "fit/split_count.h"

#include "sim/units/ceil_div.h"

namespace ridgeline::fit {

bool adds_splits(const ProfiledKernel& kernel) { return kernel.name.find("splitKreduce") != std::string::npos; }
bool adds_own_splits(const ProfiledKernel& kernel) { return kernel.name.find("execute_split_k") != std::string::npos; }

int splits_of(const NamedGemm& named, const ProfiledKernel& kernel, const Matmul& op) {
  const std::int64_t tiles = ceil_div(op.m, named.m) * ceil_div(op.n, named.n) * op.batch;
  if (named.family == GemmWork::Family::wgmma) {
    if (!named.split) return 1;
    const std::int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    return static_cast<int>(blocks / tiles);  // whole clusters may be a few blocks more
  }
  if (kernel.grid[0] == 0) return 0;
  return op.batch > 1 ? 1 : static_cast<int>(kernel.grid[2]);
}

}  // namespace ridgeline::fit
