// Calls that work row by row, and losses, worked out by hand.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_rows(const std::vector<WorkedCall>& calls) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call), call.expected) << text_of(call);
}

TEST(WorkedRows, SoftmaxGoesAlongOneDimension) {
  const auto softmax = [](double dim, std::string_view shape) {
    return WorkedCall{
        "_softmax",
        {"fp32[3,4,5]#1"_t, dim},
        {fmt::format("softmax fp32 fp32 {}: fp32[3,4,5]#1 > fp32[3,4,5] | softmax softmax_backward", shape)}};
  };
  expect_worked_rows({
      softmax(-1, "rows=12 cols=5"),
      softmax(2, "rows=12 cols=5"),
      softmax(1, "rows=15 cols=4 inner=5"),
      softmax(-2, "rows=15 cols=4 inner=5"),
      softmax(0, "rows=20 cols=3 inner=20"),
      softmax(-3, "rows=20 cols=3 inner=20"),
      // A dimension that there is none of.
      softmax(3, "rows=60 cols=1"),
      softmax(-4, "rows=60 cols=1"),
      {"_softmax",
       {"fp32[3,5]"_t},
       {"softmax fp32 fp32 rows=3 cols=5: fp32[3,5] > fp32[3,5] | softmax softmax_backward"}},
      // Halves are widened where the call asks for it.
      {"_softmax",
       {"bf16[3,5]"_t, -1.0, 1.0},
       {"softmax bf16 fp32 rows=3 cols=5: bf16[3,5] > fp32[3,5] | softmax softmax_backward"}},
      {"_softmax",
       {"bf16[3,5]"_t, -1.0, 0.0},
       {"softmax bf16 bf16 rows=3 cols=5: bf16[3,5] > bf16[3,5] | softmax softmax_backward"}},
      {"_softmax",
       {"bf16[3,5]"_t, -1.0},
       {"softmax bf16 bf16 rows=3 cols=5: bf16[3,5] > bf16[3,5] | softmax softmax_backward"}},
      {"_softmax",
       {"fp64[3,5]"_t, -1.0, 1.0},
       {"softmax fp64 fp64 rows=3 cols=5: fp64[3,5] > fp64[3,5] | softmax softmax_backward"}},
      {"_log_softmax",
       {"fp16[3,5]#1"_t, 0.0, 0.0},
       {"softmax log fp16 fp32 rows=5 cols=3 inner=5: fp16[3,5]#1 > fp32[3,5]#2 | softmax softmax_backward"},
       {"fp32[3,5]#2"_t}},
      {"_softmax", {"fp32[0,5]"_t, -1.0}, kNotUnderstood},
      {"_softmax", {kLeftOut, -1.0}, kNotUnderstood},
      {"_softmax",
       {"fp32[1]"_t, -1.0},
       {"softmax fp32 fp32 rows=1 cols=1: fp32[1] > fp32[1] | softmax softmax_backward"}},
  });
}

TEST(WorkedRows, SafeSoftmaxLooksForRowsOfMinusInfinity) {
  expect_worked_rows({
      {"_safe_softmax",
       {"bf16[3,4,5]#1"_t, 1.0},
       {"softmax bf16 bf16 rows=15 cols=4 inner=5: bf16[3,4,5]#1 > bf16[3,4,5] | softmax softmax_backward",
        "equal 12x5 bf16>bool contiguous: bf16[3,4,5]#1 > bool[3,4,5]",
        "reduction sum_cols bool rows=15 cols=4: bool[3,4,5] > bool[15,1]", "fill 1x1 >bf16 contiguous: > bf16[]",
        "other 15x4 bool,bf16>bf16 broadcast: bool[15,1] bf16[3,4,5] > bf16[3,4,5]"}},
      {"_safe_softmax", {kLeftOut}, kNotUnderstood},
  });
}

