// Point-wise calls worked out by hand: types, shapes and layouts of results as PyTorch gives them, and the way operands
// are walked.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_pointwise(const std::vector<WorkedCall>& calls) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call), call.expected) << text_of(call);
}

TEST(WorkedPointwise, ShapesAreBroadcastFromTheLastDimensionOn) {
  expect_worked_pointwise({
      {"add", {"fp32[3,5]"_t, "fp32[3,5]"_t}, {"add 3x5 fp32,fp32>fp32 contiguous: fp32[3,5] fp32[3,5] > fp32[3,5]"}},
      {"add", {"fp32[3,5]"_t, "fp32[5]"_t}, {"add 3x5 fp32,fp32>fp32 broadcast_row: fp32[3,5] fp32[5] > fp32[3,5]"}},
      {"add", {"fp32[5]"_t, "fp32[3,5]"_t}, {"add 3x5 fp32,fp32>fp32 broadcast_row: fp32[5] fp32[3,5] > fp32[3,5]"}},
      {"add",
       {"fp32[3,5]"_t, "fp32[1,5]"_t},
       {"add 3x5 fp32,fp32>fp32 broadcast_row: fp32[3,5] fp32[1,5] > fp32[3,5]"}},
      {"mul",
       {"fp32[2,3,5]"_t, "fp32[3,5]"_t},
       {"mul 2x15 fp32,fp32>fp32 broadcast_row: fp32[2,3,5] fp32[3,5] > fp32[2,3,5]"}},
      {"mul", {"fp32[3,5]"_t, "fp32[3,1]"_t}, {"mul 3x5 fp32,fp32>fp32 broadcast: fp32[3,5] fp32[3,1] > fp32[3,5]"}},
      {"mul",
       {"fp32[2,3,5]"_t, "fp32[3,1]"_t},
       {"mul 6x5 fp32,fp32>fp32 broadcast: fp32[2,3,5] fp32[3,1] > fp32[2,3,5]"}},
      {"mul",
       {"fp32[2,3,5]"_t, "fp32[2,1,5]"_t},
       {"mul 6x5 fp32,fp32>fp32 broadcast: fp32[2,3,5] fp32[2,1,5] > fp32[2,3,5]"}},
      // Both are repeated.
      {"mul",
       {"fp32[3,1,5]"_t, "fp32[4,1]"_t},
       {"mul 12x5 fp32,fp32>fp32 broadcast: fp32[3,1,5] fp32[4,1] > fp32[3,4,5]"}},
      {"mul",
       {"fp32[4,1]"_t, "fp32[3,1,5]"_t},
       {"mul 12x5 fp32,fp32>fp32 broadcast: fp32[4,1] fp32[3,1,5] > fp32[3,4,5]"}},
      // A row stays one beside a repeated column; the column decides.
      {"mul", {"fp32[4,1]"_t, "fp32[5]"_t}, {"mul 4x5 fp32,fp32>fp32 broadcast: fp32[4,1] fp32[5] > fp32[4,5]"}},
      {"mul", {"fp32[5]"_t, "fp32[4,1]"_t}, {"mul 4x5 fp32,fp32>fp32 broadcast: fp32[5] fp32[4,1] > fp32[4,5]"}},
      // Nothing runs for tensors without elements, and no row is divided by none.
      {"add", {"fp32[3,0]"_t, "fp32[3,1]"_t}, kNothing},
      {"add", {"fp32[3,1]"_t, "fp32[0]"_t}, kNothing},
      {"relu", {"fp32[0,5]"_t}, kNothing},
      {"relu_", {"fp32[0,5]"_t}, kNothing},
      {"relu", {"fp32[]"_t}, {"relu 1x1 fp32>fp32 contiguous: fp32[] > fp32[]"}},
  });
}

