#include "sim/workload/parallel/megatron_stages.h"

#include <algorithm>
#include <utility>

#include "sim/units/user_error.h"
#include "sim/workload/aten/pointwise.h"

namespace ridgeline::parallel {

using eager::Tensor;
using Kind = StageAction::Kind;
namespace aten = eager::aten;

namespace {

PipelineShape shape_that_runs(const TrainingDescription& training) {
  const PipelineShape shape = shape_of(training.parallel, training.gradient_accumulation);
  if (const std::string reason = complaint(shape); !reason.empty())
    throw UserError("training.gradient_accumulation: " + reason);
  return shape;
}

}  // namespace

MegatronStages::MegatronStages(eager::Eager& eager, families::Family& family, const TrainingDescription& training,
                               const families::Batch& batch, LossHooks hooks)
    : eager_(eager),
      family_(family),
      training_(training),
      batch_(batch),
      hooks_(std::move(hooks)),
      rank_(static_cast<std::size_t>(std::max<std::int64_t>(0, training.parallel.pipeline_rank))),
      short_(shorten(shape_that_runs(training))),
      actions_(make_schedule(shape_of(training.parallel, short_.micro_batches))[rank_]),
      group_(eager, GroupKind::pipeline, 2, "sends and receives of stages") {
  const PipelineShape shape = shape_of(training.parallel, training.gradient_accumulation);
  for (const std::int32_t number : shape.stages_of(static_cast<std::int32_t>(rank_))) {
    Stage& stage = stages_.emplace_back();
    stage.number = number;
    stage.part = stages_.size() - 1;
    stage.first = number == 0;
    stage.last = number + 1 == shape.stages();
    for (std::int32_t i = 0; i < short_.micro_batches; ++i) stage.passes.emplace_back();
  }
}

void MegatronStages::step(OpTrace& trace) {
  trace.stage_actions.clear();
  for (const StageAction& action : actions_) {
    const std::uint32_t begin = eager_.recorder.position();
    run(action);
    trace.stage_actions.push_back({begin, eager_.recorder.position()});
  }
  if (short_.times > 1) {
    const ShortSchedule::Rank round = short_.ranks[rank_];
    trace.repeats.push_back(
        {{trace.stage_actions[round.begin].begin, trace.stage_actions[round.end - 1].end}, short_.times});
  }
  for (Stage& stage : stages_)
    for (MicroBatch& pass : stage.passes)
      for (Tensor* one : {&pass.input.value, &pass.input.gradient, &pass.output, &pass.loss, &pass.output_gradient,
                          &pass.input_gradient})
        *one = Tensor{};
  eager_.tape.destroy_from(0);
  eager_.frames.clear();
}

MegatronStages::Stage& MegatronStages::stage_of(std::int32_t number) {
  return *std::find_if(stages_.begin(), stages_.end(), [&](const Stage& stage) { return stage.number == number; });
}

void MegatronStages::run(const StageAction& action) {
  const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
  switch (action.kind) {
    case Kind::forward: {
      Stage& stage = stage_of(action.stage);
      return forward(stage, stage.passes[micro_batch]);
    }
    case Kind::backward: {
      Stage& stage = stage_of(action.stage);
      return backward(stage, stage.passes[micro_batch]);
    }
    case Kind::exchange: return exchange(action);
    case Kind::wait: return wait(action);
    case Kind::backward_input:
    case Kind::backward_weight:
    case Kind::reduce_gradients: return;
  }
}

void MegatronStages::forward(Stage& stage, MicroBatch& pass) {
  eager_.recorder.phase = Phase::forward;
  eager_.recorder.host(HostClass::pipeline_chunk);
  if (!stage.first) {
    take(pass.input.value);
    eager::Eager::attach(pass.input.value, pass.input.accumulate);
    pass.input.value.leaf = true;
  }
  if (stage.first || stage.last) family_.take_batch(batch_);
  std::vector<eager::Tensor> received;
  if (!stage.first) received.push_back(pass.input.value);
  pass.output = family_.run_part(stage.part, batch_, std::move(received)).front();
  if (!stage.last) return;
  pass.loss = family_.part_loss(pass.output, batch_.targets);
  pass.output = Tensor{};
  hooks_.average(pass.loss);
  eager_.recorder.host(HostClass::loss_division);
  pass.loss = aten::divide(eager_, pass.loss);
}

void MegatronStages::backward(Stage& stage, MicroBatch& pass) {
  eager_.recorder.host(HostClass::pipeline_chunk);
  if (!stage.last) take(pass.output_gradient);
  Tensor root = stage.last ? std::exchange(pass.loss, Tensor{}) : std::exchange(pass.output, Tensor{});
  if (stage.last && hooks_.scaled) root = aten::scale(eager_, root);
  eager_.recorder.phase = Phase::backward;
  eager_.recorder.host(HostClass::backward_call);
  {
    const Tensor gradient = stage.last ? aten::full(eager_, {}, root.type) : pass.output_gradient;
    eager_.recorder.first_backward();
    eager_.tape.run(eager_, root, gradient);
  }
  pass.output_gradient = Tensor{};
  if (stage.first) return;
  pass.input_gradient = std::exchange(pass.input.gradient, Tensor{});
  eager_.recorder.set_category(pass.input_gradient.storage.id(), Category::temporaries);
  pass.input.value = Tensor{};
}

Tensor MegatronStages::handed_on() {
  return eager_.empty({training_.sequence_length, training_.micro_batch, family_.width() / training_.parallel.tensor},
                      training_.stage_type());
}

void MegatronStages::receive(const Transfer& transfer) {
  MicroBatch& pass =
      stage_of(transfer.stage + (transfer.gradient ? -1 : 1)).passes[static_cast<std::size_t>(transfer.micro_batch)];
  if (transfer.gradient) {
    pass.output_gradient = handed_on();
    return;
  }
  pass.input.value = handed_on();
}

/// The whole of what was received.
void MegatronStages::take(Tensor& part) {
  if (gathers()) part = family_.tensor_ranks()->all_gather(part, 2);
  else part.sizes = {training_.sequence_length / training_.parallel.tensor, training_.micro_batch, family_.width()};
  part.strides = eager::contiguous_strides(part.sizes);
}

void MegatronStages::exchange(const StageAction& action) {
  eager_.recorder.host(HostClass::pipeline_exchange);
  Tensor sent, received;
  for (const Transfer& transfer : action.transfers) {
    if (!transfer.send) receive(transfer);
    const std::int32_t here = transfer.send ? transfer.stage : transfer.stage + (transfer.gradient ? -1 : 1);
    const MicroBatch& pass = stage_of(here).passes[static_cast<std::size_t>(transfer.micro_batch)];
    if (transfer.send) sent = transfer.gradient ? pass.input_gradient : pass.output;
    else received = transfer.gradient ? pass.output_gradient : pass.input.value;
  }
  const std::int64_t bytes =
      received.defined() ? received.bytes() : sent.bytes() / (gathers() ? training_.parallel.tensor : 1);
  if (!sent.defined()) sent = received;
  if (!received.defined()) received = sent;
  work_ = group_.start_silently(CollectiveKind::send_recv, sent.type, bytes, sent, received);
  moving_ = action.transfers;
}

void MegatronStages::wait(const StageAction&) {
  group_.wait(work_);
  eager_.recorder.wait_for_gpu();
  for (const Transfer& transfer : std::exchange(moving_, {})) {
    if (!transfer.send) continue;
    MicroBatch& pass = stage_of(transfer.stage).passes[static_cast<std::size_t>(transfer.micro_batch)];
    if (transfer.gradient) {
      pass.input_gradient = Tensor{};
      continue;
    }
    // One element stands for what was sent.
    Tensor rest = eager_.empty({1}, pass.output.type);
    rest.node = pass.output.node;
    rest.output = pass.output.output;
    pass.output = std::move(rest);
  }
}

}  // namespace ridgeline::parallel
