// Strings of a profiler's trace, however long and however often one of them is looked at.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "sim/trace/profiler/profiler_events.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::trace {
namespace {

/// One operator of the thread `thread` with one kernel called `kernel`; both as JSON has them.
Replayable recorded(const std::string& thread, const std::string& kernel) {
  const std::string path = temporary_path("strings.json");
  std::ofstream(path) << fmt::format(
      R"({{"traceEvents":[{{"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":{0},"ts":1,"dur":9,"args":{{"Input Dims":[[8,8]],"Input type":["float"]}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":{0},"ts":2,"dur":"4","args":{{"correlation":"7"}}}},
{{"ph":"X","cat":"kernel","name":"{1}","pid":0,"tid":7,"ts":20,"dur":5,"args":{{"correlation":7}}}}]}})",
      thread, kernel);
  return read_recording(path, [](const RecordedGpu&) { return RecordedDevice{1e12, 1e-6, {}}; });
}

// A word for a thread is looked at as a number first: copied twice, one as long as its event outgrew the buffer.
TEST(ProfilerStrings, AThreadMayHaveAWordAsLongAsItsEvent) {
  for (const std::size_t length : {1u, 1'000u, 100'000u}) {
    const Replayable read = recorded('"' + std::string(length, 'x') + '"', "k");
    ASSERT_EQ(read.recorded.size(), 1u) << length;
    EXPECT_EQ(read.recorded[0].name, "aten::relu");
    EXPECT_EQ(read.recorded[0].kernels, 1);
  }
}

TEST(ProfilerStrings, NamesWithEscapesAreRead) {
  EXPECT_EQ(recorded("1", R"(void \"quoted\u003cfloat\u003e\")").recorded.size(), 1u);
  EXPECT_THROW((void)recorded("1", R"(wrong \x escape)"), UserError) << "its only kernel is no JSON";
}

TEST(ProfilerEvents, ALaunchHasTheBlocksOfAllThreeDimensionsOfItsGrid) {
  Defects defects;
  ProfilerEventReader reader("t.json", defects);
  std::string text =
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7, "correlation": 1, "grid": [2, 3, 5]}})";
  text.append(64, ' ');
  reader.event(std::string_view(text).substr(0, text.find_last_of('}') + 1), 1);
  const ProfilerEvents events = reader.finish();
  ASSERT_EQ(events.gpu.size(), 1U);
  EXPECT_EQ(events.gpu[0].blocks, 2 * 3 * 5);
}

}  // namespace
}  // namespace ridgeline::trace
