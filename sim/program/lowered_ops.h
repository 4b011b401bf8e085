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
  /// As lower() says; throws as it does. The reference stays good.
  const LoweredOp& of(const Op& op);
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
  std::unordered_map<Op, LoweredOp, Hash> ops_;
};

/// As make_program of the GPU and software of `known`.
StepProgram make_program(const OpTrace& trace, LoweredOps& known);

}  // namespace ridgeline
