// What a step's actions make of the host's time: groups, waits, streams, graphs, repetitions; in numbers by hand.
#include "sim/timeline/issue_plan.h"

#include <gtest/gtest.h>

#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;
using testing_support::round_gpu;
using testing_support::round_host;

double in_us(double seconds) { return seconds * 1e6; }

/// Launch, group of 10 us with one launch, wait, group of 5 us without, launch, group of 10 us with two launches.
ProgramBuilder five_groups() {
  ProgramBuilder builder;
  builder.host(HostClass::linear).kernel(1);  // before the step
  builder.begin_step().kernel(1).host(HostClass::linear).kernel(1).wait();
  builder.host(HostClass::pointwise).host(HostClass::linear).kernel(1).kernel(1).end_step();
  return builder;
}

TEST(IssuePlan, work_is_spread_before_and_after_the_launches_of_its_group) {
  const ProgramBuilder builder = five_groups();
  const IssuePlan plan = plan_issues(builder.program(), round_gpu(), round_host());
  ASSERT_EQ(plan.launches.size(), 4u);
  EXPECT_NEAR(in_us(plan.launches[0].host), 1, 1e-9) << "the launch call";
  EXPECT_NEAR(in_us(plan.launches[1].host), 5, 1e-9);
  EXPECT_FALSE(plan.launches[1].wait_before);
  EXPECT_TRUE(plan.launches[2].wait_before);
  EXPECT_NEAR(in_us(plan.launches[2].host_before_wait), 5, 1e-9);
  EXPECT_NEAR(in_us(plan.launches[2].host), 5 + 10 / 3.0, 1e-9) << "work without launches lies before the next";
  EXPECT_NEAR(in_us(plan.launches[3].host), 10 / 3.0, 1e-9);
  EXPECT_NEAR(in_us(plan.tail.host), 10 / 3.0, 1e-9);
  EXPECT_FALSE(plan.tail.wait_before);
  EXPECT_NEAR(in_us(plan.host_total()), 1 + 10 + 5 + 10, 1e-9);
}

TEST(IssuePlan, groups_say_where_they_begin_and_what_they_cost) {
  const ProgramBuilder builder = five_groups();
  const IssuePlan plan = plan_issues(builder.program(), round_gpu(), round_host());
  struct Listed {
    HostGroup::Kind kind;
    std::uint32_t action, first_launch, launches;
    double share, rest;
  };
  using enum HostGroup::Kind;
  const std::vector<Listed> expected{{work, 2, 0, 1, 1, 0},
                                     {work, 3, 1, 1, 5, 5},
                                     {wait, 5, 2, 0, 0, 0},
                                     {work, 6, 2, 0, 0, 5},
                                     {work, 7, 2, 2, 10 / 3.0, 10 / 3.0}};
  ASSERT_EQ(plan.groups.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const HostGroup& group = plan.groups[i];
    EXPECT_EQ(group.kind, expected[i].kind) << i;
    EXPECT_EQ(group.action, expected[i].action) << i;
    EXPECT_EQ(group.first_launch, expected[i].first_launch) << i;
    EXPECT_EQ(group.launches, expected[i].launches) << i;
    EXPECT_NEAR(in_us(group.share), expected[i].share, 1e-9) << i;
    EXPECT_NEAR(in_us(group.rest), expected[i].rest, 1e-9) << i;
  }
  EXPECT_EQ(plan.groups[1].host_class, HostClass::linear);
  EXPECT_EQ(plan.groups[3].host_class, HostClass::pointwise);
  EXPECT_TRUE(plan_issues(builder.program(), round_gpu(), round_host(), Groups::none).groups.empty());
}

TEST(IssuePlan, launches_cost_a_call_each_however_little_work_there_is) {
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::pointwise);
  for (int i = 0; i < 9; ++i) builder.kernel(1);
  builder.end_step();
  Host host = round_host();
  host.scale = 2;
  const IssuePlan plan = plan_issues(builder.program(), round_gpu(), host);
  for (const Issue& issue : plan.launches) EXPECT_NEAR(in_us(issue.host), 2, 1e-9);
  EXPECT_NEAR(in_us(plan.tail.host), 0, 1e-9) << "9 calls of 2 us are more than 10 us of work";
  host.parts.launch = 3;
  EXPECT_NEAR(in_us(plan_issues(builder.program(), round_gpu(), host).launches[0].host), 6, 1e-9);
}

TEST(IssuePlan, waits_at_the_end_are_of_the_tail) {
  ProgramBuilder builder;
  builder.begin_step().kernel(1).host(HostClass::pointwise).wait().host(HostClass::linear).end_step();
  const IssuePlan plan = plan_issues(builder.program(), round_gpu(), round_host());
  EXPECT_TRUE(plan.tail.wait_before);
  EXPECT_NEAR(in_us(plan.tail.host_before_wait), 5, 1e-9);
  EXPECT_NEAR(in_us(plan.tail.host), 10, 1e-9);
  EXPECT_NEAR(in_us(plan.host_total()), 16, 1e-9);
}

