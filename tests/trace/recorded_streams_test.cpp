// Steps of several streams: they overlap in a replay as they did in the recording, whatever their kernels are called.
// Recordings are played by the rule of streams and events, so that the right answer is known; their kernels have no
// rule and keep their time, so that nothing but the overlap can be wrong.
#include "sim/trace/profiler/recorded_streams.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/answer/replay.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/profiler/busy_times.h"
#include "tests/support/temporary_path.h"
#include "tests/support/trace_lines.h"

namespace ridgeline {
namespace {

constexpr int kMain = 7;

/// A recording that is played while it is written. The host is far ahead of the GPU.
class PlayedRecording {
 public:
  enum class Waits { in_full, calls_alone };
  explicit PlayedRecording(Waits waits) : waits_(waits) {}

  void run(int stream, double microseconds, const std::string& name = "mine_kernel", const char* category = "kernel") {
    const double begin = std::max(ends_[stream] + 1.0, ready_[stream] + 2.0), end = begin + microseconds;
    event("cpu_op", "mine::op", host_, 6, 1, 1, fmt::format("\"External id\": {}", ++correlation_));
    event("cuda_runtime", "cudaLaunchKernel", host_ + 1, 4, 1, 1, fmt::format("\"correlation\": {}", correlation_));
    event(category, name, begin, microseconds, 0, stream,
          fmt::format("\"stream\": {}, \"correlation\": {}, \"bytes\": 4000000", stream, correlation_));
    spans_.emplace_back(begin, end);
    ends_[stream] = end;
    host_ += 8;
  }
  /// `waiting` waits for all that `stream` was given so far.
  void wait(int waiting, int stream) {
    const int recorded = call("cudaEventRecord"), waits = call("cudaStreamWaitEvent");
    ready_[waiting] = std::max(ready_[waiting], std::max(ends_[stream], ready_[stream]));
    if (waits_ == Waits::in_full)
      event("cuda_sync", "Stream Wait Event", host_ - 2, 0, 0, waiting,
            fmt::format("\"cuda_sync_kind\": \"Stream Wait Event\", \"stream\": {}, \"correlation\": {}, "
                        "\"wait_on_stream\": {}, \"wait_on_cuda_event_record_corr_id\": {}",
                        waiting, waits, stream, recorded));
  }
  [[nodiscard]] double span() const {
    double first = spans_.front().first, last = 0.0;
    for (const auto& [begin, end] : spans_) first = std::min(first, begin), last = std::max(last, end);
    return (last - first) * 1e-6;
  }
  [[nodiscard]] double busy() const { return trace::union_of(spans_) * 1e-6; }
  [[nodiscard]] ReplayResult replayed() const {
    const std::string path = temporary_path("streams.json");
    std::ofstream(path) << "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\"}],\n\"traceEvents\": [\n"
                        << events_ << "]}\n";
    ScenarioSource source;
    source.file = path;
    source.recording = true;
    source.overrides = {{"hardware", "nvidia-h200-sxm-141gb", ""}};
    return predict_replay(load_scenario(source), "analytic");
  }
  void expect_replayed(const std::string& what) const {
    constexpr double kNear = 0.03;
    const ReplayResult result = replayed();
    EXPECT_NEAR(result.prediction.step.time.value(), span(), kNear * span()) << what;
    EXPECT_NEAR(result.prediction.step.gpu_busy.value(), busy(), kNear * busy()) << what;
    EXPECT_NEAR(result.measured.busy, busy(), 1e-9) << what;
  }

 private:
  int call(const std::string& name) {
    event("cuda_runtime", name, host_, 1, 1, 1, fmt::format("\"correlation\": {}", ++correlation_));
    host_ += 2;
    return correlation_;
  }
  void event(const std::string& category, const std::string& name, double at, double duration, int process, int thread,
             const std::string& arguments) {
    events_ += (events_.empty() ? "" : ",\n") +
               fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                           category, name, process, thread, at, duration, arguments);
  }

  Waits waits_;
  std::string events_;
  std::map<int, double> ends_, ready_;
  std::vector<std::pair<double, double>> spans_;
  double host_ = 0.0;
  int correlation_ = 0;

