// What scripts do with gradients around an optimizer: clipping, scaling of the loss, copies in fp32 to update.
#include <gtest/gtest.h>

#include "sim/workload/optimizers/gradient_clipping.h"
#include "sim/workload/optimizers/gradient_scaler.h"
#include "sim/workload/optimizers/master_weights.h"
#include "tests/support/optimizer_session.h"

namespace ridgeline {
namespace {

using testing_support::OptimizerSession;

std::string clipped_text(OptimizerSession& session, GradientClipper clipper, ClippingStyle style) {
  return "\n" + session.listed([&] { optimizers::clip_gradients(session.eager, session.parameters, clipper, style); });
}

// torch/nn/utils/clip_grad.py: _foreach_norm, stack, vector_norm, max_norm / (norm + 1e-6), clamp, _foreach_mul_. The
// kernel of the norms has a place for each 65536 elements of the largest tensor, for each tensor.
TEST(GradientHandling, ClippingByListsTakesTheNormOfNorms) {
  OptimizerSession session;
  EXPECT_EQ(clipped_text(session, GradientClipper::torch, {.by_lists = true, .waits = false}), R"(
host clip_fixed
host per_parameter_clip 2
new 1: 8 temporaries
new 2: 4 temporaries
new 3: 4 temporaries
foreach_norm 2 tensors, 22 elements fp32: dw 60, db 28
free 1
new 4: 8 temporaries
cat 1x1 fp32 of 2: 2 4, 3 4 -> 4 8
new 5: 4 temporaries
linalg_vector_norm 1x2 fp32: 4 8 -> 5 4
free 4
free 3
free 2
new 6: 4 temporaries
add 1x1 fp32: 5 4 -> 6 4
new 7: 4 temporaries
reciprocal 1x1 fp32: 6 4 -> 7 4
new 8: 4 temporaries
scale 1x1 fp32: 7 4 -> 8 4
free 7
free 6
new 9: 4 temporaries
clamp 1x1 fp32: 8 4 -> 9 4
foreach_mul 2 tensors, 22 elements fp32: dw 60, db 28
free 8
free 9
free 5
)");
  OptimizerSession again;
  EXPECT_EQ(clipped_text(again, GradientClipper::torch, {.by_lists = true, .waits = true}), R"(
host clip_fixed
host per_parameter_clip 2
new 1: 8 temporaries
new 2: 4 temporaries
new 3: 4 temporaries
foreach_norm 2 tensors, 22 elements fp32: dw 60, db 28
free 1
new 4: 8 temporaries
cat 1x1 fp32 of 2: 2 4, 3 4 -> 4 8
new 5: 4 temporaries
linalg_vector_norm 1x2 fp32: 4 8 -> 5 4
free 4
free 3
free 2
new 6: 4 temporaries
add 1x1 fp32: 5 4 -> 6 4
new 7: 4 temporaries
reciprocal 1x1 fp32: 6 4 -> 7 4
new 8: 4 temporaries
scale 1x1 fp32: 7 4 -> 8 4
free 7
free 6
new 9: 4 temporaries
clamp 1x1 fp32: 8 4 -> 9 4
copy_to_host 1x1 fp32: 9 4
the host waits for the GPU
foreach_mul 2 tensors, 22 elements fp32: dw 60, db 28
free 8
free 9
free 5
)");
}

TEST(GradientHandling, PartialNormsHaveAPlaceForEveryChunkOfTheLargestTensor) {
  for (const auto& [largest, places] :
       {std::pair(65536, 1), std::pair(65537, 2), std::pair(131072, 2), std::pair(131073, 3)}) {
    OptimizerSession session(DType::bf16, {{largest}, {7}});
    const std::string text = clipped_text(session, GradientClipper::torch, {});
    EXPECT_NE(text.find(fmt::format("new 1: {} temporaries\n", 4 * 2 * places)), text.npos) << text;
  }
}

TEST(GradientHandling, ClippingOneByOneCallsEachTensor) {
  OptimizerSession session(DType::bf16);
  EXPECT_EQ(clipped_text(session, GradientClipper::torch, {.by_lists = false, .waits = false}), R"(
host optimizer_op 2
new 1: 2 temporaries
linalg_vector_norm 1x15 bf16: dw 30 -> 1 2
new 2: 2 temporaries
linalg_vector_norm 1x7 bf16: db 14 -> 2 2
host optimizer_op 6
new 3: 4 temporaries
cat 1x1 bf16 of 2: 1 2, 2 2 -> 3 4
new 4: 2 temporaries
linalg_vector_norm 1x2 bf16: 3 4 -> 4 2
free 3
free 2
free 1
new 5: 2 temporaries
add 1x1 bf16: 4 2 -> 5 2
new 6: 2 temporaries
reciprocal 1x1 bf16: 5 2 -> 6 2
new 7: 2 temporaries
scale 1x1 bf16: 6 2 -> 7 2
free 6
free 5
new 8: 2 temporaries
clamp 1x1 bf16: 7 2 -> 8 2
free 7
host optimizer_op 2
mul 3x5 bf16,bf16->bf16 broadcast: dw 30, 8 2 -> dw 30
mul 1x7 bf16,bf16->bf16 broadcast: db 14, 8 2 -> db 14
free 8
free 4
)");
  OptimizerSession asking(DType::fp32, {{3, 5}, {7}, {2, 2}});
  asking.parameters[1].gradient.reset();
  EXPECT_EQ(clipped_text(asking, GradientClipper::torch, {.by_lists = false, .waits = true}), R"(
host optimizer_op 2
new 1: 4 temporaries
linalg_vector_norm 1x15 fp32: dw 60 -> 1 4
new 2: 4 temporaries
linalg_vector_norm 1x4 fp32: dc 16 -> 2 4
host optimizer_op 6
new 3: 8 temporaries
cat 1x1 fp32 of 2: 1 4, 2 4 -> 3 8
new 4: 4 temporaries
linalg_vector_norm 1x2 fp32: 3 8 -> 4 4
free 3
free 2
free 1
new 5: 4 temporaries
add 1x1 fp32: 4 4 -> 5 4
new 6: 4 temporaries
reciprocal 1x1 fp32: 5 4 -> 6 4
new 7: 4 temporaries
scale 1x1 fp32: 6 4 -> 7 4
free 6
free 5
new 8: 4 temporaries
eq 1x1 fp32: 7 4 -> 8 4
copy_to_host 1x1 fp32: 8 4
the host waits for the GPU
free 8
host optimizer_op 2
mul 3x5 fp32,fp32->fp32 broadcast: dw 60, 7 4 -> dw 60
mul 2x2 fp32,fp32->fp32 broadcast: dc 16, 7 4 -> dc 16
free 7
free 4
)");
}

// torch.cat takes at most 128 inputs a kernel.
TEST(GradientHandling, NormsOfManyTensorsAreStackedByHundredTwentyEight) {
  for (const int count : {128, 129, 257}) {
    OptimizerSession session(DType::fp32, {});
    for (int i = 0; i < count; ++i) {
      eager::Parameter& parameter = session.parameters.emplace_back();
      parameter.value = session.eager.empty({3}, DType::fp32);
      parameter.gradient = session.eager.empty({3}, DType::fp32);
    }
    const std::size_t before = session.trace.calls.size();
    clipped_text(session, GradientClipper::torch, {});
    std::vector<std::int64_t> parts;
    std::vector<int> inputs;
    for (std::size_t i = before; i < session.trace.calls.size(); ++i)
      if (const auto* copy = std::get_if<Copy>(&session.trace.ops[session.trace.calls[i].op])) {
        EXPECT_EQ(copy->kind, CopyKind::concatenate);
        parts.push_back(copy->parts);
        inputs.push_back(session.trace.calls[i].inputs);
      }
    const std::vector<std::int64_t> expected = count == 128   ? std::vector<std::int64_t>{128}
                                               : count == 129 ? std::vector<std::int64_t>{128, 1}
                                                              : std::vector<std::int64_t>{128, 128, 1};
    EXPECT_EQ(parts, expected);
    EXPECT_EQ(inputs, std::vector<int>(expected.begin(), expected.end()));
  }
}

// apex: multi_tensor_l2norm with 320 partial norms, item(), multi_tensor_scale.
TEST(GradientHandling, ApexReadsTheNormOnTheHost) {
  OptimizerSession session;
  EXPECT_EQ(clipped_text(session, GradientClipper::apex, {.by_lists = false, .waits = true}), R"(
host optimizer_op 4
host per_parameter_clip 2
new 1: 1280 temporaries
fill 1x320 fp32: -> 1 1280
new 2: 4 temporaries
foreach_norm 2 tensors, 22 elements fp32: dw 60, db 28
copy_to_host 1x1 fp32: 2 4
the host waits for the GPU
foreach_mul 2 tensors, 22 elements fp32: dw 60, db 28
free 2
free 1
)");
}

// torch/amp/grad_scaler.py: scale times loss; 1 / scale in fp64; a flag and the factor copied to each device; one
// kernel over all gradients.
TEST(GradientHandling, ScalerMultipliesLossDividesGradientsAndAsksTheGpu) {
  OptimizerSession session;
  optimizers::GradientScaler scaler;
  const eager::Tensor loss = session.eager.empty({}, DType::fp32);
  session.listing.call(loss.storage.id(), "loss");
  EXPECT_FALSE(scaler.unscaled());
  eager::Tensor scaled, flag;
  EXPECT_EQ("\n" + session.listed([&] { scaled = scaler.scale(session.eager, loss); }), R"(
new 1: 4 optimizer_state
fill 1x1 fp32: -> 1 4
new 2: 4 optimizer_state
fill 1x1 int32: -> 2 4
host pointwise
new 3: 4 temporaries
mul 1x1 fp32,fp32->fp32: loss 4, 1 4 -> 3 4
)");
  EXPECT_EQ("\n" + session.listed([&] { scaled = scaler.scale(session.eager, loss); }), R"(
host pointwise
new 4: 4 temporaries
mul 1x1 fp32,fp32->fp32: loss 4, 1 4 -> 4 4
free 3
)");
  EXPECT_FALSE(scaler.unscaled());
  EXPECT_EQ("\n" + session.listed([&] { scaler.unscale(session.eager, session.parameters); }), R"(
host unscale_fixed
host per_parameter_unscale 2
new 5: 8 temporaries
cast 1x1 fp32->fp64: 1 4 -> 5 8
new 6: 8 temporaries
reciprocal 1x1 fp64: 5 8 -> 6 8
free 5
new 7: 4 temporaries
cast 1x1 fp64->fp32: 6 8 -> 7 4
free 6
new 8: 4 temporaries
fill 1x1 fp32: -> 8 4
new 9: 4 temporaries
copy 1x1 fp32: 8 4 -> 9 4
new 10: 4 temporaries
copy 1x1 fp32: 7 4 -> 10 4
amp_foreach_unscale 2 tensors, 22 elements fp32: dw 60, db 28
free 10
free 7
free 8
)");
  EXPECT_TRUE(scaler.unscaled());
  EXPECT_EQ("\n" + session.listed([&] { scaler.check(session.eager); }), R"(
copy_to_host 1x1 fp32: 9 4
the host waits for the GPU
)");
  EXPECT_EQ("\n" + session.listed([&] { flag = scaler.overflow_flag(session.eager); }), R"(
new 11: 4 temporaries
add 1x1 fp32: 9 4 -> 11 4
)");
  EXPECT_EQ("\n" + session.listed([&] { scaler.update(session.eager); }), R"(
pointwise 1x1 fp32,fp32->fp32: 1 4, 9 4 -> 1 4
free 9
)");
  EXPECT_FALSE(scaler.unscaled());
}

// apex amp O2: copies of parameters in fp32; one kernel brings gradients over and sets a flag, which the host reads.
TEST(GradientHandling, MasterWeightsTakeGradientsAndGiveValuesBack) {
  OptimizerSession session(DType::fp16);
  std::optional<optimizers::MasterWeights> masters;
  session.trace.storages[session.parameters[0].value.storage.id()].layer = 4;
  session.trace.storages[session.parameters[0].value.storage.id()].module = 9;
  EXPECT_EQ("\n" + session.listed([&] { masters.emplace(session.eager, session.parameters); }), R"(
new 1: 60 optimizer_state
new 2: 28 optimizer_state
new 3: 4 optimizer_state
fill 1x1 int32: -> 3 4
)");
  const Storage& copy = session.trace.storages[masters->copies[0].value.storage.id()];
  EXPECT_EQ(copy.layer, 4);
  EXPECT_EQ(copy.module, 9);
  session.listing.call(masters->copies[0].value.storage.id(), "W");
  session.listing.call(masters->copies[1].value.storage.id(), "B");
  session.eager.recorder.phase = Phase::clipping;
  EXPECT_EQ("\n" + session.listed([&] { masters->take_gradients(session.eager, session.parameters); }), R"(
host unscale_fixed
host per_parameter_unscale 2
new 4: 60 gradients
new 5: 28 gradients
foreach_copy 2 tensors, 22 elements fp32: dw 30, db 14, 4 60, 5 28
copy_to_host 1x1 int32: 3 4
the host waits for the GPU
)");
  EXPECT_EQ(session.eager.recorder.phase, Phase::optimizer);
  EXPECT_EQ(session.trace.storages[masters->copies[1].gradient.storage.id()].category, Category::gradients);
  EXPECT_EQ("\n" + session.listed([&] { masters->return_values(session.eager, session.parameters); }), R"(
foreach_copy 2 tensors, 22 elements fp32: W 60, B 28, w 30, b 14
free 4
free 5
)");
  session.parameters[1].gradient.reset();
  EXPECT_EQ("\n" + session.listed([&] { masters->take_gradients(session.eager, session.parameters); }), R"(
host unscale_fixed
host per_parameter_unscale 2
new 6: 60 gradients
foreach_copy 2 tensors, 22 elements fp32:
copy_to_host 1x1 int32: 3 4
the host waits for the GPU
)");
}

}  // namespace
}  // namespace ridgeline
