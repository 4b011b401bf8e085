// Text that a small gpt2 generates, operation by operation.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kGenerationStepListing1[] = R"(
python_fixed x1420
[forward]
pointwise +96t pointwise 3x4 int64 (> 96)
pointwise x2 +1t pointwise 1x1 bool (> 1) +1t pointwise 1x1 bool (1 > 1) -1 copy_to_host 1x1 bool from gpu (1) sync
    -1
pointwise x5 +96t pointwise 3x4 int64 (> 96) +96t pointwise 3x4 int64 (96 > 96) -96 +96t
    pointwise 3x4 int64 (96 > 96) -96 +96t pointwise 3x4 int64 (96 > 96) -96 +96t pointwise 3x4 int64 (96 > 96) -96
python_fixed x568
[forward embeddings]
embedding +288t embedding 12 of 17x12 bf16 (408 96 > 288) +96t
embedding +288t embedding 12 of 7x12 bf16 (168 96 > 288) -96
pointwise +288t add 12x12 bf16,bf16->bf16 (288 288 > 288)
dropout_off
[forward layers.0]
layer_norm +288t +48t +48t native_layer_norm 12x12 bf16 (288 24 24 > 288 48 48) -48 -48
[forward layers.0.attention]
linear +864t addmm 12x36x12 nt bf16 (288 864 72 > 864)
split; view; transpose; view; transpose; view; transpose
concatenate x2 +288 copy 24x6 bf16 permuted (288 > 288) +288 copy 24x6 bf16 permuted (288 > 288)
attention_fused +288t +96t +16t +8t flash_attention 3x2x4x6 causal bf16 (288 288 288 > 288 96) -96 -16 -8
transpose; view; view
linear +288t addmm 12x12x12 nt bf16 (288 288 24 > 288)
dropout_off -864 -288 -288
[forward layers.0]
pointwise +288t add 12x12 bf16,bf16->bf16 (288 288 > 288)
layer_norm +288t +48t +48t native_layer_norm 12x12 bf16 (288 24 24 > 288 48 48) -48 -48
[forward layers.0.feed_forward]
linear +480t addmm 12x20x12 nt bf16 (288 480 40 > 480)
pointwise +480t gelu 12x20 bf16 (480 > 480) -480
linear +288t addmm 12x12x20 nt bf16 (480 480 24 > 288) -480
dropout_off
pointwise +288t add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288 -288 -288 -288 -288 -288
[forward final_norm]
layer_norm +288t +48t +48t native_layer_norm 12x12 bf16 (288 24 24 > 288 48 48) -48 -48
[forward head]
linear +102t mm 3x17x12 nt bf16 (72 408 > 102) -288 -288
[forward]
pointwise x2 +24t pointwise 3x1 int64 (> 24) +24t pointwise 3x1 int64 (24 > 24) -24 -96
pointwise +24t pointwise 3x1 int64 (> 24)
concatenate +120t cat 3x3 int64 x2 joined (96 24 > 120) -96 -24
pointwise +204t cast 3x17 bf16->fp32 (102 > 204)
pointwise +24t sum 3x17 fp32 cols (204 > 24)
concatenate +120t cat 3x3 int64 x2 joined (96 24 > 120)
pointwise x6 +3t pointwise 1x3 bool (> 3) +3t pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3 +3t
    pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3
    copy_to_host 1x1 bool from gpu (3) sync -3 -24 -102
