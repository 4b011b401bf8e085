#include "sim/timeline/issue_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ridgeline {

double IssuePlan::host_total() const {
  double total = tail.host + tail.host_before_wait;
  for (const Issue& issue : launches) total += issue.host + issue.host_before_wait;
  return total;
}

namespace {

class Planner {
 public:
  Planner(const StepProgram& program, const Gpu& gpu, const Host& host) : program_(program), gpu_(gpu), host_(host) {}

  IssuePlan eager() {
    for (const Action& action : program_.steady_step()) {
      switch (action.kind) {
        case Action::Kind::host: start_group(cost_of(action)); break;
        case Action::Kind::launch: add_launch(action, gpu_.launch.gap.value()); break;
        case Action::Kind::wait:
          end_group();
          wait_ = true;
          before_wait_ += std::exchange(carry_, 0.0);
          break;
        case Action::Kind::allocate:
        case Action::Kind::free: break;
      }
    }
    end_group();
    finish();
    return std::move(plan_);
  }

  IssuePlan graph() {
    const double gap = std::max(0.0, (gpu_.launch.graph_period - gpu_.launch.kernel_fixed).value());
    carry_ = host_.graph_launch.value();
    for (const Action& action : program_.steady_step()) {
      if (action.kind == Action::Kind::wait) {
        wait_ = true;
        before_wait_ += std::exchange(carry_, host_.graph_launch.value());
      } else if (action.kind == Action::Kind::launch) {
        plan_.launches.push_back(issue(action, gap));
        plan_.launches.back().host = std::exchange(carry_, 0.0);
      }
    }
    finish();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] double cost_of(const Action& action) const {
    const auto index = static_cast<std::size_t>(action.host_class);
    const double cost = index < host_.class_costs.size() ? host_.class_costs[index].value() : 0.0;
    return cost * host_.scale * static_cast<double>(action.index);
  }
  [[nodiscard]] double launch_call() const { return host_.launch_call.value() * host_.scale; }

  Issue issue(const Action& action, double gap) {
    Issue issue;
    issue.gap = program_.launches[action.index].follows_without_gap ? 0.0 : gap;
    issue.wait_before = std::exchange(wait_, false);
    issue.host_before_wait = std::exchange(before_wait_, 0.0);
    return issue;
  }

  // A group is the host work of one record and the launches up to the next record.
  void start_group(double cost) {
    if (first_in_group_ ==
        plan_.launches.size()) {  // nothing launched since the last record: its work lies before this one
      carry_ += group_cost_;
      group_cost_ = cost;
      return;
    }
    end_group();
    group_cost_ = cost;
  }
  void add_launch(const Action& action, double gap) {
    plan_.launches.push_back(issue(action, gap));
    plan_.launches.back().host = std::exchange(carry_, 0.0);
  }
  void end_group() {
    const std::size_t launches = plan_.launches.size() - first_in_group_;
    if (launches == 0) {
      carry_ += std::exchange(group_cost_, 0.0);
      return;
    }
    const auto n = static_cast<double>(launches);
    const double share = std::max(group_cost_ / (n + 1.0), launch_call());
    for (std::size_t i = first_in_group_; i < plan_.launches.size(); ++i) plan_.launches[i].host += share;
    carry_ += std::max(0.0, group_cost_ - share * n);
    group_cost_ = 0.0;
    first_in_group_ = plan_.launches.size();
  }
  void finish() {
    plan_.tail.wait_before = wait_;
    plan_.tail.host_before_wait = before_wait_;
    plan_.tail.host = carry_;
  }

  const StepProgram& program_;
  const Gpu& gpu_;
  const Host& host_;
  IssuePlan plan_;
  double group_cost_ = 0.0, carry_ = 0.0, before_wait_ = 0.0;
  bool wait_ = false;
  std::size_t first_in_group_ = 0;
};

}  // namespace

IssuePlan plan_issues(const StepProgram& program, const Gpu& gpu, const Host& host) {
  return Planner(program, gpu, host).eager();
}
IssuePlan plan_graph(const StepProgram& program, const Gpu& gpu, const Host& host) {
  return Planner(program, gpu, host).graph();
}

}  // namespace ridgeline
