#include "sim/workload/training_step.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/batch_loading.h"
#include "sim/workload/deepspeed/engine.h"
#include "sim/workload/families/composed_families.h"
#include "sim/workload/families/family.h"
#include "sim/workload/families/preference_loss.h"
#include "sim/workload/inference_run.h"
#include "sim/workload/optimizers/gradient_clipping.h"
#include "sim/workload/optimizers/gradient_hooks.h"
#include "sim/workload/optimizers/gradient_scaler.h"
#include "sim/workload/optimizers/master_weights.h"
#include "sim/workload/optimizers/megatron_optimizer.h"
#include "sim/workload/optimizers/optimizer.h"
#include "sim/workload/parallel/apex_data_parallel.h"
#include "sim/workload/parallel/compiled_blocks.h"
#include "sim/workload/parallel/compiled_parts.h"
#include "sim/workload/parallel/data_parallel.h"
#include "sim/workload/parallel/fully_shard.h"
#include "sim/workload/parallel/layer_split.h"
#include "sim/workload/parallel/megatron_stages.h"
#include "sim/workload/parallel/replicas.h"
#include "sim/workload/parallel/stage_hooks.h"
#include "sim/workload/parallel/stage_runtime.h"
#include "sim/workload/parallel/zero.h"
#include "sim/workload/repeated_range.h"
#include "sim/workload/training_checks.h"
#include "sim/workload/training_notes.h"

namespace ridgeline {
namespace {

using eager::Eager;
using eager::Tensor;
namespace aten = eager::aten;

/// The training loop: what a user's script does around model, optimizer and scaler.
class TrainingLoop {
 public:
  TrainingLoop(OpTrace& trace, const ModelDescription& model, const TrainingDescription& training,
               AttentionChoice attention, std::int64_t written_out)
      : trace_(trace),
        training_(training),
        written_out_(written_out),
        returns_scores_(model.program.given() || !families::composition_of(model)->stack.loss_alone),
        segments_(!model.program.given() && families::composition_of(model)->stack.type_vocabulary > 0),
        eager_(trace),
        optimizer_(optimizers::make_optimizer(training)) {
    eager_.tf32 = training.matmuls_in_tf32();
    eager_.cudnn_tf32 = training.cudnn_tf32;
    if (training.mask_given) eager_.backward_product_type = training.autocast_type();
    eager_.sparse_weights = model.sparse_weights;
    eager_.scaled_linear = training.scaled_linear;
    if (!training.packed_lengths.empty())
      eager_.packed.list = std::make_shared<const std::vector<std::int64_t>>(training.packed_lengths);
    eager_.softmax_saves_input = training.softmax_saves_input;
    eager_.jit_draws_by_four = training.jit_draws_by_four;
    eager_.four_bit_keeps_input = training.four_bit_keeps_input;
    eager_.math_attention_in_fp32 = training.math_attention_in_fp32;
    eager_.blocking_wait = training.parallel.blocking_wait;
    batch_ = families::make_batch(eager_, model, training);
    eager_.whole_recomputation = training.parallel.megatron() || !training.checkpoint_stops_early;
    family_ = families::make_family(eager_, model, training, attention);
    if (training.preference) preference_.emplace(eager_, model, training, attention);
    if (training.parallel.megatron()) {
      megatron_.emplace(eager_, family_->parameters, training, family_->tensor_ranks(), family_->norm_parameters(),
                        family_->shared_table());
      if (training.parallel.pipelined())
        stages_.emplace(
            eager_, *family_, training, batch_,
            parallel::LossHooks{[this](const Tensor& loss) { megatron_->average_loss(loss); }, scales_loss()});
      return;
    }
    if (training.parallel.deepspeed()) {
      deepspeed_ = deepspeed::make_engine(eager_, family_->parameters, training, family_->in_order);
      return;
    }
    wrap(model);
    hooks_ = optimizers::make_gradient_hooks(eager_, *optimizer_, family_->parameters, training.optimizer,
                                             [this] { return blocks_ && blocks_->running(); });
    if (training.parallel.compiled && training.parallel.compiles_blocks()) {
      blocks_.emplace(eager_, family_->parameters, training, family_->wrapper);
      family_->wrapper = &*blocks_;
      blocks_->behind_block = [this] {
        if (hooks_) hooks_->catch_up();
      };
    }
    if (training.parallel.pipelined())
      pipeline_.emplace(eager_, *family_, training, batch_, training.autocast_type(),
                        parallel::stage_hooks(eager_.recorder, sharded_ ? &*sharded_ : nullptr,
                                              replicated_ ? &*replicated_ : nullptr));
    if (training.precision == Precision::amp_fp16) scaler_.emplace();
    if (training.precision == Precision::apex_o2) masters_.emplace(eager_, family_->parameters);
  }

