// Plans of steps written out whole: what the host does before each launch and each wait, and the groups it does it in.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sim/timeline/issue_plan.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;
using testing_support::round_gpu;
using testing_support::round_host;

std::string us(double seconds) { return fmt::format("{:.10g}", std::round(seconds * 1e12) / 1e6); }

std::string text_of(const Issue& issue) {
  std::string text;
  if (issue.wait_before) {
    text = us(issue.host_before_wait) + ", waits for ";
    text += issue.wait_for == Issue::kEverything ? "everything, " : fmt::format("event {}, ", issue.wait_for);
  }
  return text + us(issue.host);
}

/// A line a launch: stream, work of the host, gap before it; then what is behind the last launch.
std::string text_of(const IssuePlan& plan) {
  std::string text;
  for (const Issue& issue : plan.launches) {
    text += fmt::format("stream {}: {}; gap {}", issue.stream, text_of(issue), us(issue.gap));
    if (issue.least_duration > 0.0) text += fmt::format(", takes {} at least", us(issue.least_duration));
    text += issue.queued ? "\n" : ", of a graph in the queue\n";
  }
  return text + "tail: " + text_of(plan.tail) + "\n";
}

std::string groups_of(const IssuePlan& plan) {
  std::string text;
  for (const HostGroup& group : plan.groups) {
    const bool work = group.kind == HostGroup::Kind::work;
    text += fmt::format("{} from action {}: {} launches from {}, {} each, {} after\n",
                        work ? host_class_names()[static_cast<std::size_t>(group.host_class)]
                        : group.kind == HostGroup::Kind::wait ? "wait"
                                                              : "graph",
                        group.action, group.launches, group.first_launch, us(group.share), us(group.rest));
  }
  return text;
}

/// A step of two streams with every kind of action; what comes before it is not of the plan.
struct TwoStreams {
  OpTrace trace;
  StepProgram program;
  TwoStreams() {
    trace.streams.resize(2);
    trace.events = 2;
    using enum Action::Kind;
    ProgramBuilder builder;
    for (int i = 0; i < 6; ++i) builder.kernel(1, 0.0, i == 2);
    program = builder.program();
    program.trace = &trace;
    program.actions = {};
    const std::vector<Action> actions{{launch, HostClass::other, 0, 5},                // before the step
                                      {launch, HostClass::other, 0, 0},                // 1
                                      {host, HostClass::linear, 0, 3},                 // 2: 30 us
                                      {launch, HostClass::other, 1, 1},                // 3
                                      {launch, HostClass::other, 0, 2},                // 4
                                      {record_event, HostClass::other, 1, 0},          // 5
                                      {wait},                                          // 6
                                      {host, HostClass::pointwise, 0, 1},              // 7: 5 us
                                      {wait},                                          // 8
                                      {host, HostClass::python_fixed, 0, 4},           // 9: 4 us
                                      {wait_event, HostClass::other, 0, 0},            // 10
                                      {host, HostClass::pointwise, 0, 3},              // 11: 15 us
                                      {launch, HostClass::other, 0, 3},                // 12
                                      {allocate},                                      // 13
                                      {launch, HostClass::other, 1, 4},                // 14
                                      {host_waits_for_event, HostClass::other, 0, 0},  // 15
                                      {host, HostClass::python_fixed, 0, 1},           // 16: 1 us
                                      {host_waits_for_event, HostClass::other, 0, 1},  // 17
                                      {host, HostClass::linear, 0, 0},                 // 18: nothing
                                      {launch, HostClass::other, 0, 5},                // 19
                                      {record_event, HostClass::other, 0, 1},          // 20
                                      {host, HostClass::pointwise, 0, 1}};             // 21: 5 us
    for (const Action& action : actions) program.actions.push_back(action);
    program.steps = {{1, static_cast<std::uint32_t>(actions.size())}};
  }
};

// A record's cost is shared by its n launches and what comes behind them, n + 1 parts; a launch without a record costs
// its call, 1 us. Work before a wait is done before it, be it of several records and waits.
TEST(IssuePlanByHand, TwoStreamsWithWaitsAndEvents) {
  const TwoStreams step;
  const IssuePlan plan = plan_issues(step.program, round_gpu(), round_host());
  EXPECT_EQ(text_of(plan),
            "stream 0: 1; gap 1\n"
            "stream 1: 10; gap 1\n"
            "stream 0: 10; gap 0\n"
            "stream 0: 15, waits for everything, 9; gap 1\n"
            "stream 1: 5; gap 1\n"
            "stream 0: 6, waits for event 1, 1; gap 1\n"
            "tail: 5\n");
  EXPECT_EQ(groups_of(plan),
            "other from action 1: 1 launches from 0, 1 each, 0 after\n"
            "linear from action 2: 2 launches from 1, 10 each, 10 after\n"
            "wait from action 6: 0 launches from 3, 0 each, 0 after\n"
            "pointwise from action 7: 0 launches from 3, 0 each, 5 after\n"
            "wait from action 8: 0 launches from 3, 0 each, 0 after\n"
            "python_fixed from action 9: 0 launches from 3, 0 each, 4 after\n"
            "pointwise from action 11: 2 launches from 3, 5 each, 5 after\n"
            "wait from action 15: 0 launches from 5, 0 each, 0 after\n"
            "python_fixed from action 16: 0 launches from 5, 0 each, 1 after\n"
            "wait from action 17: 0 launches from 5, 0 each, 0 after\n"
            "linear from action 19: 1 launches from 5, 1 each, 0 after\n"
            "pointwise from action 21: 0 launches from 6, 0 each, 5 after\n");
  EXPECT_NEAR(plan.host_total() * 1e6, 1 + 30 + 5 + 4 + 15 + 1 + 1 + 5, 1e-9);
  EXPECT_EQ(plan.streams, 2u);
  EXPECT_EQ(plan.events, 2u);
  EXPECT_EQ(plan.repeat.times, 1);
  std::string order;
  for (const StreamPoint& point : plan.order)
    order += fmt::format("{}{} of stream {}; ", "lrw"[static_cast<int>(point.kind)], point.index, point.stream);
  EXPECT_EQ(order,
            "l0 of stream 0; l1 of stream 1; l2 of stream 0; r0 of stream 1; w0 of stream 0; l3 of stream 0; "
            "l4 of stream 1; l5 of stream 0; r1 of stream 0; ");
}

