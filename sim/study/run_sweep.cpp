#include "sim/study/run_sweep.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/attention_choice.h"
#include "sim/program/lowered_ops.h"
#include "sim/scenario/descriptions.h"
#include "sim/scenario/shared_prediction.h"
#include "sim/units/parse.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kBlock = 16384;        // points whose scenarios are held at once
constexpr std::size_t kChunk = 6;            // points of one trace predicted by one task
constexpr std::size_t kMostRemembered = 64;  // GPUs whose lowered ops are kept

/// All that a trace depends on.
struct TraceKey {
  ModelDescription model;
  TrainingDescription training;
  AttentionChoice attention = AttentionChoice::eager;
  bool compile = false;
  int compiled_for_sms = 0;
  const Software* software = nullptr;
  bool operator==(const TraceKey&) const = default;
};
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

/// What the points of one trace share. The trace is made by whoever comes first and dropped after the last.
struct TraceGroup {
  std::vector<std::size_t> points;  ///< of the block
  std::atomic<std::size_t> chunks_left{0};
  std::once_flag made;
  std::optional<OpTrace> trace;
  std::string error;
  std::mutex mutex;
  struct Allocations {
    std::uint64_t hash;
    AllocatorSettings settings;
    std::shared_ptr<const RoomyMemory> memory;
  };
  std::deque<Allocations> allocations;
};

/// Lowered ops by GPU and software; those asked for longest ago are dropped.
class LoweredByGpu {
 public:
  std::shared_ptr<LoweredOps> of(const SharedScenario& s) {
    const std::lock_guard lock(mutex_);
    const Key key{s.gpu.get(), s.software.get()};
    Entry& entry = entries_[key];
    if (!entry.ops) entry.ops = std::make_shared<LoweredOps>(s.gpu, s.software);
    entry.used = ++clock_;
    std::shared_ptr<LoweredOps> ops = entry.ops;
    if (entries_.size() > kMostRemembered)
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    return ops;
  }

 private:
  using Key = std::pair<const Gpu*, const Software*>;
  struct Entry {
    std::shared_ptr<LoweredOps> ops;
    std::uint64_t used = 0;
  };
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::uint64_t clock_ = 0;
};

std::string hardware_of(const Sweep& sweep, const std::vector<config::Override>& overrides) {
  std::string name;
  if (const config::Node* node = sweep.scenario.find("hardware")) name = node->scalar;
  for (const config::Override& change : overrides)
    if (change.key == "hardware") name = change.value;
  return name;
}

/// "4.8 TB/s" times 2 is "9.6 TB/s", from the rows of a hardware sheet.
config::Override multiplied(const config::Override& change, double factor, const std::string& hardware,
                            Remembered<HardwareSheet>& sheets) {
  const auto sheet = sheets.get(hardware, [&] { return load_hardware_sheet(hardware); });
  const std::string key = change.key.substr(std::string_view("hardware.").size());
  const auto row =
      std::find_if(sheet->values.begin(), sheet->values.end(), [&](const SheetRow& r) { return r.key == key; });
  const config::Origin origin{std::make_shared<const std::string>(change.origin), 0, 0};
  if (row == sheet->values.end())
    throw config::ConfigError(origin, change.key, fmt::format("{} does not say how much this is", hardware));
  const auto number = parse_measure(row->value);
  if (!number)
    throw config::ConfigError(origin, change.key, fmt::format("is no number in {}: {}", hardware, row->value));
  config::Override result = change;
  result.value = fmt::format("{}{}{}", number->value * factor, row->unit.empty() ? "" : " ", row->unit);
  return result;
}

SharedScenario scenario_of(const Sweep& sweep, const std::vector<std::size_t>& values, Descriptions& descriptions,
                           Remembered<HardwareSheet>& sheets) {
  std::vector<config::Override> overrides;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (const config::Override& change : sweep.axes[i].values[values[i]].overrides) overrides.push_back(change);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const AxisValue& value = sweep.axes[i].values[values[i]];
    if (value.factor <= 0) continue;
    const std::string hardware = hardware_of(sweep, overrides);
    for (config::Override& change : overrides)
      if (change.key == value.overrides.front().key && change.value.empty())
        change = multiplied(change, value.factor, hardware, sheets);
  }
  // A whole description first, then changes of its parts, whatever the order of the axes.
  std::stable_sort(overrides.begin(), overrides.end(), [](const config::Override& a, const config::Override& b) {
    return std::count(a.key.begin(), a.key.end(), '.') < std::count(b.key.begin(), b.key.end(), '.');
  });
  return load_shared_scenario(sweep.scenario, overrides, descriptions);
}