  void step() {
    eager_.recorder.begin_step();
    if (megatron_) return megatron_step();
    if (deepspeed_) return deepspeed_step();
    micro_batches();
    if (training_.optimizer.in_backward) return end_step();
    finish_experts();
    if (masters_) masters_->take_gradients(eager_, family_->parameters);
    eager::Parameters& parameters = masters_ ? masters_->copies : sharded_ ? sharded_->shards() : family_->parameters;
    family_->add_up_partial_gradients(parameters);
    if (training_.gradient_clipping) {
      eager_.recorder.phase = Phase::clipping;
      if (scaler_) scaler_->unscale(eager_, parameters);
      if (sharded_) sharded_->add_up_norm();
      if (family_->ranks_of_experts() != nullptr) family_->ranks_of_experts()->add_up_norm();
      for (eager::Parameters* list : {&parameters, of_experts()})
        if (list != nullptr && !list->empty())
          optimizers::clip_gradients(eager_, *list, training_.gradient_clipper, training_.clipping_style);
    }
    eager_.recorder.phase = Phase::optimizer;
    eager_.gradients_enabled = false;
    {
      Tensor overflow_flag;
      if (scaler_) {
        if (!scaler_->unscaled()) scaler_->unscale(eager_, parameters);
        if (training_.optimizer.takes_scale()) overflow_flag = scaler_->overflow_flag(eager_);
        else scaler_->check(eager_);
      }
      if (devices_) devices_->update(*optimizer_);
      eager::Parameters& updated = zero_ ? zero_->begin_step() : parameters;
      if (!devices_) update(updated, overflow_flag);
      if (zero_) zero_->finish_step();
      if (of_experts() != nullptr && !of_experts()->empty()) update(*of_experts(), overflow_flag);
    }
    if (scaler_) scaler_->update(eager_);
    if (masters_) masters_->return_values(eager_, family_->parameters);
    eager_.recorder.phase = Phase::other;
    if (training_.clears_gradients)
      optimizer_->clear_gradients(eager_, sharded_ ? sharded_->shards() : family_->parameters,
                                  training_.keep_gradients);
    if (training_.clears_gradients && of_experts() != nullptr)
      optimizer_->clear_gradients(eager_, *of_experts(), training_.keep_gradients);
    end_step();
  }

  void finish() { eager_.recorder.closed = true; }
  [[nodiscard]] std::int64_t parameter_tensors() const { return static_cast<std::int64_t>(family_->parameters.size()); }
  [[nodiscard]] std::int64_t trained_parameters() const {
    std::int64_t total = 0;
    for (const auto& parameter : family_->parameters) total += parameter.value.elements();
    return total;
  }
  [[nodiscard]] std::int64_t parameter_count() const { return trained_parameters() + family_->frozen(); }

 private:
  void end_step() {
    eager_.recorder.phase = Phase::other;
    if (training_.reads_loss == LossRead::step) read_loss();
    eager_.gradients_enabled = true;
    eager_.recorder.end_step();
  }

