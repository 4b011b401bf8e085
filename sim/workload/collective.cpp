#include "sim/workload/collective.h"

namespace ridgeline {

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return "all_reduce";
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::broadcast: return "broadcast";
    case CollectiveKind::reduce: return "reduce";
    case CollectiveKind::all_to_all: return "all_to_all";
    case CollectiveKind::send_recv: return "send_recv";
    case CollectiveKind::barrier: return "barrier";
    case CollectiveKind::peer_copy: return "peer_copy";
  }
  return "?";
}

std::string_view name_of(GroupKind group) {
  switch (group) {
    case GroupKind::data: return "data";
    case GroupKind::replicate: return "replicate";
    case GroupKind::shard: return "shard";
    case GroupKind::tensor: return "tensor";
    case GroupKind::pipeline: return "pipeline";
    case GroupKind::context: return "context";
    case GroupKind::expert: return "expert";
    case GroupKind::model: return "model";
    case GroupKind::embedding: return "embedding";
    case GroupKind::expert_data: return "expert_data";
  }
  return "?";
}

}  // namespace ridgeline
