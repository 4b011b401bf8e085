// Copies, sums over dimensions and kernels of serving libraries, worked out by hand.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_copies(const std::vector<WorkedCall>& calls) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call), call.expected) << text_of(call);
}

const std::string kCopied = " | contiguous view_backward_copy";

TEST(WorkedCopies, TypesLayoutsAndPlacesDecideWhatRuns) {
  expect_worked_copies({
      {"copy_",
       {"bf16[3,5]#1"_t, "bf16[3,5]#2"_t},
       {"copy contiguous bf16 rows=3 cols=5 parts=1: bf16[3,5]#2 > bf16[3,5]#1" + kCopied}},
      {"copy_",
       {"bf16[3,5](1,3)#1"_t, "bf16[3,5](1,3)#2"_t},
       {"copy contiguous bf16 rows=3 cols=5 parts=1: bf16[3,5](1,3)#2 > bf16[3,5](1,3)#1" + kCopied}},
      {"copy_",
       {"bf16[3,5]"_t, "bf16[3,5](1,3)"_t},
       {"copy transpose bf16 rows=3 cols=5 parts=1: bf16[3,5](1,3) > bf16[3,5]" + kCopied}},
      {"copy_",
       {"bf16[3,5](1,3)"_t, "bf16[3,5]"_t},
       {"copy transpose bf16 rows=3 cols=5 parts=1 walked=3,5,5,1: bf16[3,5] > bf16[3,5](1,3)" + kCopied}},
      {"copy_",
       {"bf16[3,5](10,1)"_t, "bf16[3,5]"_t},
       {"copy permute bf16 rows=3 cols=5 parts=1 walked=5,1,3,5: bf16[3,5] > bf16[3,5](10,1)" + kCopied}},
      {"copy_",
       {"bf16[3,5](10,1)"_t, "bf16[3,5](10,1)"_t},
       {"copy permute bf16 rows=3 cols=5 parts=1: bf16[3,5](10,1) > bf16[3,5](10,1)" + kCopied}},
      {"copy_",
       {"bf16[3,1]"_t, "bf16[3,1](7,7)"_t},
       {"copy permute bf16 rows=3 cols=1 parts=1 walked=3,7: bf16[3,1](7,7) > bf16[3,1]" + kCopied}},
      // Another type or another number of elements: a cast.
      {"copy_",
       {"bf16[3,5]#1"_t, "fp32[3,5](1,3)#2"_t},
       {"cast 3x5 fp32>bf16 transposed: fp32[3,5](1,3)#2 > bf16[3,5]#1 | cast cast_backward"}},
      {"copy_",
       {"bf16[3,5]"_t, "bf16[5]"_t},
       {"cast 3x5 bf16>bf16 broadcast_row: bf16[5] > bf16[3,5] | cast cast_backward"}},
      // Between memories, whatever the types.
      {"copy_",
       {"bf16[3,5]#1"_t, "host:fp32[3,5]"_t},
       {"copy host_to_device bf16 rows=3 cols=5 parts=1: host:fp32[3,5] > bf16[3,5]#1" + kCopied}},
      {"copy_",
       {"host:fp32[3,5]"_t, "bf16[3,5]#1"_t},
       {"copy device_to_host fp32 rows=3 cols=5 parts=1: bf16[3,5]#1 > host:fp32[3,5]" + kCopied}},
      {"copy_", {"host:fp32[3,5]"_t, "host:fp32[3,5]"_t}, kNothing},
      {"copy_", {"bf16[0]"_t, "bf16[0]"_t}, kNothing},
      {"copy_", {"bf16[]"_t, "bf16[1]"_t}, {"copy contiguous bf16 rows=1 cols=1 parts=1: bf16[1] > bf16[]" + kCopied}},
      {"copy_", {kLeftOut, "bf16[3]"_t}, kNotUnderstood},
      {"copy_", {"bf16[3]"_t, kLeftOut}, kNotUnderstood},
      {"_to_copy",
       {"fp32[3,5]#1"_t},
       {"cast 3x5 fp32>bf16 contiguous: fp32[3,5]#1 > bf16[3,5]#2 | cast cast_backward"},
       {"bf16[3,5]#2"_t}},
      {"_to_copy", {"fp32[3,5]"_t}, kNotUnderstood},
      {"_to_copy", {kLeftOut}, kNotUnderstood, {"bf16[3,5]"_t}},
      // A clone keeps the order of its dimensions unless it says that it lies by rows.
      {"clone",
       {"bf16[3,5](1,3)#1"_t},
       {"copy contiguous bf16 rows=3 cols=5 parts=1: bf16[3,5](1,3)#1 > bf16[3,5](1,3)" + kCopied}},
      {"clone",
       {"bf16[3,5](1,3)#1"_t, 1.0},
       {"copy contiguous bf16 rows=3 cols=5 parts=1: bf16[3,5](1,3)#1 > bf16[3,5](1,3)" + kCopied}},
      {"clone",
       {"bf16[3,5](1,3)#1"_t, 0.0},
       {"copy transpose bf16 rows=3 cols=5 parts=1: bf16[3,5](1,3)#1 > bf16[3,5]#2" + kCopied},
       {"bf16[3,5]#2"_t}},
      {"clone",
       {"bf16[2,3,4,5]#1"_t, 2.0},
       {"copy transpose bf16 rows=24 cols=5 parts=1 walked=3,20,20,1,2,60: bf16[2,3,4,5]#1 > "
        "bf16[2,3,4,5](60,1,15,3)" +
        kCopied}},
      {"clone",
       {"bf16[3,5](10,1)#1"_t},
       {"copy permute bf16 rows=3 cols=5 parts=1: bf16[3,5](10,1)#1 > bf16[3,5]" + kCopied}},
      {"clone", {kLeftOut}, kNotUnderstood},
      {"_local_scalar_dense",
       {"int64[]#1"_t},
       {"copy device_to_host int64 rows=1 cols=1 parts=1: int64[]#1 > | python_fixed python_fixed"}},
      {"_local_scalar_dense", {"host:fp32[]"_t}, kNothing},
      {"_local_scalar_dense", {kLeftOut}, kNotUnderstood},
  });
}

