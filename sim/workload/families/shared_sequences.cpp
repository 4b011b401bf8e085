#include "sim/workload/families/shared_sequences.h"

#include <fmt/format.h>

#include "sim/workload/composition.h"
#include "sim/workload/families/composed_families.h"

namespace ridgeline::families {
namespace {

std::string why_not_shared(const Composition& composition, const TrainingDescription& training) {
  const Stack& s = composition.stack;
  if (composition.encoder && s.cross_attention)
    return "PyTorch's context_parallel raises RuntimeError (Load balancing requires `is_causal=True`) in the encoder "
           "beside a decoder";
  if (s.image_rows) return "an image's rows among tokens are not modelled over context parallel ranks; expected 1";
  if (s.input != InputKind::tokens)
    return "PyTorch itself cuts buffers along a dimension of tokens (context_parallel's buffer_seq_dims), which pixels "
           "and spectrograms do not have; expected 1";
  if (s.head != HeadKind::language_model && s.head != HeadKind::masked_lm && s.head != HeadKind::token_classification)
    return "the loss reads all of a sequence: expected a head that scores every token";
  if (s.attention_code != AttentionCode::fused || s.sinks || s.sequence_first)
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
  return !model.program.given() && composition_of(model)->stack.causal;
}

std::string why_not_shared(const ModelDescription& model, const TrainingDescription& training) {
  if (model.program.given()) return "sequences of a network of family program are not cut: expected 1";
  return why_not_shared(*composition_of(model), training);
}

}  // namespace ridgeline::families
