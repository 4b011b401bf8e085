// Times of a profiler's trace, worked out by hand: the host's without the profiler, kernels beside others, steps, what
// stands around what, and the lists of optimizers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "sim/trace/profiler/busy_times.h"
#include "sim/trace/profiler/host_clock.h"
#include "sim/trace/profiler/operator_stacks.h"
#include "sim/trace/profiler/optimizer_lists.h"
#include "sim/trace/profiler/profiler_steps.h"
#include "sim/trace/profiler/unrecorded_layouts.h"
#include "sim/trace/profiler/unseen_launches.h"
#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

/// Events made one by one, in the order of their begins.
struct MadeEvents {
  ProfilerEvents events;
  void base(HostEvent& e, double begin, double end, const std::string& name, std::int64_t thread) {
    e.begin = begin, e.end = end, e.thread = thread;
    e.name = events.names.add(name);
  }
  MadeEvents& op(double begin, double end, const std::string& name = "aten::mm", std::int64_t thread = 1) {
    base(events.operators.emplace_back(), begin, end, name, thread);
    return *this;
  }
  MadeEvents& call(double begin, double end, const std::string& name = "cudaLaunchKernel",
                   std::int64_t correlation = -1, std::int64_t thread = 1) {
    base(events.runtime.emplace_back(), begin, end, name, thread);
    events.runtime.back().correlation = correlation;
    return *this;
  }
  MadeEvents& mark(double begin, double end, const std::string& name) {
    base(events.annotations.emplace_back(), begin, end, name, 1);
    return *this;
  }
  MadeEvents& overhead(double begin, double end) {
    base(events.overheads.emplace_back(), begin, end, "", 1);
    return *this;
  }
  MadeEvents& gpu(double begin, double end, std::int64_t stream = 7, GpuEvent::Kind kind = GpuEvent::Kind::kernel,
                  std::int64_t device = 0) {
    GpuEvent& e = events.gpu.emplace_back();
    e.begin = begin, e.end = end, e.stream = stream, e.kind = kind, e.device = device;
    return *this;
  }
  /// Microseconds of the host's work.
  [[nodiscard]] double worked(double begin, double end) const { return HostClock(events).between(begin, end) * 1e6; }
};

constexpr double kOperator = 0.95, kLaunch = 2.4, kSample = 0.8;  // microseconds of the profiler for each

TEST(WorkedTimes, TheProfilersShareOfEveryEventIsTakenOut) {
  MadeEvents made;
  made.op(10, 40).op(20, 30).call(22, 26).call(32, 36, "cudaMemcpyAsync");
  MemoryEvent sample;
  sample.at = 24;
  made.events.memory.push_back(sample);
  EXPECT_NEAR(made.worked(0, 9), 9, 1e-9);
  EXPECT_NEAR(made.worked(0, 10), 10 - kOperator, 1e-9);
  EXPECT_NEAR(made.worked(10, 19), 9, 1e-9) << "what stands at the begin is of the time before";
  EXPECT_NEAR(made.worked(0, 22), 22 - 2 * kOperator, 1e-9);
  EXPECT_NEAR(made.worked(22, 25), 3 - kSample, 1e-9);
  EXPECT_NEAR(made.worked(25, 27), 2 - kLaunch, 1e-9) << "a launch call costs when it ends";
  EXPECT_NEAR(made.worked(0, 100), 100 - 2 * kOperator - 2 * kLaunch - kSample, 1e-9);
  EXPECT_EQ(HostClock(made.events).slowness(), 1.0);
  EXPECT_NEAR(MadeEvents().worked(3, 10), 7, 1e-9);
}

TEST(WorkedTimes, WaitsAreNoWork) {
  for (const char* name : {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize",
                           "cuStreamSynchronize", "cuCtxSynchronize", "cudaMemcpy", "hipStreamSynchronize",
                           "hipDeviceSynchronize", "hipEventSynchronize", "hipMemcpy", "hipMemcpyWithStream"}) {
    EXPECT_TRUE(waits_for_gpu(name)) << name;
    MadeEvents made;
    made.call(10, 15, name);
    EXPECT_NEAR(made.worked(0, 30), 25, 1e-9) << name;
  }
  for (const char* name : {"cudaLaunchKernel", "cudaMemcpyAsync", "hipMemcpyAsync", "cudaStreamWaitEvent", ""})
    EXPECT_FALSE(waits_for_gpu(name)) << name;
  // A launch of up to 20 us is one; beyond that it waited, but for 4.2 us.
  EXPECT_NEAR(MadeEvents().call(10, 30).worked(0, 50), 50 - kLaunch, 1e-9);
  EXPECT_NEAR(MadeEvents().call(10, 31).worked(0, 50), 50 - (21 - 4.2) - kLaunch, 1e-9);
}

