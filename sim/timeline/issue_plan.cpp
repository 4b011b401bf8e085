#include "sim/timeline/issue_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "sim/timeline/every_run.h"
#include "sim/units/budget.h"

namespace ridgeline {

double IssuePlan::host_total() const {
  double total = tail.host + tail.host_before_wait + host_of_tokens;
  for (std::size_t i = 0; i < launches.size(); ++i)
    total += static_cast<double>(repeat.times_of(i)) * (launches[i].host + launches[i].host_before_wait);
  return total;
}

namespace {

std::size_t launches_of(std::span<const Action> step) {
  return static_cast<std::size_t>(std::count_if(
      step.begin(), step.end(), [](const Action& action) { return action.kind == Action::Kind::launch; }));
}

class Planner {
 public:
  /// By `outline` where it is given, else by these actions.
  Planner(const StepProgram& program, std::span<const Action> step, const Gpu& gpu, const Host& host, Groups groups,
          const IssueOutline* outline)
      : program_(program),
        step_(step),
        gpu_(gpu),
        host_(host),
        lists_groups_(groups == Groups::listed),
        makes_nodes_(program.trace == nullptr || !program.trace->without_gradients) {
    const std::size_t launches = outline != nullptr ? outline->launches.size() : launches_of(step);
    plan_.launches.reserve(launches);
    if (lists_groups_) plan_.groups.reserve(launches);  // seldom more
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const auto host_class = static_cast<HostClass>(i);
      classes_[i] = {cost_of(host_class), slowness_of(host_class)};
    }
  }

  IssuePlan eager(const RepeatedLaunches& repeat) {
    for (const Action& action : step_) {
      keep_budget_often("the timeline");
      switch (action.kind) {
        case Action::Kind::host: start_group(action); break;
        case Action::Kind::launch: add_launch(action, gpu_.launch.gap.value()); break;
        case Action::Kind::wait:
          end_group();
          wait_ = true;
          wait_for_ = Issue::kEverything;  // of which an event that the host already waits for is a part
          before_wait_ += std::exchange(carry_, 0.0);
          note({HostGroup::Kind::wait, HostClass::other, index_of(action)});
          break;
        case Action::Kind::record_event:
          plan_.order.push_back({StreamPoint::Kind::record_event, action.stream, action.index});
          break;
        case Action::Kind::wait_event:
          plan_.order.push_back({StreamPoint::Kind::wait_event, action.stream, action.index});
          break;
        case Action::Kind::host_waits_for_event:
          end_group();
          if (!wait_ || wait_for_ != Issue::kEverything) wait_for_ = action.index;
          wait_ = true;
          before_wait_ += std::exchange(carry_, 0.0);
          note({HostGroup::Kind::wait, HostClass::other, index_of(action)});
          break;
        case Action::Kind::allocate:
        case Action::Kind::free: break;
      }
    }
    end_group();
    finish(repeat);
    if (host_.launch_blocking) block_launches();
    return std::move(plan_);
  }

  /// As eager(), where groups are not listed: what parts of one kind cost is worked out once.
  IssuePlan eager(const IssueOutline& outline) {
    std::vector<Share> shares;
    shares.reserve(outline.kinds.size());
    for (const IssueOutline::Kind& kind : outline.kinds) {
      const double cost = classes_[static_cast<std::size_t>(kind.host_class)].cost * static_cast<double>(kind.times);
      shares.push_back(share_of(cost_on_this_host(cost, kind.launches, kind.host_class), kind.launches));
    }
    std::vector<double> gaps;
    gaps.reserve(program_.launches.size());
    for (const KernelLaunch& launch : program_.launches)
      gaps.push_back(launch.follows_without_gap ? 0.0 : gpu_.launch.gap.value());
    plan_.launches.resize(outline.launches.size());
    Issue* next = plan_.launches.data();
    const std::uint32_t* launch = outline.launches.data();
    for (const IssueOutline::Part& part : outline.parts) {
      if (part.kind == IssueOutline::Part::kWait) {
        wait_ = true;
        before_wait_ += std::exchange(carry_, 0.0);
        continue;
      }
      const Share& share = shares[part.kind];
      for (std::uint32_t left = outline.kinds[part.kind].launches; left > 0; --left, ++next) {
        next->gap = gaps[*launch++];
        next->wait_before = std::exchange(wait_, false);
        next->host_before_wait = std::exchange(before_wait_, 0.0);
        next->host = std::exchange(carry_, 0.0) + share.each;
      }
      carry_ += share.rest;
    }
    finish(outline.repeat);
    if (host_.launch_blocking) block_launches();
    return std::move(plan_);
  }

  IssuePlan graph() {
    carry_ = host_.graph_launch.value();
    for (const Action& action : step_) {
      if (action.kind == Action::Kind::wait) {
        note_graph();
        wait_ = true;
        before_wait_ += std::exchange(carry_, host_.graph_launch.value());
        note({HostGroup::Kind::wait, HostClass::other, index_of(action)});
      } else if (action.kind == Action::Kind::launch) {
        Issue& one = plan_.launches.emplace_back(issue(action, gpu_.launch.graph_gap.value()));
        one.least_duration = std::max(0.0, gpu_.launch.graph_period.value() - one.gap);
        one.queued = plan_.launches.size() == first_in_group_ + 1;
        one.host = std::exchange(carry_, 0.0);
      }
    }
    note_graph();
    finish(repeated_launches(program_));
    return std::move(plan_);
  }

