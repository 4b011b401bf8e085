// Ops lowered on one GPU with one software stack, remembered: programs of many traces share them, and so do threads.
#pragma once

#include <memory>
#include <mutex>

#include "sim/kernels/lowering.h"
#include "sim/program/op_map.h"
#include "sim/program/shaped_ops.h"
#include "sim/program/step_program.h"

namespace ridgeline {

class LoweredOps {
 public:
  /// `shaped`: of the GPU's shape and this software.
  LoweredOps(std::shared_ptr<const Gpu> gpu, std::shared_ptr<const Software> software,
             std::shared_ptr<ShapedOps> shaped)
      : gpu_(std::move(gpu)),
        software_(std::move(software)),
        shaped_(std::move(shaped)),
        lowering_(*gpu_, *software_, shaped_->menus()) {}
  /// An op's kernels, and a number for the first of them that no other kernel here has.
  struct Known {
    std::shared_ptr<const LoweredOp> lowered;
    std::uint64_t first_launch = 0;
  };
  /// As lower() says; throws as it does. `hash`: hash_of() it.
  std::shared_ptr<const Known> of(const Op& op, std::size_t hash);
  /// Drops all where more than `most` ops are known; numbers are not given again.
  void forget_beyond(std::size_t most);
  [[nodiscard]] const Gpu& gpu() const { return *gpu_; }
  [[nodiscard]] const Software& software() const { return *software_; }
  /// To lower what need not be remembered.
  [[nodiscard]] const Lowering& lowering() const { return lowering_; }

 private:
  std::shared_ptr<const Gpu> gpu_;
  std::shared_ptr<const Software> software_;
  std::shared_ptr<ShapedOps> shaped_;
  Lowering lowering_;
  std::mutex mutex_;
  OpMap<std::shared_ptr<const Known>> ops_;
  std::uint64_t launches_ = 0;
};

/// As make_program of the GPU and software of `known`.
StepProgram make_program(const OpTrace& trace, LoweredOps& known);

}  // namespace ridgeline
