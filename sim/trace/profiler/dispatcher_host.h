// Host work of dispatcher calls where a recording does not measure it: what Python and autograd add around each call,
// by the classes of hw/hosts.
//
// A recording of the dispatcher does not show the Python around its calls; that of a library's own modules is left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/trace/aten/aten_map.h"

namespace ridgeline::trace {

class DispatcherHost {
 public:
  struct Work {
    HostClass host_class = HostClass::other;
    std::int64_t times = 0;
  };

  std::string optimizer{};  ///< class of the optimizer, where known: "AdamW", "SGD"

  void begin_step();
  /// Work before a call that its own class does not cover: entering backward(), clipping, the optimizer's Python.
  std::vector<Work> before(const AtenCall& call);
  /// Work of one operation of a call.
  [[nodiscard]] Work of(const AtenCall& call, const MappedOp& mapped) const;
  /// Work of a call that launches nothing.
  [[nodiscard]] Work of_view(const AtenCall& call) const;
  [[nodiscard]] Work end_step() const;

 private:
  Phase last_phase_ = Phase::setup;
  bool clipped_ = false, optimized_ = false, went_back_ = false;
  std::int64_t forward_calls_ = 0;
  std::int64_t parameters_ = 0;  ///< tensors the optimizer updates
};

}  // namespace ridgeline::trace
