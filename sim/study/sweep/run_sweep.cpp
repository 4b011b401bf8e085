#include "sim/study/sweep/run_sweep.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "sim/answer/peak.h"
#include "sim/answer/step_run.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/scenario/descriptions.h"
#include "sim/scenario/step_amount.h"
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/trace/read_recording.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kBlock = 16384;  // points whose scenarios are held at once
constexpr std::size_t kChunk = 6;      // points of one trace predicted by one task

struct HashTraceKey {
  std::size_t operator()(const TraceKey& key) const {
    const std::int64_t parts[] = {key.model.layers,
                                  key.model.hidden,
                                  key.model.vocabulary,
                                  key.training.micro_batch,
                                  key.training.sequence_length,
                                  key.training.gradient_accumulation,
                                  static_cast<std::int64_t>(key.training.precision),
                                  static_cast<std::int64_t>(key.training.optimizer.kind),
                                  static_cast<std::int64_t>(key.attention)};
    std::uint64_t hash = 0;
    for (const std::int64_t part : parts) hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
  }
};

SweepPoint point_of(std::uint64_t index, const StepRun& run) {
  const Scenario& s = run.scenario();
  const StepPrediction& step = run.step();
  const MemoryPrediction& memory = run.memory();
  SweepPoint point;
  point.index = index;
  point.fits = memory.fits;
  const auto set = [&](Metric metric, double value) { point.metrics[static_cast<std::size_t>(metric)] = value; };
  set(Metric::step_time, step.time.value());
  set(Metric::step_low, step.low.value());
  set(Metric::step_high, step.high.value());
  set(Metric::samples_per_s, step.samples_per_s);
  set(Metric::tokens_per_s, step.tokens_per_s);
  set(Metric::memory, static_cast<double>(memory.fits ? memory.device_used : memory.needed));
  set(Metric::allocated, static_cast<double>(memory.peak_allocated));
  set(Metric::mfu, step.mfu);
  set(Metric::gpu_active, step.kernel_active_fraction);
  set(Metric::power, step.power.value());
  set(Metric::energy, step.energy.energy.value());
  const double samples_per_s = step.samples_per_s > 0 ? step.samples_per_s : std::numeric_limits<double>::max();
  set(Metric::energy_per_sample, boards_of_step(s) * step.power.value() / samples_per_s);
  const double price = boards_of_step(s) * s.gpu.price_per_hour;
  set(Metric::price, price);
  set(Metric::price_per_million, price / 3600.0 / samples_per_s * 1e6);
  set(Metric::ridge, peak_of_precision(s.training.precision, s.gpu).value() / s.gpu.dram.bandwidth.value());
  return point;
}

/// Time and memory alone; of what does not fit, what it would need.
SweepPoint brief_point_of(std::uint64_t index, const StepRun& run) {
  const Scenario& s = run.scenario();
  const MemoryPrediction& memory = run.memory();
  SweepPoint point;
  point.index = index;
  point.fits = memory.fits;
  const auto set = [&](Metric metric, double value) { point.metrics[static_cast<std::size_t>(metric)] = value; };
  set(Metric::memory, static_cast<double>(memory.fits ? memory.device_used : memory.needed));
  set(Metric::allocated, static_cast<double>(memory.peak_allocated));
  set(Metric::price, boards_of_step(s) * s.gpu.price_per_hour);
  if (!memory.fits) return point;
  const double seconds = run.step_beside(s.host).value();  // nobody asks when which kernel runs
  const StepAmount amount = amount_of_step(s);
  set(Metric::step_time, seconds);
  set(Metric::samples_per_s, amount.samples / seconds);
  set(Metric::tokens_per_s, amount.tokens / seconds);
  return point;
}

bool asks_for_memory(const Sweep& sweep) {
  const auto of_memory = [](Metric metric) { return metric == Metric::memory || metric == Metric::allocated; };
  return std::any_of(sweep.constraints.begin(), sweep.constraints.end(),
                     [&](const Constraint& c) { return of_memory(c.metric); }) ||
         std::any_of(sweep.goal.of.begin(), sweep.goal.of.end(), of_memory);
}

class Runner {
 public:
  /// Each thread works on one trace; some are begun and not yet done with.
  Runner(const Sweep& sweep, const SweepRunOptions& options, int threads)
      : sweep_(sweep),
        options_(options),
        own_session_({.traces = static_cast<std::size_t>(threads) + 4}),
        session_(options.session != nullptr ? *options.session : own_session_) {}

