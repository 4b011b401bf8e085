// Every op of the vocabulary of kernel cases: what a line becomes, which tensors are too large, and what each
// parameter may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sim/workload/kernel_case.h"
#include "sim/workload/pointwise_functions.h"
#include "tests/support/recorded_text.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

KernelCase case_of(const std::string& op, const std::string& params, const std::string& type = "bf16",
                   const std::string& more = "") {
  return kernel_case_from(
      json::parse(R"({"op":")" + op + R"(","dtype":")" + type + R"(","params":{)" + params + "}" + more + "}"));
}
std::string op_in_words(const std::string& op, const std::string& params, const std::string& type = "bf16") {
  return testing_support::words_of(case_of(op, params, type).op);
}
std::string case_refused(const std::string& op, const std::string& params, const std::string& type = "bf16",
                         const std::string& more = "") {
  try {
    case_of(op, params, type, more);
  } catch (const KernelCaseError& error) {
    return error.what();
  }
  return "";
}

TEST(KernelCaseOps, ProductsHaveABatchALayoutAndScales) {
  const std::string sizes = R"("m":2,"n":3,"k":5)";
  EXPECT_EQ(op_in_words("mm", sizes), "mm 2x3x5 nn bf16");
  EXPECT_EQ(op_in_words("mm", sizes + R"(,"layout":"nn")", "tf32"), "mm 2x3x5 nn tf32");
  EXPECT_EQ(op_in_words("mm", sizes + R"(,"layout":"nt","sparsity":"2:4")"), "mm 2x3x5 nt bf16 2:4 b");
  EXPECT_EQ(op_in_words("mm", sizes + R"(,"sparsity":"2:4","sparse_operand":"a")"), "mm 2x3x5 nn bf16 2:4 a");
  EXPECT_EQ(op_in_words("addmm", sizes + R"(,"layout":"nt")"), "addmm 2x3x5 nt bf16");
  EXPECT_EQ(case_refused("addmm", sizes + R"(,"layout":"tn")"), "addmm: layout must be nt");
  EXPECT_EQ(case_refused("addmm", sizes + R"(,"b":1)"), "");
  EXPECT_EQ(case_refused("addmm", sizes + R"(,"b":2)"), "addmm: b must be 1");
  for (const char* large :
       {R"("m":4000000,"n":3,"k":2500001)", R"("m":3,"n":4000000,"k":2500001)", R"("m":4000000,"n":2500001,"k":3)"})
    EXPECT_THAT(case_refused("mm", large), HasSubstr("too large"));
  for (const char* large :
       {R"("m":4000000,"n":16,"k":2500016)", R"("m":3,"n":4000000,"k":2500016)", R"("m":4000000,"n":2500016,"k":16)"})
    EXPECT_THAT(case_refused("scaled_mm", large), HasSubstr("too large"));
  EXPECT_EQ(op_in_words("bmm", sizes + R"(,"b":7)", "fp16"), "bmm 7x 2x3x5 nn fp16");
  const std::string wide = R"("m":2,"n":32,"k":48)";
  EXPECT_EQ(op_in_words("scaled_mm", wide), "_scaled_mm 2x32x48 nt bf16 of fp8");
  EXPECT_EQ(op_in_words("scaled_mm", wide + R"(,"fast_accum":false)"),
            "_scaled_mm 2x32x48 nt bf16 of fp8, sums in fp32");
  EXPECT_EQ(op_in_words("scaled_mm", wide + R"(,"scales":"rows")"),
            "_scaled_mm 2x32x48 nt bf16 of fp8, scales of rows");
  EXPECT_EQ(case_refused("scaled_mm", wide + R"(,"scales":"rows","fast_accum":false)"),
            "scaled_mm: scales of rows go with fast_accum true");
  EXPECT_EQ(case_refused("scaled_mm", wide, "fp32"), "scaled_mm: dtype is that of the result: bf16 or fp16");
  EXPECT_EQ(case_refused("scaled_mm", R"("m":2,"n":24,"k":48)"),
            "scaled_mm: n and k must be multiples of 16, got 24 and 48");
  EXPECT_EQ(case_refused("scaled_mm", R"("m":2,"n":32,"k":40)"),
            "scaled_mm: n and k must be multiples of 16, got 32 and 40");
}

