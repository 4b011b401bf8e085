// SGD over a weight of 3 x 5 and a bias of 7: everything it allocates and runs; which optimizers there are, and what
// becomes of gradients.
#include <gtest/gtest.h>

#include "sim/units/user_error.h"
#include "tests/support/optimizer_session.h"

namespace ridgeline {
namespace {

using testing_support::OptimizerSession;
using How = OptimizerImplementation;

struct SgdSteps {
  std::string first, second;
};
SgdSteps sgd_steps(OptimizerKind kind, How how, DType type = DType::fp32) {
  TrainingDescription t;
  t.optimizer = {kind, how};
  OptimizerSession session(type);
  const auto optimizer = optimizers::make_optimizer(t);
  SgdSteps result;
  result.first = "\n" + session.step_of(*optimizer);
  session.name_states();
  result.second = "\n" + session.step_of(*optimizer);
  return result;
}

TEST(SgdListing, SgdAddsGradients) {
  const char* const lists = R"(
host foreach_fixed
host per_parameter_foreach_sgd 2
foreach_add 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28
)";
  EXPECT_EQ(sgd_steps(OptimizerKind::sgd, How::foreach).first, R"(
host foreach_fixed
host per_parameter_foreach_sgd 2
foreach_add 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28
)");
  EXPECT_EQ(sgd_steps(OptimizerKind::sgd, How::foreach).second, lists);
  EXPECT_EQ(sgd_steps(OptimizerKind::sgd, How::fused).second, R"(
host fused_fixed
host per_parameter_fused 2
fused_sgd 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28, dw 60, db 28
)");
  EXPECT_EQ(sgd_steps(OptimizerKind::sgd, How::for_loop, DType::bf16).first, R"(
host optimizer_op
add_ 3x5 bf16,bf16->bf16: w 30, dw 30 -> w 30
host optimizer_op
add_ 1x7 bf16,bf16->bf16: b 14, db 14 -> b 14
)");
}

// torch/optim/sgd.py: momentum_buffer = torch.clone(grad).detach() in the first step, whatever the implementation.
TEST(SgdListing, TheFirstMomentumIsACopyOfTheGradient) {
  const SgdSteps lists = sgd_steps(OptimizerKind::sgd_momentum, How::foreach);
  EXPECT_EQ(lists.first, R"(
host foreach_fixed
host per_parameter_foreach_sgd 2
new 1: 60 optimizer_state
copy 1x15 fp32: dw 60 -> 1 60
new 2: 28 optimizer_state
copy 1x7 fp32: db 28 -> 2 28
foreach_add 2 tensors, 22 elements fp32: w 60, b 28, 1 60, 2 28
)");
  EXPECT_EQ(lists.second, R"(
host foreach_fixed
host per_parameter_foreach_sgd 2
foreach_mul 2 tensors, 22 elements fp32: w0 60, b0 28
foreach_add 2 tensors, 22 elements fp32: w0 60, b0 28, dw 60, db 28
foreach_add 2 tensors, 22 elements fp32: w 60, b 28, w0 60, b0 28
)");
  const SgdSteps fused = sgd_steps(OptimizerKind::sgd_momentum, How::fused);
  EXPECT_EQ(fused.first, R"(
host fused_fixed
host per_parameter_fused 2
new 1: 60 optimizer_state
copy 1x15 fp32: dw 60 -> 1 60
new 2: 28 optimizer_state
copy 1x7 fp32: db 28 -> 2 28
fused_sgd 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28, 1 60, 2 28
)");
  EXPECT_EQ(fused.second, R"(
host fused_fixed
host per_parameter_fused 2
fused_sgd 2 tensors, 22 elements fp32: w 60, b 28, dw 60, db 28, w0 60, b0 28
)");
  const SgdSteps loop = sgd_steps(OptimizerKind::sgd_momentum, How::for_loop, DType::bf16);
  EXPECT_EQ(loop.first, R"(
new 1: 30 optimizer_state
copy 1x15 bf16: dw 30 -> 1 30
new 2: 14 optimizer_state
copy 1x7 bf16: db 14 -> 2 14
host optimizer_op 3
add_ 3x5 bf16,bf16->bf16: w 30, 1 30 -> w 30
host optimizer_op 3
add_ 1x7 bf16,bf16->bf16: b 14, 2 14 -> b 14
)");
  EXPECT_EQ(loop.second, R"(
host optimizer_op 3
scale 3x5 bf16: w0 30 -> w0 30
add_ 3x5 bf16,bf16->bf16: w0 30, dw 30 -> w0 30
add_ 3x5 bf16,bf16->bf16: w 30, w0 30 -> w 30
host optimizer_op 3
scale 1x7 bf16: b0 14 -> b0 14
add_ 1x7 bf16,bf16->bf16: b0 14, db 14 -> b0 14
add_ 1x7 bf16,bf16->bf16: b 14, b0 14 -> b 14
)");
}

TEST(SgdListing, NoOptimizerDoesNothing) {
  for (const How how : {How::foreach, How::fused, How::for_loop}) {
    const SgdSteps steps = sgd_steps(OptimizerKind::none, how);
    EXPECT_EQ(steps.first + steps.second, "\n\n");
  }
}

TEST(SgdListing, WhatPyTorchHasNoFusedKernelForIsRefused) {
  for (const auto& [kind, name] :
       {std::pair(OptimizerKind::adamw_kahan, "adamw-kahan"), std::pair(OptimizerKind::adafactor, "adafactor")}) {
    TrainingDescription t;
    t.optimizer.kind = kind;
    for (const How how : {How::foreach, How::for_loop}) {
      t.optimizer.implementation = how;
      EXPECT_NO_THROW(optimizers::make_optimizer(t)) << name;
    }
    t.optimizer.implementation = How::fused;
    try {
      optimizers::make_optimizer(t);
      ADD_FAILURE() << name;
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()),
                std::string("training.optimizer: ") + name + " has no fused implementation; use foreach or for-loop");
    }
  }
}

// zero_grad: gradients are dropped, or filled with zeros where the script keeps them.
TEST(SgdListing, GradientsAreDroppedOrFilledWithZeros) {
  OptimizerSession session(DType::bf16, {{3, 5}, {7}, {2, 2}});
  const auto optimizer = optimizers::make_optimizer({});
  session.parameters[1].gradient.reset();
  const auto cleared = [&](bool keep) {
    return "\n" + session.listed([&] { optimizer->clear_gradients(session.eager, session.parameters, keep); });
  };
  EXPECT_EQ(cleared(true), R"(
host optimizer_op
memset 30 bytes: -> dw 30
host optimizer_op
memset 8 bytes: -> dc 8
)");
  EXPECT_TRUE(session.parameters[0].gradient.defined() && session.parameters[2].gradient.defined());
  EXPECT_EQ(cleared(false), R"(
host per_parameter_zero_grad 3
free dw
free dc
)");
  for (const eager::Parameter& parameter : session.parameters) EXPECT_FALSE(parameter.gradient.defined());
}

// A parameter that took no gradient has no place among the operands, but its size is in the list.
TEST(SgdListing, WithoutOneGradientACallNamesNoOperands) {
  OptimizerSession session;
  session.parameters[1].gradient.reset();
  TrainingDescription t;
  t.optimizer = {OptimizerKind::sgd, How::foreach};
  EXPECT_EQ("\n" + session.step_of(*optimizers::make_optimizer(t)), R"(
host foreach_fixed
host per_parameter_foreach_sgd 2
foreach_add 2 tensors, 22 elements fp32:
)");
}

}  // namespace
}  // namespace ridgeline
