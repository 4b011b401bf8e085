// What `ridgeline fit` says of the batch that fails.
#include "sim/report/fit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/units/parse.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kOneGiB = std::int64_t{1} << 30;

TEST(FitReport, SaysWhatTheFailingBatchWouldTakeAndHowMuchMoreThatIs) {
  FitResult result;
  result.scenario = "a network";
  result.hardware = "a chip";
  result.capacity = 16 * kOneGiB;
  result.failing_micro_batch = 3;
  result.failing.emplace();
  result.failing->capacity = 16 * kOneGiB;
  result.failing->needed = 21 * kOneGiB;
  MemoryShortage shortage;
  shortage.op = "matmul";
  shortage.requested_bytes = kOneGiB;
  shortage.held[static_cast<std::size_t>(Category::activations)] = 9 * kOneGiB;
  shortage.held[static_cast<std::size_t>(Category::weights)] = 4 * kOneGiB;
  result.failing->out_of_memory = shortage;
  result.monotone = false;
  result.trials = {{3, 1, false, 21 * kOneGiB}};
  const std::string text = fit_text(result, Seconds{1.0});
  EXPECT_THAT(text, HasSubstr("NOT EVEN ONE SEQUENCE"));
  EXPECT_THAT(text, HasSubstr("micro-batch 3 runs out"));
  EXPECT_THAT(text, HasSubstr("it would take 21.00 GiB, " + to_string(Bytes{5.0 * static_cast<double>(kOneGiB)}) +
                              " more than there is; most of it activations"));
  EXPECT_THAT(text, HasSubstr("some smaller batch fails"));
  EXPECT_THAT(text, HasSubstr(" 3 (no)"));
}

}  // namespace
}  // namespace ridgeline