TEST(KernelCaseOps, RowsAndColumns) {
  const std::pair<const char*, const char*> ops[] = {{"softmax", "softmax 3x5 bf16"},
                                                     {"softmax_backward", "softmax_backward 3x5 bf16"},
                                                     {"log_softmax", "log_softmax 3x5 bf16"},
                                                     {"log_softmax_backward", "log_softmax_backward 3x5 bf16"},
                                                     {"layer_norm", "native_layer_norm 3x5 bf16"},
                                                     {"layer_norm_backward", "native_layer_norm_backward 3x5 bf16"},
                                                     {"gelu", "gelu 3x5 bf16"},
                                                     {"gelu_backward", "gelu_backward 3x5 bf16,bf16->bf16"},
                                                     {"silu", "silu 3x5 bf16"},
                                                     {"silu_backward", "silu_backward 3x5 bf16,bf16->bf16"},
                                                     {"add", "add 3x5 bf16,bf16->bf16"},
                                                     {"mul", "mul 3x5 bf16,bf16->bf16"},
                                                     {"add_broadcast", "add 3x5 bf16,bf16->bf16 rows"},
                                                     {"pow2", "pow 3x5 bf16"},
                                                     {"masked_fill", "masked_fill 3x5 bf16,bool->bf16"},
                                                     {"mean_last", "mean 3x5 bf16"},
                                                     {"sum_rows", "sum 3x5 bf16 rows"},
                                                     {"dropout", "native_dropout 15 bf16"},
                                                     {"cast", "cast 3x5 bf16->fp32"},
                                                     {"copy_transposed", "copy 5x3 bf16 transposed"},
                                                     {"cat", "cat 3x5 bf16 x3 joined"}};
  for (const auto& [op, words] : ops) {
    EXPECT_EQ(op_in_words(op, R"("rows":3,"cols":5)"), words);
    EXPECT_EQ(case_refused(op, R"("rows":4000000,"cols":2500000)"), "");  // 1e13 elements
    EXPECT_THAT(case_refused(op, R"("rows":4000000,"cols":2500001)"), HasSubstr("is too large for any GPU")) << op;
  }
  EXPECT_EQ(op_in_words("cast", R"("rows":3,"cols":5)", "fp32"), "cast 3x5 fp32->bf16");
  EXPECT_EQ(op_in_words("cast", R"("rows":3,"cols":5)", "fp16"), "cast 3x5 fp16->fp32");
}

TEST(KernelCaseOps, Elements) {
  const std::pair<const char*, const char*> ops[] = {{"copy", "copy 1x15 bf16"},
                                                     {"fill", "fill 1x15 bf16"},
                                                     {"scale", "scale 1x15 bf16"},
                                                     {"sum_all", "sum 1x15 bf16"}};
  for (const auto& [op, words] : ops) {
    EXPECT_EQ(op_in_words(op, R"("elements":15)").substr(0, std::string(words).size()), words);
    EXPECT_EQ(case_refused(op, R"("elements":4398046511104)"), "") << "as large as a number may be";
    EXPECT_THAT(case_refused(op, R"("elements":4398046511105)"), HasSubstr("must be at most 4398046511104"));
  }
}

TEST(KernelCaseOps, ListsOfTensors) {
  const std::pair<const char*, const char*> ops[] = {
      {"fused_adamw", "fused_adamw"},         {"foreach_add", "foreach_add"},        {"foreach_mul", "foreach_mul"},
      {"foreach_lerp", "foreach_lerp"},       {"foreach_sqrt", "foreach_sqrt"},      {"foreach_norm", "foreach_norm"},
      {"foreach_addcmul", "foreach_addcmul"}, {"foreach_addcdiv", "foreach_addcdiv"}};
  for (const auto& [op, name] : ops) {
    EXPECT_EQ(op_in_words(op, R"("tensors":3,"elements":5)"), std::string(name) + " 3 tensors, 15 elements bf16");
    EXPECT_EQ(op_in_words(op, R"("elements":5)"), std::string(name) + " 1 tensors, 5 elements bf16");
    EXPECT_EQ(case_refused(op, R"("tensors":100000,"elements":5)"), "");
    EXPECT_EQ(case_refused(op, R"("tensors":100001,"elements":5)"), "tensors must be at most 100000");
    EXPECT_THAT(case_refused(op, R"("tensors":100,"elements":100000000001)"), HasSubstr("too large"));
  }
}

