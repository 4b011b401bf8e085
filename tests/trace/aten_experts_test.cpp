// Experts as vLLM and SGLang serve them.
#include <gtest/gtest.h>

#include "tests/support/aten_example.h"
#include "tests/support/rules_shown_elsewhere.h"

namespace ridgeline::trace {
namespace {

/// 64 tokens of 256, two of eight experts each, 512 wide.
Example experts(std::int64_t tokens, DType weights = DType::bf16) {
  return {"vllm::inplace_fused_experts",
          {half({tokens, 256}), tensor({8, 1024, 256}, weights), tensor({8, 256, 512}, weights), tensor({tokens, 2}),
           tensor({tokens, 2}, DType::int32)},
          ""};
}

TEST(AtenExperts, TokensAreOrderedMultipliedActivatedAndAddedUp) {
  EXPECT_EQ(described(experts(64)),
            "triton_poi_fused_moe_align 128x1 int32, 1 in, 1 out; triton_poi_fused_moe_sort 128x1 int32, 1 in, 1 out; "
            "bmm 8x 16x1024x256 nt bf16; triton_per_fused_activation_mul 128x512 bf16, 1 in, 1 out; "
            "bmm 8x 16x256x512 nt bf16; triton_per_fused_moe_sum 64x256 bf16, 1 in, 1 out");
}

TEST(AtenExperts, EveryLibraryCallsItAlike) {
  for (const char* name : kFusedExperts) {
    Example call = experts(64);
    call.name = name;
    EXPECT_EQ(described(call), described(experts(64))) << name;
  }
}

TEST(AtenExperts, OnlyExpertsThatAreAskedForAreRead) {
  const auto ops = map_aten(call_of(experts(1)), {});
  ASSERT_TRUE(ops);
  EXPECT_EQ(std::get<Matmul>((*ops)[2].op).batch, 2);
}

TEST(AtenExperts, WeightsOfEightBitsAreCarried) { EXPECT_EQ(described(experts(64, DType::uint8)), "not understood"); }

TEST(AtenExperts, ChoosingReadsTheScoresAndWritesFactorsAndExperts) {
  const auto ops =
      map_aten(call_of({"_moe_C::topk_softmax",
                        {tensor({64, 2}), tensor({64, 2}, DType::int32), tensor({64, 2}, DType::int32), half({64, 8})},
                        ""}),
               {});
  ASSERT_TRUE(ops);
  const auto& op = std::get<FusedKernel>(ops->front().op);
  EXPECT_EQ(op.reads, (std::vector<std::int64_t>{64 * 8 * 2}));
  EXPECT_EQ(op.writes, (std::vector<std::int64_t>{64 * 2 * 4, 64 * 2 * 4}));
}

}  // namespace
}  // namespace ridgeline::trace
