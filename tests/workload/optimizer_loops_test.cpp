// Two optimizers that go through the tensors one by one: everything they allocate, run and wait for.
#include <gtest/gtest.h>

#include "tests/support/optimizer_session.h"

namespace ridgeline {
namespace {

using testing_support::OptimizerSession;

std::unique_ptr<optimizers::Optimizer> looping(OptimizerKind kind, ClippingStyle clipping = {}) {
  TrainingDescription t;
  t.optimizer = {kind, OptimizerImplementation::for_loop};
  t.clipping_style = clipping;
  t.eight_bit_block = 256;
  return optimizers::make_optimizer(t);
}

const char* const kBertAdamClipsEachTensorAndDecaysMatrices = R"(
new 1: 60 optimizer_state
fill 3x5 fp32: -> 1 60
new 2: 60 optimizer_state
fill 3x5 fp32: -> 2 60
new 3: 28 optimizer_state
fill 1x7 fp32: -> 3 28
new 4: 28 optimizer_state
fill 1x7 fp32: -> 4 28
host optimizer_op
new 5: 4 temporaries
linalg_vector_norm 1x15 fp32: dw 60 -> 5 4
host optimizer_op 6
new 6: 4 temporaries
cat 1x1 fp32: 5 4 -> 6 4
new 7: 4 temporaries
linalg_vector_norm 1x1 fp32: 6 4 -> 7 4
free 6
free 5
new 8: 4 temporaries
add 1x1 fp32: 7 4 -> 8 4
new 9: 4 temporaries
reciprocal 1x1 fp32: 8 4 -> 9 4
new 10: 4 temporaries
scale 1x1 fp32: 9 4 -> 10 4
free 9
free 8
new 11: 4 temporaries
eq 1x1 fp32: 10 4 -> 11 4
copy_to_host 1x1 fp32: 11 4
the host waits for the GPU
free 11
free 10
free 7
host optimizer_op
scale 3x5 fp32: 1 60 -> 1 60
host optimizer_op
add_ 3x5 fp32,fp32->fp32: 1 60, dw 60 -> 1 60
host optimizer_op
scale 3x5 fp32: 2 60 -> 2 60
host optimizer_op
pointwise 3x5 fp32,fp32->fp32: 2 60, dw 60 -> 2 60
new 12: 60 temporaries
host optimizer_op
sqrt 3x5 fp32: 2 60 -> 12 60
new 13: 60 temporaries
host optimizer_op
add 3x5 fp32: 12 60 -> 13 60
free 12
new 14: 60 temporaries
host optimizer_op
div 3x5 fp32,fp32->fp32: 1 60, 13 60 -> 14 60
free 13
new 15: 60 temporaries
host optimizer_op
scale 3x5 fp32: w 60 -> 15 60
host optimizer_op
add_ 3x5 fp32,fp32->fp32: 14 60, 15 60 -> 14 60
free 15
new 16: 60 temporaries
host optimizer_op
scale 3x5 fp32: 14 60 -> 16 60
new 17: 60 temporaries
host optimizer_op
scale 3x5 fp32: 16 60 -> 17 60
host optimizer_op
add_ 3x5 fp32,fp32->fp32: w 60, 17 60 -> w 60
free 17
host optimizer_op
new 18: 4 temporaries
linalg_vector_norm 1x7 fp32: db 28 -> 18 4
host optimizer_op 6
new 19: 4 temporaries
cat 1x1 fp32: 18 4 -> 19 4
new 20: 4 temporaries
linalg_vector_norm 1x1 fp32: 19 4 -> 20 4
free 19
free 18
new 21: 4 temporaries
add 1x1 fp32: 20 4 -> 21 4
new 22: 4 temporaries
reciprocal 1x1 fp32: 21 4 -> 22 4
new 23: 4 temporaries
scale 1x1 fp32: 22 4 -> 23 4
free 22
free 21
new 24: 4 temporaries
eq 1x1 fp32: 23 4 -> 24 4
copy_to_host 1x1 fp32: 24 4
the host waits for the GPU
free 24
free 23
free 20
host optimizer_op
scale 1x7 fp32: 3 28 -> 3 28
host optimizer_op
add_ 1x7 fp32,fp32->fp32: 3 28, db 28 -> 3 28
host optimizer_op
scale 1x7 fp32: 4 28 -> 4 28
host optimizer_op
pointwise 1x7 fp32,fp32->fp32: 4 28, db 28 -> 4 28
new 25: 28 temporaries
host optimizer_op
sqrt 1x7 fp32: 4 28 -> 25 28
new 26: 28 temporaries
host optimizer_op
add 1x7 fp32: 25 28 -> 26 28
free 25
new 27: 28 temporaries
host optimizer_op
div 1x7 fp32,fp32->fp32: 3 28, 26 28 -> 27 28
free 14
free 26
new 28: 28 temporaries
host optimizer_op
scale 1x7 fp32: 27 28 -> 28 28
free 16
new 29: 28 temporaries
host optimizer_op
scale 1x7 fp32: 28 28 -> 29 28
host optimizer_op
add_ 1x7 fp32,fp32->fp32: b 28, 29 28 -> b 28
free 29
free 28
free 27
)";

// Before PyTorch 1.13 or so clip_grad_norm_ asked the GPU whether the norm is too large (of one tensor it is not).
TEST(OptimizerLoops, BertAdamClipsEachTensorAndDecaysMatrices) {
  OptimizerSession session;
  const auto optimizer = looping(OptimizerKind::bert_adam, {.by_lists = false, .waits = true});
  EXPECT_EQ("\n" + session.step_of(*optimizer), kBertAdamClipsEachTensorAndDecaysMatrices);
  session.name_states();
  session.parameters[0].gradient.reset();  // then only the bias is updated
  const std::string bias = session.step_of(*optimizer);
  EXPECT_EQ(bias.find("dw 60"), bias.npos);
  EXPECT_NE(bias.find("add_ 1x7 fp32,fp32->fp32: b 28"), bias.npos);
  EXPECT_EQ(bias.find("optimizer_state"), bias.npos);
}

const char* const kBertAdamClipsByListsOrByTensors = R"(
host optimizer_op 8
new 17: 4 temporaries
new 18: 4 temporaries
foreach_norm 1 tensors, 6 elements fp32: dw 24
free 17
new 19: 4 temporaries
cat 1x1 fp32: 18 4 -> 19 4
new 20: 4 temporaries
linalg_vector_norm 1x1 fp32: 19 4 -> 20 4
free 19
free 18
new 21: 4 temporaries
add 1x1 fp32: 20 4 -> 21 4
new 22: 4 temporaries
reciprocal 1x1 fp32: 21 4 -> 22 4
new 23: 4 temporaries
scale 1x1 fp32: 22 4 -> 23 4
free 22
free 21
new 24: 4 temporaries
clamp 1x1 fp32: 23 4 -> 24 4
copy_to_host 1x1 fp32: 24 4
the host waits for the GPU
foreach_mul 1 tensors, 6 elements fp32: dw 24
free 23
free 24
free 20
)";

