// What of a recording can be compared with kernels that run alone: not what shared the GPU with others, and less what
// the recording adds to every kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "sim/answer/replay.h"
#include "sim/input/text_source.h"
#include "sim/report/replay_report.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/profiler/busy_times.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRecording =
    std::string(RIDGELINE_SOURCE_DIR) + "/measurements/h200/traces/nanogpt-char-flash-bf16.json.gz";

/// The recording with its kernels changed.
ReplayResult replayed(const std::function<void(json& events)>& change) {
  json trace = json::parse(read_text(kRecording));
  change(trace["traceEvents"]);
  const std::string path = temporary_path("changed.json");
  std::ofstream(path) << trace;
  ScenarioSource source;
  source.file = path;
  source.recording = true;
  source.overrides = {{"hardware", "nvidia-h200-sxm-141gb", ""}};
  return predict_replay(load_scenario(source), "analytic");
}
void of_kernels(json& events, const std::function<void(json& kernel, std::size_t number)>& change) {
  std::size_t number = 0;
  for (json& event : events)
    if (event.value("cat", "") == "kernel") change(event, number++);
}
double error(const ComparedPart& part) { return ratio(part.predicted, part.measured) - 1.0; }

TEST(ComparedPart, finds_what_a_recording_adds_to_every_kernel) {
  const ReplayResult plain = replayed([](json&) {});
  EXPECT_LT(plain.compared.added.value(), 0.5e-6);
  EXPECT_THAT(replay_text("f", plain, Notes::folded), Not(HasSubstr("recording adds")));
  const ReplayResult slow = replayed([](json& events) {
    of_kernels(events, [](json& kernel, std::size_t) { kernel["dur"] = kernel["dur"].get<double>() + 2.0; });
  });
  EXPECT_NEAR(slow.compared.added.value(), plain.compared.added.value() + 2e-6, 0.1e-6);
  EXPECT_NEAR(error(slow.compared), error(plain.compared), 0.05);
  EXPECT_THAT(replay_text("f", slow, Notes::folded), ::testing::ContainsRegex("the recording adds (1[.]9|2[.]0)"));
  // Twice as long is no addition to each: long kernels show it.
  const ReplayResult twice = replayed([](json& events) {
    of_kernels(events, [](json& kernel, std::size_t) { kernel["dur"] = kernel["dur"].get<double>() * 2.0; });
  });
  EXPECT_LT(error(twice.compared), -0.2);
}

TEST(ComparedPart, is_no_better_than_the_half_that_did_not_say_what_is_added) {
  const ReplayResult plain = replayed([](json&) {});
  double understood = 0.0;
  for (const ReplayedOp& op : plain.ops)
    if (op.understood) understood += op.measured.value();
  EXPECT_GT(plain.compared.measured.value(), 0.3 * understood);
  EXPECT_LT(plain.compared.measured.value(), 0.7 * understood);
}

TEST(ComparedPart, leaves_out_what_ran_beside_kernels_of_another_stream) {
  const ReplayResult shared = replayed([](json& events) {
    double first = 1e300;
    for (const json& event : events)
      if (event.value("cat", "") == "cpu_op") first = std::min(first, event["ts"].get<double>());
    json others = json::array();
    of_kernels(events, [&](json& kernel, std::size_t number) {
      if (number % 8 != 0) return;
      kernel["dur"] = kernel["dur"].get<double>() * 3.0;
      json other = kernel;  // of no operator, launched long before
      const auto correlation = static_cast<std::int64_t>(1'000'000'000 + number);
      other["name"] = "ncclKernel_of_another_stream";
      other["args"] = {{"stream", 99}, {"device", kernel["args"]["device"]}, {"correlation", correlation}};
      others.push_back(std::move(other));
      others.push_back({{"ph", "X"},
                        {"cat", "cuda_runtime"},
                        {"name", "cudaLaunchKernel"},
                        {"pid", 1},
                        {"tid", 1},
                        {"ts", first - 10.0},
                        {"dur", 1.0},
                        {"args", {{"correlation", correlation}}}});
    });
    for (json& other : others) events.push_back(std::move(other));
  });
  EXPECT_GT(shared.compared.beside, 0.3);
  EXPECT_NEAR(error(shared.compared), error(replayed([](json&) {}).compared), 0.15);
  EXPECT_THAT(replay_text("f", shared, Notes::folded), HasSubstr("ran beside kernels of other streams"));
}

TEST(ComparedPart, kernels_share_where_their_streams_differ_and_their_device_does_not) {
  const auto at = [](double begin, double end, std::int64_t stream, std::int64_t device,
                     trace::GpuEvent::Kind kind = trace::GpuEvent::Kind::kernel) {
    trace::GpuEvent event;
    event.kind = kind, event.begin = begin, event.end = end, event.stream = stream, event.device = device;
    return event;
  };
  using Kind = trace::GpuEvent::Kind;
  EXPECT_THAT(trace::times_beside_others({at(0, 10, 7, 0), at(4, 12, 8, 0), at(20, 30, 7, 0), at(22, 24, 7, 0)}),
              ElementsAre(6, 6, 0, 0));
  EXPECT_THAT(trace::times_beside_others({at(0, 10, 7, 0), at(0, 10, 8, 1), at(0, 10, 9, 0, Kind::copy)}),
              ElementsAre(0, 0, 0));
  EXPECT_THAT(trace::times_beside_others({at(0, 10, 7, 0), at(0, 9, 8, 0), at(1, 9, 9, 0)}), ElementsAre(10, 9, 8));
}

}  // namespace
}  // namespace ridgeline
