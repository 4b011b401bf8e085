#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/timeline/timeline.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;
using testing_support::round_gpu;
using testing_support::round_host;

Timeline run(const ProgramBuilder& builder, TimelineOptions options = {}, const Gpu& gpu = round_gpu(),
             const Host& host = round_host()) {
  return run_timeline(builder.program(), builder.times(), gpu, host, options);
}

ProgramBuilder step_of(int kernels, double us, HostClass host_class = HostClass::pointwise) {
  ProgramBuilder builder;
  builder.begin_step();
  for (int i = 0; i < kernels; ++i) builder.host(host_class).kernel(us);
  builder.end_step();
  return builder;
}

TEST(Timeline, a_gpu_bound_step_is_busy_time_and_a_gap_a_kernel) {
  const Timeline timeline = run(step_of(20, 50));
  EXPECT_NEAR(in_microseconds(timeline.step), 20 * (50 + 1), 1e-6);
  EXPECT_NEAR(in_microseconds(timeline.gpu_busy), 20 * 50, 1e-6);
  EXPECT_FALSE(timeline.host_bound);
}

TEST(Timeline, a_host_bound_step_is_the_hosts_work) {
  const Timeline timeline = run(step_of(20, 1));
  EXPECT_NEAR(in_microseconds(timeline.step), 20 * 5, 1e-6);
  EXPECT_NEAR(in_microseconds(timeline.host), 20 * 5, 1e-6);
  EXPECT_TRUE(timeline.host_bound);
}

TEST(Timeline, the_turn_from_host_to_gpu_lies_where_a_kernel_with_its_gap_takes_the_hosts_time) {
  EXPECT_NEAR(in_microseconds(run(step_of(20, 3.9)).step), 20 * 5.0, 1e-6);
  EXPECT_NEAR(in_microseconds(run(step_of(20, 4.1)).step), 20 * 5.1, 1e-6);
}

TEST(Timeline, a_kernel_starts_a_latency_after_its_launch_call_on_an_idle_gpu) {
  const Timeline timeline = run(step_of(4, 1));
  for (const KernelSpan& kernel : timeline.kernels) EXPECT_NEAR(in_microseconds(kernel.start - kernel.issued), 2, 1e-6);
}

TEST(Timeline, spans_do_not_overlap_and_never_start_before_they_are_issued) {
  ProgramBuilder builder;
  builder.begin_step();
  for (int i = 0; i < 50; ++i) builder.host(HostClass::linear).kernel(i % 7 == 0 ? 40.0 : 2.0).kernel(1);
  builder.end_step();
  const Timeline timeline = run(builder);
  Seconds end{-1};
  for (const KernelSpan& kernel : timeline.kernels) {
    EXPECT_GE(kernel.start, end);
    EXPECT_GT(kernel.start, kernel.issued);
    end = kernel.end;
  }
  EXPECT_NEAR(in_microseconds(end), in_microseconds(timeline.step), 1e-6);
}

TEST(Timeline, a_dependent_launch_leaves_no_gap) {
  ProgramBuilder builder;
  builder.begin_step();
  for (int i = 0; i < 10; ++i) builder.kernel(50).kernel(5, 0.0, true);
  builder.end_step();
  EXPECT_NEAR(in_microseconds(run(builder).step), 10 * (50 + 5 + 1), 1e-6);
}

TEST(Timeline, the_host_runs_ahead_by_the_depth_of_the_queue_and_no_further) {
  const Timeline timeline = run(step_of(20, 50));
  // Kernel i is issued when kernel i - 8 starts.
  for (std::size_t i = 8; i < timeline.kernels.size(); ++i) {
    EXPECT_NEAR(in_microseconds(timeline.kernels[i].issued), in_microseconds(timeline.kernels[i - 8].start), 1e-6);
  }
}

