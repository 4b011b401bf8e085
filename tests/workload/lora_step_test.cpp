// Adapters beside the frozen layers of a small gpt2.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr std::uint8_t kQkv = 1U << static_cast<unsigned>(LinearRole::qkv),
                       kDown = 1U << static_cast<unsigned>(LinearRole::down);

constexpr char kLoraStepListing1[] = R"(
[forward embeddings]
- embedding; embedding; pointwise
+ embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360) +40t arange 1x5 int64 (> 40)
+ embedding +120t embedding 5 of 7x12 bf16 (168 40 > 120) -40
+ pointwise +360t add 3x60 bf16,bf16->bf16 rows (360 120 > 360) -360 -120
[forward layers.0]
- layer_norm
[forward layers.0.attention]
- linear
[forward layers.0]
+ layer_norm +360t +60t +60t native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -60 -60
[forward layers.0.attention]
+ linear +1080t addmm 15x36x12 nt bf16 (360 864 72 > 1080)
[forward layers.0.attention.lora]
+ pointwise +720 cast 15x12 bf16->fp32 (360 > 720)
+ dropout_off
+ linear +180 mm 15x3x12 nt fp32 (720 144 > 180)
+ linear +2160t mm 15x36x3 nt fp32 (180 432 > 2160)
+ pointwise +2160t scale 15x36 fp32 (2160 > 2160) -2160
+ pointwise +2160t add 15x36 bf16,fp32->fp32 (1080 2160 > 2160) -2160
+ pointwise +1080 cast 15x36 fp32->bf16 (2160 > 1080) -2160 -1080
[forward layers.0.attention]
- dropout_off
+ dropout_off -360
[forward layers.0]
- layer_norm
[forward layers.0.feed_forward]
- linear; pointwise
[forward layers.0]
+ layer_norm +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.feed_forward]
+ linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600) -360
+ pointwise +600t gelu 15x20 bf16 (600 > 600)
[forward layers.0.feed_forward.lora]
+ pointwise +1200 cast 15x20 bf16->fp32 (600 > 1200)
[forward layers.0.feed_forward]
- pointwise
[forward final_norm]
- layer_norm
[forward head]
- linear
[forward layers.0.feed_forward.lora]
+ linear +180 mm 15x3x20 nt fp32 (1200 240 > 180)
+ linear +720t mm 15x12x3 nt fp32 (180 144 > 720)
+ pointwise +720t scale 15x12 fp32 (720 > 720) -720
+ pointwise +720t add 15x12 bf16,fp32->fp32 (360 720 > 720) -720
+ pointwise +360t cast 15x12 fp32->bf16 (720 > 360) -720 -360 -600
+ dropout_off
[forward layers.0.feed_forward]
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[forward final_norm]
+ layer_norm +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
+ linear +510t mm 15x17x12 nt bf16 (360 408 > 510) -360
[backward]
- backward_first x20
+ backward_first x32
[backward head]
- mm_backward; view_backward
+ mm_backward +360t mm 15x12x17 nn bf16 (510 408 > 360) -510
[backward final_norm]
- layer_norm_backward; accumulate_grad; accumulate_grad
+ layer_norm_backward +360t +24t +24t native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60 -24 -24
[backward layers.0.feed_forward.lora]
+ cast_backward +720t cast 15x12 bf16->fp32 (360 > 720)
+ add_backward
+ cast_backward +360t cast 15x12 fp32->bf16 (720 > 360)
+ pointwise_backward +720t scale 15x12 fp32 (720 > 720) -720
[backward layers.0.feed_forward]
- addmm_backward; accumulate_grad
[backward layers.0.feed_forward.lora]
+ mm_backward +144g mm 12x3x15 tn fp32 (720 180 > 144) +180t mm 15x3x12 nn fp32 (720 144 > 180) -720 -180
+ view_backward
[backward layers.0.feed_forward]
- pointwise_backward
[backward layers.0.feed_forward.lora]
+ mm_backward +240g mm 3x20x15 tn fp32 (180 1200 > 240) +1200t mm 15x20x3 nn fp32 (180 240 > 1200) -180 -1200
[backward layers.0.feed_forward]
- addmm_backward; accumulate_grad
[backward layers.0.feed_forward.lora]
+ cast_backward +600t cast 15x20 fp32->bf16 (1200 > 600) -1200
[backward layers.0]
- layer_norm_backward; fan_in_add; accumulate_grad; accumulate_grad; add_backward
[backward layers.0.feed_forward]
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) -360
[backward layers.0.attention]
- addmm_backward; accumulate_grad
[backward layers.0.feed_forward]
+ fan_in_add add_ 15x20 bf16,bf16->bf16 (600 600 > 600) -600
+ pointwise_backward +600t gelu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
- accumulate_grad
+ addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) -600
[backward layers.0]
+ layer_norm_backward +360t +24t +24t native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -24 -24
+ add_backward
[backward layers.0.attention]
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) -360
+ view_backward; view_backward
[backward layers.0.attention.lora]
+ cast_backward +2160t cast 15x36 bf16->fp32 (1080 > 2160) -1080
+ add_backward
+ pointwise_backward +2160t scale 15x36 fp32 (2160 > 2160) -2160
[backward layers.0.attention]
- addmm_backward; accumulate_grad
[backward layers.0.attention.lora]
+ mm_backward +432g mm 36x3x15 tn fp32 (2160 180 > 432) +180t mm 15x3x36 nn fp32 (2160 432 > 180) -2160 -180
- accumulate_grad
[backward layers.0]
- layer_norm_backward; fan_in_add; accumulate_grad
[backward embeddings]
- add_backward; embedding_backward; accumulate_grad; embedding_backward; fan_in_add
+ view_backward
[backward layers.0.attention.lora]
+ mm_backward +144g mm 3x12x15 tn fp32 (180 720 > 144) -180 -720
+ view_backward
- per_parameter_zero_grad x16
+ per_parameter_zero_grad x4 -144 -432 -240 -144
)";