SweepPoint point_of(std::uint64_t index, const Scenario& s, const Prediction& p, const MemoryPrediction& memory) {
  SweepPoint point;
  point.index = index;
  point.fits = memory.fits;
  const StepPrediction& step = p.step;
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
  set(Metric::energy_per_sample, step.power.value() / step.samples_per_s);
  set(Metric::price, s.gpu.price_per_hour);
  set(Metric::price_per_million, s.gpu.price_per_hour / 3600.0 / step.samples_per_s * 1e6);
  set(Metric::ridge, peak_of_precision(s.training.precision, s.gpu).value() / s.gpu.dram.bandwidth.value());
  return point;
}

class Runner {
 public:
  Runner(const Sweep& sweep, const SweepRunOptions& options) : sweep_(sweep), options_(options) {}

  /// Results of one block, by place in `indices`; those left out stay empty.
  std::vector<std::optional<SweepPoint>> run(std::span<const std::uint64_t> indices) {
    const std::size_t n = indices.size();
    indices_ = indices;
    scenarios_.assign(n, {});
    results_.assign(n, {});
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, n, 16), [&](const auto& range) {
      for (std::size_t i = range.begin(); i != range.end(); ++i) {
        if (!stopped()) load(i);
      }
    });
    report_errors();
    make_chunks();
    tbb::parallel_for(std::size_t{0}, chunks_.size(), [&](std::size_t i) {
      if (!stopped()) predict_chunk(chunks_[i]);
      if (--chunks_[i].group->chunks_left == 0) chunks_[i].group->trace.reset();
    });
    return std::move(results_);
  }

 private:
  struct Chunk {
    TraceGroup* group;
    std::span<const std::size_t> points;
  };

  [[nodiscard]] bool stopped() const { return options_.stop && options_.stop->load(std::memory_order_relaxed); }

  void fail(std::size_t i, const char* why) {
    SweepPoint point;
    point.index = indices_[i];
    point.error = *why ? why : "cannot run";
    results_[i] = std::move(point);
  }

  void load(std::size_t i) {
    try {
      scenarios_[i] = scenario_of(sweep_, sweep_.values_of(indices_[i]), descriptions_, sheets_);
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

  /// Groups in the order of their first points; chunks in the order of groups.
  void make_chunks() {
    groups_.clear();
    chunks_.clear();
    std::unordered_map<TraceKey, TraceGroup*, HashTraceKey> known;
    for (std::size_t i = 0; i < scenarios_.size(); ++i) {
      if (results_[i] || !scenarios_[i].gpu) continue;
      const Scenario& s = scenarios_[i].scenario;
      TraceKey key{s.model,
                   s.training,
                   AttentionChoice::eager,
                   s.compile,
                   s.compile ? s.gpu.sm.count : 0,
                   scenarios_[i].software.get()};
      try {
        key.attention = choose_attention(s.training, s.model, s.gpu, s.software);
      } catch (const UserError& error) {
        fail(i, error.what());
        if (options_.on_points) options_.on_points({&*results_[i], 1});
        continue;
      }
      TraceGroup*& group = known[std::move(key)];
      if (!group) group = &groups_.emplace_back();
      group->points.push_back(i);
    }
    for (TraceGroup& group : groups_) {
      // Neighbours in a chunk have the same GPU where they can.
      std::stable_sort(group.points.begin(), group.points.end(), [&](std::size_t a, std::size_t b) {
        return scenarios_[a].scenario.gpu.name < scenarios_[b].scenario.gpu.name;
      });
      const std::span<const std::size_t> points(group.points);
      for (std::size_t begin = 0; begin < points.size(); begin += kChunk)
        chunks_.push_back({&group, points.subspan(begin, std::min(kChunk, points.size() - begin))});
      group.chunks_left = (points.size() + kChunk - 1) / kChunk;
    }
  }

  void predict_chunk(const Chunk& chunk) {
    TraceGroup& group = *chunk.group;
    std::call_once(group.made, [&] {
      try {
        group.trace = trace_of(scenarios_[chunk.points.front()].scenario);
      } catch (const UserError& error) {
        group.error = error.what();
      }
    });
    std::vector<SweepPoint> done;
    for (const std::size_t i : chunk.points) {
      if (group.trace) predict_one(i, group);
      else fail(i, group.error.c_str());
      done.push_back(*results_[i]);
      scenarios_[i] = {};
    }
    if (!options_.on_points) return;
    const std::lock_guard lock(mutex_);
    options_.on_points(done);
  }

  void predict_one(std::size_t i, TraceGroup& group) {
    const Scenario& s = scenarios_[i].scenario;
    try {
      const StepProgram program = make_program(*group.trace, *lowered_.of(scenarios_[i]));
      const Prediction p = predict_time(program, s, sweep_.engine, Reasons::no);
      results_[i] = point_of(indices_[i], s, p, predict_memory(program, s, *memory_of(program, s, group)));
    } catch (const UserError& error) {
      fail(i, error.what());
    }
  }

  static std::shared_ptr<const RoomyMemory> memory_of(const StepProgram& program, const Scenario& s,
                                                      TraceGroup& group) {
    const std::uint64_t hash = hash_of_allocations(program);
    const auto find = [&]() -> std::shared_ptr<const RoomyMemory> {
      for (const auto& known : group.allocations)
        if (known.hash == hash && known.settings == s.allocator) return known.memory;
      return nullptr;
    };
    {
      const std::lock_guard lock(group.mutex);
      if (auto known = find()) return known;
    }
    auto made = std::make_shared<const RoomyMemory>(run_roomy_memory(program, s));
    const std::lock_guard lock(group.mutex);
    if (auto known = find()) return known;
    group.allocations.push_back({hash, s.allocator, made});
    return made;
  }

  const Sweep& sweep_;
  const SweepRunOptions& options_;
  Descriptions descriptions_;
  Remembered<HardwareSheet> sheets_;
  LoweredByGpu lowered_;
  std::span<const std::uint64_t> indices_;
  std::vector<SharedScenario> scenarios_;
  std::vector<std::optional<SweepPoint>> results_;
  std::deque<TraceGroup> groups_;
  std::vector<Chunk> chunks_;
  std::mutex mutex_;
};

}  // namespace