TEST(IssuePlan, a_graph_is_launched_once_and_once_more_for_every_wait) {
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::linear).kernel(1).kernel(1, 0.0, true).wait().kernel(1).end_step();
  const IssuePlan plan = plan_graph(builder.program(), round_gpu(), round_host());
  ASSERT_EQ(plan.launches.size(), 3u);
  EXPECT_NEAR(in_us(plan.launches[0].host), 8, 1e-9);
  EXPECT_EQ(plan.launches[1].host, 0.0);
  EXPECT_NEAR(in_us(plan.launches[2].host), 8, 1e-9);
  EXPECT_TRUE(plan.launches[0].queued);
  EXPECT_FALSE(plan.launches[1].queued);
  EXPECT_TRUE(plan.launches[2].queued);
  EXPECT_FALSE(plan.launches[1].wait_before);
  EXPECT_TRUE(plan.launches[2].wait_before);
  EXPECT_EQ(plan.launches[2].host_before_wait, 0.0);
  EXPECT_NEAR(in_us(plan.launches[0].gap), 0.25, 1e-9);
  EXPECT_EQ(plan.launches[1].gap, 0.0);
  EXPECT_NEAR(in_us(plan.launches[0].least_duration), 1.0, 1e-9) << "1.25 us from start to start";
  EXPECT_NEAR(in_us(plan.launches[1].least_duration), 1.25, 1e-9);
  EXPECT_EQ(plan.tail.host, 0.0);
  ASSERT_EQ(plan.groups.size(), 3u);
  EXPECT_EQ(plan.groups[0].kind, HostGroup::Kind::graph);
  EXPECT_EQ(plan.groups[0].launches, 2u);
  EXPECT_NEAR(in_us(plan.groups[0].rest), 8, 1e-9);
  EXPECT_EQ(plan.groups[1].kind, HostGroup::Kind::wait);
  EXPECT_EQ(plan.groups[1].first_launch, 2u);
  EXPECT_EQ(plan.groups[2].launches, 1u);
  EXPECT_EQ(plan.groups[2].first_launch, 2u);
}

TEST(IssuePlan, a_gap_longer_than_a_graphs_period_leaves_no_least_duration) {
  Gpu gpu = round_gpu();
  gpu.launch.graph_gap = microseconds(3);
  ProgramBuilder builder;
  builder.begin_step().kernel(1).end_step();
  EXPECT_EQ(plan_graph(builder.program(), gpu, round_host()).launches[0].least_duration, 0.0);
}

TEST(IssuePlan, streams_wait_for_events_and_the_host_for_one_of_them) {
  OpTrace trace;
  trace.streams.resize(2);
  trace.events = 5;
  const ProgramBuilder builder = five_groups();
  StepProgram program = builder.program();
  program.trace = &trace;
  std::vector<Action> actions(program.actions.begin(), program.actions.end());
  std::uint32_t at = program.steps.back().begin;
  actions[at].stream = 1;
  const auto insert = [&](std::uint32_t where, Action action) { actions.insert(actions.begin() + where, action); };
  insert(at + 1, {Action::Kind::record_event, HostClass::other, 1, 3});
  insert(at + 2, {Action::Kind::wait_event, HostClass::other, 0, 3});
  actions[at + 5] = {Action::Kind::host_waits_for_event, HostClass::other, 0, 4};  // instead of the wait for everything
  StepProgram with = program;
  with.actions = {};
  for (const Action& action : actions) with.actions.push_back(action);
  with.steps.back().end += 2;
  const IssuePlan plan = plan_issues(with, round_gpu(), round_host());
  EXPECT_EQ(plan.streams, 2u);
  EXPECT_EQ(plan.events, 5u);
  ASSERT_EQ(plan.order.size(), 6u);
  using enum StreamPoint::Kind;
  const std::vector<StreamPoint> expected{{launch, 1, 0}, {record_event, 1, 3}, {wait_event, 0, 3},
                                          {launch, 0, 1}, {launch, 0, 2},       {launch, 0, 3}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(plan.order[i].kind, expected[i].kind) << i;
    EXPECT_EQ(plan.order[i].stream, expected[i].stream) << i;
    EXPECT_EQ(plan.order[i].index, expected[i].index) << i;
  }
  EXPECT_EQ(plan.launches[0].stream, 1);
  EXPECT_EQ(plan.launches[1].wait_for, Issue::kEverything);
  EXPECT_EQ(plan.launches[2].wait_for, 4);
  EXPECT_TRUE(plan.launches[2].wait_before);
  EXPECT_NEAR(in_us(plan.launches[2].host_before_wait), 5, 1e-9);
  EXPECT_EQ(plan.launches[3].wait_for, Issue::kEverything);
  EXPECT_FALSE(plan.launches[3].wait_before);
}

