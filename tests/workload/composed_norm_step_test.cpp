// Each kind of norm of a composition, in a block that has one.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedNormStepListing1[] = R"(
[forward embeddings]
- embedding
+ embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360)
[forward layers.0]
- layer_norm_module
+ pointwise x6 +720 cast 15x12 bf16->fp32 (360 > 720) +720t pow 15x12 fp32 (720 > 720) +60t
    mean 15x12 fp32 (720 > 60) -720 +60t add 15x1 fp32 (60 > 60) +60 sqrt 15x1 fp32 (60 > 60) -60 +720t
    mul 15x12 fp32,fp32->fp32 broadcast (720 60 > 720) +360 cast 15x12 fp32->bf16 (720 > 360) +360
    mul 15x12 bf16,bf16->bf16 rows (24 360 > 360) -720 -60
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360 -360 -40
[backward]
- backward_first x32
+ backward_first x39
[backward layers.0]
- layer_norm_backward; fan_in_add; accumulate_grad
+ pointwise_backward +360t mul 15x12 bf16,bf16->bf16 rows (360 24 > 360) +360t
    mul 15x12 bf16,bf16->bf16 (360 360 > 360) +24g sum 15x12 bf16 rows (360 > 24) -360 -360 -360
+ cast_backward +720t cast 15x12 bf16->fp32 (360 > 720) -360
+ pointwise_backward +720t mul 15x12 fp32,fp32->fp32 (720 720 > 720) +720t
    mul 15x12 fp32,fp32->fp32 broadcast (720 60 > 720) +60t sum 15x12 fp32 cols (720 > 60) -720 -720
+ pointwise_backward +60t pow 15x1 fp32 (60 > 60) +60t scale 15x1 fp32 (60 > 60) +60t
    mul 15x1 fp32,fp32->fp32 (60 60 > 60) -60 -60 -60 -60
+ add_backward
+ pointwise_backward +720t div 15x12 fp32 strided (60 > 720) -60
+ pointwise_backward +720t copy 1x180 fp32 (720 > 720) +720t scale 15x12 fp32 (720 > 720) +720t
    mul 15x12 fp32,fp32->fp32 (720 720 > 720) -720 -720 -720 -720
+ fan_in_add add_ 15x12 fp32,fp32->fp32 (720 720 > 720) -720
+ cast_backward +360t cast 15x12 fp32->bf16 (720 > 360) -720
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward embeddings]
- per_parameter_zero_grad x15
+ per_parameter_zero_grad x14 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -480 -40 -480 -24
)";

constexpr char kComposedNormStepListing2[] = R"(
[forward layers.0]
- pointwise x6
+ pointwise x8 +720 cast 15x12 bf16->fp32 (360 > 720) +720t pow 15x12 fp32 (720 > 720) +60t
    mean 15x12 fp32 (720 > 60) -720 +60t add 15x1 fp32 (60 > 60) -60 +60 sqrt 15x1 fp32 (60 > 60) -60 +720
    mul 15x12 fp32,fp32->fp32 broadcast (720 60 > 720) +48t cast 1x12 bf16->fp32 (24 > 48) +48
    add 1x12 fp32 (48 > 48) -48 +720t mul 15x12 fp32,fp32->fp32 rows (720 48 > 720) +360
    cast 15x12 fp32->bf16 (720 > 360) -720
[backward]
- backward_first x39
+ backward_first x40
[backward layers.0]
- pointwise_backward; accumulate_grad
+ pointwise_backward +720t mul 15x12 fp32,fp32->fp32 (720 720 > 720) +720t
    mul 15x12 fp32,fp32->fp32 rows (720 48 > 720) +48t sum 15x12 fp32 rows (720 > 48) -720 -720 -48 -720
+ add_backward
+ cast_backward +24g cast 1x12 fp32->bf16 (48 > 24) -48
+ accumulate_grad
)";