TEST(WorkedCopies, PartsOfWholes) {
  const std::string part = " | contiguous python_fixed";
  expect_worked_copies({
      {"slice_backward",
       {"bf16[3,5]#1"_t, Numbers{4, 6}, 0.0, 1.0, 4.0, 1.0},
       {"fill 4x6 >bf16 contiguous: > bf16[4,6]#2",
        "copy permute bf16 rows=3 cols=5 parts=1 walked=5,1,3,5: bf16[3,5]#1 > bf16[3,5](6,1)#2" + part},
       {"bf16[4,6]#2"_t}},
      {"select_backward",
       {"bf16[5]#1"_t, Numbers{4, 5}, 0.0, 1.0},
       {"fill 4x5 >bf16 contiguous: > bf16[4,5]",
        "copy permute bf16 rows=1 cols=5 parts=1 walked=5,1: bf16[5]#1 > bf16[5]" + part}},
      {"select_backward", {"bf16[0]"_t, Numbers{4, 5}}, {"fill 4x5 >bf16 contiguous: > bf16[4,5]"}},
      {"select_backward",
       {"bf16[1]"_t, Numbers{4, 5}},
       {"fill 4x5 >bf16 contiguous: > bf16[4,5]",
        "copy permute bf16 rows=1 cols=1 parts=1 walked=1,1: bf16[1] > bf16[1]" + part}},
      {"select_backward", {kLeftOut, Numbers{4, 5}}, kNotUnderstood},
      {"select_backward", {"bf16[5]"_t}, kNotUnderstood},
  });
}

