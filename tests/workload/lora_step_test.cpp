// Adapters beside the frozen layers of a small gpt2.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

constexpr std::uint8_t kQkv = 1U << static_cast<unsigned>(LinearRole::qkv),
                       kDown = 1U << static_cast<unsigned>(LinearRole::down);

constexpr char kLoraStepListing1[] = R"(
[forward layers.0.attention.lora]
+ pointwise +720 cast 15x12 bf16->fp32 (360 > 720)
+ dropout_off
+ linear +180 mm 15x3x12 nt fp32 (720 144 > 180)
+ linear +2160t mm 15x36x3 nt fp32 (180 432 > 2160)
+ pointwise +2160t scale 15x36 fp32 (2160 > 2160) -2160
+ pointwise +2160t add 15x36 bf16,fp32->fp32 (1080 2160 > 2160) -2160
+ pointwise +1080 cast 15x36 fp32->bf16 (2160 > 1080) -2160 -1080
[forward layers.0.feed_forward.lora]
+ pointwise +1200 cast 15x20 bf16->fp32 (600 > 1200)
[forward layers.0.feed_forward.lora]
+ linear +180 mm 15x3x20 nt fp32 (1200 240 > 180)
+ linear +720t mm 15x12x3 nt fp32 (180 144 > 720)
+ pointwise +720t scale 15x12 fp32 (720 > 720) -720
+ pointwise +720t add 15x12 bf16,fp32->fp32 (360 720 > 720) -720
+ pointwise +360t cast 15x12 fp32->bf16 (720 > 360) -720 -360
+ dropout_off -600
[backward layers.0.feed_forward.lora]
+ cast_backward +720t cast 15x12 bf16->fp32 (360 > 720)
+ add_backward
+ cast_backward +360t cast 15x12 fp32->bf16 (720 > 360)
+ pointwise_backward +720t scale 15x12 fp32 (720 > 720) -720
[backward layers.0.feed_forward.lora]
+ mm_backward +144g mm 12x3x15 tn fp32 (720 180 > 144) +180t mm 15x3x12 nn fp32 (720 144 > 180) -720 -180
+ view_backward
[backward layers.0.feed_forward.lora]
+ mm_backward +240g mm 3x20x15 tn fp32 (180 1200 > 240) +1200t mm 15x20x3 nn fp32 (180 240 > 1200) -180 -1200
[backward layers.0.feed_forward.lora]
+ cast_backward +600t cast 15x20 fp32->bf16 (1200 > 600) -1200
[backward layers.0.attention.lora]
+ cast_backward +2160t cast 15x36 bf16->fp32 (1080 > 2160) -1080
+ add_backward
+ pointwise_backward +2160t scale 15x36 fp32 (2160 > 2160) -2160
[backward layers.0.attention.lora]
+ mm_backward +432g mm 36x3x15 tn fp32 (2160 180 > 432) +180t mm 15x3x36 nn fp32 (2160 432 > 180) -2160 -180
- accumulate_grad
[backward layers.0.attention.lora]
+ mm_backward +144g mm 3x12x15 tn fp32 (180 720 > 144) -180 -720
+ view_backward
- per_parameter_zero_grad x16
+ per_parameter_zero_grad x4 -144 -432 -240 -144
)";

// Linear of PEFT (src/peft/tuners/lora/layer.py): adapters stay in fp32, so that the input is cast (15 · 12 · 4 = 720
// bytes, kept by the first product), the result of rank 3 (180) is kept by the second, scaled, added to the frozen
// layer's in fp32 (2160) and cast back. The frozen layer keeps no input. Backward of the first layer's adapter the
// gradient of its input is not needed: one product only.
TEST(LoraStep, AdaptersStandBesideLayers) {
  EXPECT_EQ(under(OddStep(ModelFamily::gpt2).changed([](OddStep& step) {
              step.training.lora = LoraDescription{};
              step.training.lora->rank = 3;
              step.training.lora->targets = kQkv | kDown;
            }),
                  {"forward layers.0.attention.lora", "forward layers.0.feed_forward.lora",
                   "backward layers.0.attention.lora", "backward layers.0.feed_forward.lora"}),
            kLoraStepListing1);
}

constexpr char kLoraStepListing2[] = R"(
[forward layers.0.feed_forward.lora]
- pointwise; dropout_off
+ pointwise +1200t cast 15x20 bf16->fp32 (600 > 1200)
+ dropout +300t +1200 native_dropout 300 fp32 (1200 > 1200 300) -300
- pointwise
+ pointwise +360t cast 15x12 fp32->bf16 (720 > 360) -720 -1200 -360
[backward]
- backward_first x26
+ backward_first x27
)";

// Behind frozen layers the input needs no gradient: dropout's mask goes at once, its result (1200 bytes) is kept.
TEST(LoraStep, TheirInputIsDroppedAndCast) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.lora = LoraDescription{};
                  step.training.lora->rank = 3;
                  step.training.lora->targets = kDown;
                })
                .changed([](OddStep& step) { step.training.lora->dropout = 0.1; }),
            kLoraStepListing2);
}