TEST(WorkedRows, GradientsOfSoftmaxAreOfTheTypeThatIsAskedFor) {
  const auto backward = [](Argument type, std::string_view given) {
    return WorkedCall{"_softmax_backward_data",
                      {"fp32[3,5]#1"_t, "fp32[3,5]#2"_t, 1.0, std::move(type)},
                      {fmt::format("softmax backward fp32 {0} rows=3 cols=5: fp32[3,5]#1 fp32[3,5]#2 > {0}[3,5] | "
                                   "softmax_backward softmax_backward",
                                   given)}};
  };
  expect_worked_rows({
      // PyTorch's numbers of its types, and their names.
      backward(5.0, "fp16"),
      backward(6.0, "fp32"),
      backward(7.0, "fp64"),
      backward(15.0, "bf16"),
      backward(4.0, "fp32"),
      backward(std::string("c10::BFloat16"), "bf16"),
      backward(kLeftOut, "fp32"),
      {"_log_softmax_backward_data",
       {"fp16[3,4,5]#1"_t, "fp32[3,4,5]#2"_t, 1.0, 5.0},
       {"softmax log backward fp32 fp16 rows=15 cols=4 inner=5: fp16[3,4,5]#1 fp32[3,4,5]#2 > fp16[3,4,5]#3 | "
        "softmax_backward "
        "log_softmax_backward"},
       {"fp16[3,4,5]#3"_t}},
      {"_softmax_backward_data",
       {"fp32[3,5]"_t, "fp32[3,5]"_t},
       {"softmax backward fp32 fp32 rows=3 cols=5: fp32[3,5] fp32[3,5] > fp32[3,5] | softmax_backward "
        "softmax_backward"}},
      {"_softmax_backward_data", {kLeftOut, "fp32[3,5]"_t}, kNotUnderstood},
      {"_softmax_backward_data", {"fp32[3,5]"_t, kLeftOut}, kNotUnderstood},
      {"_softmax_backward_data", {"fp32[0]"_t, "fp32[0]"_t}, kNotUnderstood},
  });
}

TEST(WorkedRows, LayerNormsGoOverTheShapeThatTheyAreGiven) {
  const std::string host = " | layer_norm layer_norm_backward";
  expect_worked_rows({
      {"native_layer_norm",
       {"bf16[3,4,5]#1"_t, Numbers{5}, "fp32[5]#2"_t, "fp32[5]#3"_t, 1e-5},
       {"norm bias bf16 rows=12 cols=5: bf16[3,4,5]#1 fp32[5]#2 fp32[5]#3 > bf16[3,4,5] fp32[12] fp32[12]" + host}},
      {"native_layer_norm",
       {"bf16[3,4,5]#1"_t, Numbers{4, 5}, "fp32[4,5]#2"_t, kLeftOut, 1e-5},
       {"norm bf16 rows=3 cols=20: bf16[3,4,5]#1 fp32[4,5]#2 > bf16[3,4,5]#7 fp32[3] fp32[3]" + host},
       {"bf16[3,4,5]#7"_t}},
      {"native_layer_norm",
       {"bf16[3,4,5]"_t, kLeftOut, kLeftOut, kLeftOut},
       {"norm bf16 rows=12 cols=5: bf16[3,4,5] bf16[5] > bf16[3,4,5] fp32[12] fp32[12]" + host}},
      {"native_layer_norm",
       {"bf16[3,4,5]"_t, Numbers{}, kLeftOut, kLeftOut},
       {"norm bf16 rows=12 cols=5: bf16[3,4,5] bf16[5] > bf16[3,4,5] fp32[12] fp32[12]" + host}},
      {"native_layer_norm", {"bf16[0,5]"_t, Numbers{5}}, kNotUnderstood},
      {"native_layer_norm", {kLeftOut, Numbers{5}}, kNotUnderstood},
      {"native_layer_norm",
       {"fp32[1]"_t, Numbers{1}},
       {"norm fp32 rows=1 cols=1: fp32[1] fp32[1] > fp32[1] fp32[1] fp32[1]" + host}},
      {"_fused_rms_norm",
       {"bf16[3,4,5]#1"_t, Numbers{4, 5}, "fp32[20]#2"_t, 1e-5},
       {"norm rms bf16 rows=3 cols=20: bf16[3,4,5]#1 fp32[20]#2 > bf16[3,4,5] fp32[3]" + host}},
      {"_fused_rms_norm",
       {"bf16[3,4,5]#1"_t, Numbers{5}},
       {"norm rms bf16 rows=12 cols=5: bf16[3,4,5]#1 bf16[5] > bf16[3,4,5]#9 fp32[12]" + host},
       {"bf16[3,4,5]#9"_t}},
      {"_fused_rms_norm", {kLeftOut, Numbers{5}}, kNotUnderstood},
      {"_fused_rms_norm", {"fp32[0]"_t, Numbers{5}}, kNotUnderstood},
      {"_fused_rms_norm",
       {"fp32[1]"_t, Numbers{1}},
       {"norm rms fp32 rows=1 cols=1: fp32[1] fp32[1] > fp32[1] fp32[1]" + host}},
  });
}

