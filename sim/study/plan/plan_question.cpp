#include "sim/study/plan/plan_question.h"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <vector>

#include "sim/hierarchy/make_engine.h"
#include "sim/study/plan/plan_base.h"
#include "sim/study/plan/plan_bounds.h"
#include "sim/study/plan/plan_space.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// Micro-steps that several candidates have in common, each timed once.
class MicroSteps {
 public:
  /// Entry of the scenario's own.
  std::size_t place_of(const Scenario& scenario) {
    Scenario own = micro_step_of(scenario);
    const auto same = [&](const Scenario& known) {
      return known.training == own.training && known.cluster == own.cluster;
    };
    const auto known = std::find_if(scenarios_.begin(), scenarios_.end(), same);
    if (known != scenarios_.end()) return static_cast<std::size_t>(known - scenarios_.begin());
    scenarios_.push_back(std::move(own));
    return scenarios_.size() - 1;
  }
  std::vector<MicroStep> times(Session& session, const std::string& engine) const {
    std::vector<MicroStep> result(scenarios_.size());
    tbb::parallel_for(std::size_t{0}, scenarios_.size(), with_same_budget([&](std::size_t i) {
                        keep_budget("timing the micro-batches of a plan");
                        result[i] = evaluated([&] { return time_micro_step(session, scenarios_[i], engine); });
                      }));
    return result;
  }

 private:
  std::vector<Scenario> scenarios_;
};

/// What the reader makes of each candidate; nothing of those that it refuses.
std::vector<std::optional<TrainingDescription>> readings(const PlanBase& base, std::vector<PlanCandidate>& candidates,
                                                         Descriptions& descriptions) {
  std::vector<std::optional<TrainingDescription>> result(candidates.size());
  const auto read = with_same_budget([&](std::size_t i) {
    keep_budget("reading the configurations of a plan");
    PlanCandidate& candidate = candidates[i];
    if (!candidate.refused.empty()) return;
    try {
      result[i] = load_shared_scenario(base.tree, all_changes(base, candidate), descriptions).scenario.training;
    } catch (const config::ConfigError& error) {
      candidate.refused_key = error.key();
      candidate.refused = error.message();
    } catch (const UserError& error) {
      candidate.refused = error.what();
    }
  });
  tbb::parallel_for(std::size_t{0}, candidates.size(), read);
  return result;
}

void find_bounds(const PlanBase& base, const PlanRequest& request, std::vector<PlanCandidate>& candidates,
                 Session& session) {
  const auto trainings = readings(base, candidates, session.descriptions());
  std::vector<Scenario> on;  // of each number of GPUs
  std::vector<std::int64_t> gpus;
  const auto scenario_of = [&](std::size_t i) {
    const auto found = std::find(gpus.begin(), gpus.end(), candidates[i].gpus);
    Scenario scenario = base.scenario;
    if (found == gpus.end()) {
      scenario.cluster->nodes = static_cast<int>(nodes_for(base.cluster, candidates[i].gpus));
      gpus.push_back(candidates[i].gpus);
      on.push_back(scenario);
    } else {
      scenario.cluster = on[static_cast<std::size_t>(found - gpus.begin())].cluster;
    }
    scenario.training = *trainings[i];
    return scenario;
  };
  const auto capacity = static_cast<std::int64_t>(base.scenario.gpu.dram.capacity.value());
  MicroSteps micro_steps;
  std::vector<std::optional<std::size_t>> place(candidates.size());
  Scenario scenario = base.scenario;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    keep_budget("comparing the configurations of a plan");
    if (!trainings[i]) continue;
    scenario = scenario_of(i);
    candidates[i].least_memory = least_memory(scenario, {});
    if (candidates[i].least_memory <= capacity) place[i] = micro_steps.place_of(scenario);
  }
  const std::vector<MicroStep> times = micro_steps.times(session, request.engine);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    keep_budget("comparing the configurations of a plan");
    if (!trainings[i]) continue;
    const MicroStep micro_step = place[i] ? times[*place[i]] : MicroStep{};
    scenario = scenario_of(i);
    candidates[i].least_time = least_time(scenario, micro_step);
    candidates[i].least_memory = least_memory(scenario, micro_step);
  }
}

}  // namespace

PlanQuestion plan_question(const PlanRequest& request, Session& session, int threads) {
  const PlanBase base = plan_base(request, session.descriptions());
  make_engine(request.engine, base.scenario.gpu);  // an unknown name is a mistake
  PlanQuestion question;
  for (const std::int64_t gpus : request.gpus) {
    const std::vector<PlanCandidate> more = plan_space(base, gpus, session.descriptions());
    question.candidates.insert(question.candidates.end(), more.begin(), more.end());
  }
  {
    const int cores = threads > 0 ? threads : tbb::info::default_concurrency();
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(cores));
    tbb::task_arena(cores).execute(with_same_budget([&] { find_bounds(base, request, question.candidates, session); }));
  }
  question.title = base.scenario.title;
  question.cluster = base.cluster_name;
  question.assumed = base.assumed;
  question.batch = base.batch;
  question.capacity = static_cast<std::int64_t>(base.scenario.gpu.dram.capacity.value());
  question.hardware = base.scenario.gpu.name;
  Sweep& sweep = question.sweep;
  sweep.title = "plan of " + question.title;
  sweep.file = request.source.file.value_or("plan");
  sweep.scenario = base.tree;
  sweep.engine = request.engine;
  sweep.brief = true;
  SweepAxis& axis = sweep.axes.emplace_back();
  axis.name = "plan";
  for (std::size_t i = 0; i < question.candidates.size(); ++i)
    axis.values.push_back({fmt::to_string(i), all_changes(base, question.candidates[i]), 0});
  sweep.fingerprint = fingerprint_of(sweep);
  return question;
}

}  // namespace ridgeline
