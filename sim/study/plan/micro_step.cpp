// One micro-batch alone, as the bounds of plan_bounds.h need it.
#include <algorithm>
#include <utility>
#include <variant>

#include "sim/answer/step_run.h"
#include "sim/program/launched_kernels.h"
#include "sim/study/plan/plan_bounds.h"
#include "sim/units/user_error.h"

namespace ridgeline {

Scenario micro_step_of(const Scenario& s) {
  Scenario result = s;
  TrainingDescription& t = result.training;
  t.precision = t.compute_precision();
  t.gradient_accumulation = 1;
  t.gradient_clipping.reset();
  if (t.reads_loss == LossRead::step) t.reads_loss = LossRead::never;
  if (!t.parallel.megatron()) t.optimizer.kind = OptimizerKind::none;
  const ParallelDescription& asked = s.training.parallel;
  ParallelDescription own;
  own.framework = asked.framework;
  own.tensor = asked.tensor;
  own.tensor_style = asked.tensor_style;
  own.sequence_parallel = asked.sequence_parallel;
  own.loss_parallel = asked.loss_parallel;
  own.prepared_inputs = asked.prepared_inputs;
  own.expert = own.data = asked.expert;
  own.expert_capacity = asked.expert_capacity;
  // Of ranks that share sequences the turn with their own tokens alone, without exchanges: less than each of them does.
  t.sequence_length = t.tokens_of_rank();
  t.parallel = own;
  result.gpu.dram.capacity = Bytes{1e18};  // memory without end: nothing is freed for want of it
  if (result.cluster) {
    Cluster& cluster = *result.cluster;
    cluster.nodes =
        static_cast<int>(std::max<std::int64_t>(1, (asked.tensor * asked.expert + cluster.gpus - 1) / cluster.gpus));
  }
  return result;
}

namespace {

/// The most bytes of activations that a step holds at once; its peak may lie where gradients are many and they few.
double most_activations(const StepRun& run) {
  const StepProgram& program = run.program();
  std::int64_t now = 0, most = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::allocate && action.kind != Action::Kind::free) continue;
    const Storage& storage = program.storages[action.index];
    if (storage.category != Category::activations) continue;
    now += action.kind == Action::Kind::allocate ? storage.bytes : -storage.bytes;
    most = std::max(most, now);
  }
  return static_cast<double>(most);
}

/// Which of the kernels are those of blocks, and which stand before and behind them all; what stands between two blocks
/// and belongs to none is left out.
void split_kernels(const StepRun& run, MicroStep& result) {
  const StepProgram& program = run.program();
  struct Pass {
    Seconds before, since, blocks;  ///< `since` the last kernel of a block
    bool began = false;
  } forward, backward;
  std::size_t i = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const Seconds time = run.times()[i++].time;
    if (action.call == Action::kNoCall) continue;
    const Call& call = program.trace->calls[action.call];
    if (call.phase != Phase::forward && call.phase != Phase::backward) continue;
    if (std::holds_alternative<Collective>(program.trace->ops[call.op])) continue;
    Pass& pass = call.phase == Phase::forward ? forward : backward;
    if (call.layer >= 0) {
      pass.began = true;
      pass.blocks += time;
      pass.since = {};
    } else {
      (pass.began ? pass.since : pass.before) += time;
    }
  }
  if (!forward.began || !backward.began) return;
  const auto layers = static_cast<double>(run.scenario().model.layers);
  result.block = (forward.blocks + backward.blocks) / layers;
  result.embedding = forward.before + backward.since;
  result.head = forward.since + backward.before;
}

/// What is kept for the backward pass grows by so much with each block.
double activations_of_block(Session& session, const Scenario& micro_step, std::string_view engine, double whole) {
  if (micro_step.model.composition.given() || micro_step.model.program.given() || micro_step.model.layers < 4)
    return 0.0;
  Scenario half = micro_step;
  half.model.layers /= 2;
  const double of_half = most_activations(StepRun(session, half, engine));
  return std::max(0.0, (whole - of_half) / static_cast<double>(micro_step.model.layers - half.model.layers));
}

}  // namespace

MicroStep time_micro_step(Session& session, const Scenario& micro_step, std::string_view engine) {
  try {
    const StepRun run(session, micro_step, engine);
    const std::vector<LaunchedKernel> kernels = launched_kernels(run.program());
    MicroStep result;
    for (std::size_t i = 0; i < kernels.size(); ++i)
      if ((kernels[i].phase == Phase::forward || kernels[i].phase == Phase::backward) &&
          !std::holds_alternative<Collective>(*kernels[i].op))
        result.kernels += run.times()[i].time * kernels[i].times;
    split_kernels(run, result);
    result.activations = most_activations(run);
    result.of_block = activations_of_block(session, micro_step, engine, result.activations);
    // Megatron-LM has no step without an optimizer, and ranks of experts have exchanges that are not looked at.
    if (micro_step.training.parallel.megatron() || micro_step.training.parallel.expert > 1) {
      result.first = result.further = result.kernels;
      return result;
    }
    Scenario two = micro_step;
    two.training.gradient_accumulation = 2;
    result.first = run.timeline().step;
    result.further = std::min(result.first, StepRun(session, std::move(two), engine).timeline().step - result.first);
    result.further = std::max(result.further, Seconds{});
    return result;
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace ridgeline