TEST(WorkedRows, GradientsOfLayerNorms) {
  const std::string host = " | layer_norm_backward layer_norm_backward";
  expect_worked_rows({
      {"native_layer_norm_backward",
       {"bf16[3,4,5]#1"_t, "bf16[3,4,5]#2"_t, Numbers{4, 5}, "fp32[3,1,1]#3"_t, "fp32[3,1,1]#4"_t, "fp32[4,5]#5"_t,
        "fp32[4,5]#6"_t},
       {"norm backward bias bf16 rows=3 cols=20: bf16[3,4,5]#1 bf16[3,4,5]#2 fp32[4,5]#5 fp32[3,1,1]#3 fp32[3,1,1]#4 > "
        "bf16[3,4,5] fp32[20] fp32[20]" +
        host}},
      {"native_layer_norm_backward",
       {"bf16[3,4,5]#1"_t, "bf16[3,4,5]#2"_t, Numbers{5}, kLeftOut, kLeftOut, kLeftOut, kLeftOut},
       {"norm backward bf16 rows=12 cols=5: bf16[3,4,5]#1 bf16[3,4,5]#2 bf16[5] fp32[12] fp32[12] > bf16[3,4,5]#8 "
        "bf16[5]" +
        host},
       {"bf16[3,4,5]#8"_t}},
      {"native_layer_norm_backward",
       {"bf16[3,4,5]"_t, "bf16[3,4,5]"_t},
       {"norm backward bf16 rows=12 cols=5: bf16[3,4,5] bf16[3,4,5] bf16[5] fp32[12] fp32[12] > bf16[3,4,5] bf16[5]" +
        host}},
      {"native_layer_norm_backward", {kLeftOut, "bf16[3,4,5]"_t}, kNotUnderstood},
      {"native_layer_norm_backward", {"bf16[3,4,5]"_t, kLeftOut}, kNotUnderstood},
      {"native_layer_norm_backward", {"bf16[0]"_t, "bf16[0]"_t}, kNotUnderstood},
      {"native_layer_norm_backward",
       {"fp32[1]"_t, "fp32[1]"_t, Numbers{1}},
       {"norm backward fp32 rows=1 cols=1: fp32[1] fp32[1] fp32[1] fp32[1] fp32[1] > fp32[1] fp32[1]" + host}},
      {"_fused_rms_norm_backward",
       {"bf16[3,4,5]#1"_t, "bf16[3,4,5]#2"_t, Numbers{4, 5}, "fp32[3]#3"_t, "bf16[4,5]#5"_t},
       {"norm rms backward bf16 rows=3 cols=20: bf16[3,4,5]#1 bf16[3,4,5]#2 bf16[4,5]#5 fp32[3] > bf16[3,4,5] "
        "bf16[20]" +
        host}},
      {"_fused_rms_norm_backward",
       {"bf16[3,4,5]#1"_t, "bf16[3,4,5]#2"_t},
       {"norm rms backward bf16 rows=12 cols=5: bf16[3,4,5]#1 bf16[3,4,5]#2 bf16[5] fp32[12] > bf16[3,4,5] bf16[5]" +
        host}},
      {"_fused_rms_norm_backward", {kLeftOut, "bf16[3]"_t}, kNotUnderstood},
      {"_fused_rms_norm_backward", {"bf16[3]"_t, kLeftOut}, kNotUnderstood},
      {"_fused_rms_norm_backward", {"bf16[0]"_t, "bf16[0]"_t}, kNotUnderstood},
  });
}