TEST(OptimizerLoops, BertAdamClipsByListsOrByTensors) {
  const auto clipped = [](ClippingStyle style) {
    OptimizerSession session(DType::fp32, {{2, 3}});
    const auto optimizer = looping(OptimizerKind::bert_adam, style);
    session.step_of(*optimizer);
    session.name_states();
    const std::string step = session.step_of(*optimizer);
    return "\n" + step.substr(0, step.find("host optimizer_op\nscale 2x3 fp32: w0"));
  };
  EXPECT_EQ(clipped({.by_lists = true, .waits = false}), R"(
host optimizer_op 8
new 17: 4 temporaries
new 18: 4 temporaries
foreach_norm 1 tensors, 6 elements fp32: dw 24
free 17
new 19: 4 temporaries
cat 1x1 fp32: 18 4 -> 19 4
new 20: 4 temporaries
linalg_vector_norm 1x1 fp32: 19 4 -> 20 4
free 19
free 18
new 21: 4 temporaries
add 1x1 fp32: 20 4 -> 21 4
new 22: 4 temporaries
reciprocal 1x1 fp32: 21 4 -> 22 4
new 23: 4 temporaries
scale 1x1 fp32: 22 4 -> 23 4
free 22
free 21
new 24: 4 temporaries
clamp 1x1 fp32: 23 4 -> 24 4
foreach_mul 1 tensors, 6 elements fp32: dw 24
free 23
free 24
free 20
)");
  EXPECT_EQ(clipped({.by_lists = true, .waits = true}), kBertAdamClipsByListsOrByTensors);
  EXPECT_EQ(clipped({.by_lists = false, .waits = false}), R"(
host optimizer_op
new 16: 4 temporaries
linalg_vector_norm 1x6 fp32: dw 24 -> 16 4
host optimizer_op 6
new 17: 4 temporaries
cat 1x1 fp32: 16 4 -> 17 4
new 18: 4 temporaries
linalg_vector_norm 1x1 fp32: 17 4 -> 18 4
free 17
free 16
new 19: 4 temporaries
add 1x1 fp32: 18 4 -> 19 4
new 20: 4 temporaries
reciprocal 1x1 fp32: 19 4 -> 20 4
new 21: 4 temporaries
scale 1x1 fp32: 20 4 -> 21 4
free 20
free 19
new 22: 4 temporaries
clamp 1x1 fp32: 21 4 -> 22 4
free 21
host optimizer_op
mul 2x3 fp32,fp32->fp32 broadcast: dw 24, 22 4 -> dw 24
free 22
free 18
)");
}