TEST(WorkedCopies, RepeatsAndEdges) {
  expect_worked_copies({
      {"repeat",
       {"bf16[3,5]#1"_t, Numbers{2, 1, 4}},
       {"copy permute bf16 rows=6 cols=20 parts=1 walked=5,1,4,0,3,5,2,0: bf16[2,1,3,4,5](0,0,5,0,1)#1 > "
        "bf16[2,3,20]"}},
      {"repeat",
       {"bf16[3,5]#1"_t, Numbers{2, 1}},
       {"copy permute bf16 rows=6 cols=5 parts=1 walked=15,1,2,0: bf16[2,3,1,5](0,5,0,1)#1 > bf16[6,5]#2"},
       {"bf16[6,5]#2"_t}},
      {"repeat",
       {"bf16[3,5]"_t, Numbers{7, 1, 1}},
       {"copy permute bf16 rows=21 cols=5 parts=1 walked=15,1,7,0: bf16[7,1,3,1,5](0,0,5,0,1) > bf16[7,3,5]"}},
      {"repeat", {"bf16[3,5]"_t, Numbers{2}}, kNotUnderstood},
      {"repeat", {"bf16[3,5]"_t, Numbers{0, 1}}, kNothing},
      {"repeat",
       {"bf16[1]"_t, Numbers{1}},
       {"copy permute bf16 rows=1 cols=1 parts=1 walked=1,1: bf16[1,1](0,1) > bf16[1]"}},
      {"repeat", {kLeftOut, Numbers{2}}, kNotUnderstood},
      {"repeat", {"bf16[3,5]"_t}, kNotUnderstood},
      // Widths go from the last dimension on; negative ones cut off.
      {"constant_pad_nd",
       {"bf16[3,5]#1"_t, Numbers{1, 2}, 0.0},
       {"fill 3x8 >bf16 contiguous: > bf16[3,8]",
        "copy permute bf16 rows=3 cols=5 parts=1 walked=5,1,3,5: bf16[3,5]#1 > bf16[3,5](8,1)" + kCopied}},
      {"constant_pad_nd",
       {"bf16[3,5]#1"_t, Numbers{1, 2, 3, 4}, 0.0},
       {"fill 10x8 >bf16 contiguous: > bf16[10,8]#2",
        "copy permute bf16 rows=3 cols=5 parts=1 walked=5,1,3,5: bf16[3,5]#1 > bf16[3,5](8,1)#2" + kCopied},
       {"bf16[10,8]#2"_t}},
      {"constant_pad_nd",
       {"bf16[3,5]#1"_t, Numbers{-1, 2, 4, -2}, 0.0},
       {"fill 5x6 >bf16 contiguous: > bf16[5,6]",
        "copy permute bf16 rows=1 cols=4 parts=1 walked=4,1: bf16[1,4]#1 > bf16[1,4](6,1)" + kCopied}},
      {"constant_pad_nd", {"bf16[3,5]"_t, Numbers{-5, 2}, 0.0}, {"fill 3x2 >bf16 contiguous: > bf16[3,2]"}},
      {"constant_pad_nd", {"bf16[3,5]"_t, Numbers{-5, 0}, 0.0}, kNothing},
      {"constant_pad_nd",
       {"bf16[3,5]#1"_t, Numbers{}, 0.0},
       {"fill 3x5 >bf16 contiguous: > bf16[3,5]",
        "copy permute bf16 rows=3 cols=5 parts=1 walked=15,1: bf16[3,5]#1 > bf16[3,5](5,1)" + kCopied}},
      {"constant_pad_nd", {"bf16[3,5]"_t, Numbers{1, 2, 3}, 0.0}, kNotUnderstood},
      {"constant_pad_nd", {"bf16[3,5]"_t, Numbers{1, 2, 3, 4, 5, 6}, 0.0}, kNotUnderstood},
      {"constant_pad_nd", {kLeftOut, Numbers{1, 2}, 0.0}, kNotUnderstood},
      {"constant_pad_nd", {"bf16[3,5]"_t, kLeftOut, 0.0}, kNotUnderstood},
  });
}

