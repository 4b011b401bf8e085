// What questions share, so that none is worked out twice: descriptions, op traces, lowered operations, kernel times,
// runs of the memory.
//
// Safe to share between threads, and bounded: what was asked for longest ago is dropped. Whatever a session remembers,
// the answers are the same to the bit. Tested by tests/answer/step_run_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/allocator/settings.h"
#include "sim/answer/memory_prediction.h"
#include "sim/answer/ranges/busy_range.h"
#include "sim/answer/recent.h"
#include "sim/program/called_ops.h"
#include "sim/program/launched_kernels.h"
#include "sim/program/program_layout.h"
#include "sim/scenario/descriptions.h"
#include "sim/timeline/issue_plan.h"
#include "sim/timeline/launch_repeats.h"
#include "sim/timeline/step_residency.h"
#include "sim/timeline/step_times.h"
#include "sim/units/lazy.h"
#include "sim/workload/trace_pattern.h"

namespace ridgeline {

/// Of a session: how much it remembers.
struct SessionLimits {
  std::size_t traces = 16;                ///< op traces …
  std::uint64_t trace_bytes = 256 << 20;  ///< … of this many bytes together; the last stays whatever it takes
  std::size_t gpus = 64;                  ///< GPUs, each with one software stack, whose kernels are known …
  std::size_t kernels_a_gpu = 1 << 16;    ///< … so many operations of each, and four times as many kernel times
};

/// A layout of an op trace, and what follows from it alone.
struct SharedLayout {
  SharedLayout(const OpTrace& trace, const LayoutKey& key)
      : program(lay_out(trace, key, &added)),
        outline(program),
        repeats(std::make_shared<const LaunchRepeats>(repeats_of_launches(program))),
        moves(hash_of_moves(program)),
        allocations(hash_of_allocations(program, moves)),
        sequence(sequence_of_launches(program)) {}
  /// Of a trace that differs in sizes alone from that of `like`, and a key of the same shape.
  SharedLayout(const SharedLayout& like, const OpTrace& trace, const LayoutKey& key)
      : added(like.added),
        program(lay_out_like(like.program, added, trace, key)),
        outline(like.outline),
        repeats(like.repeats),
        moves(like.moves),
        allocations(hash_of_allocations(program, moves)),
        sequence(program.repeats.empty() ? like.sequence : sequence_of_launches(program)) {}
  std::vector<AddedStorage> added;
  const StepProgram program;  ///< without launches
  const IssueOutline outline;
  const std::shared_ptr<const LaunchRepeats> repeats;
  const std::uint64_t moves, allocations, sequence;  ///< hashes
  [[nodiscard]] std::uint64_t bytes() const {
    return program.actions.size() * sizeof(Action) + program.storages.size() * sizeof(Storage) +
           (outline.parts.size() + outline.launches.size()) * sizeof(std::uint32_t) +
           repeats->runs.size() * sizeof(LaunchRepeats::Run);
  }
};

/// Layouts of traces that differ in sizes alone: one of each shape, which stands for no trace.
using LayoutsByShape = Recent<LayoutShape, const SharedLayout>;

/// An op trace and the runs of its allocations on a device with room without end.
struct SharedTrace {
  explicit SharedTrace(OpTrace made) : trace(std::move(made)) {}
  /// Of the traces that differ from it in sizes alone; null where none is known. Set before it is shared.
  std::shared_ptr<LayoutsByShape> like;
  /// One whose operations on lists have the same operands; null where none is known. Set before it is shared.
  std::shared_ptr<const SharedTrace> like_lists;

  struct MemoryKey {
    std::uint64_t allocations;  ///< hash_of_allocations
    AllocatorSettings settings;
    bool operator==(const MemoryKey&) const = default;
  };
  const OpTrace trace;
  /// What lowering on each GPU asks.
  [[nodiscard]] const std::vector<CalledOp>& called() const {
    return called_.get([&] { return called_ops(trace); });
  }
  /// What residency on each L2 asks.
  [[nodiscard]] const ListOperands& lists() const {
    return like_lists != nullptr ? like_lists->lists() : lists_.get([&] { return ListOperands(trace); });
  }
  std::shared_ptr<const SharedLayout> layout(const LayoutKey& key);
  Recent<LayoutKey, const SharedLayout> layouts{6, 8 << 20};  ///< of programs of GPUs that lower it alike
  Recent<MemoryKey, const RoomyMemory> memories{16};
  Recent<ResidencyKey, const StepResidency> residencies{64, 8 << 20};  ///< of its programs, which GPUs may share