// MatMul4Bit of bitsandbytes (autograd/_functions.py) makes the weight in bf16 for each product and frees it behind: 36
// · 12 weights are 216 bytes with 7 scales of 64 weights in fp32 (28): 244 are read, 864 written. Scales that are
// quantised too are bytes with one scale (7 + 4 read, 28 written), and their mean is added. Linear4bit of PEFT
// (src/peft/tuners/lora/bnb.py) copies the layer's result, and casts what it adds before the sum.
TEST(LoraStep, FrozenWeightsMayHaveFourBits) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.lora = LoraDescription{};
                  step.training.lora->rank = 3;
                  step.training.lora->targets = kDown;
                })
                .changed([](OddStep& step) { step.training.lora->frozen = FrozenWeights::nf4; }),
            R"(
[forward layers.0.attention]
- linear
+ linear_autocast +864t
+ pointwise dequantize_4bit 36x12 uint8->bf16 (216 > 864) +1080t addmm 15x36x12 nt bf16 (360 864 72 > 1080) -864
- linear
+ linear_autocast +288t
+ pointwise dequantize_4bit 12x12 uint8->bf16 (72 > 288) +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -288
[forward layers.0.feed_forward]
- linear
+ linear_autocast +480t
+ pointwise dequantize_4bit 20x12 uint8->bf16 (120 > 480) +600t addmm 15x20x12 nt bf16 (360 480 40 > 600) -480 -360
- linear
+ linear_autocast +480t
+ pointwise dequantize_4bit 12x20 uint8->bf16 (120 > 480) +360t addmm 15x12x20 nt bf16 (600 480 24 > 360) -480
[forward layers.0.feed_forward.lora]
+ contiguous +360t copy 15x12 bf16 (360 > 360) -360
- pointwise; pointwise
+ pointwise +360t cast 15x12 fp32->bf16 (720 > 360) -720
+ pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward]
- backward_first x26
+ backward_first x31
[backward layers.0.feed_forward.lora]
- cast_backward
+ cast_backward +720t cast 15x12 bf16->fp32 (360 > 720) -360
)");
}

TEST(LoraStep, TheirScalesMayHaveEight) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.lora = LoraDescription{};
                  step.training.lora->rank = 3;
                  step.training.lora->targets = kDown;
                })
                .changed([](OddStep& step) { step.training.lora->frozen = FrozenWeights::nf4_double; }),
            R"(
[forward layers.0.attention]
- linear
+ linear_autocast +28t
+ pointwise dequantize_blockwise 1x7 uint8->fp32 (7 > 28)
+ pointwise add_ 1x7 fp32 (28 > 28) +864t
+ pointwise dequantize_4bit 36x12 uint8->bf16 (216 > 864) -28 +1080t addmm 15x36x12 nt bf16 (360 864 72 > 1080) -864
- linear
+ linear_autocast +12t
+ pointwise dequantize_blockwise 1x3 uint8->fp32 (3 > 12)
+ pointwise add_ 1x3 fp32 (12 > 12) +288t
+ pointwise dequantize_4bit 12x12 uint8->bf16 (72 > 288) -12 +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -288
[forward layers.0.feed_forward]
- linear
+ linear_autocast +16t
+ pointwise dequantize_blockwise 1x4 uint8->fp32 (4 > 16)
+ pointwise add_ 1x4 fp32 (16 > 16) +480t
+ pointwise dequantize_4bit 20x12 uint8->bf16 (120 > 480) -16 +600t addmm 15x20x12 nt bf16 (360 480 40 > 600) -480
    -360
- linear
+ linear_autocast +16t
+ pointwise dequantize_blockwise 1x4 uint8->fp32 (4 > 16)
+ pointwise add_ 1x4 fp32 (16 > 16) +480t
+ pointwise dequantize_4bit 12x20 uint8->bf16 (120 > 480) -16 +360t addmm 15x12x20 nt bf16 (600 480 24 > 360) -480
[forward layers.0.feed_forward.lora]
+ contiguous +360t copy 15x12 bf16 (360 > 360) -360
- pointwise; pointwise
+ pointwise +360t cast 15x12 fp32->bf16 (720 > 360) -720
+ pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward]
- backward_first x26
+ backward_first x39
[backward layers.0.feed_forward.lora]
- cast_backward
+ cast_backward +720t cast 15x12 bf16->fp32 (360 > 720) -360
)");
}

// MatMul4Bit of bitsandbytes before 0.43.2 keeps its input, which plain code gives up elsewhere.
TEST(LoraStep, LayersOfFourBitsOnceKeptTheirInput) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.lora = LoraDescription{};
                  step.training.lora->rank = 3;
                  step.training.lora->targets = kQkv;
                  step.training.lora->frozen = FrozenWeights::nf4;
                })
                .changed([](OddStep& step) { step.training.four_bit_keeps_input = true; }),
            R"(
[forward layers.0]
- layer_norm
+ layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.feed_forward]
- pointwise; pointwise
+ pointwise dequantize_4bit 20x12 uint8->bf16 (120 > 480) +600 addmm 15x20x12 nt bf16 (360 480 40 > 600) -480
+ pointwise +600 gelu 15x20 bf16 (600 > 600)
- dropout_off
+ dropout_off
[backward layers.0.feed_forward]
- pointwise
+ pointwise dequantize_4bit 12x20 uint8->bf16 (120 > 480) +600t mm 15x20x12 nn bf16 (360 480 > 600) -480 -600
- pointwise
+ pointwise dequantize_4bit 20x12 uint8->bf16 (120 > 480) +360t mm 15x12x20 nn bf16 (600 480 > 360) -480 -600 -360
)");
}

}  // namespace
}  // namespace ridgeline
