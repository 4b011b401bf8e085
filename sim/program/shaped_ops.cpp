#include "sim/program/shaped_ops.h"

#include "sim/kernels/products/tile_menu.h"

namespace ridgeline {

ShapedOps::ShapedOps(std::shared_ptr<const Gpu> chip, std::shared_ptr<const Software> software)
    : chip_(std::move(chip)), software_(std::move(software)), menus_(std::make_shared<const GpuMenus>(*chip_)) {}

std::shared_ptr<const LoweredOp> ShapedOps::of(const Op& op, std::size_t hash) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto* known = ops_.find(op, hash)) return *known;
  }
  auto made = std::make_shared<const LoweredOp>(lower_by_shape(op, *chip_, *software_));
  const std::lock_guard lock(mutex_);
  return ops_.get(op, hash, [&] { return std::move(made); });
}

void ShapedOps::forget_beyond(std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (ops_.size() > most) ops_.clear();
}

}  // namespace ridgeline
