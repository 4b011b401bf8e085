#include "sim/program/step_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <variant>

#include "sim/program/lowered_ops.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// An op of a step that the GPU has no kernel for is the person's choice of GPU, not our bug.
LoweredOp kernels_of(const Op& op, const Lowering& lowering, const Gpu& gpu) {
  try {
    return lowering.lower(op);
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("{} cannot run {} of this step: {}", gpu.name, name_of(op), error.what()));
  }
}

/// A matrix library handle belongs to a host thread: the main thread runs forward, the autograd thread backward.
enum class Thread : std::uint8_t { main, autograd };

class Assembler {
 public:
  Assembler(const OpTrace& trace, const Gpu& gpu, const Software& software, LoweredOps* known)
      : trace_(trace), gpu_(gpu), software_(software), known_(known), lowered_(trace.ops.size()) {
    if (known == nullptr) lowering_.emplace(gpu, software);
    program_.trace = &trace;
    program_.storages = trace.storages;
    program_.actions.reserve(trace.records.size() * 2);
    program_.steps.reserve(trace.steps.size());
  }

  StepProgram assemble() {
    for (const RepeatedRange& range : trace_.repeats) program_.repeats.push_back({{}, range.times});
    const auto end = static_cast<std::uint32_t>(trace_.records.size());
    std::uint32_t i = 0;
    for (const std::uint32_t bound : bounds()) {
      if (bound > end) break;
      for (; i < bound; ++i) add(trace_.records[i]);
      add_bounds(bound);
    }
    for (; i < end; ++i) add(trace_.records[i]);
    return std::move(program_);
  }

 private:
  struct Lowered {
    bool done = false;
    std::uint32_t first_launch = 0, launches = 0;
    std::vector<std::int64_t> temporaries;
  };

  /// Records before which something begins or ends, ascending.
  [[nodiscard]] std::vector<std::uint32_t> bounds() const {
    std::vector<std::uint32_t> all;
    const auto add = [&](const StepRange& range) { all.insert(all.end(), {range.begin, range.end}); };
    for (const StepRange& range : trace_.stage_actions) add(range);
    for (const RepeatedRange& range : trace_.repeats) add(range.records);
    for (const StepRange& range : trace_.steps) add(range);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  void add_bounds(std::uint32_t i) {
    add_stage_actions(i);
    if (repeat_ < trace_.repeats.size()) {
      const StepRange records = trace_.repeats[repeat_].records;
      if (records.begin == i) program_.repeats[repeat_].actions.begin = here();
      if (records.end == i) program_.repeats[repeat_++].actions.end = here();
    }
    // Steps follow each other, but need not touch.
    if (step_ < trace_.steps.size() && program_.steps.size() > step_ && trace_.steps[step_].end == i) {
      program_.steps[step_].end = here();
      ++step_;
    }
    if (step_ < trace_.steps.size() && program_.steps.size() == step_ && trace_.steps[step_].begin == i)
      program_.steps.push_back({here(), here()});
  }

  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(program_.actions.size()); }

  /// Those that begin or end before record `i`. They follow each other; some are empty.
  void add_stage_actions(std::uint32_t i) {
    const std::vector<StepRange>& all = trace_.stage_actions;
    while (program_.stage_actions.size() <= all.size()) {
      const std::size_t next = program_.stage_actions.size();
      if (next > 0 && all[next - 1].end == i) program_.stage_actions.back().end = here();
      if (next == all.size() || all[next].begin != i) return;
      program_.stage_actions.push_back({here(), here()});
    }
  }

  void add(const Record& record) {
    switch (record.kind) {
      case Record::Kind::allocate: push({Action::Kind::allocate, HostClass::other, 0, record.index, next_call_}); break;
      case Record::Kind::free: push({Action::Kind::free, HostClass::other, 0, record.index, next_call_}); break;
      case Record::Kind::host: push({Action::Kind::host, record.host_class, 0, record.index, next_call_}); break;
      case Record::Kind::wait_for_gpu: push({Action::Kind::wait, HostClass::other, 0, 0, next_call_}); break;
      case Record::Kind::record_event: add_event(Action::Kind::record_event, record); break;
      case Record::Kind::wait_event: add_event(Action::Kind::wait_event, record); break;
      case Record::Kind::host_waits_for_event: add_event(Action::Kind::host_waits_for_event, record); break;
      case Record::Kind::op: add_call(record.index); break;
    }
  }

  void add_event(Action::Kind kind, const Record& record) {
    push({kind, HostClass::other, record.stream, record.index, next_call_});
  }