void check_axes(const Sweep& sweep) {
  Descriptions descriptions;
  Remembered<HardwareSheet> sheets;
  std::vector<std::size_t> first(sweep.axes.size(), 0);
  for (std::size_t axis = 0; axis < sweep.axes.size(); ++axis) {
    std::optional<std::string> mistake;
    const std::size_t values = sweep.axes[axis].values.size();
    for (std::size_t i = 0; i < values; ++i) {
      std::vector<std::size_t> chosen = first;
      chosen[axis] = i;
      try {
        scenario_of(sweep, chosen, descriptions, sheets);
        mistake.reset();
        first[axis] = i;  // what the following axes are tried with
        break;
      } catch (const UserError& error) {
        if (!mistake) mistake = error.what();
      }
    }
    if (mistake) throw UserError(*mistake);
  }
  const SharedScenario any = scenario_of(sweep, first, descriptions, sheets);
  try {
    make_engine(sweep.engine, *any.gpu);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", sweep.file, error.what()));
  }
}

std::vector<SweepPoint> run_sweep(const Sweep& sweep, std::span<const std::uint64_t> indices,
                                  const SweepRunOptions& options) {
  const int threads = options.threads > 0 ? options.threads : tbb::info::default_concurrency();
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  std::vector<SweepPoint> points;
  points.reserve(indices.size());
  Runner runner(sweep, options);
  for (std::size_t begin = 0; begin < indices.size(); begin += kBlock) {
    std::vector<std::optional<SweepPoint>> block;
    arena.execute([&] { block = runner.run(indices.subspan(begin, std::min(kBlock, indices.size() - begin))); });
    for (auto& point : block)
      if (point) points.push_back(std::move(*point));
  }
  return points;
}

}  // namespace ridgeline