TEST(WorkedPointwise, LayoutsDecideHowOperandsAreWalked) {
  expect_worked_pointwise({
      // Both lie by columns: as if both lay by rows.
      {"add",
       {"fp32[3,5](1,3)"_t, "fp32[3,5](1,3)"_t},
       {"add 3x5 fp32,fp32>fp32 contiguous: fp32[3,5](1,3) fp32[3,5](1,3) > fp32[3,5](1,3)"}},
      {"add",
       {"fp32[3,5]"_t, "fp32[3,5](5,1)"_t},
       {"add 3x5 fp32,fp32>fp32 contiguous: fp32[3,5] fp32[3,5](5,1) > fp32[3,5]"}},
      {"add",
       {"fp32[3,5]"_t, "fp32[3,5](1,3)"_t},
       {"add 3x5 fp32,fp32>fp32 transposed: fp32[3,5] fp32[3,5](1,3) > fp32[3,5]"}},
      {"add",
       {"fp32[3,5](1,3)"_t, "fp32[3,5]"_t},
       {"add 3x5 fp32,fp32>fp32 transposed: fp32[3,5](1,3) fp32[3,5] > fp32[3,5](1,3)"}},
      // Rows of a wider matrix: the result has no gaps.
      {"add",
       {"fp32[3,5](10,1)"_t, "fp32[3,5](10,1)"_t},
       {"add 3x5 fp32,fp32>fp32 strided: fp32[3,5](10,1) fp32[3,5](10,1) > fp32[3,5]"}},
      {"add_",
       {"fp32[3,5](10,1)"_t, "fp32[3,5](10,1)"_t},
       {"add_in_place 3x5 fp32,fp32>fp32 strided: fp32[3,5](10,1) fp32[3,5](10,1) > fp32[3,5](10,1)"}},
      // One operand whose neighbours lie apart is enough, wherever it stands.
      {"add",
       {"fp32[3,5](10,1)"_t, "fp32[3,5](2,10)"_t},
       {"add 3x5 fp32,fp32>fp32 transposed: fp32[3,5](10,1) fp32[3,5](2,10) > fp32[3,5]"}},
      {"add_",
       {"fp32[3,5]"_t, "fp32[3,5](2,10)"_t},
       {"add_in_place 3x5 fp32,fp32>fp32 transposed: fp32[3,5] fp32[3,5](2,10) > fp32[3,5]"}},
      {"addcmul_",
       {"fp32[3,5]"_t, "fp32[3,5](2,10)"_t, "fp32[3,5](10,1)"_t},
       {"other 3x5 fp32,fp32,fp32>fp32 transposed: fp32[3,5] fp32[3,5](2,10) fp32[3,5](10,1) > fp32[3,5]"}},
      // Permuted, with whole rows.
      {"add",
       {"fp32[2,3,5]"_t, "fp32[2,3,5](5,10,1)"_t},
       {"add 6x5 fp32,fp32>fp32 strided: fp32[2,3,5] fp32[2,3,5](5,10,1) > fp32[2,3,5]"}},
      // Layouts of repeated operands: a row needs to lie in one piece, as the result does.
      {"add", {"fp32[3,5]"_t, "fp32[5](2)"_t}, {"add 3x5 fp32,fp32>fp32 broadcast: fp32[3,5] fp32[5](2) > fp32[3,5]"}},
      {"add",
       {"fp32[3,5](1,3)"_t, "fp32[5]"_t},
       {"add 3x5 fp32,fp32>fp32 broadcast: fp32[3,5](1,3) fp32[5] > fp32[3,5](1,3)"}},
      {"add_",
       {"fp32[3,5](10,1)"_t, "fp32[5]"_t},
       {"add_in_place 3x5 fp32,fp32>fp32 strided: fp32[3,5](10,1) fp32[5] > fp32[3,5](10,1)"}},
      {"add",
       {"fp32[3,5](10,1)"_t, "fp32[5]"_t},
       {"add 3x5 fp32,fp32>fp32 strided: fp32[3,5](10,1) fp32[5] > fp32[3,5]"}},
      {"add",
       {"fp32[3,5](10,1)"_t, "fp32[3,1]"_t},
       {"add 3x5 fp32,fp32>fp32 strided: fp32[3,5](10,1) fp32[3,1] > fp32[3,5]"}},
      {"addcmul_",
       {"fp32[3,5]"_t, "fp32[3,5](2,10)"_t, "fp32[5]"_t},
       {"other 3x5 fp32,fp32,fp32>fp32 transposed: fp32[3,5] fp32[3,5](2,10) fp32[5] > fp32[3,5]"}},
      {"addcmul_",
       {"fp32[3,5]"_t, "fp32[3,5](2,10)"_t, "fp32[3,1]"_t},
       {"other 3x5 fp32,fp32,fp32>fp32 transposed: fp32[3,5] fp32[3,5](2,10) fp32[3,1] > fp32[3,5]"}},
  });
}

