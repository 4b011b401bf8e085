#include "tests/invariants/checks.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "sim/report/json/prediction_json.h"
#include "sim/report/text/prediction_text.h"
#include "sim/scenario/stack_notes.h"
#include "sim/units/user_error.h"
#include "sim/workload/composition.h"
#include "tests/support/live_storages.h"
#include "tests/support/trace_mistakes.h"

namespace ridgeline::invariants {
namespace {

constexpr double kRounding = 1e-6, kPhysics = 1e-3;

class Checks {
 public:
  Checks(const Question& question, CaseResult& result) : question_(question), result_(result) {}

  void that(bool holds, std::string kind, std::string group, double size, const std::string& seen) {
    if (holds) return;
    for (const Finding& known : result_.findings)
      if (known.kind == kind && known.group == group) return;
    result_.findings.push_back(
        {std::move(kind), std::move(group), size, fmt::format("{}\n      {}", seen, question_.command())});
  }
  void at_most(double value, double most, double tolerance, const std::string& kind, const std::string& group,
               const std::string& what) {
    that(value <= most * (1.0 + tolerance) + 1e-15, kind, group, value / most - 1.0,
         fmt::format("{}: {:.6g}, at most {:.6g}", what, value, most));
  }
  void equal(double value, double expected, const std::string& group, const std::string& what) {
    that(std::abs(value - expected) <= kRounding * std::abs(expected) + 1e-12, "parts do not add up", group,
         std::abs(value / expected - 1.0), fmt::format("{}: {:.9g}, the whole {:.9g}", what, value, expected));
  }
  void share(double value, const std::string& kind, const std::string& group) {
    that(value >= -1e-9 && value <= 1.0 + 1e-6, kind, group, std::abs(value), fmt::format("{:.9g}", value));
  }
  void finite(double value, const std::string& group) {
    that(std::isfinite(value), "NaN or infinity", group, 1.0, fmt::format("{}", value));
  }

