// Adam and AdamW over a weight of 3 x 5 and a bias of 7: everything they allocate, run and wait for.
#include <gtest/gtest.h>

#include "tests/support/optimizer_session.h"

namespace ridgeline {
namespace {

using testing_support::OptimizerSession;
using How = OptimizerImplementation;

/// Of two steps, the first of which makes states that the second calls w0, w1 … and b0, b1 ….
struct ListedSteps {
  std::string first, second;
};
ListedSteps listed_steps(OptimizerKind kind, How how, DType type = DType::fp32, int lists = 1, bool may_skip = false) {
  TrainingDescription t;
  t.optimizer = {kind, how};
  t.foreach_adam_lists = lists;
  OptimizerSession session(type);
  const auto optimizer = optimizers::make_optimizer(t);
  const eager::Tensor flag = may_skip ? session.eager.empty({}, DType::fp32) : eager::Tensor{};
  ListedSteps result;
  result.first = "\n" + session.step_of(*optimizer, flag);
  session.name_states();
  result.second = "\n" + session.step_of(*optimizer, flag);
  return result;
}

// torch/optim/adamw.py: decay, lerp of the average, square average, root, correction of bias, epsilon, addcdiv.
TEST(AdamListing, AdamWMakesTwoStatesAndRunsEightCallsOverOneTemporaryList) {
  const ListedSteps steps = listed_steps(OptimizerKind::adamw, How::foreach);
  EXPECT_EQ(steps.first, R"(
new 1: 60 optimizer_state
fill 3x5 fp32: -> 1 60
new 2: 60 optimizer_state
fill 3x5 fp32: -> 2 60
new 3: 28 optimizer_state
fill 1x7 fp32: -> 3 28
new 4: 28 optimizer_state
fill 1x7 fp32: -> 4 28
host foreach_fixed
host per_parameter_foreach 2
foreach_mul 2 tensors, 22 elements fp32: w 60, b 28
foreach_lerp 2 tensors, 22 elements fp32: 1 60, 3 28, dw 60, db 28
foreach_mul 2 tensors, 22 elements fp32: 2 60, 4 28
foreach_addcmul 2 tensors, 22 elements fp32: 2 60, 4 28, dw 60, db 28
new 5: 60 temporaries
new 6: 28 temporaries
foreach_sqrt 2 tensors, 22 elements fp32: 2 60, 4 28, 5 60, 6 28
foreach_div 2 tensors, 22 elements fp32 by a scalar each: 5 60, 6 28
foreach_add_scalar 2 tensors, 22 elements fp32: 5 60, 6 28
foreach_addcdiv 2 tensors, 22 elements fp32 by a scalar each: w 60, b 28, 1 60, 3 28, 5 60, 6 28
free 6
free 5
)");
  EXPECT_EQ(steps.second, R"(
host foreach_fixed
host per_parameter_foreach 2
foreach_mul 2 tensors, 22 elements fp32: w 60, b 28
foreach_lerp 2 tensors, 22 elements fp32: w0 60, b0 28, dw 60, db 28
foreach_mul 2 tensors, 22 elements fp32: w1 60, b1 28
foreach_addcmul 2 tensors, 22 elements fp32: w1 60, b1 28, dw 60, db 28
new 7: 60 temporaries
new 8: 28 temporaries
foreach_sqrt 2 tensors, 22 elements fp32: w1 60, b1 28, 7 60, 8 28
foreach_div 2 tensors, 22 elements fp32 by a scalar each: 7 60, 8 28
foreach_add_scalar 2 tensors, 22 elements fp32: 7 60, 8 28
foreach_addcdiv 2 tensors, 22 elements fp32 by a scalar each: w 60, b 28, w0 60, b0 28, 7 60, 8 28
free 8
free 7
)");
}

// torch/optim/adam.py: its decay is none, so that one call less runs. Before PyTorch 2.1 the denominator was a list
// of its own.
TEST(AdamListing, AdamHasNoDecayAndAnOlderOneASecondTemporaryList) {
  EXPECT_EQ(listed_steps(OptimizerKind::adam, How::foreach, DType::fp32, 2).second, R"(
host foreach_fixed
host per_parameter_foreach 2
foreach_lerp 2 tensors, 22 elements fp32: w0 60, b0 28, dw 60, db 28
foreach_mul 2 tensors, 22 elements fp32: w1 60, b1 28
foreach_addcmul 2 tensors, 22 elements fp32: w1 60, b1 28, dw 60, db 28
new 9: 60 temporaries
new 10: 28 temporaries
foreach_sqrt 2 tensors, 22 elements fp32: w1 60, b1 28, 9 60, 10 28
foreach_div 2 tensors, 22 elements fp32 by a scalar each: 9 60, 10 28
new 11: 60 temporaries
new 12: 28 temporaries
foreach_add_scalar 2 tensors, 22 elements fp32: 11 60, 12 28
foreach_addcdiv 2 tensors, 22 elements fp32 by a scalar each: w 60, b 28, w0 60, b0 28, 11 60, 12 28
free 10
free 9
free 12
free 11
)");
}

// The count of steps of each tensor lies on the device.
TEST(AdamListing, FusedAdamCountsStepsOnTheDeviceAndIsOneKernel) {
  const ListedSteps steps = listed_steps(OptimizerKind::adamw, How::fused);
  EXPECT_EQ(steps.first, R"(
new 1: 4 optimizer_state
fill 1x1 fp32: -> 1 4
new 2: 60 optimizer_state
fill 3x5 fp32: -> 2 60
new 3: 60 optimizer_state
fill 3x5 fp32: -> 3 60
new 4: 4 optimizer_state
fill 1x1 fp32: -> 4 4
new 5: 28 optimizer_state
fill 1x7 fp32: -> 5 28
new 6: 28 optimizer_state
fill 1x7 fp32: -> 6 28
host fused_fixed
host per_parameter_fused 2
foreach_add_scalar 2 tensors, 2 elements fp32: 1 4, 4 4
fused_adamw 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28, 2 60, 5 28, 3 60, 6 28
)");
  EXPECT_EQ(steps.second, R"(
host fused_fixed
host per_parameter_fused 2
foreach_add_scalar 2 tensors, 2 elements fp32: w0 4, b0 4
fused_adamw 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28, w1 60, b1 28, w2 60, b2 28
)");
  EXPECT_EQ(listed_steps(OptimizerKind::adam, How::fused).second, R"(
host fused_fixed
host per_parameter_fused 2
foreach_add_scalar 2 tensors, 2 elements fp32: w0 4, b0 4
fused_adam 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28, w1 60, b1 28, w2 60, b2 28
)");
}

// torch/optim/adamw.py, _fused_adamw: torch._foreach_sub_(device_state_steps, [device_found_inf] * n).
TEST(AdamListing, AStepThatMayBeSkippedTakesItsCountBack) {
  EXPECT_EQ(listed_steps(OptimizerKind::adamw, How::fused, DType::fp32, 1, true).second, R"(
host fused_fixed
host per_parameter_fused 2
foreach_add_scalar 2 tensors, 2 elements fp32: w0 4, b0 4
fused_adamw 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28, w1 60, b1 28, w2 60, b2 28
foreach_add 2 tensors, 2 elements fp32: w0 4, b0 4, w0 4, b0 4
)");
  EXPECT_EQ(listed_steps(OptimizerKind::adamw, How::foreach, DType::fp32, 1, true).second,
            listed_steps(OptimizerKind::adamw, How::foreach).second);
}

// Variables of the loop live until the next tensor's take their names.
TEST(AdamListing, AdamInALoopRunsEightKernelsATensor) {
  EXPECT_EQ(listed_steps(OptimizerKind::adamw, How::for_loop).first, R"(
new 1: 60 optimizer_state
fill 3x5 fp32: -> 1 60
new 2: 60 optimizer_state
fill 3x5 fp32: -> 2 60
new 3: 28 optimizer_state
fill 1x7 fp32: -> 3 28
new 4: 28 optimizer_state
fill 1x7 fp32: -> 4 28
host per_parameter_for_loop
scale 3x5 fp32: w 60 -> w 60
pointwise 3x5 fp32,fp32->fp32: 1 60, dw 60 -> 1 60
scale 3x5 fp32: 2 60 -> 2 60
pointwise 3x5 fp32,fp32,fp32->fp32: 2 60, dw 60, dw 60 -> 2 60
new 5: 60 temporaries
sqrt 3x5 fp32: 2 60 -> 5 60
new 6: 60 temporaries
div 3x5 fp32: 5 60 -> 6 60
free 5
add 3x5 fp32: 6 60 -> 6 60
pointwise 3x5 fp32,fp32,fp32->fp32: w 60, 1 60, 6 60 -> w 60
host per_parameter_for_loop
scale 1x7 fp32: b 28 -> b 28
pointwise 1x7 fp32,fp32->fp32: 3 28, db 28 -> 3 28
scale 1x7 fp32: 4 28 -> 4 28
pointwise 1x7 fp32,fp32,fp32->fp32: 4 28, db 28, db 28 -> 4 28
new 7: 28 temporaries
sqrt 1x7 fp32: 4 28 -> 7 28
new 8: 28 temporaries
div 1x7 fp32: 7 28 -> 8 28
free 7
free 6
add 1x7 fp32: 8 28 -> 8 28
pointwise 1x7 fp32,fp32,fp32->fp32: b 28, 3 28, 8 28 -> b 28
free 8
)");
  EXPECT_EQ(listed_steps(OptimizerKind::adam, How::for_loop).second, R"(
host per_parameter_for_loop
pointwise 3x5 fp32,fp32->fp32: w0 60, dw 60 -> w0 60
scale 3x5 fp32: w1 60 -> w1 60
pointwise 3x5 fp32,fp32,fp32->fp32: w1 60, dw 60, dw 60 -> w1 60
new 9: 60 temporaries
sqrt 3x5 fp32: w1 60 -> 9 60
new 10: 60 temporaries
div 3x5 fp32: 9 60 -> 10 60
free 9
add 3x5 fp32: 10 60 -> 10 60
pointwise 3x5 fp32,fp32,fp32->fp32: w 60, w0 60, 10 60 -> w 60
host per_parameter_for_loop
pointwise 1x7 fp32,fp32->fp32: b0 28, db 28 -> b0 28
scale 1x7 fp32: b1 28 -> b1 28
pointwise 1x7 fp32,fp32,fp32->fp32: b1 28, db 28, db 28 -> b1 28
new 11: 28 temporaries
sqrt 1x7 fp32: b1 28 -> 11 28
new 12: 28 temporaries
div 1x7 fp32: 11 28 -> 12 28
free 11
free 10
add 1x7 fp32: 12 28 -> 12 28
pointwise 1x7 fp32,fp32,fp32->fp32: b 28, b0 28, 12 28 -> b 28
free 12
)");
}

TEST(AdamListing, KahanSummationKeepsWhatRoundingLost) {
  EXPECT_EQ(listed_steps(OptimizerKind::adamw_kahan, How::foreach, DType::bf16).first, R"(
new 1: 30 optimizer_state
fill 3x5 bf16: -> 1 30
new 2: 30 optimizer_state
fill 3x5 bf16: -> 2 30
new 3: 30 optimizer_state
fill 3x5 bf16: -> 3 30
new 4: 14 optimizer_state
fill 1x7 bf16: -> 4 14
new 5: 14 optimizer_state
fill 1x7 bf16: -> 5 14
new 6: 14 optimizer_state
fill 1x7 bf16: -> 6 14
host foreach_fixed
host per_parameter_foreach 2
foreach_mul 2 tensors, 22 elements bf16: w 30, b 14
foreach_lerp 2 tensors, 22 elements bf16: 1 30, 4 14, dw 30, db 14
foreach_mul 2 tensors, 22 elements bf16: 2 30, 5 14
foreach_addcmul 2 tensors, 22 elements bf16: 2 30, 5 14, dw 30, db 14
new 7: 30 temporaries
new 8: 14 temporaries
foreach_sqrt 2 tensors, 22 elements bf16: 2 30, 5 14, 7 30, 8 14
foreach_div 2 tensors, 22 elements bf16 by a scalar each: 7 30, 8 14
foreach_add_scalar 2 tensors, 22 elements bf16: 7 30, 8 14
foreach_addcdiv 2 tensors, 22 elements bf16 by a scalar each: 3 30, 6 14, 1 30, 4 14, 7 30, 8 14
foreach_copy 2 tensors, 22 elements bf16: w 30, b 14, 7 30, 8 14
foreach_add 2 tensors, 22 elements bf16: w 30, b 14, 3 30, 6 14
foreach_add 2 tensors, 22 elements bf16: 7 30, 8 14, w 30, b 14
foreach_add 2 tensors, 22 elements bf16: 3 30, 6 14, 7 30, 8 14
free 8
free 7
)");
  EXPECT_EQ(listed_steps(OptimizerKind::adamw_kahan, How::for_loop, DType::bf16).second, R"(
host per_parameter_for_loop
scale 3x5 bf16: w 30 -> w 30
pointwise 3x5 bf16,bf16->bf16: w0 30, dw 30 -> w0 30
scale 3x5 bf16: w1 30 -> w1 30
pointwise 3x5 bf16,bf16,bf16->bf16: w1 30, dw 30, dw 30 -> w1 30
new 13: 30 temporaries
sqrt 3x5 bf16: w1 30 -> 13 30
new 14: 30 temporaries
div 3x5 bf16: 13 30 -> 14 30
free 13
add 3x5 bf16: 14 30 -> 14 30
pointwise 3x5 bf16,bf16,bf16->bf16: w2 30, w0 30, 14 30 -> w2 30
new 15: 30 temporaries
copy 1x15 bf16: w 30 -> 15 30
add_ 3x5 bf16,bf16->bf16: w 30, w2 30 -> w 30
pointwise 3x5 bf16,bf16->bf16: 15 30, w 30 -> 15 30
add_ 3x5 bf16,bf16->bf16: w2 30, 15 30 -> w2 30
free 15
host per_parameter_for_loop
scale 1x7 bf16: b 14 -> b 14
pointwise 1x7 bf16,bf16->bf16: b0 14, db 14 -> b0 14
scale 1x7 bf16: b1 14 -> b1 14
pointwise 1x7 bf16,bf16,bf16->bf16: b1 14, db 14, db 14 -> b1 14
new 16: 14 temporaries
sqrt 1x7 bf16: b1 14 -> 16 14
new 17: 14 temporaries
div 1x7 bf16: 16 14 -> 17 14
free 16
free 14
add 1x7 bf16: 17 14 -> 17 14
pointwise 1x7 bf16,bf16,bf16->bf16: b2 14, b0 14, 17 14 -> b2 14
new 18: 14 temporaries
copy 1x7 bf16: b 14 -> 18 14
add_ 1x7 bf16,bf16->bf16: b 14, b2 14 -> b 14
pointwise 1x7 bf16,bf16->bf16: 18 14, b 14 -> 18 14
add_ 1x7 bf16,bf16->bf16: b2 14, 18 14 -> b2 14
free 18
free 17
)");
}

}  // namespace
}  // namespace ridgeline