TEST(WorkedPointwise, DimensionsOfOneElementLieAnyWay) {
  expect_worked_pointwise({
      {"add",
       {"fp32[4,7,1]"_t, "fp32[4,7,1](7,1,1)"_t},
       {"add 28x1 fp32,fp32>fp32 contiguous: fp32[4,7,1] fp32[4,7,1](7,1,1) > fp32[4,7,1]"}},
      {"add",
       {"fp32[4,7,1](7,1,1)"_t, "fp32[4,7,1]"_t},
       {"add 28x1 fp32,fp32>fp32 contiguous: fp32[4,7,1](7,1,1) fp32[4,7,1] > fp32[4,7,1](7,1,1)"}},
      {"add",
       {"fp32[4,7,2](14,2,1)"_t, "fp32[4,7,2]"_t},
       {"add 28x2 fp32,fp32>fp32 contiguous: fp32[4,7,2](14,2,1) fp32[4,7,2] > fp32[4,7,2](14,2,1)"}},
      {"add",
       {"fp32[4,1](9,9)"_t, "fp32[4,1]"_t},
       {"add 4x1 fp32,fp32>fp32 transposed: fp32[4,1](9,9) fp32[4,1] > fp32[4,1]"}},
      {"add",
       {"fp32[1,4](1,1)"_t, "fp32[1,4]"_t},
       {"add 1x4 fp32,fp32>fp32 contiguous: fp32[1,4](1,1) fp32[1,4] > fp32[1,4](1,1)"}},
      {"add",
       {"fp32[1,1](9,9)"_t, "fp32[1,1]"_t},
       {"add 1x1 fp32,fp32>fp32 contiguous: fp32[1,1](9,9) fp32[1,1] > fp32[1,1](9,9)"}},
      // One row more than the other has: nothing crosses.
      {"add",
       {"fp32[1,3,5]"_t, "fp32[3,5]"_t},
       {"add 3x5 fp32,fp32>fp32 contiguous: fp32[1,3,5] fp32[3,5] > fp32[1,3,5]"}},
  });
}

// A result is laid out as the operand of its shape; where none has it, or that has gaps, by rows.
TEST(WorkedPointwise, AResultLiesAsTheOperandOfItsShape) {
  expect_worked_pointwise({
      {"add",
       {"fp32[1,5]"_t, "fp32[3,5](1,3)"_t},
       {"add 3x5 fp32,fp32>fp32 broadcast: fp32[1,5] fp32[3,5](1,3) > fp32[3,5](1,3)"}},
      {"add",
       {"fp32[1,5]"_t, "fp32[3,5](10,1)"_t},
       {"add 3x5 fp32,fp32>fp32 strided: fp32[1,5] fp32[3,5](10,1) > fp32[3,5]"}},
      {"add",
       {"fp32[3,1](1,3)"_t, "fp32[1,5](1,1)"_t},
       {"add 3x5 fp32,fp32>fp32 broadcast: fp32[3,1](1,3) fp32[1,5](1,1) > fp32[3,5]"}},
      {"where",
       {"bool[3,1]"_t, "fp32[3,5](1,3)"_t, "fp32[3,5](1,3)"_t},
       {"other 3x5 bool,fp32,fp32>fp32 broadcast: bool[3,1] fp32[3,5](1,3) fp32[3,5](1,3) > fp32[3,5](1,3)"}},
      {"where",
       {"bool[3,5]"_t, "fp32[3,5]"_t, "fp32[5]"_t},
       {"other 3x5 bool,fp32,fp32>fp32 broadcast_row: bool[3,5] fp32[3,5] fp32[5] > fp32[3,5]"}},
      {"lerp",
       {"fp32[3,5](1,3)"_t, "fp32[1,5](5,1)"_t},
       {"other 3x5 fp32,fp32>fp32 transposed: fp32[3,5](1,3) fp32[1,5](5,1) > fp32[3,5]"}},
      // Storages are those of the operands; a fresh result has none, one in place that of the first.
      {"mul",
       {"fp32[3,5]#7"_t, "fp32[3,5]#8"_t},
       {"mul 3x5 fp32,fp32>fp32 contiguous: fp32[3,5]#7 fp32[3,5]#8 > fp32[3,5]"}},
      {"mul_",
       {"fp32[3,5]#7"_t, "fp32[3,5]#8"_t},
       {"mul 3x5 fp32,fp32>fp32 contiguous: fp32[3,5]#7 fp32[3,5]#8 > fp32[3,5]#7"}},
      {"mul",
       {"fp32[3,5]#7"_t, "fp32[3,5]#8"_t},
       {"mul 3x5 fp32,fp32>bf16 contiguous: fp32[3,5]#7 fp32[3,5]#8 > bf16[3,5]#9"},
       {"bf16[3,5]#9"_t}},
      // A recorded result of another size is no result of this call.
      {"mul",
       {"fp32[3,5]#7"_t, "fp32[3,5]#8"_t},
       {"mul 3x5 fp32,fp32>fp32 contiguous: fp32[3,5]#7 fp32[3,5]#8 > fp32[3,5]"},
       {"bf16[3,4]#9"_t}},
  });
}