python_fixed x568
pointwise +24t pointwise 3x1 int64 (> 24)
[forward embeddings]
embedding +72t embedding 3 of 17x12 bf16 (408 24 > 72) +24t
embedding +72t embedding 3 of 7x12 bf16 (168 24 > 72) -24
pointwise +72t add 3x12 bf16,bf16->bf16 (72 72 > 72)
dropout_off
[forward layers.0]
layer_norm +72t +12t +12t native_layer_norm 3x12 bf16 (72 24 24 > 72 12 12) -12 -12
[forward layers.0.attention]
linear +216t addmm 3x36x12 nt bf16 (72 864 72 > 216)
split; view; transpose; view; transpose; view; transpose
concatenate x2 +360 cat 6x15 bf16 x2 joined (288 72 > 360) +360 cat 6x15 bf16 x2 joined (288 72 > 360) -288 -288
attention_fused +72t +24t +16t +8t flash_attention 3x2x1x6 bf16 keys5 (72 360 360 > 72 24) -24 -16 -8
transpose; view; view
linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72)
dropout_off -216 -72 -72
[forward layers.0]
pointwise +72t add 3x12 bf16,bf16->bf16 (72 72 > 72)
layer_norm +72t +12t +12t native_layer_norm 3x12 bf16 (72 24 24 > 72 12 12) -12 -12
[forward layers.0.feed_forward]
linear +120t addmm 3x20x12 nt bf16 (72 480 40 > 120)
pointwise +120t gelu 3x20 bf16 (120 > 120) -120
linear +72t addmm 3x12x20 nt bf16 (120 480 24 > 72) -120
dropout_off
pointwise +72t add 3x12 bf16,bf16->bf16 (72 72 > 72) -72 -72 -72 -72 -72 -72 -72
[forward final_norm]
layer_norm +72t +12t +12t native_layer_norm 3x12 bf16 (72 24 24 > 72 12 12) -12 -12
[forward head]
linear +102t mm 3x17x12 nt bf16 (72 408 > 102) -72 -72
[forward]
pointwise x2 +24t pointwise 3x1 int64 (> 24) +24t pointwise 3x1 int64 (24 > 24) -24 -24
pointwise +24t pointwise 3x1 int64 (> 24)
concatenate +144t cat 3x3 int64 x2 joined (120 24 > 144) -120 -24
pointwise +204t cast 3x17 bf16->fp32 (102 > 204) -204
pointwise +24t sum 3x17 fp32 cols (204 > 24)
concatenate +144t cat 3x3 int64 x2 joined (120 24 > 144) -120
pointwise x6 +3t pointwise 1x3 bool (> 3) +3t pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3 +3t
    pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3
    copy_to_host 1x1 bool from gpu (3) sync -3 -24 -102 -24 -204 -360 -360 -24 -144 -144
)";

TEST(GenerationStep, APromptIsReadAndATokenFollows) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.micro_batch = 3;
                  step.training.sequence_length = 4;
                  step.training.inference = InferenceDescription{3, 2, 1, KeyValueCache::dynamic};
                })
                .text(),
            kGenerationStepListing1);
}

constexpr char kGenerationStepListing2[] = R"(
[forward embeddings]
- embedding; embedding; pointwise
+ embedding +288t embedding 12 of 17x12 bf16 (408 96 > 288) +32t arange 1x4 int64 (> 32)
+ embedding +96t embedding 4 of 7x12 bf16 (168 32 > 96) -32
+ pointwise +288t add 3x48 bf16,bf16->bf16 rows (288 96 > 288) -288 -96
[forward layers.0.attention]
- concatenate x2
[forward layers.0]
- pointwise
+ pointwise +288t add 12x12 bf16,bf16->bf16 (288 288 > 288) -288
[forward layers.0.feed_forward]
- linear
+ linear +480t addmm 12x20x12 nt bf16 (288 480 40 > 480) -288
- pointwise
+ pointwise +288t add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288 -288
[forward]
- pointwise x2
+ pointwise x2 +120t pointwise 3x5 int64 (> 120) +120t pointwise 3x5 int64 (120 > 120) -120 -96
+ pointwise +120t pointwise 3x5 int64 (> 120) -120
- pointwise
[forward embeddings]
- embedding; embedding; pointwise
[forward]
+ pointwise +120t pointwise 3x5 int64 (> 120)
[forward embeddings]
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
- concatenate x2; attention_fused
+ attention_fused +360t +120t +16t +8t flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120) -120 -16 -8
- linear; dropout_off
[forward layers.0]
- pointwise; layer_norm
[forward layers.0.feed_forward]
- linear; pointwise; linear
[forward layers.0.attention]
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ dropout_off -1080 -360 -360
[forward layers.0]
+ pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
+ layer_norm +360t +60t +60t native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -60 -60
[forward layers.0.feed_forward]
+ linear +600t addmm 15x20x12 nt bf16 (360 480 40 > 600) -360
+ pointwise +600t gelu 15x20 bf16 (600 > 600) -600
+ linear +360t addmm 15x12x20 nt bf16 (600 480 24 > 360) -600
- pointwise
[forward final_norm]
- layer_norm
[forward head]
- linear
[forward]
- pointwise x2
[forward layers.0.feed_forward]
+ pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360 -360
[forward final_norm]
+ layer_norm +360t +60t +60t native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -60 -60
[forward head]
+ linear +102t mm 3x17x12 nt bf16 (72 408 > 102) -360 -360
[forward]
+ pointwise x2 +144t pointwise 3x6 int64 (> 144) +144t pointwise 3x6 int64 (144 > 144) -144 -120
+ pointwise +144t pointwise 3x6 int64 (> 144) -144
- pointwise x6
+ pointwise x6 +3t pointwise 1x3 bool (> 3) +3t pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3 +3t
    pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3
    copy_to_host 1x1 bool from gpu (3) sync -3 -24 -102 -120 -204 -144 -144 -144
)";