  /// Experts sharded apart from what is no expert; null: none.
  [[nodiscard]] eager::Parameters* of_experts() { return sharded_ ? &sharded_->shards_of_experts() : nullptr; }

  /// Gradients of experts that are spread over ranks.
  void finish_experts() {
    parallel::ExpertParallel* ranks = family_->ranks_of_experts();
    if (ranks == nullptr) return;
    ranks->finish_gradients(family_->parameters, sharded_ && training_.parallel.expert_copies() > 1);
    if (sharded_) sharded_->take_own_gradients();
  }

  void update(eager::Parameters& list, const Tensor& overflow_flag) {
    if (hooks_) return hooks_->step();
    if (sharded_ && sharded_->on_host()) return sharded_->update_on_host(training_.optimizer);
    const bool first = list.front().states.empty();
    if (sharded_ || holds_dtensors())
      eager_.recorder.host(HostClass::per_parameter_shard, static_cast<std::int64_t>(list.size()));
    optimizer_->update(eager_, list, overflow_flag);
    if (!first) return;
    for (const auto& parameter : list)
      for (const Tensor& state : parameter.states)
        eager_.recorder.set_layer_like(state.storage.id(), parameter.value.storage.id());
  }

  /// Gradients, clipping and the update are Megatron-LM's.
  void megatron_step() {
    megatron_->begin_step();
    if (stages_) stages_->step(trace_);
    else micro_batches();
    megatron_->step(*optimizer_);
    eager_.recorder.phase = Phase::other;
    if (training_.reads_loss == LossRead::step) read_loss();
    eager_.recorder.end_step();
  }

  void deepspeed_step() {
    micro_batches();
    deepspeed_->step(*optimizer_);
    eager_.recorder.phase = Phase::other;
    if (training_.reads_loss == LossRead::step) read_loss();
    eager_.recorder.end_step();
  }

  /// What keeps the ranks of several GPUs together.
  void wrap(const ModelDescription& model) {
    const ParallelDescription& how = training_.parallel;
    eager::Parameters& parameters = family_->parameters;
    if (how.split > 1) {
      devices_.emplace(eager_, parameters, model.layers, how.split);
      family_->wrapper = &*devices_;
    }
    if (training_.data_parallel == DataParallel::apex) apex_.emplace(eager_, parameters, how);
    if (how.gradient_ranks() == 1 || apex_) return;
    if (how.one_process()) return void(replicas_.emplace(eager_, parameters, how.data));
    if (how.shards_parameters()) {
      sharded_.emplace(eager_, family_->in_order, model.layers, how, training_.stored_type());
      family_->wrapper = &*sharded_;
      return;
    }
    replicated_.emplace(eager_, parameters, how, training_.holds_first_buckets(),
                        how.pipelined() ? std::vector<Tensor>{} : family_->buffers);
    if (how.compiled) parts_.emplace(eager_, trace_, parameters, *replicated_, how);
    if (how.strategy == DataStrategy::zero1)
      zero_.emplace(eager_, parameters, replicated_->group(), how.parameters_as_bucket_view);
  }

  /// All of them; of more than are written out, only those up to the first that is as the one before it, and the last,
  /// which the host does not leave as the others.
  void micro_batches() {
    if (pipeline_) {
      family_->cut_sequences(batch_);
      pipeline_->step(trace_);
      return;
    }
    const std::int64_t all = training_.gradient_accumulation;
    StepRange before, last;
    for (std::int64_t i = 0; i < all; ++i) {
      before = std::exchange(last, {eager_.recorder.position(), 0});
      micro_batch(i);
      last.end = eager_.recorder.position();
      if (all <= written_out_ || devices_ || deepspeed_ || i < 2 || i + 2 >= all || !runs_again(trace_, before, last))
        continue;
      trace_.repeats.push_back({last, all - 1 - i});
      i = all - 2;
    }
  }

