// Products, attention and lists, worked out by hand.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_products(const std::vector<WorkedCall>& calls, const MapContext& context = {}) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call, context), call.expected) << text_of(call);
}

TEST(WorkedProducts, AreReadTransposedWhereTheyLieSo) {
  const std::string linear = " | linear pointwise_backward", batched = " | matmul pointwise_backward";
  expect_worked_products({
      {"mm",
       {"bf16[3,7]#1"_t, "bf16[7,5]#2"_t},
       {"matmul bf16 batch=1 m=3 n=5 k=7 nn: bf16[3,7]#1 bf16[7,5]#2 > bf16[3,5]" + linear}},
      {"mm",
       {"bf16[3,7]"_t, "bf16[7,5](1,7)"_t},
       {"matmul bf16 batch=1 m=3 n=5 k=7 nt: bf16[3,7] bf16[7,5](1,7) > bf16[3,5]#3" + linear},
       {"bf16[3,5]#3"_t}},
      {"mm",
       {"bf16[3,7](1,3)"_t, "bf16[7,5](5,1)"_t},
       {"matmul bf16 batch=1 m=3 n=5 k=7 tn: bf16[3,7](1,3) bf16[7,5](5,1) > bf16[3,5]" + linear}},
      {"mm",
       {"bf16[3,7](1,3)"_t, "bf16[7,5](1,7)"_t},
       {"matmul bf16 batch=1 m=3 n=5 k=7 tt: bf16[3,7](1,3) bf16[7,5](1,7) > bf16[3,5]" + linear}},
      // Rows of wider matrices are rows; what lies apart both ways is taken as it is.
      {"mm",
       {"bf16[3,7](20,1)"_t, "bf16[7,5](2,20)"_t},
       {"matmul bf16 batch=1 m=3 n=5 k=7 nn: bf16[3,7](20,1) bf16[7,5](2,20) > bf16[3,5]" + linear}},
      // A side of one lies either way: as rows.
      {"mm",
       {"bf16[3,1](9,9)"_t, "bf16[1,5](9,9)"_t},
       {"matmul bf16 batch=1 m=3 n=5 k=1 nt: bf16[3,1](9,9) bf16[1,5](9,9) > bf16[3,5]" + linear}},
      {"bmm",
       {"fp16[2,3,7]"_t, "fp16[2,7,5](35,1,7)"_t},
       {"matmul fp16 batch=2 m=3 n=5 k=7 nt: fp16[2,3,7] fp16[2,7,5](35,1,7) > fp16[2,3,5]" + batched}},
      {"mm", {"bf16[3,7]"_t, "bf16[6,5]"_t}, kNotUnderstood},
      {"mm", {"bf16[3,7]"_t, "bf16[2,7,5]"_t}, kNotUnderstood},
      {"mm", {"bf16[7]"_t, "bf16[7]"_t}, kNotUnderstood},
      {"mm", {"bf16[2,2,3,7]"_t, "bf16[2,2,7,5]"_t}, kNotUnderstood},
      {"mm", {kLeftOut, "bf16[7,5]"_t}, kNotUnderstood},
      {"mm", {"bf16[3,7]"_t, kLeftOut}, kNotUnderstood},
      {"mm", {"bf16[0,7]"_t, "bf16[7,5]"_t}, kNothing},
      {"mm", {"bf16[3,0]"_t, "bf16[0,5]"_t}, {"fill 3x5 >bf16 contiguous: > bf16[3,5]"}},
      {"mm",
       {"bf16[1,1]"_t, "bf16[1,1]"_t},
       {"matmul bf16 batch=1 m=1 n=1 k=1 nn: bf16[1,1] bf16[1,1] > bf16[1,1]" + linear}},
      // A row is added inside, a matrix copied into the result first.
      {"addmm",
       {"bf16[5]#4"_t, "bf16[3,7]#1"_t, "bf16[7,5]#2"_t},
       {"matmul bf16 batch=1 m=3 n=5 k=7 nn bias: bf16[3,7]#1 bf16[7,5]#2 bf16[5]#4 > bf16[3,5]" + linear}},
      {"addmm",
       {"bf16[3,5](1,3)#4"_t, "bf16[3,7]"_t, "bf16[7,5]"_t},
       {"copy transpose bf16 rows=3 cols=5 parts=1: bf16[3,5](1,3)#4 > bf16[3,5] | contiguous view_backward_copy",
        "matmul bf16 batch=1 m=3 n=5 k=7 nn: bf16[3,7] bf16[7,5] > bf16[3,5]" + linear}},
      {"addmm",
       {"bf16[1,5]"_t, "bf16[3,7]"_t, "bf16[7,5]"_t},
       {"matmul bf16 batch=1 m=3 n=5 k=7 nn: bf16[3,7] bf16[7,5] > bf16[3,5]" + linear}},
      {"baddbmm",
       {"bf16[2,3,5]#4"_t, "bf16[2,3,7]"_t, "bf16[2,7,5]"_t},
       {"copy contiguous bf16 rows=6 cols=5 parts=1: bf16[2,3,5]#4 > bf16[2,3,5] | contiguous view_backward_copy",
        "matmul bf16 batch=2 m=3 n=5 k=7 nn: bf16[2,3,7] bf16[2,7,5] > bf16[2,3,5]" + batched}},
      {"addmm", {kLeftOut, "bf16[3,7]"_t, "bf16[7,5]"_t}, kNotUnderstood},
      {"addmm", {"bf16[5]"_t, kLeftOut, "bf16[7,5]"_t}, kNotUnderstood},
      {"addmm", {"bf16[5]"_t, "bf16[3,7]"_t, kLeftOut}, kNotUnderstood},
  });
}