 private:
  const Question& question_;
  CaseResult& result_;
};

/// Dense FLOPs a second at most that a launch's pipe could do at the highest clock that the chip is known to reach.
double most_flops(const KernelLaunch& launch, const Gpu& gpu, bool roofline) {
  const MathRates& r = gpu.sm.rates;
  if (!launch.on_tensor_cores())
    return 2.0 * r.fp32 * gpu.sm.count * std::max(gpu.clock.boost, gpu.clock.sustained).value();
  double rate = launch.type == DType::bf16 ? r.tensor_bf16 : launch.type == DType::fp16 ? r.tensor_fp16 : r.tensor_tf32;
  if (const auto* product = std::get_if<GemmWork>(&launch.work)) {
    if (product->sparse != SparseOperand::none) rate *= r.sparsity_factor;
    if (product->scaling != Scaling::none) rate *= 2.0;  // fp8
  }
  const Hertz clock = roofline ? gpu.clock.boost_tensor : std::max(gpu.clock.boost_tensor, gpu.clock.tensor);
  return 2.0 * rate * gpu.sm.count * clock.value();
}

void check_kernels(const StepRun& run, const Scenario& scenario, const std::string& engine, double mfu,
                   Checks& checks) {
  const StepProgram& program = run.program();
  std::size_t i = 0;
  double done = 0.0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const KernelLaunch& launch = program.launches[action.index];
    const KernelTime& time = run.times()[i++];
    done += launch.flops;
    const double seconds = time.time.value();
    for (const double value : {seconds, time.dram_read_bytes, time.dram_write_bytes, time.l2_bytes, time.l2_hit_rate,
                               time.occupancy, time.waves, time.math_utilization}) {
      checks.finite(value, launch.name);
      checks.that(!(value < 0.0), "negative", launch.name, 1.0, fmt::format("{}", value));
    }
    if (!std::isfinite(seconds)) continue;
    const double bytes = time.dram_read_bytes + time.dram_write_bytes;
    checks.at_most(bytes, seconds * scenario.gpu.dram.bandwidth.value(), kPhysics, "above the DRAM's bandwidth",
                   launch.name, fmt::format("DRAM bytes in {:.4g} us", 1e6 * seconds));
    if (launch.flops > 0.0 && launch.pipe != Pipe::none)
      checks.at_most(launch.flops, seconds * most_flops(launch, scenario.gpu, engine == "roofline"), kPhysics,
                     "above the peak", launch.name, fmt::format("FLOPs in {:.4g} us", 1e6 * seconds));
    checks.share(time.l2_hit_rate, "no share: L2 hit rate", launch.name);
    checks.share(time.occupancy, "no share: occupancy", launch.name);
    checks.share(time.math_utilization, "no share: math utilization", launch.name);
  }
  // By its definition MFU counts scores in full, half of which a causal kernel leaves out.
  checks.at_most(mfu, std::max(1.0, program.trace->model_flops / done), kPhysics, "above the peak", "MFU", "MFU");
}

void check_step(const Prediction& p, const Scenario& scenario, Checks& checks) {
  const StepPrediction& step = p.step;
  for (const double value : {step.time.value(), step.low.value(), step.high.value(), step.host_time.value(),
                             step.gpu_busy.value(), step.mfu, step.power.value(), step.energy.energy.value(),
                             step.energy.low.value(), step.energy.high.value(), step.samples_per_s, step.tokens_per_s})
    checks.finite(value, "step");
  checks.that(step.time.value() > 0, "negative", "step", 1.0, "a step takes no time");
  checks.that(step.low <= step.time && step.time <= step.high, "range", "low <= time <= high", 1.0,
              fmt::format("{} <= {} <= {}", step.low.value(), step.time.value(), step.high.value()));
  checks.that(
      step.energy.low <= step.energy.energy && step.energy.energy <= step.energy.high, "range", "energy", 1.0,
      fmt::format("{} <= {} <= {}", step.energy.low.value(), step.energy.energy.value(), step.energy.high.value()));
  if (scenario.gpu.power.limit.value() > 0)
    checks.at_most(step.power.value(), scenario.gpu.power.limit.value(), kPhysics, "above the power limit", p.engine,
                   "W");
  for (const auto& [name, share] : {std::pair{"sm", step.utilization.sm},
                                    {"tensor", step.utilization.tensor},
                                    {"dram", step.utilization.dram},
                                    {"kernel_active", step.utilization.kernel_active},
                                    {"sm_utilization", step.sm_utilization},
                                    {"kernel_active_fraction", step.kernel_active_fraction}})
    checks.share(share, "no share: utilization", name);
  double classes = p.idle.value(), limiters = 0, kernels = p.idle.value();
  for (const Seconds time : p.time_by_class) classes += time.value();
  for (const Seconds time : p.limited_by) limiters += time.value();
  for (const KernelGroup& group : p.kernels) kernels += group.time.value();
  if (step.gpu_busy <= step.time) {
    checks.equal(classes, step.time.value(), "time_by_class", "classes and idle");
    checks.equal(limiters, step.time.value(), "limited_by", "limiters");
    checks.equal(kernels, step.time.value(), "kernels", "kernels and idle");
  }
  checks.equal(step.latency.total().value(), step.time.value(), "latency", "math + memory - overlapped + latency");
}

void check_memory(const MemoryPrediction& m, Checks& checks) {
  std::int64_t sum = 0;
  for (const std::int64_t bytes : m.at_peak) {
    checks.that(bytes >= 0, "negative", "memory", 1.0, fmt::format("{}", bytes));
    sum += bytes;
  }
  checks.equal(static_cast<double>(sum), static_cast<double>(m.peak_allocated), "memory", "categories");
  checks.that(m.peak_allocated <= m.peak_reserved, "range", "allocated <= reserved", 1.0,
              fmt::format("{} <= {}", m.peak_allocated, m.peak_reserved));
  checks.that(m.needed_low <= m.needed && m.needed <= m.needed_high, "range", "memory needed", 1.0,
              fmt::format("{} <= {} <= {}", m.needed_low, m.needed, m.needed_high));
  if (m.runs)
    checks.at_most(static_cast<double>(m.device_used), static_cast<double>(m.capacity), 0.0, "above the capacity",
                   "memory", "bytes");
}

/// Generated kernels pad and cast what they touch, and an expert's share of the weights is that of the mean.
void check_trace(const StepRun& run, Checks& checks) {
  const Scenario& scenario = run.scenario();
  const OpTrace& trace = run.trace();
  using namespace testing_support;
  std::string mistake = compiles(scenario) ? "" : first_use_of_nothing(trace);
  if (mistake.empty()) mistake = first_of_another_count(trace) + first_out_of_place(trace, scenario.model.layers);
  if (compiles(scenario) && mistake.empty()) mistake = first_inconsistency(trace);
  if (!compiles(scenario) && mistake.empty()) mistake = first_beyond_its_storage(trace);
  const CompositionHandle& composition = scenario.model.composition;
  const bool experts = composition.given() && composition->stack.experts > 0;
  if (!compiles(scenario) && !experts && mistake.empty()) mistake = first_of_another_size(trace);
  checks.that(mistake.empty(), "op trace", mistake.substr(0, mistake.find(' ')), 1.0, mistake);
}

/// A JSON null where a number stands in every other report is a NaN on its way out.
void check_json(const nlohmann::ordered_json& json, const std::string& path, Checks& checks) {
  if (json.is_number_float()) checks.finite(json.get<double>(), "json " + path);
  else if (json.is_object())
    for (const auto& [key, value] : json.items()) check_json(value, path + "." + key, checks);
  else if (json.is_array())
    for (const auto& value : json) check_json(value, path, checks);
}

}  // namespace

void check_answer(const StepRun& run, const Question& question, CaseResult& result) {
  Checks checks(question, result);
  const Scenario& scenario = run.scenario();
  const Prediction& p = run.prediction();
  if (!std::isfinite(p.step.time.value())) {
    checks.finite(p.step.time.value(), "step");
    return;
  }
  check_step(p, scenario, checks);
  check_trace(run, checks);
  check_memory(p.memory, checks);
  check_kernels(run, scenario, question.engine, p.step.mfu, checks);
  check_json(prediction_json(p), "", checks);
  const std::string text = prediction_text(scenario, p);
  static const std::regex no_number("(^|[\\s-])(nan|inf)(\\s|$)");
  checks.that(!std::regex_search(text, no_number), "NaN or infinity", "text", 1.0, "in the text");
}

CaseResult first_answered(const CaseOptions& options, int attempts, const std::function<Question()>& draw,
                          const std::function<void(const Question&, CaseResult&)>& ask) {
  CaseResult result;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Question question = draw();
    if (options.tell) fmt::print(stderr, "{}\n", question.command());
    try {
      ask(question, result);
      return result;
    } catch (const UserError& error) {
      result.refused.emplace_back(error.what());
    } catch (const std::exception& error) {
      Checks(question, result)
          .that(false, "not a message for people", std::string(error.what()).substr(0, 60), 1.0, error.what());
      return result;
    }
  }
  return result;
}

}  // namespace ridgeline::invariants