 private:
  Lazy<std::vector<CalledOp>> called_;
  Lazy<ListOperands> lists_;
};

/// Lowered operations of one GPU with one software stack, and the times of their kernels by engine.
struct SharedKernels {
  SharedKernels(std::shared_ptr<const Gpu> gpu, std::shared_ptr<const Software> software,
                std::shared_ptr<ShapedOps> shaped, std::size_t most_times)
      : ops(std::move(gpu), std::move(software), std::move(shaped)), analytic(most_times), roofline(most_times) {}
  LoweredOps ops;
  KernelTimes analytic, roofline;
  /// Null for an engine whose times depend on what ran before.
  KernelTimes* times_of(std::string_view engine);
  /// How far predictions of kernels of this GPU may be off.
  [[nodiscard]] const ChipRanges& ranges() const {
    return ranges_.get([&] { return ChipRanges(residual_ranges(), ops.gpu(), ops.software().name); });
  }

 private:
  Lazy<ChipRanges> ranges_;
};

/// Op traces of one network that differ in the sizes of their batch alone: the first is made whole, further ones in the
/// patterns of those before (sim/workload/trace_pattern.h) as long as they follow one.
class TracesOfANetwork {
 public:
  /// `key`: as all that were asked before, but for micro-batch and sequence length. Throws as training_run does.
  std::shared_ptr<SharedTrace> trace(const TraceKey& key);

 private:
  static constexpr std::size_t kMostPatterns = 4;
  std::shared_ptr<SharedTrace> first(const TraceKey& key);
  void learn_first();
  void learn(const std::shared_ptr<const SharedTrace>& whole, OpTrace part);
  /// Null where no pattern is followed.
  std::shared_ptr<SharedTrace> in_a_pattern(const TraceKey& key, const OpTrace& part);

  std::mutex mutex_;
  bool asked_ = false;
  std::shared_ptr<const SharedTrace> first_;  ///< of which no pattern was made yet
  std::optional<TraceKey> first_key_;
  struct Pattern {
    std::shared_ptr<const SharedTrace> whole;  ///< that it was made of
    std::shared_ptr<const TracePattern> pattern;
    std::shared_ptr<LayoutsByShape> layouts;  ///< of traces that follow it
  };
  std::vector<Pattern> patterns_;  ///< the one followed last in front
  int followed_ = 0, left_ = 0;    ///< traces by whether a pattern gave them
};

class Session {
 public:
  explicit Session(const SessionLimits& limits = {});

  /// Of scenarios that name the same files.
  Descriptions& descriptions() { return descriptions_; }
  /// The op trace of a described scenario. Throws as trace_of does.
  std::shared_ptr<SharedTrace> trace(const Scenario& scenario, std::string_view engine = "analytic");
  std::shared_ptr<SharedKernels> kernels(const Gpu& gpu, const Software& software);
  /// Of launches on chips with such an L2.
  std::shared_ptr<KnownStretches> stretches(const L2Spec& l2);

 private:
  SessionLimits limits_;
  Descriptions descriptions_;
  Recent<TraceKey, SharedTrace> traces_;
  Recent<TraceKey, TracesOfANetwork> networks_{8};  ///< by keys without micro-batch and sequence length
  struct ProbeOfKernels {
    const Gpu& gpu;
    const Software& software;
  };
  struct KeyOfKernels {
    std::shared_ptr<const Gpu> gpu;
    std::shared_ptr<const Software> software;
    explicit KeyOfKernels(const ProbeOfKernels& probe)
        : gpu(std::make_shared<const Gpu>(probe.gpu)), software(std::make_shared<const Software>(probe.software)) {}
    bool operator==(const ProbeOfKernels& probe) const { return *gpu == probe.gpu && *software == probe.software; }
  };
  /// Of equal shape, whatever else the chips are.
  struct KeyOfShape {
    std::shared_ptr<const Gpu> gpu;
    std::shared_ptr<const Software> software;
    bool operator==(const KeyOfShape& other) const {
      return ChipShape(*gpu) == ChipShape(*other.gpu) && *software == *other.software;
    }
  };
  Recent<KeyOfKernels, SharedKernels> kernels_;
  Recent<KeyOfShape, ShapedOps> shapes_;
  /// What residency asks of an L2.
  struct KeyOfL2 {
    double capacity = 0.0, full = 0.0, none = 0.0;
    bool operator==(const KeyOfL2&) const = default;
  };
  Recent<KeyOfL2, KnownStretches> stretches_;
};

}  // namespace ridgeline