TEST(WorkedTimes, OverheadsAreTakenOutOnceAndOfCallsToo) {
  // Two that overlap count as one of 20..50.
  MadeEvents made;
  made.overhead(20, 40).overhead(30, 50);
  EXPECT_NEAR(made.worked(0, 100), 70, 1e-9);
  EXPECT_NEAR(made.worked(0, 25), 20, 1e-9);
  EXPECT_NEAR(made.worked(35, 45), 0, 1e-9);
  EXPECT_NEAR(made.worked(45, 60), 10, 1e-9);
  EXPECT_NEAR(made.worked(50, 60), 10, 1e-9);
  EXPECT_NEAR(made.worked(0, 20), 20, 1e-9);
  MadeEvents inside;
  inside.overhead(20, 50).overhead(30, 40).overhead(60, 70);
  EXPECT_NEAR(inside.worked(0, 100), 60, 1e-9);
  // Of a wait's 30 us the profiler took 10, which are taken out by themselves.
  EXPECT_NEAR(MadeEvents().overhead(20, 30).call(10, 40, "cudaStreamSynchronize").worked(0, 50), 20, 1e-9);
  // A launch of 25 us of which 10 were the profiler's did not wait.
  EXPECT_NEAR(MadeEvents().overhead(20, 30).call(10, 35).worked(0, 50), 50 - 10 - kLaunch, 1e-9);
  // Nor does one wait for less than nothing.
  EXPECT_NEAR(MadeEvents().overhead(0, 50).call(10, 40, "cudaStreamSynchronize").worked(0, 60), 10, 1e-9);
}

TEST(WorkedTimes, AHostIsAsSlowAsItsEmptyTensorsViewsAndLaunches) {
  const auto slowness = [](int calls, double longer, const char* name = "aten::view", double length = 0.94) {
    MadeEvents made;
    for (int i = 0; i < calls; ++i) made.op(100.0 * i, 100.0 * i + longer * length, name);
    return HostClock(made.events).slowness();
  };
  EXPECT_NEAR(slowness(100, 3), 3, 1e-9);
  EXPECT_EQ(slowness(99, 3), 1.0) << "too few say nothing";
  EXPECT_NEAR(slowness(100, 2, "aten::as_strided", 0.33), 2, 1e-9);
  EXPECT_NEAR(slowness(100, 2, "aten::empty", 2.5), 2, 1e-9);
  EXPECT_NEAR(slowness(100, 2, "aten::empty_strided", 2.5), 2, 1e-9);
  EXPECT_EQ(slowness(100, 2, "aten::mm", 2.5), 1.0);
  EXPECT_NEAR(slowness(100, 1, "aten::view", 40), 40 / 0.94, 1e-6);
  EXPECT_EQ(slowness(100, 1, "aten::view", 41), 1.0) << "interrupted";
  EXPECT_EQ(slowness(100, 0), 1.0);
  MadeEvents launches;
  for (int i = 0; i < 50; ++i) launches.call(100.0 * i, 100.0 * i + 2 * 4.3);
  for (int i = 50; i < 100; ++i) launches.call(100.0 * i, 100.0 * i + 2 * 4.0, "cudaLaunchKernelExC");
  EXPECT_NEAR(HostClock(launches.events).slowness(), 2, 1e-9);
  // Half as long on the default host; the profiler's share is said of that.
  EXPECT_NEAR(launches.worked(0, 10000), 5000 - 100 * kLaunch, 1e-6);
  EXPECT_NEAR(launches.worked(20, 80), 30, 1e-9);
  // A launch waited if it took more than twice 20 us.
  MadeEvents longer = launches, just = launches;
  longer.call(20000, 20041, "cudaMemcpyAsync");
  just.call(20000, 20040, "cudaMemcpyAsync");
  EXPECT_NEAR(just.worked(20000, 20100), 50 - kLaunch, 1e-9);
  EXPECT_NEAR(longer.worked(20000, 20100), (100 - (41 - 2 * 4.2)) / 2 - kLaunch, 1e-9);
  longer.overhead(30000, 30010);
  EXPECT_NEAR(longer.worked(29990, 30020), (30 - 10) / 2.0, 1e-9);
}

