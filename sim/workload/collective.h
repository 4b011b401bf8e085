// A collective operation of a training step: what is exchanged, between how many ranks, for which purpose.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/workload/dtype.h"

namespace ridgeline {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_recv,  ///< one rank sends, one receives
  barrier,
  peer_copy  ///< from one device to another of the same process: the driver's, not NCCL's
};
/// As torch.distributed spells it: "all_reduce".
std::string_view name_of(CollectiveKind kind);

/// Why ranks form a group, which says where they stand: tensor ranks are neighbours, stages are farthest apart.
enum class GroupKind : std::uint8_t {
  data,
  replicate,
  shard,
  tensor,
  pipeline,
  context,
  expert,
  model,       ///< all that hold parts of one copy of the network: tensor ranks of all stages
  embedding,   ///< the first and the last stage, which hold one table
  expert_data  ///< ranks that hold the same experts
};
std::string_view name_of(GroupKind group);
/// Its ranks are stages of a pipeline, which differ in what they do: a collective ties them together.
constexpr bool joins_stages(GroupKind group) {
  return group == GroupKind::pipeline || group == GroupKind::model || group == GroupKind::embedding;
}

/// `bytes` of a rank's buffer as nccl-tests counts them: all_gather's whole result, reduce_scatter's whole input.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupKind group = GroupKind::data;
  DType type = DType::fp32;
  std::int64_t ranks = 1;
  std::int64_t bytes = 0;
  bool operator==(const Collective&) const = default;
};

}  // namespace ridgeline
