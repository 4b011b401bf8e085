// A recorded step predicted on a GPU: its own operations and host work, the kernels of this GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/trace/replayable.h"

namespace ridgeline {

/// All recorded calls of one name.
struct ReplayedOp {
  std::string name;  ///< as recorded: "aten::addmm"; for our own op traces as name_of(Op)
  std::int64_t count = 0;
  bool understood = true;
  Seconds predicted{}, measured{};  ///< of their kernels; measured is 0 where the recording has none
  std::array<Seconds, kTimeClasses> predicted_by_class{}, measured_by_class{};
};

/// How much of the recording has a rule. An operation without one is costed by its bytes.
struct Coverage {
  std::int64_t calls = 0, understood_calls = 0;
  Seconds gpu_time, understood_gpu_time;  ///< measured where the recording has it, predicted otherwise
  [[nodiscard]] double of_calls() const {
    return calls > 0 ? static_cast<double>(understood_calls) / static_cast<double>(calls) : 1.0;
  }
  [[nodiscard]] double of_gpu_time() const { return gpu_time.value() > 0 ? ratio(understood_gpu_time, gpu_time) : 1.0; }
};

/// The understood part under the conditions of the recording (sim/answer/recorded_conditions.h), of replays on the GPU
/// recorded on.
struct ComparedPart {
  double beside = 0.0;  ///< share of the understood time that was shared with kernels of other streams
  double clock = 1.0;   ///< of the GPU when it was recorded, over its own
  Seconds added{};      ///< by the recording to each kernel
  /// Of understood calls that ran alone, at that clock and with what is added, and as measured: of the half that did
  /// not say what the conditions were; 0: nothing to compare.
  Seconds predicted{}, measured{};
};

struct ReplayResult {
  trace::Format format = trace::Format::op_trace;
  trace::RecordingInfo info;
  Prediction prediction;
  trace::MeasuredStep measured;
  bool has_measured_kernels = false;
  std::vector<ReplayedOp> ops;  ///< longest prediction or measurement first
  std::array<Seconds, kTimeClasses> measured_by_class{};
  Coverage coverage;
  ComparedPart compared;
  trace::CriticalPath critical_path;         ///< of the recorded times
  std::vector<trace::FormatUse> cannot_run;  ///< kernels of number formats whose instructions the GPU lacks
  trace::Defects defects;
  std::string undescribed_gpu;  ///< as the function of that name has it
};

/// "'AMD Instinct MI300X', which is no NVIDIA GPU": where a profiler's trace was recorded, if nothing is known of that
/// GPU; empty otherwise.
std::string undescribed_gpu(const RecordedWorkload& workload);

/// The recording of a scenario's step made ready for its GPU and software. Throws UserError where most of its time was
/// measured on a GPU that nobody named or described, and nothing else is known of it.
/// Kernels whose measured time is carried over have bytes that stand for that time. Beside kernels of other streams
/// those are no traffic: what such a kernel draws is not known, and it leaves the others the DRAM and the board's
/// power.
void leave_out_carried_traffic(StepTimes& times, const StepProgram& program, const trace::Replayable& recorded);

trace::Replayable replayable_of(const Scenario& scenario, std::string_view engine);

/// The prediction of a run of a recorded step, and the recording beside it. Throws as StepRun does.
ReplayResult replay_result(const StepRun& run);
/// The same of a run that shares nothing.
ReplayResult predict_replay(const Scenario& scenario, std::string_view engine);

}  // namespace ridgeline
