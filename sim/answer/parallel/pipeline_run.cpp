#include "sim/answer/parallel/pipeline_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/step_run.h"
#include "sim/units/budget.h"
#include "sim/workload/families/family.h"

namespace ridgeline {

using parallel::RankActions;

namespace {

constexpr std::int32_t kMostClasses = 8;

/// Ranks of one class have this in common: kinds of blocks of each part, what is before and behind them, and the order
/// in which they run them.
struct ClassKey {
  std::vector<std::tuple<std::vector<std::int64_t>, bool, bool>> parts;
  std::vector<std::pair<parallel::StageAction::Kind, std::int32_t>> order;
  bool operator==(const ClassKey&) const = default;
};

std::string name_of_ranks(const std::vector<std::size_t>& ranks, std::size_t all) {
  if (ranks.size() > 1 && ranks.back() - ranks.front() + 1 > ranks.size())
    return fmt::format("{} of stages {} to {}", ranks.size(), ranks.front() + 1, ranks.back() + 1);
  if (ranks.size() > 1) return fmt::format("stages {} to {}", ranks.front() + 1, ranks.back() + 1);
  if (ranks.front() == 0) return "first stage";
  if (ranks.front() + 1 == all) return "last stage";
  return fmt::format("stage {}", ranks.front() + 1);
}

}  // namespace

PipelineRun::PipelineRun(const StepRun& whole)
    : whole_(whole),
      shape_(parallel::shape_of(whole.scenario().training.parallel, whole.scenario().training.gradient_accumulation)),
      class_of_(static_cast<std::size_t>(shape_.ranks)) {
  make_classes();
}

PipelineRun::~PipelineRun() = default;

void PipelineRun::make_classes() {
  const Scenario& scenario = whole_.scenario();
  const std::vector<RankActions> actions =
      parallel::make_schedule(parallel::shape_of(scenario.training.parallel, parallel::shorten(shape_).micro_batches));
  std::vector<ClassKey> keys;
  for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
    const RankActions& own = actions[static_cast<std::size_t>(rank)];
    ParallelDescription parallel = scenario.training.parallel;
    parallel.pipeline_rank = rank;
    ClassKey key;
    for (const families::StagePart& part : families::parts_of(scenario.model, parallel))
      key.parts.emplace_back(families::kinds_of_blocks(scenario.model, part), part.embedding, part.head);
    if (shape_.ranks <= kMostClasses)
      for (const parallel::StageAction& action : own)
        if (action.computes()) key.order.emplace_back(action.kind, action.stage / shape_.ranks);
    const auto known = static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
    class_of_[static_cast<std::size_t>(rank)] = known;
    if (known == keys.size()) {
      keys.push_back(std::move(key));
      classes_.emplace_back();
    }
    Class& of = classes_[known];
    of.ranks.push_back(static_cast<std::size_t>(rank));
    // The one that holds most micro-batches at once; of equal ones the last, which puts most gradients of weights off.
    if (most_in_flight(own) >= of.most) {
      of.most = most_in_flight(own);
      of.traced = static_cast<std::size_t>(rank);
    }
  }
  for (Class& one : classes_) {
    one.name = name_of_ranks(one.ranks, static_cast<std::size_t>(shape_.ranks));
    Scenario own = scenario;
    own.training.parallel.pipeline_rank = static_cast<std::int64_t>(one.traced);
    one.run = std::make_unique<StepRun>(whole_.session(), std::move(own), whole_.engine());
  }
}

std::size_t PipelineRun::busiest() const {
  return busiest_.get([&] {
    double most = -1.0;
    std::size_t found = 0;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      double busy = 0.0;
      for (const KernelTime& time : classes_[i].run->times()) busy += time.time.value();
      if (busy > most) most = busy, found = i;
    }
    return found;
  });
}

const PipelineTimeline& PipelineRun::timeline() const {
  return timeline_.get([&] { return play(whole_.scenario().host, 1.0); });
}

PipelineTimeline PipelineRun::with_every_rank() const { return play(whole_.scenario().host, 1.0, true); }

PipelineTimeline PipelineRun::play(const Host& host, double kernel_factor, bool every_rank) const {
  keep_budget("the prediction of a pipeline");
  const Scenario& scenario = whole_.scenario();
  std::vector<std::vector<KernelTime>> scaled;
  std::vector<PipelineClass> classes;
  for (const Class& one : classes_)
    scaled.push_back(kernel_factor == 1.0 ? one.run->times() : one.run->scaled_times(kernel_factor));
  std::deque<StepContention> contentions;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const StepRun& run = *classes_[i].run;
    classes.push_back({&run.program(), scaled[i], classes_[i].traced, nullptr});
    // Ranks that share layers or sequences exchange beside products.
    if (scenario.training.parallel.tensor > 1 || scenario.training.parallel.context > 1)
      classes.back().contention = &contentions.emplace_back(run.program(), run.times(), run.scenario());
  }
  PipelineOptions options;
  options.every_rank = every_rank;
  const std::int64_t bytes = bytes_between_stages(scenario);
  options.transfer_time = [&, bytes](std::size_t from, std::size_t to) {
    const CollectiveTime time = time_between_stages(scenario, from, to, bytes);
    return kernel_factor == 1.0 ? time.time : kernel_factor < 1.0 ? time.low : time.high;
  };
  return run_pipeline(classes, class_of_, shape_, scenario.gpu, host, options, classes_[busiest()].traced);
}

Seconds PipelineRun::step_with(const Host& host, double kernel_factor) const { return play(host, kernel_factor).step; }

const StepRun& PipelineRun::fullest() const {
  const auto needed = [](const Class& one) { return one.run->memory().needed_high; };
  return *std::max_element(classes_.begin(), classes_.end(), [&](const Class& a, const Class& b) {
            return needed(a) < needed(b);
          })->run;
}

std::vector<RankClass> PipelineRun::rank_classes() const {
  std::vector<RankClass> result;
  const ParallelDescription& how = whole_.scenario().training.parallel;
  const std::int64_t copies = how.gradient_ranks() * how.tensor;
  for (const Class& one : classes_) {
    Seconds slowest;
    for (const std::size_t rank : one.ranks) slowest = std::max(slowest, timeline().ranks[rank].step);
    result.push_back({one.name, static_cast<std::int64_t>(one.ranks.size()) * copies, slowest, one.run->memory(),
                      communicator_bytes(one.run->scenario()), timeline().ranks[one.traced].busy,
                      timeline().ranks[one.traced].bubble});
  }
  return result;
}

}  // namespace ridgeline
