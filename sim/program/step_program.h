// A training run as the host and the driver see it: allocations, frees, kernel launches, host work and waits, in order.
//
// Made from an OpTrace by lowering each different op once. It knows no time and no addresses: the allocator runs its
// allocations, a timing engine its kernels, the timeline all of it. The memory kernels need while they run stands
// around their launches; the workspaces of the matrix library are allocated where each host thread first multiplies.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/program/launch_list.h"
#include "sim/program/shared_list.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

struct Action {
  enum class Kind : std::uint8_t {
    allocate,             ///< index = entry of `storages`
    free,                 ///< index = entry of `storages`
    launch,               ///< index = entry of `launches`
    host,                 ///< host_class, index = how many times
    wait,                 ///< the host blocks until the GPU is done with everything
    record_event,         ///< index = event of `stream`
    wait_event,           ///< index = event that `stream` waits for
    host_waits_for_event  ///< index = event
  };
  static constexpr std::uint32_t kNoCall = std::numeric_limits<std::uint32_t>::max();

  Kind kind = Kind::host;
  HostClass host_class = HostClass::other;
  std::uint8_t stream = 0;  ///< of launches and events; 0: the default one
  std::uint32_t index = 0;
  std::uint32_t call =
      kNoCall;  ///< launches and their temporaries: entry of `trace->calls`; others: the next call, if any
};

/// Actions of a steady micro-batch that runs `times` times in a row and is held once (OpTrace::repeats).
struct RepeatedActions {
  StepRange actions;
  std::int64_t times = 1;
};

/// Actions of the places of OpTrace::tokens.
struct TokenActions {
  StepRange before, body;
};

struct TokenKernels;

/// A launch that stands for those of tokens that are not written out.
struct TokenLaunch {
  struct Share {
    std::uint16_t module = 0;
    double share = 0.0;
  };
  std::int64_t runs = 1;    ///< in a step
  std::uint32_t group = 0;  ///< entry of `trace->ops`: the first operation that stands in the same place of a token
  std::shared_ptr<const std::vector<Share>> modules{};  ///< in which it runs
};

struct StepProgram {
  const OpTrace* trace = nullptr;  ///< what it was made from; must outlive the program
  LaunchList launches;             ///< each different one once
  /// Beside `launches`: what the LoweredOps that the program was made with call them; empty where it was made alone.
  std::vector<std::uint64_t> launch_numbers;
  SharedList<Storage> storages;  ///< those of the trace, then temporaries and workspaces
  SharedList<Action> actions;
  std::vector<StepRange> steps;          ///< ranges of `actions`; what lies before the first sets up
  std::vector<RepeatedActions> repeats;  ///< in order, at most one a step
  /// Where the trace does not write all tokens of a generation out: places of its loop in every step, the loop's
  /// kernels, and, where times are known, actions at the end of the steady step that launch each of them once, in no
  /// order.
  std::vector<TokenActions> tokens;
  std::shared_ptr<const TokenKernels> token_kernels;
  std::vector<TokenLaunch> token_launches;
  std::vector<StepRange> stage_actions;     ///< of a rank of a pipeline: of each action of its steady step
  std::vector<std::uint32_t> approximated;  ///< entries of `trace->ops` without a rule of their own
  /// Where streams are devices of one process: the one whose memory is looked at; none: all streams are of one device.
  std::optional<std::uint8_t> device;

  /// More than the default one.
  [[nodiscard]] bool has_streams() const { return trace != nullptr && !trace->streams.empty(); }
  /// Actions of the steady step: the last of the run.
  [[nodiscard]] std::span<const Action> steady_step() const {
    if (steps.empty()) return actions;
    return std::span<const Action>(actions).subspan(steps.back().begin, steps.back().end - steps.back().begin);
  }
  /// Those that are run in their order: all but the launches that stand for tokens.
  [[nodiscard]] std::span<const Action> played_step() const {
    const std::span<const Action> step = steady_step();
    return step.first(step.size() - token_launches.size());
  }
  /// Of the steady step; of one run where it has none.
  [[nodiscard]] RepeatedActions repeat_of_steady_step() const {
    const bool has = !repeats.empty() && !steps.empty() && repeats.back().actions.begin >= steps.back().begin;
    return has ? repeats.back() : RepeatedActions{};
  }
  /// The launches that an action stands for; null for all but launches of tokens.
  [[nodiscard]] const TokenLaunch* token_launch(const Action& action) const {
    if (token_launches.empty()) return nullptr;
    const auto index = static_cast<std::size_t>(&action - actions.data());
    const std::size_t begin = steps.back().end - token_launches.size();
    return index >= begin && index < steps.back().end ? &token_launches[index - begin] : nullptr;
  }
  /// How often an action of the steady step runs in it.
  [[nodiscard]] std::int64_t times_of(const Action& action) const {
    const RepeatedActions repeat = repeat_of_steady_step();
    const auto index = static_cast<std::uint32_t>(&action - actions.data());
    if (const TokenLaunch* token = token_launch(action)) return token->runs;
    return index >= repeat.actions.begin && index < repeat.actions.end ? repeat.times : 1;
  }
  [[nodiscard]] std::span<const Operand> operands_of(std::uint32_t call) const {
    const Call& c = trace->calls[call];
    return std::span(trace->operands).subspan(c.operands_begin, static_cast<std::size_t>(c.inputs) + c.outputs);
  }
};

/// Throws UserError or std::invalid_argument for shapes that cannot be, with the op's name and shape.
StepProgram make_program(const OpTrace& trace, const Gpu& gpu, const Software& software);

}  // namespace ridgeline
