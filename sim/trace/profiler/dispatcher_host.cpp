#include "sim/trace/profiler/dispatcher_host.h"

#include <algorithm>
#include <array>

namespace ridgeline::trace {
namespace {

/// A cast that autocast adds to a call: 45 us of a linear with three casts against 27 us without
/// (hw/hosts/default.yaml).
constexpr std::int64_t kCastMicroseconds = 6;

bool of_list(std::string_view name) {
  return name.starts_with("aten::_foreach") || name.starts_with("aten::_fused_") || name.starts_with("aten::_amp_");
}

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void DispatcherHost::begin_step() {
  last_phase_ = Phase::setup;
  clipped_ = optimized_ = went_back_ = false;
  forward_calls_ = 0;
}

std::vector<DispatcherHost::Work> DispatcherHost::before(const AtenCall& call) {
  std::vector<Work> work;
  if (call.phase == Phase::backward && last_phase_ != Phase::backward) {
    work.push_back({HostClass::backward_call, 1});
    if (!went_back_) work.push_back({HostClass::backward_first, std::min(kColdOperations, forward_calls_)});
    went_back_ = true;
  }
  if (call.phase == Phase::forward) ++forward_calls_;
  last_phase_ = call.phase;
  const TensorList* list = call.list(0);
  if (list == nullptr || !of_list(call.name)) return work;
  const auto count = static_cast<std::int64_t>(list->size());
  if (call.phase == Phase::clipping && !clipped_) {
    work.push_back({HostClass::clip_fixed, 1});
    work.push_back({HostClass::per_parameter_clip, count});
    clipped_ = true;
  }
  if (call.phase == Phase::optimizer && !optimized_) {
    const bool fused = call.name.starts_with("aten::_fused_");
    work.push_back({HostClass::accumulate_grad, count});
    work.push_back({fused ? HostClass::fused_fixed : HostClass::foreach_fixed, 1});
    work.push_back({fused                ? HostClass::per_parameter_fused
                    : optimizer == "SGD" ? HostClass::per_parameter_foreach_sgd
                                         : HostClass::per_parameter_foreach,
                    count});
    optimized_ = true;
    parameters_ = count;
  }
  return work;
}

DispatcherHost::Work DispatcherHost::of(const AtenCall& call, const MappedOp& mapped) const {
  switch (call.phase) {
    case Phase::backward: return {mapped.backward, 1};
    case Phase::forward: {
      const auto* pointwise = std::get_if<Pointwise>(&mapped.op);
      if (pointwise != nullptr && pointwise->function == PointwiseFunction::cast)
        return {HostClass::python_fixed, kCastMicroseconds};
      return {mapped.forward, 1};
    }
    case Phase::clipping: return {};  // all of it in clip_fixed
    default: break;
  }
  return of_list(call.name) ? Work{} : Work{HostClass::optimizer_op, 1};
}

DispatcherHost::Work DispatcherHost::of_view(const AtenCall& call) const {
  // Made inside other calls, and part of their classes.
  static constexpr std::array<std::string_view, 10> kInside{
      "aten::t",          "aten::detach",     "aten::alias", "aten::_unsafe_view",  "aten::expand",
      "aten::lift_fresh", "aten::empty_like", "aten::empty", "aten::empty_strided", "aten::new_empty_strided"};
  if (among(kInside, call.name)) return {};
  if (call.phase == Phase::backward) return {HostClass::view_backward, 1};
  if (call.phase != Phase::forward) return {};
  if (call.name == "aten::transpose" || call.name == "aten::permute") return {HostClass::transpose, 1};
  if (call.name.starts_with("aten::split")) return {HostClass::split, 1};
  return {HostClass::view, 1};
}

DispatcherHost::Work DispatcherHost::end_step() const { return {HostClass::per_parameter_zero_grad, parameters_}; }

}  // namespace ridgeline::trace