TEST(LoraStep, AdaptersStandBesideLayers) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2).changed([](OddStep& step) {
    step.training.lora = LoraDescription{};
    step.training.lora->rank = 3;
    step.training.lora->targets = kQkv | kDown;
  }),
            kLoraStepListing1);
}

constexpr char kLoraStepListing2[] = R"(
[forward layers.0.feed_forward.lora]
- pointwise; dropout_off
+ pointwise +1200t cast 15x20 bf16->fp32 (600 > 1200)
+ dropout +300t +1200 native_dropout 300 fp32 (1200 > 1200 300) -300
- pointwise
+ pointwise +360t cast 15x12 fp32->bf16 (720 > 360) -720 -1200 -360 -600
[backward]
- backward_first x26
+ backward_first x27
)";

constexpr char kLoraStepListing3[] = R"(
[forward embeddings]
- embedding; embedding; pointwise
+ embedding +720t embedding 15 of 17x12 fp32 (816 120 > 720) +40t arange 1x5 int64 (> 40)
+ embedding +240t embedding 5 of 7x12 fp32 (336 40 > 240) -40
+ pointwise +720t add 3x60 fp32,fp32->fp32 rows (720 240 > 720) -720 -240
[forward layers.0]
- layer_norm
[forward layers.0.attention]
- linear
[forward layers.0]
+ layer_norm +720t +60t +60t native_layer_norm 15x12 fp32 (720 48 48 > 720 60 60) -60 -60
[forward layers.0.attention]
+ linear +2160t addmm 15x36x12 nt fp32 (720 1728 144 > 2160)
- attention_fused
+ attention_fused +720t +120t +16t +8t flash_attention 3x2x5x6 causal fp32 (720 720 720 > 720 120) -120 -16 -8
- linear; dropout_off
[forward layers.0]
- pointwise; layer_norm
[forward layers.0.feed_forward]
- linear; pointwise; linear
[forward layers.0.feed_forward.lora]
- pointwise
[forward layers.0.attention]
+ linear +720t addmm 15x12x12 nt fp32 (720 576 48 > 720)
+ dropout_off -2160 -720 -720
[forward layers.0]
+ pointwise +720t add 15x12 fp32,fp32->fp32 (720 720 > 720) -720
+ layer_norm +720t +60t +60t native_layer_norm 15x12 fp32 (720 48 48 > 720 60 60) -60 -60
[forward layers.0.feed_forward]
+ linear +1200t addmm 15x20x12 nt fp32 (720 960 80 > 1200) -720
+ pointwise +1200 gelu 15x20 fp32 (1200 > 1200) -1200
+ linear +720t addmm 15x12x20 nt fp32 (1200 960 48 > 720)
[forward layers.0.feed_forward.lora]
- pointwise; pointwise
+ pointwise +720t add 15x12 fp32,fp32->fp32 (720 720 > 720) -720 -720
[forward layers.0.feed_forward]
- pointwise
[forward final_norm]
- layer_norm
[forward head]
- linear
[forward layers.0.feed_forward]
+ pointwise +720 add 15x12 fp32,fp32->fp32 (720 720 > 720) -720 -720 -720
[forward final_norm]
+ layer_norm +720t +60 +60 native_layer_norm 15x12 fp32 (720 48 48 > 720 60 60)
[forward head]
+ linear +1020t mm 15x17x12 nt fp32 (720 816 > 1020) -720
[forward head.loss]
- cross_entropy
[forward]
- loss_division
[backward]
- backward_call; backward_first x26; pointwise_backward
[backward head.loss]
- nll_backward; log_softmax_backward
[forward head.loss]
+ cross_entropy +1020 log_softmax 15x17 fp32 (1020 > 1020) +4t +4 nll_loss 15x17 fp32 (1020 120 > 4) -1020
[forward]
+ loss_division +4 div 1x1 fp32 (4 > 4) -4
[backward]
+ backward_call +4t fill 1x1 fp32 (> 4)
+ backward_first x24
+ pointwise_backward +4t div 1x1 fp32 (4 > 4)
[backward head.loss]
+ nll_backward +1020t nll_loss_backward 15x17 fp32 (4 120 > 1020) -4 -4
+ log_softmax_backward +1020t log_softmax_backward 15x17 fp32 (1020 1020 > 1020) -1020 -1020
[backward head]
- mm_backward
+ mm_backward +720t mm 15x12x17 nn fp32 (1020 816 > 720) -1020
[backward final_norm]
- layer_norm_backward
+ layer_norm_backward +720t +48t +48t native_layer_norm_backward 15x12 fp32 (720 720 48 60 60 > 720 48 48) -720 -720
    -60 -60 -48 -48