  void micro_batch(std::int64_t number) {
    eager::Recorder& recorder = eager_.recorder;
    recorder.phase = Phase::forward;
    if (training_.data_loader == DataLoader::tensor_dataset) load_batch(eager_, batch_, segments_ ? 2 : 0);
    family_->cut_sequences(batch_);
    Tensor loss;
    // Without it every micro-batch exchanges its gradients.
    const bool sync = !training_.parallel.no_sync || number + 1 == training_.gradient_accumulation;
    if (replicated_) replicated_->before_forward(sync);
    if (replicas_) replicas_->before_forward(batch_.tokens);
    if (sharded_) sharded_->begin_forward(sync);
    if (deepspeed_) deepspeed_->before_forward();
    if (blocks_) blocks_->begin_forward();
    CompiledRange range;
    range.forward.begin = recorder.position();
    eager_.offload = training_.saves_on_cpu();
    range.returns_scores = returns_scores_ && training_.loss_code == LossCode::whole;
    const auto type = megatron_ || preference_ ? std::nullopt : training_.autocast_type();
    // The threads of DataParallel enter autocast anew, with its own default (torch/nn/parallel/parallel_apply.py).
    if (type) eager_.autocast.enter(replicas_ ? DType::fp16 : *type);
    loss = preference_ ? preference_->loss(*family_, batch_) : family_->loss(batch_);
    if (type) eager_.autocast.leave();
    range.forward.end = recorder.position();
    if (parts_) parts_->cut(range);
    if (replicas_) replicas_->after_forward(trace_, range.forward.begin, loss);
    if (sharded_) sharded_->after_forward();
    if (deepspeed_) deepspeed_->after_forward();
    if (megatron_) megatron_->average_loss(loss);
    recorder.host(HostClass::loss_division);
    loss = aten::divide(eager_, loss);
    Tensor root = scaler_ ? scaler_->scale(eager_, loss) : masters_ || scales_loss() ? aten::scale(eager_, loss) : loss;
    recorder.phase = Phase::backward;
    recorder.host(HostClass::backward_call);
    if (masters_ && number == 0) optimizer_->clear_gradients(eager_, family_->parameters, false);
    if (number > 0 && !megatron_ && !deepspeed_)
      recorder.host(HostClass::per_parameter_accumulate, static_cast<std::int64_t>(family_->parameters.size()));
    {
      const Tensor one = aten::full(eager_, {}, root.type);
      // The division of the loss and its scaling are nodes of the script: they run before the compiled graph.
      recorder.first_backward();
      range.backward.begin = recorder.position();
      range.outer_nodes = scaler_ || masters_ ? 2 : 1;
      if (sharded_) sharded_->begin_backward();
      if (deepspeed_) deepspeed_->before_backward(number + 1 == training_.gradient_accumulation);
      if (blocks_) blocks_->begin_backward();
      eager_.tape.run(eager_, root, one);
      if (blocks_) blocks_->end_backward();
      if (number == 0 && !training_.optimizer.drops_gradients() && !sharded_ && !megatron_ && !deepspeed_ && !devices_)
        family_->require_gradients();
      if (parts_) parts_->finish(range);
      if (replicated_) replicated_->after_backward();
      if (apex_) apex_->after_backward();
      if (replicas_) replicas_->after_backward();
      if (sharded_) sharded_->after_backward();
      if (deepspeed_) deepspeed_->after_backward();
      range.backward.end = recorder.position();
    }
    if (!parts_ && !blocks_) recorder.note_compiled_range(range);
    else
      for (const CompiledRange& part : parts_ ? parts_->ranges() : blocks_->ranges())
        recorder.note_compiled_range(part);
    root = Tensor{};
    loss = Tensor{};
    if (training_.reads_loss == LossRead::micro_batch) read_loss();
    if (devices_) devices_->return_to_first();
    eager_.tape.destroy_from(0);
    eager_.frames.clear();
  }