TEST(GenerationStep, WithoutACacheAllIsReadAgain) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.micro_batch = 3;
                  step.training.sequence_length = 4;
                  step.training.inference = InferenceDescription{3, 2, 1, KeyValueCache::dynamic};
                })
                .changed([](OddStep& step) { step.training.inference->cache = KeyValueCache::none; }),
            kGenerationStepListing2);
}

TEST(GenerationStep, AFixedCacheHasRoomForAll) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.micro_batch = 3;
                  step.training.sequence_length = 4;
                  step.training.inference = InferenceDescription{3, 2, 1, KeyValueCache::dynamic};
                })
                .changed([](OddStep& step) { step.training.inference->cache = KeyValueCache::fixed; }),
            R"(
[forward layers.0.attention]
- transpose; concatenate x2; attention_fused
+ transpose +360 fill 30x6 bf16 (> 360) +360 fill 30x6 bf16 (> 360)
+ pointwise x6 +32t arange 1x4 int64 (> 32) +32t add 1x4 int64 (32 > 32) -32 copy 24x6 bf16 permuted (288 > 360)
    copy 24x6 bf16 permuted (288 > 360) -32
+ attention_fused +288t +96t +16t +8t flash_attention 3x2x4x6 causal bf16 keys5 (288 360 360 > 288 96) -96 -16 -8
- concatenate x2
+ pointwise x6 +8t arange 1x1 int64 (> 8) +8t add 1x1 int64 (8 > 8) -8 copy 6x6 bf16 permuted (72 > 360)
    copy 6x6 bf16 permuted (72 > 360) -8
)");
}

constexpr char kGenerationStepListing3[] = R"(
python_fixed x1420
[forward]
pointwise +32t pointwise 1x4 int64 (> 32)
pointwise x2 +1t pointwise 1x1 bool (> 1) +1t pointwise 1x1 bool (1 > 1) -1 copy_to_host 1x1 bool from gpu (1) sync
    -1
pointwise x5 +32t pointwise 1x4 int64 (> 32) +32t pointwise 1x4 int64 (32 > 32) -32 +32t
    pointwise 1x4 int64 (32 > 32) -32 +32t pointwise 1x4 int64 (32 > 32) -32 +32t pointwise 1x4 int64 (32 > 32) -32