TEST(WorkedTimes, WhatOverlapsIsBusyOnce) {
  EXPECT_EQ(union_of({}), 0.0);
  EXPECT_EQ(union_of({{3, 5}}), 2.0);
  EXPECT_EQ(union_of({{30, 35}, {0, 10}, {5, 12}, {6, 8}, {12, 13}}), 18.0);
}

TEST(WorkedTimes, KernelsOfOtherStreamsRunBeside) {
  const auto beside = [](const MadeEvents& made) {
    return fmt::format("{}", fmt::join(times_beside_others(made.events.gpu), " "));
  };
  // 0..10 on stream 7, 4..12 on stream 8: six microseconds are shared.
  EXPECT_EQ(beside(MadeEvents().gpu(0, 10, 7).gpu(4, 12, 8)), "6 6");
  EXPECT_EQ(beside(MadeEvents().gpu(0, 10, 7).gpu(10, 12, 8)), "0 0");
  EXPECT_EQ(beside(MadeEvents().gpu(0, 10, 7).gpu(4, 6, 8).gpu(5, 20, 9)), "7 2 6") << "no more than its own two";
  EXPECT_EQ(beside(MadeEvents().gpu(0, 10, 7).gpu(4, 12, 7)), "0 0") << "one stream";
  EXPECT_EQ(beside(MadeEvents().gpu(0, 10, 7).gpu(4, 12, 8, GpuEvent::Kind::copy)), "0 0");
  EXPECT_EQ(beside(MadeEvents().gpu(0, 10, 7, GpuEvent::Kind::set).gpu(4, 12, 8)), "0 0");
  EXPECT_EQ(beside(MadeEvents().gpu(0, 10, 7).gpu(4, 12, 8, GpuEvent::Kind::kernel, 1)), "0 0") << "two devices";
  // Two beside one, all the time: no more than its own length.
  EXPECT_EQ(beside(MadeEvents().gpu(0, 10, 7).gpu(1, 9, 8).gpu(2, 9, 9)), "10 8 7");
}

StepWindow chosen(const MadeEvents& made, const std::vector<double>& issued) {
  return choose_step(made.events, issued);
}
std::string text_of(const StepWindow& window) {
  return fmt::format("{}..{} {}{}", window.begin, window.end, window.name, window.marked ? ", marked" : "");
}

TEST(WorkedTimes, TheStepOfMedianTimeIsChosen) {
  MadeEvents made;
  made.mark(0, 100, "ProfilerStep#3").mark(100, 200, "ProfilerStep#4").mark(200, 300, "ProfilerStep#5");
  made.mark(300, 400, "ProfilerStep#6").mark(10, 20, "other");
  // Step 3 has 5 + 6, step 4 has 20, step 5 has 12, step 6 nothing.
  made.gpu(50, 55).gpu(60, 66).gpu(150, 170).gpu(250, 262);
  EXPECT_EQ(text_of(chosen(made, {0, 99, 100, 200})),
            "200..300 ProfilerStep#5, the one of median GPU time of 3, marked");
  // Of two the longer one.
  EXPECT_EQ(text_of(chosen(made, {0, 99, 100, 500})),
            "100..200 ProfilerStep#4, the one of median GPU time of 2, marked");
  EXPECT_EQ(text_of(chosen(made, {0, 99, 500, 500})), "0..100 ProfilerStep#3, marked");
  // Without a mark that something ran in the whole is one.
  made.op(7, 350).op(10, 420).call(430, 440);
  EXPECT_EQ(text_of(chosen(made, {500, 500, 500, 500})), "7..431 the whole recording, taken as one step");
}