TEST(WorkedPointwise, TypesArePromotedAsPyTorchDoes) {
  expect_worked_pointwise({
      {"add", {"bf16[3]"_t, "fp32[3]"_t}, {"add 1x3 bf16,fp32>fp32 contiguous: bf16[3] fp32[3] > fp32[3]"}},
      {"add", {"fp32[3]"_t, "bf16[3]"_t}, {"add 1x3 fp32,bf16>fp32 contiguous: fp32[3] bf16[3] > fp32[3]"}},
      {"add", {"fp16[3]"_t, "bf16[3]"_t}, {"add 1x3 fp16,bf16>fp32 contiguous: fp16[3] bf16[3] > fp32[3]"}},
      {"add", {"fp16[3]"_t, "fp16[3]"_t}, {"add 1x3 fp16,fp16>fp16 contiguous: fp16[3] fp16[3] > fp16[3]"}},
      {"add", {"fp64[3]"_t, "fp32[3]"_t}, {"add 1x3 fp64,fp32>fp64 contiguous: fp64[3] fp32[3] > fp64[3]"}},
      {"add", {"int64[3]"_t, "bf16[3]"_t}, {"add 1x3 int64,bf16>bf16 contiguous: int64[3] bf16[3] > bf16[3]"}},
      {"add", {"fp64[3]"_t, "int64[3]"_t}, {"add 1x3 fp64,int64>fp64 contiguous: fp64[3] int64[3] > fp64[3]"}},
      {"add", {"int32[3]"_t, "int64[3]"_t}, {"add 1x3 int32,int64>int64 contiguous: int32[3] int64[3] > int64[3]"}},
      {"add", {"int32[3]"_t, "uint8[3]"_t}, {"add 1x3 int32,uint8>int32 contiguous: int32[3] uint8[3] > int32[3]"}},
      {"add", {"tf32[3]"_t, "int64[3]"_t}, {"add 1x3 tf32,int64>tf32 contiguous: tf32[3] int64[3] > tf32[3]"}},
      // A tensor without dimensions gives way to one of its kind that has some.
      {"add", {"bf16[1]"_t, "fp32[]"_t}, {"add 1x1 bf16,fp32>bf16 contiguous: bf16[1] fp32[] > bf16[1]"}},
      {"add", {"fp32[]"_t, "bf16[1]"_t}, {"add 1x1 fp32,bf16>bf16 contiguous: fp32[] bf16[1] > bf16[1]"}},
      {"add", {"int32[1]"_t, "bf16[]"_t}, {"add 1x1 int32,bf16>bf16 contiguous: int32[1] bf16[] > bf16[1]"}},
      {"add", {"fp64[]"_t, "int64[]"_t}, {"add 1x1 fp64,int64>fp64 contiguous: fp64[] int64[] > fp64[]"}},
      // Comparisons give flags.
      {"lt", {"fp32[3]"_t, "bf16[3]"_t}, {"equal 1x3 fp32,bf16>bool contiguous: fp32[3] bf16[3] > bool[3]"}},
      {"ge", {"int64[3]#4"_t, 2.0}, {"equal 1x3 int64>bool contiguous: int64[3]#4 > bool[3]"}},
      {"logical_and", {"bool[3]"_t, "bool[3]"_t}, {"equal 1x3 bool,bool>bool contiguous: bool[3] bool[3] > bool[3]"}},
      // In place the type stays.
      {"add_", {"bf16[3]"_t, "fp32[3]"_t}, {"add_in_place 1x3 bf16,fp32>bf16 contiguous: bf16[3] fp32[3] > bf16[3]"}},
      {"bitwise_and_",
       {"bool[3]#2"_t, "bool[3]"_t},
       {"mul 1x3 bool,bool>bool contiguous: bool[3]#2 bool[3] > bool[3]#2"}},
  });
}