pointwise +64t pointwise 2x4 int64 (> 64)
pointwise +64t pointwise 2x4 int64 (> 64) -32
pointwise +64t pointwise 2x4 int64 (> 64) -32
pointwise +8t pointwise 1x2 fp32 (> 8)
python_fixed x568
[forward embeddings]
embedding +192t embedding 8 of 17x12 bf16 (408 64 > 192) +64t
embedding +192t embedding 8 of 7x12 bf16 (168 64 > 192) -64
pointwise +192t add 8x12 bf16,bf16->bf16 (192 192 > 192)
dropout_off
[forward layers.0]
layer_norm +192t +32t +32t native_layer_norm 8x12 bf16 (192 24 24 > 192 32 32) -32 -32
[forward layers.0.attention]
linear +576t addmm 8x36x12 nt bf16 (192 864 72 > 576)
split; view; transpose; view; transpose; view; transpose
concatenate x2 +192 copy 16x6 bf16 permuted (192 > 192) +192 copy 16x6 bf16 permuted (192 > 192)
attention_fused +192t +64t +16t +8t flash_attention 2x2x4x6 causal bf16 (192 192 192 > 192 64) -64 -16 -8
transpose; view; view
linear +192t addmm 8x12x12 nt bf16 (192 288 24 > 192)
dropout_off -576 -192 -192
[forward layers.0]
pointwise +192t add 8x12 bf16,bf16->bf16 (192 192 > 192)
layer_norm +192t +32t +32t native_layer_norm 8x12 bf16 (192 24 24 > 192 32 32) -32 -32
[forward layers.0.feed_forward]
linear +320t addmm 8x20x12 nt bf16 (192 480 40 > 320)
pointwise +320t gelu 8x20 bf16 (320 > 320) -320
linear +192t addmm 8x12x20 nt bf16 (320 480 24 > 192) -320
dropout_off
pointwise +192t add 8x12 bf16,bf16->bf16 (192 192 > 192) -192 -192 -192 -192 -192 -192 -192
[forward final_norm]
layer_norm +192t +32t +32t native_layer_norm 8x12 bf16 (192 24 24 > 192 32 32) -32 -32
[forward head]
linear +68t mm 2x17x12 nt bf16 (48 408 > 68) -192 -192
[forward]
pointwise x2 +16t pointwise 2x1 int64 (> 16) +16t pointwise 2x1 int64 (16 > 16) -16 -64
pointwise +16t pointwise 2x1 int64 (> 16)
concatenate +80t cat 2x3 int64 x2 joined (64 16 > 80) -64 -16
pointwise +136t cast 2x17 bf16->fp32 (68 > 136)
pointwise +136t log_softmax 2x17 fp32 (136 > 136)
pointwise +136t add 2x17 fp32,fp32->fp32 broadcast (136 8 > 136) -136
pointwise +16t sum 1x34 fp32 cols (136 > 16)
pointwise x60 +80t pointwise 2x5 int64 (> 80) +80t pointwise 2x5 int64 (80 > 80) -80 +80t
    pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80
    +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80)
    -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t
    pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80
    +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80)
    -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t
    pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80
    +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80)
    -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t
    pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80
    +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80)
    -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t
    pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80
    +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80)
    -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t
    pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80
    +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80)
    -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t
    pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80
    +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80)
    -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80 +80t
    pointwise 2x5 int64 (80 > 80) -80 +80t pointwise 2x5 int64 (80 > 80) -80
pointwise +80t pointwise 2x5 int64 (> 80)
pointwise +8t pointwise 1x2 fp32 (> 8) -8
pointwise x8 +1t pointwise 1x1 bool (> 1) +1t pointwise 1x1 bool (1 > 1) -1 +1t pointwise 1x1 bool (1 > 1) -1 +1t
    pointwise 1x1 bool (1 > 1) -1 +1t pointwise 1x1 bool (1 > 1) -1 +1t pointwise 1x1 bool (1 > 1) -1 +1t
    pointwise 1x1 bool (1 > 1) -1 +1t pointwise 1x1 bool (1 > 1) -1 copy_to_host 1x1 bool from gpu (1) sync -1 -80
    -16 -136 -68