  [[nodiscard]] bool holds_dtensors() const {
    return training_.parallel.tensor > 1 && !megatron_ && training_.parallel.tensor_style == TensorStyle::dtensor;
  }
  /// Megatron-LM's and DeepSpeed's fp16 have loss scales of their own.
  [[nodiscard]] bool scales_loss() const {
    return (megatron_ || deepspeed_) && training_.parallel.fp32_copies &&
           (training_.precision == Precision::amp_fp16 || training_.precision == Precision::apex_o2);
  }

  void read_loss() { optimizers::read_on_host(eager_, eager_.empty({}, DType::fp32)); }

  OpTrace& trace_;
  const TrainingDescription& training_;
  std::int64_t written_out_;
  bool returns_scores_, segments_;  ///< to the caller; the loader gives masks and types of tokens too
  Eager eager_;
  families::Batch batch_;
  std::unique_ptr<families::Family> family_;
  std::optional<families::PreferenceLoss> preference_;
  std::unique_ptr<optimizers::Optimizer> optimizer_;
  std::optional<optimizers::GradientScaler> scaler_;
  std::optional<optimizers::MasterWeights> masters_;
  std::optional<parallel::DistributedDataParallel> replicated_;
  std::optional<parallel::ApexDataParallel> apex_;
  std::optional<parallel::ZeroRedundancy> zero_;
  std::optional<parallel::FullyShard> sharded_;
  std::optional<optimizers::MegatronOptimizer> megatron_;
  std::optional<parallel::StageRuntime> pipeline_;
  std::optional<parallel::LayerSplit> devices_;
  std::optional<parallel::Replicas> replicas_;
  std::optional<parallel::CompiledParts> parts_;  ///< of the graph under torch.compile
  std::unique_ptr<optimizers::GradientHooks> hooks_;
  std::optional<parallel::CompiledBlocks> blocks_;  ///< torch.compile of each by itself
  std::optional<parallel::MegatronStages> stages_;
  std::unique_ptr<deepspeed::Engine> deepspeed_;
};

OpTrace run_of_device(const ModelDescription& model, const TrainingDescription& given, AttentionChoice attention,
                      int steps, std::int64_t written_out) {
  check_training(model, given);
  TrainingDescription training = given;
  if (training.parallel.deepspeed()) training.precision = given.compute_precision();
  // Buckets of DistributedDataParallel are made anew after the first step.
  const bool settles = training.parallel.megatron() && training.parallel.pipelined();
  if (training.parallel.gradient_ranks() > 1 && !training.parallel.shards_parameters() &&
      !training.parallel.deepspeed() && !settles)
    ++steps;
  OpTrace trace;
  std::int64_t trained = 0;
  {
    TrainingLoop loop(trace, model, training, attention, written_out);
    for (int i = 0; i < steps; ++i) loop.step();
    loop.finish();
    for (CompiledRange& range : trace.compiled_ranges) range.reordered = training.reorders_compiled;
    trace.parameters = loop.parameter_count();
    trace.transformer_engine = training.parallel.transformer_engine;
    trace.parameter_tensors = loop.parameter_tensors();
    trained = loop.trained_parameters();
  }
  add_notes(trace, model, training, attention, trained);
  trace.model_flops = flops_of_step(model, training);
  return trace;
}

}  // namespace

OpTrace training_run(const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention,
                     int steps, std::int64_t written_out) {
  if (training.inference) return inference_run(model, training, attention, steps);
  const ParallelDescription& how = training.parallel;
  if (!how.one_process()) return run_of_device(model, training, attention, steps, written_out);
  // One micro-batch of all devices: DataParallel's share it, a script hands it on in pieces.
  ModelDescription network = model;
  if (how.split > 1) network.tie_embeddings = false;
  TrainingDescription part = training;
  part.micro_batch /= how.split > 1 ? how.pieces : how.data;
  part.gradient_accumulation *= how.pieces;
  return run_of_device(network, part, attention, steps, written_out);
}

}  // namespace ridgeline
