// Traces of several ranks in one file: the first one is replayed, alone.
#include "sim/trace/profiler/recorded_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"
#include "tests/support/trace_text.h"

namespace ridgeline::trace {
namespace {

using ::testing::HasSubstr;

constexpr const char* kProductOf =
    R"("Input Dims": [[{0}, {0}], [{0}, {0}]], "Input type": ["float", "float"], "Input Strides": [[{0}, 1], [{0}, 1]], "Concrete Inputs": ["", ""])";

/// A step of `count` products of one size, the kernels of which take `duration`; numbered as every process does.
TraceText rank(int size, int count, double duration) {
  TraceText text;
  text.host("user_annotation", "ProfilerStep#1", 0, 1000);
  for (int i = 0; i < count; ++i)
    text.op(10 + 40 * i, 20, "aten::mm", fmt::format(kProductOf, size)).launch(15 + 40 * i, 30 + 40 * i, duration);
  return text;
}

/// The events of a trace as they stand in its file, of process 2 where `second`.
std::string events_of(const TraceText& text, bool second) {
  std::string all = text.text();
  all = all.substr(all.find("[\n") + 2);
  all.resize(all.rfind("\n]}"));
  if (second)
    for (std::size_t at = all.find("\"pid\": 1,"); at != all.npos; at = all.find("\"pid\": 1,", at))
      all.replace(at, 9, "\"pid\": 2,");
  return all;
}

Replayable read_events(const std::string& events) {
  const std::string path = temporary_path("ranks.json");
  std::ofstream(path, std::ios::binary)
      << "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\"}],\n\"traceEvents\": [\n"
      << events << "\n]}\n";
  return read_recording(path, [](const RecordedGpu&) { return RecordedDevice{4e12, 1e-6}; });
}

TEST(RecordedRanks, the_first_of_several_is_replayed_as_if_it_were_alone) {
  const TraceText one = rank(64, 3, 10), other = rank(256, 5, 16);
  const Replayable alone = one.read(), both = read_events(events_of(one, false) + ",\n" + events_of(other, true));
  EXPECT_EQ(both.measured.kernels, 3);
  EXPECT_DOUBLE_EQ(both.measured.kernel_sum, alone.measured.kernel_sum);
  EXPECT_EQ(both.recording.trace.calls.size(), alone.recording.trace.calls.size());
  EXPECT_EQ(both.recorded.size(), 3u);
  EXPECT_EQ(both.measured.which_step, "ProfilerStep#1, of the first of 2 ranks in the file");
  EXPECT_EQ(alone.measured.which_step, "ProfilerStep#1");
  const Replayable turned = read_events(events_of(other, true) + ",\n" + events_of(one, false));
  EXPECT_EQ(turned.measured.kernels, 5);
}

TEST(RecordedRanks, mixed_ones_are_refused_for_nothing_says_whose_a_kernel_is) {
  const std::string one = events_of(rank(64, 3, 10), false), other = events_of(rank(64, 3, 10), true);
  const std::size_t half = one.find("},\n", one.size() / 2) + 3;
  try {
    read_events(one.substr(0, half) + other + ",\n" + one.substr(half));
    FAIL() << "ranks were taken for one";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("events of 2 processes stand mixed"));
  }
}

TEST(RecordedRanks, several_gpus_of_one_process_are_told) {
  std::string events = events_of(rank(64, 2, 10), false);
  const std::size_t last = events.rfind("\"stream\": 7");
  events.insert(last, "\"device\": 1, ");
  const Replayable r = read_events(events);
  ASSERT_FALSE(r.recording.trace.notes.empty());
  EXPECT_THAT(r.recording.trace.notes.front(), HasSubstr("kernels on 2 GPUs"));
}

}  // namespace
}  // namespace ridgeline::trace