TEST(WorkedCopies, SumsGoDownColumnsAlongRowsOrOverAll) {
  const auto sum = [](Argument dims, std::string_view op, std::string_view kept) {
    return WorkedCall{
        "sum", {"fp32[3,4,5]#1"_t, std::move(dims)}, {fmt::format("reduction {}: fp32[3,4,5]#1 > fp32[{}]", op, kept)}};
  };
  const auto mean = [](Argument dims, std::string_view op, std::string_view kept) {
    return WorkedCall{"mean",
                      {"fp32[3,4,5]#1"_t, std::move(dims)},
                      {fmt::format("reduction {}: fp32[3,4,5]#1 > fp32[{}]", op, kept)}};
  };
  expect_worked_copies({
      sum(kLeftOut, "sum_all fp32 rows=1 cols=60", "1,1,1"),
      sum(Numbers{}, "sum_all fp32 rows=1 cols=60", "1,1,1"),
      sum(Numbers{0, 1, 2}, "sum_all fp32 rows=1 cols=60", "1,1,1"),
      sum(Numbers{2}, "sum_cols fp32 rows=12 cols=5", "3,4,1"),
      sum(Numbers{-1}, "sum_cols fp32 rows=12 cols=5", "3,4,1"),
      sum(Numbers{1, 2}, "sum_cols fp32 rows=3 cols=20", "3,1,1"),
      sum(Numbers{0, 2}, "sum_cols fp32 rows=4 cols=15 scattered", "1,4,1"),
      sum(Numbers{0}, "sum_rows fp32 rows=3 cols=20", "1,4,5"),
      sum(Numbers{-3}, "sum_rows fp32 rows=3 cols=20", "1,4,5"),
      sum(Numbers{0, 1}, "sum_rows fp32 rows=12 cols=5", "1,1,5"),
      // Dimensions that there are none of.
      sum(Numbers{3}, "sum_rows fp32 rows=1 cols=60", "3,4,5"),
      sum(Numbers{-4}, "sum_rows fp32 rows=1 cols=60", "3,4,5"),
      mean(kLeftOut, "mean_cols fp32 rows=1 cols=60", "1,1,1"),
      mean(Numbers{1, 2}, "mean_cols fp32 rows=3 cols=20", "3,1,1"),
      mean(Numbers{0}, "sum_rows fp32 rows=3 cols=20", "1,4,5"),
      // Of channels that lie innermost the sum over pixels goes down columns.
      {"mean",
       {"fp32[2,6,4,5](120,1,30,6)"_t, Numbers{2, 3}},
       {"reduction sum_rows fp32 rows=20 cols=12 inner=6: fp32[2,6,4,5](120,1,30,6) > fp32[2,6,1,1]#2"},
       {"fp32[2,6,1,1]#2"_t}},
      {"sum",
       {"fp32[2,6,4,5](120,1,30,6)"_t, Numbers{1}},
       {"reduction sum_cols fp32 rows=40 cols=6: fp32[2,6,4,5](120,1,30,6) > fp32[2,1,4,5]"}},
      {"sum", {"fp32[3,5](1,3)"_t, Numbers{0}}, {"reduction sum_cols fp32 rows=5 cols=3: fp32[3,5](1,3) > fp32[1,5]"}},
      // The last dimension is no innermost one where it has one element.
      {"sum",
       {"fp32[3,5,1](5,1,1)"_t, Numbers{1}},
       {"reduction sum_cols fp32 rows=3 cols=5: fp32[3,5,1](5,1,1) > fp32[3,1,1]"}},
      {"sum",
       {"fp32[3,5,1](5,1,1)"_t, Numbers{0}},
       {"reduction sum_rows fp32 rows=3 cols=5: fp32[3,5,1](5,1,1) > fp32[1,5,1]"}},
      {"sum", {"fp32[]"_t}, {"reduction sum_all fp32 rows=1 cols=1: fp32[] > fp32[]"}},
      {"sum", {"fp32[0]"_t}, kNotUnderstood},
      {"sum", {kLeftOut}, kNotUnderstood},
      {"argmax",
       {"fp32[3,4,5]"_t, 1.0},
       {"reduction sum_rows fp32 rows=4 cols=15 place inner=5: fp32[3,4,5] > fp32[3,1,5]"}},
      {"argmax", {"fp32[3,4,5]"_t}, {"reduction sum_all fp32 rows=1 cols=60 place: fp32[3,4,5] > fp32[1,1,1]"}},
      {"linalg_vector_norm", {"fp32[3,4,5]"_t, 2.0}, {"reduction norm_all fp32 rows=1 cols=60: fp32[3,4,5] > fp32[]"}},
      {"linalg_vector_norm",
       {"fp32[3,4,5]"_t, 2.0, Numbers{}},
       {"reduction norm_all fp32 rows=1 cols=60: fp32[3,4,5] > fp32[]#2"},
       {"fp32[]#2"_t}},
      {"linalg_vector_norm",
       {"fp32[3,4,5]"_t, 2.0, Numbers{2}},
       {"reduction sum_cols fp32 rows=12 cols=5: fp32[3,4,5] > fp32[3,4,1]"}},
      {"linalg_vector_norm", {"fp32[1]"_t, 2.0}, {"reduction norm_all fp32 rows=1 cols=1: fp32[1] > fp32[]"}},
      {"linalg_vector_norm", {"fp32[0]"_t, 2.0}, kNotUnderstood},
      {"linalg_vector_norm", {kLeftOut, 2.0}, kNotUnderstood},
      {"_adaptive_avg_pool2d",
       {"fp32[2,6,4,5]#1"_t, Numbers{1, 1}},
       {"other 12x1 fp32>fp32 strided: fp32[2,6,4,5]#1 > fp32[2,6,1,1]"}},
      {"_adaptive_avg_pool2d", {"fp32[0]"_t}, kNotUnderstood},
      {"_adaptive_avg_pool2d", {kLeftOut}, kNotUnderstood},
      {"_adaptive_avg_pool2d", {"fp32[1]"_t}, {"not understood"}},
  });
}