TEST(Timeline, a_deeper_queue_hides_a_part_of_the_step_where_the_host_is_slow) {
  // 20 long kernels, then 20 short ones whose launches take longer than they run.
  ProgramBuilder builder;
  builder.begin_step();
  for (int i = 0; i < 20; ++i) builder.host(HostClass::pointwise).kernel(20);
  for (int i = 0; i < 20; ++i) builder.host(HostClass::linear).kernel(1);
  builder.end_step();
  Gpu deep = round_gpu();
  deep.launch.queue_depth = 1000;
  EXPECT_NEAR(in_microseconds(run(builder, {}, deep).step), 20 * 21 + 20 * 2, 1e-6);
  EXPECT_GT(in_microseconds(run(builder).step), 20 * 21 + 20 * 2 + 20);
}

TEST(Timeline, a_wait_makes_the_host_start_behind_the_gpu) {
  ProgramBuilder builder;
  builder.begin_step().kernel(100).wait().host(HostClass::linear).kernel(100).end_step();
  // One wait a step: the launches after it cannot hide behind the kernels before it. The linear's launch returns after
  // half its time, after the wait's latency; the kernel starts after the launch latency.
  EXPECT_NEAR(in_microseconds(run(builder).step), 100 + 2 + 5 + 2 + 100 + 1, 1e-6);
}

// CUDA_LAUNCH_BLOCKING=1: the call returns a latency after its kernel, then the host works on.
TEST(Timeline, launches_that_block_make_host_and_gpu_take_turns) {
  Host host = round_host();
  host.launch_blocking = true;
  EXPECT_NEAR(in_microseconds(run(step_of(20, 50), {}, round_gpu(), host).step), 20 * (50 + 2 + 5 + 2), 1e-6);
  // A wait that comes with it costs nothing more.
  ProgramBuilder builder;
  builder.begin_step().kernel(100).wait().kernel(100).end_step();
  ProgramBuilder none;
  none.begin_step().kernel(100).kernel(100).end_step();
  EXPECT_NEAR(in_microseconds(run(builder, {}, round_gpu(), host).step),
              in_microseconds(run(none, {}, round_gpu(), host).step), 1e-6);
}

TEST(Timeline, host_work_after_the_last_wait_counts) {
  ProgramBuilder builder;
  builder.begin_step().kernel(10).wait().host(HostClass::python_fixed, 100).end_step();
  EXPECT_NEAR(in_microseconds(run(builder).step), 10 + 2 + 100 + 1 + 2, 1e-6);
}

TEST(Timeline, a_slower_host_scales_a_host_bound_step) {
  Host slow = round_host();
  slow.scale = 2.0;
  EXPECT_NEAR(in_microseconds(run(step_of(20, 1), {}, round_gpu(), slow).step), 20 * 10, 1e-6);
}

TEST(Timeline, a_slower_launch_call_adds_what_it_takes_longer) {
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::linear).kernel(0.1).end_step();
  Host host = round_host();
  const double before = in_microseconds(run(builder, {}, round_gpu(), host).host);
  host.parts.launch = 4.0;
  const double after = in_microseconds(run(builder, {}, round_gpu(), host).host);
  EXPECT_NEAR(after - before, 3.0 * in_microseconds(host.launch_call), 1e-6);
}

TEST(Timeline, each_part_of_the_host_slows_the_classes_that_have_it) {
  const auto host_time = [](HostClass work, double HostParts::*part) {
    ProgramBuilder builder;
    builder.begin_step().host(work).kernel(0.1).end_step();
    Host host = round_host();
    for (const HostClass costly : {HostClass::addmm_backward, HostClass::per_parameter_foreach})
      host.class_costs[static_cast<std::size_t>(costly)] = microseconds(10);
    if (part != nullptr) host.parts.*part = 2.0;
    return run(builder, {}, round_gpu(), host).host.value();
  };
  const auto share = [&](HostClass work, double HostParts::*part) {
    return host_time(work, part) / host_time(work, nullptr) - 1.0;
  };
  EXPECT_GT(share(HostClass::addmm_backward, &HostParts::autograd), share(HostClass::linear, &HostParts::autograd));
  EXPECT_EQ(share(HostClass::addmm_backward, &HostParts::python), 0.0);
  EXPECT_GT(share(HostClass::linear, &HostParts::python), 0.1);
  for (const HostClass work : {HostClass::linear, HostClass::addmm_backward, HostClass::per_parameter_foreach}) {
    const double all = share(work, &HostParts::python) + share(work, &HostParts::dispatcher) +
                       share(work, &HostParts::autograd) + share(work, &HostParts::allocation) +
                       share(work, &HostParts::launch);
    EXPECT_NEAR(all, 1.0, 1e-9);
  }
}