// With CUDA_LAUNCH_BLOCKING the host waits before everything that it does next.
TEST(IssuePlanByHand, LaunchesThatBlock) {
  const TwoStreams step;
  Host host = round_host();
  host.launch_blocking = true;
  const IssuePlan plan = plan_issues(step.program, round_gpu(), host);
  EXPECT_EQ(text_of(plan),
            "stream 0: 0, waits for everything, 1; gap 1\n"
            "stream 1: 0, waits for everything, 10; gap 1\n"
            "stream 0: 0, waits for everything, 10; gap 0\n"
            "stream 0: 0, waits for everything, 24; gap 1\n"
            "stream 1: 0, waits for everything, 5; gap 1\n"
            "stream 0: 0, waits for everything, 7; gap 1\n"
            "tail: 0, waits for everything, 5\n");
}

// On a host of twice the cost whose launch call takes three times as long as that: of a linear's 60 us two launch calls
// are 4 us, which take 12; the three parts of 68 us are longer than a call.
TEST(IssuePlanByHand, ASlowHostWithASlowDriver) {
  const TwoStreams step;
  Host host = round_host();
  host.scale = 2.0;
  host.parts.launch = 3.0;
  const IssuePlan plan = plan_issues(step.program, round_gpu(), host, Groups::none);
  EXPECT_EQ(text_of(plan),
            "stream 0: 6; gap 1\n"
            "stream 1: 22.666667; gap 1\n"
            "stream 0: 22.666667; gap 0\n"
            "stream 0: 32.666667, waits for everything, 20.666667; gap 1\n"  // 30 us and calls of 4 that take 12
            "stream 1: 12.666667; gap 1\n"
            "stream 0: 14.666667, waits for event 1, 6; gap 1\n"
            "tail: 10\n");
  EXPECT_TRUE(plan.groups.empty());
}

// A graph is launched for 8 us, again behind each wait; one that a wait ends before anything is in it too. A kernel
// takes its stream 1.25 us from start to start, 0.25 us of which are the gap.
TEST(IssuePlanByHand, AGraphWithWaits) {
  ProgramBuilder builder;
  builder.begin_step().wait().host(HostClass::linear).kernel(3).kernel(4, 0.0, true).wait().kernel(5).wait().end_step();
  const IssuePlan plan = plan_graph(builder.program(), round_gpu(), round_host());
  EXPECT_EQ(text_of(plan),
            "stream 0: 8, waits for everything, 8; gap 0.25, takes 1 at least\n"
            "stream 0: 0; gap 0, takes 1.25 at least, of a graph in the queue\n"
            "stream 0: 0, waits for everything, 8; gap 0.25, takes 1 at least\n"
            "tail: 0, waits for everything, 8\n");
  EXPECT_EQ(groups_of(plan),
            "graph from action 0: 0 launches from 0, 0 each, 8 after\n"
            "wait from action 0: 0 launches from 0, 0 each, 0 after\n"
            "graph from action 0: 2 launches from 0, 0 each, 8 after\n"
            "wait from action 4: 0 launches from 2, 0 each, 0 after\n"
            "graph from action 0: 1 launches from 2, 0 each, 8 after\n"
            "wait from action 6: 0 launches from 3, 0 each, 0 after\n"
            "graph from action 0: 0 launches from 3, 0 each, 8 after\n");
  EXPECT_NEAR(plan.host_total() * 1e6, 4 * 8, 1e-9);
}

TEST(IssuePlanByHand, ALaunchBehindAWaitIsNotOfTheRecordBefore) {
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::linear).wait().kernel(3).end_step();
  EXPECT_EQ(groups_of(plan_issues(builder.program(), round_gpu(), round_host())),
            "linear from action 0: 0 launches from 0, 0 each, 10 after\n"
            "wait from action 1: 0 launches from 0, 0 each, 0 after\n"
            "other from action 2: 1 launches from 0, 1 each, 0 after\n");
}

// An outline has no groups: where they are asked for, the actions are gone through.
TEST(IssuePlanByHand, GroupsAreListedBesideAnOutline) {
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::linear).kernel(3).wait().kernel(4).end_step();
  const IssueOutline outline(builder.program());
  const IssuePlan listed = plan_issues(builder.program(), round_gpu(), round_host(), Groups::listed, &outline);
  EXPECT_EQ(groups_of(listed),
            "linear from action 0: 1 launches from 0, 5 each, 5 after\n"
            "wait from action 2: 0 launches from 1, 0 each, 0 after\n"
            "other from action 3: 1 launches from 1, 1 each, 0 after\n");
  const IssuePlan none = plan_issues(builder.program(), round_gpu(), round_host(), Groups::none, &outline);
  EXPECT_TRUE(none.groups.empty());
  EXPECT_EQ(text_of(none), text_of(listed));
}

}  // namespace
}  // namespace ridgeline
