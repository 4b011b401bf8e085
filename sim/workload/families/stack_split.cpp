#include "sim/workload/families/stack_split.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridgeline::families {
namespace {

constexpr std::int64_t kGroups = 4;  // of heads, whose queries, values and keys lie together (fused_groups)

bool copies_keys(const Stack& s, std::int64_t ranks) { return ranks > 1 && s.key_value_count() == 1; }

void take_share(Stack& s, std::int64_t ranks) {
  s.head_dim = s.stage_heads.empty() ? s.head_width() : s.hidden / s.stage_heads.front();
  s.feed_forward = s.inner() / ranks;
  s.expert_feed_forward /= ranks;
  s.shared_feed_forward /= ranks;
  for (std::int64_t& heads : s.stage_heads) heads /= ranks;
  if (s.query_key_norm == QueryKeyNorm::width) return;  // columns are gathered before attention
  s.key_copies = copies_keys(s, ranks) ? ranks : 1;
  s.key_value_heads = std::max<std::int64_t>(1, s.key_value_count() / ranks);
  s.heads /= ranks;
}

/// Tokens of one of the sequences that a stack sees.
std::int64_t tokens_of(const Stack& s, const TrainingDescription& training) {
  switch (s.input) {
    case InputKind::image: {
      const std::int64_t side = s.image_size / s.patch;
      return side * side + (s.class_token ? 1 : 0) + s.extra_tokens;
    }
    case InputKind::audio: return s.max_positions;
    case InputKind::tokens: break;
  }
  return s.cross_attention && s.target_length > 0 ? s.target_length : training.tokens_of_rank();
}

/// What a stack is split into, and by how many ranks it then has to divide.
std::string why_not_divided(const Stack& s, const ParallelDescription& how) {
  const std::int64_t ranks = how.tensor;
  const auto divides = [&](std::int64_t count, const char* of) {
    return count % ranks == 0
               ? std::string()
               : fmt::format("{} does not divide the {} {}: allowed are divisors of {}", ranks, count, of, count);
  };
  std::string why;
  const auto all_divided = [&](std::int64_t count, const char* of) {
    if (why.empty()) why = divides(count, of);
  };
  for (const std::int64_t heads : s.stage_heads) all_divided(heads, "heads of a stage");
  if (s.stage_heads.empty()) {
    all_divided(s.heads, "heads");
    // By hand ranks may have the same one; a fused weight would be so in part.
    const bool alike = how.tensor_style == TensorStyle::by_hand && s.projection == ProjectionKind::separate;
    if (!alike || !copies_keys(s, ranks)) all_divided(s.key_value_count(), "key/value heads");
  }
  if (s.projection == ProjectionKind::fused_groups) all_divided(s.heads / kGroups, "heads of a quarter");
  all_divided(s.inner(), "feed-forward columns");
  if (s.experts > 0 && s.expert_feed_forward > 0) all_divided(s.expert_feed_forward, "columns of an expert");
  if (s.shared_feed_forward > 0) all_divided(s.shared_feed_forward, "columns of the shared experts");
  return why;
}

/// What torch.distributed.tensor.parallel raises.
std::string why_not_dtensor(const Stack& s, const TrainingDescription& training) {
  const ParallelDescription& how = training.parallel;
  if (s.weights_by_inputs)
    return "its layers are Transformers' Conv1D, and PyTorch raises: ColwiseParallel currently only support nn.Linear "
           "and nn.Embedding! Expected tensor_style: by-hand";
  if (s.sequence_first)
    return "tensors that are [tokens, sequences, hidden] are not modelled with dtensor; expected tensor_style: by-hand";
  if (!how.sequence_parallel) return "";
  const std::int64_t tokens = tokens_of(s, training), part = tokens / how.tensor;
  if (!s.stage_layers.empty())
    return fmt::format(
        "windows are cut out of whole images, and PyTorch raises: shape '[{}, {}, {}, {}]' is invalid for "
        "input of size {}. Expected sequence_parallel: false",
        training.micro_batch, s.image_size / s.patch, s.image_size / s.patch, s.hidden,
        training.micro_batch * part * s.hidden);
  if (tokens % how.tensor != 0)
    return fmt::format(
        "sequence_parallel: the {} tokens of a sequence are not divided by {} ranks, and local tensors "
        "of DTensors would differ in length; expected sequence_parallel: false",
        tokens, how.tensor);
  return "";
}

std::string why_not_split(const Stack& s, const TrainingDescription& training) {
  const ParallelDescription& how = training.parallel;
  for (std::size_t i = 1; i < s.stage_heads.size(); ++i)
    if ((s.hidden << i) * s.stage_heads.front() != s.hidden * s.stage_heads[i])
      return "heads of its stages differ in width, which is not modelled; expected 1";
  if (std::string why = why_not_divided(s, how); !why.empty()) return why;
  return how.tensor_style == TensorStyle::dtensor ? why_not_dtensor(s, training) : "";
}

}  // namespace

Composition share_of(const Composition& whole, std::int64_t ranks) {
  Composition result = whole;
  take_share(result.stack, ranks);
  if (result.encoder) take_share(*result.encoder, ranks);
  return result;
}

std::string why_not_split(const Composition& composition, const TrainingDescription& training) {
  if (composition.stack.image_rows)
    return "an image's rows among tokens are not modelled over tensor parallel ranks; expected 1";
  if (composition.encoder)
    if (std::string why = why_not_split(*composition.encoder, training); !why.empty()) return "encoder: " + why;
  return why_not_split(composition.stack, training);
}

}  // namespace ridgeline::families