contiguous +192 copy 2x48 bf16 permuted (192 > 192) -192
contiguous +192 copy 2x48 bf16 permuted (192 > 192) -192 -64
python_fixed x568
pointwise +16t pointwise 2x1 int64 (> 16)
[forward embeddings]
embedding +48t embedding 2 of 17x12 bf16 (408 16 > 48) +16t
embedding +48t embedding 2 of 7x12 bf16 (168 16 > 48) -16
pointwise +48t add 2x12 bf16,bf16->bf16 (48 48 > 48)
dropout_off
[forward layers.0]
layer_norm +48t +8t +8t native_layer_norm 2x12 bf16 (48 24 24 > 48 8 8) -8 -8
[forward layers.0.attention]
linear +144t addmm 2x36x12 nt bf16 (48 864 72 > 144)
split; view; transpose; view; transpose; view; transpose
concatenate x2 +240 cat 4x15 bf16 x2 joined (192 48 > 240) +240 cat 4x15 bf16 x2 joined (192 48 > 240) -192 -192
attention_fused +48t +16t +16t +8t flash_attention 2x2x1x6 bf16 keys5 (48 240 240 > 48 16) -16 -16 -8
transpose; view; view
linear +48t addmm 2x12x12 nt bf16 (48 288 24 > 48)
dropout_off -144 -48 -48
[forward layers.0]
pointwise +48t add 2x12 bf16,bf16->bf16 (48 48 > 48)
layer_norm +48t +8t +8t native_layer_norm 2x12 bf16 (48 24 24 > 48 8 8) -8 -8
[forward layers.0.feed_forward]
linear +80t addmm 2x20x12 nt bf16 (48 480 40 > 80)
pointwise +80t gelu 2x20 bf16 (80 > 80) -80
linear +48t addmm 2x12x20 nt bf16 (80 480 24 > 48) -80
dropout_off
pointwise +48t add 2x12 bf16,bf16->bf16 (48 48 > 48) -48 -48 -48 -48 -48 -48 -48
[forward final_norm]
layer_norm +48t +8t +8t native_layer_norm 2x12 bf16 (48 24 24 > 48 8 8) -8 -8
[forward head]
linear +68t mm 2x17x12 nt bf16 (48 408 > 68) -48 -48
[forward]
pointwise x2 +16t pointwise 2x1 int64 (> 16) +16t pointwise 2x1 int64 (16 > 16) -16 -16
pointwise +16t pointwise 2x1 int64 (> 16)
concatenate +96t cat 2x3 int64 x2 joined (80 16 > 96) -80 -16
pointwise +136t cast 2x17 bf16->fp32 (68 > 136) -136
pointwise +136t log_softmax 2x17 fp32 (136 > 136)
pointwise +136t add 2x17 fp32,fp32->fp32 broadcast (136 8 > 136) -136
pointwise +16t sum 1x34 fp32 cols (136 > 16)
pointwise x60 +96t pointwise 2x6 int64 (> 96) +96t pointwise 2x6 int64 (96 > 96) -96 +96t
    pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96
    +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96)
    -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t
    pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96
    +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96)
    -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t
    pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96
    +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96)
    -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t
    pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96
    +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96)
    -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t
    pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96
    +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96)
    -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t
    pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96
    +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96)
    -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t
    pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96
    +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96)
    -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96 +96t
    pointwise 2x6 int64 (96 > 96) -96 +96t pointwise 2x6 int64 (96 > 96) -96
pointwise +96t pointwise 2x6 int64 (> 96) -80
pointwise +8t pointwise 1x2 fp32 (> 8) -8
pointwise x8 +1t pointwise 1x1 bool (> 1) +1t pointwise 1x1 bool (1 > 1) -1 +1t pointwise 1x1 bool (1 > 1) -1 +1t
    pointwise 1x1 bool (1 > 1) -1 +1t pointwise 1x1 bool (1 > 1) -1 +1t pointwise 1x1 bool (1 > 1) -1 +1t
    pointwise 1x1 bool (1 > 1) -1 +1t pointwise 1x1 bool (1 > 1) -1 copy_to_host 1x1 bool from gpu (1) sync -1 -96
    -16 -136 -68
contiguous +240 copy 2x60 bf16 permuted (240 > 240) -240
contiguous +240 copy 2x60 bf16 permuted (240 > 240) -240 -16 -136 -240 -240 -8 -16 -96 -96
)";

TEST(GenerationStep, BeamsAreCopiesOfThePrompt) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.micro_batch = 2;
                  step.training.sequence_length = 4;
                  step.training.inference = InferenceDescription{1, 2, 2, KeyValueCache::dynamic};
                })
                .text(),
            kGenerationStepListing3);
}

}  // namespace
}  // namespace ridgeline
