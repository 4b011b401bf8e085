#include "sim/study/plan/plan_answer.h"

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "sim/answer/step_run.h"
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kTriedWithMemory = 8;

class AnswerOfPlan {
 public:
  AnswerOfPlan(const PlanQuestion& question, const PlanSearch& search, Session& session)
      : question_(question), search_(search), session_(session) {}

  PlanAnswer make() {
    PlanAnswer answer;
    if (search_.best.empty()) return answer;
    answer.rows.resize(search_.best.size());
    const auto fill = with_same_budget([&](std::size_t i) {
      PlanRow& row = answer.rows[i];
      row.entry = search_.best[i];
      const PlanCandidate& c = question_.candidates[row.entry];
      row.side = evaluated([&] {
        return compared_side(session_, scenario_of_entry(row.entry), split_words(c) + "; " + step_words(c), engine());
      });
    });
    tbb::parallel_for(std::size_t{0}, answer.rows.size(), fill);
    for (std::size_t i = 1; i < answer.rows.size(); ++i)
      answer.rows[i].against_best = difference_of(answer.rows.front().side, answer.rows[i].side);
    if (answer.rows.size() > 1) answer.order = order_of(answer.rows[0].side, answer.rows[1].side);
    answer.changes = changes(answer.rows);
    answer.with_memory = with_more_memory(answer.rows.front().side.prediction.step.time);
    return answer;
  }

 private:
  [[nodiscard]] const std::string& engine() const { return question_.sweep.engine; }
  [[nodiscard]] Scenario scenario_of_entry(std::size_t i) {
    return scenario_of(question_.sweep, {i}, session_.descriptions(), sheets_).scenario;
  }

  static PlanOrder order_of(const ComparedScenario& first, const ComparedScenario& second) {
    const StepPrediction &a = first.prediction.step, &b = second.prediction.step;
    PlanOrder order;
    order.overlap = b.low <= a.high;
    order.least = std::min(ratio(b.low, a.low), ratio(b.high, a.high));
    order.most = std::max(ratio(b.low, a.low), ratio(b.high, a.high));
    std::map<std::tuple<std::string, std::string, std::string>, Seconds> in_second;
    for (const KernelGroup& group : second.prediction.kernels)
      in_second[{group.op, group.name, group.shape}] += group.time;
    Seconds shared;
    for (const KernelGroup& group : first.prediction.kernels) {
      const auto found = in_second.find({group.op, group.name, group.shape});
      if (found != in_second.end()) shared += std::min(group.time, found->second);
    }
    order.common = std::min(1.0, ratio(shared, a.time));
    return order;
  }

  std::vector<PlanChange> changes(const std::vector<PlanRow>& rows) {
    struct World {
      std::string what;
      std::function<void(Scenario&)> make;
      bool host_alone = false;  ///< changes nothing else
      bool matters = true;
    };
    const Cluster& cluster = *rows.front().side.scenario().cluster;
    const std::vector<World> worlds{
        {"a host twice as slow", [](Scenario& s) { s.host.scale *= 2.0; }, true},
        {"a host twice as fast", [](Scenario& s) { s.host.scale *= 0.5; }, true},
        {"links between GPUs half as fast",
         [](Scenario& s) {
           s.cluster->links.rate = s.cluster->links.rate * 0.5;
           s.cluster->pcie.rate = s.cluster->pcie.rate * 0.5;
           s.cluster->pcie.host = s.cluster->pcie.host * 0.5;
         }},
        {"a network between nodes half as fast", [](Scenario& s) { s.cluster->nics.rate = s.cluster->nics.rate * 0.5; },
         false, cluster.nodes > 1}};
    // Row by row: another host runs the same kernels, which are known already.
    std::vector<std::vector<Seconds>> times(worlds.size(), std::vector<Seconds>(rows.size()));
    const auto time_row = with_same_budget([&](std::size_t i) {
      for (std::size_t w = 0; w < worlds.size(); ++w) {
        if (!worlds[w].matters) continue;
        Scenario other = rows[i].side.scenario();
        worlds[w].make(other);
        const Host host = other.host;
        times[w][i] = evaluated([&] {
          return worlds[w].host_alone ? rows[i].side.run->step_beside(host)
                                      : StepRun(session_, other, engine()).step_beside(host);
        });
      }
    });
    tbb::parallel_for(std::size_t{0}, rows.size(), time_row);
    std::vector<PlanChange> result;
    for (std::size_t w = 0; w < worlds.size(); ++w) {
      if (!worlds[w].matters) continue;
      const auto fastest = std::min_element(times[w].begin(), times[w].end());
      result.push_back(
          {worlds[w].what, static_cast<std::size_t>(fastest - times[w].begin()), *fastest, times[w].front()});
    }
    return result;
  }

  /// Of those that do not fit, the one that needs least and is faster than the best.
  std::optional<PlanWithMemory> with_more_memory(Seconds best) {
    std::vector<std::pair<std::int64_t, std::size_t>> order;
    for (std::size_t i = 0; i < search_.entries.size(); ++i) {
      const PlanEntry& entry = search_.entries[i];
      if (entry.candidate.least_time >= best) continue;
      if (entry.fate == PlanFate::no_room) order.emplace_back(entry.memory, i);
      if (entry.fate == PlanFate::too_large) order.emplace_back(entry.candidate.least_memory, i);
    }
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), kTriedWithMemory));
    std::vector<std::optional<PlanWithMemory>> tried(order.size());
    const auto try_one = with_same_budget([&](std::size_t k) {
      try {
        tried[k] = evaluated([&]() -> std::optional<PlanWithMemory> {
          const StepRun run(session_, scenario_of_entry(order[k].second), engine());
          const Seconds time = run.step_beside(run.scenario().host);
          if (time >= best) return std::nullopt;
          return PlanWithMemory{order[k].second, time, run.memory().needed_high};
        });
      } catch (const UserError&) {
        tried[k].reset();
      }
    });
    tbb::parallel_for(std::size_t{0}, order.size(), try_one);
    std::optional<PlanWithMemory> result;
    for (const auto& one : tried)
      if (one && (!result || one->memory < result->memory)) result = one;
    return result;
  }

  const PlanQuestion& question_;
  const PlanSearch& search_;
  Session& session_;
  Remembered<HardwareSheet> sheets_;
};

}  // namespace

PlanAnswer answer_plan(const PlanQuestion& question, const PlanSearch& search, Session& session, int threads) {
  PlanAnswer answer;
  const int cores = threads > 0 ? threads : tbb::info::default_concurrency();
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(cores));
  tbb::task_arena arena(cores);
  arena.execute(with_same_budget([&] { answer = AnswerOfPlan(question, search, session).make(); }));
  return answer;
}

}  // namespace ridgeline
