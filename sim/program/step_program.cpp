#include "sim/program/step_program.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include "sim/program/lowered_ops.h"
#include "sim/program/program_layout.h"
#include "sim/program/token_kernels.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// An op of a step that the GPU has no kernel for is the person's choice of GPU, not our bug.
template <class Lower>
auto kernels_of(const Op& op, const Gpu& gpu, Lower lower) {
  try {
    return lower(op);
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("{} cannot run {} of this step: {}", gpu.name, name_of(op), error.what()));
  }
}

// transformer_engine/pytorch/module/base.py, get_cublas_workspace_size_bytes: 32 MiB on Hopper, 4 MiB before.
constexpr std::int64_t kLargeEngineWorkspace = std::int64_t{32} << 20, kEngineWorkspace = std::int64_t{4} << 20;

/// Lowers the operations of a trace in the order of their first calls, in which their launches are numbered.
class TraceLowering {
 public:
  TraceLowering(const OpTrace& trace, const Gpu& gpu, const Software& software) : trace_(trace), gpu_(gpu) {
    const bool large = gpu.architecture == Architecture::hopper || gpu.architecture == Architecture::blackwell;
    const Bytes workspace = large ? software.cublas_workspace_hopper : software.cublas_workspace;
    key_.workspace = std::llround(workspace.value());
    key_.light_workspace = std::llround(software.cublaslt_workspace.value());
    if (trace.transformer_engine) key_.engine_workspace = large ? kLargeEngineWorkspace : kEngineWorkspace;
    key_.fuses_bias = software.addmm_fuses_bias;
    key_.operations.resize(trace.ops.size());
  }

  void lower_alone(const Software& software) {
    const Lowering lowering(gpu_, software);
    for (const CalledOp& called : called_ops(trace_)) {
      keep_budget("choosing kernels");
      const auto made = std::make_shared<const LoweredOp>(
          kernels_of(trace_.ops[called.op], gpu_, [&](const Op& one) { return lowering.lower(one); }));
      take(*made, made, called.op);
    }
    lower_tokens_with(
        [&](const Op& op) { return kernels_of(op, gpu_, [&](const Op& one) { return lowering.lower(one); }); });
  }
  void lower_with(LoweredOps& ops, std::span<const CalledOp> all) {
    for (const CalledOp& called : all) {
      keep_budget("choosing kernels");
      const std::shared_ptr<const LoweredOps::Known> known = ops.of(trace_.ops[called.op], called.hash);
      for (std::size_t i = 0; i < known->lowered->launches.size(); ++i)
        launch_numbers_.push_back(known->first_launch + i);
      take(*known->lowered, known, called.op);
    }
    lower_tokens_with(
        [&](const Op& op) { return kernels_of(op, gpu_, [&](const Op& one) { return ops.lowering().lower(one); }); });
  }
  [[nodiscard]] const LayoutKey& key() const { return key_; }
  StepProgram program_of(StepProgram layout) {
    layout.launches = std::move(launches_);
    layout.launch_numbers = std::move(launch_numbers_);
    layout.approximated = std::move(approximated_);
    layout.token_kernels = std::move(tokens_);
    return layout;
  }

 private:
  void lower_tokens_with(const std::function<LoweredOp(const Op&)>& lower) {
    if (trace_.tokens != nullptr) tokens_ = lower_tokens(*trace_.tokens, lower);
  }
  void take(const LoweredOp& result, std::shared_ptr<const void> owner, std::uint32_t op) {
    LayoutKey::Operation& operation = key_.operations[op];
    operation.first_launch = static_cast<std::uint32_t>(launches_.size());
    operation.launches = static_cast<std::uint32_t>(result.launches.size());
    launches_.share(std::move(owner), result.launches);
    for (const std::int64_t bytes : result.temporaries) {
      if (bytes > 0) operation.temporaries.push_back(bytes);
    }
    if (result.approximated) approximated_.push_back(op);
  }

  const OpTrace& trace_;
  const Gpu& gpu_;
  LayoutKey key_;
  LaunchList launches_;
  std::vector<std::uint64_t> launch_numbers_;
  std::vector<std::uint32_t> approximated_;
  std::shared_ptr<const TokenKernels> tokens_;
};

}  // namespace

StepProgram make_program(const OpTrace& trace, const Gpu& gpu, const Software& software) {
  TraceLowering lowering(trace, gpu, software);
  lowering.lower_alone(software);
  return lowering.program_of(lay_out(trace, lowering.key()));
}

StepProgram make_program(const OpTrace& trace, std::span<const CalledOp> called, LoweredOps& known,
                         const std::function<StepProgram(const LayoutKey&)>& layout_of) {
  TraceLowering lowering(trace, known.gpu(), known.software());
  lowering.lower_with(known, called);
  return lowering.program_of(layout_of(lowering.key()));
}

StepProgram make_program(const OpTrace& trace, LoweredOps& known) {
  return make_program(trace, called_ops(trace), known, [&](const LayoutKey& key) { return lay_out(trace, key); });
}

std::shared_ptr<const LoweredOps::Known> LoweredOps::of(const Op& op, std::size_t hash) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto* known = ops_.find(op, hash)) return *known;
  }
  auto made = kernels_of(op, gpu(), [&](const Op& one) {
    return is_lowered_by_shape(one) ? shaped_->of(one, hash) : std::make_shared<const LoweredOp>(lowering_.lower(one));
  });
  const std::lock_guard lock(mutex_);
  return ops_.get(op, hash, [&] {
    const std::uint64_t first = launches_;
    launches_ += made->launches.size();
    return std::make_shared<const Known>(Known{std::move(made), first});
  });
}

void LoweredOps::forget_beyond(std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (ops_.size() > most) ops_.clear();
}

}  // namespace ridgeline