 public:
  /// When the GPU comes to the first kernel.
  void begin_at(double at) {
    for (const int stream : {kMain, 20, 24}) ends_[stream] = at;
  }
};

constexpr double kBegin = 5000.0;
constexpr PlayedRecording::Waits kWays[] = {PlayedRecording::Waits::in_full, PlayedRecording::Waits::calls_alone};

TEST(RecordedStreams, PrefetchedCopiesRunBesideTheNetwork) {
  for (const auto way : kWays)
    for (const double copy : {60.0, 190.0, 300.0}) {
      PlayedRecording recording(way);
      recording.begin_at(kBegin);
      recording.run(20, copy, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy");
      for (int i = 0; i < 12; ++i) {
        recording.wait(kMain, 20);
        recording.run(kMain, 200);
        if (i < 11) recording.run(20, copy, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy");
      }
      recording.expect_replayed(fmt::format("copies of {} us", copy));
    }
}

TEST(RecordedStreams, WhatWaitsForEachOtherRunsOneBehindAnother) {
  for (const auto way : kWays)
    for (const char* name :
         {"dispatch", "void deep_ep::intranode::dispatch<8, 768>(int4*)", "ncclDevKernel_SendRecv(int)"}) {
      PlayedRecording recording(way);
      recording.begin_at(kBegin);
      for (int i = 0; i < 8; ++i) {
        recording.wait(20, kMain);
        recording.run(20, 150, name);
        recording.wait(kMain, 20);
        recording.run(kMain, 200);
      }
      recording.expect_replayed(fmt::format("{} in turn", name));
    }
}

// Tokens go to experts and come back beside GEMMs, as DeepEP sends them, while batches are copied in.
TEST(RecordedStreams, ExchangesAndCopiesRunBesideUntilTheyAreWaitedFor) {
  for (const auto way : kWays)
    for (const char* name :
         {"exchange", "void deep_ep::internode::combine<8, 768>(int4*)", "ncclDevKernel_SendRecv(int)"}) {
      PlayedRecording recording(way);
      recording.begin_at(kBegin);
      for (int i = 0; i < 12; ++i) {
        recording.wait(20, kMain);
        recording.run(20, 180.0 + 9.0 * i, name);
        recording.run(kMain, 140);
        recording.run(24, 90, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy");
        recording.run(kMain, 60);
        recording.wait(kMain, 20);
        recording.run(kMain, 150);
        recording.wait(20, kMain);
        recording.run(20, 120, name);
        recording.wait(kMain, 20);
      }
      recording.run(kMain, 50);
      recording.expect_replayed(name);
    }
}

TEST(RecordedStreams, CopiesGoBothWaysBesideTheNetwork) {
  for (const auto way : kWays) {
    PlayedRecording recording(way);
    recording.begin_at(kBegin);
    for (int i = 0; i < 10; ++i) {
      recording.run(20, 190, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy");
      recording.wait(kMain, 20);
      recording.run(kMain, 203);
      recording.wait(24, kMain);
      recording.run(24, 170, "Memcpy DtoH (Device -> Pinned)", "gpu_memcpy");
    }
    recording.wait(kMain, 24);
    recording.expect_replayed("both ways");
  }
}

// Waits in full say everything; of calls alone those of two streams can be told.
TEST(RecordedStreams, StepsMadeByChanceTakeAsLongAsTheyDid) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const bool told = seed % 2 == 0;
    PlayedRecording recording(told ? PlayedRecording::Waits::in_full : PlayedRecording::Waits::calls_alone);
    recording.begin_at(kBegin);
    const int streams[] = {kMain, 20, 24};
    const unsigned used = told ? 3 : 2;
    for (int i = 0; i < 60; ++i) {
      const int stream = streams[random() % used];
      if (const int other = streams[random() % used]; random() % 3 == 0 && other != stream)
        recording.wait(stream, other);
      recording.run(stream, 40.0 + static_cast<double>(random() % 300) + (stream == kMain ? 100.0 : 0.0),
                    stream == kMain ? "mine_kernel" : "their_kernel");
    }
    recording.expect_replayed(fmt::format("seed {}", seed));
  }
}

// Without any call that makes a stream wait: streams run freely but where one stood idle until another was done.
TEST(RecordedStreams, WithoutCallsTheTimesTell) {
  trace::TraceLines lines;
  lines.op(0, 6, "mine::a").launch(1, 1000, 100, 1);
  lines.op(10, 6, "mine::b").call(11, "cudaLaunchKernel", 2).gpu(1101, 50, "b", 2, 20);
  lines.op(20, 6, "mine::c").launch(21, 1101, 100, 3);
  lines.op(30, 6, "mine::d").call(31, "cudaLaunchKernel", 4).gpu(1152, 90, "d", 4, 20);
  const OpTrace trace = lines.read().recording.trace;
  EXPECT_EQ(trace.streams, (std::vector<std::string>{"default", "stream 20"}));
  const std::string text = trace::listing_of(trace);
  const std::size_t a = text.find("mine::a"), b = text.find("mine::b"), d = text.find("mine::d");
  EXPECT_NE(text.substr(a, b - a).find("1 waits for"), std::string::npos) << text;
  EXPECT_EQ(text.substr(b, d - b).find(" waits for"), std::string::npos) << text;
}

// The host waits for the stream that its call names; where it names none, not for what still ran when it returned.
TEST(RecordedStreams, TheHostWaitsForOneOfThem) {
  for (const bool told : {false, true}) {
    trace::TraceLines lines;
    lines.op(0, 6, "mine::a").launch(1, 10, 500, 1);
    lines.op(10, 6, "mine::b").call(11, "cudaLaunchKernel", 2).gpu(20, 30, "b", 2, 20);
    lines.call(20, "cudaStreamSynchronize", 3, 1, 40);
    if (told) lines.gpu(21, 39, "Stream Sync", 3, 20, "cuda_sync");
    lines.op(70, 6, "mine::c").launch(71, 511, 10, 4);
    const std::string text = trace::listing_of(lines.read().recording.trace);
    EXPECT_NE(text.find("host waits for"), std::string::npos) << text;
    EXPECT_EQ(text.find("\nwait\n"), std::string::npos) << text;
  }
}

// Kernels that a library runs on streams of its own inside one operator belong to that operator's call.
TEST(RecordedStreams, OneCallIsOnOneStream) {
  trace::TraceLines lines;
  lines.op(0, 90, "aten::mm", trace::tensors({"[3, 7]", "[7, 5]"})).launch(10, 100, 20, 1);
  lines.call(20, "cudaLaunchKernel", 2).gpu(105, 20, "part", 2, 8);
  const OpTrace trace = lines.read().recording.trace;
  EXPECT_TRUE(trace.streams.empty());
  EXPECT_EQ(trace.calls.size(), 1u);
}

}  // namespace
}  // namespace ridgeline