TEST(WorkedPointwise, ANumberIsNoOperand) {
  expect_worked_pointwise({
      {"add", {"fp32[3,5]"_t, 2.0}, {"scale 3x5 fp32>fp32 contiguous: fp32[3,5] > fp32[3,5]"}},
      {"add", {2.0, "fp32[3,5]"_t}, {"scale 3x5 fp32>fp32 contiguous: fp32[3,5] > fp32[3,5]"}},
      {"add", {kLeftOut, "bf16[3,5]#3"_t}, {"scale 3x5 bf16>bf16 contiguous: bf16[3,5]#3 > bf16[3,5]"}},
      {"add", {2.0, 3.0}, kNotUnderstood},
      {"add", {}, kNotUnderstood},
      // As the dispatcher wraps Python's numbers.
      {"mul", {"bf16[1]"_t, "fp64[]"_t}, {"scale 1x1 bf16>bf16 contiguous: bf16[1] > bf16[1]"}},
      {"mul", {"fp64[]"_t, "bf16[1]"_t}, {"scale 1x1 bf16>bf16 contiguous: bf16[1] > bf16[1]"}},
      {"mul", {"fp32[1]"_t, "int64[]"_t}, {"scale 1x1 fp32>fp32 contiguous: fp32[1] > fp32[1]"}},
      {"mul", {"int64[]"_t, "fp32[]"_t}, {"scale 1x1 fp32>fp32 contiguous: fp32[] > fp32[]"}},
      {"mul_", {"bf16[1]"_t, "fp64[]"_t}, {"scale 1x1 bf16>bf16 contiguous: bf16[1] > bf16[1]"}},
      // Not wrapped: another type than Python's, dimensions, or beside what Python's number would not give way to.
      {"mul", {"fp32[1]"_t, "int32[]"_t}, {"mul 1x1 fp32,int32>fp32 contiguous: fp32[1] int32[] > fp32[1]"}},
      {"mul", {"fp32[1]"_t, "int64[1]"_t}, {"mul 1x1 fp32,int64>fp32 contiguous: fp32[1] int64[1] > fp32[1]"}},
      {"mul", {"int64[1]"_t, "int64[]"_t}, {"mul 1x1 int64,int64>int64 contiguous: int64[1] int64[] > int64[1]"}},
      {"mul", {"fp64[1]"_t, "fp64[]"_t}, {"mul 1x1 fp64,fp64>fp64 contiguous: fp64[1] fp64[] > fp64[1]"}},
      {"mul_", {"fp64[]"_t, "fp32[1]"_t}, {"mul 1x1 fp64,fp32>fp64 contiguous: fp64[] fp32[1] > fp64[]"}},
      // One element beside several is read once.
      {"mul", {"fp32[2]"_t, "fp32[1]"_t}, {"mul 2x1 fp32,fp32>fp32 broadcast_row: fp32[2] fp32[1] > fp32[2]"}},
      {"mul", {"fp32[1]"_t, "fp32[2]"_t}, {"mul 2x1 fp32,fp32>fp32 broadcast_row: fp32[1] fp32[2] > fp32[2]"}},
      {"mul", {"fp32[2]"_t, "fp32[2]"_t}, {"mul 1x2 fp32,fp32>fp32 contiguous: fp32[2] fp32[2] > fp32[2]"}},
      {"mul", {"fp32[1]"_t, "fp32[1]"_t}, {"mul 1x1 fp32,fp32>fp32 contiguous: fp32[1] fp32[1] > fp32[1]"}},
      {"mul_", {"fp32[2]"_t, "fp32[1]"_t}, {"mul 2x1 fp32,fp32>fp32 broadcast_row: fp32[2] fp32[1] > fp32[2]"}},
      {"div", {"fp32[2]"_t, "fp32[]"_t}, {"divide 1x2 fp32>fp32 contiguous: fp32[2] > fp32[2]"}},
      {"div", {"fp32[2]"_t, "fp32[2]"_t}, {"mul 1x2 fp32,fp32>fp32 contiguous: fp32[2] fp32[2] > fp32[2]"}},
      {"maximum", {"fp32[2]"_t, "fp32[]"_t}, {"clamp 1x2 fp32>fp32 contiguous: fp32[2] > fp32[2]"}},
      // What lies in the host's memory is given to the kernel as a number.
      {"mul", {"fp32[1]"_t, "host:fp32[]"_t}, {"scale 1x1 fp32>fp32 contiguous: fp32[1] > fp32[1]"}},
  });
}