TEST(WorkedProducts, RunInWhatTheRecordingSaysOfAll) {
  MapContext tf32;
  tf32.tf32 = true;
  const std::string linear = " | linear pointwise_backward";
  expect_worked_products({{"mm",
                           {"fp32[3,7]"_t, "fp32[7,5]"_t},
                           {"matmul tf32 batch=1 m=3 n=5 k=7 nn: fp32[3,7] fp32[7,5] > fp32[3,5]" + linear}},
                          {"mm",
                           {"fp16[3,7]"_t, "fp16[7,5]"_t},
                           {"matmul fp16 batch=1 m=3 n=5 k=7 nn: fp16[3,7] fp16[7,5] > fp16[3,5]" + linear}},
                          {"_grouped_mm",
                           {"fp32[2,3,7]"_t, "fp32[2,7,5]"_t},
                           {"matmul tf32 batch=2 m=3 n=5 k=7 nn grouped: fp32[2,3,7] fp32[2,7,5] > fp32[2,3,5] | matmul "
                            "pointwise_backward"}}},
                         tf32);
  MapContext same;
  same.same_library = true;
  const std::vector<MeasuredKernel> kernels{{"nvjet_hsh_192x128_64x5_2x1_v_bz_coopB_TNN", 1e-6, 0.0, 7, 132}};
  const WorkedCall call{"mm", {"bf16[3,7]"_t, "bf16[7,5]"_t}, {}, {}, kernels};
  EXPECT_EQ(operations_of(call, same),
            Listing{"matmul bf16 batch=1 m=3 n=5 k=7 nn wgmma tile_m=128 tile_n=192 tile_k=64 stages=5: bf16[3,7] "
                    "bf16[7,5] > bf16[3,5]" +
                    linear});
  EXPECT_EQ(operations_of(call),
            Listing{"matmul bf16 batch=1 m=3 n=5 k=7 nn: bf16[3,7] bf16[7,5] > bf16[3,5]" + linear});
  // 2 x 2 tiles of 128 x 64 in eight blocks, of each of three: a split in two.
  const std::vector<MeasuredKernel> split{{"cutlass_80_tensorop_s1688gemm_64x128_32x3_tn_align1", 1e-6, 0.0, 7, 24}};
  EXPECT_EQ(operations_of({"bmm", {"fp32[3,200,7]"_t, "fp32[3,7,100]"_t}, {}, {}, split}, same),
            Listing{"matmul fp32 batch=3 m=200 n=100 k=7 nn mma_sync tile_m=128 tile_n=64 tile_k=32 stages=3 splits=2: "
                    "fp32[3,200,7] fp32[3,7,100] > fp32[3,200,100] | matmul pointwise_backward"});
}

