// Ops whose kernels follow from the shape of a chip, lowered once for all chips of it, and the menus of its matrix
// library: a sweep over clocks, bandwidths and power limits makes them once.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "sim/hardware/chip_shape.h"
#include "sim/kernels/lowering.h"
#include "sim/program/op_map.h"

namespace ridgeline {

/// Safe to share between threads.
class ShapedOps {
 public:
  /// `chip`: any of this shape.
  ShapedOps(std::shared_ptr<const Gpu> chip, std::shared_ptr<const Software> software);

  /// As lower_by_shape() says; throws as it does. `hash`: hash_of() it.
  std::shared_ptr<const LoweredOp> of(const Op& op, std::size_t hash);
  [[nodiscard]] const std::shared_ptr<const GpuMenus>& menus() const { return menus_; }
  /// Drops all where more than `most` ops are known.
  void forget_beyond(std::size_t most);

 private:
  std::shared_ptr<const Gpu> chip_;
  std::shared_ptr<const Software> software_;
  std::shared_ptr<const GpuMenus> menus_;
  std::mutex mutex_;
  OpMap<std::shared_ptr<const LoweredOp>> ops_;
};

}  // namespace ridgeline