// Two images of six channels of 4 x 5 pixels, in three groups.
TEST(WorkedRows, GroupNorms) {
  const AtenTensor x = "bf16[2,6,4,5]#1"_t;
  expect_worked_rows({
      {"native_group_norm",
       {x, "bf16[6]"_t, "bf16[6]"_t, 2.0, 6.0, 20.0, 3.0},
       {"reduction mean_cols bf16 rows=6 cols=40 groups: bf16[2,6,4,5]#1 > fp32[6] | layer_norm layer_norm_backward",
        "mul 12x1 fp32,fp32>fp32 contiguous: fp32[12,1] fp32[12,1] > fp32[12,1]",
        "add 12x20 bf16,fp32>bf16 broadcast: bf16[2,6,4,5]#1 fp32[12,1] > bf16[2,6,4,5]#2"},
       {"bf16[2,6,4,5]#2"_t}},
      {"native_group_norm",
       {x, "bf16[6]"_t, "bf16[6]"_t, 2.0, 6.0},
       {"reduction mean_cols bf16 rows=2 cols=120 groups: bf16[2,6,4,5]#1 > fp32[2] | layer_norm layer_norm_backward",
        "mul 12x1 fp32,fp32>fp32 contiguous: fp32[12,1] fp32[12,1] > fp32[12,1]",
        "add 12x20 bf16,fp32>bf16 broadcast: bf16[2,6,4,5]#1 fp32[12,1] > bf16[2,6,4,5]"}},
      {"native_group_norm", {kLeftOut, kLeftOut, kLeftOut, 2.0, 6.0, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm", {"bf16[0]"_t, kLeftOut, kLeftOut, 2.0, 6.0, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm", {x, kLeftOut, kLeftOut, 0.0, 6.0, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm", {x, kLeftOut, kLeftOut, 2.0, 0.0, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm", {x, kLeftOut, kLeftOut, 2.0, 6.0, 20.0, 0.0}, kNotUnderstood},
      {"native_group_norm", {x, kLeftOut, kLeftOut, kLeftOut, 6.0, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm", {x, kLeftOut, kLeftOut, 2.0, kLeftOut, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm_backward",
       {"bf16[2,6,4,5]#3"_t, x, kLeftOut, kLeftOut, "bf16[6]"_t, 2.0, 6.0, 20.0, 3.0},
       {"reduction sum_cols bf16 rows=12 cols=40 groups: bf16[12,40] > fp32[12,1] | layer_norm_backward "
        "layer_norm_backward",
        "mul 12x1 fp32,fp32>fp32 contiguous: fp32[12,1] fp32[12,1] > fp32[12,1]",
        "mul 6x1 fp32,fp32>fp32 contiguous: fp32[6,1] fp32[6,1] > fp32[6,1]",
        "add 12x20 bf16,bf16,fp32>bf16 broadcast: bf16[2,6,4,5]#3 bf16[2,6,4,5]#1 fp32[12,1] > bf16[2,6,4,5]",
        "reduction sum_rows fp32 rows=2 cols=6: fp32[12,1] > fp32[6] | view view_backward"}},
      {"native_group_norm_backward", {kLeftOut, x, kLeftOut, kLeftOut, kLeftOut, 2.0, 6.0, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm_backward", {x, kLeftOut, kLeftOut, kLeftOut, kLeftOut, 2.0, 6.0, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm_backward",
       {x, "bf16[0]"_t, kLeftOut, kLeftOut, kLeftOut, 2.0, 6.0, 20.0, 3.0},
       kNotUnderstood},
      {"native_group_norm_backward", {x, x, kLeftOut, kLeftOut, kLeftOut, kLeftOut, 6.0, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm_backward", {x, x, kLeftOut, kLeftOut, kLeftOut, 2.0, kLeftOut, 20.0, 3.0}, kNotUnderstood},
      {"native_group_norm_backward", {x, x, kLeftOut, kLeftOut, kLeftOut, 2.0, 6.0, 20.0, 0.0}, kNotUnderstood},
      {"native_group_norm_backward", {x, x, kLeftOut, kLeftOut, kLeftOut, 0.0, 6.0, 20.0, 1.0}, kNotUnderstood},
      {"native_group_norm_backward", {x, x, kLeftOut, kLeftOut, kLeftOut, 2.0, 0.0, 20.0, 1.0}, kNotUnderstood},
      // One image, one channel, one group of one pixel.
      {"native_group_norm",
       {"fp32[1,1]"_t, kLeftOut, kLeftOut, 1.0, 1.0, 1.0, 1.0},
       {"reduction mean_cols fp32 rows=1 cols=1 groups: fp32[1,1] > fp32[1] | layer_norm layer_norm_backward",
        "mul 1x1 fp32,fp32>fp32 contiguous: fp32[1,1] fp32[1,1] > fp32[1,1]",
        "add 1x1 fp32,fp32>fp32 contiguous: fp32[1,1] fp32[1,1] > fp32[1,1]"}},
  });
}

TEST(WorkedRows, DropoutKeepsAMaskOfItsLayout) {
  expect_worked_rows({
      {"native_dropout",
       {"bf16[3,5](1,3)#1"_t, 0.1, 1.0},
       {"dropout bf16 elements=15: bf16[3,5](1,3)#1 > bf16[3,5](1,3) bool[3,5](1,3) | dropout pointwise_backward"}},
      {"native_dropout",
       {"bf16[3,5](10,1)#1"_t, 0.1, 1.0},
       {"dropout bf16 elements=15: bf16[3,5](10,1)#1 > bf16[3,5]#2 bool[3,5] | dropout pointwise_backward"},
       {"bf16[3,5]#2"_t}},
      {"native_dropout",
       {"bf16[1]"_t},
       {"dropout bf16 elements=1: bf16[1] > bf16[1] bool[1] | dropout pointwise_backward"}},
      {"native_dropout", {"bf16[0]"_t}, kNotUnderstood},
      {"native_dropout", {kLeftOut}, kNotUnderstood},
      {"native_dropout_backward",
       {"bf16[3,5]#1"_t, "bool[3,5]#2"_t, 1.1},
       {"dropout_backward 3x5 bf16,bool>bf16 contiguous: bf16[3,5]#1 bool[3,5]#2 > bf16[3,5]"}},
  });
}

TEST(WorkedRows, RowsOfTablesAndTheirGradients) {
  const auto backward = [](const char* host) { return fmt::format(" | {0} {0}", host); };
  expect_worked_rows({
      {"embedding",
       {"bf16[100,8]#1"_t, "int64[2,7]#2"_t},
       {"embedding bf16 tokens=14 vocabulary=100 hidden=8: bf16[100,8]#1 int64[2,7]#2 > bf16[2,7,8] | embedding "
        "embedding_backward"}},
      {"embedding",
       {"bf16[100,8]"_t, "int64[1]"_t},
       {"embedding bf16 tokens=1 vocabulary=100 hidden=8: bf16[100,8] int64[1] > bf16[1,8]#5 | embedding "
        "embedding_backward"},
       {"bf16[1,8]#5"_t}},
      {"embedding", {"bf16[100,8]"_t, "int64[0]"_t}, kNotUnderstood},
      {"embedding", {"bf16[100]"_t, "int64[3]"_t}, kNotUnderstood},
      {"embedding", {"bf16[9,100,8]"_t, "int64[3]"_t}, kNotUnderstood},
      {"embedding", {kLeftOut, "int64[3]"_t}, kNotUnderstood},
      {"embedding", {"bf16[100,8]"_t, kLeftOut}, kNotUnderstood},
      {"index_select",
       {"bf16[100,8]#1"_t, 0.0, "int32[7]#2"_t},
       {"index_few 7x8 bf16>bf16 contiguous: bf16[7,8]#1 > bf16[7,8]"}},
      {"index_select",
       {"bf16[100,8]#1"_t, kLeftOut, "int32[7]#2"_t},
       {"index_few 7x8 bf16>bf16 contiguous: bf16[7,8]#1 > bf16[7,8]"}},
      {"index_select",
       {"bf16[100,8]"_t, 1.0, "int32[7]"_t},
       {"index_few 7x100 bf16>bf16 contiguous: bf16[7,100] > bf16[100,7]"}},
      // More than 3072 indices are sorted.
      {"embedding_dense_backward",
       {"bf16[3072,8]#1"_t, "int64[3072]#2"_t, 100.0},
       {"embedding backward bf16 tokens=3072 vocabulary=100 hidden=8: bf16[3072,8]#1 int64[3072]#2 > bf16[100,8]" +
        backward("embedding_backward")}},
      {"embedding_dense_backward",
       {"bf16[3073,8]"_t, "int64[3073]"_t, 100.0},
       {"embedding backward bf16 tokens=3073 vocabulary=100 hidden=8: bf16[3073,8] int64[3073] > bf16[100,8]#4" +
        backward("embedding_backward_sorted")},
       {"bf16[100,8]#4"_t}},
      {"embedding_dense_backward",
       {"bf16[1,8]"_t, "int64[1]"_t, 1.0},
       {"embedding backward bf16 tokens=1 vocabulary=1 hidden=8: bf16[1,8] int64[1] > bf16[1,8]" +
        backward("embedding_backward")}},
      {"embedding_dense_backward", {"bf16[2,8]"_t, "int64[2]"_t, 0.0}, kNotUnderstood},
      {"embedding_dense_backward", {"bf16[2,8]"_t, "int64[2]"_t}, kNotUnderstood},
      {"embedding_dense_backward", {"bf16[2,8]"_t, "int64[0]"_t, 9.0}, kNotUnderstood},
      {"embedding_dense_backward", {kLeftOut, "int64[2]"_t, 9.0}, kNotUnderstood},
      {"embedding_dense_backward", {"bf16[2,8]"_t, kLeftOut, 9.0}, kNotUnderstood},
  });
}

TEST(WorkedRows, LossesOfClasses) {
  expect_worked_rows({
      {"nll_loss_forward",
       {"fp32[3,5]#1"_t, "int64[3]#2"_t},
       {"nll_loss fp32 rows=3 classes=5: fp32[3,5]#1 int64[3]#2 > fp32[] | cross_entropy nll_backward"}},
      {"nll_loss_forward",
       {"bf16[3,5]#1"_t, "int64[3]#2"_t},
       {"nll_loss bf16 rows=3 classes=5: bf16[3,5]#1 int64[3]#2 > bf16[]#3 | cross_entropy nll_backward"},
       {"bf16[]#3"_t}},
      {"nll_loss_forward",
       {"fp32[1]"_t, "int64[]"_t},
       {"nll_loss fp32 rows=1 classes=1: fp32[1] int64[] > fp32[] | cross_entropy nll_backward"}},
      {"nll_loss_forward", {"fp32[0,5]"_t, "int64[0]"_t}, kNotUnderstood},
      {"nll_loss_forward", {kLeftOut, "int64[3]"_t}, kNotUnderstood},
      {"nll_loss_forward", {"fp32[3,5]"_t, kLeftOut}, kNotUnderstood},
      {"nll_loss_backward",
       {"fp32[]#4"_t, "fp32[3,5]#1"_t, "int64[3]#2"_t},
       {"nll_loss backward fp32 rows=3 classes=5: fp32[]#4 int64[3]#2 > fp32[3,5] | nll_backward nll_backward"}},
      {"nll_loss_backward",
       {"fp32[]"_t, "fp32[1,1]"_t, "int64[1]"_t},
       {"nll_loss backward fp32 rows=1 classes=1: fp32[] int64[1] > fp32[1,1]#9 | nll_backward nll_backward"},
       {"fp32[1,1]#9"_t}},
      {"nll_loss_backward", {kLeftOut, "fp32[3,5]"_t, "int64[3]"_t}, kNotUnderstood},
      {"nll_loss_backward", {"fp32[]"_t, kLeftOut, "int64[3]"_t}, kNotUnderstood},
      {"nll_loss_backward", {"fp32[]"_t, "fp32[3,5]"_t, kLeftOut}, kNotUnderstood},
      {"nll_loss_backward", {"fp32[]"_t, "fp32[0,5]"_t, "int64[0]"_t}, kNotUnderstood},
      // Of pixels.
      {"nll_loss2d_forward",
       {"fp32[2,3,4,5]"_t, "int64[2,4,5]#2"_t},
       {"other 8x5 int64>fp32 contiguous: int64[2,4,5]#2 > fp32[2,4,5]"}},
      {"nll_loss2d_forward", {"fp32[1]"_t, "int64[1]"_t}, {"other 1x1 int64>fp32 contiguous: int64[1] > fp32[1]"}},
      {"nll_loss2d_forward", {kLeftOut, "int64[2,4,5]"_t}, kNotUnderstood},
      {"nll_loss2d_forward", {"fp32[2,3,4,5]"_t, kLeftOut}, kNotUnderstood},
      {"nll_loss2d_forward", {"fp32[2,3,4,5]"_t, "int64[0]"_t}, kNotUnderstood},
      {"nll_loss2d_backward",
       {"fp32[]"_t, "fp32[2,3,4,5]"_t, "int64[2,4,5]#2"_t},
       {"fill 24x5 >fp32 contiguous: > fp32[2,3,4,5]",
        "other 8x5 int64>fp32 contiguous: int64[2,4,5]#2 > fp32[2,4,5] | pointwise python_fixed"}},
      {"nll_loss2d_backward",
       {"fp32[]"_t, "fp32[1]"_t, "int64[1]"_t},
       {"fill 1x1 >fp32 contiguous: > fp32[1]#4",
        "other 1x1 int64>fp32 contiguous: int64[1] > fp32[1] | pointwise "
        "python_fixed"},
       {"fp32[1]#4"_t}},
      {"nll_loss2d_backward", {"fp32[]"_t, kLeftOut, "int64[2,4,5]"_t}, kNotUnderstood},
      {"nll_loss2d_backward", {"fp32[]"_t, "fp32[2,3,4,5]"_t, kLeftOut}, kNotUnderstood},
      {"nll_loss2d_backward", {"fp32[]"_t, "fp32[0]"_t, "int64[2,4,5]"_t}, kNotUnderstood},
      {"nll_loss2d_backward", {"fp32[]"_t, "fp32[2,3,4,5]"_t, "int64[0]"_t}, kNotUnderstood},
  });
}

TEST(WorkedRows, LossesOfDifferences) {
  const std::string squares = "mul 3x5 bf16,bf16>bf16 contiguous: bf16[3,5]#1 bf16[3,5]#2 > bf16[3,5]";
  expect_worked_rows({
      // No reduction, mean, sum; a mean where it is not said.
      {"mse_loss", {"bf16[3,5]#1"_t, "bf16[3,5]#2"_t, 0.0}, {squares + "#3"}, {"bf16[3,5]#3"_t}},
      {"mse_loss", {"bf16[3,5]#1"_t, "bf16[3,5]#2"_t, 0.0}, {squares}},
      {"mse_loss",
       {"bf16[3,5]#1"_t, "bf16[3,5]#2"_t, 1.0},
       {squares, "reduction sum_all bf16 rows=1 cols=15: bf16[3,5] > bf16[]"}},
      {"mse_loss",
       {"bf16[3,5]#1"_t, "bf16[3,5]#2"_t, 2.0},
       {squares, "reduction sum_all bf16 rows=1 cols=15: bf16[3,5] > bf16[]#3"},
       {"bf16[]#3"_t}},
      {"mse_loss",
       {"bf16[3,5]#1"_t, "bf16[3,5]#2"_t},
       {squares, "reduction sum_all bf16 rows=1 cols=15: bf16[3,5] > bf16[]"}},
      {"mse_loss", {kLeftOut, "bf16[3,5]"_t}, kNotUnderstood},
      {"mse_loss", {"bf16[3,5]"_t, kLeftOut}, kNotUnderstood},
      {"mse_loss", {"bf16[0]"_t, "bf16[0]"_t}, kNotUnderstood},
      {"mse_loss", {"bf16[1]"_t, "bf16[1]"_t, 0.0}, {"mul 1x1 bf16,bf16>bf16 contiguous: bf16[1] bf16[1] > bf16[1]"}},
      // The gradient of a reduced loss is one number.
      {"mse_loss_backward",
       {"bf16[]#4"_t, "bf16[3,5]#1"_t, "bf16[3,5]#2"_t, 1.0},
       {"fill 3x5 >bf16 contiguous: > bf16[3,5]",
        "mul 3x5 bf16,bf16,bf16>bf16 broadcast: bf16[3,5]#1 bf16[3,5]#2 bf16[]#4 > bf16[3,5]"}},
      {"mse_loss_backward",
       {"bf16[3,5]#4"_t, "bf16[3,5]#1"_t, "bf16[3,5]#2"_t, 0.0},
       {"fill 3x5 >bf16 contiguous: > bf16[3,5]#6",
        "mul 3x5 bf16,bf16,bf16>bf16 contiguous: bf16[3,5]#1 bf16[3,5]#2 bf16[3,5]#4 > bf16[3,5]#6"},
       {"bf16[3,5]#6"_t}},
      {"mse_loss_backward", {kLeftOut, "bf16[3]"_t, "bf16[3]"_t}, kNotUnderstood},
      {"mse_loss_backward", {"bf16[3]"_t, kLeftOut, "bf16[3]"_t}, kNotUnderstood},
      {"mse_loss_backward", {"bf16[3]"_t, "bf16[3]"_t, kLeftOut}, kNotUnderstood},
      {"mse_loss_backward", {"bf16[]"_t, "bf16[0]"_t, "bf16[0]"_t}, kNotUnderstood},
      {"mse_loss_backward",
       {"bf16[1]"_t, "bf16[1]"_t, "bf16[1]"_t},
       {"fill 1x1 >bf16 contiguous: > bf16[1]",
        "mul 1x1 bf16,bf16,bf16>bf16 contiguous: bf16[1] bf16[1] bf16[1] > bf16[1]"}},
  });
}

}  // namespace
}  // namespace ridgeline::trace