// Either factor has its rows in groups, both have, or they share the terms of the sum.
TEST(WorkedProducts, GroupsAreTakenAsOfOneSize) {
  const std::string host = " | matmul pointwise_backward";
  expect_worked_products({
      {"_grouped_mm",
       {"bf16[10,7]#1"_t, "bf16[3,7,5]#2"_t, "int32[3]"_t},
       {"matmul bf16 batch=3 m=4 n=5 k=7 nn grouped: bf16[10,7]#1 bf16[3,7,5]#2 > bf16[10,5]" + host}},
      {"_grouped_mm",
       {"bf16[3,4,7]"_t, "bf16[7,10](1,7)"_t, "int32[3]"_t},
       {"matmul bf16 batch=3 m=4 n=4 k=7 nt grouped: bf16[3,4,7] bf16[7,10](1,7) > bf16[4,10]" + host}},
      {"_grouped_mm",
       {"bf16[4,10](1,4)"_t, "bf16[10,5]"_t, "int32[3]"_t},
       {"matmul bf16 batch=3 m=4 n=5 k=4 tn grouped: bf16[4,10](1,4) bf16[10,5] > bf16[3,4,5]#3" + host},
       {"bf16[3,4,5]#3"_t}},
      {"_grouped_mm",
       {"bf16[3,4,7](28,1,4)"_t, "bf16[3,7,5](35,1,7)"_t},
       {"matmul bf16 batch=3 m=4 n=5 k=7 tt grouped: bf16[3,4,7](28,1,4) bf16[3,7,5](35,1,7) > bf16[3,4,5]" + host}},
      {"_grouped_mm", {"bf16[4,10]"_t, "bf16[10,5]"_t}, kNotUnderstood},
      {"_grouped_mm",
       {"bf16[4,10]"_t, "bf16[10,5]"_t, "int32[1]"_t},
       {"matmul bf16 batch=1 m=4 n=5 k=10 nn grouped: bf16[4,10] bf16[10,5] > bf16[1,4,5]" + host}},
      {"_grouped_mm", {"bf16[4]"_t, "bf16[3,7,5]"_t}, kNotUnderstood},
      {"_grouped_mm", {"bf16[4,7]"_t, "bf16[5]"_t}, kNotUnderstood},
      {"_grouped_mm", {kLeftOut, "bf16[3,7,5]"_t}, kNotUnderstood},
      {"_grouped_mm", {"bf16[4,7]"_t, kLeftOut}, kNotUnderstood},
      {"_grouped_mm", {"bf16[0,7]"_t, "bf16[3,7,5]"_t}, kNothing},
      {"_grouped_mm", {"bf16[9,7]"_t, "bf16[3,7,0]"_t}, kNothing},
      {"_grouped_mm", {"bf16[9,0]"_t, "bf16[3,0,5]"_t}, {"fill 9x5 >bf16 contiguous: > bf16[9,5]"}},
      {"_grouped_mm",
       {"bf16[1,1]"_t, "bf16[1,1,1]"_t},
       {"matmul bf16 batch=1 m=1 n=1 k=1 nn grouped: bf16[1,1] bf16[1,1,1] > bf16[1,1]" + host}},
  });
}

// Two sequences of five tokens, six heads of eight, two heads of keys.
const AtenTensor kQuery = "bf16[2,6,5,8]#1"_t, kKey = "bf16[2,3,7,8]#2"_t, kValue = "bf16[2,3,7,8]#3"_t;
const std::string kSides = "bf16 batch=2 heads=6 kv_heads=3 seq_q=5 seq_k=7 head_dim=8",
                  kTaken = "bf16[2,6,5,8]#1 bf16[2,3,7,8]#2 bf16[2,3,7,8]#3";

