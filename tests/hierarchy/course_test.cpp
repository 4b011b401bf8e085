// How a simulated kernel's time passed: its samples against every tick counted one by one, and the figures of its
// profile against what they are called (docs/model/simulated-hierarchy.md, section Occupancy).
#include "sim/hierarchy/residency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/occupancy/occupancy.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

GridPlan drawn_plan(Draws& draws, KernelTraffic& traffic) {
  const auto pick = [&](std::size_t low, std::size_t high) {
    return static_cast<std::int64_t>(low + draws.index(high - low + 1));
  };
  GridPlan plan;
  plan.sms = static_cast<int>(pick(1, 9));
  plan.slots = static_cast<int>(pick(1, 3));
  plan.blocks = pick(1, 120);
  plan.start = pick(0, 300);
  plan.dispatch = pick(0, 2) * 7;
  plan.replacement = pick(0, 1) * 11;
  Ticks alone = pick(20, 400);
  for (int together = 1; together <= plan.slots; ++together) plan.alone.push_back(alone += pick(0, 300));
  plan.cohort_blocks = std::int64_t{plan.sms} * plan.slots;
  const auto phases = pick(1, 4);
  for (std::int64_t row = 0; row * plan.cohort_blocks < plan.blocks; ++row) {
    auto& cohort = plan.cohorts.emplace_back();
    for (std::int64_t i = 0; i < phases; ++i) {
      cohort.push_back({1.0 / static_cast<double>(phases), pick(0, 3000), pick(0, 1000)});
      TrafficStep step;
      step.cohort = static_cast<int>(row);
      step.work = 1.0;
      step.dram_read = draws.between(1, 1e6), step.dram_write = draws.between(1, 1e6);
      step.lookups = draws.between(1, 1e6), step.hits = step.lookups * draws.share();
      traffic.steps.push_back(step);
    }
  }
  traffic.cohorts = static_cast<int>(plan.cohorts.size());
  return plan;
}

/// What each tick of a run holds.
struct Tick {
  double blocks = 0, sms = 0, read = 0, written = 0, lookups = 0, hits = 0;
};

std::vector<Tick> ticks_of_run(const GridPlan& plan, const GridRun& run, const KernelTraffic& traffic, Ticks fill) {
  std::vector<Tick> ticks(static_cast<std::size_t>(run.end));
  // The first blocks are there while their first operands come.
  const auto begins = [&](Ticks begin) { return begin == plan.start ? std::max<Ticks>(0, begin - fill) : begin; };
  const std::size_t phases = plan.cohorts[0].size();
  for (const GridRun::Ran& ran : run.ran) {
    const TrafficStep& step =
        traffic.steps[static_cast<std::size_t>(ran.cohort) * phases + static_cast<std::size_t>(ran.phase)];
    const double blocks_of_cohort =
        static_cast<double>(std::min(plan.cohort_blocks, plan.blocks - ran.cohort * plan.cohort_blocks));
    const double share = ran.sms / blocks_of_cohort / static_cast<double>(ran.end - begins(ran.begin));
    for (Ticks t = begins(ran.begin); t < ran.end; ++t) {
      Tick& at = ticks[static_cast<std::size_t>(t)];
      at.blocks += ran.sms;
      at.read += step.dram_read * share, at.written += step.dram_write * share;
      at.lookups += step.lookups * share, at.hits += step.hits * share;
    }
  }
  for (const GridRun::Active& active : run.active)
    for (Ticks t = begins(active.begin); t < active.end; ++t) ticks[static_cast<std::size_t>(t)].sms += active.sms;
  return ticks;
}