TEST(KernelCaseOps, RowsOfATable) {
  const std::string sizes = R"("tokens":3,"vocab":7,"hidden":5)";
  EXPECT_EQ(op_in_words("embedding", sizes), "embedding 3 of 7x5 bf16");
  EXPECT_EQ(op_in_words("embedding_backward", sizes), "embedding_dense_backward 3 of 7x5 bf16");
  EXPECT_EQ(op_in_words("index_put", sizes), "index_put 3 of 7x5 bf16 added");
  for (const char* op : {"embedding", "embedding_backward", "index_put"})
    for (const char* many : {"tokens", "vocab"})
      EXPECT_THAT(case_refused(op, std::string("\"") + (many == std::string("vocab") ? "tokens" : "vocab") + "\":2,\"" +
                                       many + "\":3000000000,\"hidden\":5000"),
                  HasSubstr("too large"))
          << op << many;
}

TEST(KernelCaseOps, AttentionOfEachBackend) {
  const std::string sizes = R"("batch":3,"heads":6,"seq":5,"head_dim":8)";
  EXPECT_EQ(op_in_words("flash_attention", sizes), "flash_attention 3x6x5x8 bf16 head-major");
  EXPECT_EQ(op_in_words("flash_attention", sizes + R"(,"head_major":false,"causal":true,"kv_heads":2)"),
            "flash_attention 3x6x5x8 causal bf16 kv2");
  EXPECT_EQ(op_in_words("flash_attention_backward", R"("batch":3,"heads":6,"head_dim":8,"lengths":[2,4,5])"),
            "flash_attention_backward 3x6x11x8 3 sequences bf16");
  EXPECT_EQ(op_in_words("cudnn_attention", sizes), "cudnn_attention 3x6x5x8 bf16");
  EXPECT_EQ(op_in_words("cudnn_attention_backward", sizes), "cudnn_attention_backward 3x6x5x8 bf16");
  EXPECT_EQ(op_in_words("efficient_attention", sizes, "fp32"), "efficient_attention 3x6x5x8 fp32");
  EXPECT_EQ(op_in_words("efficient_attention_backward", sizes), "efficient_attention_backward 3x6x5x8 bf16");
  EXPECT_EQ(case_refused("cudnn_attention", sizes + R"(,"kv_heads":4)"),
            "cudnn_attention: kv_heads must divide heads, got 4 of 6");
  EXPECT_EQ(case_refused("flash_attention", sizes + R"(,"lengths":[2,4])"),
            "flash_attention: lengths add up to 6, seq is 5: leave it out, or say the same");
  EXPECT_EQ(case_refused("flash_attention", sizes + R"(,"lengths":[2,3])"), "");
  EXPECT_EQ(case_refused("flash_attention", sizes + R"(,"lengths":[2,3],"head_major":true)"),
            "flash_attention: packed sequences lie as [tokens, heads, head_dim]: head_major must be false");
  EXPECT_THAT(case_refused("cudnn_attention", sizes, "tf32"), HasSubstr("fp16 and bf16 only"));
  EXPECT_THAT(case_refused("cudnn_attention", R"("batch":3000000,"heads":6,"seq":5000000,"head_dim":8)"),
              HasSubstr("too large"));
  EXPECT_THAT(case_refused("flash_attention", sizes + R"(,"lengths":[])"), HasSubstr("must be a list of 1 to 65536"));
  EXPECT_THAT(case_refused("flash_attention", R"("batch":3,"heads":6,"head_dim":8,"lengths":[2,0])"),
              HasSubstr("whole numbers from 1 to 16777216"));
  EXPECT_EQ(case_refused("flash_attention", R"("batch":3,"heads":6,"head_dim":8,"lengths":[16777216])"), "");
  EXPECT_THAT(case_refused("flash_attention", R"("batch":3,"heads":6,"head_dim":8,"lengths":[16777217])"),
              HasSubstr("got [16777217]"));
}