TEST(WorkedProducts, AttentionOfEachBackend) {
  const std::string given = ": " + kTaken + " > bf16[2,6,5,8] fp32[2,6,5] | ",
                    cudnn =
                        "attention_cudnn "
                        "attention_cudnn_backward",
                    fused = "attention_fused attention_fused_backward";
  expect_worked_products({
      {"_scaled_dot_product_flash_attention",
       {kQuery, kKey, kValue, 0.0, 1.0},
       {"attention flash causal " + kSides + " head_major" + given + fused}},
      {"_scaled_dot_product_flash_attention",
       {kQuery, kKey, kValue, 0.1, 0.0},
       {"attention flash dropout " + kSides + " head_major" + given + fused}},
      {"_scaled_dot_product_efficient_attention",
       {kQuery, kKey, kValue, kLeftOut, 1.0, 0.1, 1.0},
       {"attention efficient causal dropout " + kSides + " head_major" + given + fused}},
      {"_scaled_dot_product_cudnn_attention",
       {kQuery, kKey, kValue, kLeftOut, 1.0, 0.0, 1.0},
       {"attention cudnn causal " + kSides + " head_major" + given + cudnn}},
      {"_cudnn_attention_forward",
       {kQuery, kKey, kValue, kLeftOut, kLeftOut, kLeftOut, 5.0, 7.0, 1.0, 0.1, 0.0},
       {"attention cudnn dropout " + kSides + " head_major" + given + cudnn}},
      // Views of [batch, seq, heads, head_dim], and one head, lie as their backends want them.
      {"_scaled_dot_product_flash_attention",
       {"bf16[2,6,5,8](240,8,48,1)#1"_t, kKey, kValue, 0.0, 0.0},
       {"attention flash " + kSides +
        ": bf16[2,6,5,8](240,8,48,1)#1 bf16[2,3,7,8]#2 bf16[2,3,7,8]#3 > bf16[2,6,5,8](240,8,48,1) fp32[2,6,5] | " +
        fused}},
      {"_scaled_dot_product_flash_attention",
       {"bf16[2,1,5,8]"_t, "bf16[2,1,7,8]"_t, "bf16[2,1,7,8]"_t, 0.0, 0.0},
       {"attention flash bf16 batch=2 heads=1 kv_heads=1 seq_q=5 seq_k=7 head_dim=8: bf16[2,1,5,8] bf16[2,1,7,8] "
        "bf16[2,1,7,8] > bf16[2,1,5,8]#4 fp32[2,1,5] | " +
        fused},
       {"bf16[2,1,5,8]#4"_t}},
      // The inner calls have the sequence second.
      {"_flash_attention_forward",
       {"bf16[2,5,6,8]#1"_t, "bf16[2,7,3,8]#2"_t, "bf16[2,7,3,8]#3"_t, kLeftOut, kLeftOut, 5.0, 7.0, 0.1, 1.0},
       {"attention flash causal dropout " + kSides +
        ": bf16[2,5,6,8]#1 bf16[2,7,3,8]#2 bf16[2,7,3,8]#3 > bf16[2,5,6,8] fp32[2,6,5] | " + fused}},
      {"_efficient_attention_forward",
       {"bf16[2,5,6,8]#1"_t, "bf16[2,7,3,8]#2"_t, "bf16[2,7,3,8]#3"_t, kLeftOut, kLeftOut, kLeftOut, 5.0, 7.0, 0.1,
        1.0},
       {"attention efficient causal dropout " + kSides +
        ": bf16[2,5,6,8]#1 bf16[2,7,3,8]#2 bf16[2,7,3,8]#3 > bf16[2,5,6,8] fp32[2,6,5] | " + fused}},
      {"_scaled_dot_product_flash_attention", {kLeftOut, kKey, kValue}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention", {kQuery, kLeftOut, kValue}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention", {kQuery, kKey, kLeftOut}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention", {kQuery, "bf16[7,3,8]"_t, kValue}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention", {"bf16[5,8]"_t, "bf16[7,8]"_t, "bf16[7,8]"_t}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention", {"bf16[0,6,5,8]"_t, kKey, kValue}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention", {"bf16[2,0,5,8]"_t, kKey, kValue}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention", {"bf16[2,6,0,8]"_t, kKey, kValue}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention", {kQuery, "bf16[2,3,0,8]"_t, kValue}, kNotUnderstood},
      {"_scaled_dot_product_flash_attention",
       {"bf16[1,1,1,8]"_t, "bf16[1,1,1,8]"_t, "bf16[1,1,1,8]"_t},
       {"attention flash bf16 batch=1 heads=1 kv_heads=1 seq_q=1 seq_k=1 head_dim=8: bf16[1,1,1,8] bf16[1,1,1,8] "
        "bf16[1,1,1,8] > bf16[1,1,1,8] fp32[1,1,1] | " +
        fused}},
  });
  MapContext tf32;  // makes no difference
  tf32.tf32 = true;
  expect_worked_products(
      {{"_scaled_dot_product_efficient_attention",
        {"fp32[2,6,5,8]"_t, "fp32[2,6,5,8]"_t, "fp32[2,6,5,8]"_t},
        {"attention efficient fp32 batch=2 heads=6 kv_heads=6 seq_q=5 seq_k=5 head_dim=8 head_major: fp32[2,6,5,8] "
         "fp32[2,6,5,8] fp32[2,6,5,8] > fp32[2,6,5,8] fp32[2,6,5] | " +
         fused}}},
      tf32);
}

