// Megatron-LM's optimizer over a weight of 3 x 5 and a bias of 7: everything it allocates, runs and exchanges.
#include "sim/workload/optimizers/megatron_optimizer.h"

#include <gtest/gtest.h>

#include "tests/support/optimizer_session.h"

namespace ridgeline {
namespace {

using testing_support::OptimizerSession;

TrainingDescription megatron_training() {
  TrainingDescription t;
  t.optimizer = {OptimizerKind::sgd, OptimizerImplementation::fused};
  t.parallel.framework = Framework::megatron;
  return t;
}

class MegatronSession {
 public:
  MegatronSession(DType type, TrainingDescription t, std::vector<std::size_t> repeated = {}, std::int64_t table = 0)
      : session_(type), training_(std::move(t)), optimizer_(optimizers::make_optimizer(training_)) {
    if (training_.parallel.tensor > 1) tensor_.emplace(session_.eager, training_.parallel.tensor);
    std::int16_t layer = 4;
    for (const eager::Parameter& parameter : session_.parameters)
      session_.trace.storages[parameter.value.storage.id()].layer = layer++;
    made = "\n" + session_.listed([&] {
      megatron_.emplace(session_.eager, session_.parameters, training_, tensor_ ? &*tensor_ : nullptr,
                        std::move(repeated), table);
    });
  }
  std::string begun() {
    return "\n" + session_.listed([&] { megatron_->begin_step(); });
  }
  /// Gradients arrive from the last to the first.
  std::string arrived() {
    return "\n" + session_.listed([&] {
      for (std::size_t i = session_.parameters.size(); i-- > 0;) session_.parameters[i].after_accumulate();
    });
  }
  std::string averaged() {
    const eager::Tensor loss = session_.eager.empty({}, DType::fp32);
    session_.listing.call(loss.storage.id(), "loss");
    return "\n" + session_.listed([&] { megatron_->average_loss(loss); });
  }
  std::string stepped() {
    session_.eager.gradients_enabled = true;
    testing_support::WatchedOptimizer watched(*optimizer_);
    const std::string text = "\n" + session_.listed([&] { megatron_->step(watched); });
    EXPECT_TRUE(session_.eager.gradients_enabled);
    EXPECT_EQ(session_.eager.recorder.phase, Phase::optimizer);
    return text;
  }
  std::vector<int> layers(std::size_t state) const {
    std::vector<int> result;
    for (const eager::Parameter& main : megatron_->mains())
      result.push_back(session_.trace.storages[main.states.at(state).storage.id()].layer);
    return result;
  }

  std::string made;

