#include "sim/answer/memory_prediction.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/replay.h"
#include "sim/scenario/said_in_place.h"
#include "sim/scenario/stack_notes.h"
#include "sim/trace/read_recording.h"
#include "sim/workload/compile/compile_trace.h"
#include "sim/workload/composition.h"
#include "sim/workload/families/composed_families.h"
#include "sim/workload/repeated_range.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {
OpTrace run_of(const TraceKey& key) {
  if (key.training.inference) return inference_run(key.model, key.training, key.attention, 2, key.tokens);
  return training_run(key.model, key.training, key.attention);
}
}  // namespace

TraceKey trace_key_of(const Scenario& s, std::string_view engine) {
  const bool compiled = compiles(s);
  TraceKey key{s.model, s.training,
               said_in_place(s, [&] { return choose_attention(s.training, s.model, s.gpu, s.software); }),
               compiled ? s.gpu.sm.count : 0};
  // A simulated cache goes from kernel to kernel, and a graph is launched whole.
  if (engine == "simulate" || s.cuda_graphs) key.tokens = Tokens::written_out;
  // While it is compiled, a mask cannot be looked at and dropped: it reaches the attention, and with dropout no fused
  // kernel takes it. Where blocks are compiled one by one it is looked at outside of them.
  const bool whole = compiled && !s.training.parallel.compiles_blocks();
  key.training.parallel.compiled = compiled && (s.training.parallel.several() || s.training.parallel.block_by_block);
  if (s.model.program.given()) return key;
  const CompositionHandle network = families::composition_of(s.model);
  const Stack& stack = network->stack;
  if (whole && s.training.attention == AttentionRequest::sdpa && !stack.causal && stack.takes_mask() &&
      stack.attention_dropout > 0.0 && s.training.packed_lengths.empty())
    key.attention = AttentionChoice::math;
  key.training.mask_given = whole && s.training.packed_lengths.empty() && !s.model.written_plain() &&
                            (!stack.causal || s.software.compiled_mask);
  return key;
}

OpTrace trace_of(const Scenario& s, std::string_view engine) {
  if (s.recorded) return std::move(replayable_of(s, engine).recording.trace);
  const TraceKey key = trace_key_of(s, engine);
  OpTrace trace = said_in_place(s, [&] { return run_of(key); });
  if (key.compiled_for_sms == 0 || trace.tokens != nullptr) return trace;
  trace = compile::compile_trace(std::move(trace), key.compiled_for_sms);
  if (repeats_are_steady(trace)) return trace;
  return compile::compile_trace(
      training_run(key.model, key.training, key.attention, 2, key.training.gradient_accumulation),
      key.compiled_for_sms);
}

ScenarioProgram make_scenario_program(const Scenario& s, std::string_view engine) {
  ScenarioProgram result{std::make_unique<OpTrace>(trace_of(s, engine)), {}};
  result.program = make_program(*result.trace, s.gpu, s.software);
  return result;
}

bool knows_allocations(const Scenario& s) { return !s.recorded || s.recorded->file->memory_known(); }

MemoryOptions memory_options(const Scenario& s) {
  MemoryOptions options;
  options.settings = s.allocator;
  options.capacity = static_cast<std::int64_t>(s.gpu.dram.capacity.value());
  options.context = context_bytes(s.gpu, s.software) + communicator_bytes(s);
  return options;
}

std::string op_name(const StepProgram& program, std::uint32_t call) {
  return call == Action::kNoCall ? std::string() : name_of(program.trace->ops[program.trace->calls[call].op]);
}

namespace {

/// More than any device has, and small enough that segments which reserve addresses for all of it find them.
constexpr std::int64_t kNoEnd = std::int64_t{1} << 45;

MemoryPrediction prediction_of(const MemoryResult& r, const StepProgram& program, std::int64_t capacity) {
  return {.peak_allocated = r.peak_allocated,
          .peak_reserved = r.peak_reserved,
          .context = r.context,
          .device_used = r.device_used,
          .capacity = capacity,
          .runs = r.fits,
          .fits = r.fits,
          .at_peak = r.breakdown,
          .cached_unused = r.cached_unused,
          .peak_op = op_name(program, r.peak.call),
          .peak_phase = r.peak.phase,
          .peak_layer = r.peak.layer,
          .needed = r.device_used,
          .needed_at_peak = r.breakdown,
          .needed_unused = r.cached_unused};
}

void set_range(MemoryPrediction& m, const Software& software) {
  m.needed_low = std::llround(static_cast<double>(m.needed) * (1.0 - software.memory_spread));
  m.needed_high = std::llround(static_cast<double>(m.needed) * (1.0 + software.memory_spread));
}

}  // namespace

MemoryPrediction predict_memory(const StepProgram& program, const Scenario& s) {
  return predict_memory(program, memory_options(s), s.software);
}

MemoryPrediction predict_memory(const StepProgram& program, MemoryOptions options, const Software& software,
                                const RoomyMemory* roomy, std::optional<MemoryResult> run) {
  options.counts = Counts::held;
  const MemoryResult r = run ? std::move(*run) : run_memory(program, options);
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
    if (roomy != nullptr) {
      m.needed = roomy->prediction.peak_reserved + options.context;
      m.needed_at_peak = roomy->prediction.at_peak;
      m.needed_unused = roomy->prediction.cached_unused;
    } else {
      const MemoryResult whole = run_memory(program, options);
      m.needed = whole.device_used;
      m.needed_at_peak = whole.breakdown;
      m.needed_unused = whole.cached_unused;
    }
  }
  set_range(m, software);
  if (m.runs && m.needed_high > m.capacity) {
    // A full device gives cached memory back: so the run is tried on one that is smaller by as much.
    options.capacity = std::llround(static_cast<double>(m.capacity) / (1.0 + software.memory_spread));
    m.fits = run_memory(program, options).fits;
  }
  return m;
}

