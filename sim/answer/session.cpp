#include "sim/answer/session.h"

namespace ridgeline {
namespace {

/// Memory of a trace, its small parts left out.
std::uint64_t bytes_of(const OpTrace& trace) {
  return trace.records.size() * sizeof(Record) + trace.calls.size() * sizeof(Call) +
         trace.operands.size() * sizeof(Operand) + trace.storages.size() * sizeof(Storage) +
         trace.ops.size() * sizeof(Op);
}

}  // namespace

KernelTimes* SharedKernels::times_of(std::string_view engine) {
  if (engine == "analytic") return &analytic;
  if (engine == "roofline") return &roofline;
  return nullptr;
}

Session::Session(const SessionLimits& limits)
    : limits_(limits), traces_(limits.traces, limits.trace_bytes), kernels_(limits.gpus), shapes_(limits.gpus) {}

std::shared_ptr<SharedTrace> Session::trace(const Scenario& scenario) {
  return traces_.get(
      trace_key_of(scenario), [&] { return std::make_shared<SharedTrace>(trace_of(scenario)); },
      [](const SharedTrace& made) { return bytes_of(made.trace); });
}

std::shared_ptr<SharedKernels> Session::kernels(const Gpu& gpu, const Software& software) {
  const ProbeOfKernels probe{gpu, software};
  std::shared_ptr<SharedKernels> known = kernels_.get(probe, [&] {
    const KeyOfShape own{std::make_shared<const Gpu>(gpu), std::make_shared<const Software>(software)};
    std::shared_ptr<ShapedOps> shaped =
        shapes_.get(own, [&] { return std::make_shared<ShapedOps>(own.gpu, own.software); });
    shaped->forget_beyond(limits_.kernels_a_gpu);
    return std::make_shared<SharedKernels>(own.gpu, own.software, std::move(shaped), 4 * limits_.kernels_a_gpu);
  });
  known->ops.forget_beyond(limits_.kernels_a_gpu);
  return known;
}

}  // namespace ridgeline