  void add_call(std::uint32_t index) {
    const Call& call = trace_.calls[index];
    const Lowered& op = lowered(call.op);
    if (const auto* matmul = std::get_if<Matmul>(&trace_.ops[call.op])) add_workspaces(*matmul, call, index);
    const auto first = static_cast<std::uint32_t>(program_.storages.size());
    for (const std::int64_t bytes : op.temporaries) allocate(bytes, Category::temporaries, call, index);
    for (std::uint32_t i = 0; i < op.launches; ++i)
      push({Action::Kind::launch, HostClass::other, call.stream, op.first_launch + i, index});
    // Destroyed in reverse order, as C++ does and the recorded histories show.
    for (auto i = static_cast<std::uint32_t>(op.temporaries.size()); i-- > 0;)
      push({Action::Kind::free, HostClass::other, 0, first + i, index});
    next_call_ = index + 1 < trace_.calls.size() ? index + 1 : Action::kNoCall;
  }

  // In the recorded histories the first product of each thread allocates the workspace right after its output, the
  // first one whose epilogue adds a bias a second, smaller one; both stay.
  void add_workspaces(const Matmul& matmul, const Call& call, std::uint32_t index) {
    const auto thread = static_cast<std::size_t>(call.phase == Phase::backward ? Thread::autograd : Thread::main);
    const bool large = gpu_.architecture == Architecture::hopper || gpu_.architecture == Architecture::blackwell;
    const Bytes workspace = large ? software_.cublas_workspace_hopper : software_.cublas_workspace;
    Workspaces& held = workspaces_[call.stream];
    if (!held.product[thread]) allocate(std::llround(workspace.value()), Category::workspaces, call, index);
    held.product[thread] = true;
    if (!matmul.bias || !software_.addmm_fuses_bias) return;
    if (!held.light[thread])
      allocate(std::llround(software_.cublaslt_workspace.value()), Category::workspaces, call, index);
    held.light[thread] = true;
  }

  void allocate(std::int64_t bytes, Category category, const Call& call, std::uint32_t index) {
    if (bytes <= 0) return;
    push({Action::Kind::allocate, HostClass::other, 0, static_cast<std::uint32_t>(program_.storages.size()), index});
    program_.storages.push_back({bytes, category, call.layer, call.stream, call.module});
  }

  const Lowered& lowered(std::uint32_t op) {
    Lowered& entry = lowered_[op];
    if (entry.done) return entry;
    if (known_ == nullptr) {
      const auto made = std::make_shared<const LoweredOp>(kernels_of(trace_.ops[op], *lowering_, gpu_));
      take(*made, made, op);
    } else {
      const std::shared_ptr<const LoweredOps::Known> known = known_->of(trace_.ops[op]);
      for (std::size_t i = 0; i < known->lowered.launches.size(); ++i)
        program_.launch_numbers.push_back(known->first_launch + i);
      take(known->lowered, known, op);
    }
    return entry;
  }

  void take(const LoweredOp& result, std::shared_ptr<const void> owner, std::uint32_t op) {
    Lowered& entry = lowered_[op];
    entry.done = true;
    entry.first_launch = static_cast<std::uint32_t>(program_.launches.size());
    entry.launches = static_cast<std::uint32_t>(result.launches.size());
    program_.launches.share(std::move(owner), result.launches);
    for (const std::int64_t bytes : result.temporaries) {
      if (bytes > 0) entry.temporaries.push_back(bytes);
    }
    if (result.approximated) program_.approximated.push_back(op);
  }

  void push(const Action& action) { program_.actions.push_back(action); }

  const OpTrace& trace_;
  const Gpu& gpu_;
  const Software& software_;
  LoweredOps* known_;
  std::optional<Lowering> lowering_;  ///< where nothing is known
  std::vector<Lowered> lowered_;
  StepProgram program_;
  std::uint32_t next_call_ = 0;
  std::size_t step_ = 0, repeat_ = 0;  ///< that begin or end next
  /// Of a stream, by thread.
  struct Workspaces {
    std::array<bool, 2> product{}, light{};
  };
  std::map<std::uint8_t, Workspaces> workspaces_;
};

}  // namespace

StepProgram make_program(const OpTrace& trace, const Gpu& gpu, const Software& software) {
  return Assembler(trace, gpu, software, nullptr).assemble();
}

StepProgram make_program(const OpTrace& trace, LoweredOps& known) {
  return Assembler(trace, known.gpu(), known.software(), &known).assemble();
}

std::shared_ptr<const LoweredOps::Known> LoweredOps::of(const Op& op) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = ops_.find(op); found != ops_.end()) return found->second;
  }
  LoweredOp made = kernels_of(op, lowering_, gpu());
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = ops_.try_emplace(op);
  if (is_new) {
    const std::size_t launches = made.launches.size();
    entry->second = std::make_shared<const Known>(Known{std::move(made), launches_});
    launches_ += launches;
  }
  return entry->second;
}

void LoweredOps::forget_beyond(std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (ops_.size() > most) ops_.clear();
}

}  // namespace ridgeline
