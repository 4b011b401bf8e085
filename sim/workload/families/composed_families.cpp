#include "sim/workload/families/composed_families.h"

#include <memory>

namespace ridgeline::families {
namespace {

ComposedActivation activation_of(Activation activation) {
  switch (activation) {
    case Activation::gelu: return ComposedActivation::gelu;
    case Activation::gelu_tanh: return ComposedActivation::gelu_tanh;
    case Activation::relu: return ComposedActivation::relu;
    case Activation::swiglu: return ComposedActivation::silu;
    case Activation::gelu_spelled_out: return ComposedActivation::gelu_spelled_out;
  }
  return ComposedActivation::gelu;
}

HeadKind head_of(ModelHead head) {
  switch (head) {
    case ModelHead::sequence_classification: return HeadKind::sequence_classification;
    case ModelHead::question_answering: return HeadKind::question_answering;
    case ModelHead::masked_lm: return HeadKind::masked_lm;
    case ModelHead::pretraining: return HeadKind::pretraining;
    case ModelHead::language_model: break;
  }
  return HeadKind::language_model;
}

Stack sizes_of(const ModelDescription& m) {
  Stack s;
  s.plain = m.written_plain();
  s.vocabulary = m.vocabulary;
  s.layers = m.layers;
  s.hidden = m.hidden;
  s.heads = m.heads;
  s.qkv_bias = s.output_bias = m.attention_bias.value_or(m.bias);
  s.feed_forward_bias = m.feed_forward_bias.value_or(m.bias);
  s.dropout = s.embedding_dropout = m.dropout;
  s.attention_dropout = m.attention_dropout;
  s.feed_forward = m.feed_forward;
  s.activation = activation_of(m.activation);
  s.tie_embeddings = m.tie_embeddings;
  return s;
}

Stack gpt2_stack(const ModelDescription& m) {
  Stack s = sizes_of(m);
  s.positions = PositionKind::learned;
  s.max_positions = m.max_positions;
  s.norm_bias = m.bias;
  s.projection = ProjectionKind::fused;
  if (!s.plain) return s;
  s.loss_alone = s.mask_filled = true;
  s.softmax_fp32 = s.loss_fp32 = false;
  return s;
}

Stack llama_stack(const ModelDescription& m) {
  Stack s = sizes_of(m);
  s.positions = PositionKind::rotary;
  s.rotary_cast = s.norms_behind = true;
  s.norm = m.fused_norms ? NormKind::rms_fused : NormKind::rms;
  s.key_value_heads = m.key_value_count();
  s.head_dim = m.head_width;
  s.residual_dropout = false;
  s.dropout = s.embedding_dropout = 0.0;
  s.feed_forward_kind = FeedForwardKind::gated;
  if (!m.complex_rotary) return s;
  s.rotary_style = RotaryStyle::complex;
  s.grouping = GroupingKind::copied;
  return s;
}

Stack bert_stack(const ModelDescription& m) {
  Stack s = sizes_of(m);
  s.output_modules = s.embedding_norm = s.qkv_bias = s.output_bias = s.feed_forward_bias = true;
  s.causal = s.final_norm = s.softmax_fp32 = false;
  s.sequence_first = m.sequence_first;
  s.activation_adds_bias = m.activation_adds_bias;
  s.adds_mask = m.adds_mask;
  s.positions = PositionKind::learned;
  s.max_positions = m.max_positions;
  s.type_vocabulary = m.type_vocabulary;
  s.norm_place = NormPlace::post;
  s.labels = m.labels;
  s.head = head_of(m.head);
  s.head_transform = s.head_bias = s.head == HeadKind::masked_lm || s.head == HeadKind::pretraining;
  if (s.head == HeadKind::pretraining || s.head == HeadKind::sequence_classification)
    s.pooler = PoolerKind::pretrained_tanh;
  return s;
}

Stack stack_of(const ModelDescription& m) {
  switch (m.family) {
    case ModelFamily::bert: return bert_stack(m);
    case ModelFamily::llama: return llama_stack(m);
    case ModelFamily::gpt2:
    case ModelFamily::composed: break;
  }
  return gpt2_stack(m);
}

}  // namespace

CompositionHandle composition_of(const ModelDescription& model) {
  if (model.composition.given()) return model.composition;
  return CompositionHandle(std::make_shared<Composition>(Composition{stack_of(model), {}}));
}

}  // namespace ridgeline::families
