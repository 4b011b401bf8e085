// Ranks of a pipeline that are played from the trace of another rank of their class.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/workload/parallel/schedule.h"

namespace ridgeline {

/// Which action of a traced rank stands for one of another rank of its class: of the same kind, on the same part of the
/// network; of the first, the last or a steady micro-batch.
class StandIns {
 public:
  StandIns(const parallel::RankActions& traced, const parallel::PipelineShape& shape, std::size_t rank)
      : shape_(shape) {
    for (std::size_t i = 0; i < traced.size(); ++i)
      known_[key_of(traced[i], rank)].push_back(static_cast<std::uint32_t>(i));
  }

  [[nodiscard]] std::uint32_t of(const parallel::StageAction& action, std::size_t rank,
                                 std::int32_t micro_batches) const {
    const auto found = known_.find(key_of(action, rank));
    if (found == known_.end()) return 0;
    const std::vector<std::uint32_t>& all = found->second;
    if (action.computes() && action.micro_batch == 0) return all.front();
    if (action.computes() && action.micro_batch + 1 == micro_batches) return all.back();
    return all[all.size() / 2];
  }

 private:
  using Key = std::array<std::size_t, 3>;
  [[nodiscard]] Key key_of(const parallel::StageAction& action, std::size_t rank) const {
    using Kind = parallel::StageAction::Kind;
    std::size_t part = 0, transfers = 0;
    if (action.computes() || action.kind == Kind::reduce_gradients) {
      const std::vector<std::int32_t> stages = shape_.stages_of(static_cast<std::int32_t>(rank));
      part = static_cast<std::size_t>(std::find(stages.begin(), stages.end(), action.stage) - stages.begin());
    }
    for (const parallel::Transfer& one : action.transfers)
      transfers = 4 * transfers + 1 + 2 * std::size_t{one.send} + std::size_t{one.gradient};
    return {static_cast<std::size_t>(action.kind), part, transfers};
  }

  const parallel::PipelineShape& shape_;
  std::map<Key, std::vector<std::uint32_t>> known_;
};

}  // namespace ridgeline
