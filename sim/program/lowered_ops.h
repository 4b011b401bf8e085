// Ops lowered on one GPU with one software stack, remembered: programs of many traces share them, and so do threads.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "sim/kernels/lowering.h"
#include "sim/program/step_program.h"

namespace ridgeline {

class LoweredOps {
 public:
  LoweredOps(std::shared_ptr<const Gpu> gpu, std::shared_ptr<const Software> software)
      : gpu_(std::move(gpu)), software_(std::move(software)), lowering_(*gpu_, *software_) {}
  /// An op's kernels, and a number for the first of them that no other kernel here has.
  struct Known {
    LoweredOp lowered;
    std::uint64_t first_launch = 0;
  };
  /// As lower() says; throws as it does.
  std::shared_ptr<const Known> of(const Op& op);
  /// Drops all where more than `most` ops are known; numbers are not given again.
  void forget_beyond(std::size_t most);
  [[nodiscard]] const Gpu& gpu() const { return *gpu_; }
  [[nodiscard]] const Software& software() const { return *software_; }

 private:
  struct Hash {
    std::size_t operator()(const Op& op) const { return hash_of(op); }
  };
  std::shared_ptr<const Gpu> gpu_;
  std::shared_ptr<const Software> software_;
  Lowering lowering_;
  std::mutex mutex_;
  std::unordered_map<Op, std::shared_ptr<const Known>, Hash> ops_;
  std::uint64_t launches_ = 0;
};

/// As make_program of the GPU and software of `known`.
StepProgram make_program(const OpTrace& trace, LoweredOps& known);

}  // namespace ridgeline