TEST(WorkedProducts, GradientsOfAttention) {
  const std::string cudnn = " | attention_cudnn_backward attention_cudnn_backward",
                    fused = " | attention_fused_backward attention_fused_backward",
                    whole = ": bf16[2,6,5,8]#9 " + kTaken +
                            " bf16[2,6,5,8]#4 fp32[2,6,5]#5 > bf16[2,6,5,8] bf16[2,3,7,8] bf16[2,3,7,8]";
  const AtenTensor dy = "bf16[2,6,5,8]#9"_t, y = "bf16[2,6,5,8]#4"_t, l = "fp32[2,6,5]#5"_t;
  const auto call = [&](const char* name, std::size_t saved, std::size_t dropout, std::size_t causal,
                        Listing expected) {
    WorkedCall worked{name, std::vector<Argument>(16, kLeftOut), std::move(expected)};
    worked.inputs[0] = dy;
    worked.inputs[1] = kQuery, worked.inputs[2] = kKey, worked.inputs[3] = kValue;
    worked.inputs[saved] = y;
    worked.inputs[saved + 1] = l;
    worked.inputs[dropout] = 0.1;
    worked.inputs[causal] = 1.0;
    return worked;
  };
  const std::string flags = " backward causal dropout " + kSides + " head_major";
  expect_worked_products({
      call("_scaled_dot_product_flash_attention_backward", 4, 10, 11, {"attention flash" + flags + whole + fused}),
      call("_scaled_dot_product_efficient_attention_backward", 5, 9, 11,
           {"attention efficient" + flags + whole + fused}),
      call("_scaled_dot_product_cudnn_attention_backward", 4, 13, 14, {"attention cudnn" + flags + whole + cudnn}),
      call("_cudnn_attention_backward", 4, 13, 14, {"attention cudnn" + flags + whole + cudnn}),
      // What is not recorded is as large as it must be.
      {"_scaled_dot_product_flash_attention_backward",
       {kLeftOut, kQuery, kKey, kValue},
       {"attention flash backward " + kSides + " head_major: bf16[2,6,5,8]#1 " + kTaken +
        " bf16[2,6,5,8]#1 fp32[2,6,5] > bf16[2,6,5,8] bf16[2,3,7,8] bf16[2,3,7,8]" + fused}},
  });
  WorkedCall inner{"_flash_attention_backward", std::vector<Argument>(16, kLeftOut), {}};
  inner.inputs[0] = "bf16[2,5,6,8]#9"_t;
  inner.inputs[1] = "bf16[2,5,6,8]#1"_t, inner.inputs[2] = inner.inputs[3] = "bf16[2,7,3,8]#2"_t;
  inner.inputs[4] = "bf16[2,5,6,8]#4"_t, inner.inputs[5] = l;
  inner.inputs[10] = 0.1, inner.inputs[11] = 1.0;
  const std::string second =
      ": bf16[2,5,6,8]#9 bf16[2,5,6,8]#1 bf16[2,7,3,8]#2 bf16[2,7,3,8]#2 bf16[2,5,6,8]#4 "
      "fp32[2,6,5]#5 > bf16[2,5,6,8] bf16[2,7,3,8] bf16[2,7,3,8]";
  EXPECT_EQ(operations_of(inner), Listing{"attention flash backward causal dropout " + kSides + second + fused});
  inner.name = "_efficient_attention_backward";
  inner.inputs[4] = kLeftOut, inner.inputs[5] = "bf16[2,5,6,8]#4"_t, inner.inputs[6] = l;
  inner.inputs[10] = kLeftOut, inner.inputs[11] = 0.1, inner.inputs[14] = 1.0;
  EXPECT_EQ(operations_of(inner), Listing{"attention efficient backward causal dropout " + kSides + second + fused});
}

