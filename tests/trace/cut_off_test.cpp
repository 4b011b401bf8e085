// Traces whose text ends early: arrays without their bracket are whole, of cut files whole steps count, and no partial
// one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::trace {
namespace {

using ::testing::HasSubstr;

constexpr int kKernelsOfStep = 5;

std::string event_line(const char* category, const std::string& name, double at, double duration,
                       const std::string& arguments) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{{}}}}})", category,
      name, at, duration, arguments);
}

/// Steps of kKernelsOfStep kernels each, those behind the calls of all steps as Kineto writes them.
std::string steps_text(int steps, bool marked) {
  std::string host, gpu;
  int correlation = 0;
  for (int s = 0; s < steps; ++s) {
    const double begin = 1000.0 * s;
    if (marked) host += event_line("user_annotation", fmt::format("ProfilerStep#{}", s), begin, 990.0, "") + ",\n";
    for (int k = 0; k < kKernelsOfStep; ++k) {
      const double at = begin + 10.0 * k;
      host += event_line("cpu_op", "mine::op", at, 8.0, fmt::format("\"External id\": {}", ++correlation)) + ",\n";
      host += event_line("cuda_runtime", "cudaLaunchKernel", at + 1.0, 4.0,
                         fmt::format("\"correlation\": {}", correlation)) +
              ",\n";
      gpu += event_line("kernel", "mine", begin + 100.0 * k + 50.0, 90.0,
                        fmt::format("\"correlation\": {}, \"stream\": 7, \"device\": 0", correlation)) +
             ",\n";
    }
  }
  std::string all = host + gpu;
  all.resize(all.size() - 2);
  return all;
}

Replayable read_cut(const std::string& text) {
  const std::string path = temporary_path("cut.json");
  std::ofstream(path, std::ios::binary) << text;
  return read_recording(path, [](const RecordedGpu&) { return RecordedDevice{2e12, 2e-6, {}}; });
}
std::string refusal_of_cut(const std::string& text) {
  try {
    (void)read_cut(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "read";
}

TEST(CutOff, ArrayWithoutItsEndIsWhole) {
  for (const bool marked : {true, false}) {
    const std::string events = steps_text(3, marked);
    const Replayable whole = read_cut("[" + events + "]");
    for (const char* end : {"", "\n", ",", ",\n\n "}) {
      const Replayable open = read_cut("[" + events + end);
      EXPECT_EQ(open.measured.kernels, whole.measured.kernels) << end;
      EXPECT_EQ(open.measured.which_step, whole.measured.which_step);
      EXPECT_EQ(open.defects.counts, whole.defects.counts) << "the format lets writers leave the bracket out";
    }
  }
}

TEST(CutOff, StepsThatAreReadAreWholeWhereverTheFileEnds) {
  const std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [" + steps_text(4, true);
  int read_steps = 0;
  for (std::size_t size = text.size() / 3; size < text.size(); size += 97) {
    const std::string answer = refusal_of_cut(text.substr(0, size));
    if (answer != "read") {
      EXPECT_THAT(answer, HasSubstr("cut off"));
      continue;
    }
    const Replayable some = read_cut(text.substr(0, size));
    EXPECT_EQ(some.measured.kernels, kKernelsOfStep) << size;
    EXPECT_FALSE(some.defects.counts.empty()) << "the cut is said";
    ++read_steps;
  }
  EXPECT_GT(read_steps, 5) << "two steps and more fit into much of the file";
}

TEST(CutOff, StepThatNothingFollowsIsNotTakenForWhole) {
  const std::string one = "{\"traceEvents\": [" + steps_text(1, true);
  EXPECT_THAT(refusal_of_cut(one), HasSubstr("no step before that is whole"));
  EXPECT_THAT(refusal_of_cut("{\"traceEvents\": [" + steps_text(3, false)), HasSubstr("no step before that is whole"));
  EXPECT_THAT(refusal_of_cut("[" + steps_text(3, false).substr(0, 2000)), HasSubstr("cut off"));
}

TEST(CutOff, KernelsOfEightBitFloatsAreCounted) {
  std::string events = steps_text(1, true);
  for (std::size_t at = 0; (at = events.find("\"mine\"", at)) != events.npos; ++at)
    events.replace(at, 6, at % 2 == 0 ? "\"sm89_gemm_e4m3_e5m2\"" : "\"plain\"");
  const Replayable read_all = read_cut("[" + events + "]");
  std::int64_t eight = 0;
  for (const FormatUse& use : read_all.formats) {
    EXPECT_EQ(use.format, "fp8");
    EXPECT_EQ(use.capability, 89);
    eight += use.kernels;
  }
  std::int64_t written = 0;
  for (std::size_t at = 0; (at = events.find("e4m3", at)) != events.npos; ++at) ++written;
  EXPECT_EQ(eight, written);
  EXPECT_GT(written, 0);
}

}  // namespace
}  // namespace ridgeline::trace