TEST(WorkedPointwise, FunctionsOfOneTensorKeepItsLayoutAndFillItsGaps) {
  expect_worked_pointwise({
      {"relu", {"bf16[3,5](1,3)#6"_t}, {"relu 3x5 bf16>bf16 contiguous: bf16[3,5](1,3)#6 > bf16[3,5](1,3)"}},
      {"relu", {"bf16[3,5](10,1)"_t}, {"relu 3x5 bf16>bf16 strided: bf16[3,5](10,1) > bf16[3,5]"}},
      {"relu_", {"bf16[3,5](10,1)#6"_t}, {"relu 3x5 bf16>bf16 strided: bf16[3,5](10,1)#6 > bf16[3,5](10,1)#6"}},
      {"isnan", {"fp32[3,5]"_t}, {"equal 3x5 fp32>bool contiguous: fp32[3,5] > bool[3,5]#2"}, {"bool[3,5]#2"_t}},
      {"relu", {kLeftOut}, kNotUnderstood},
      {"relu_", {2.0}, kNotUnderstood},
      {"gelu", {"bf16[3,5]#1"_t}, {"gelu 3x5 bf16>bf16 contiguous: bf16[3,5]#1 > bf16[3,5]"}},
      {"gelu", {"bf16[3,5]"_t, std::string("none")}, {"gelu 3x5 bf16>bf16 contiguous: bf16[3,5] > bf16[3,5]"}},
      {"gelu", {"bf16[3,5]"_t, std::string("tanh")}, {"gelu_tanh 3x5 bf16>bf16 contiguous: bf16[3,5] > bf16[3,5]"}},
      {"gelu_",
       {"bf16[3,5]#1"_t, std::string("tanh")},
       {"gelu_tanh 3x5 bf16>bf16 contiguous: bf16[3,5]#1 > bf16[3,5]#1"}},
      {"gelu", {kLeftOut}, kNotUnderstood},
      {"gelu", {"bf16[0]"_t}, kNothing},
      {"gelu_backward",
       {"bf16[3,5]"_t, "bf16[3,5](1,3)"_t, std::string("tanh")},
       {"gelu_tanh_backward 3x5 bf16,bf16>bf16 transposed: bf16[3,5] bf16[3,5](1,3) > bf16[3,5]"}},
      {"gelu_backward",
       {"bf16[3,5]#1"_t, "bf16[3,5]#2"_t},
       {"gelu_backward 3x5 bf16,bf16>bf16 contiguous: bf16[3,5]#1 bf16[3,5]#2 > bf16[3,5]#3"},
       {"bf16[3,5]#3"_t}},
      {"gelu_backward", {"bf16[3,5]"_t, kLeftOut}, kNotUnderstood},
      {"gelu_backward", {kLeftOut, "bf16[3,5]"_t}, kNotUnderstood},
      {"silu_backward",
       {"bf16[3,5]#1"_t, "fp32[3,5]#2"_t},
       {"silu_backward 3x5 bf16,fp32>bf16 contiguous: bf16[3,5]#1 fp32[3,5]#2 > bf16[3,5]"}},
      {"silu_backward", {kLeftOut, "bf16[3,5]"_t}, kNotUnderstood},
      {"silu_backward", {"bf16[3,5]"_t, kLeftOut}, kNotUnderstood},
      {"silu_backward", {"bf16[0,5]"_t, "bf16[0,5]"_t}, kNothing},
  });
}

