// The timeline of a pipeline: two ranks by hand, one rank against the timeline of the same step without a pipeline,
// ranks of one class against ranks of their own.
#include "sim/timeline/pipeline_timeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>

#include "sim/timing/clock_law.h"
#include "tests/support/draws.h"
#include "tests/timeline/made_pipeline.h"

namespace ridgeline {
namespace {

using parallel::PipelineShape;
using parallel::StageAction;
using testing_support::changing_seed;
using testing_support::Draws;
using testing_support::MadeAction;
using testing_support::MadeRank;
using testing_support::round_gpu;
using testing_support::round_host;
using Of = Action::Kind;

std::string us(Seconds time) { return fmt::format("{:.9g}", std::round(time.value() * 1e12) / 1e6 + 0.0); }

/// A GPU and a host that cost nothing between kernels.
Gpu gpu_without_gaps() {
  Gpu gpu = round_gpu();
  gpu.launch.gap = gpu.launch.start_latency = Seconds{};
  return gpu;
}
Host host_without_costs() {
  Host host = round_host();
  host.launch_call = Seconds{};
  return host;
}

MadeAction one_kernel(double us, std::int64_t blocks, std::uint8_t stream = 0) {
  return {{{Of::launch, HostClass::other, stream}}, {us}, {blocks}};
}

// What comes first and last is nothing, but that the host waits for the GPU at the end of its step.
const MadeAction kHostWaits{{{Of::wait}}, {}, {}};

/// Two micro-batches on two ranks. Passes take 10 and 20 us on the first rank, 12 and 25 us on the second;
/// exchanges have kernels of 4 us on a stream of their own.
struct TwoRanks {
  explicit TwoRanks(PipelineSchedule schedule) : shape{schedule, 2, 1, 2} {}
  PipelineShape shape;
  MadeRank first{shape, 0, {}, [](const StageAction&action) { return made(action, 10, 20); }, kHostWaits},
      second{shape, 1, {}, [](const StageAction&action) { return made(action, 12, 25); }, kHostWaits};
  std::vector<PipelineClass> classes{first.own_class(), second.own_class()};
  std::vector<std::size_t> class_of{0, 1};

