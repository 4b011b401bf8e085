#include "sim/answer/generated_tokens.h"

#include <cstdint>
#include <utility>

namespace ridgeline {

std::optional<Generation> generation_of(const StepRun& run) {
  const Scenario& s = run.scenario();
  if (!s.training.inference || s.training.inference->new_tokens == 0) return std::nullopt;
  const InferenceDescription& inference = *s.training.inference;
  const Seconds whole = run.timeline().step;
  Scenario first = s;
  first.training.inference->new_tokens = 1;
  Generation result;
  result.first_token =
      inference.new_tokens > 1 ? StepRun(run.session(), std::move(first), run.engine()).timeline().step : whole;
  if (inference.new_tokens > 1)
    result.per_token = (whole - result.first_token) / static_cast<double>(inference.new_tokens - 1);
  const std::int64_t kept = s.training.sequence_length + inference.new_tokens - 1;
  if (inference.cache != KeyValueCache::none)
    result.cache_bytes = 2 * s.model.layers * s.training.micro_batch * s.model.key_value_count() * kept *
                         s.model.head_dim() *
                         (s.training.precision == Precision::fp32 || s.training.precision == Precision::tf32 ? 4 : 2);
  return result;
}

}  // namespace ridgeline