TEST(WorkedPointwise, MasksRepeatOverWhatTheyHide) {
  expect_worked_pointwise({
      {"masked_fill",
       {"fp32[2,3,5]#1"_t, "bool[3,5]#2"_t, -9.0},
       {"masked_fill 2x15 fp32,bool>fp32 broadcast_row: fp32[2,3,5]#1 bool[3,5]#2 > fp32[2,3,5]"}},
      {"masked_fill_",
       {"fp32[2,3,5]#1"_t, "bool[2,1,5]#2"_t, -9.0},
       {"other 6x5 fp32,bool>fp32 broadcast: fp32[2,3,5]#1 bool[2,1,5]#2 > fp32[2,3,5]#1"}},
      {"masked_fill", {"fp32[3]"_t, kLeftOut}, kNotUnderstood},
      {"masked_fill", {kLeftOut, "bool[3]"_t}, kNotUnderstood},
      {"masked_fill", {"fp32[0]"_t, "bool[0]"_t}, kNothing},
      {"masked_fill_", {"fp32[0]"_t, "bool[0]"_t}, kNothing},
  });
}

TEST(WorkedPointwise, UpToThreeTensorsAreReadTogether) {
  expect_worked_pointwise({
      {"lerp_",
       {"fp32[3,5]#1"_t, "bf16[3,5]#2"_t, 0.1},
       {"other 3x5 fp32,bf16>fp32 contiguous: fp32[3,5]#1 bf16[3,5]#2 > fp32[3,5]#1"}},
      {"addcdiv_",
       {"fp32[3,5]#1"_t, "fp32[3,5]#2"_t, "fp32[3,5]#3"_t, "fp32[3,5]#4"_t},
       {"other 3x5 fp32,fp32,fp32>fp32 contiguous: fp32[3,5]#1 fp32[3,5]#2 fp32[3,5]#3 > fp32[3,5]#1"}},
      // Numbers in tensors without dimensions are no operands, unless the first is one.
      {"where",
       {"bool[3,5]"_t, "fp32[]"_t, "bf16[3,5]"_t},
       {"other 3x5 bool,bf16>bf16 contiguous: bool[3,5] bf16[3,5] > bf16[3,5]"}},
      {"where",
       {"bool[]"_t, "fp32[3,5]"_t, "fp32[3,5]"_t},
       {"other 3x5 bool,fp32,fp32>fp32 broadcast: bool[] fp32[3,5] fp32[3,5] > fp32[3,5]"}},
      {"where", {"bool[3,5]"_t, 1.0, 2.0}, {"other 3x5 bool>bool contiguous: bool[3,5] > bool[3,5]"}},
      {"where", {kLeftOut, 1.0, 2.0}, kNotUnderstood},
      {"where", {"bool[0]"_t, "fp32[0]"_t}, kNothing},
      {"_amp_update_scale_",
       {"fp32[1]#1"_t, "int32[1]#2"_t, "fp32[1]#3"_t},
       {"other 1x1 fp32,fp32>fp32 contiguous: fp32[1]#1 fp32[1]#3 > fp32[1]#1"}},
      {"_amp_update_scale_", {"fp32[1]"_t, "int32[1]"_t}, kNotUnderstood},
      {"_amp_update_scale_", {kLeftOut, "int32[1]"_t, "fp32[1]"_t}, kNotUnderstood},
  });
}

