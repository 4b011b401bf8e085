// Suggestions are the same thing spelled otherwise, never another thing.
#include "sim/units/meant_name.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

TEST(MeantName, IsTheSameThingSpelledOtherwise) {
  const std::vector<std::string> precisions{"fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "apex-o2"};
  EXPECT_EQ(meant_name("BF16", precisions), "bf16");
  EXPECT_EQ(meant_name("amp_fp16", precisions), "amp-fp16");
  EXPECT_EQ(meant_name("fp16", precisions), "amp-fp16") << "a word of one name alone";
  EXPECT_EQ(meant_name("apex", precisions), "apex-o2") << "the beginning of one name alone";
  EXPECT_EQ(meant_name("sofmax", std::vector<std::string>{"softmax", "sum"}), "softmax");
  EXPECT_EQ(meant_name("cuont", std::vector<std::string>{"count", "clock"}), "count") << "two letters swapped";
  EXPECT_EQ(meant_name("rsm", std::vector<std::string>{"rms", "sum"}), "rms");
  EXPECT_EQ(meant_name("drm", std::vector<std::string>{"dram", "sm"}), "dram");
  EXPECT_EQ(meant_name("free_computed_", std::vector<std::string>{"free_requested", "free_completed"}),
            "free_completed");
  EXPECT_EQ(meant_name("mma-16bits", std::vector<std::string>{"mma-16bit-staged", "mma-16bit"}), "mma-16bit");
}

TEST(MeantName, IsNeverAnotherThing) {
  const std::vector<std::string> precisions{"fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "apex-o2"};
  for (const char* given : {"fp8", "int8", "fp64", "mixed", "", "o", "amp"})
    EXPECT_EQ(meant_name(given, precisions), "");
  EXPECT_EQ(meant_name("mamba9", std::vector<std::string>{"mamba", "bamba"}), "") << "digits are never misspelt";
  EXPECT_EQ(meant_name("missing.yaml", std::vector<std::string>{"indent.yaml"}), "");
  EXPECT_EQ(meant_name("fast", std::vector<std::string>{"roofline", "analytic", "simulate"}), "");
  EXPECT_EQ(meant_name("chip", std::vector<std::string>{"fit", "host"}), "");
}

TEST(MeantName, WordsBesideAKnownValueAreAnotherToolsName) {
  const std::vector<std::string> optimizers{"adamw", "adam", "sgd", "adamw-8bit"};
  EXPECT_EQ(meant_value("adamw_torch_fused", optimizers), "adamw");
  EXPECT_EQ(meant_value("paged_adamw_8bit", optimizers), "adamw-8bit");
  EXPECT_EQ(meant_value("flash_attention_2", std::vector<std::string>{"sdpa", "flash"}), "flash");
  EXPECT_EQ(meant_value("sophia", optimizers), "");
}

TEST(MeantName, ListsSayEightAtMostAndComeLast) {
  const std::vector<std::string> many{"a1", "b2", "c3", "d4", "e5", "f6", "g7", "h8", "i9", "j0"};
  EXPECT_EQ(some_names(many), "a1, b2, c3, d4, e5, f6, g7, h8 or one of 2 more");
  EXPECT_EQ(expected_names("gren", std::vector<std::string>{"red", "green"}),
            "did you mean green? Allowed: red, green");
  EXPECT_EQ(expected_names("blue", std::vector<std::string>{"red", "green"}), "expected one of red, green");
}

}  // namespace
}  // namespace ridgeline