constexpr char kComposedNormStepListing3[] = R"(
[forward layers.0]
- pointwise x6
+ pointwise x8 +720 cast 15x12 bf16->fp32 (360 > 720) +720t pow 15x12 fp32 (720 > 720) +60t
    mean 15x12 fp32 (720 > 60) -720 +60t add 15x1 fp32 (60 > 60) -60 +60 sqrt 15x1 fp32 (60 > 60) -60 +720
    mul 15x12 fp32,fp32->fp32 broadcast (720 60 > 720) +720t mul 15x12 fp32,bf16->fp32 rows (720 24 > 720) +360
    cast 15x12 fp32->bf16 (720 > 360) -720
[backward layers.0]
- pointwise_backward; accumulate_grad
+ pointwise_backward +720t mul 15x12 fp32,fp32->fp32 (720 720 > 720) +720t
    mul 15x12 fp32,bf16->fp32 rows (720 24 > 720) +48t sum 15x12 fp32 rows (720 > 48) -720
+ cast_backward +24g cast 1x12 fp32->bf16 (48 > 24) -48 -720 -720
+ accumulate_grad
)";

constexpr char kComposedNormStepListing4[] = R"(
[forward embeddings]
- embedding
+ embedding +360 embedding 15 of 17x12 bf16 (408 120 > 360)
[forward layers.0]
- pointwise x6
+ pointwise x6 +720 cast 15x12 bf16->fp32 (360 > 720) +720t pow 15x12 fp32 (720 > 720) +60t
    mean 15x12 fp32 (720 > 60) -720 +60t add 15x1 fp32 (60 > 60) -60 +60 sqrt 15x1 fp32 (60 > 60) -60 +720t
    mul 15x12 bf16,fp32->fp32 broadcast (360 60 > 720) +360 cast 15x12 fp32->bf16 (720 > 360) -720 +360
    mul 15x12 bf16,bf16->bf16 rows (24 360 > 360)
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360 -40
[backward layers.0]
- pointwise_backward
+ pointwise_backward +720t mul 15x12 fp32,bf16->fp32 (720 360 > 720) +720t
    mul 15x12 fp32,fp32->fp32 broadcast (720 60 > 720)
+ cast_backward +360t cast 15x12 fp32->bf16 (720 > 360) -720 +60t sum 15x12 fp32 cols (720 > 60) -720 -720 -360
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
- fan_in_add; fan_in_add
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
)";

/// What a norm does otherwise than LlamaRMSNorm.
std::string beside_rms(const std::string& norm) {
  return OddStep(odd_composition("norm: rms, residual: parallel, final_norm: false")).changed([&](OddStep& step) {
    step.model = odd_composition("norm: " + norm + ", residual: parallel, final_norm: false");
  });
}

// LlamaRMSNorm, GemmaRMSNorm, Olmo2RMSNorm and T5LayerNorm of Transformers (modeling files) differ in where they cast.
// pow keeps its input (15 rows of 12 in fp32: 720 bytes), rsqrt its result (15 · 4 = 60), each product of two both;
// mean and the sum with epsilon keep nothing. Gemma's weight becomes fp32 (12 · 4 = 48) before one is added, T5's norm
// multiplies the bf16 input itself, so that the rows of embeddings (360) stay. Backward, of derivatives.yaml: rsqrt is
// -0.5 · grad · result³ (three kernels), pow of two grad · (2 · x¹) (three), mean a division of the expanded gradient.
TEST(ComposedNormStep, RootMeanSquaresAreOfOperations) {
  EXPECT_EQ(changes_by_keys("norm: rms", "residual: parallel, final_norm: false"), kComposedNormStepListing1);
  EXPECT_EQ(beside_rms("rms-plus-one"), kComposedNormStepListing2);
  EXPECT_EQ(beside_rms("rms-cast-last"), kComposedNormStepListing3);
  EXPECT_EQ(beside_rms("rms-t5"), kComposedNormStepListing4);
}