TEST(Course, samples_are_the_means_of_their_ticks) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    KernelTraffic traffic;
    const GridPlan plan = drawn_plan(draws, traffic);
    const GridRun run = run_grid(plan, gpu.dram);
    const Ticks fill = static_cast<Ticks>(draws.index(static_cast<std::size_t>(plan.start) + 50));
    const double tick = draws.between(1e-11, 1e-7);
    const std::vector<Tick> ticks = ticks_of_run(plan, run, traffic, fill);
    const KernelCourse course = course_of(plan, run, traffic, fill, tick);
    // A sample for each half microsecond, four to a hundred of them, all of one width but the last.
    const double wanted = std::clamp(std::floor(static_cast<double>(run.end) * tick / 0.5e-6), 4.0, 100.0);
    EXPECT_LE(static_cast<double>(course.samples.size()), wanted);
    ASSERT_FALSE(course.samples.empty());
    EXPECT_NEAR(course.samples.back().end_s, static_cast<double>(run.end) * tick, 1e-9 * course.samples.back().end_s);
    Ticks begin = 0;
    const Ticks width = std::llround(course.samples.front().end_s / tick);
    EXPECT_LE(static_cast<double>(width) - 1.0, static_cast<double>(run.end) / wanted);
    for (const ProfileSample& sample : course.samples) {
      const Ticks end = std::llround(sample.end_s / tick);
      EXPECT_EQ(end, std::min(run.end, begin + width));
      Tick sum;
      for (Ticks t = begin; t < end; ++t) {
        const Tick& at = ticks[static_cast<std::size_t>(t)];
        sum.blocks += at.blocks, sum.sms += at.sms, sum.read += at.read, sum.written += at.written;
        sum.lookups += at.lookups, sum.hits += at.hits;
      }
      const double length = static_cast<double>(end - begin), seconds = length * tick;
      EXPECT_NEAR(sample.active_sms, std::min(1.0, sum.sms / length / plan.sms), 1e-9);
      EXPECT_NEAR(sample.occupancy, sum.blocks / length / plan.sms / plan.slots, 1e-9);
      EXPECT_NEAR(sample.l2_hit_rate, sum.lookups > 0.0 ? sum.hits / sum.lookups : 0.0, 1e-6);
      EXPECT_NEAR(sample.dram_read, sum.read / seconds, 1e-6 * (1.0 + sample.dram_read));
      EXPECT_NEAR(sample.dram_write, sum.written / seconds, 1e-6 * (1.0 + sample.dram_write));
      begin = end;
    }
    // The tail: from when the first SM has no block left, or all of the kernel where some never have one.
    double first = 0.0;
    Ticks tail = run.end;
    for (const GridRun::Active& active : run.active) {
      first += active.begin == plan.start ? active.sms : 0;
      tail = std::min(tail, active.end);
    }
    const Ticks from = first < plan.sms ? plan.start : tail;
    EXPECT_NEAR(course.tail_share, 1.0 - static_cast<double>(from) / static_cast<double>(run.end), 1e-12);
  }
}

KernelLaunch stream_launch(std::int64_t blocks, int threads, double active = 0.0) {
  KernelLaunch launch;
  launch.grid = {blocks, 1, 1};
  launch.threads_per_block = threads;
  launch.work = MemoryBoundWork{.active_blocks = active};
  return launch;
}

TEST(Course, of_a_steady_stream_moves_all_bytes_and_ends_in_its_last_cohort) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    const auto blocks = static_cast<std::int64_t>(draws.between(1, 20000));
    const int threads = 32 << draws.index(6);
    const KernelLaunch launch = stream_launch(blocks, threads);
    const double held = occupancy_of(gpu.sm, launch).blocks, at_once = held * gpu.sm.count;
    KernelTraffic traffic;
    traffic.cohorts = static_cast<int>(std::ceil(static_cast<double>(blocks) / at_once));
    std::vector<double> ends;
    double now = 0.0;
    TrafficStep sum;
    const std::size_t each = 1 + draws.index(40);
    const bool even =
        draws.index(2) == 0;  // steps of one length, each a sample of its own if there are up to a hundred
    for (int cohort = 0; cohort < traffic.cohorts; ++cohort)
      for (std::size_t k = 0; k < each; ++k) {
        TrafficStep step;
        step.cohort = cohort;
        step.dram_read = draws.between(1, 1e6), step.dram_write = draws.between(1, 1e6);
        step.lookups = draws.between(1, 1e6), step.hits = step.lookups * draws.share();
        traffic.steps.push_back(step);
        sum += step;
        ends.push_back(now += even ? 1e-7 : draws.between(1e-9, 1e-6));
      }
    const KernelCourse course = course_of(launch, traffic, ends, gpu);
    // Every byte is in one sample, over the time from the sample before it.
    double read = 0.0, written = 0.0, begin = 0.0, last_full = 0.0;
    for (const ProfileSample& sample : course.samples) {
      EXPECT_GT(sample.end_s, begin);
      read += sample.dram_read * (sample.end_s - begin);
      written += sample.dram_write * (sample.end_s - begin);
      EXPECT_GE(sample.l2_hit_rate, 0.0);
      EXPECT_LE(sample.l2_hit_rate, 1.0);
      EXPECT_EQ(sample.occupancy, sample.active_sms);
      if (sample.active_sms >= 1.0) last_full = sample.end_s;
      begin = sample.end_s;
    }
    if (even && traffic.steps.size() <= 90) {
      ASSERT_EQ(course.samples.size(), traffic.steps.size());
      for (std::size_t k = 0; k < traffic.steps.size(); ++k) {
        EXPECT_NEAR(course.samples[k].l2_hit_rate, traffic.steps[k].hits / traffic.steps[k].lookups, 1e-12);
        EXPECT_EQ(course.samples[k].active_sms < 1.0,
                  traffic.steps[k].cohort + 1 == traffic.cohorts && course.samples.back().active_sms < 1.0);
      }
    }
    EXPECT_NEAR(read, sum.dram_read, 1e-9 * read);
    EXPECT_NEAR(written, sum.dram_write, 1e-9 * written);
    EXPECT_LE(course.samples.size(), 100u + 5u * static_cast<std::size_t>(traffic.cohorts));
    EXPECT_DOUBLE_EQ(begin, now);
    // In the last cohort as many SMs are at work as there are blocks left.
    const double rest = static_cast<double>(blocks) - (traffic.cohorts - 1) * at_once;
    EXPECT_NEAR(course.samples.back().active_sms, std::min(1.0, rest / gpu.sm.count), 1e-9);
    EXPECT_NEAR(course.tail_share, rest >= gpu.sm.count || last_full == 0.0 ? 0.0 : 1.0 - last_full / now, 1e-9);
  }
}

