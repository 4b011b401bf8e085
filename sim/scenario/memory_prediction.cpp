#include "sim/scenario/memory_prediction.h"

#include <algorithm>

#include "sim/kernels/attention_choice.h"
#include "sim/scenario/shared_prediction.h"
#include "sim/workload/compile/compile_trace.h"
#include "sim/workload/training_step.h"

namespace ridgeline {

OpTrace trace_of(const Scenario& s) {
  AttentionChoice attention = choose_attention(s.training, s.model, s.gpu, s.software);
  // While it is compiled, a mask cannot be looked at and dropped: it reaches the attention, and with dropout no fused
  // kernel takes it.
  if (s.compile && s.training.attention == AttentionRequest::sdpa && s.model.family == ModelFamily::bert &&
      s.model.attention_dropout > 0.0)
    attention = AttentionChoice::math;
  OpTrace trace = training_run(s.model, s.training, attention);
  return s.compile ? compile::compile_trace(std::move(trace)) : trace;
}

ScenarioProgram make_scenario_program(const Scenario& s) {
  ScenarioProgram result{std::make_unique<OpTrace>(trace_of(s)), {}};
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

namespace {

constexpr std::int64_t kNoEnd = std::int64_t{1} << 60;

MemoryPrediction prediction_of(const MemoryResult& r, const StepProgram& program, std::int64_t capacity) {
  MemoryPrediction m;
  m.peak_allocated = r.peak_allocated;
  m.peak_reserved = r.peak_reserved;
  m.context = r.context;
  m.device_used = r.device_used;
  m.capacity = capacity;
  m.fits = r.fits;
  m.at_peak = r.breakdown;
  m.cached_unused = r.cached_unused;
  m.peak_op = op_name(program, r.peak.call);
  m.peak_phase = r.peak.phase;
  m.peak_layer = r.peak.layer;
  m.needed = r.device_used;
  return m;
}

}  // namespace

MemoryPrediction predict_memory(const StepProgram& program, const Scenario& s) {
  MemoryOptions options = memory_options(s);
  const MemoryResult r = run_memory(program, options);
  MemoryPrediction m = prediction_of(r, program, options.capacity);
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
    options.capacity = kNoEnd;
    m.needed = run_memory(program, options).device_used;
  }
  return m;
}

RoomyMemory run_roomy_memory(const StepProgram& program, const Scenario& s) {
  MemoryOptions options = memory_options(s);
  options.capacity = kNoEnd;
  const MemoryResult r = run_memory(program, options);
  return {prediction_of(r, program, options.capacity), std::max(r.peak_reserved, r.first_step_peak_reserved)};
}

std::uint64_t hash_of_allocations(const StepProgram& program) {
  std::uint64_t hash = program.storages.size();
  const auto add = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for (const Storage& storage : program.storages)
    add(static_cast<std::uint64_t>(storage.bytes) << 3 | static_cast<std::uint64_t>(storage.category));
  for (const Action& action : program.actions)
    if (action.kind == Action::Kind::allocate || action.kind == Action::Kind::free)
      add(static_cast<std::uint64_t>(action.index) << 1 | (action.kind == Action::Kind::free));
  return hash;
}

MemoryPrediction predict_memory(const StepProgram& program, const Scenario& s, const RoomyMemory& roomy) {
  const MemoryOptions options = memory_options(s);
  const bool sees_capacity = options.settings.memory_fraction > 0 || options.settings.garbage_collection_threshold > 0;
  if (sees_capacity || roomy.most_reserved + options.context > options.capacity) return predict_memory(program, s);
  MemoryPrediction m = roomy.prediction;
  m.capacity = options.capacity;
  m.context = options.context;
  m.device_used = m.needed = m.peak_reserved + m.context;
  return m;
}

MemoryPrediction predict_memory(const Scenario& scenario) {
  return predict_memory(make_scenario_program(scenario).program, scenario);
}

}  // namespace ridgeline