TEST(IssuePlan, a_wait_for_everything_is_one_whatever_event_is_waited_for_beside_it) {
  for (const bool event_first : {true, false}) {
    OpTrace trace;
    trace.streams.resize(2);
    trace.events = 5;
    const ProgramBuilder builder = five_groups();
    StepProgram program = builder.program();
    program.trace = &trace;
    std::vector<Action> actions(program.actions.begin(), program.actions.end());
    const std::uint32_t begin = program.steps.back().begin;
    std::uint32_t wait = begin;
    while (actions[wait].kind != Action::Kind::wait) ++wait;
    actions.insert(actions.begin() + (event_first ? wait : wait + 1),
                   {Action::Kind::host_waits_for_event, HostClass::other, 0, 4});
    program.actions = {};
    for (const Action& action : actions) program.actions.push_back(action);
    program.steps.back().end += 1;
    const IssuePlan plan = plan_issues(program, round_gpu(), round_host());
    ASSERT_EQ(plan.launches.size(), 4u);
    EXPECT_TRUE(plan.launches[2].wait_before) << event_first;
    EXPECT_EQ(plan.launches[2].wait_for, Issue::kEverything) << event_first;
    EXPECT_EQ(plan.tail.wait_for, Issue::kEverything) << event_first;
  }
}

TEST(IssuePlan, a_step_that_repeats_says_which_launches_do) {
  ProgramBuilder builder;
  builder.kernel(1)
      .begin_step()
      .host(HostClass::pointwise)
      .kernel(1)
      .kernel(1)
      .kernel(1)
      .host(HostClass::pointwise)
      .kernel(1)
      .end_step();
  StepProgram program = builder.program();
  const std::uint32_t begin = program.steps.back().begin;
  EXPECT_EQ(repeated_launches(program).times, 1);
  program.repeats.push_back({{begin + 2, begin + 4}, 7});
  const RepeatedLaunches repeat = repeated_launches(program);
  EXPECT_EQ(repeat.begin, 1u);
  EXPECT_EQ(repeat.end, 3u);
  EXPECT_EQ(repeat.times, 7);
  const std::vector<std::int64_t> times{repeat.times_of(0), repeat.times_of(1), repeat.times_of(2), repeat.times_of(3)};
  EXPECT_EQ(times, (std::vector<std::int64_t>{1, 7, 7, 1}));
  const IssuePlan plan = plan_issues(program, round_gpu(), round_host());
  EXPECT_EQ(plan.repeat.begin, 1u);
  const std::vector<Issue>& all = plan.launches;
  EXPECT_NEAR(plan.host_total(), all[0].host + 7 * (all[1].host + all[2].host) + all[3].host + plan.tail.host, 1e-15);
  program.repeats.back().times = 1;
  EXPECT_EQ(repeated_launches(program).end, 0u);
  program.repeats.back() = {{0, 1}, 7};
  EXPECT_EQ(repeated_launches(program).times, 1) << "those of an earlier step";
}

TEST(IssuePlan, backward_and_autograd_cost_what_the_hosts_parts_say) {
  HostClass behind{};
  bool found = false;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(HostClass::other) && !found; ++i) {
    behind = static_cast<HostClass>(i);
    found = in_backward_thread(behind) && moves_with_the_host(behind);
  }
  ASSERT_TRUE(found);
  const auto cost_of = [&](HostClass one, double scale, double backward) {
    Host host = round_host();
    host.class_costs.assign(host.class_costs.size(), microseconds(12));
    host.scale = scale;
    host.parts.backward = backward;
    ProgramBuilder builder;
    builder.begin_step().host(one).end_step();
    return in_us(plan_issues(builder.program(), round_gpu(), host).host_total());
  };
  EXPECT_NEAR(cost_of(behind, 1, 1), 12, 1e-9);
  EXPECT_NEAR(cost_of(behind, 3, 1), 36, 1e-9);
  EXPECT_NEAR(cost_of(behind, 1, 2), 24, 1e-9);
  EXPECT_NEAR(cost_of(HostClass::linear, 1, 2), in_backward_thread(HostClass::linear) ? 24 : 12, 1e-9);
}

TEST(IssuePlan, without_gradients_no_nodes_of_a_graph_are_made) {
  OpTrace trace;
  trace.without_gradients = true;
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::linear).end_step();
  StepProgram program = builder.program();
  const double with = plan_issues(program, round_gpu(), round_host()).host_total();
  program.trace = &trace;
  EXPECT_NEAR(plan_issues(program, round_gpu(), round_host()).host_total(),
              with * (1 - mix_of(HostClass::linear).autograd), 1e-12);
  EXPECT_GT(mix_of(HostClass::linear).autograd, 0.0);
  Host host = round_host();
  host.parts.inference = 0.6;
  EXPECT_NEAR(plan_issues(program, round_gpu(), host).host_total(),
              0.6 * plan_issues(program, round_gpu(), round_host()).host_total(), 1e-12);
  trace.without_gradients = false;
  EXPECT_NEAR(plan_issues(program, round_gpu(), host).host_total(), with, 1e-12) << "training is not told by it";
}

}  // namespace
}  // namespace ridgeline