  /// Results of one block, by place in `indices`; those left out stay empty.
  std::vector<std::optional<SweepPoint>> run(std::span<const std::uint64_t> indices) {
    const std::size_t n = indices.size();
    indices_ = indices;
    scenarios_.assign(n, {});
    results_.assign(n, {});
    const auto read = with_same_budget([&](const auto& range) {
      for (std::size_t i = range.begin(); i != range.end(); ++i) {
        if (!stopped()) load(i);
      }
    });
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, n, 16), read);
    report_errors();
    make_chunks();
    tbb::parallel_for(std::size_t{0}, chunks_.size(), with_same_budget([&](std::size_t i) {
                        if (!stopped()) predict_chunk(chunks_[i]);
                      }));
    return std::move(results_);
  }

 private:
  using Points = std::vector<std::size_t>;  ///< of the block

  [[nodiscard]] bool stopped() const {
    return is_stopped() || (options_.stop && options_.stop->load(std::memory_order_relaxed));
  }

  void fail(std::size_t i, const char* why) {
    SweepPoint point;
    point.index = indices_[i];
    point.error = *why ? why : "cannot run";
    results_[i] = std::move(point);
  }

  void load(std::size_t i) {
    try {
      scenarios_[i] = scenario_of(sweep_, sweep_.values_of(indices_[i]), session_.descriptions(), sheets_);
    } catch (const UserError& error) {
      fail(i, error.what());
    }
  }

  void report_errors() {
    if (!options_.on_points) return;
    std::vector<SweepPoint> failed;
    for (const auto& result : results_)
      if (result) failed.push_back(*result);
    if (!failed.empty()) options_.on_points(failed);
  }

  /// Points of one trace stand together, in the order of the first of them: the session then makes it once.
  void make_chunks() {
    groups_.clear();
    chunks_.clear();
    std::unordered_map<TraceKey, Points*, HashTraceKey> known;
    for (std::size_t i = 0; i < scenarios_.size(); ++i) {
      if (results_[i] || !scenarios_[i].gpu) continue;
      const Scenario& s = scenarios_[i].scenario;
      if (s.recorded) {  // made ready for each GPU anew
        groups_.emplace_back().push_back(i);
        continue;
      }
      try {
        Points*& group = known[trace_key_of(s)];
        if (!group) group = &groups_.emplace_back();
        group->push_back(i);
      } catch (const UserError& error) {
        fail(i, error.what());
        if (options_.on_points) options_.on_points({&*results_[i], 1});
      }
    }
    for (Points& group : groups_) {
      // Neighbours in a chunk have the same GPU where they can.
      std::stable_sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) {
        return scenarios_[a].scenario.gpu.name < scenarios_[b].scenario.gpu.name;
      });
      const std::span<const std::size_t> points(group);
      for (std::size_t begin = 0; begin < points.size(); begin += kChunk)
        chunks_.push_back(points.subspan(begin, std::min(kChunk, points.size() - begin)));
    }
  }

  void predict_chunk(std::span<const std::size_t> points) {
    std::vector<SweepPoint> done;
    for (const std::size_t i : points) {
      if (stopped()) break;
      predict_one(i);
      if (results_[i]) done.push_back(*results_[i]);
    }
    if (!options_.on_points || done.empty()) return;
    const std::lock_guard lock(mutex_);
    options_.on_points(done);
  }

  void predict_one(std::size_t i) {
    try {
      results_[i] = evaluated([&] {
        const StepRun run(session_, scenarios_[i].scenario, sweep_.engine);
        const Scenario& s = run.scenario();
        if (s.recorded && run.memory().source == MemorySource::unknown && asks_for_memory(sweep_))
          throw UserError(fmt::format("{} says nothing of memory, which the sweep asks for", s.recorded->file->path()));
        return sweep_.brief ? brief_point_of(indices_[i], run) : point_of(indices_[i], run);
      });
    } catch (const UserError& error) {
      fail(i, error.what());
    } catch (const Cancelled&) {  // left out, as those that were not begun
    }
    scenarios_[i] = {};
  }

  const Sweep& sweep_;
  const SweepRunOptions& options_;
  Session own_session_;
  Session& session_;
  Remembered<HardwareSheet> sheets_;
  std::span<const std::uint64_t> indices_;
  std::vector<SharedScenario> scenarios_;
  std::vector<std::optional<SweepPoint>> results_;
  std::deque<Points> groups_;
  std::vector<std::span<const std::size_t>> chunks_;
  std::mutex mutex_;
};

}  // namespace

std::vector<SweepPoint> run_sweep(const Sweep& sweep, std::span<const std::uint64_t> indices,
                                  const SweepRunOptions& options) {
  const int threads = options.threads > 0 ? options.threads : tbb::info::default_concurrency();
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  std::vector<SweepPoint> points;
  points.reserve(indices.size());
  Runner runner(sweep, options, threads);
  for (std::size_t begin = 0; begin < indices.size(); begin += kBlock) {
    std::vector<std::optional<SweepPoint>> block;
    arena.execute(with_same_budget(
        [&] { block = runner.run(indices.subspan(begin, std::min(kBlock, indices.size() - begin))); }));
    for (auto& point : block)
      if (point) points.push_back(std::move(*point));
  }
  return points;
}

}  // namespace ridgeline
