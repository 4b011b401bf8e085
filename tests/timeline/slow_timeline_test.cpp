// The whole timeline of made-up steps against a slow model of it.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/timing/clock_law.h"
#include "tests/support/step_program_builder.h"
#include "tests/timeline/slow_timeline.h"

namespace ridgeline {
namespace {

using slow_timeline::Held;
using slow_timeline::Parts;
using slow_timeline::SlowPlay;
using slow_timeline::Written;
using slow_timeline::WrittenStep;
using testing_support::changing_seed;
using testing_support::Draws;
using testing_support::round_gpu;
using testing_support::round_host;

/// What a timeline is asked beside its program.
struct Asked {
  Gpu gpu = round_gpu();
  Host host = round_host();
  TimelineOptions options;
};

/// The step of `parts`, repeated until its time and the host's lead stay.
class SlowTimeline {
 public:
  SlowTimeline(const Parts& parts, const Asked& asked)
      : parts_(parts), asked_(asked), step_(parts, asked.host, asked.options.cuda_graphs) {
    const bool graph = asked.options.cuda_graphs;
    const LaunchSpec& launch = asked.gpu.launch;
    const Held held(parts);
    for (const Written& one : step_.all) {
      if (one.kind != Action::Kind::launch) continue;
      launches_.push_back(&one);
      const std::uint32_t of = held.launches[one.held];
      of_.push_back(of);
      const double gap = parts.launches[of].follows_without_gap ? 0.0 : (graph ? launch.graph_gap : launch.gap).value();
      gaps_.push_back(gap);
      const double alone = parts.times[of].time.value();
      durations_.push_back(graph ? std::max(alone, launch.graph_period.value() - gap) : alone);
    }
    const std::vector<double> alone = durations_;
    settle();
    for (int pass = 0; pass < 2 && asked.options.contention != nullptr && parts.streams > 0; ++pass) {
      durations_ = slow_timeline::slowed(launches_, last_.spans, alone, *asked.options.contention);
      settle();
    }
    for (std::size_t i = 0; i < alone.size(); ++i)
      if (launches_[i]->stream == 0) contention_ += durations_[i] - alone[i];
    exposed_ = slow_timeline::exposed_of(launches_, last_.spans);
    double all = 0.0, others = 0.0;
    for (std::size_t i = 0; i < exposed_.size(); ++i) {
      all += exposed_[i];
      if (launches_[i]->stream != 0) others += exposed_[i];
    }
    // What other streams still do beside the next step counts there.
    const double twice = std::min(all - time_, others);
    for (std::size_t i = 0; i < exposed_.size() && twice > 0.0; ++i)
      if (launches_[i]->stream != 0) exposed_[i] *= (others - twice) / others;
  }

  void expect_step(const Timeline& found) const {
    double busy = 0.0, occupied = 0.0, energy = 0.0;
    for (std::size_t i = 0; i < exposed_.size(); ++i) {
      const KernelLaunch& launch = parts_.launches[of_[i]];
      busy += exposed_[i];
      occupied += exposed_[i] * std::min(1.0, launch.blocks() / asked_.gpu.sm.count);
      energy += kernel_energy(launch, parts_.times[of_[i]], asked_.gpu).at(1.0).value();
    }
    EXPECT_EQ(found.steps_run, steps_);
    expect_near(found.step, time_, "step");
    expect_near(found.host, step_.total, "host");
    expect_near(found.host_issue, (last_.host + (10 - steps_) * time_) / 10, "host_issue");
    expect_near(found.gpu_busy, busy, "busy");
    expect_near(found.idle, std::max(0.0, time_ - busy), "idle");
    const double starved = std::min(last_.starved, std::max(0.0, time_ - busy));
    expect_near(found.starved, starved, "starved");
    expect_near(found.host_begin, last_.host_begin - last_.begin, "host_begin");
    expect_near(found.contention, contention_, "contention");
    EXPECT_EQ(found.held, Seconds{});
    EXPECT_NEAR(found.clock.value(), 1e9, 1e-3);
    EXPECT_EQ(found.settled, Hertz{1e9});
    EXPECT_NEAR(found.power.value(), 100.0 + energy / time_, 1e-6 * found.power.value());
    EXPECT_NEAR(found.sm_utilization, occupied / time_, 1e-7);
    if (std::abs(starved / time_ - 0.1) > 1e-6) {
      EXPECT_EQ(found.host_bound, starved > 0.1 * time_);
    }
    EXPECT_EQ(found.kernel_count(), static_cast<std::int64_t>(launches_.size()));
    if (parts_.runs == 1) return;
    // With the last run the host is done when it has issued its last launch, the GPU with that of the default stream.
    std::size_t last =
        step_.run_end - 1 + static_cast<std::size_t>(parts_.runs - 1) * (step_.run_end - step_.run_begin);
    EXPECT_EQ(found.repeat.launches.begin, step_.run_begin);
    EXPECT_EQ(found.repeat.launches.end, step_.run_end);
    EXPECT_EQ(found.repeat.launches.times, parts_.runs);
    expect_near(found.repeat.host_end, last_.spans[last].issued - last_.begin, "host_end");
    while (launches_[last]->stream != 0) --last;
    expect_near(found.repeat.gpu_end, last_.spans[last].end - last_.begin, "gpu_end");
  }

