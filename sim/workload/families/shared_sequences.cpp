#include "sim/workload/families/shared_sequences.h"

#include <fmt/format.h>

#include "sim/workload/composition.h"

namespace ridgeline::families {
namespace {

std::string why_not_shared(const Composition& composition, const TrainingDescription& training) {
  const Stack& s = composition.stack;
  if (composition.encoder && s.cross_attention)
    return "PyTorch's context_parallel raises RuntimeError (Load balancing requires `is_causal=True`) in the encoder "
           "beside a decoder";
  if (s.head != HeadKind::language_model && s.head != HeadKind::masked_lm && s.head != HeadKind::token_classification)
    return "the loss reads all of a sequence: expected a head that scores every token";
  if (s.attention_code != AttentionCode::fused || s.sinks)
    return "PyTorch's context_parallel takes fused attention, and this network writes its attention out";
  if (s.positions == PositionKind::alibi || s.positions == PositionKind::relative ||
      s.positions == PositionKind::disentangled || s.always_masked || s.patch_distances)
    return std::string(kMaskNotShared);
  for (std::int64_t layer = 0; layer < s.layers; ++layer)
    if (s.windowed(layer) && training.tokens_of_rank() > s.window)
      return fmt::format("{}: {} tokens of a rank are more than the window of {}", kMaskNotShared,
                         training.tokens_of_rank(), s.window);
  if (s.grouping == GroupingKind::broadcast && s.key_value_count() < s.heads) return std::string(kMathNotShared);
  return "";
}

}  // namespace

bool sees_backwards(const ModelDescription& model) {
  return model.composition.given() ? model.composition->stack.causal : model.family != ModelFamily::bert;
}

std::string why_not_shared(const ModelDescription& model, const TrainingDescription& training) {
  if (model.composition.given()) return why_not_shared(*model.composition, training);
  if (model.sequence_first)
    return "attention of a bert that has its sequences first is written out, and context_parallel takes fused "
           "attention: expected 1";
  if (!sees_backwards(model) && model.head != ModelHead::masked_lm)
    return "the loss of a bert reads all of a sequence, but with head: masked-lm";
  return "";
}

}  // namespace ridgeline::families