// FlashAttention by cumulative lengths: the longest is said, the others share the rest.
TEST(WorkedProducts, PackedSequences) {
  const auto packed = [](std::int64_t tokens, AtenTensor ends, Argument longest) {
    AtenTensor q = "bf16[1,6,8]"_t;
    q.sizes[0] = tokens;
    const Listing lines =
        operations_of({"_flash_attention_forward", {q, q, q, ends, ends, std::move(longest), 5.0}, {}});
    const std::size_t at = lines.front().find("lengths=");
    return at == std::string::npos ? lines.front() : lines.front().substr(at, lines.front().find(':') - at);
  };
  EXPECT_EQ(packed(20, "int32[4]"_t, 10.0), "lengths=10,5,5");
  EXPECT_EQ(packed(21, "int32[4]"_t, 10.0), "lengths=10,5,6");
  EXPECT_EQ(packed(20, "int32[4]"_t, 7.0), "lengths=7,6,7");
  EXPECT_EQ(packed(20, "int32[4]"_t, 6.0), "lengths=7,6,7") << "none of three is longer than six";
  EXPECT_EQ(packed(20, "int32[4]"_t, kLeftOut), "lengths=7,6,7");
  EXPECT_EQ(packed(20, "int32[4]"_t, 18.0), "lengths=18,1,1");
  EXPECT_EQ(packed(20, "int32[4]"_t, 19.0), "lengths=18,1,1");
  EXPECT_EQ(packed(20, "int32[2]"_t, 3.0), "lengths=20");
  EXPECT_EQ(packed(20, "int32[1]"_t, 3.0), "not understood");
  EXPECT_EQ(packed(20, "int32[2,2]"_t, 3.0), "not understood");
  EXPECT_EQ(packed(3, "int32[4]"_t, 1.0), "lengths=1,1,1");
  EXPECT_EQ(packed(2, "int32[4]"_t, 1.0), "not understood");
  const AtenTensor q = "bf16[20,6,8]#1"_t, k = "bf16[20,3,8]#2"_t, ends = "int32[3]"_t;
  EXPECT_EQ(operations_of({"_flash_attention_forward", {q, k, k, ends, ends, 13.0, 13.0, 0.1, 1.0}, {}}),
            Listing{"attention flash causal dropout bf16 batch=1 heads=6 kv_heads=3 seq_q=20 seq_k=20 head_dim=8 "
                    "lengths=13,7: bf16[20,6,8]#1 bf16[20,3,8]#2 bf16[20,3,8]#2 > bf16[20,6,8] fp32[1,6,20] | "
                    "attention_fused attention_fused_backward"});
  EXPECT_EQ(operations_of({"_flash_attention_forward", {q, "bf16[9,3,8]"_t, k, ends, ends, 13.0}, {}}), kNotUnderstood);
  EXPECT_EQ(operations_of({"_flash_attention_forward", {q, k, k, kLeftOut, kLeftOut, 13.0}, {}}), kNotUnderstood);
  EXPECT_EQ(operations_of({"_scaled_dot_product_flash_attention", {q, k, k, ends, ends, 13.0}, {}}), kNotUnderstood);
  WorkedCall backward{"_flash_attention_backward", std::vector<Argument>(12, kLeftOut), {}};
  backward.inputs[1] = q, backward.inputs[2] = backward.inputs[3] = k;
  backward.inputs[6] = backward.inputs[7] = ends;
  backward.inputs[8] = 13.0;
  EXPECT_EQ(operations_of(backward).front().substr(0, 104),
            "attention flash backward bf16 batch=1 heads=6 kv_heads=3 seq_q=20 seq_k=20 head_dim=8 lengths=13,7: bf16");
}