  void expect_kernels(const Timeline& found) const {
    const bool several = parts_.streams > 0;
    for (std::size_t held = 0; held < found.kernels.size(); ++held) {
      const KernelSpan& kernel = found.kernels[held];
      SCOPED_TRACE(::testing::Message() << "launch " << held);
      double taken = 0.0, exposed = 0.0, most = 0.0, runs = 0.0;
      for (std::size_t i = 0; i < launches_.size(); ++i) {
        if (launches_[i]->held != held) continue;
        const SlowPlay::Span& span = last_.spans[i];
        if (launches_[i]->run == 0) {
          expect_near(kernel.issued, span.issued - last_.begin, "issued");
          expect_near(kernel.start, span.start - last_.begin, "start");
          expect_near(kernel.end, span.end - last_.begin, "end");
          EXPECT_EQ(kernel.stream, launches_[i]->stream);
        }
        taken += span.end - span.start;
        exposed += exposed_[i];
        most = std::max(most, exposed_[i]);
        ++runs;
      }
      expect_near(kernel.taken, taken / runs, "taken");
      expect_near(kernel.exposed, exposed / runs, "exposed");
      expect_near(kernel.most_exposed, most, "most exposed");
      EXPECT_EQ(kernel.held, Seconds{});
      if (!several) {
        EXPECT_EQ(kernel.worst_run, 0u);
      }
      if (most < 1e-9 || !several) continue;
      for (std::size_t i = 0; i < launches_.size(); ++i) {
        if (launches_[i]->held != held) continue;
        const double less = most - exposed_[i];
        if (launches_[i]->run < kernel.worst_run) {
          EXPECT_GT(less, 0.5e-9 * most) << "an earlier run";
        }
        if (launches_[i]->run == kernel.worst_run) {
          EXPECT_LT(less, 2e-9 * most + 1e-15) << "the worst";
        }
      }
    }
  }

 private:
  void expect_near(Seconds found, double expected, const char* what) const {
    EXPECT_NEAR(found.value(), expected, 1e-9 * time_ + 1e-15) << what;
  }
  void settle() {
    SlowPlay play(step_, std::max<std::size_t>(1, parts_.streams), asked_.host.launch_blocking, asked_.gpu);
    double before = 0.0, lead = 0.0;
    for (steps_ = 0; steps_ < std::max(2, asked_.options.most_steps);) {
      last_ = play.play(durations_, gaps_, !asked_.options.cuda_graphs);
      ++steps_;
      time_ = last_.end - last_.begin;
      const double now = last_.end - last_.host;
      const bool same = std::abs(time_ - before) <= 1e-6 * time_ && std::abs(now - lead) <= 1e-6 * time_;
      before = time_;
      lead = now;
      if (steps_ > 2 && same) break;
    }
  }

  const Parts& parts_;
  const Asked& asked_;
  WrittenStep step_;
  std::vector<const Written*> launches_;
  std::vector<std::uint32_t> of_;  ///< entry of Parts::launches of each launch
  std::vector<double> durations_, gaps_, exposed_;
  SlowPlay::Step last_;
  double time_ = 0.0, contention_ = 0.0;
  int steps_ = 0;
};

TEST(SlowTimeline, IsThatOfAnyStep) {
  const std::uint64_t seed = changing_seed();
  Draws draws(seed);
  const slow_timeline::Pairs pairs;
  for (int turn = 0; turn < 300; ++turn) {
    SCOPED_TRACE(::testing::Message() << "RIDGELINE_TEST_SEED=" << seed << ", step " << turn);
    const Parts parts = slow_timeline::random_parts(draws);
    Asked asked;
    asked.gpu.launch.queue_depth = static_cast<int>(1 + draws.index(12));
    asked.options.most_steps = static_cast<int>(1 + draws.index(12));
    const Held held(parts);
    const IssueOutline outline(held.program);
    if (draws.index(2) == 0) asked.options.outline = &outline;
    if (parts.streams == 0) asked.options.cuda_graphs = draws.index(3) == 0;
    if (parts.streams > 0 && draws.index(2) == 0) asked.options.contention = &pairs;
    asked.host.scale = draws.between(0.5, 2);
    asked.host.parts.launch = draws.between(0.5, 2);
    asked.host.launch_blocking = !asked.options.cuda_graphs && draws.index(8) == 0;
    const Timeline found = run_timeline(held.program, held.times, asked.gpu, asked.host, asked.options);
    const SlowTimeline expected(parts, asked);
    expected.expect_step(found);
    expected.expect_kernels(found);
    EXPECT_EQ(
        time_of_step(held.program, StepLoad(held.program, held.times, asked.gpu), asked.gpu, asked.host, asked.options),
        found.step);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace ridgeline
