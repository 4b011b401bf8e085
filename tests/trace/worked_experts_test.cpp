// Experts that are served, worked out by hand: which are asked for, and what becomes of their results.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_experts(const std::vector<WorkedCall>& calls) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call), call.expected) << text_of(call);
}

// Six tokens ask for two of five experts each: twelve places, of which 5 x (1 - (4/5)^12) = 4.66 experts are expected.
TEST(WorkedExperts, ExpertsThatAreServed) {
  const AtenTensor x = "bf16[6,4]#1"_t, first = "bf16[5,14,4]#2"_t, second = "bf16[5,4,7]#3"_t, factors = "fp32[6,2]"_t,
                   chosen = "int32[6,2]#4"_t;
  const std::string host = " | pointwise pointwise", product = " | matmul pointwise_backward";
  const Listing ordered{
      "fused_kernel moe_align pointwise rows=12 cols=1 int32 arithmetic=4 column_results=0 reads=48 writes=4: "
      "int32[6,2]#4 > int32[1]" +
          host,
      "fused_kernel moe_sort pointwise rows=12 cols=1 int32 arithmetic=4 column_results=0 reads=48 writes=48: "
      "int32[6,2]#4 > int32[12]" +
          host};
  Listing expected = ordered;
  expected.insert(expected.end(),
                  {"matmul bf16 batch=5 m=3 n=14 k=4 nt: bf16[6,4]#1 bf16[5,14,4] > bf16[12,14]" + product,
                   "fused_kernel activation_mul rows rows=12 cols=7 bf16 arithmetic=12 column_results=0 reads=336 "
                   "writes=168: bf16[12,14] > bf16[12,7]" +
                       host,
                   "matmul bf16 batch=5 m=3 n=4 k=7 nt: bf16[12,7] bf16[5,4,7] > bf16[6,2,4]" + product,
                   "fused_kernel moe_sum rows rows=6 cols=4 bf16 arithmetic=4 column_results=0 reads=96 writes=48: "
                   "bf16[6,2,4] > bf16[6,4]#1" +
                       host});
  const char* name = "vllm::inplace_fused_experts";
  expect_worked_experts({
      {name, {x, first, second, factors, chosen}, expected},
      {name, {kLeftOut, first, second, factors, chosen}, kNotUnderstood},
      {name, {x, kLeftOut, second, factors, chosen}, kNotUnderstood},
      {name, {x, first, kLeftOut, factors, chosen}, kNotUnderstood},
      {name, {x, first, second, factors, kLeftOut}, kNotUnderstood},
      {name, {x, "uint8[5,14,4]"_t, second, factors, chosen}, kNotUnderstood},
      {name, {x, "bf16[14,4]"_t, second, factors, chosen}, kNotUnderstood},
      {name, {x, first, "bf16[4,7]"_t, factors, chosen}, kNotUnderstood},
      {name, {"bf16[24]"_t, first, second, factors, chosen}, kNotUnderstood},
      {name, {"bf16[0,4]"_t, first, second, factors, chosen}, kNothing},
      {name, {x, "bf16[0,14,4]"_t, second, factors, chosen}, kNothing},
      {name, {x, first, "bf16[0,4,7]"_t, factors, chosen}, kNothing},
      {name, {x, first, second, factors, "int32[0]"_t}, kNothing},
      {"_moe_C::moe_align_block_size", {chosen}, ordered},
      {"_moe_C::moe_align_block_size", {kLeftOut}, kNotUnderstood},
      {"_moe_C::moe_align_block_size", {"int32[0]"_t}, kNotUnderstood},
      {"_moe_C::moe_sum",
       {"bf16[6,2,4]#5"_t, "bf16[6,4]#6"_t},
       {"fused_kernel moe_sum rows rows=6 cols=4 bf16 arithmetic=4 column_results=0 reads=96 writes=48: "
        "bf16[6,2,4]#5 > bf16[6,4]#6" +
        host}},
      {"_moe_C::moe_sum", {kLeftOut, x}, kNotUnderstood},
      {"_moe_C::moe_sum", {x, kLeftOut}, kNotUnderstood},
      {"_moe_C::moe_sum", {x, "bf16[0]"_t}, kNotUnderstood},
      {"_moe_C::topk_softmax",
       {"fp32[6,2]#7"_t, chosen, chosen, "bf16[6,5]#8"_t},
       {"fused_kernel topk_softmax rows rows=6 cols=5 bf16 arithmetic=24 column_results=0 reads=60 writes=48,48: "
        "bf16[6,5]#8 > fp32[6,2]#7 int32[6,2]" +
        host}},
      {"sgl_kernel::topk_softmax",
       {"fp32[6,2]#7"_t, chosen, "bf16[6,5]#8"_t},
       {"fused_kernel topk_softmax rows rows=6 cols=5 bf16 arithmetic=24 column_results=0 reads=60 writes=48,48: "
        "bf16[6,5]#8 > fp32[6,2]#7 int32[6,2]" +
        host}},
      {"_moe_C::topk_softmax", {kLeftOut, chosen, chosen, x}, kNotUnderstood},
      {"_moe_C::topk_softmax", {x, chosen, chosen, kLeftOut}, kNotUnderstood},
      {"_moe_C::topk_softmax", {x, chosen, chosen, "bf16[0]"_t}, kNotUnderstood},
  });
}