 private:
  /// Of one record.
  [[nodiscard]] double cost_of(HostClass host_class) const {
    const auto index = static_cast<std::size_t>(host_class);
    const double cost = index < host_.class_costs.size() ? host_.class_costs[index].value() : 0.0;
    if (!moves_with_the_host(host_class)) return cost;
    const double thread = in_backward_thread(host_class) ? host_.parts.backward : 1.0;
    const double node = makes_nodes_ ? 1.0 : (1.0 - mix_of(host_class).autograd) * host_.parts.inference;
    return cost * host_.scale * thread * node;
  }
  [[nodiscard]] double launch_call() const { return host_.launch_call.value() * host_.scale * host_.parts.launch; }
  /// How much slower than the scale says this host does what a class is made of, launch calls aside.
  [[nodiscard]] double slowness_of(HostClass host_class) const {
    const HostMix work = mix_of(host_class);
    const HostParts& parts = host_.parts;
    const double slowness = work.python * (parts.python - 1.0) + work.dispatcher * (parts.dispatcher - 1.0) +
                            work.autograd * (parts.autograd - 1.0) + work.allocation * (parts.allocation - 1.0);
    return 1.0 + slowness;
  }
  /// The cost of a record whose classes' costs hold `launches` launch calls.
  [[nodiscard]] double cost_on_this_host(double cost, std::size_t launches, HostClass host_class) const {
    const double calls = std::min(cost, static_cast<double>(launches) * host_.launch_call.value() * host_.scale);
    return cost + (cost - calls) * (classes_[static_cast<std::size_t>(host_class)].slowness - 1.0) +
           calls * (host_.parts.launch - 1.0);
  }

  Issue issue(const Action& action, double gap) {
    Issue issue;
    issue.gap = program_.launches[action.index].follows_without_gap ? 0.0 : gap;
    issue.stream = action.stream;
    issue.wait_before = std::exchange(wait_, false);
    issue.wait_for = std::exchange(wait_for_, Issue::kEverything);
    issue.host_before_wait = std::exchange(before_wait_, 0.0);
    return issue;
  }

  [[nodiscard]] std::uint32_t index_of(const Action& action) const {
    return static_cast<std::uint32_t>(&action - program_.actions.data());
  }
  /// The group as it is listed, where groups are.
  HostGroup* note(HostGroup group) {
    if (!lists_groups_) return nullptr;
    group.first_launch = static_cast<std::uint32_t>(first_in_group_);
    return &plan_.groups.emplace_back(group);
  }
  // A graph is launched even where nothing is left in it.
  void note_graph() {
    if (HostGroup* group = note({HostGroup::Kind::graph, HostClass::other, group_.action})) {
      group->launches = static_cast<std::uint32_t>(plan_.launches.size() - first_in_group_);
      group->rest = host_.graph_launch.value();
    }
    first_in_group_ = plan_.launches.size();
  }

  // A group is the host work of one record and the launches up to the next record.
  void start_group(const Action& action) {
    end_group();
    group_ = {HostGroup::Kind::work, action.host_class, index_of(action)};
    group_cost_ = classes_[static_cast<std::size_t>(action.host_class)].cost * static_cast<double>(action.index);
  }
  void add_launch(const Action& action, double gap) {
    if (first_in_group_ == plan_.launches.size() && group_cost_ == 0.0) group_.action = index_of(action);
    if (is_ordered(program_))
      plan_.order.push_back(
          {StreamPoint::Kind::launch, action.stream, static_cast<std::uint32_t>(plan_.launches.size())});
    plan_.launches.push_back(issue(action, gap));
    plan_.launches.back().host = std::exchange(carry_, 0.0);
  }
  struct Share {
    double each = 0.0, rest = 0.0;  ///< seconds up to the return of each launch call, and after the last
  };
  [[nodiscard]] Share share_of(double cost, std::size_t launches) const {
    if (launches == 0) return {0.0, cost};
    const auto n = static_cast<double>(launches);
    const double each = std::max(cost / (n + 1.0), launch_call());
    return {each, std::max(0.0, cost - each * n)};
  }
  void end_group() {
    const std::size_t launches = plan_.launches.size() - first_in_group_;
    group_cost_ = cost_on_this_host(group_cost_, launches, group_.host_class);
    if (launches == 0) {  // its work lies before the next launch
      if (group_cost_ == 0.0) return;
      if (HostGroup* group = note(group_)) group->rest = group_cost_;
      carry_ += std::exchange(group_cost_, 0.0);
      group_ = HostGroup{};
      return;
    }
    const auto [share, rest] = share_of(group_cost_, launches);
    for (std::size_t i = first_in_group_; i < plan_.launches.size(); ++i) plan_.launches[i].host += share;
    if (HostGroup* group = note(group_)) {
      group->launches = static_cast<std::uint32_t>(launches);
      group->share = share;
      group->rest = rest;
    }
    carry_ += rest;
    group_cost_ = 0.0;
    group_ = HostGroup{};
    first_in_group_ = plan_.launches.size();
  }
  void finish(const RepeatedLaunches& repeat) {
    plan_.repeat = repeat;
    if (program_.trace != nullptr) {  // events need no second stream
      plan_.streams = std::max<std::size_t>(1, program_.trace->streams.size());
      plan_.events = program_.trace->events;
    }
    plan_.from_waits = program_.trace != nullptr && program_.trace->generates;
    plan_.tail.wait_before = wait_;
    plan_.tail.wait_for = wait_for_;
    plan_.tail.host_before_wait = before_wait_;
    plan_.tail.host = carry_;
  }
  /// Every launch call returns when its kernel is done: all further work of the host comes behind it.
  void block_launches() {
    const auto block = [](Issue& issue) {
      issue.host += std::exchange(issue.host_before_wait, 0.0);
      issue.wait_before = true;
      issue.wait_for = Issue::kEverything;
    };
    std::for_each(plan_.launches.begin(), plan_.launches.end(), block);
    block(plan_.tail);
  }