TEST(Course, without_steps_there_is_none) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_TRUE(course_of(stream_launch(4, 128), KernelTraffic{}, {}, gpu).samples.empty());
}

/// A kernel, what it moved and how its time passed, with what the page calls its numbers.
struct ProfiledKernel {
  KernelLaunch launch;
  KernelTraffic traffic;
  TrafficStep step;  ///< of two alike
  KernelTime time;
  KernelCourse course;
  std::array<double, kStalls> waiting{};
  double held = 1, staying = 1, B = 1, theoretical = 1;
};

ProfiledKernel drawn_kernel(Draws& draws, const Gpu& gpu) {
  ProfiledKernel k;
  const auto blocks = static_cast<std::int64_t>(draws.between(1, 50000));
  const int warps = 1 << draws.index(6);
  k.launch =
      stream_launch(blocks, 32 * warps, draws.index(3) == 0 ? static_cast<double>(blocks) * draws.share() + 0.1 : 0.0);
  k.held = occupancy_of(gpu.sm, k.launch).blocks;
  k.staying = warps;
  k.B = static_cast<double>(blocks);
  if (const double active = std::get<MemoryBoundWork>(k.launch.work).active_blocks; active > 0.0)
    k.B = std::ceil(active);
  if (draws.index(2) == 0) {  // a product or attention, whose work says how many blocks an SM holds
    GemmWork work;
    AttentionWork attention;
    const std::size_t kind = draws.index(3);
    if (kind == 0) work.family = GemmWork::Family::wgmma;
    k.held = attention.blocks_per_sm = work.blocks_per_sm = kind == 0 ? 1 : static_cast<int>(1 + draws.index(3));
    if (kind == 0) k.staying = std::max(1, warps - 3);  // of the four that load tiles one works
    if (kind == 2) k.launch.work = attention;
    else k.launch.work = work;
    k.B = static_cast<double>(blocks);
  }
  k.theoretical = std::min(1.0, k.held * warps / gpu.sm.max_warps);
  TrafficStep& step = k.step;
  step.l2_read = draws.between(1, 1e9), step.l2_write = draws.between(1, 1e9);
  step.dram_read = draws.between(1, 1e9), step.dram_write = draws.between(1, 1e9);
  step.lookups = draws.between(1, 1e9), step.hits = step.lookups * draws.share();
  k.traffic.steps = {step, step};
  k.traffic.l1_read = draws.between(1, 1e9), k.traffic.l1_hit = k.traffic.l1_read * draws.share();
  k.traffic.hit_shares = {draws.share(), draws.share()};
  k.time.time = Seconds{draws.between(3e-6, 1e-3)};
  k.time.math_utilization = draws.share();
  double end = 0.0;
  for (std::size_t i = 3 + draws.index(10); i > 0; --i) {
    ProfileSample sample;
    sample.end_s = end += draws.between(1e-7, 1e-5);
    sample.active_sms = 0.5 + 0.5 * draws.share();
    sample.occupancy = sample.active_sms * (0.6 + 0.4 * draws.share());
    k.course.samples.push_back(sample);
  }
  k.course.tail_share = draws.share();
  for (double& one : k.waiting) one = draws.between(1e-7, 1e-5);
  return k;
}

