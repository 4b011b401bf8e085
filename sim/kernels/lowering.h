// From an op to the kernels PyTorch launches for it on a given GPU with a given software stack.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/hardware/chip_shape.h"
#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/launch/kernel_launch.h"
#include "sim/workload/op.h"

namespace ridgeline {

class GpuMenus;

struct LoweredOp {
  std::vector<KernelLaunch> launches;
  /// Device memory the op's kernels take from the caching allocator while it runs (requested bytes, in order).
  std::vector<std::int64_t> temporaries;
  bool approximated = false;  ///< no rule for this op on this GPU: costed by its bytes
};

/// What lowering knows of one GPU with one software stack, prepared once. Immutable: threads share it. Both must
/// outlive it, and stay as they are.
class Lowering {
 public:
  Lowering(const Gpu& gpu, const Software& software);
  /// With menus of the GPU's shape that are made already.
  Lowering(const Gpu& gpu, const Software& software, std::shared_ptr<const GpuMenus> menus);
  /// Throws as lower() does.
  [[nodiscard]] LoweredOp lower(const Op& op) const;
  [[nodiscard]] const Gpu& gpu() const { return *gpu_; }
  [[nodiscard]] const Software& software() const { return *software_; }

 private:
  const Gpu* gpu_;
  const Software* software_;
  std::shared_ptr<const GpuMenus> menus_;
};

/// One op alone; for many, a Lowering is made once. Throws std::invalid_argument with a sentence for shapes that cannot
/// be (m = 0, head_dim unsupported …).
LoweredOp lower(const Op& op, const Gpu& gpu, const Software& software);

/// Ops whose kernels follow from the shape of a chip: all but products, attention and convolutions, of which the kernel
/// is chosen by how fast it would be.
bool is_lowered_by_shape(const Op& op);
/// As lower() on any chip of this shape; throws as it does, and std::logic_error for another op.
LoweredOp lower_by_shape(const Op& op, const ChipShape& chip, const Software& software);

}  // namespace ridgeline