 private:
  OptimizerSession session_;
  TrainingDescription training_;
  std::unique_ptr<optimizers::Optimizer> optimizer_;
  std::optional<parallel::TensorParallel> tensor_;
  std::optional<optimizers::MegatronOptimizer> megatron_;
};

// Gradients in bf16 are added up in fp32; copies in fp32 read them where they are.
TEST(MegatronOptimizer, OnOneGpuAddsUpInFp32WhatCameInBf16) {
  TrainingDescription t = megatron_training();
  t.gradient_clipping = 1.0;
  MegatronSession m(DType::bf16, t);
  EXPECT_EQ(m.made, R"(
new 1: 88 gradients
new 2: 60 optimizer_state
new 3: 28 optimizer_state
)");
  EXPECT_EQ(m.begun(), R"(
host optimizer_op
fill 1x22 fp32: -> 1 88
)");
  EXPECT_EQ(m.arrived(), R"(
host main_gradient_hook
add_ 1x7 fp32,bf16->fp32: 1 28, db 14 -> 1 28
free db
host main_gradient_hook
add_ 3x5 fp32,bf16->fp32: 1 60, dw 30 -> 1 60
free dw
)");
  EXPECT_EQ(m.averaged(), R"(
host pointwise 2
new 4: 4 temporaries
copy 1x1 fp32: loss 4 -> 4 4
new 5: 4 temporaries
div 1x1 fp32: 4 4 -> 5 4
free 5
free 4
)");
  EXPECT_EQ(m.stepped(), R"(
host optimizer_op 6
host per_parameter_clip 2
new 6: 4 temporaries
-- clipping
fill 1x1 fp32: -> 6 4
foreach_norm 2 tensors, 22 elements fp32: 1 60, 1 28
copy_to_host 1x1 fp32: 6 4
the host waits for the GPU
foreach_mul 2 tensors, 22 elements fp32: 1 60, 1 28
free 6
host fused_fixed
host per_parameter_fused 2
-- optimizer
fused_sgd 2 tensors, 22 elements fp32: 2 60, 3 28, 1 60, 1 28, 1 60, 1 28
foreach_copy 2 tensors, 22 elements fp32: 2 60, 3 28, w 30, b 14
)");
}

// fp32 needs neither copies nor a look for overflow; 16 bits without copies are updated themselves.
TEST(MegatronOptimizer, WithoutCopiesUpdatesParametersThemselves) {
  TrainingDescription t = megatron_training();
  MegatronSession wide(DType::fp32, t);
  EXPECT_EQ(wide.made, R"(
new 1: 88 gradients
)");
  EXPECT_EQ(wide.stepped(), R"(
host fused_fixed
host per_parameter_fused 2
fused_sgd 2 tensors, 22 elements fp32: w 60, b 28, 1 60, 1 28, 1 60, 1 28
)");
  t.parallel.fp32_copies = false;
  MegatronSession half(DType::fp16, t);
  EXPECT_EQ(half.made, R"(
new 1: 44 gradients
)");
  EXPECT_EQ(half.stepped(), R"(
host fused_fixed
host per_parameter_fused 2
fused_sgd 2 tensors, 22 elements fp32: w 30, b 14, 1 30, 1 14, 1 30, 1 14
)");
  MegatronSession brain(DType::bf16, t);
  EXPECT_EQ(brain.made, R"(
new 1: 44 gradients
)");
}

// Gradients of what is whole on each tensor rank are added up where the sequence is split; all are averaged over the
// four data ranks; overflow and norm are agreed on between tensor ranks.
TEST(MegatronOptimizer, OverDataAndTensorRanksExchangesOnceAStep) {
  TrainingDescription t = megatron_training();
  t.gradient_clipping = 1.0;
  t.parallel.data = 4;
  t.parallel.tensor = 2;
  t.parallel.sequence_parallel = true;
  MegatronSession m(DType::fp16, t, {1});
  EXPECT_EQ(m.made, R"(
new 1: 48 gradients
new 2: 60 optimizer_state
new 3: 28 optimizer_state
)");
  EXPECT_EQ(m.averaged(), R"(
host pointwise 2
new 4: 4 temporaries
copy 1x1 fp32: loss 4 -> 4 4
host collective
all_reduce 4 bytes fp32, 4 ranks in data: 4 4 -> 4 4
new 5: 4 temporaries
div 1x1 fp32: 4 4 -> 5 4
free 5
free 4
)");
  EXPECT_EQ(m.stepped(), R"(
host optimizer_op 2
new 6: 14 temporaries
copy 1x7 fp16: 1 48 -> 6 14
host collective
all_reduce 14 bytes fp16, 2 ranks in tensor: 6 14 -> 6 14
copy 1x7 fp16: 6 14 -> 1 48
free 6
host optimizer_op
div 1x24 fp16: 1 48 -> 1 48
host collective
all_reduce 48 bytes fp16, 4 ranks in data: 1 48 -> 1 48
host optimizer_op
new 7: 60 gradients
cast 3x5 fp16->fp32: 1 30 -> 7 60
host optimizer_op
new 8: 28 gradients
cast 1x7 fp16->fp32: 1 14 -> 8 28
host unscale_fixed
host per_parameter_unscale 2
new 9: 4 temporaries
fill 1x1 fp32: -> 9 4
amp_foreach_unscale 2 tensors, 22 elements fp32: 7 60, 8 28
host collective
all_reduce 4 bytes fp32, 2 ranks in tensor: 9 4 -> 9 4
copy_to_host 1x1 fp32: 9 4
the host waits for the GPU
free 9
host optimizer_op 6
host per_parameter_clip 2
new 10: 4 temporaries
-- clipping
fill 1x1 fp32: -> 10 4
foreach_norm 2 tensors, 22 elements fp32: 7 60, 8 28
host collective
all_reduce 4 bytes fp32, 2 ranks in tensor: 10 4 -> 10 4
copy_to_host 1x1 fp32: 10 4
the host waits for the GPU
foreach_mul 2 tensors, 22 elements fp32: 7 60, 8 28
free 10
host fused_fixed
host per_parameter_fused 2
-- optimizer
fused_sgd 2 tensors, 22 elements fp32: 2 60, 3 28, 7 60, 8 28, 7 60, 8 28
foreach_copy 2 tensors, 22 elements fp32: 2 60, 3 28, w 30, b 14
free 7
free 8
)");
  t.parallel.sequence_parallel = false;
  const std::string unsplit = MegatronSession(DType::fp16, t, {1}).stepped();
  EXPECT_EQ(unsplit.find("copy 1x7"), unsplit.npos);
}

// The buffer holds parameters from the last to the first: the share of the first rank is the bias and 15 - 4 numbers.
TEST(MegatronOptimizer, DistributedOverRanksUpdatesAShareOfTheBuffer) {
  TrainingDescription t = megatron_training();
  t.optimizer.kind = OptimizerKind::adam;
  t.parallel.data = 2;
  t.parallel.strategy = DataStrategy::zero1;
  MegatronSession m(DType::bf16, t);
  EXPECT_EQ(m.made, R"(
new 1: 88 gradients
new 2: 44 weights
free w
free b
new 3: 16 optimizer_state
new 4: 28 optimizer_state
)");
  EXPECT_EQ(m.stepped(), R"(
host optimizer_op
div 1x22 fp32: 1 88 -> 1 88
host collective
reduce_scatter 88 bytes fp32, 2 ranks in data: 1 88 -> 1 88
new 5: 4 optimizer_state
fill 1x1 fp32: -> 5 4
new 6: 16 optimizer_state
fill 1x4 fp32: -> 6 16
new 7: 16 optimizer_state
fill 1x4 fp32: -> 7 16
new 8: 4 optimizer_state
fill 1x1 fp32: -> 8 4
new 9: 28 optimizer_state
fill 1x7 fp32: -> 9 28
new 10: 28 optimizer_state
fill 1x7 fp32: -> 10 28
host fused_fixed
host per_parameter_fused 2
foreach_add_scalar 2 tensors, 2 elements fp32: 5 4, 8 4
fused_adam 2 tensors, 11 elements fp32: 3 16, 4 28, 1 16, 1 28, 6 16, 9 28, 7 16, 10 28
foreach_copy 2 tensors, 11 elements fp32: 3 16, 4 28, 2 30, 2 14
host collective
all_gather 44 bytes bf16, 2 ranks in data: 2 44 -> 2 44
)");
  EXPECT_EQ(m.layers(1), (std::vector<int>{-1, -1}));  // all parameters lie in one buffer
}

TEST(MegatronOptimizer, StatesBelongToTheLayerOfTheirParameter) {
  TrainingDescription t = megatron_training();
  t.optimizer.kind = OptimizerKind::adamw;
  for (const bool copies : {false, true}) {
    t.parallel.fp32_copies = copies;
    MegatronSession m(DType::fp16, t);
    m.stepped();
    for (const std::size_t state : {0, 1, 2}) EXPECT_EQ(m.layers(state), (std::vector<int>{4, 5}));
  }
}

const char* const kOverStagesAddsUpTheSharedTable = R"(
host collective
all_reduce 12 bytes fp16, 2 ranks in embedding: 1 12 -> 1 12
host optimizer_op
div 1x24 fp16: 1 48 -> 1 48
host collective
reduce_scatter 48 bytes fp16, 4 ranks in data: 1 48 -> 1 48
host optimizer_op
new 4: 24 gradients
cast 1x6 fp16->fp32: 1 12 -> 4 24
host unscale_fixed
host per_parameter_unscale
new 5: 4 temporaries
fill 1x1 fp32: -> 5 4
amp_foreach_unscale 1 tensors, 6 elements fp32: 4 24
host collective
all_reduce 4 bytes fp32, 3 ranks in model: 5 4 -> 5 4
host collective
all_reduce 4 bytes fp32, 4 ranks in data: 5 4 -> 5 4
copy_to_host 1x1 fp32: 5 4
the host waits for the GPU
free 5
host optimizer_op 6
host per_parameter_clip
new 6: 4 temporaries
-- clipping
fill 1x1 fp32: -> 6 4
foreach_norm 1 tensors, 6 elements fp32: 4 24
host collective
all_reduce 4 bytes fp32, 3 ranks in model: 6 4 -> 6 4
host collective
all_reduce 4 bytes fp32, 4 ranks in data: 6 4 -> 6 4
copy_to_host 1x1 fp32: 6 4
the host waits for the GPU
foreach_mul 1 tensors, 6 elements fp32: 4 24
free 6
host fused_fixed
host per_parameter_fused
-- optimizer
fused_sgd 1 tensors, 6 elements fp32: 3 24, 4 24, 4 24
foreach_copy 1 tensors, 6 elements fp32: 3 24, 2 14
free 4
host collective
all_gather 48 bytes fp16, 4 ranks in data: 2 48 -> 2 48
)";

// First and last stage add up the gradients of a table of 6 numbers; the loss scale is agreed on between all stages.
TEST(MegatronOptimizer, OverStagesAddsUpTheSharedTable) {
  TrainingDescription t = megatron_training();
  t.gradient_clipping = 1.0;
  t.parallel.pipeline = 3;
  t.parallel.data = 4;
  MegatronSession whole(DType::fp16, t, {}, 6);
  EXPECT_EQ(whole.made, R"(
new 1: 48 gradients
new 2: 60 optimizer_state
new 3: 28 optimizer_state
)");
  EXPECT_EQ(whole.stepped(), R"(
host optimizer_op
div 1x24 fp16: 1 48 -> 1 48
host collective
all_reduce 48 bytes fp16, 4 ranks in data: 1 48 -> 1 48
host collective
all_reduce 12 bytes fp16, 2 ranks in embedding: 1 12 -> 1 12
host optimizer_op
new 4: 60 gradients
cast 3x5 fp16->fp32: 1 30 -> 4 60
host optimizer_op
new 5: 28 gradients
cast 1x7 fp16->fp32: 1 14 -> 5 28
host unscale_fixed
host per_parameter_unscale 2
new 6: 4 temporaries
fill 1x1 fp32: -> 6 4
amp_foreach_unscale 2 tensors, 22 elements fp32: 4 60, 5 28
host collective
all_reduce 4 bytes fp32, 3 ranks in model: 6 4 -> 6 4
copy_to_host 1x1 fp32: 6 4
the host waits for the GPU
free 6
host optimizer_op 6
host per_parameter_clip 2
new 7: 4 temporaries
-- clipping
fill 1x1 fp32: -> 7 4
foreach_norm 2 tensors, 22 elements fp32: 4 60, 5 28
host collective
all_reduce 4 bytes fp32, 3 ranks in model: 7 4 -> 7 4
copy_to_host 1x1 fp32: 7 4
the host waits for the GPU
foreach_mul 2 tensors, 22 elements fp32: 4 60, 5 28
free 7
host fused_fixed
host per_parameter_fused 2
-- optimizer
fused_sgd 2 tensors, 22 elements fp32: 2 60, 3 28, 4 60, 5 28, 4 60, 5 28
foreach_copy 2 tensors, 22 elements fp32: 2 60, 3 28, w 30, b 14
free 4
free 5
)");
  t.parallel.strategy = DataStrategy::zero1;
  MegatronSession cut(DType::fp16, t, {}, 6);
  EXPECT_EQ(cut.made, R"(
new 1: 48 gradients
new 2: 48 weights
free w
free b
new 3: 24 optimizer_state
)");
  EXPECT_EQ(cut.stepped(), kOverStagesAddsUpTheSharedTable);
  MegatronSession middle(DType::fp16, t);
  EXPECT_EQ(middle.stepped().find("embedding"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline
