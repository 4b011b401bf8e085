#include "sim/workload/families/stack_split.h"

#include <fmt/format.h>

namespace ridgeline::families {
namespace {

void take_share(Stack& s, std::int64_t ranks) {
  s.head_dim = s.head_width();
  s.key_value_heads = s.key_value_count() / ranks;
  s.heads /= ranks;
  s.feed_forward = s.inner() / ranks;
}

std::string why_not_split(const Stack& s, std::int64_t ranks) {
  if (s.experts > 0) return "experts are not split: training.parallel.expert spreads them over ranks; expected 1";
  if (s.key_value_rank > 0) return "attention by way of a rank (key_value_rank) is not split; expected 1";
  if (!s.stage_layers.empty()) return "stages of windows are not split; expected 1";
  if (s.positions == PositionKind::disentangled)
    return "attention with disentangled positions is not split; expected 1";
  if (s.query_key_norm == QueryKeyNorm::width)
    return "query_key_norm: width looks at the heads of all ranks; expected 1";
  const auto divides = [&](std::int64_t count, const char* of) {
    return count % ranks == 0
               ? std::string()
               : fmt::format("{} does not divide the {} {}: allowed are divisors of {}", ranks, count, of, count);
  };
  if (std::string why = divides(s.heads, "heads"); !why.empty()) return why;
  if (std::string why = divides(s.key_value_count(), "key/value heads"); !why.empty()) return why;
  return divides(s.inner(), "feed-forward columns");
}

}  // namespace

Composition share_of(const Composition& whole, std::int64_t ranks) {
  Composition result = whole;
  take_share(result.stack, ranks);
  if (result.encoder) take_share(*result.encoder, ranks);
  return result;
}

std::string why_not_split(const Composition& composition, std::int64_t ranks) {
  if (composition.encoder)
    if (std::string why = why_not_split(*composition.encoder, ranks); !why.empty()) return "encoder: " + why;
  return why_not_split(composition.stack, ranks);
}

}  // namespace ridgeline::families
