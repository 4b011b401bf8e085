// Operations that a timeline of `predict --timeline` holds as they were predicted, beside PyTorch's names for them.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>

#include "sim/trace/profiler/profiler_events.h"
#include "sim/workload/op.h"

namespace ridgeline::trace {

class RecordedOps {
 public:
  explicit RecordedOps(const ProfilerEvents& events) : events_(events) {}
  /// Null where operator `op` does not say; of what others than `predict` wrote none does.
  [[nodiscard]] const Op* of(std::size_t op);

 private:
  const ProfilerEvents& events_;
  std::unordered_map<std::size_t, std::optional<Op>> read_;
};

}  // namespace ridgeline::trace
