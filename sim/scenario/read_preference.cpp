#include "sim/scenario/read_preference.h"

#include <array>
#include <string_view>
#include <utility>

namespace ridgeline {

using config::Mapping;
using config::Value;

std::optional<PreferenceDescription> read_preference(const Value& value) {
  if (!value.exists() || value.is("none")) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, ReferenceModel>, 2> kReferences{
      {{"dpo", ReferenceModel::resident}, {"dpo-precomputed", ReferenceModel::precomputed}}};
  return PreferenceDescription{value.choice<ReferenceModel>(kReferences)};
}

void check_preference(const Mapping& mapping, const TrainingDescription& t, bool compile) {
  if (!t.preference) return;
  const Value key = mapping["preference"];
  if (compile) key.fail("under torch.compile is not modelled: expected none");
  if (t.loss_code != LossCode::whole) key.fail("goes with a loss of all scores: expected loss_code: whole beside it");
  if (!t.packed_lengths.empty()) key.fail("goes with one sequence a row: expected packed_lengths: none beside it");
  const ParallelDescription& how = t.parallel;
  if (how.gpus() > 1 &&
      (how.strategy != DataStrategy::ddp || how.data != how.gpus() || how.megatron() || how.deepspeed()))
    key.fail("over several GPUs goes with strategy: ddp, a whole network on each: expected none");
}

}  // namespace ridgeline