// The results of one token are of its experts.
TEST(WorkedExperts, OneTokenOfTwoExperts) {
  const Listing lines = operations_of({"vllm::inplace_fused_experts",
                                       {"bf16[1,4]#1"_t, "bf16[9,14,4]"_t, "bf16[9,4,7]"_t, kLeftOut, "int32[1,2]"_t},
                                       {}});
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[4],
            "matmul bf16 batch=2 m=1 n=4 k=7 nt: bf16[2,7] bf16[2,4,7] > bf16[1,2,4] | matmul pointwise_backward");
  EXPECT_EQ(lines[5],
            "fused_kernel moe_sum rows rows=1 cols=4 bf16 arithmetic=4 column_results=0 reads=16 writes=8: "
            "bf16[1,2,4] > bf16[1,4]#1 | pointwise pointwise");
}

// One token of two experts of a hundred: 1.99 are expected, and no more than its places can be asked for.
TEST(WorkedExperts, FewTokensAskForFewExperts) {
  const auto asked = [](const char* experts, const char* chosen, const char* tokens) {
    const auto made = [](const char* text) { return operator""_t(text, std::string_view(text).size()); };
    AtenTensor first = made(experts), second = first;
    second.sizes = {first.sizes[0], 4, 7};
    const Listing lines =
        operations_of({"vllm::inplace_fused_experts", {made(tokens), first, second, kLeftOut, made(chosen)}, {}});
    return lines[2].substr(0, lines[2].find(" n="));
  };
  EXPECT_EQ(asked("bf16[100,14,4]", "int32[1,2]", "bf16[1,4]"), "matmul bf16 batch=2 m=1");
  EXPECT_EQ(asked("bf16[100,14,4]", "int32[1,1]", "bf16[1,4]"), "matmul bf16 batch=1 m=1");
  EXPECT_EQ(asked("bf16[2,14,4]", "int32[3,1]", "bf16[3,4]"), "matmul bf16 batch=2 m=2");  // 1.75
  EXPECT_EQ(asked("bf16[8,14,4]", "int32[5,2]", "bf16[5,4]"), "matmul bf16 batch=6 m=2");  // 5.90
  EXPECT_EQ(asked("bf16[1,14,4]", "int32[5,1]", "bf16[5,4]"), "matmul bf16 batch=1 m=5");
  EXPECT_EQ(asked("fp16[4,14,4]", "int32[50,2]", "fp16[50,4]"), "matmul fp16 batch=4 m=25");
}

}  // namespace
}  // namespace ridgeline::trace