  const StepProgram& program_;
  std::span<const Action> step_;
  const Gpu& gpu_;
  const Host& host_;
  bool lists_groups_;
  bool makes_nodes_;  ///< of an autograd graph
  struct ClassOfWork {
    double cost = 0.0, slowness = 1.0;
  };
  std::array<ClassOfWork, static_cast<std::size_t>(HostClass::other) + 1> classes_{};  ///< by HostClass
  IssuePlan plan_;
  HostGroup group_;
  double group_cost_ = 0.0, carry_ = 0.0, before_wait_ = 0.0;
  bool wait_ = false;
  std::int64_t wait_for_ = Issue::kEverything;
  std::size_t first_in_group_ = 0;
};

}  // namespace

RepeatedLaunches repeated_launches(const StepProgram& program) {
  const RepeatedActions repeat = program.repeat_of_steady_step();
  RepeatedLaunches launches{0, 0, repeat.times};
  if (repeat.times <= 1) return launches;
  for (std::uint32_t i = program.steps.back().begin; i < repeat.actions.end; ++i) {
    const bool launch = program.actions[i].kind == Action::Kind::launch;
    launches.begin += launch && i < repeat.actions.begin;
    launches.end += launch;
  }
  return launches;
}

IssueOutline::IssueOutline(const StepProgram& program)
    : repeat(repeated_launches(program)), one_stream(!program.has_streams()) {
  if (!one_stream) return;
  const auto add = [&](const Kind& part) {
    if (part.times == 0 && part.launches == 0) return;
    const auto known = std::find(kinds.begin(), kinds.end(), part);
    parts.push_back({static_cast<std::uint32_t>(known - kinds.begin())});
    if (known == kinds.end()) kinds.push_back(part);
  };
  Kind part;
  for (const Action& action : program.steady_step()) {
    keep_budget_often("the timeline");
    switch (action.kind) {
      case Action::Kind::host:
        add(part);
        part = {action.host_class, action.index, 0};
        break;
      case Action::Kind::launch:
        one_stream = one_stream && action.stream == 0;
        launches.push_back(action.index);
        ++part.launches;
        break;
      case Action::Kind::wait:
        add(part);
        part = {};
        parts.push_back({});
        break;
      case Action::Kind::record_event:
      case Action::Kind::wait_event:
      case Action::Kind::host_waits_for_event: one_stream = false; return;
      case Action::Kind::allocate:
      case Action::Kind::free: break;
    }
  }
  add(part);
}

IssuePlan plan_issues(const StepProgram& program, const Gpu& gpu, const Host& host, Groups groups,
                      const IssueOutline* outline) {
  if (outline != nullptr && outline->one_stream && groups == Groups::none)
    return Planner(program, program.played_step(), gpu, host, groups, outline).eager(*outline);
  return Planner(program, program.played_step(), gpu, host, groups, nullptr).eager(repeated_launches(program));
}
IssuePlan plan_every_run(const StepProgram& program, const EveryRun& runs, const Gpu& gpu, const Host& host) {
  IssuePlan plan = Planner(program, runs.actions, gpu, host, Groups::none, nullptr).eager({});
  plan.events = runs.events;
  return plan;
}
std::vector<Issue> plan_token(const StepProgram& two, const Gpu& gpu, const Host& host) {
  IssuePlan plan = Planner(two, two.steady_step(), gpu, host, Groups::none, nullptr).eager({});
  plan.launches.erase(plan.launches.begin(),
                      plan.launches.begin() + static_cast<std::ptrdiff_t>(plan.launches.size() / 2));
  return std::move(plan.launches);
}
IssuePlan plan_graph(const StepProgram& program, const Gpu& gpu, const Host& host, Groups groups) {
  return Planner(program, program.steady_step(), gpu, host, groups, nullptr).graph();
}

}  // namespace ridgeline