TEST(WorkedTimes, WithoutMarksOptimizersDivideTheRecording) {
  MadeEvents made;
  made.mark(80, 100, "Optimizer.step#SGD.step").mark(110, 120, "Optimizer.zero_grad#SGD");
  made.gpu(50, 55).gpu(150, 170);
  EXPECT_EQ(text_of(chosen(made, {50, 150})), "0..121 the whole recording, taken as one step");
  made.mark(180, 200, "Optimizer.step#SGD.step").mark(280, 300, "Optimizer.step#SGD.step");
  EXPECT_EQ(text_of(chosen(made, {50, 150})), "100..200 optimizer step 2, marked");
  EXPECT_EQ(text_of(chosen(made, {200, 150})), "100..200 optimizer step 2, the one of median GPU time of 2, marked");
  EXPECT_EQ(text_of(chosen(made, {200, 50})), "200..300 optimizer step 3, marked");
  EXPECT_EQ(text_of(chosen(made, {0, 0})), "0..301 the whole recording, taken as one step");
}

std::string places(const std::vector<std::size_t>& found) {
  std::string text;
  for (const std::size_t place : found) text += place == kNoOperator ? "- " : fmt::format("{} ", place);
  return text;
}

TEST(WorkedTimes, WhatStandsAroundWhat) {
  MadeEvents made;
  made.op(0, 100).op(10, 50).op(10, 30).op(30.0004, 40).op(49.9996, 60).op(55, 60, "aten::mm", 2).op(100, 110);
  // Ends that touch the next begin within half a nanosecond are over.
  EXPECT_EQ(places(parents_of(made.events.operators)), "- 0 1 1 0 - - ");
  MadeEvents calls = made;
  calls.call(5, 6).call(12, 13).call(30, 31).call(45, 46).call(57, 58, "cudaLaunchKernel", -1, 2).call(65, 66);
  calls.call(99.9996, 101).call(105, 106, "cudaLaunchKernel", -1, 3);
  EXPECT_EQ(places(operators_around(calls.events.runtime, calls.events.operators)), "0 2 1 1 5 0 - - ");
  EXPECT_EQ(
      places(operators_around(MadeEvents().call(10, 11).events.runtime, MadeEvents().op(10, 12).events.operators)),
      "0 ");
}

TEST(WorkedTimes, LaunchesWhoseKernelIsMissing) {
  MadeEvents made;
  const char* names[] = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "hipLaunchKernel",
                         "hipExtModuleLaunchKernel"};
  std::int64_t correlation = 0;
  for (const char* name : names) made.call(10, 11, name, correlation++);
  made.call(10, 11, "cudaMemcpyAsync", 50).call(10, 11, "cudaLaunchKernel", -1).call(100, 101, "cudaLaunchKernel", 60);
  const StepWindow window{10, 100, "", true};
  EXPECT_EQ(launches_without_kernel(made.events, window), 5);
  made.gpu(20, 30);
  made.events.gpu.back().correlation = 0;
  made.gpu(20, 30);
  made.events.gpu.back().correlation = 3;
  EXPECT_EQ(launches_without_kernel(made.events, window), 3);
}

std::string roles(const std::vector<ListRole>& lists) {
  constexpr const char* kNames[] = {"value", "gradient", "average", "square", "temporary", "count"};
  std::string text;
  for (const ListRole role : lists) text += fmt::format("{} ", kNames[static_cast<int>(role)]);
  return text;
}

/// The lists of several calls one behind the other, of tensors of these sizes.
std::string roles_of(const std::vector<MultiTensorFunction>& calls, std::vector<std::int64_t> sizes = {7, 1}) {
  OptimizerLists lists;
  std::string text;
  for (const MultiTensorFunction function : calls)
    text += roles(lists.next({function, DType::fp32, std::make_shared<const std::vector<std::int64_t>>(sizes)})) + "| ";
  return text;
}

