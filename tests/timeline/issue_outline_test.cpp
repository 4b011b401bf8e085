// A plan by the outline of a step is the plan made from its actions, to the bit.
#include <gtest/gtest.h>

#include "sim/timeline/issue_plan.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;
using testing_support::round_gpu;
using testing_support::round_host;

void expect_same_plans(const StepProgram& program, const Host& host) {
  const Gpu gpu = round_gpu();
  const IssueOutline outline(program);
  ASSERT_TRUE(outline.one_stream);
  const IssuePlan by_actions = plan_issues(program, gpu, host, Groups::listed);
  const IssuePlan by_outline = plan_issues(program, gpu, host, Groups::none, &outline);
  ASSERT_EQ(by_actions.launches.size(), by_outline.launches.size());
  const auto expect_same = [](const Issue& a, const Issue& b) {
    EXPECT_EQ(a.host, b.host);
    EXPECT_EQ(a.gap, b.gap);
    EXPECT_EQ(a.wait_before, b.wait_before);
    EXPECT_EQ(a.host_before_wait, b.host_before_wait);
    EXPECT_EQ(a.queued, b.queued);
    EXPECT_EQ(a.stream, b.stream);
    EXPECT_EQ(a.wait_for, b.wait_for);
    EXPECT_EQ(a.least_duration, b.least_duration);
  };
  for (std::size_t i = 0; i < by_actions.launches.size(); ++i)
    expect_same(by_actions.launches[i], by_outline.launches[i]);
  expect_same(by_actions.tail, by_outline.tail);
  EXPECT_EQ(by_actions.repeat.begin, by_outline.repeat.begin);
  EXPECT_EQ(by_actions.repeat.end, by_outline.repeat.end);
  EXPECT_EQ(by_actions.repeat.times, by_outline.repeat.times);
}

/// Groups of no, one and several launches, work without a launch, waits with and without work before them, launches
/// without work, memory between all of it.
ProgramBuilder all_kinds_of_groups() {
  ProgramBuilder builder;
  builder.begin_step();
  builder.kernel(3);
  builder.host(HostClass::linear).kernel(5).kernel(7, 0.0, true).kernel(2);
  const std::uint32_t storage = builder.allocate(4096);
  builder.host(HostClass::pointwise, 3).host(HostClass::python_fixed, 7).kernel(1);
  builder.host(HostClass::pointwise).wait().kernel(4);
  builder.wait().wait().host(HostClass::linear, 2).free(storage);
  builder.host(HostClass::other).kernel(2).wait().host(HostClass::pointwise, 0).kernel(3);
  builder.host(HostClass::linear).wait().host(HostClass::python_fixed);
  builder.end_step();
  return builder;
}

TEST(IssueOutline, plans_what_the_actions_plan) { expect_same_plans(all_kinds_of_groups().program(), round_host()); }

TEST(IssueOutline, knows_nothing_of_the_hosts_speed) {
  Host host = round_host();
  host.scale = 1.37;
  host.parts.python = 1.9;
  host.parts.launch = 0.7;
  host.parts.backward = 1.2;
  expect_same_plans(all_kinds_of_groups().program(), host);
}

TEST(IssueOutline, of_a_step_without_launches_is_the_hosts_work) {
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::linear, 3).wait().host(HostClass::pointwise).end_step();
  expect_same_plans(builder.program(), round_host());
}

TEST(IssueOutline, is_of_the_steady_step) {
  ProgramBuilder builder;
  builder.host(HostClass::linear).kernel(5);
  builder.begin_step().host(HostClass::linear).kernel(5).kernel(5).end_step();
  builder.begin_step().host(HostClass::pointwise).kernel(5).end_step();
  EXPECT_EQ(IssueOutline(builder.program()).launches.size(), 1u);
  expect_same_plans(builder.program(), round_host());
}

}  // namespace
}  // namespace ridgeline