void look_at_fullest_device(StepProgram& program, const Scenario& s) {
  MemoryOptions options = memory_options(s);
  options.capacity = kNoEnd;
  options.counts = Counts::held;
  std::int64_t most = -1;
  std::uint8_t fullest = 0;
  for (std::uint8_t device = 0; device < s.training.parallel.split; ++device) {
    program.device = device;
    const std::int64_t reserved = run_memory(program, options).peak_reserved;
    if (reserved <= most) continue;
    most = reserved;
    fullest = device;
  }
  program.device = fullest;
}

RoomyMemory run_roomy_memory(const StepProgram& program, const Scenario& s) {
  MemoryOptions options = memory_options(s);
  options.capacity = kNoEnd;
  options.counts = Counts::held;
  const MemoryResult r = run_memory(program, options);
  return {prediction_of(r, program, options.capacity), std::max(r.peak_reserved, r.first_step_peak_reserved)};
}

std::optional<RoomyMemory> roomy_memory_of(const MemoryResult& r, const StepProgram& program, const Scenario& s) {
  const MemoryOptions options = memory_options(s);
  // Addresses of growing segments begin where the capacity says; a run that was cut short has not settled.
  const bool decided = !r.fits || r.statistics.retries > 0 || r.statistics.device_frees > 0 ||
                       options.settings.expandable_segments || options.settings.memory_fraction > 0 ||
                       options.settings.garbage_collection_threshold > 0 || r.steps_run >= options.most_steps;
  if (decided) return std::nullopt;
  return RoomyMemory{prediction_of(r, program, kNoEnd), std::max(r.peak_reserved, r.first_step_peak_reserved)};
}

namespace {

class AllocationsHash {
 public:
  void add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 29;
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0;
};

}  // namespace

std::uint64_t hash_of_moves(const StepProgram& program) {
  AllocationsHash hash;
  for (const Action& action : program.actions)
    if (action.kind == Action::Kind::allocate || action.kind == Action::Kind::free)
      hash.add(static_cast<std::uint64_t>(action.index) << 1 | (action.kind == Action::Kind::free));
  for (const RepeatedActions& repeat : program.repeats) hash.add(static_cast<std::uint64_t>(repeat.times));
  return hash.value();
}

std::uint64_t hash_of_allocations(const StepProgram& program, std::uint64_t moves) {
  AllocationsHash hash;
  hash.add(program.storages.size() ^ (program.device ? std::uint64_t{1} + *program.device : 0) << 56);
  hash.add(moves);
  for (const Storage& storage : program.storages)
    hash.add(static_cast<std::uint64_t>(storage.bytes) << 11 | static_cast<std::uint64_t>(storage.stream) << 3 |
             static_cast<std::uint64_t>(storage.category));
  return hash.value();
}

std::uint64_t hash_of_allocations(const StepProgram& program) {
  return hash_of_allocations(program, hash_of_moves(program));
}

MemoryPrediction predict_memory(const StepProgram& program, const Scenario& s, const RoomyMemory& roomy,
                                std::optional<MemoryResult> run) {
  const MemoryOptions options = memory_options(s);
  const bool sees_capacity = options.settings.memory_fraction > 0 || options.settings.garbage_collection_threshold > 0;
  const double most = static_cast<double>(roomy.most_reserved + options.context) * (1.0 + s.software.memory_spread);
  if (sees_capacity || most > static_cast<double>(options.capacity))
    return predict_memory(program, options, s.software, &roomy, std::move(run));
  MemoryPrediction m = roomy.prediction;
  m.capacity = options.capacity;
  m.context = options.context;
  m.device_used = m.needed = m.peak_reserved + m.context;
  set_range(m, s.software);
  return m;
}

MemoryPrediction memory_as_recorded(const trace::MeasuredStep& measured, const Scenario& s) {
  const MemoryOptions options = memory_options(s);
  MemoryPrediction m;
  m.context = options.context;
  m.capacity = options.capacity;
  m.source = measured.peak_reserved > 0 ? MemorySource::as_recorded : MemorySource::unknown;
  if (m.source == MemorySource::unknown) return m;
  m.peak_allocated = measured.peak_allocated;
  m.peak_reserved = measured.peak_reserved;
  m.needed = m.device_used = m.peak_reserved + m.context;
  set_range(m, s.software);
  m.runs = m.needed <= m.capacity;
  m.fits = m.needed_high <= m.capacity;
  return m;
}

std::string_view verdict(const MemoryPrediction& memory) {
  if (memory.source == MemorySource::unknown) return "unknown";
  if (!memory.runs) return "does not fit";
  return memory.fits ? "fits" : "may not fit";
}

MemoryPrediction predict_memory(const Scenario& scenario) {
  if (!knows_allocations(scenario)) return memory_as_recorded(replayable_of(scenario, "roofline").measured, scenario);
  return predict_memory(make_scenario_program(scenario).program, scenario);
}

}  // namespace ridgeline