TEST(Timeline, a_launch_costs_at_least_the_launch_call) {
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::pointwise);
  for (int i = 0; i < 30; ++i) builder.kernel(0.01);
  builder.end_step();
  EXPECT_NEAR(in_microseconds(run(builder).host), 30, 1e-6);
}

TEST(Timeline, a_cuda_graph_takes_the_host_out_of_a_host_bound_step) {
  TimelineOptions graphs;
  graphs.cuda_graphs = true;
  const Timeline eager = run(step_of(20, 2)), graph = run(step_of(20, 2), graphs);
  EXPECT_NEAR(in_microseconds(eager.step), 100, 1e-6);
  EXPECT_NEAR(in_microseconds(graph.step), 20 * (2 + 0.25), 1e-6);
  EXPECT_NEAR(in_microseconds(graph.host), 8, 1e-6);
}

// launch.graph_gap lies between the kernels of a graph, launch.graph_period between the starts of empty ones.
TEST(Timeline, kernels_of_a_graph_follow_each_other_after_its_gap_and_no_sooner_than_its_period) {
  TimelineOptions graphs;
  graphs.cuda_graphs = true;
  for (const double gap : {0.0, 0.25, 2.0})
    for (const double period : {0.25, 1.25, 1.75, 3.0})
      for (const double lasts : {1.0, 1.5, 40.0}) {
        Gpu gpu = round_gpu();
        gpu.launch.graph_gap = microseconds(gap);
        gpu.launch.graph_period = microseconds(period);
        constexpr int kKernels = 400;  // enough to hide the launch of the graph
        const Timeline timeline = run(step_of(kKernels, lasts), graphs, gpu);
        EXPECT_NEAR(in_microseconds(timeline.step), kKernels * std::max(period, lasts + gap), 1e-6)
            << gap << ", " << period << ", " << lasts;
        EXPECT_LE(timeline.active_fraction(), 1 + 1e-9);
      }
}

TEST(Timeline, nothing_in_a_graph_is_faster_than_an_empty_kernel) {
  TimelineOptions graphs;
  graphs.cuda_graphs = true;
  EXPECT_NEAR(in_microseconds(run(step_of(20, 0.4), graphs).step), 20 * 1.25, 1e-6);
}

TEST(Timeline, a_graph_is_never_slower_where_an_empty_kernel_is_faster) {
  TimelineOptions graphs;
  graphs.cuda_graphs = true;
  for (const double clock : {0.5e9, 1e9, 2e9}) {
    Seconds before = microseconds(1e6);
    for (double fixed = 3.0; fixed > 0.1; fixed *= 0.9) {
      Gpu gpu = round_gpu();
      gpu.clock.boost = gpu.clock.boost_tensor = gpu.clock.sustained = gpu.clock.tensor = Hertz(clock);
      gpu.launch.kernel_fixed = microseconds(fixed);
      gpu.launch.memset = microseconds(0.9);
      ProgramBuilder builder;
      builder.begin_step();
      for (int i = 0; i < 20; ++i)  // a memory-bound kernel begins with kernel_fixed, the others do not
        builder.kernel(fixed + 2.0)
            .kernel(5.0)
            .of(GemmWork{})
            .kernel(4.0)
            .of(AttentionWork{})
            .kernel(0.9)
            .of(FixedWork{});
      builder.end_step();
      const Seconds step = run(builder, graphs, gpu).step;
      EXPECT_LE(step.value(), before.value() * (1 + 1e-9)) << fixed << " us, " << clock << " Hz";
      before = step;
    }
  }
}