TEST(KernelCaseOps, Images) {
  const std::string sizes = R"("batch":2,"channels":3,"size":8)",
                    conv = R"("batch":2,"in_channels":3,"size":8,"out_channels":5,"kernel":4)";
  EXPECT_EQ(op_in_words("batch_norm", sizes), "batch_norm 2x3x8x8 bf16");
  EXPECT_EQ(op_in_words("batch_norm_backward", sizes), "batch_norm_backward 2x3x8x8 bf16");
  EXPECT_EQ(op_in_words("relu", sizes), "relu 2x3x8x8 bf16");
  EXPECT_EQ(op_in_words("max_pool2d", sizes), "max_pool2d 2x3x8x8 bf16");
  EXPECT_EQ(op_in_words("upsample_nearest2d", sizes), "upsample_nearest2d 2x3x8x8 bf16");
  EXPECT_THAT(case_refused("relu", R"("batch":2,"channels":6000000,"size":1000)"), HasSubstr("too large"));
  EXPECT_EQ(op_in_words("conv2d", conv), "conv2d 2x3x8x8 to 5, 4x4 bf16");
  EXPECT_EQ(op_in_words("conv2d_backward", conv), "conv2d_backward 2x3x8x8 to 5, 4x4 bf16");
  const auto strided = std::get<Convolution>(case_of("conv2d", conv + R"(,"stride":3,"channels_last":true)").op);
  EXPECT_EQ(strided.stride, 3);
  EXPECT_TRUE(strided.channels_last);
  EXPECT_EQ(std::get<Convolution>(case_of("conv2d", conv).op).stride, 1);
  EXPECT_FALSE(std::get<Convolution>(case_of("conv2d", conv).op).channels_last);
  EXPECT_TRUE(std::get<ImageOp>(case_of("relu", sizes + R"(,"channels_last":true)").op).channels_last);
}

TEST(KernelCaseOps, EveryNameOfTheVocabularyIsTried) {
  // Point-wise functions are tried by their rows too (pointwise_functions_test.cpp).
  const std::set<std::string_view> here{"gelu", "gelu_backward", "silu",  "silu_backward", "add", "mul",
                                        "pow2", "masked_fill",   "scale", "cast",          "relu"};
  std::size_t by_rows = 0;
  for (const PointwiseRow& row : pointwise_rows())
    if (row.tensors > 0 && !here.contains(row.key)) ++by_rows;
  EXPECT_EQ(kernel_op_names().size(), 5u + 21u + 4u + 8u + 3u + 6u + 10u + by_rows);
}

TEST(KernelCaseOps, SetsOfInputs) {
  const std::string sizes = R"("m":2,"n":3,"k":5)";
  EXPECT_EQ(case_of("mm", sizes).input_sets, 0);
  EXPECT_EQ(case_of("mm", sizes, "bf16", R"(,"input_sets":1)").input_sets, 1);
  EXPECT_EQ(case_of("mm", sizes, "bf16", R"(,"input_sets":1000000)").input_sets, 1000000);
  EXPECT_THAT(case_refused("mm", sizes, "bf16", R"(,"input_sets":1000001)"), HasSubstr("got 1000001"));
  EXPECT_THAT(case_refused("mm", sizes, "bf16", R"(,"input_sets":0)"), HasSubstr("at least 1, got 0"));
  EXPECT_THAT(case_refused("mm", sizes, "bf16", R"(,"input_sets":2.5)"), HasSubstr("got 2.5"));
  EXPECT_EQ(case_of("mm", sizes, "bf16", R"(,"input_sets":2,"shared_operand":"a")").shared_operand, 0);
  EXPECT_EQ(case_of("mm", sizes, "bf16", R"(,"input_sets":2,"shared_operand":"b")").shared_operand, 1);
  EXPECT_THAT(case_refused("gelu", R"("rows":3,"cols":5)", "bf16", R"(,"input_sets":2,"shared_operand":"b")"),
              HasSubstr("shared_operand is for products"));
}

}  // namespace
}  // namespace ridgeline
