#include "sim/study/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

std::array<ClassWork, kKernelClasses> work_by_class(const Prediction& p) {
  std::array<ClassWork, kKernelClasses> classes;
  for (const KernelGroup& group : p.kernels) {  // longest first
    ClassWork& work = classes[static_cast<std::size_t>(group.kernel_class)];
    if (work.kernels == 0) work.main_kernel = group.name;
    work.time += group.time;
    work.kernels += group.count;
    work.flops += group.flops;
    if (group.on_tensor_cores) work.tensor_flops += group.flops;
    work.bytes += group.read_bytes + group.written_bytes;
    work.dram_bytes += group.dram_bytes;
    work.score_bytes += group.score_bytes;
    work.limited_by[static_cast<std::size_t>(group.limiter)] += group.time;
    work.ops[group.op] += group.count;
  }
  return classes;
}

/// What limits most of a class, as an amount of work.
double amount(const ClassWork& work, Limiter limiter) {
  switch (limiter) {
    case Limiter::compute:
    case Limiter::power:
    case Limiter::shared_memory: return work.flops;
    case Limiter::dram: return work.dram_bytes;
    case Limiter::l2: return work.bytes;
    case Limiter::latency:
    case Limiter::launch:
    case Limiter::link: break;
  }
  return static_cast<double>(work.kernels);
}

ClassDifference class_difference(KernelClass kernel_class, const ClassWork& before, const ClassWork& after) {
  ClassDifference d{kernel_class, before, after, after.time - before.time, {}, {}};
  const double a = before.time.value(), b = after.time.value();
  const Limiter limiter = (a >= b ? before : after).limiter();
  const double work_a = amount(before, limiter), work_b = amount(after, limiter);
  if (a <= 0 || b <= 0 || work_a <= 0 || work_b <= 0) {
    d.from_work = d.difference;  // it came or went
    return d;
  }
  const double mean = std::abs(b - a) > 1e-12 * a ? (b - a) / std::log(b / a) : a;
  d.from_work = Seconds{mean * std::log(work_b / work_a)};
  d.from_rate = d.difference - d.from_work;
  return d;
}

}  // namespace

Limiter ClassWork::limiter() const {
  return static_cast<Limiter>(std::max_element(limited_by.begin(), limited_by.end()) - limited_by.begin());
}

ComparedScenario compared_side(Session& session, const Scenario& scenario, const std::string& label,
                               std::string_view engine) {
  auto run = std::make_shared<const StepRun>(session, scenario, engine);
  Prediction prediction = run->prediction();
  ComparedScenario side{label, std::move(run), std::move(prediction), true, {}};
  side.fits = side.prediction.memory.fits;
  if (!side.fits) {
    Scenario roomy = scenario;
    roomy.gpu.dram.capacity = Bytes{1e18};
    const std::int64_t capacity = side.prediction.memory.capacity;
    side.prediction.memory = StepRun(session, std::move(roomy), engine).memory();
    side.prediction.memory.capacity = capacity;
    side.prediction.memory.fits = false;
  }
  side.classes = work_by_class(side.prediction);
  return side;
}

Difference difference_of(const ComparedScenario& before, const ComparedScenario& after) {
  const Prediction &a = before.prediction, &b = after.prediction;
  Difference d;
  d.time = b.step.time - a.step.time;
  for (std::size_t i = 0; i < kKernelClasses; ++i) {
    if (before.classes[i].kernels + after.classes[i].kernels == 0) continue;
    d.classes.push_back(class_difference(static_cast<KernelClass>(i), before.classes[i], after.classes[i]));
  }
  ClassDifference waiting;
  waiting.before.time = a.idle;
  waiting.after.time = b.idle;
  waiting.difference = b.idle - a.idle;
  d.classes.push_back(std::move(waiting));
  std::stable_sort(d.classes.begin(), d.classes.end(), [](const ClassDifference& x, const ClassDifference& y) {
    return std::abs(x.difference.value()) > std::abs(y.difference.value());
  });

  d.memory = b.memory.device_used - a.memory.device_used;
  for (std::size_t i = 0; i < kCategories; ++i) d.parts.push_back({i, a.memory.at_peak[i], b.memory.at_peak[i]});
  d.parts.push_back({kCachedPart, a.memory.cached_unused, b.memory.cached_unused});
  d.parts.push_back({kContextPart, a.memory.context, b.memory.context});
  std::stable_sort(d.parts.begin(), d.parts.end(), [](const MemoryDifference& x, const MemoryDifference& y) {
    return std::abs(x.after - x.before) > std::abs(y.after - y.before);
  });
  return d;
}

Comparison compare(Session& session, std::span<const Scenario> scenarios, std::span<const std::string> labels,
                   std::string_view engine) {
  if (scenarios.size() < 2 || scenarios.size() > kMostSides)
    throw UserError(
        fmt::format("a comparison has two to {} sides, got {}: name another GPU or scenario, or a change (--with "
                    "training.precision=bf16)",
                    kMostSides, scenarios.size()));
  Comparison result;
  for (std::size_t i = 0; i < scenarios.size(); ++i)
    result.sides.push_back(compared_side(session, scenarios[i], labels[i], engine));
  for (std::size_t i = 1; i < result.sides.size(); ++i)
    result.differences.push_back(difference_of(result.sides.front(), result.sides[i]));
  return result;
}

}  // namespace ridgeline
