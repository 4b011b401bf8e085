// Optimizers beside Adam and SGD: kernels of one step, states they keep, and which parameters they take.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "tests/support/optimizer_session.h"

namespace ridgeline {
namespace {

using testing_support::OptimizerSession;

std::unique_ptr<optimizers::Optimizer> optimizer_of(OptimizerKind kind, OptimizerImplementation implementation) {
  TrainingDescription t;
  t.optimizer = {kind, implementation};
  return optimizers::make_optimizer(t);
}

template <typename Kind>
int ops_of(const OpTrace& trace) {
  int result = 0;
  for (const Call& call : trace.calls) result += std::holds_alternative<Kind>(trace.ops[call.op]) ? 1 : 0;
  return result;
}

int lists_of(const OpTrace& trace, MultiTensorFunction function) {
  int result = 0;
  for (const Call& call : trace.calls)
    if (const auto* op = std::get_if<MultiTensor>(&trace.ops[call.op])) result += op->function == function ? 1 : 0;
  return result;
}

// torch.optim.Muon: five iterations of three products on the shorter side; vectors and tables take AdamW.
TEST(OptimizerKinds, MuonMakesMatricesOfBlocksOrthogonal) {
  OptimizerSession session(DType::bf16, {{64, 32}, {7}, {8, 16}});
  session.parameters[0].accumulate.layer = 0;
  session.parameters[1].accumulate.layer = 0;
  const auto muon = optimizer_of(OptimizerKind::muon, OptimizerImplementation::fused);
  muon->step(session.eager, session.parameters, {});
  EXPECT_EQ(ops_of<Matmul>(session.trace), 15);
  double flops = 0.0;
  for (const Call& call : session.trace.calls)
    if (const auto* op = std::get_if<Matmul>(&session.trace.ops[call.op]))
      flops += 2.0 * static_cast<double>(op->m * op->n * op->k);
  EXPECT_DOUBLE_EQ(flops, 5.0 * (2.0 * 32 * 32 * 64 + 2.0 * 32 * 32 * 32 + 2.0 * 32 * 64 * 32));
  EXPECT_EQ(lists_of(session.trace, MultiTensorFunction::fused_adamw), 1);
  EXPECT_EQ(session.parameters[0].states.size(), 1u) << "momentum alone";
  EXPECT_EQ(session.parameters[1].states.size(), 3u) << "a count and both averages";
  EXPECT_EQ(session.parameters[2].states.size(), 3u);
  for (const eager::Parameter& parameter : session.parameters) EXPECT_TRUE(parameter.gradient.defined());
}

TEST(OptimizerKinds, LionTakesListsLoopsOrTheKernelsOfBitsandbytes) {
  const auto kernels = [](OptimizerKind kind, OptimizerImplementation how, DType state) {
    OptimizerSession session(DType::bf16, {{64, 64}, {32, 128}});
    const auto lion = optimizer_of(kind, how);
    lion->step(session.eager, session.parameters, {});
    EXPECT_EQ(session.parameters[0].states[0].type, state);
    const auto first = session.trace.calls.size();
    lion->step(session.eager, session.parameters, {});
    return session.trace.calls.size() - first;
  };
  EXPECT_EQ(kernels(OptimizerKind::lion, OptimizerImplementation::foreach, DType::bf16), 6u + 2u);
  EXPECT_EQ(kernels(OptimizerKind::lion, OptimizerImplementation::for_loop, DType::bf16), 2u * 8u);
  EXPECT_EQ(kernels(OptimizerKind::lion, OptimizerImplementation::fused, DType::fp32), 2u);
  EXPECT_EQ(kernels(OptimizerKind::lion_8bit, OptimizerImplementation::foreach, DType::uint8), 2u);
}

TEST(OptimizerKinds, LambReadsThreeNormsAroundOneUpdate) {
  OptimizerSession session;
  const auto lamb = optimizer_of(OptimizerKind::lamb, OptimizerImplementation::fused);
  lamb->step(session.eager, session.parameters, {});
  EXPECT_EQ(lists_of(session.trace, MultiTensorFunction::norm), 3);
  EXPECT_EQ(lists_of(session.trace, MultiTensorFunction::fused_adam), 1);
  EXPECT_EQ(lists_of(session.trace, MultiTensorFunction::add), 1);
  EXPECT_ANY_THROW((void)optimizer_of(OptimizerKind::lamb, OptimizerImplementation::foreach));
}

// schedulefree: the fast iterate begins as a copy of the weights, whose first step makes it.
TEST(OptimizerKinds, ScheduleFreeCopiesTheWeightsOnce) {
  OptimizerSession session;
  const auto free = optimizer_of(OptimizerKind::schedule_free_adamw, OptimizerImplementation::foreach);
  free->step(session.eager, session.parameters, {});
  EXPECT_EQ(ops_of<Copy>(session.trace), 2);
  const auto lists = ops_of<MultiTensor>(session.trace);
  free->step(session.eager, session.parameters, {});
  EXPECT_EQ(ops_of<Copy>(session.trace), 2);
  EXPECT_EQ(ops_of<MultiTensor>(session.trace), 2 * lists);
  EXPECT_EQ(session.parameters[0].states.size(), 2u);
}

TEST(OptimizerKinds, AScalerHandsItsFlagToKernelsOfTorchAlone) {
  const auto takes = [](OptimizerKind kind) {
    return OptimizerDescription{.kind = kind, .implementation = OptimizerImplementation::fused}.takes_scale();
  };
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd})
    EXPECT_TRUE(takes(kind));
  for (const OptimizerKind kind :
       {OptimizerKind::lion, OptimizerKind::lion_8bit, OptimizerKind::lamb, OptimizerKind::muon})
    EXPECT_FALSE(takes(kind));
  EXPECT_FALSE((OptimizerDescription{.implementation = OptimizerImplementation::foreach}.takes_scale()));
}

}  // namespace
}  // namespace ridgeline
