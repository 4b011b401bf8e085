// Sizes that a call does not say itself and other operators of the recording do.
#include <gtest/gtest.h>

#include "sim/trace/read_recording.h"
#include "tests/support/trace_text.h"

namespace ridgeline::trace {
namespace {

constexpr const char *kLists = R"("Input Dims": [[], []], "Input type": ["TensorList", "Scalar"])",
                     *kListsNumbered =
                         R"("Sequence number": 7, "Input Dims": [[], []], "Input type": ["TensorList", "Scalar"])",
                     *kGradients = R"("Input Dims": [[1024, 8], [1024, 24], []], "Input type": ["float", "float", ""])",
                     *kGradient = R"("Sequence number": 7, "Input Dims": [[1024, 32]], "Input type": ["float"])";

/// Elements of the only concatenation.
std::int64_t joined(const Replayable& r) {
  const auto& copy = std::get<Copy>(r.recording.trace.ops.at(0));
  return copy.rows * copy.cols * copy.parts;
}

TEST(RecordedSizes, GradientsOfASplitAreWhatIsJoined) {
  const Replayable r = TraceText()
                           .op(0, 30, "SplitWithSizesBackward0", kGradients)
                           .op(2, 20, "aten::cat", kLists)
                           .launch(5, 40, 9)
                           .read();
  ASSERT_TRUE(r.recorded[0].understood);
  EXPECT_NEAR(static_cast<double>(joined(r)), 1024 * 32,
              1024 * 16);  // as many blocks for the short part as for the long one
}

TEST(RecordedSizes, TheGradientOfAResultSaysItsSize) {
  const Replayable r =
      TraceText().op(0, 20, "aten::cat", kListsNumbered).launch(5, 40, 9).op(60, 20, "CatBackward0", kGradient).read();
  ASSERT_TRUE(r.recorded[0].understood);
  EXPECT_EQ(joined(r), 1024 * 32);
}

TEST(RecordedSizes, WithoutEitherItsTimeIsCarried) {
  const Replayable r = TraceText().op(0, 20, "aten::cat", kLists).launch(5, 40, 9).read();
  EXPECT_FALSE(r.recorded[0].understood);
}

}  // namespace
}  // namespace ridgeline::trace