TEST(Profile, figures_are_what_they_are_called) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    const ProfiledKernel k = drawn_kernel(draws, gpu);
    const TrafficStep& step = k.step;
    const auto profile = profile_of(k.launch, k.traffic, k.course, k.time, k.waiting, gpu);
    const double seconds = k.time.time.value();
    EXPECT_DOUBLE_EQ(profile->l2_read_bytes, 2.0 * step.l2_read);
    EXPECT_DOUBLE_EQ(profile->l2_write_bytes, 2.0 * step.l2_write);
    EXPECT_DOUBLE_EQ(profile->dram_read_bytes, 2.0 * step.dram_read);
    EXPECT_DOUBLE_EQ(profile->dram_write_bytes, 2.0 * step.dram_write);
    EXPECT_NEAR(profile->l2_hit_rate, step.hits / step.lookups, 1e-12);
    EXPECT_DOUBLE_EQ(profile->l1_read_bytes, k.traffic.l1_read);
    EXPECT_DOUBLE_EQ(profile->l1_hit_rate, k.traffic.l1_hit / k.traffic.l1_read);
    const double dram = 2.0 * (step.dram_read + step.dram_write) / seconds,
                 l2 = 2.0 * (step.l2_read + step.l2_write) / seconds;
    EXPECT_NEAR(profile->dram_bandwidth, dram, 1e-9 * dram);
    EXPECT_NEAR(profile->dram_share, dram / gpu.dram.bandwidth.value(), 1e-9);
    EXPECT_NEAR(profile->l2_bandwidth, l2, 1e-9 * l2);
    EXPECT_NEAR(profile->l2_share, l2 / gpu.l2.read_bandwidth.value(), 1e-9);
    EXPECT_EQ(profile->operand_hits, k.traffic.hit_shares);
    EXPECT_EQ(profile->pipe_active, k.time.math_utilization);
    EXPECT_EQ(profile->tail_share, k.course.tail_share);
    EXPECT_DOUBLE_EQ(profile->theoretical_occupancy, k.theoretical);
    EXPECT_NEAR(profile->waves, k.B / (gpu.sm.count * k.held), 1e-9 * profile->waves);
    const double all = std::accumulate(k.waiting.begin(), k.waiting.end(), 0.0);
    for (std::size_t s = 0; s < kStalls; ++s) EXPECT_NEAR(profile->stalls[s], k.waiting[s] / all, 1e-12);
  }
}

/// A slot is empty until its first block comes, and for 0.3 us after each; over time occupancy follows the blocks.
TEST(Profile, occupancy_is_that_of_slots_which_wait_for_blocks) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    const ProfiledKernel k = drawn_kernel(draws, gpu);
    const auto profile = profile_of(k.launch, k.traffic, k.course, k.time, k.waiting, gpu);
    const double seconds = k.time.time.value(), t = std::max(0.2 * seconds, seconds - gpu.launch.kernel_fixed.value());
    const double b_sm = std::ceil(k.B / gpu.sm.count), r = std::min(k.held, b_sm);
    const double f = std::min(0.8 * t, (r - 1.0) * gpu.sm.count / gpu.launch.blocks_per_second);
    const double turn = t * gpu.sm.count * k.held / k.B;  // of a block in its slot
    const double mean =
        b_sm <= k.held ? r * (1.0 - f / t) : r * (1.0 - std::min(0.6, 0.3e-6 / turn)) * (1.0 - f / (2.0 * t));
    EXPECT_NEAR(profile->achieved_occupancy, std::min(1.0, mean * k.staying / gpu.sm.max_warps), 1e-9);
    double occupied = 0.0, at_work = 0.0, begin = 0.0;
    bool clipped = false;
    for (std::size_t s = 0; s < profile->samples.size(); ++s) {
      const ProfileSample& sample = profile->samples[s];
      occupied += sample.occupancy * (sample.end_s - begin);
      at_work += sample.active_sms * (sample.end_s - begin);
      begin = sample.end_s;
      clipped |= sample.occupancy >= 1.0;
      EXPECT_LE(sample.occupancy, 1.0);
      EXPECT_NEAR(sample.occupancy * k.course.samples[0].occupancy,
                  profile->samples[0].occupancy * k.course.samples[s].occupancy, clipped ? 1.0 : 1e-12);
    }
    if (!clipped) {
      EXPECT_NEAR(occupied / at_work, profile->achieved_occupancy, 1e-9);
    }
  }
}

}  // namespace
}  // namespace ridgeline