TEST(WorkedCopies, RunningSums) {
  expect_worked_copies({
      {"cumsum", {"fp32[3,4,5]"_t, 2.0}, {"reduction scan_cols fp32 rows=12 cols=5: fp32[3,4,5] > fp32[3,4,5]"}},
      {"cumsum", {"fp32[3,4,5]"_t}, {"reduction scan_cols fp32 rows=12 cols=5: fp32[3,4,5] > fp32[3,4,5]"}},
      {"cumsum",
       {"fp32[3,4,5]"_t, 1.0},
       {"reduction scan_rows fp32 rows=4 cols=15 inner=5: fp32[3,4,5] > fp32[3,4,5]"}},
      {"cumsum", {"fp32[3,4,5]"_t, -3.0}, {"reduction scan_rows fp32 rows=3 cols=20: fp32[3,4,5] > fp32[3,4,5]"}},
      {"cumsum", {"fp32[7,1]"_t, 0.0}, {"reduction scan_cols fp32 rows=1 cols=7: fp32[7,1] > fp32[7,1]"}},
      {"cumsum", {"fp32[3,4]"_t, 2.0}, {"reduction scan_cols fp32 rows=1 cols=12: fp32[3,4] > fp32[3,4]"}},
      {"cumsum", {"fp32[3,4]"_t, -3.0}, {"reduction scan_cols fp32 rows=1 cols=12: fp32[3,4] > fp32[3,4]"}},
      // Flags and small whole numbers are counted in large ones.
      {"cumsum",
       {"bool[3,4]#1"_t, 1.0},
       {"reduction scan_cols int64 rows=3 cols=4: bool[3,4]#1 > int64[3,4]#2"},
       {"int64[3,4]#2"_t}},
      {"cumsum", {"int32[3,4]"_t, 1.0}, {"reduction scan_cols int64 rows=3 cols=4: int32[3,4] > int64[3,4]"}},
      {"cumprod", {"bf16[1]"_t, 0.0}, {"reduction scan_cols bf16 rows=1 cols=1: bf16[1] > bf16[1]"}},
      {"cumsum", {"fp32[0]"_t, 0.0}, kNotUnderstood},
      {"cumsum", {kLeftOut, 0.0}, kNotUnderstood},
  });
}