// NemotronLayerNorm1P (modeling_nemotron.py) gives F.layer_norm its weight plus one: a tensor of 12 · 2 bytes that the
// norm's backward pass keeps. The sum's own backward pass hands the gradient on.
TEST(ComposedNormStep, AWeightMayBeADistanceFromOne) {
  EXPECT_EQ(changes_by_keys("norm: layer-plus-one", "residual: parallel, final_norm: false"), R"(
[forward layers.0]
- layer_norm_module
+ layer_norm_module
+ pointwise x4 +24 add 1x12 bf16 (24 > 24) +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward]
- backward_first x32
+ backward_first x33
[backward layers.0]
- layer_norm_backward
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -24 -60 -60
+ add_backward
)");
}

// Without a bias native_layer_norm_backward makes the gradients of its input and its weight only; a parameter is
// missing.
TEST(ComposedNormStep, BiasesMayBeLeftOut) {
  EXPECT_EQ(changes_by_keys("norm_bias: false", "residual: parallel, final_norm: false"), R"(
[forward layers.0]
- layer_norm_module
+ layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[backward layers.0]
- layer_norm_backward
+ layer_norm_backward +360t +24g native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -360 -60 -60
- accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x15
+ per_parameter_zero_grad x14 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -480 -40 -480 -24
)");
}

constexpr char kComposedNormStepListing5[] = R"(
[forward layers.0]
- layer_norm_module
+ pointwise x6 +720t pow 15x12 fp32 (720 > 720) +60t mean 15x12 fp32 (720 > 60) -720 +60t add 15x1 fp32 (60 > 60) -60
    +60 sqrt 15x1 fp32 (60 > 60) -60 +720 mul 15x12 fp32,fp32->fp32 broadcast (720 60 > 720) +720t
    mul 15x12 fp32,fp32->fp32 rows (48 720 > 720)
[forward layers.0.feed_forward]
- pointwise; linear_autocast
+ pointwise +600t gelu 15x20 bf16 (600 > 600) +1200t cast 15x20 bf16->fp32 (600 > 1200) -600
+ linear_autocast +24t cast 1x12 fp32->bf16 (48 > 24) +480 cast 12x20 fp32->bf16 (960 > 480) +600
    cast 15x20 fp32->bf16 (1200 > 600) +360t addmm 15x12x20 nt bf16 (600 480 24 > 360) -1200
[backward layers.0.feed_forward]
+ cast_backward +1200t cast 15x20 bf16->fp32 (600 > 1200) -600
+ cast_backward +600t cast 15x20 fp32->bf16 (1200 > 600) -1200
[backward layers.0]
- layer_norm_backward; fan_in_add; accumulate_grad
+ pointwise_backward +720t mul 15x12 fp32,fp32->fp32 rows (720 48 > 720) +720t
    mul 15x12 fp32,fp32->fp32 (720 720 > 720) +48g sum 15x12 fp32 rows (720 > 48) -720 -720 -720
+ pointwise_backward +720t mul 15x12 fp32,fp32->fp32 (720 720 > 720) +720t
    mul 15x12 fp32,fp32->fp32 broadcast (720 60 > 720) +60t sum 15x12 fp32 cols (720 > 60) -720 -720
+ fan_in_add +720t add 15x12 fp32,fp32->fp32 (720 720 > 720) -720 -720
+ pointwise_backward +60t pow 15x1 fp32 (60 > 60) +60t scale 15x1 fp32 (60 > 60) +60t
    mul 15x1 fp32,fp32->fp32 (60 60 > 60) -60 -60 -60 -60
+ add_backward
+ pointwise_backward +720t div 15x12 fp32 strided (60 > 720) -60
+ pointwise_backward +720t copy 1x180 fp32 (720 > 720) +720t scale 15x12 fp32 (720 > 720) +720t
    mul 15x12 fp32,fp32->fp32 (720 720 > 720) -720 -720 -720 -720
