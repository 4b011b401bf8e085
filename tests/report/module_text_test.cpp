// What each module of a network costs: numbered ones are told as one.
#include "sim/report/text/module_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using nlohmann::json;

ModuleUse made_module(const char* name, std::uint32_t parent, std::int64_t kernels, double forward, double backward,
                      double gib) {
  ModuleUse use;
  use.name = name, use.parent = parent, use.kernels = kernels, use.bytes_at_peak = made_gib(gib);
  use.time_by_phase[static_cast<std::size_t>(Phase::forward)] = made_ms(forward);
  use.time_by_phase[static_cast<std::size_t>(Phase::backward)] = made_ms(backward);
  return use;
}

/// Embeddings and two blocks of attention and a feed-forward network; 9 ms of the optimizer outside of them.
ModuleUses made_modules() {
  ModuleUses uses{made_module("", 0, 50, 31, 60, 5),
                  made_module("embeddings", 0, 3, 1, 2, 0.25),
                  made_module("layers", 0, 34, 30, 58, 3.75),
                  made_module("0", 2, 16, 14, 28, 1.5),
                  made_module("1", 2, 18, 16, 30, 2.25),
                  made_module("attention", 3, 10, 4, 8, 1),
                  made_module("feed_forward", 3, 6, 10, 20, 0.5),
                  made_module("attention", 4, 11, 5, 9, 1.5),
                  made_module("feed_forward", 4, 7, 11, 21, 0.75)};
  uses[0].time_by_phase[static_cast<std::size_t>(Phase::optimizer)] = made_ms(9);
  return uses;
}

TEST(ModuleText, ALineNamesTheLargestAndWhatIsInThem) {
  EXPECT_EQ(module_line(made_modules()),
            "embeddings 3.00 ms, layers 88.0 ms (attention 26.0 ms, feed_forward 62.0 ms)");
  EXPECT_EQ(module_line({}), "");
  ModuleUses few = made_modules();
  for (Seconds& t : few[1].time_by_phase) t = t * 0.1;  // 0.3 ms of 100 are not worth a word
  EXPECT_EQ(module_line(few), "layers 88.0 ms (attention 26.0 ms, feed_forward 62.0 ms)");
}

// Outside: 50 - 3 - 34 kernels, 9 ms, 5 - 0.25 - 3.75 GiB.
TEST(ModuleText, ATableAddsUpToTheStep) {
  EXPECT_EQ(module_table(made_modules(), 3, true), R"(
  module                         kernels   forward  backward     other  share at the peak
  embeddings                           3   1.00 ms   2.00 ms         -    3 %    0.25 GiB
  layers                              34   30.0 ms   58.0 ms         -   88 %    3.75 GiB
    all 2                             34   30.0 ms   58.0 ms         -   88 %    3.75 GiB
      attention                       21   9.00 ms   17.0 ms         -   26 %    2.50 GiB
      feed_forward                    13   21.0 ms   41.0 ms         -   62 %    1.25 GiB
  outside (optimizer, script)         13         -         -   9.00 ms    9 %    1.00 GiB
)");
  EXPECT_EQ(module_table(made_modules(), 1, false), R"(
  module                         kernels   forward  backward     other  share
  embeddings                           3   1.00 ms   2.00 ms         -    3 %
  layers                              34   30.0 ms   58.0 ms         -   88 %
  outside (optimizer, script)         13         -         -   9.00 ms    9 %
)");
  EXPECT_EQ(module_table({}, 1, false), "\n  this step names no modules\n");
}

// Names between "0" and "9" are numbers; "10a" and ":" are names. A phase without a column counts as other time.
TEST(ModuleText, NumbersAloneAreFoldedAndEveryPhaseCounts) {
  ModuleUses uses{made_module("", 0, 30, 20, 0, 4),  made_module("0", 0, 1, 1, 0, 1),
                  made_module("9", 0, 2, 2, 0, 1),   made_module("10", 0, 3, 3, 0, 0.5),
                  made_module("10a", 0, 4, 4, 0, 0), made_module(":", 0, 5, 5, 0, 0),
                  made_module("/", 0, 6, 4, 0, 0)};
  for (const Phase phase : {Phase::setup, Phase::clipping, Phase::other}) {
    uses[0].time_by_phase[static_cast<std::size_t>(phase)] = made_ms(7);
    uses[4].time_by_phase[static_cast<std::size_t>(phase)] = made_ms(3);
  }
  EXPECT_EQ(module_table(uses, 2, true), R"(
  module                         kernels   forward  backward     other  share at the peak
  all 3                                6   6.00 ms         -         -   15 %    2.50 GiB
  10a                                  4   4.00 ms         -   9.00 ms   32 %    0.00 GiB
  :                                    5   5.00 ms         -         -   12 %    0.00 GiB
  /                                    6   4.00 ms         -         -   10 %    0.00 GiB
  outside (optimizer, script)          9   1.00 ms         -   12.0 ms   32 %    1.50 GiB
)");
}

// 0.7 - 0.3 - 0.4 is not 0 but 5e-17: nobody ran anything there.
TEST(ModuleText, RoundingIsNoTime) {
  const ModuleUses uses{made_module("", 0, 7, 700, 70, 1), made_module("a", 0, 3, 300, 30, 0.5),
                        made_module("b", 0, 4, 400, 40, 0.5)};
  EXPECT_EQ(module_table(uses, 1, false), R"(
  module                         kernels   forward  backward     other  share
  a                                    3    300 ms   30.0 ms         -   43 %
  b                                    4    400 ms   40.0 ms         -   57 %
  outside (optimizer, script)          0         -         -         -    0 %
)");
}

TEST(ModuleJson, HasEachModuleDownToADepth) {
  const json out = json(module_json(made_modules(), 2, true));
  ASSERT_EQ(out.size(), 4U);
  EXPECT_EQ(out[0]["module"], "embeddings");
  EXPECT_EQ(out[1]["module"], "layers");
  EXPECT_EQ(out[2]["module"], "layers.0");
  const json& last = out[3];
  EXPECT_EQ(last["module"], "layers.1");
  EXPECT_EQ(last["kernels"], 18);
  EXPECT_NEAR(last["time_s"].get<double>(), 0.046, 1e-15);
  EXPECT_EQ(last["forward_s"], 0.016);
  EXPECT_EQ(last["backward_s"], 0.03);
  EXPECT_EQ(last["bytes_at_peak"], made_gib(2.25));
  const json deep = json(module_json(made_modules(), 3, false));
  ASSERT_EQ(deep.size(), 8U);
  EXPECT_EQ(deep[7]["module"], "layers.1.feed_forward");
  EXPECT_FALSE(deep[7].contains("bytes_at_peak"));
}

}  // namespace
}  // namespace ridgeline