// Recorded without a GPU: cuDNN's where that takes it, the others' where it does not.
TEST(WorkedProducts, AttentionThatNamesNoBackend) {
  const auto backend = [](const char* type, std::int64_t head_dim, Argument mask = kLeftOut,
                          Argument learned = kLeftOut, bool backward = false) {
    AtenTensor q = "bf16[2,6,5,8]"_t;
    q.type = *dtype_from(type);
    q.sizes[3] = head_dim;
    WorkedCall call{"ridgeline::attention", {q, q, q, mask, 0.1, 1.0, learned}, {}};
    if (backward)
      call = {"ridgeline::attention_backward", {q, q, q, q, q, "fp32[2,6,5]"_t, 0.1, 1.0, mask, learned}, {}};
    const std::string line = operations_of(call).front();
    EXPECT_NE(line.find(" causal dropout "), line.npos);
    EXPECT_EQ(line.find(" bias") != line.npos, std::holds_alternative<AtenTensor>(mask));
    EXPECT_EQ(line.find(" backward ") != line.npos, backward);
    return line.substr(10, line.find(' ', 10) - 10);
  };
  const AtenTensor mask = "bf16[2,1,5,5]#8"_t;
  for (const bool backward : {false, true}) {
    EXPECT_EQ(backend("bf16", 8, kLeftOut, kLeftOut, backward), "cudnn");
    EXPECT_EQ(backend("fp16", 256, kLeftOut, kLeftOut, backward), "cudnn");
    EXPECT_EQ(backend("bf16", 264, kLeftOut, kLeftOut, backward), "flash");
    EXPECT_EQ(backend("bf16", 12, kLeftOut, kLeftOut, backward), "flash");
    EXPECT_EQ(backend("fp32", 8, kLeftOut, kLeftOut, backward), "efficient");
    EXPECT_EQ(backend("bf16", 8, mask, kLeftOut, backward), "cudnn");
    EXPECT_EQ(backend("bf16", 12, mask, kLeftOut, backward), "math") << "efficient attention takes steps of eight";
    EXPECT_EQ(backend("fp32", 12, mask, kLeftOut, backward), "efficient");
    EXPECT_EQ(backend("fp32", 10, mask, kLeftOut, backward), "math");
    EXPECT_EQ(backend("bf16", 264, mask, 0.0, backward), "efficient");
    EXPECT_EQ(backend("bf16", 8, mask, 1.0, backward), "efficient") << "a mask that is learned";
    EXPECT_EQ(backend("bf16", 8, kLeftOut, 1.0, backward), "cudnn");
  }
  EXPECT_EQ(operations_of({"ridgeline::attention", {kQuery, kKey, kValue, "bf16[2,1,5,7]#8"_t}, {}}),
            Listing{"attention cudnn " + kSides + " head_major bias: " + kTaken +
                    " bf16[2,1,5,7]#8 > bf16[2,6,5,8] fp32[2,6,5] | attention_cudnn attention_cudnn_backward"});
  EXPECT_EQ(operations_of({"ridgeline::attention_backward",
                           {kQuery, kQuery, kKey, kValue, kLeftOut, kLeftOut, 0.0, 0.0, "bf16[2,1,5,7]#8"_t},
                           {}}),
            Listing{"attention cudnn backward " + kSides + " head_major bias: bf16[2,6,5,8]#1 " + kTaken +
                    " bf16[2,6,5,8]#1 fp32[2,6,5] bf16[2,1,5,7]#8 > bf16[2,6,5,8] bf16[2,3,7,8] bf16[2,3,7,8] | "
                    "attention_cudnn_backward attention_cudnn_backward"});
  const AtenTensor few = "fp32[2,3,5,8]"_t, many = "fp32[2,6,5,8]"_t;
  const auto grouped = [&](Argument learned, const char* type) {
    AtenTensor q = many, k = few;
    q.type = k.type = *dtype_from(type);
    return operations_of({"ridgeline::attention", {q, k, k, mask, 0.0, 0.0, std::move(learned)}, {}}).front();
  };
  EXPECT_EQ(grouped(0.0, "bf16").find("attention cudnn"), 0u);
  EXPECT_EQ(grouped(1.0, "bf16").find("attention math"), 0u)
      << "efficient attention takes a key head for each query head";
  EXPECT_EQ(grouped(0.0, "fp32").find("attention math"), 0u);
  EXPECT_EQ(operations_of({"ridgeline::attention", {kLeftOut}, {}}), kNotUnderstood);
}

}  // namespace
}  // namespace ridgeline::trace