// Results come first among the arguments.
TEST(WorkedCopies, KernelsThatServe) {
  const std::string host = " | pointwise pointwise";
  const AtenTensor x = "bf16[3,8]#1"_t, wide = "bf16[3,16]#2"_t, weight = "bf16[8]#3"_t;
  expect_worked_copies({
      {"_C::rms_norm",
       {"fp16[3,8]#4"_t, x, weight, 1e-5},
       {"fused_kernel rms_norm rows rows=3 cols=8 bf16 arithmetic=6 column_results=0 reads=48,16 writes=48: "
        "bf16[3,8]#1 bf16[8]#3 > fp16[3,8]#4" +
        host}},
      {"_C::rms_norm", {kLeftOut, x, weight}, kNotUnderstood},
      {"_C::rms_norm", {x, kLeftOut, weight}, kNotUnderstood},
      {"_C::rms_norm", {x, x, kLeftOut}, kNotUnderstood},
      {"_C::rms_norm", {x, "bf16[0]"_t, weight}, kNothing},
      {"_C::fused_add_rms_norm",
       {x, "fp32[3,8]#5"_t, weight, 1e-5},
       {"fused_kernel add_rms_norm rows rows=3 cols=8 bf16 arithmetic=6 column_results=0 reads=48,96,16 writes=48,96: "
        "bf16[3,8]#1 fp32[3,8]#5 bf16[8]#3 > bf16[3,8]#1 fp32[3,8]#5" +
        host}},
      {"_C::fused_add_rms_norm", {kLeftOut, x, weight}, kNotUnderstood},
      {"_C::fused_add_rms_norm", {x, kLeftOut, weight}, kNotUnderstood},
      {"_C::fused_add_rms_norm", {x, x, kLeftOut}, kNotUnderstood},
      {"_C::silu_and_mul",
       {x, wide},
       {"fused_kernel activation_mul rows rows=3 cols=8 bf16 arithmetic=12 column_results=0 reads=96 writes=48: "
        "bf16[3,16]#2 > bf16[3,8]#1" +
        host}},
      {"_C::silu_and_mul", {x, "bf16[3,15]"_t}, kNotUnderstood},
      {"_C::silu_and_mul", {kLeftOut, wide}, kNotUnderstood},
      {"_C::silu_and_mul", {x, kLeftOut}, kNotUnderstood},
      {"_C::rotary_embedding",
       {"int64[3]"_t, "bf16[3,16]#2"_t, x, 8.0, "fp32[100,4]"_t},
       {"fused_kernel rotary_embedding rows rows=3 cols=24 bf16 arithmetic=8 column_results=0 reads=96,48,48 "
        "writes=96,48: bf16[3,16]#2 bf16[3,8]#1 fp32[3,4] > bf16[3,16]#2 bf16[3,8]#1" +
        host}},
      {"_C::rotary_embedding",
       {"int64[3]"_t, "bf16[3,2,8](40,8,1)#2"_t, kLeftOut, 8.0, "fp32[100,4]"_t},
       {"fused_kernel rotary_embedding rows rows=3 cols=16 bf16 arithmetic=8 column_results=0 reads=96,48 writes=96: "
        "bf16[3,2,8](40,8,1)#2 fp32[3,4] > bf16[3,2,8](40,8,1)#2" +
        host}},
      {"_C::rotary_embedding", {kLeftOut, wide, x, 8.0, "fp32[100,4]"_t}, kNotUnderstood},
      {"_C::rotary_embedding", {"int64[3]"_t, kLeftOut, x, 8.0, "fp32[100,4]"_t}, kNotUnderstood},
      {"_C::rotary_embedding", {"int64[3]"_t, wide, x, 8.0}, kNotUnderstood},
      {"_C::rotary_embedding", {"int64[0]"_t, wide, x, 8.0, "fp32[100,4]"_t}, kNothing},
      {"_C::static_scaled_fp8_quant",
       {"uint8[3,8]#4"_t, x, "fp32[1]"_t},
       {"fused_kernel fp8_quant rows rows=3 cols=8 bf16 arithmetic=3 column_results=0 reads=48 writes=24: bf16[3,8]#1 "
        "> "
        "uint8[3,8]#4" +
        host}},
      {"_C::static_scaled_fp8_quant", {kLeftOut, x}, kNotUnderstood},
      {"_C::static_scaled_fp8_quant", {x, kLeftOut}, kNotUnderstood},
      {"_C::static_scaled_fp8_quant", {x, wide}, kNotUnderstood},
      {"_C_cache_ops::reshape_and_cache",
       {"bf16[3,2,4]#1"_t, "bf16[3,2,5]#2"_t, "uint8[100,2,4]"_t, "uint8[100,2,5]"_t, "int64[3]"_t},
       {"fused_kernel reshape_and_cache rows rows=3 cols=18 bf16 arithmetic=3 column_results=0 reads=48,60 "
        "writes=24,30: "
        "bf16[3,2,4]#1 bf16[3,2,5]#2 > uint8[3,2,4] uint8[3,2,5]" +
        host}},
      {"_C_cache_ops::reshape_and_cache",
       {"bf16[]"_t, "bf16[]"_t, "bf16[9]"_t},
       {"fused_kernel reshape_and_cache rows rows=1 cols=2 bf16 arithmetic=3 column_results=0 reads=2,2 writes=2,2: "
        "bf16[] bf16[] > bf16[] bf16[]" +
        host}},
      {"_C_cache_ops::reshape_and_cache", {kLeftOut, x, x}, kNotUnderstood},
      {"_C_cache_ops::reshape_and_cache", {x, kLeftOut, x}, kNotUnderstood},
      {"_C_cache_ops::reshape_and_cache", {x, x, kLeftOut}, kNotUnderstood},
      {"_C_cache_ops::reshape_and_cache", {"bf16[0,8]"_t, "bf16[0,8]"_t, x}, kNothing},
  });
}

}  // namespace
}  // namespace ridgeline::trace
