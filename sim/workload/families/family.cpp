#include "sim/workload/families/family.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/units/user_error.h"
#include "sim/workload/families/composed.h"
#include "sim/workload/families/composed_families.h"
#include "sim/workload/families/key_value_store.h"
#include "sim/workload/families/megatron.h"
#include "sim/workload/families/shared_sequences.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::families {

DType type_of_parameters(const TrainingDescription& training) {
  const ParallelDescription& how = training.parallel;
  if (how.shards_parameters() && how.parameter_type) return *how.parameter_type;
  if (how.megatron() && training.precision == Precision::amp_bf16) return DType::bf16;
  if (training.precision == Precision::apex_o2 || (how.megatron() && training.precision == Precision::amp_fp16))
    return DType::fp16;
  return training.stored_type();
}

Tensor Family::buffer(const Dims& sizes, DType type) {
  Tensor result = eager_.empty(sizes, type);
  eager_.recorder.set_category(result.storage.id(), Category::weights);
  buffers.push_back(result);
  return result;
}

Parameter* Family::parameter(const Dims& sizes) {
  Parameter* result = unallocated_parameter();
  allocate(*result, sizes, type());
  return result;
}

// ModulesToSaveWrapper of PEFT keeps the module and trains a deep copy of it.
Parameter* Family::saved_copy(const Dims& sizes) {
  parameter(sizes);
  Parameter* copy = in_order.emplace_back(&parameters.emplace_back());
  copy->allocate(eager_, sizes, type());
  return copy;
}

Parameter* Family::parameter_of_experts(const Dims& sizes) {
  Parameter* result = unallocated_parameter();
  allocate(*result, sizes, training_.parallel.expert_copies() > 1 ? type() : training_.stored_type());
  result->of_experts = true;
  return result;
}

void Family::allocate(Parameter& parameter, const Dims& sizes, DType type) {
  parameter.allocate(eager_, sizes, type);
  parameter.frozen = freezes();
  if (!parameter.frozen) return;
  parameter.value.node = nullptr;  // requires no gradient
  frozen_elements_ += parameter.value.elements();
}

Affine Family::linear_layer(std::int64_t out, std::int64_t in, bool bias, std::optional<LinearRole> role,
                            bool by_inputs) {
  // Of the layers of blocks, whatever they do: the output projection stays as it is stored.
  const FrozenWeights frozen = training_.frozen_weights();
  const bool four_bits = frozen != FrozenWeights::as_stored && eager_.recorder.layer >= 0;
  Affine layer;
  if (four_bits) {
    layer.four_bit = eager::aten::four_bit_weight(eager_, out, in, frozen, training_.stored_type());
    frozen_elements_ += out * in;
  } else {
    layer.by_inputs = by_inputs;
    const bool saved = training_.lora && training_.lora->saves_head && role == LinearRole::head;
    const Dims sizes = by_inputs ? Dims{in, out} : Dims{out, in};
    layer.weight = saved ? saved_copy(sizes) : parameter(sizes);
  }
  if (bias) layer.bias = parameter({out});
  constexpr std::int64_t kMultiple = 16;  // of torch._scaled_mm; other layers stay as they are
  layer.scaled = training_.scaled_linear != ScaledLinear::none && role && *role != LinearRole::head && !by_inputs &&
                 out % kMultiple == 0 && in % kMultiple == 0;
  if (!training_.lora || !role) return layer;
  if (std::find(roles_.begin(), roles_.end(), *role) == roles_.end()) roles_.push_back(*role);
  if (training_.lora->adapts(*role)) layer.adapter = adapter(out, in, *role);
  return layer;
}

