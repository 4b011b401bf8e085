#include "sim/workload/parallel/stage_runtime.h"

#include <algorithm>
#include <utility>

#include "sim/units/user_error.h"
#include "sim/workload/aten/pointwise.h"

namespace ridgeline::parallel {

using eager::Tensor;
using Kind = StageAction::Kind;
namespace aten = eager::aten;

namespace {

/// As a person may not have asked for it: advice tries changes of a scenario.
ShortSchedule checked(const TrainingDescription& training) {
  const PipelineShape shape = shape_of(training.parallel, training.gradient_accumulation);
  if (const std::string reason = complaint(shape); !reason.empty())
    throw UserError("training.gradient_accumulation: " + reason);
  if (splits_backward(shape.schedule) && training.activation_checkpointing != ActivationCheckpointing::none)
    throw UserError("training.activation_checkpointing: blocks that run again twice are not modelled");
  return shorten(shape);
}

void make_leaf(eager::Parameter& input, Tensor value) {
  input.value = std::move(value);
  eager::Eager::attach(input.value, input.accumulate);
  input.value.leaf = true;
}

RankActions actions_of(const TrainingDescription& training, const ShortSchedule& shorter, std::size_t rank) {
  return make_schedule(shape_of(training.parallel, shorter.micro_batches))[rank];
}

}  // namespace

StageRuntime::StageRuntime(eager::Eager& eager, families::Family& family, const TrainingDescription& training,
                           const families::Batch& batch, std::optional<DType> autocast, StageHooks hooks)
    : eager_(eager),
      family_(family),
      training_(training),
      batch_(batch),
      autocast_(autocast),
      hooks_(std::move(hooks)),
      rank_(static_cast<std::size_t>(std::max<std::int64_t>(0, training.parallel.pipeline_rank))),
      short_(checked(training)),
      actions_(actions_of(training, short_, rank_)),
      group_(eager, GroupKind::pipeline, 2, "sends and receives of stages"),
      type_(training.stage_type()),
      single_(training.parallel.schedule == PipelineSchedule::gpipe ||
              training.parallel.schedule == PipelineSchedule::one_forward_one_backward) {
  const PipelineShape shape = shape_of(training.parallel, training.gradient_accumulation);
  for (const std::int32_t number : shape.stages_of(static_cast<std::int32_t>(rank_))) {
    Stage& stage = stages_.emplace_back();
    stage.number = number;
    stage.part = stages_.size() - 1;
    stage.first = number == 0;
    stage.last = number + 1 == shape.stages();
  }
}

/// Stages learn the shapes of what they exchange by running once, without gradients, on zeros.
void StageRuntime::infer_shapes() {
  eager_.recorder.phase = Phase::forward;
  eager_.gradients_enabled = false;
  for (const Stage& stage : stages_) {
    if (autocast_) eager_.autocast.enter(*autocast_);
    families::Batch batch = one_batch();
    Tensors received;
    if (stage.first) {  // what other stages read for themselves are keywords, which are the batch's own
      Tensor& read = batch.features.defined() ? batch.features : batch.tokens;
      read = aten::full(eager_, read.sizes, read.type);
    } else {
      for (const eager::Dims& sizes : family_.part_input(stage.part))
        received.push_back(aten::full(eager_, sizes, type_));
    }
    if (hooks_.before_forward) hooks_.before_forward();
    const Tensors output = family_.run_part(stage.part, batch, received);
    if (hooks_.after_forward) hooks_.after_forward();
    if (autocast_) eager_.autocast.leave();
  }
  eager_.gradients_enabled = true;
}

void StageRuntime::make_buffers() {
  // Of more micro-batches than any device has room for, the rest is one.
  constexpr std::size_t kMost = 2048;
  const auto all = static_cast<std::size_t>(training_.gradient_accumulation),
             each = std::min(all, static_cast<std::size_t>(short_.micro_batches) + kMost);
  const auto rest = [&](const std::vector<eager::Dims>& carried) {
    for (eager::Dims sizes : carried) {
      sizes[0] *= static_cast<std::int64_t>(all - each);
      if (all > each) rest_of_buffers_.push_back(eager_.empty(sizes, type_));
    }
  };
  eager_.recorder.phase = Phase::forward;
  for (Stage& stage : stages_) {
    stage.kept.resize(static_cast<std::size_t>(short_.micro_batches));
    stage.input_gradients.resize(stage.kept.size());
    if (stage.first) continue;
    const std::vector<eager::Dims> carried = family_.part_input(stage.part);
    for (std::size_t i = 0; i < each; ++i) {
      eager::Parameters& inputs = stage.inputs.emplace_back();
      for (const eager::Dims& sizes : carried) make_leaf(inputs.emplace_back(), eager_.empty(sizes, type_));
    }
    rest(carried);
  }
  for (Stage& stage : stages_) {
    if (stage.last) continue;
    const std::vector<eager::Dims> carried = family_.part_output(stage.part);
    for (std::size_t i = 0; i < each; ++i) {
      Tensors& gradients = stage.output_gradients.emplace_back();
      for (const eager::Dims& sizes : carried) gradients.push_back(eager_.empty(sizes, type_));
    }
    rest(carried);
  }
  std::int32_t batches = 0;
  for (const StageAction& action : actions_) batches = std::max(batches, action.batch + 1);
  held_.resize(static_cast<std::size_t>(batches));
  works_.resize(held_.size());
}

void StageRuntime::step(OpTrace& trace) {
  if (works_.empty()) {
    infer_shapes();
    make_buffers();
  }
  eager_.recorder.host(HostClass::pipeline_chunk);
  if (autocast_) eager_.autocast.enter(*autocast_);
  for (Stage& stage : stages_) stage.passes = 0;
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
  if (autocast_) eager_.autocast.leave();
  losses_.clear();
  for (Tensors* variable : {&output_, &sent_forward_, &sent_back_}) variable->clear();
  for (auto& tensors : held_) tensors.clear();
  eager_.tape.destroy_from(0);
  eager_.frames.clear();
}

StageRuntime::Stage* StageRuntime::on_this_rank(std::int32_t number) {
  for (Stage& stage : stages_)
    if (stage.number == number) return &stage;
  return nullptr;
}
StageRuntime::Stage& StageRuntime::stage_of(std::int32_t number) { return *on_this_rank(number); }

void StageRuntime::run(const StageAction& action) {
  const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
  switch (action.kind) {
    case Kind::forward: forward(stage_of(action.stage), micro_batch); break;
    case Kind::backward:
    case Kind::backward_input: backward(stage_of(action.stage), micro_batch, action.kind); break;
    case Kind::backward_weight: backward_weights(stage_of(action.stage), micro_batch); break;
    case Kind::exchange: exchange(action); break;
    case Kind::wait:
      group_.wait(works_[static_cast<std::size_t>(action.batch)]);
      held_[static_cast<std::size_t>(action.batch)].clear();
      break;
    case Kind::reduce_gradients: reduce_gradients(stage_of(action.stage)); break;
  }
}

families::Batch StageRuntime::one_batch() const {
  families::Batch result = batch_;
  const auto cut = [this](Tensor& whole) {
    const std::int64_t all = training_.gradient_accumulation;
    if (whole.defined() && whole.sizes[0] % all == 0) whole.sizes[0] /= all;
  };
  cut(result.tokens);
  cut(result.features);
  for (Tensors* several : {&result.targets, &result.others}) std::for_each(several->begin(), several->end(), cut);
  return result;
}

void StageRuntime::forward(Stage& stage, std::size_t micro_batch) {
  eager_.recorder.phase = Phase::forward;
  eager_.recorder.host(HostClass::pipeline_chunk);
  if (hooks_.before_forward) hooks_.before_forward();
  const families::Batch batch = one_batch();
  Tensors received;
  if (!stage.first)
    for (const eager::Parameter& input : stage.inputs[micro_batch]) received.push_back(input.value);
  Tensors output = family_.run_part(stage.part, batch, std::move(received));
  if (hooks_.after_forward) hooks_.after_forward();
  Kept& kept = stage.kept[micro_batch];
  kept.output = output;
  output_ = std::move(output);
  if (stage.last) {
    kept.loss = family_.part_loss(output_.front(), batch.targets);
    losses_.push_back(kept.loss);
    return;
  }
  if (single_) sent_forward_ = kept.output;
  if (Stage* next = on_this_rank(stage.number + 1))
    for (std::size_t i = 0; i < kept.output.size(); ++i)
      make_leaf(next->inputs[micro_batch][i], kept.output[i].detached());
}

void StageRuntime::backward(Stage& stage, std::size_t micro_batch, Kind kind) {
  eager_.recorder.phase = Phase::backward;
  eager_.recorder.host(HostClass::pipeline_chunk);
  // Gradients of the first stage's input are nobody's: all its work is left to those of the weights.
  if (kind == Kind::backward_input && stage.first) return;
  const bool last = kind == Kind::backward && begin_weights(stage);
  if (hooks_.before_backward && kind == Kind::backward) hooks_.before_backward(last);
  const auto paused = eager_.autocast.pause();
  eager_.recorder.host(HostClass::backward_call);
  eager_.recorder.first_backward();
  Kept& kept = stage.kept[micro_batch];
  {
    const Tensors roots = stage.last ? Tensors{kept.loss} : kept.output;
    const Tensors gradients =
        stage.last ? Tensors{aten::full(eager_, {}, kept.loss.type)} : stage.output_gradients[micro_batch];
    std::vector<const eager::Node*> inputs;
    if (kind == Kind::backward_input)
      for (const eager::Parameter& input : stage.inputs[micro_batch]) inputs.push_back(&input.accumulate);
    if (kind == Kind::backward_input) kept.weights = eager_.tape.run_inputs(eager_, roots, gradients, inputs);
    else eager_.tape.run(eager_, roots, gradients);
  }
  eager_.autocast.resume(paused);
  kept.output.clear();
  kept.loss = Tensor{};
  if (hooks_.after_backward && kind == Kind::backward) hooks_.after_backward(last);
  input_gradient_made(stage, micro_batch);
}

bool StageRuntime::begin_weights(Stage& stage) {
  if (stage.passes > 0)
    eager_.recorder.host(HostClass::per_parameter_accumulate, static_cast<std::int64_t>(parameters_of(stage)));
  return ++stage.passes == short_.micro_batches;
}

void StageRuntime::input_gradient_made(Stage& stage, std::size_t micro_batch) {
  if (stage.first) return;
  Tensors gradients;
  for (eager::Parameter& input : stage.inputs[micro_batch]) {
    gradients.push_back(std::exchange(input.gradient, Tensor{}));
    if (gradients.back().defined()) eager_.recorder.set_category(gradients.back().storage.id(), Category::temporaries);
  }
  if (!gradients.front().defined()) return;
  if (Stage* before = on_this_rank(stage.number - 1)) {
    before->output_gradients[micro_batch] = std::move(gradients);
    return;
  }
  if (single_) sent_back_ = gradients;
  stage.input_gradients[micro_batch] = std::move(gradients);
}

void StageRuntime::backward_weights(Stage& stage, std::size_t micro_batch) {
  if (stage.first) return backward(stage, micro_batch, Kind::backward);
  eager_.recorder.phase = Phase::backward;
  eager_.recorder.host(HostClass::pipeline_chunk);
  begin_weights(stage);
  const auto paused = eager_.autocast.pause();
  eager_.tape.run_weights(eager_, stage.kept[micro_batch].weights);
  eager_.autocast.resume(paused);
}

void StageRuntime::exchange(const StageAction& action) {
  eager_.recorder.host(HostClass::pipeline_exchange);
  Tensors sent, received;
  for (const Transfer& transfer : action.transfers) {
    const auto micro_batch = static_cast<std::size_t>(transfer.micro_batch);
    if (transfer.send) {
      Stage& from = stage_of(transfer.stage);
      sent = transfer.gradient ? std::exchange(from.input_gradients[micro_batch], {}) : from.kept[micro_batch].output;
    } else {
      Stage& to = stage_of(transfer.stage + (transfer.gradient ? -1 : 1));
      if (transfer.gradient) received = to.output_gradients[micro_batch];
      else
        for (const eager::Parameter& input : to.inputs[micro_batch]) received.push_back(input.value);
    }
  }
  if (sent.empty()) sent = received;
  if (received.empty()) received = sent;
  std::int64_t bytes = 0;  // of one batch of sends: NCCL's group is one kernel
  for (const Tensor& one : sent) bytes += one.bytes();
  const auto batch = static_cast<std::size_t>(action.batch);
  works_[batch] = group_.start_silently(CollectiveKind::send_recv, type_, bytes, sent.front(), received.front());
  // Of looped schedules what was sent is given up with the graph: their sends are waited for at the end, but NCCL's
  // watchdog lets go of tensors as soon as it sees them done.
  if (!single_) return;
  held_[batch] = std::move(sent);
  held_[batch].insert(held_[batch].end(), received.begin(), received.end());
}

std::size_t StageRuntime::parameters_of(const Stage& stage) const {
  return family_.part_ends[stage.part] - (stage.part == 0 ? 0 : family_.part_ends[stage.part - 1]);
}

void StageRuntime::reduce_gradients(const Stage& stage) {
  eager_.recorder.phase = Phase::backward;
  if (hooks_.reduce_gradients) hooks_.reduce_gradients();
  if (training_.gradient_accumulation == 1) return;
  const std::size_t end = family_.part_ends[stage.part];
  for (std::size_t i = end - parameters_of(stage); i < end; ++i) {
    Tensor& gradient = hooks_.gradient_of ? *hooks_.gradient_of(i) : family_.parameters[i].gradient;
    if (!gradient.defined()) continue;
    eager_.recorder.host(HostClass::optimizer_op);
    aten::pointwise(eager_, PointwiseFunction::scale, {&gradient}, gradient);
  }
}

}  // namespace ridgeline::parallel