// torch/optim/adam.py and sgd.py, torch/nn/utils/clip_grad.py.
TEST(WorkedTimes, ListsOfOptimizers) {
  using F = MultiTensorFunction;
  EXPECT_EQ(roles_of({F::norm, F::mul}), "gradient | gradient | ") << "clipping";
  EXPECT_EQ(roles_of({F::unscale}), "gradient | ");
  EXPECT_EQ(roles_of({F::mul, F::lerp, F::mul, F::addcmul, F::square_root, F::divide, F::add_scalar, F::addcdiv}),
            "value | average gradient | square | square gradient | square temporary | temporary | temporary | value "
            "average temporary | ")
      << "AdamW";
  EXPECT_EQ(roles_of({F::add, F::mul, F::add, F::add}), "value gradient | value | average gradient | value average | ")
      << "momentum of SGD";
  EXPECT_EQ(roles_of({F::fused_adamw, F::fused_adam, F::fused_sgd, F::copy}),
            "value gradient average square | value gradient average square | value gradient average | value temporary "
            "| ");
  // Counts of steps, one number a tensor, come between without changing what is next.
  EXPECT_EQ(roles_of({F::add, F::add_scalar, F::mul}, {1, 1}), "count count | count | count | ");
  OptimizerLists lists;
  const auto numbers = std::make_shared<const std::vector<std::int64_t>>(3, 1),
             tensors = std::make_shared<const std::vector<std::int64_t>>(3, 5);
  lists.next({F::norm, DType::fp32, tensors});
  lists.next({F::add_scalar, DType::fp32, numbers});
  EXPECT_EQ(roles(lists.next({F::mul, DType::fp32, tensors})), "gradient ");
}