// fully_shard gathers adapters in the type that computes, and DeepSpeed's engine casts them with the network.
Adapter Family::adapter(std::int64_t out, std::int64_t in, LinearRole role) {
  has_adapters_ = true;
  Adapter result{&parameters.emplace_back(), &parameters.emplace_back(), training_.lora->dropout};
  const ParallelDescription& how = training_.parallel;
  const DType kept = training_.lora->dtype;
  const DType of_adapters = how.deepspeed()           ? type()
                            : how.shards_parameters() ? how.parameter_type.value_or(kept)
                                                      : kept;
  result.down->allocate(eager_, {training_.lora->rank, in}, of_adapters);
  result.up->allocate(eager_, {out, training_.lora->rank}, of_adapters);
  for (Parameter* one : {result.down, result.up}) {
    one->stored = kept;
    in_order.push_back(one);
  }
  if (training_.lora->dora) {
    result.magnitude = &parameters.emplace_back();
    result.magnitude->allocate(eager_, {out}, of_adapters);
    in_order.push_back(result.magnitude);
  }
  // Of a layer over rows each rank has its columns of the first matrix, of one over columns its rows of the second; the
  // other one is whole and sees this rank's part.
  const bool rows = role == LinearRole::output || role == LinearRole::down;
  (rows ? result.up : result.down)->partial_gradient = split_.several();
  return result;
}

void Family::check_adapters() const {
  if (!training_.lora || has_adapters_) return;
  std::string there;
  for (const auto& [name, role] : kLinearRoles)
    if (std::find(roles_.begin(), roles_.end(), role) != roles_.end())
      there += fmt::format("{}{}", there.empty() ? "" : ", ", name);
  throw UserError(fmt::format("training.lora.targets: the network has no such layer; there are {}", there));
}

std::string why_not_packed(const ModelDescription& model) {
  if (model.program.given()) return "is not modelled for networks of family program: expected none";
  const CompositionHandle composition = composition_of(model);
  const Stack& s = composition->stack;
  if (s.sequence_first) return "tensors that are [tokens, sequences, hidden] are not modelled: expected none";
  if (composition->encoder || s.cross_attention || s.input != InputKind::tokens || s.class_token)
    return "goes with one stack that reads tokens: expected none";
  const bool fused = s.attention_code == AttentionCode::fused && !s.sinks && s.score_cap <= 0.0 &&
                     s.key_value_rank == 0 && !s.copies_heads && s.grouping != GroupingKind::broadcast;
  const bool masked = s.positions == PositionKind::disentangled || s.always_masked || s.window > 0 ||
                      s.positions == PositionKind::alibi || s.positions == PositionKind::relative;
  if (!fused || masked)
    return "needs attention that FlashAttention computes, without masks, windows and numbers added to scores: expected "
           "none";
  return "";
}

std::string why_not_chunked(const ModelDescription& model) {
  if (model.program.given()) return "is not modelled for networks of family program: expected whole";
  const CompositionHandle composition = composition_of(model);
  const Stack& s = composition->stack;
  if (s.head != HeadKind::language_model || s.cross_attention)
    return "goes with a head that predicts the next token: expected whole";
  if (s.head_bias || s.head_transform || s.head_scale || s.logit_scale || s.logit_offset || s.logit_cap > 0.0 ||
      s.table_width() != s.hidden)
    return "goes with scores that are one product of hidden states: expected whole";
  return "";
}

std::vector<Tensor> Family::run_part(std::size_t, const Batch&, std::vector<Tensor>) {
  throw UserError(fmt::format("training.parallel.pipeline: {}", why_not_cut(model_, training_.parallel.framework)));
}

std::vector<Dims> Family::part_input(std::size_t) const {
  return {{training_.micro_batch, training_.tokens_of_rank(), width()}};
}
std::vector<Dims> Family::part_output(std::size_t part) const { return part_input(part); }

Tensor Family::part_loss(const Tensor& output, const std::vector<Tensor>& targets) {
  return cross_entropy(eager_, view(eager_, output, {output.elements() / model_.vocabulary, model_.vocabulary}),
                       view(eager_, targets.front(), {targets.front().elements()}));
}

Tensor Family::next_logits(const Tensor&, const Tensor&) {
  throw UserError("inference.new_tokens: a model of this family generates no text");
}

Tensor Family::scores(const Batch&) {
  throw UserError("training.preference: goes with a network that predicts the next token of a text");
}

Tensor Family::last_token(const Tensor& x) const {
  Tensor last = x;
  last.sizes[1] = 1;
  return last;
}

std::int64_t Family::visible_keys() const {
  const std::int64_t tokens = place.past + place.length;
  return store != nullptr ? store->visible(tokens) : tokens;
}