// bitsandbytes: tensors of 4096 elements or more have states of a byte an element and a scale for each 256, and share
// two maps of 256 values. A tensor that is read alone.
TEST(OptimizerLoops, StatesInEightBitsHaveAScaleABlock) {
  OptimizerSession session(DType::bf16, {{4095}, {64, 64}, {4097}});
  const auto optimizer = looping(OptimizerKind::adamw_8bit);
  EXPECT_EQ("\n" + session.step_of(*optimizer), R"(
new 1: 16380 optimizer_state
fill 1x4095 fp32: -> 1 16380
new 2: 16380 optimizer_state
fill 1x4095 fp32: -> 2 16380
host pointwise
optimizer_update 1x4095 bf16,bf16,fp32->bf16: w 8190, dw 8190, 1 16380 -> w 8190
new 3: 1024 optimizer_state
fill 1x256 fp32: -> 3 1024
new 4: 1024 optimizer_state
fill 1x256 fp32: -> 4 1024
new 5: 4096 optimizer_state
fill 64x64 uint8: -> 5 4096
new 6: 64 optimizer_state
fill 1x16 fp32: -> 6 64
new 7: 4096 optimizer_state
fill 64x64 uint8: -> 7 4096
new 8: 64 optimizer_state
fill 1x16 fp32: -> 8 64
host pointwise
optimizer_update 1x4096 bf16,bf16,uint8->bf16: b 8192, db 8192, 5 4096 -> b 8192
new 9: 4097 optimizer_state
fill 1x4097 uint8: -> 9 4097
new 10: 68 optimizer_state
fill 1x17 fp32: -> 10 68
new 11: 4097 optimizer_state
fill 1x4097 uint8: -> 11 4097
new 12: 68 optimizer_state
fill 1x17 fp32: -> 12 68
host pointwise
optimizer_update 1x4097 bf16,bf16,uint8->bf16: c 8194, dc 8194, 9 4097 -> c 8194
the host waits for the GPU
)");
  session.name_states();
  EXPECT_EQ("\n" + session.step_of(*optimizer), R"(
host pointwise
optimizer_update 1x4095 bf16,bf16,fp32->bf16: w 8190, dw 8190, w0 16380 -> w 8190
host pointwise
optimizer_update 1x4096 bf16,bf16,uint8->bf16: b 8192, db 8192, b0 4096 -> b 8192
host pointwise
optimizer_update 1x4097 bf16,bf16,uint8->bf16: c 8194, dc 8194, c0 4097 -> c 8194
the host waits for the GPU
)");
}

}  // namespace
}  // namespace ridgeline