TEST(Timeline, issuing_ten_steps_from_an_idle_device_is_as_fast_as_the_queue_allows) {
  // 20 kernels of 51 us a step, 8 in the queue: the host is done when all but the last 8 of 200 have started.
  const Timeline timeline = run(step_of(20, 50));
  EXPECT_NEAR(in_microseconds(timeline.host_issue), (200 - 8) * 51 / 10.0, 51);
  EXPECT_LT(timeline.host_issue, timeline.step);
}

TEST(Timeline, a_step_without_kernels_takes_the_hosts_time) {
  ProgramBuilder builder;
  builder.begin_step().host(HostClass::linear, 3).end_step();
  EXPECT_NEAR(in_microseconds(run(builder).step), 30, 1e-6);
}

TEST(Timeline, refuses_times_that_do_not_match_the_launches) {
  const ProgramBuilder builder = step_of(3, 1);
  EXPECT_THROW(run_timeline(builder.program(), std::span(builder.times()).first(2), round_gpu(), round_host(), {}),
               std::invalid_argument);
}

TEST(Timeline, sm_utilisation_is_the_share_of_sms_with_a_block) {
  ProgramBuilder builder;
  builder.begin_step();
  for (int i = 0; i < 20; ++i) builder.kernel(49, 0.0, false, 25);
  builder.end_step();
  EXPECT_NEAR(run(builder).sm_utilization, 0.25 * 49 / 50, 1e-9);
  EXPECT_NEAR(run(builder).active_fraction(), 49.0 / 50, 1e-9);
}

/// Kernels take twice as long beside a collective, which takes three times as long beside them.
class SlowsBoth final : public Contention {
 public:
  [[nodiscard]] double of_kernel(std::size_t, std::size_t) const override { return 2.0; }
  [[nodiscard]] double of_collective(std::size_t, std::size_t) const override { return 3.0; }
  [[nodiscard]] Seconds wait_for_room(std::size_t, std::size_t, Seconds) const override { return Seconds{}; }
};

TEST(ContendedDurations, AreLongerByWhatRunsBesideAndAsTheyWereApart) {
  const Gpu gpu = round_gpu();
  const auto plan = [](std::size_t streams, bool one_after_the_other) {
    IssuePlan made;
    made.streams = streams;
    for (std::uint32_t i = 0; i < streams; ++i) {
      Issue issue;
      issue.host = 1e-7;
      issue.stream = static_cast<std::uint8_t>(i);
      made.launches.push_back(issue);
      made.order.push_back({StreamPoint::Kind::launch, issue.stream, i});
      if (!one_after_the_other || i > 0) continue;
      made.events = 1;
      made.order.push_back({StreamPoint::Kind::record_event, 0, 0});
      made.order.push_back({StreamPoint::Kind::wait_event, 1, 0});
    }
    return made;
  };
  const std::vector<double> alone{1e-3, 1e-3};
  const std::vector<double> beside = contended_durations(plan(2, false), alone, gpu, SlowsBoth{}, 3);
  // Of the time side by side, which is one, a kernel loses half and a collective two thirds.
  const double together = (beside[0] - alone[0]) / (1.0 - 1.0 / 2.0);
  EXPECT_NEAR((beside[1] - alone[1]) / (1.0 - 1.0 / 3.0), together, 1e-9);
  EXPECT_GT(together, 0.9 * alone[0]);
  EXPECT_LT(together, 2.0 * alone[0]);
  EXPECT_EQ(contended_durations(plan(2, true), alone, gpu, SlowsBoth{}, 3), alone);
  const std::vector<double> single{1e-3};
  EXPECT_EQ(contended_durations(plan(1, false), single, gpu, SlowsBoth{}, 3), single);
}

}  // namespace
}  // namespace ridgeline
