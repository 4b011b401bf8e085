#include "sim/workload/families/composed_families.h"

#include <memory>

namespace ridgeline::families {
namespace {

Stack llama_stack(const ModelDescription& m) {
  Stack s;
  s.vocabulary = m.vocabulary;
  s.positions = PositionKind::rotary;
  s.rotary_cast = true;
  s.layers = m.layers;
  s.hidden = m.hidden;
  s.norm = NormKind::rms;
  s.norms_behind = true;
  s.heads = m.heads;
  s.key_value_heads = m.key_value_count();
  s.head_dim = m.head_width;
  s.qkv_bias = s.output_bias = m.attention_bias.value_or(m.bias);
  s.feed_forward_bias = m.feed_forward_bias.value_or(m.bias);
  s.residual_dropout = false;
  s.attention_dropout = m.attention_dropout;
  s.feed_forward_kind = FeedForwardKind::gated;
  s.feed_forward = m.feed_forward;
  s.activation = ComposedActivation::silu;
  s.tie_embeddings = m.tie_embeddings;
  return s;
}

}  // namespace

CompositionHandle composition_of(const ModelDescription& model) {
  if (model.composition.given()) return model.composition;
  if (model.family != ModelFamily::llama || model.plain) return {};
  return CompositionHandle(std::make_shared<Composition>(Composition{llama_stack(model), {}}));
}

}  // namespace ridgeline::families