[backward layers.0.feed_forward.lora]
- cast_backward; accumulate_grad
+ accumulate_grad -4 -4
)";

TEST(LoraStep, TheirInputIsDroppedAndCast) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.lora = LoraDescription{};
                  step.training.lora->rank = 3;
                  step.training.lora->targets = kDown;
                })
                .changed([](OddStep& step) { step.training.lora->dropout = 0.1; }),
            kLoraStepListing2);
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.lora = LoraDescription{};
                  step.training.lora->rank = 3;
                  step.training.lora->targets = kDown;
                })
                .changed([](OddStep& step) { step.training.precision = Precision::fp32; }),
            kLoraStepListing3);
}

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
+ linear_autocast
+ pointwise +864t bitsandbytes::dequantize_4bit 1108 bytes 244 read (216 > 864) +1080t
    addmm 15x36x12 nt bf16 (360 864 72 > 1080) -864
- linear
+ linear_autocast
+ pointwise +288t bitsandbytes::dequantize_4bit 372 bytes 84 read (72 > 288) +360t
    addmm 15x12x12 nt bf16 (360 288 24 > 360) -288
[forward layers.0.feed_forward]
- linear
+ linear_autocast
+ pointwise +480t bitsandbytes::dequantize_4bit 616 bytes 136 read (120 > 480) +600t
    addmm 15x20x12 nt bf16 (360 480 40 > 600) -480 -360
- linear
+ linear_autocast
+ pointwise +480t bitsandbytes::dequantize_4bit 616 bytes 136 read (120 > 480) +360t
    addmm 15x12x20 nt bf16 (600 480 24 > 360) -480
[backward]
- backward_first x26
+ backward_first x30
)");
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
+ linear_autocast
+ pointwise x2 +28t bitsandbytes::dequantize_blockwise 39 bytes 11 read (7 > 28) add_ 1x7 fp32 (28 > 28)
+ pointwise +864t bitsandbytes::dequantize_4bit 1108 bytes 244 read (216 > 864) -28 +1080t
    addmm 15x36x12 nt bf16 (360 864 72 > 1080) -864
- linear
+ linear_autocast
+ pointwise x2 +12t bitsandbytes::dequantize_blockwise 19 bytes 7 read (3 > 12) add_ 1x3 fp32 (12 > 12)
+ pointwise +288t bitsandbytes::dequantize_4bit 372 bytes 84 read (72 > 288) -12 +360t
    addmm 15x12x12 nt bf16 (360 288 24 > 360) -288
[forward layers.0.feed_forward]
- linear
+ linear_autocast
+ pointwise x2 +16t bitsandbytes::dequantize_blockwise 24 bytes 8 read (4 > 16) add_ 1x4 fp32 (16 > 16)
+ pointwise +480t bitsandbytes::dequantize_4bit 616 bytes 136 read (120 > 480) -16 +600t
    addmm 15x20x12 nt bf16 (360 480 40 > 600) -480 -360
- linear
+ linear_autocast
+ pointwise x2 +16t bitsandbytes::dequantize_blockwise 24 bytes 8 read (4 > 16) add_ 1x4 fp32 (16 > 16)
+ pointwise +480t bitsandbytes::dequantize_4bit 616 bytes 136 read (120 > 480) -16 +360t
    addmm 15x12x20 nt bf16 (600 480 24 > 360) -480
[backward]
- backward_first x26
+ backward_first x38
)");
}

}  // namespace
}  // namespace ridgeline
