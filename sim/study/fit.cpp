#include "sim/study/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/answer/changes.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

class Search {
 public:
  Search(Session& session, const Scenario& scenario)
      : session_(session),
        scenario_(scenario),
        batch_(scenario.training.inference ? scenario.training.inference->sequences
                                           : scenario.training.micro_batch * scenario.training.gradient_accumulation),
        // The reader takes no more tokens in one forward pass.
        most_(std::clamp<std::int64_t>(1'000'000'000 / scenario.training.sequence_length, 1, 1 << 20)) {}

  /// Largest micro-batch that fits, 0 if none does.
  std::int64_t run() {
    const std::int64_t whole = std::min(batch_, most_);
    // Above the batch of the scenario there is nothing to accumulate; if that batch fits, the answer is there.
    std::int64_t found = run_of(whole).runs ? between(whole, most_) : (whole > 1 ? between_from_one(whole) : 0);
    return found;
  }

  [[nodiscard]] std::int64_t accumulation_of(std::int64_t micro_batch) const {
    if (scenario_.training.inference) return 1;  // more calls, one after the other
    if (pipelined()) return scenario_.training.gradient_accumulation;
    return std::max<std::int64_t>(1, (batch_ + micro_batch - 1) / micro_batch);
  }
  [[nodiscard]] Scenario scenario_of(std::int64_t micro_batch, std::int64_t accumulation) const {
    Scenario result = scenario_;
    if (auto& inference = result.training.inference) {
      inference->sequences = micro_batch;
      result.training.micro_batch = micro_batch * inference->beams;
      return result;
    }
    result.training.micro_batch = micro_batch;
    result.training.gradient_accumulation = accumulation;
    return result;
  }
  /// Remembered: a batch is run once. From the second micro-batch on every further one allocates the same.
  const MemoryPrediction& run_of(std::int64_t micro_batch) {
    const auto found = runs_.find(micro_batch);
    if (found != runs_.end()) return found->second;
    const std::int64_t all = accumulation_of(micro_batch),
                       accumulation = pipelined() ? all : std::min<std::int64_t>(all, 2);
    MemoryPrediction memory = StepRun(session_, scenario_of(micro_batch, accumulation), "analytic").memory();
    trials_.push_back({micro_batch, accumulation_of(micro_batch), memory.runs, memory.needed});
    return runs_.emplace(micro_batch, std::move(memory)).first->second;
  }

  /// Its schedule needs its micro-batches, and it holds several at once: their number stays.
  [[nodiscard]] bool pipelined() const { return scenario_.training.parallel.pipelined(); }
  [[nodiscard]] std::int64_t batch() const { return batch_; }
  [[nodiscard]] std::int64_t most() const { return most_; }
  std::vector<FitTrial> take_trials() { return std::move(trials_); }
  [[nodiscard]] bool monotone() const { return monotone_; }

 private:
  std::int64_t between_from_one(std::int64_t failing) { return run_of(1).runs ? between(1, failing - 1) : 0; }

  /// Largest of (low …, last] that fits; `low` does.
  std::int64_t between(std::int64_t low, std::int64_t last) {
    low = search(low, last);
    // Fragmentation can make a batch fail and the next one fit again.
    constexpr std::int64_t kLookAhead = 3;
    for (std::int64_t next = low + 2; next <= std::min(low + kLookAhead, last); ++next) {
      if (!run_of(next).runs) continue;
      monotone_ = false;
      low = search(next, last);
      next = low + 1;
    }
    return low;
  }

  std::int64_t search(std::int64_t low, std::int64_t last) {
    std::int64_t high = last + 1;  // nothing is known of it
    bool failed_at_high = false;
    std::int64_t before = 0;  // a smaller batch that fits, for the slope
    for (int round = 0; high - low > 1; ++round) {
      std::int64_t guess = low + (high - low) / 2;
      const bool interpolate = round % 3 != 2;  // every third step halves the interval, whatever the slope says
      if (interpolate && failed_at_high) guess = reach(low, high);
      else if (interpolate && before > 0) guess = reach(before, low) + 1;
      else if (!failed_at_high) guess = std::min(2 * low, guess);
      guess = std::clamp(guess, low + 1, high - 1);
      if (run_of(guess).runs) {
        before = low;
        low = guess;
      } else {
        high = guess;
        failed_at_high = true;
      }
    }
    return low;
  }

  /// Where the line through the memory of two batches reaches the capacity.
  std::int64_t reach(std::int64_t a, std::int64_t b) {
    const auto at_a = static_cast<double>(run_of(a).needed), at_b = static_cast<double>(run_of(b).needed);
    const double slope = std::max((at_b - at_a) / static_cast<double>(b - a), 1.0);
    const double guess = static_cast<double>(a) + (static_cast<double>(run_of(a).capacity) - at_a) / slope;
    return static_cast<std::int64_t>(std::clamp(guess, 1.0, static_cast<double>(most_)));
  }

  Session& session_;
  const Scenario& scenario_;
  std::int64_t batch_, most_;
  std::map<std::int64_t, MemoryPrediction> runs_;
  std::vector<FitTrial> trials_;
  bool monotone_ = true;
};

}  // namespace

FitResult fit_batch(Session& session, const Scenario& scenario, std::string_view engine, bool would_fit) {
  if (scenario.recorded)
    throw UserError(fmt::format("{}: a recorded step has the batch it was recorded with; fit needs a model",
                                scenario.recorded->file->path()));
  Search search(session, scenario);
  FitResult result;
  result.scenario = scenario.title;
  result.hardware = scenario.gpu.name;
  result.capacity = static_cast<std::int64_t>(scenario.gpu.dram.capacity.value());
  result.asked_batch = search.batch();
  std::int64_t micro_batch = search.run();
  const auto predicted = [&](std::int64_t size) {
    const std::int64_t accumulation = search.accumulation_of(size);
    return FittingBatch{size, accumulation,
                        StepRun(session, search.scenario_of(size, accumulation), engine).prediction()};
  };
  for (; micro_batch > 0; --micro_batch) {
    result.largest = predicted(micro_batch);
    if (result.largest->prediction.memory.runs) break;
    result.largest.reset();  // the later micro-batches took more than the second
  }
  if (result.largest) {
    result.keeps_batch = micro_batch * result.largest->gradient_accumulation == result.asked_batch;
    if (!result.keeps_batch && micro_batch < result.asked_batch) {
      for (std::int64_t size = micro_batch; size > 0 && !result.same_batch; --size) {
        if (result.asked_batch % size != 0) continue;
        FittingBatch candidate = predicted(size);
        if (candidate.prediction.memory.runs) result.same_batch = std::move(candidate);
      }
    }
  } else if (would_fit) {
    result.would_fit = changes_that_make_it_fit(session, search.scenario_of(1, search.accumulation_of(1)));
  }
  if (micro_batch < search.most()) {
    result.failing_micro_batch = micro_batch + 1;
    result.failing = search.run_of(micro_batch + 1);
    if (result.failing->runs) result.failing.reset();
  }
  if (result.largest) {
    result.sure_micro_batch = micro_batch;
    while (result.sure_micro_batch > 0 && !search.run_of(result.sure_micro_batch).fits) --result.sure_micro_batch;
  }
  result.monotone = search.monotone();
  result.trials = search.take_trials();
  return result;
}

}  // namespace ridgeline