void Family::remember(Tensor& keys, Tensor& values) {
  if (store == nullptr) return;
  auto [all_keys, all_values] = store->update(eager_.recorder.layer, keys, values);
  keys = std::move(all_keys);
  values = std::move(all_values);
}

void Family::cut_sequences(const Batch& batch) {
  if (!context_) return;
  std::vector<Tensor> whole{batch.tokens};
  for (const Tensor& target : batch.targets) whole.push_back(target);
  context_->cut(whole, sees_backwards(model_));
}

eager::aten::ActivationKind Family::activation_kind() const {
  using Kind = eager::aten::ActivationKind;
  switch (model_.activation) {
    case Activation::gelu: return Kind::gelu;
    case Activation::gelu_tanh: return Kind::gelu_tanh;
    case Activation::relu: return Kind::relu;
    case Activation::swiglu: return Kind::silu;
    case Activation::gelu_spelled_out: return Kind::gelu_spelled_out;
  }
  return Kind::gelu;
}

Tensor Family::run_block(const std::function<Tensor(Eager&, Tensor)>& block, Tensor x) {
  if (wrapper == nullptr) return run_alone(block, std::move(x));
  const std::int64_t number = eager_.recorder.layer;
  x = run_alone(block, wrapper->before_block(number, std::move(x)));
  return wrapper->after_block(number, std::move(x));
}

Tensor Family::run_alone(const std::function<Tensor(Eager&, Tensor)>& block, Tensor x) {
  // A compiled block has it in its graphs.
  const bool compiled = training_.parallel.compiled && training_.parallel.compiles_blocks();
  const std::int64_t number = std::max<std::int64_t>(0, eager_.recorder.layer);
  const ActivationCheckpointing how = training_.activation_checkpointing;
  const bool operations = how == ActivationCheckpointing::operations;
  if (how == ActivationCheckpointing::parts) return run_treated(block, std::move(x), number);
  if ((operations || how == ActivationCheckpointing::block) && !compiled && training_.checkpoints(number))
    return eager::checkpoint(eager_, block, std::move(x), operations);
  return block(eager_, std::move(x));
}

Tensor Family::run_treated(const std::function<Tensor(Eager&, Tensor)>& block, Tensor x, std::int64_t number) {
  if (training_.treats(number, BlockPart::block)) return eager::checkpoint(eager_, block, std::move(x));
  if (!training_.treats(number, BlockPart::offload)) return block(eager_, std::move(x));
  const ActivationOffload before = std::exchange(eager_.offload, ActivationOffload::pinned);
  x = block(eager_, std::move(x));
  eager_.offload = before;
  return x;
}

void Family::require_gradients() const {
  for (const eager::Parameter& parameter : parameters)
    if (!parameter.gradient.defined())
      throw UserError(
          fmt::format("model: {} trained numbers get no gradient, since the loss does not read what comes of "
                      "them; leave that part of the network out",
                      parameter.value.elements()));
}

namespace {

std::unique_ptr<Family> family_of(Eager& eager, const ModelDescription& model, const TrainingDescription& training,
                                  AttentionChoice attention) {
  if (training.parallel.megatron()) return std::make_unique<Megatron>(eager, model, training, attention);
  if (model.program.given()) return std::make_unique<networks::ProgramNetwork>(eager, model, training, attention);
  return std::make_unique<Composed>(eager, model, composition_of(model), training, attention);
}

}  // namespace

std::unique_ptr<Family> make_family(Eager& eager, const ModelDescription& model, const TrainingDescription& training,
                                    AttentionChoice attention) {
  std::unique_ptr<Family> family = family_of(eager, model, training, attention);
  family->check_adapters();
  return family;
}

Batch make_batch(Eager& eager, const ModelDescription& model, const TrainingDescription& training) {
  if (model.program.given()) return networks::make_program_batch(eager, *model.program, training);
  const CompositionHandle composition = composition_of(model);
  const bool own_labels = !model.composition.given() || composition->stack.plain || training.parallel.megatron();
  return make_composed_batch(eager, *composition, training, own_labels);
}

}  // namespace ridgeline::families