+ fan_in_add add_ 15x12 fp32,fp32->fp32 (720 720 > 720) -720
[backward embeddings]
- per_parameter_zero_grad x15
+ per_parameter_zero_grad x14 -816 -576 -48 -576 -48 -576 -48 -576 -48 -48 -960 -80 -960 -48
)";

constexpr char kComposedNormStepListing6[] = R"(
[forward embeddings]
- embedding
+ embedding +720t embedding 15 of 17x12 fp32 (816 120 > 720)
[forward layers.0]
- layer_norm_module
[forward layers.0.attention]
- linear_autocast
+ layer_norm_module
[forward layers.0]
+ pointwise x4 +48t add 1x12 fp32 (48 > 48) +360 cast 15x12 fp32->bf16 (720 > 360) +24 cast 1x12 fp32->bf16 (48 > 24)
    +24 cast 1x12 fp32->bf16 (48 > 24) +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -48
[forward layers.0.attention]
+ linear_autocast +24t cast 1x12 fp32->bf16 (48 > 24) +288 cast 12x12 fp32->bf16 (576 > 288) +360
    addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear_autocast
+ linear_autocast +24t cast 1x12 fp32->bf16 (48 > 24) +288 cast 12x12 fp32->bf16 (576 > 288) +360
    addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear_autocast
+ linear_autocast +24t cast 1x12 fp32->bf16 (48 > 24) +288 cast 12x12 fp32->bf16 (576 > 288) +360
    addmm 15x12x12 nt bf16 (360 288 24 > 360)
[forward layers.0.feed_forward]
- linear_autocast
+ linear_autocast +40t cast 1x20 fp32->bf16 (80 > 40) +480 cast 20x12 fp32->bf16 (960 > 480) +600
    addmm 15x20x12 nt bf16 (360 480 40 > 600)
[forward layers.0]
- pointwise
+ pointwise +720t add 15x12 bf16,fp32->fp32 (360 720 > 720) -360 -360 -720 -40
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480t mm 20x12x15 tn bf16 (600 360 > 480) +40t
    sum 15x20 bf16 rows (600 > 40) -600 -480
- cast_backward
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360 -288
- cast_backward; fan_in_add
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360 -288
- cast_backward; fan_in_add
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
- cast_backward; fan_in_add
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward layers.0]
- layer_norm_backward; fan_in_add
+ layer_norm_backward +360t +24t +24t native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -24
    -360 -24 -60 -60
+ cast_backward +48g cast 1x12 bf16->fp32 (24 > 48) -24
+ cast_backward +48g cast 1x12 bf16->fp32 (24 > 48) -24
+ cast_backward +720t cast 15x12 bf16->fp32 (360 > 720) -360
+ fan_in_add +720t add 15x12 fp32,fp32->fp32 (720 720 > 720) -720 -720
+ add_backward
)";

// Under autocast parameters are fp32. T5LayerNorm then stays in fp32, and T5DenseActDense casts what its activation
// gave to the type of its last weight, which autocast takes back (15 · 20 · 4 = 1200 bytes between): modeling_t5.py.
// NemotronLayerNorm1P casts input, weight and bias itself (360, 24, 24 bytes) and calls the norm outside of autocast.
TEST(ComposedNormStep, SomeStayInTheModelsType) {
  EXPECT_EQ(changes_by_keys("norm: rms-t5", "residual: parallel, final_norm: false",
                            [](OddStep& step) { step.training.precision = Precision::amp_bf16; }),
            kComposedNormStepListing5);
  EXPECT_EQ(changes_by_keys("norm: layer-plus-one", "residual: parallel, final_norm: false",
                            [](OddStep& step) { step.training.precision = Precision::amp_bf16; }),
            kComposedNormStepListing6);
}

}  // namespace
}  // namespace ridgeline
