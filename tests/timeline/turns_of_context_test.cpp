// One layer of attention of ranks that share sequences, against PyTorch's on an H200: kernels in their order, their
// times, memory and the host's work (measurements/h200/parallel/context_attention.jsonl).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/program/step_program.h"
#include "sim/timeline/step_times.h"
#include "sim/timeline/timeline.h"
#include "sim/workload/eager/parameter.h"
#include "sim/workload/parallel/context_parallel.h"
#include "tests/support/measurement_index.h"

namespace ridgeline {
namespace {

struct MeasuredTurns {
  nlohmann::json row;
  OpTrace trace;
  StepProgram program;
  Timeline timeline;
  std::vector<KernelTime> times;
};

AttentionBackend backend_named(const std::string& name) {
  if (name == "cudnn") return AttentionBackend::cudnn;
  return name == "flash" ? AttentionBackend::flash : AttentionBackend::efficient;
}

/// Three passes: one to warm up, one that begins without gradients, one that adds to those.
void run_attention_three_times(const nlohmann::json& row, OpTrace& trace) {
  const std::int64_t batch = row["batch"], heads = row["heads"], tokens = row["tokens"], width = row["head_dim"];
  ParallelDescription how;
  how.context = row["ranks"];
  how.context_rank = row["rank"];
  eager::Eager eager(trace);
  parallel::ContextParallel ranks(eager, how);
  eager::Parameters operands(3);
  for (eager::Parameter& one : operands) {
    one.allocate(eager, {batch, tokens, heads, width}, DType::bf16);
    std::swap(one.value.sizes[1], one.value.sizes[2]);
    std::swap(one.value.strides[1], one.value.strides[2]);
    one.accumulate.output_sizes = one.value.sizes;
  }
  eager::Tensor gradient;
  for (int pass = 0; pass < 3; ++pass) {
    eager.recorder.begin_step();
    eager.recorder.phase = Phase::forward;
    eager::Tensor result = ranks.attention(backend_named(row["backend"]), operands[0].value, operands[1].value,
                                           operands[2].value, true, false);
    if (!gradient.defined()) gradient = eager.empty_like(result);
    eager.recorder.phase = Phase::backward;
    eager.tape.run(eager, result, gradient);
    result.reset();
    eager.tape.destroy_from(0);
    if (pass == 0)
      for (eager::Parameter& one : operands) one.gradient.reset();
    eager.recorder.end_step();
  }
  eager.recorder.closed = true;
}

const std::vector<MeasuredTurns>& measured_turns() {
  static const std::vector<MeasuredTurns> all = [] {
    static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
    static const Host host = load_host("default", host_class_names());
    std::vector<MeasuredTurns> result;
    std::vector<nlohmann::json> rows;
    for_each_row(testing::measurements().file("h200/parallel/context_attention.jsonl"), [&](const nlohmann::json& row) {
      if (row["ranks"] > 1) rows.push_back(row);
    });
    result.resize(rows.size());  // programs point to traces, which stay where they are
    for (std::size_t i = 0; i < rows.size(); ++i) {
      MeasuredTurns& one = result[i];
      one.row = rows[i];
      run_attention_three_times(one.row, one.trace);
      one.program = make_program(one.trace, gpu, load_software("pytorch-2.11"));
      const auto engine = make_timing_engine("analytic", gpu);
      one.times = time_kernels(one.program, *engine, gpu);
      one.timeline = run_timeline(one.program, one.times, gpu, host, {});
    }
    return result;
  }();
  return all;
}

struct TimedName {
  std::string name;
  double us = 0.0;
};

/// Kernels of the last pass in order, without collectives.
std::vector<TimedName> predicted_kernels(const MeasuredTurns& of) {
  std::vector<TimedName> result;
  std::size_t number = 0;
  for (const Action& action : of.program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const double us = in_microseconds(of.times[number++].time);
    if (std::holds_alternative<Collective>(of.trace.ops[of.trace.calls[action.call].op])) continue;
    result.push_back({of.program.launches[action.index].name, us});
  }
  return result;
}

/// What a kernel does, by the names of profiles and of the simulator.
std::string kind_of(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("Memset")) return "memset";
  if (has("dot_do_o") || has("bwd_dot_do_o")) return "row sums of attention";
  if (has("convert_dq")) return "conversion of attention";
  if (has("bprop") || has("bwd") || has("fmha_cutlassB") || has("Backward")) return "attention, backward";
  if (has("fprop") || has("fwd") || has("fmha_cutlassF")) return "attention";
  if (has("CatArray")) return has("_vec") ? "vectorised concatenation" : "concatenation";
  return "element-wise";
}

bool attends(const std::string& name) { return kind_of(name).find("attention") != std::string::npos; }

TEST(TurnsOfContext, kernels_come_in_the_order_of_PyTorch) {
  int compared = 0;
  for (const MeasuredTurns& one : measured_turns()) {
    if (!one.row.contains("kernels")) continue;
    std::vector<std::string> predicted, measured;
    for (const TimedName& kernel : predicted_kernels(one)) predicted.push_back(kind_of(kernel.name));
    for (const nlohmann::json& kernel : one.row["kernels"]) measured.push_back(kind_of(kernel[0]));
    EXPECT_EQ(predicted, measured) << one.row["backend"] << one.row["ranks"] << one.row["rank"];
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

TEST(TurnsOfContext, kernels_take_as_long_as_measured) {
  constexpr double kMost = 0.10;
  for (const MeasuredTurns& one : measured_turns()) {
    if (!one.row.contains("kernels")) continue;
    double predicted[2] = {}, measured[2] = {};  // attention, all others
    for (const TimedName& kernel : predicted_kernels(one)) predicted[attends(kernel.name) ? 0 : 1] += kernel.us;
    for (const nlohmann::json& kernel : one.row["kernels"])
      measured[attends(kernel[0]) ? 0 : 1] += kernel[1].get<double>();
    for (const int i : {0, 1})
      EXPECT_NEAR(predicted[i] / measured[i], 1.0, kMost)
          << one.row["backend"] << one.row["ranks"] << one.row["rank"] << (i == 0 ? " attention" : " others");
  }
}

/// The most bytes at once, and those at the end, of a pass that begins without gradients.
struct HeldByPass {
  std::int64_t forward = 0, kept = 0, backward = 0;
};

HeldByPass held_by_pass(const MeasuredTurns& of) {
  constexpr std::int64_t kBlock = 512;  // of the caching allocator
  HeldByPass result;
  std::int64_t live = 0;
  std::optional<std::uint32_t> end;  // of the forward pass: behind its last launch
  const StepRange step = of.program.steps[1];
  for (std::uint32_t i = step.begin; i < step.end; ++i) {
    const Action& action = of.program.actions[i];
    if (action.kind == Action::Kind::launch && of.trace.calls[action.call].phase == Phase::forward) end = i;
  }
  bool forward = true;
  for (std::uint32_t i = step.begin; i < step.end; ++i) {
    const Action& action = of.program.actions[i];
    const bool allocates = action.kind == Action::Kind::allocate;
    if (forward && end && i > *end && allocates) forward = false;  // the backward pass has begun
    if (!allocates && action.kind != Action::Kind::free) continue;
    const std::int64_t bytes = (of.program.storages[action.index].bytes + kBlock - 1) / kBlock * kBlock;
    live += allocates ? bytes : -bytes;
    std::int64_t& most = forward ? result.forward : result.backward;
    most = std::max(most, live);
    if (forward) result.kept = live;
  }
  return result;
}

// What the memory-efficient kernels, and cuDNN's of half of the queries, need while they run is known less well.
TEST(TurnsOfContext, memory_is_that_of_PyTorch_to_the_byte) {
  constexpr double kWorkspaces = 0.02;
  for (const MeasuredTurns& one : measured_turns()) {
    const HeldByPass held = held_by_pass(one);
    EXPECT_EQ(held.forward, one.row["forward_peak"].get<std::int64_t>()) << one.row.dump().substr(0, 120);
    EXPECT_EQ(held.kept, one.row["forward_kept"].get<std::int64_t>()) << one.row.dump().substr(0, 120);
    const auto measured = one.row["backward_peak"].get<std::int64_t>();
    EXPECT_NEAR(static_cast<double>(held.backward) / static_cast<double>(measured), 1.0, kWorkspaces);
    const bool whole_queries = one.row["rank"].get<int>() + 1 == one.row["ranks"].get<int>();
    if (whole_queries && one.row["backend"] != "efficient") {
      EXPECT_EQ(held.backward, measured) << one.row.dump().substr(0, 120);
    }
  }
}

// The host of those minutes was not measured beside them: what plain attention cost it differed by two.
TEST(TurnsOfContext, the_host_is_as_busy_as_measured) {
  double sum = 0.0;
  int count = 0;
  for (const MeasuredTurns& one : measured_turns()) {
    if (one.row.contains("kernels")) continue;  // long kernels, which few calls were timed of
    const double measured = one.row["host_forward_us"].get<double>() + one.row["host_backward_us"].get<double>();
    const double error = std::log(in_microseconds(one.timeline.host_issue) / measured);
    EXPECT_LT(std::abs(error), 0.20) << one.row.dump().substr(0, 120) << in_microseconds(one.timeline.host_issue);
    sum += error;
    ++count;
  }
  ASSERT_EQ(count, 5);
  EXPECT_LT(std::abs(sum / count), 0.10) << sum / count;
}

}  // namespace
}  // namespace ridgeline
