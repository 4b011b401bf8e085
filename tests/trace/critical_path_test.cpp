// The critical path of recordings made by hand: kernels on a busy GPU, the host on an idle one, another stream where
// one waits for it.
#include "sim/trace/profiler/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace ridgeline::trace {
namespace {

struct Made {
  ProfilerEvents events;
  std::vector<double> issued;

  void call(const std::string& name, double begin, double end, std::int64_t correlation = -1) {
    RuntimeEvent call;
    call.begin = begin, call.end = end, call.name = events.names.add(name), call.correlation = correlation;
    events.runtime.push_back(call);
  }
  void kernel(double launched, double begin, double end, const std::string& name = "k", std::int64_t stream = 7,
              GpuEvent::Kind kind = GpuEvent::Kind::kernel) {
    const auto correlation = static_cast<std::int64_t>(issued.size()) + 1;
    call("cudaLaunchKernel", launched, launched + 4.0, correlation);
    GpuEvent event;
    event.kind = kind, event.begin = begin, event.end = end, event.name = events.names.add(name);
    event.stream = stream, event.correlation = correlation;
    events.gpu.push_back(event);
    issued.push_back(launched);
  }
  void operation(const std::string& name, double begin, double end) {
    OperatorEvent event;
    event.begin = begin, event.end = end, event.name = events.names.add(name);
    events.operators.push_back(event);
  }
  [[nodiscard]] CriticalPath path() const {
    std::vector<std::size_t> items(events.gpu.size());
    std::iota(items.begin(), items.end(), std::size_t{0});
    return critical_path(events, items, issued, {0.0, 1e9, "all", false});
  }
};

double seconds_of(const CriticalPath& path, const std::string& name) {
  double sum = 0.0;
  for (const CriticalPath::Part& part : path.parts) sum += part.name == name ? part.seconds : 0.0;
  return sum * 1e6;
}

void expect_whole(const CriticalPath& path) {
  double sum = 0.0;
  for (const CriticalPath::Part& part : path.parts) sum += part.seconds;
  EXPECT_NEAR(sum, path.seconds, 1e-9) << "parts add up to the path";
}

TEST(CriticalPath, OfABusyGpuIsItsKernels) {
  Made made;
  for (int i = 0; i < 10; ++i) made.kernel(10.0 * i, 20.0 + 101.0 * i, 120.0 + 101.0 * i, i % 2 == 0 ? "even" : "odd");
  const CriticalPath path = made.path();
  expect_whole(path);
  EXPECT_NEAR(seconds_of(path, "even"), 500.0, 1e-6);
  EXPECT_NEAR(seconds_of(path, "odd"), 500.0, 1e-6);
  EXPECT_NEAR(path.seconds * 1e6, 20.0 + 10 * 100.0 + 9 * 1.0, 1e-6) << "from the begin of the step";
  EXPECT_LT(path.of(PathKind::host) * 1e6, 21.0);
}

TEST(CriticalPath, OfAnIdleGpuIsTheHostByOperator) {
  Made made;
  for (int i = 0; i < 10; ++i) {
    const double at = 1000.0 * i;
    made.operation("aten::slow", at, at + 900.0);
    made.kernel(at + 890.0, at + 900.0, at + 910.0);
  }
  const CriticalPath path = made.path();
  expect_whole(path);
  EXPECT_NEAR(path.seconds * 1e6, 9910.0, 1e-6);
  EXPECT_GT(seconds_of(path, "aten::slow"), 8900.0);
  EXPECT_NEAR(seconds_of(path, "k"), 10.0, 1e-6) << "the last one alone ends the step";
}

TEST(CriticalPath, FollowsTheStreamThatWasWaitedFor) {
  Made made;
  made.kernel(0.0, 10.0, 110.0, "first");
  made.kernel(10.0, 112.0, 900.0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 20);
  made.kernel(20.0, 112.0, 212.0, "beside");
  made.kernel(30.0, 903.0, 1000.0, "behind");
  const CriticalPath path = made.path();
  expect_whole(path);
  EXPECT_NEAR(path.of(PathKind::collective) * 1e6, 788.0, 1e-6);
  EXPECT_EQ(seconds_of(path, "beside"), 0.0);
  EXPECT_NEAR(seconds_of(path, "first"), 100.0, 1e-6);
  EXPECT_NEAR(path.of(PathKind::wait) * 1e6, 3.0 + 2.0, 1e-6);
}

TEST(CriticalPath, GoesOverTheHostsWaitToWhatItWaitedFor) {
  Made made;
  made.kernel(0.0, 10.0, 500.0, "long");
  made.call("cudaStreamSynchronize", 20.0, 505.0);
  made.kernel(800.0, 810.0, 900.0, "late");
  const CriticalPath path = made.path();
  expect_whole(path);
  EXPECT_NEAR(seconds_of(path, "long"), 490.0, 1e-6);
  EXPECT_NEAR(seconds_of(path, "cudaStreamSynchronize"), 5.0, 1e-6);
  EXPECT_NEAR(path.of(PathKind::host) * 1e6, 299.0 + 4.0, 1e-6)
      << "from the wait's end to the launch call's, and the first call";
}

TEST(CriticalPath, OfAnyRecordingIsNoLongerThanItsSpan) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Made made;
    double host = 0.0;
    std::vector<double> ends(3, 0.0);
    for (int i = 0; i < 60; ++i) {
      host += static_cast<double>(random() % 50);
      const std::size_t stream = random() % 3;
      double begin = std::max(host + 4.0, ends[stream]);
      if (random() % 4 == 0) begin = std::max(begin, ends[random() % 3] + 2.0);
      ends[stream] = begin + static_cast<double>(random() % 80);
      made.kernel(host, begin, ends[stream], "k", static_cast<std::int64_t>(stream));
      if (random() % 8 == 0) {
        const double waited = std::max({host + 5.0, ends[0], ends[1], ends[2]});
        made.call("cudaDeviceSynchronize", host + 4.0, waited);
        host = waited;
      }
    }
    std::stable_sort(made.events.gpu.begin(), made.events.gpu.end(),
                     [](const GpuEvent& a, const GpuEvent& b) { return a.begin < b.begin; });
    for (std::size_t g = 0; g < made.events.gpu.size(); ++g)
      for (const RuntimeEvent& call : made.events.runtime)
        if (call.correlation == made.events.gpu[g].correlation) made.issued[g] = call.begin;
    const CriticalPath path = made.path();
    expect_whole(path);
    const double last = *std::max_element(ends.begin(), ends.end());
    EXPECT_LE(path.seconds * 1e6, last + 1e-6);
    for (const CriticalPath::Part& part : path.parts) EXPECT_GT(part.seconds, 0.0);
  }
}

}  // namespace
}  // namespace ridgeline::trace