// Eight in a row; the longest row is followed to its end, then the next is looked for.
TEST(WorkedTimes, KernelsOfBeforeTakeThePlacesOfLaterOnes) {
  const auto twins = [](const std::string& names, std::size_t unseen) {
    std::vector<GpuEvent> gpu(names.size());
    std::vector<bool> flags(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      gpu[i].begin = static_cast<double>(i);
      gpu[i].name = static_cast<std::uint32_t>(names[i]);
      flags[i] = i < unseen;
    }
    std::string text;
    for (const std::size_t twin : later_twins(gpu, flags)) text += fmt::format("{} ", twin);
    return text;
  };
  EXPECT_EQ(twins("abcdefghabcdefgh", 8), "8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 ");
  EXPECT_EQ(twins("abcdefgabcdefg", 7), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 ");
  // What leads in differs: it stays where it is.
  EXPECT_EQ(twins("xabcdefghabcdefgh", 9), "0 9 10 11 12 13 14 15 16 9 10 11 12 13 14 15 16 ");
  // The second row is the longer one.
  EXPECT_EQ(twins("abcdefghiabcdefghxabcdefghi", 9),
            "18 19 20 21 22 23 24 25 26 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 ");
  // After a row that ends another begins.
  EXPECT_EQ(twins("abcdefghABCDEFGHABCDEFGHabcdefgh", 16),
            "24 25 26 27 28 29 30 31 16 17 18 19 20 21 22 23 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 ");
  EXPECT_EQ(twins("abc", 0), "0 1 2 ");
}

TEST(WorkedTimes, AKernelWithoutALaunchAfterOthersThatHaveOneKeepsItsPlace) {
  std::vector<GpuEvent> gpu(3);
  for (std::size_t i = 0; i < 3; ++i) gpu[i].begin = static_cast<double>(i);
  EXPECT_EQ(later_twins(gpu, {false, false, true}), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(WorkedTimes, ARowIsFollowedForAtMost256) {
  std::vector<GpuEvent> gpu(600);
  std::vector<bool> flags(600);
  for (std::size_t i = 0; i < 600; ++i) {
    gpu[i].begin = static_cast<double>(i);
    flags[i] = i < 300;
  }
  const std::vector<std::size_t> twins = later_twins(gpu, flags);
  EXPECT_EQ(twins[0], 300u);
  EXPECT_EQ(twins[255], 555u);
  EXPECT_EQ(twins[256], 300u) << "another row";
  EXPECT_EQ(twins[299], 343u);
}

TEST(WorkedTimes, TheImageAfterAConvolutionSaysItsStride) {
  const auto image = [](AtenCall call, const std::vector<std::tuple<double, const char*, std::int64_t>>& after) {
    MadeEvents made;
    made.op(0, 50, "aten::cudnn_convolution");
    for (const auto& [begin, dims, thread] : after) {
      made.op(begin, begin + 5, "aten::relu", thread);
      made.events.operators.back().arguments = fmt::format(R"({{"Input Dims": [{}], "Input type": ["float"]}})", dims);
    }
    const auto found = image_after(made.events.operators, 0, call, "t.json:1");
    return found ? text_of(*found) : std::string("none");
  };
  AtenCall call;
  call.name = "aten::cudnn_convolution";
  call.inputs = {"fp32[2,6,10,10]"_t, "fp32[12,6,3,3]"_t};
  EXPECT_EQ(image(call, {{60, "[2,12,5,5]", 1}}), "fp32[2,12,5,5]");
  EXPECT_EQ(image(call, {{49.9996, "[2,12,5,5]", 1}}), "fp32[2,12,5,5]");
  EXPECT_EQ(image(call, {{49, "[2,12,5,5]", 1}, {70, "[2,12,4,4]", 1}}), "fp32[2,12,4,4]") << "inside it";
  EXPECT_EQ(image(call, {{60, "[2,12,5,5]", 2}}), "none") << "another thread";
  EXPECT_EQ(image(call, {{60, "[3,12,5,5]", 1}, {61, "[2,11,5,5]", 1}, {62, "[2,12,5]", 1}}), "none");
  EXPECT_EQ(image(call, {}), "none");
  std::vector<std::tuple<double, const char*, std::int64_t>> many(62, {60, "[1]", 1});
  many.push_back({61, "[2,12,5,5]", 1});
  EXPECT_EQ(image(call, many), "fp32[2,12,5,5]") << "the 63rd";
  many.insert(many.begin(), {60, "[1]", 1});
  EXPECT_EQ(image(call, many), "none") << "too far away";
  const auto with = [&](auto change) {
    AtenCall other = call;
    change(other);
    return image(other, {{60, "[2,12,5,5]", 1}});
  };
  EXPECT_EQ(with([](AtenCall& c) { c.name = "aten::cudnn_convolution_backward"; }), "none");
  EXPECT_EQ(with([](AtenCall& c) { c.name = "aten::mm"; }), "none");
  EXPECT_EQ(with([](AtenCall& c) { c.inputs.emplace_back(Numbers{1, 1}); }), "none") << "a stride is recorded";
  EXPECT_EQ(with([](AtenCall& c) { c.inputs[0] = "fp32[6,10]"_t; }), "none");
  EXPECT_EQ(with([](AtenCall& c) { c.inputs[1] = "fp32[]"_t; }), "none");
  EXPECT_EQ(with([](AtenCall& c) { c.inputs[0] = kLeftOut; }), "none");
  EXPECT_EQ(with([](AtenCall& c) { c.inputs[1] = kLeftOut; }), "none");
}

TEST(WorkedTimes, LayoutsAndLinksThatAreNotRecorded) {
  AtenCall call;
  EXPECT_FALSE(lies_apart("", call));
  call.kernels = {measured("other"), measured("void at::native::elementwise_kernel<128, 2>")};
  EXPECT_TRUE(lies_apart("{}", call));
  EXPECT_FALSE(lies_apart(R"({"Input Strides": []})", call));
  call.kernels = {measured("void at::native::vectorized_elementwise_kernel<4>")};
  EXPECT_FALSE(lies_apart("{}", call));
  const auto copied = [](std::vector<std::pair<const char*, std::int64_t>> copies) {
    AtenCall made;
    for (const auto& [name, bytes] : copies) {
      made.kernels.push_back(measured(name));
      made.kernels.back().bytes = bytes;
    }
    return goes_over_host_link(made);
  };
  EXPECT_TRUE(copied({{"Memcpy HtoD (Pinned -> Device)", 1048576}}));
  EXPECT_FALSE(copied({{"Memcpy HtoD (Pinned -> Device)", 1048575}}));
  EXPECT_TRUE(copied({{"Memcpy DtoH (Device -> Pinned)", 1048577}, {"Memcpy HtoD", 9999999}}));
  EXPECT_FALSE(copied({{"Memcpy DtoD (Device -> Device)", 9999999}}));
  EXPECT_FALSE(copied({{"Memcpy HtoD", 9999999}, {"kernel", 9999999}}));
  EXPECT_FALSE(copied({}));
}

}  // namespace
}  // namespace ridgeline::trace