  static MadeAction made(const StageAction& action, double forward, double backward) {
    if (action.kind == StageAction::Kind::forward) return one_kernel(forward, 100);
    if (action.kind == StageAction::Kind::backward) return one_kernel(backward, 50);
    if (action.kind == StageAction::Kind::exchange) return one_kernel(4, 10, 1);
    return {};
  }
  [[nodiscard]] PipelineTimeline run(const PipelineOptions& options, std::size_t shown) const {
    return run_pipeline(classes, class_of, shape, gpu_without_gaps(), host_without_costs(), options, shown);
  }
};

std::string text_of(const PipelineTimeline& found) {
  std::string text;
  for (const StageTime& rank : found.ranks)
    text += fmt::format("step {}, busy {}, starved {}, transfers {}, bubble {}, host done {} before\n", us(rank.step),
                        us(rank.busy), us(rank.starved), us(rank.transfers), us(rank.bubble), us(rank.host_end));
  for (const auto& lane : found.lanes) {
    for (const StagePass& pass : lane)
      text += fmt::format("{} {}-{} ", parallel::to_string(pass.action), us(pass.start), us(pass.end));
    text += '\n';
  }
  return text;
}

std::string text_of(const std::vector<KernelSpan>& kernels) {
  std::string text;
  for (const KernelSpan& one : kernels)
    text += fmt::format("{}: {} {}-{}, held {}, exposed {}, taken {}, most {} in run {}\n", one.stream, us(one.issued),
                        us(one.start), us(one.end), us(one.held), us(one.exposed), us(one.taken), us(one.most_exposed),
                        one.worst_run);
  return text;
}

// Activations take 4 us, gradients 3 us. In a steady step, in us from the begin of the first rank's:
//
//   first   F0 0-10, F1 10-20, each sent when it is done; B0 70-90 when its gradient is there, B1 95-115
//   second  F0 14-26 when its activation is there, F1 30-42: its activation could be sent from 20 on, but is received
//   from
//           26 on; B0 42-67, B1 67-92, whose gradient is on its way until 95
//
// The second rank's step is as long: it begins at -20, when the last gradient of the step before has gone.
TEST(PipelineTimeline, OfTwoRanksByHand) {
  const TwoRanks pipeline(PipelineSchedule::gpipe);
  PipelineOptions options;
  options.transfer_time = [](std::size_t from, std::size_t) { return microseconds(from == 0 ? 4 : 3); };
  const PipelineTimeline found = pipeline.run(options, 0);
  EXPECT_EQ(us(found.step), "115");
  EXPECT_EQ(found.busiest, 1u);
  EXPECT_EQ(text_of(found),
            "step 115, busy 60, starved 0, transfers 6, bubble 49, host done 0 before\n"
            "step 115, busy 74, starved 0, transfers 11, bubble 30, host done 0 before\n"
            "0F0 0-10 0F1 10-20 0B0 70-90 0B1 95-115 \n"
            "1F0 14-26 1F1 30-42 1B0 42-67 1B1 67-92 \n");
  // F0, its sending, F1, its sending, the receiving of a gradient, B0, again, B1.
  EXPECT_EQ(text_of(found.shown.kernels),
            "0: 0 0-10, held 0, exposed 10, taken 10, most 10 in run 0\n"
            "1: 10 10-14, held 0, exposed 0, taken 4, most 0 in run 0\n"
            "0: 0 10-20, held 0, exposed 10, taken 10, most 10 in run 0\n"
            "1: 20 26-30, held 0, exposed 4, taken 4, most 4 in run 0\n"
            "1: 30 67-70, held 0, exposed 3, taken 3, most 3 in run 0\n"
            "0: 0 70-90, held 0, exposed 20, taken 20, most 20 in run 0\n"
            "1: 90 92-95, held 0, exposed 3, taken 3, most 3 in run 0\n"
            "0: 0 95-115, held 0, exposed 20, taken 20, most 20 in run 0\n");
  const Timeline& line = found.shown;
  EXPECT_EQ(us(line.step), "115");
  EXPECT_EQ(us(line.host), "0");
  EXPECT_EQ(us(line.host_issue), "115") << "it waits for the GPU";
  EXPECT_EQ(us(line.gpu_busy), "70");
  EXPECT_EQ(us(line.idle), "45");
  EXPECT_EQ(us(line.starved), "0");
  EXPECT_EQ(us(line.host_begin), "0");
  EXPECT_EQ(us(line.held), "0");
  EXPECT_EQ(line.repeat.launches.times, 1);
  EXPECT_EQ(us(line.repeat.host_end), "115");
  EXPECT_EQ(us(line.repeat.gpu_end), "115");
  EXPECT_NEAR(line.clock.value(), 1e9, 1e-3);
  EXPECT_EQ(line.settled, Hertz{1e9});
  EXPECT_NEAR(line.sm_utilization, (20 + 0.5 * 40 + 0.1 * 10) / 115, 1e-9);
  EXPECT_FALSE(line.host_bound);
  EXPECT_EQ(line.steps_run, 4) << "the third is as the second, and one is looked at";
  // Shown from the second rank, whose step begins 20 us earlier.
  const std::string second = text_of(pipeline.run(options, 1));
  EXPECT_EQ(second.substr(second.find("0F0")),
            "0F0 20-30 0F1 30-40 0B0 90-110 0B1 115-135 \n"
            "1F0 34-46 1F1 50-62 1B0 62-87 1B1 87-112 \n");
}

// Without a table of transfers they take as long as their kernels, gradients too.
TEST(PipelineTimeline, TransfersTakeTheirKernelsTimes) {
  EXPECT_EQ(text_of(TwoRanks(PipelineSchedule::gpipe).run({}, 0)),
            "step 116, busy 60, starved 0, transfers 8, bubble 48, host done 0 before\n"
            "step 116, busy 74, starved 0, transfers 12, bubble 30, host done 0 before\n"
            "0F0 0-10 0F1 10-20 0B0 71-91 0B1 96-116 \n"
            "1F0 14-26 1F1 30-42 1B0 42-67 1B1 67-92 \n");
}

// 1F1B: the first rank's second activation and the first gradient go in one batch, from 51 to 55.
TEST(PipelineTimeline, OfTwoRanksThatSendAndReceiveInOneBatch) {
  EXPECT_EQ(text_of(TwoRanks(PipelineSchedule::one_forward_one_backward).run({}, 0)),
            "step 116, busy 60, starved 0, transfers 8, bubble 48, host done 0 before\n"
            "step 116, busy 74, starved 0, transfers 12, bubble 30, host done 0 before\n"
            "0F0 0-10 0F1 10-20 0B0 55-75 0B1 96-116 \n"
            "1F0 14-26 1B0 26-51 1F1 55-67 1B1 67-92 \n");
}

// Of a batch whose transfers take 4 and 3 us, as long as the longer is on its way what waits for it waits for a
// transfer.
TEST(PipelineTimeline, ABatchIsOnItsWayAsLongAsItsLastTransfer) {
  PipelineOptions options;
  options.transfer_time = [](std::size_t from, std::size_t) { return microseconds(from == 0 ? 4 : 3); };
  const PipelineTimeline found = TwoRanks(PipelineSchedule::one_forward_one_backward).run(options, 0);
  EXPECT_EQ(text_of(found),
            "step 115, busy 60, starved 0, transfers 7, bubble 48, host done 0 before\n"
            "step 115, busy 74, starved 0, transfers 11, bubble 30, host done 0 before\n"
            "0F0 0-10 0F1 10-20 0B0 55-75 0B1 95-115 \n"
            "1F0 14-26 1B0 26-51 1F1 55-67 1B1 67-92 \n");
  EXPECT_EQ(us(found.shown.kernels[3].start), "51") << "the activation and the gradient";
  EXPECT_EQ(us(found.shown.kernels[3].end), "55");
}

/// Each kernel takes as many us as lie between two.
MadeAction random_action(Draws& draws, const std::array<double, 2>& lasts) {
  MadeAction made;
  for (std::size_t i = 0, count = 1 + draws.index(4); i < count; ++i) {
    if (draws.index(2) == 0)
      made.actions.push_back({Of::host, draws.index(2) == 0 ? HostClass::linear : HostClass::pointwise, 0, 1});
    made.actions.push_back({Of::launch, HostClass::other, 0});
    made.us.push_back(draws.between(lasts[0], lasts[1]));
    made.blocks.push_back(1 + static_cast<std::int64_t>(draws.index(150)));
  }
  made.actions.insert(made.actions.begin(), {Of::host, HostClass::pointwise, 0, 1});
  return made;
}

/// `issued`: when launch calls returned too.
void expect_same_lines(const Timeline& a, const Timeline& b, bool issued) {
  const double step = b.step.value(), close = 1e-9 * step;
  EXPECT_NEAR(a.step.value(), step, close);
  EXPECT_NEAR(a.host.value(), b.host.value(), close);
  EXPECT_NEAR(a.gpu_busy.value(), std::min(step, b.gpu_busy.value()), close);
  EXPECT_NEAR(a.idle.value(), b.idle.value(), close);
  EXPECT_NEAR(a.starved.value(), b.starved.value(), close);
  EXPECT_NEAR(a.host_begin.value(), b.host_begin.value(), close);
  EXPECT_NEAR(a.clock.value(), b.clock.value(), 1e-6 * b.clock.value());
  EXPECT_NEAR(a.settled.value(), b.settled.value(), 1e-6 * b.settled.value());
  EXPECT_NEAR(a.held.value(), b.held.value(), 1e-6 * step);
  EXPECT_NEAR(a.power.value(), b.power.value(), 1e-6 * b.power.value());
  EXPECT_NEAR(a.sm_utilization, b.sm_utilization, 1e-8);
  EXPECT_EQ(a.host_bound, b.host_bound);
  EXPECT_EQ(a.kernel_count(), b.kernel_count());
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    SCOPED_TRACE(i);
    if (issued) {
      EXPECT_NEAR(a.kernels[i].issued.value(), b.kernels[i].issued.value(), close);
    }
    EXPECT_NEAR(a.kernels[i].start.value(), b.kernels[i].start.value(), close);
    EXPECT_NEAR(a.kernels[i].end.value(), b.kernels[i].end.value(), close);
    EXPECT_EQ(a.kernels[i].stream, b.kernels[i].stream);
    EXPECT_NEAR(a.kernels[i].held.value(), b.kernels[i].held.value(), 1e-6 * step);
  }
}

// 1F1B of one rank is a forward and a backward pass a micro-batch, one after the other.
TEST(PipelineTimeline, OfOneRankIsThatOfItsStepAlone) {
  const std::uint64_t seed = changing_seed();
  Draws draws(seed);
  for (int turn = 0; turn < 18; ++turn) {
    SCOPED_TRACE(::testing::Message() << "RIDGELINE_TEST_SEED=" << seed << ", step " << turn);
    // Of many micro-batches not all are played: those that are must show whether the host or the GPU is slower, and
    // what a host far ahead issues behind them is not known exactly.
    const bool many = turn % 3 == 0, gpu_slower = many && turn % 2 == 1;
    const std::array lasts = gpu_slower ? std::array{60.0, 120.0}
                             : many     ? std::array{0.05, 0.2}
                                        : std::array{1.0, 60.0};
    const PipelineShape shape{PipelineSchedule::one_forward_one_backward, 1, 1,
                              static_cast<std::int32_t>(1 + draws.index(many ? 600 : 40))};
    const MadeAction forward = random_action(draws, lasts), backward = random_action(draws, lasts);
    MadeAction last = random_action(draws, lasts);
    last.actions.push_back({Of::wait});
    const MadeRank rank(
        shape, 0, random_action(draws, lasts),
        [&](const StageAction& action) {
          return action.kind == StageAction::Kind::forward ? forward : action.computes() ? backward : MadeAction{};
        },
        last);
    Gpu gpu = round_gpu();
    gpu.launch.queue_depth = 1 << 20;
    gpu.power.dram = JoulesPerByte(draws.between(1e-10, 1e-7));
    PipelineOptions options;
    options.longest_stretch = 1;
    options.timeline.throttle = draws.index(3) != 0;
    const std::size_t class_of = 0;
    const PipelineTimeline found =
        run_pipeline({&rank.own_class(), 1}, {&class_of, 1}, shape, gpu, round_host(), options, 0);
    StepProgram alone = rank.program();
    alone.stage_actions.clear();
    expect_same_lines(found.shown, run_timeline(alone, rank.times(), gpu, round_host(), options.timeline), !gpu_slower);
    ASSERT_EQ(found.ranks.size(), 1u);
    const StageTime& one = found.ranks.front();
    EXPECT_NEAR(one.step.value(), found.step.value(), 1e-12);
    EXPECT_NEAR((one.busy + one.starved).value(),
                found.step.value() - 1e-6 * static_cast<double>(found.shown.kernel_count()), 1e-9 * found.step.value())
        << "but for a gap of 1 us a kernel";
    EXPECT_EQ(one.transfers, Seconds{});
    EXPECT_EQ(one.bubble, Seconds{});
    if (::testing::Test::HasFailure()) return;
  }
}

/// Durations by what an action is: its kind and part, and whether its micro-batch is the first, the last or another.
MadeAction by_kind(const StageAction& action, const PipelineShape& shape, std::int32_t micro_batches) {
  if (action.kind == StageAction::Kind::exchange)
    return one_kernel(1.5 * static_cast<double>(action.transfers.size()) + 0.5 * action.transfers.front().gradient, 10,
                      1);
  if (action.kind == StageAction::Kind::wait) return {};
  const std::int32_t part = action.stage / shape.ranks;
  const int when = action.micro_batch == 0 ? 0 : action.micro_batch + 1 == micro_batches ? 2 : 1;
  const double us =
      10.0 * (1 + static_cast<int>(action.kind)) + 3.0 * part + (action.computes() ? static_cast<double>(when) : 0.0);
  return one_kernel(us, 40);
}

// Ranks between the first and the last do the same: any of them may stand for the others.
TEST(PipelineTimeline, AnyRankOfAClassStandsForTheOthers) {
  for (const bool loops : {false, true})
    for (const std::int32_t micro_batches : {4, 8, 24, 100}) {
      SCOPED_TRACE(::testing::Message() << loops << ' ' << micro_batches);
      const PipelineShape shape{loops ? PipelineSchedule::interleaved : PipelineSchedule::one_forward_one_backward, 4,
                                loops ? 2 : 1, micro_batches};
      const std::int32_t traced = parallel::shorten(shape).micro_batches;
      std::vector<std::unique_ptr<MadeRank>> ranks;
      std::vector<PipelineClass> classes;
      for (std::size_t rank = 0; rank < 4; ++rank) {
        ranks.push_back(std::make_unique<MadeRank>(
            shape, rank, MadeAction{}, [&](const StageAction& action) { return by_kind(action, shape, traced); },
            kHostWaits));
        classes.push_back(ranks.back()->own_class());
      }
      const std::vector<std::size_t> own{0, 1, 2, 3};
      const Gpu gpu = gpu_without_gaps();
      const PipelineTimeline each = run_pipeline(classes, own, shape, gpu, host_without_costs(), {}, 1);
      for (const std::size_t stands : {1, 2}) {
        const std::vector<std::size_t> shared{0, stands, stands, 3};
        const PipelineTimeline one = run_pipeline(classes, shared, shape, gpu, host_without_costs(), {}, stands);
        EXPECT_NEAR(one.step.value(), each.step.value(), 1e-12);
        for (std::size_t rank = 0; rank < 4; ++rank) {
          ASSERT_EQ(one.lanes[rank].size(), each.lanes[rank].size());
          const Seconds moved = one.lanes[0][0].start - each.lanes[0][0].start;
          for (std::size_t i = 0; i < one.lanes[rank].size(); ++i) {
            EXPECT_NEAR(one.lanes[rank][i].start.value(), (each.lanes[rank][i].start + moved).value(), 1e-12);
            EXPECT_NEAR(one.lanes[rank][i].end.value(), (each.lanes[rank][i].end + moved).value(), 1e-12);
          }
        }
      }
    }
}

}  // namespace
}  // namespace ridgeline