TEST(WorkedPointwise, FillsReadNothing) {
  expect_worked_pointwise({
      {"zero_", {"bf16[3,5]#1"_t}, {"fill 3x5 >bf16 contiguous: > bf16[3,5]#1"}},
      {"zeros_like", {"bf16[3,5]#1"_t}, {"fill 3x5 >fp32 contiguous: > fp32[3,5]#2"}, {"fp32[3,5]#2"_t}},
      {"zeros", {Numbers{3, 5}}, kNotUnderstood},
      {"zeros", {Numbers{3, 5}}, {"fill 3x5 >fp32 contiguous: > fp32[3,5]"}, {"fp32[3,5]"_t}},
      {"zeros", {Numbers{3, 5}}, kNothing, {"host:fp32[3,5]"_t}},
      {"zero_", {"fp32[0]"_t}, kNothing},
      // Dense zeros that the driver wrote.
      {"zero_", {"bf16[3,5]#1"_t}, {"memset bytes=30: > bf16[3,5]#1 | other other"}, {}, {measured("Memset (Device)")}},
      {"zero_",
       {"bf16[3,5](1,3)"_t},
       {"memset bytes=30: > bf16[3,5](1,3) | other other"},
       {},
       {measured("Memset (Device)")}},
      {"zero_",
       {"bf16[3,5](10,1)"_t},
       {"fill 3x5 >bf16 contiguous: > bf16[3,5](10,1)"},
       {},
       {measured("Memset (Device)")}},
      {"zero_", {"bf16[3,5]"_t}, {"fill 3x5 >bf16 contiguous: > bf16[3,5]"}, {}, {measured("FillFunctor")}},
      {"zero_",
       {"bf16[3,5]"_t},
       {"fill 3x5 >bf16 contiguous: > bf16[3,5]"},
       {},
       {measured("Memset (Device)"), measured("FillFunctor")}},
      {"zero_", {"bf16[1]"_t}, {"memset bytes=2: > bf16[1] | other other"}, {}, {measured("Memset (Device)")}},
      {"zero_", {"bf16[0]"_t}, kNothing, {}, {measured("Memset (Device)")}},
  });
}

TEST(WorkedPointwise, RangesCountFromTheirBeginningToTheirEnd) {
  expect_worked_pointwise({
      {"arange", {7.0}, {"arange 1x7 >int64 contiguous: > int64[7]"}},
      {"arange", {2.0, 9.0}, {"arange 1x7 >int64 contiguous: > int64[7]"}},
      {"arange", {1.0, 2.0}, {"arange 1x1 >int64 contiguous: > int64[1]"}},
      {"arange", {kLeftOut, 4.0}, {"arange 1x4 >int64 contiguous: > int64[4]"}},
      {"arange", {1.0}, {"arange 1x1 >int64 contiguous: > int64[1]"}},
      {"arange", {9.0, 2.0}, kNotUnderstood},
      {"arange", {3.0, 3.0}, kNotUnderstood},
      {"arange", {kLeftOut}, kNotUnderstood},
      {"arange", {7.0}, {"arange 1x7 >fp32 contiguous: > fp32[7]#2"}, {"fp32[7]#2"_t}},
      {"arange", {7.0}, {"arange 1x7 >int64 contiguous: > int64[7]"}, {"fp32[6]#2"_t}},
      {"arange", {7.0}, kNothing, {"host:int64[7]"_t}},
  });
}

TEST(WorkedPointwise, PowersOfSmallAndHalfExponentsAreProductsAndRoots) {
  for (const double simple : {2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.0, 0.0}) {
    EXPECT_EQ(operations_of({"pow", {"bf16[3,5]#1"_t, simple}, {}}),
              Listing{"pow2 3x5 bf16>bf16 contiguous: bf16[3,5]#1 > bf16[3,5]"})
        << simple;
    EXPECT_EQ(operations_of({"pow_", {"bf16[3,5]#1"_t, simple}, {}}),
              Listing{"pow2 3x5 bf16>bf16 contiguous: bf16[3,5]#1 > bf16[3,5]#1"})
        << simple;
  }
  for (const double other : {-3.0, 1.5, 2.5, 4.0, -1.5})
    EXPECT_EQ(operations_of({"pow", {"bf16[3,5]"_t, other}, {}}),
              Listing{"power 3x5 bf16>bf16 contiguous: bf16[3,5] > bf16[3,5]"})
        << other;
  expect_worked_pointwise({
      {"pow", {"fp32[3]"_t, "fp32[3]"_t}, {"power 1x3 fp32,fp32>fp32 contiguous: fp32[3] fp32[3] > fp32[3]"}},
      // A number is filled into a tensor first.
      {"pow",
       {2.0, "bf16[3,5]#1"_t},
       {"fill 1x1 >fp32 contiguous: > fp32[]", "power 3x5 bf16>bf16 broadcast: bf16[3,5]#1 > bf16[3,5]"}},
      {"pow", {2.0, "bf16[0]"_t}, kNothing},
      {"pow", {2.0}, kNotUnderstood},
  });
}

}  // namespace
}  // namespace ridgeline::trace
