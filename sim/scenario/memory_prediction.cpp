#include "sim/scenario/memory_prediction.h"

#include "sim/kernels/attention_choice.h"
#include "sim/workload/training_step.h"

namespace ridgeline {

ScenarioProgram make_scenario_program(const Scenario& s) {
  const AttentionChoice attention = choose_attention(s.training, s.model, s.gpu, s.software);
  ScenarioProgram result{std::make_unique<OpTrace>(training_run(s.model, s.training, attention)), {}};
  result.program = make_program(*result.trace, s.gpu, s.software);
  return result;
}

MemoryOptions memory_options(const Scenario& s) {
  MemoryOptions options;
  options.settings = s.allocator;
  options.capacity = static_cast<std::int64_t>(s.gpu.dram.capacity.value());
  options.context = context_bytes(s.gpu, s.software);
  return options;
}

std::string op_name(const StepProgram& program, std::uint32_t call) {
  return call == Action::kNoCall ? std::string() : name_of(program.trace->ops[program.trace->calls[call].op]);
}

MemoryPrediction predict_memory(const StepProgram& program, const Scenario& s) {
  MemoryOptions options = memory_options(s);
  const MemoryResult r = run_memory(program, options);
  MemoryPrediction m;
  m.peak_allocated = r.peak_allocated;
  m.peak_reserved = r.peak_reserved;
  m.context = r.context;
  m.device_used = r.device_used;
  m.capacity = options.capacity;
  m.fits = r.fits;
  m.at_peak = r.breakdown;
  m.cached_unused = r.cached_unused;
  m.peak_op = op_name(program, r.peak.call);
  m.peak_phase = r.peak.phase;
  m.peak_layer = r.peak.layer;
  m.needed = r.device_used;
  if (r.failure) {
    const MemoryFailure& failure = *r.failure;
    m.out_of_memory =
        MemoryShortage{failure.moment.phase == Phase::setup ? "set-up" : op_name(program, failure.moment.call),
                       failure.moment.phase,
                       failure.moment.layer,
                       failure.category,
                       failure.details.requested,
                       failure.details.missing,
                       failure.held};
    options.capacity = std::int64_t{1} << 60;
    m.needed = run_memory(program, options).device_used;
  }
  return m;
}

MemoryPrediction predict_memory(const Scenario& scenario) {
  return predict_memory(make_scenario_program(scenario).program, scenario);
}

}  // namespace ridgeline
