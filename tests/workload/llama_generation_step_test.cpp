// Text that a small llama and a composition generate, operation by operation.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::odd_composition;

constexpr char kLlamaGenerationStepListing1[] = R"(
python_fixed x1420
[forward]
pointwise +96t pointwise 3x4 int64 (> 96)
pointwise x2 +1t pointwise 1x1 bool (> 1) +1t pointwise 1x1 bool (1 > 1) -1 copy_to_host 1x1 bool from gpu (1) sync
    -1
pointwise x5 +96t pointwise 3x4 int64 (> 96) +96t pointwise 3x4 int64 (96 > 96) -96 +96t
    pointwise 3x4 int64 (96 > 96) -96 +96t pointwise 3x4 int64 (96 > 96) -96 +96t pointwise 3x4 int64 (96 > 96) -96
python_fixed x568
[forward embeddings]
embedding +864t embedding 12 of 17x36 bf16 (1224 96 > 864)
[forward positions]
pointwise x4 +12t cast 3x4 bool (> 12) +8t +1t sum 1x12 int64 (12 > 8) eq 1x1 int64->bool (8 > 1)
    copy_to_host 1x1 bool from gpu (1) sync -1 -8 -12
pointwise x8 +36t cast 9x1 bf16->fp32 strided (6 > 36) +48t cast 3x4 int64->fp32 (96 > 48) +144t
    bmm 3x 3x4x1 nn fp32 (36 48 > 144) +288t cat 12x3 fp32 x2 joined (144 144 > 288) +288t rope 12x6 fp32 (288 > 288)
    +288t scale 12x6 fp32 (288 > 288) -288 +288t rope 12x6 fp32 (288 > 288) +288t scale 12x6 fp32 (288 > 288) -288
    +144t cast 12x6 fp32->bf16 (288 > 144) +144t cast 12x6 fp32->bf16 (288 > 144) -36 -48 -144 -288 -288 -288
[forward layers.0]
pointwise x6 +1728t cast 12x36 bf16->fp32 (864 > 1728) +1728t pow 12x36 fp32 (1728 > 1728) +48t
    mean 12x36 fp32 (1728 > 48) -1728 +48t add 12x1 fp32 (48 > 48) +48t sqrt 12x1 fp32 (48 > 48) -48 +1728t
    mul 12x36 fp32,fp32->fp32 broadcast (1728 48 > 1728) -1728 -48 +864t cast 12x36 fp32->bf16 (1728 > 864) +864t
    mul 12x36 bf16,bf16->bf16 rows (72 864 > 864) -864 -1728 -48
[forward layers.0.attention]
linear +864t mm 12x36x36 nt bf16 (864 2592 > 864)
view; transpose
linear +288t mm 12x12x36 nt bf16 (864 864 > 288)
view; transpose
linear +288t mm 12x12x36 nt bf16 (864 864 > 288)
view; transpose; pointwise x4
concatenate +864t mul 72x6 bf16,bf16->bf16 broadcast (864 144 > 864) +432t scale 72x3 bf16 strided (432 > 432) +864t
    cat 72x3 bf16 x2 joined (432 432 > 864) -432 +864t mul 72x6 bf16,bf16->bf16 broadcast (864 144 > 864) -864 +864t
    add 72x6 bf16,bf16->bf16 strided (864 864 > 864) -864 -864
pointwise x4
concatenate +288t mul 24x6 bf16,bf16->bf16 broadcast (288 144 > 288) +144t scale 24x3 bf16 strided (144 > 144) +288t
    cat 24x3 bf16 x2 joined (144 144 > 288) -144 +288t mul 24x6 bf16,bf16->bf16 broadcast (288 144 > 288) -288 +288t
    add 24x6 bf16,bf16->bf16 strided (288 288 > 288) -288 -288 -864 -288
concatenate x2 +288 copy 24x6 bf16 permuted (288 > 288) +288 copy 24x6 bf16 permuted (288 > 288) -288 -288
attention_fused +864t +288t +16t +8t flash_attention 3x6x4x6 causal bf16 kv2 (864 288 288 > 864 288) -288 -16 -8
transpose; view; view
linear +864t mm 12x36x36 nt bf16 (864 2592 > 864) -864 -864 -864
[forward layers.0]
pointwise +864t add 12x36 bf16,bf16->bf16 (864 864 > 864) -864
pointwise x6 +1728t cast 12x36 bf16->fp32 (864 > 1728) +1728t pow 12x36 fp32 (1728 > 1728) +48t
    mean 12x36 fp32 (1728 > 48) -1728 +48t add 12x1 fp32 (48 > 48) +48t sqrt 12x1 fp32 (48 > 48) -48 +1728t
    mul 12x36 fp32,fp32->fp32 broadcast (1728 48 > 1728) -1728 -48 +864t cast 12x36 fp32->bf16 (1728 > 864) +864t
    mul 12x36 bf16,bf16->bf16 rows (72 864 > 864) -864 -1728 -48
[forward layers.0.feed_forward]
linear +480t mm 12x20x36 nt bf16 (864 1440 > 480)
pointwise +480t silu 12x20 bf16 (480 > 480) -480
linear +480t mm 12x20x36 nt bf16 (864 1440 > 480)
pointwise +480t mul 12x20 bf16,bf16->bf16 (480 480 > 480) -480 -480
linear +864t mm 12x36x20 nt bf16 (480 1440 > 864) -480 -864
[forward layers.0]
pointwise +864t add 12x36 bf16,bf16->bf16 (864 864 > 864) -864 -864
[forward final_norm]
pointwise x6 +1728t cast 12x36 bf16->fp32 (864 > 1728) +1728t pow 12x36 fp32 (1728 > 1728) +48t
    mean 12x36 fp32 (1728 > 48) -1728 +48t add 12x1 fp32 (48 > 48) +48t sqrt 12x1 fp32 (48 > 48) -48 +1728t
    mul 12x36 fp32,fp32->fp32 broadcast (1728 48 > 1728) -1728 -48 +864t cast 12x36 fp32->bf16 (1728 > 864) +864t
    mul 12x36 bf16,bf16->bf16 rows (72 864 > 864) -864 -1728 -48 -864 -864 -144 -144
view
[forward head]
linear +102t mm 3x17x36 nt bf16 (216 1224 > 102) -864
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
embedding +216t embedding 3 of 17x36 bf16 (1224 24 > 216)
[forward positions]
pointwise x4 +15t cast 3x5 bool (> 15) +8t +1t sum 1x15 int64 (15 > 8) eq 1x1 int64->bool (8 > 1)
    copy_to_host 1x1 bool from gpu (1) sync -1 -8 -15
pointwise x8 +36t cast 9x1 bf16->fp32 strided (6 > 36) +12t cast 3x1 int64->fp32 (24 > 12) +36t
    bmm 3x 3x1x1 nn fp32 (36 12 > 36) +72t cat 3x3 fp32 x2 joined (36 36 > 72) +72t rope 3x6 fp32 (72 > 72) +72t
    scale 3x6 fp32 (72 > 72) -72 +72t rope 3x6 fp32 (72 > 72) +72t scale 3x6 fp32 (72 > 72) -72 +36t
    cast 3x6 fp32->bf16 (72 > 36) +36t cast 3x6 fp32->bf16 (72 > 36) -36 -12 -36 -72 -72 -72
[forward layers.0]
pointwise x6 +432t cast 3x36 bf16->fp32 (216 > 432) +432t pow 3x36 fp32 (432 > 432) +12t mean 3x36 fp32 (432 > 12)
    -432 +12t add 3x1 fp32 (12 > 12) +12t sqrt 3x1 fp32 (12 > 12) -12 +432t
    mul 3x36 fp32,fp32->fp32 broadcast (432 12 > 432) -432 -12 +216t cast 3x36 fp32->bf16 (432 > 216) +216t
    mul 3x36 bf16,bf16->bf16 rows (72 216 > 216) -216 -432 -12
[forward layers.0.attention]
linear +216t mm 3x36x36 nt bf16 (216 2592 > 216)
view; transpose
linear +72t mm 3x12x36 nt bf16 (216 864 > 72)
view; transpose
linear +72t mm 3x12x36 nt bf16 (216 864 > 72)
view; transpose; pointwise x4
concatenate +216t mul 18x6 bf16,bf16->bf16 broadcast (216 36 > 216) +108t scale 18x3 bf16 strided (108 > 108) +216t
    cat 18x3 bf16 x2 joined (108 108 > 216) -108 +216t mul 18x6 bf16,bf16->bf16 broadcast (216 36 > 216) -216 +216t
    add 18x6 bf16,bf16->bf16 (216 216 > 216) -216 -216
pointwise x4
concatenate +72t mul 6x6 bf16,bf16->bf16 broadcast (72 36 > 72) +36t scale 6x3 bf16 strided (36 > 36) +72t
    cat 6x3 bf16 x2 joined (36 36 > 72) -36 +72t mul 6x6 bf16,bf16->bf16 broadcast (72 36 > 72) -72 +72t
    add 6x6 bf16,bf16->bf16 (72 72 > 72) -72 -72 -216 -72
concatenate x2 +360 cat 6x15 bf16 x2 joined (288 72 > 360) +360 cat 6x15 bf16 x2 joined (288 72 > 360) -288 -288 -72
    -72
attention_fused +216t +72t +16t +8t flash_attention 3x6x1x6 bf16 kv2 keys5 (216 360 360 > 216 72) -72 -16 -8
transpose; view; view
linear +216t mm 3x36x36 nt bf16 (216 2592 > 216) -216 -216 -216
[forward layers.0]
pointwise +216t add 3x36 bf16,bf16->bf16 (216 216 > 216) -216
pointwise x6 +432t cast 3x36 bf16->fp32 (216 > 432) +432t pow 3x36 fp32 (432 > 432) +12t mean 3x36 fp32 (432 > 12)
    -432 +12t add 3x1 fp32 (12 > 12) +12t sqrt 3x1 fp32 (12 > 12) -12 +432t
    mul 3x36 fp32,fp32->fp32 broadcast (432 12 > 432) -432 -12 +216t cast 3x36 fp32->bf16 (432 > 216) +216t
    mul 3x36 bf16,bf16->bf16 rows (72 216 > 216) -216 -432 -12
[forward layers.0.feed_forward]
linear +120t mm 3x20x36 nt bf16 (216 1440 > 120)
pointwise +120t silu 3x20 bf16 (120 > 120) -120
linear +120t mm 3x20x36 nt bf16 (216 1440 > 120)
pointwise +120t mul 3x20 bf16,bf16->bf16 (120 120 > 120) -120 -120
linear +216t mm 3x36x20 nt bf16 (120 1440 > 216) -120 -216
[forward layers.0]
pointwise +216t add 3x36 bf16,bf16->bf16 (216 216 > 216) -216 -216
[forward final_norm]
pointwise x6 +432t cast 3x36 bf16->fp32 (216 > 432) +432t pow 3x36 fp32 (432 > 432) +12t mean 3x36 fp32 (432 > 12)
    -432 +12t add 3x1 fp32 (12 > 12) +12t sqrt 3x1 fp32 (12 > 12) -12 +432t
    mul 3x36 fp32,fp32->fp32 broadcast (432 12 > 432) -432 -12 +216t cast 3x36 fp32->bf16 (432 > 216) +216t
    mul 3x36 bf16,bf16->bf16 rows (72 216 > 216) -216 -432 -12 -216 -216 -36 -36
view
[forward head]
linear +102t mm 3x17x36 nt bf16 (216 1224 > 102) -216
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

TEST(LlamaGenerationStep, APromptIsReadAndATokenFollows) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.training.micro_batch = 3;
                  step.training.sequence_length = 4;
                  step.training.inference = InferenceDescription{3, 2, 1, KeyValueCache::dynamic};
                })
                .text(),
            kLlamaGenerationStepListing1);
}

TEST(LlamaGenerationStep, AFixedCacheNeedsAMask) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.training.micro_batch = 3;
                  step.training.sequence_length = 4;
                  step.training.inference = InferenceDescription{3, 2, 1, KeyValueCache::dynamic};
                })
                .changed([](OddStep& step) { step.training.inference->cache = KeyValueCache::fixed; }),
            R"(
[forward positions]
+ pointwise x10 +24t arange 1x3 int64 (> 24) +8t arange 1x1 int64 (> 8) +32t arange 1x4 int64 (> 32) +32t
    add 1x4 int64 (32 > 32) -32 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40 +20t
    pointwise 4x5 int64,int64->bool broadcast (32 40 > 20) -24 -8 -32 -40 +1t fill 1x1 bool (> 1) +1t
    copy_to_device 1x1 bool to gpu (> 1) +60t pointwise 3x20 bool rows (20 > 60) -1 -1 -20
[forward layers.0.attention]
- concatenate; concatenate x2; attention_fused
+ concatenate +288t mul 24x6 bf16,bf16->bf16 broadcast (288 144 > 288) +144t scale 24x3 bf16 strided (144 > 144)
    +288t cat 24x3 bf16 x2 joined (144 144 > 288) -144 +288t mul 24x6 bf16,bf16->bf16 broadcast (288 144 > 288) -288
    +288t add 24x6 bf16,bf16->bf16 strided (288 288 > 288) -288 -288 -864 -288 +360 fill 30x6 bf16 (> 360) +360
    fill 30x6 bf16 (> 360)
+ pointwise x6 +32t arange 1x4 int64 (> 32) +32t add 1x4 int64 (32 > 32) -32 copy 24x6 bf16 permuted (288 > 360)
    copy 24x6 bf16 permuted (288 > 360) -32 -288 -288
+ contiguous +1080t copy 90x6 bf16 permuted (360 > 1080)
+ contiguous +1080t copy 90x6 bf16 permuted (360 > 1080)
+ pointwise x6 +120t pointwise 12x5 bool->bf16 (60 > 120) +120t pointwise 12x5 bool,bf16->bf16 (60 120 > 120) -120
+ attention_fused +864t +288t +16t +8t flash_attention 3x6x4x6 bf16 keys5 (864 1080 1080 > 864 288) -288 -16 -8 -120
    -1080 -1080
[forward final_norm]
- pointwise x6
+ pointwise x6 +1728t cast 12x36 bf16->fp32 (864 > 1728) +1728t pow 12x36 fp32 (1728 > 1728) +48t
    mean 12x36 fp32 (1728 > 48) -1728 +48t add 12x1 fp32 (48 > 48) +48t sqrt 12x1 fp32 (48 > 48) -48 +1728t
    mul 12x36 fp32,fp32->fp32 broadcast (1728 48 > 1728) -1728 -48 +864t cast 12x36 fp32->bf16 (1728 > 864) +864t
    mul 12x36 bf16,bf16->bf16 rows (72 864 > 864) -864 -1728 -48 -864 -864 -144 -144 -60
[forward positions]
+ pointwise x10 +24t arange 1x3 int64 (> 24) +8t arange 1x1 int64 (> 8) +8t arange 1x1 int64 (> 8) +8t
    add 1x1 int64 (8 > 8) -8 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40 +5t
    pointwise 5x1 int64,int64->bool rows (8 40 > 5) -24 -8 -8 -40 +1t fill 1x1 bool (> 1) +1t
    copy_to_device 1x1 bool to gpu (> 1) +15t pointwise 3x5 bool rows (5 > 15) -1 -1 -5
[forward layers.0.attention]
- concatenate x2; attention_fused
+ pointwise x6 +8t arange 1x1 int64 (> 8) +8t add 1x1 int64 (8 > 8) -8 copy 6x6 bf16 permuted (72 > 360)
    copy 6x6 bf16 permuted (72 > 360) -8 -72 -72
+ contiguous +1080t copy 90x6 bf16 permuted (360 > 1080)
+ contiguous +1080t copy 90x6 bf16 permuted (360 > 1080)
+ pointwise x6 +30t pointwise 3x5 bool->bf16 (15 > 30) +30t pointwise 3x5 bool,bf16->bf16 (15 30 > 30) -30
+ attention_fused +216t +72t +16t +8t flash_attention 3x6x1x6 bf16 keys5 (216 1080 1080 > 216 72) -72 -16 -8 -30
    -1080 -1080
[forward final_norm]
- pointwise x6
+ pointwise x6 +432t cast 3x36 bf16->fp32 (216 > 432) +432t pow 3x36 fp32 (432 > 432) +12t mean 3x36 fp32 (432 > 12)
    -432 +12t add 3x1 fp32 (12 > 12) +12t sqrt 3x1 fp32 (12 > 12) -12 +432t
    mul 3x36 fp32,fp32->fp32 broadcast (432 12 > 432) -432 -12 +216t cast 3x36 fp32->bf16 (432 > 216) +216t
    mul 3x36 bf16,bf16->bf16 rows (72 216 > 216) -216 -432 -12 -216 -216 -36 -36 -15
)");
}

constexpr char kLlamaGenerationStepListing2[] = R"(
[forward]
- pointwise
+ pointwise +24t pointwise 3x1 int64 (> 24)
- pointwise x5
+ pointwise x5 +24t pointwise 3x1 int64 (> 24) +24t pointwise 3x1 int64 (24 > 24) -24 +24t
    pointwise 3x1 int64 (24 > 24) -24 +24t pointwise 3x1 int64 (24 > 24) -24 +24t pointwise 3x1 int64 (24 > 24) -24
[forward embeddings]
- embedding; pointwise x2; embedding; pointwise
[forward positions]
- pointwise x2; pointwise x10
[forward layers.0]
- layer_norm_module
[forward layers.0.attention]
- linear
[forward embeddings]
+ embedding +72t embedding 3 of 17x12 bf16 (408 24 > 72)
+ pointwise x2 +8t arange 1x1 int64 (> 8) +8t add 1x1 int64 (8 > 8) -8
+ embedding +24t embedding 1 of 7x12 bf16 (168 8 > 24) -8
+ pointwise +72t add 3x12 bf16,bf16->bf16 rows (72 24 > 72) -24 -72
[forward positions]
+ pointwise x2 +8t arange 1x1 int64 (> 8) +8t add 1x1 int64 (8 > 8) -8 -8
[forward layers.0]
+ layer_norm_module +72t +12t +12t native_layer_norm 3x12 bf16 (72 24 24 > 72 12 12) -12 -12
[forward layers.0.attention]
+ linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72)
- linear
+ linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72)
- linear
+ linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72)
- concatenate x2
+ concatenate x2 +72 copy 6x6 bf16 permuted (72 > 72) +72 copy 6x6 bf16 permuted (72 > 72) -72 -72
- matmul; matmul_copy; pointwise; pointwise; softmax
+ matmul +12t bmm 6x 1x1x6 nn bf16 (72 72 > 12)
+ pointwise +12t scale 6x1 bf16 (12 > 12) -12 +24t cast 6x1 bf16->fp32 (12 > 24)
+ softmax +24t softmax 6x1 fp32 (24 > 24) +12t cast 6x1 fp32->bf16 (24 > 12) -12 -24 -24
- matmul
+ matmul +72t bmm 6x 1x6x1 nn bf16 (12 72 > 72)
- contiguous; linear
+ view
+ linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72) -72 -72 -72
[forward layers.0]
- pointwise; layer_norm_module
[forward layers.0.feed_forward]
- linear; pointwise; linear
[forward layers.0]
+ pointwise +72t add 3x12 bf16,bf16->bf16 (72 72 > 72) -72
+ layer_norm_module +72t +12t +12t native_layer_norm 3x12 bf16 (72 24 24 > 72 12 12) -12 -12
[forward layers.0.feed_forward]
+ linear +120t addmm 3x20x12 nt bf16 (72 480 40 > 120)
+ pointwise +120t gelu 3x20 bf16 (120 > 120) -120
+ linear +72t addmm 3x12x20 nt bf16 (120 480 24 > 72) -120 -72
[forward layers.0]
- pointwise
[forward final_norm]
- layer_norm_module
[forward head]
- linear
[forward]
- pointwise x2
[forward layers.0]
+ pointwise +72t add 3x12 bf16,bf16->bf16 (72 72 > 72) -72 -12 -72 -72
[forward final_norm]
+ layer_norm_module +72t +12t +12t native_layer_norm 3x12 bf16 (72 24 24 > 72 12 12) -12 -12 -72
[forward head]
+ linear +102t mm 3x17x12 nt bf16 (72 408 > 102) -72
[forward]
+ pointwise x2 +24t pointwise 3x1 int64 (> 24) +24t pointwise 3x1 int64 (24 > 24) -24 -24
- concatenate
+ concatenate +48t cat 3x1 int64 x2 joined (24 24 > 48) -24 -24
- concatenate
+ concatenate +48t cat 3x1 int64 x2 joined (24 24 > 48)
[forward layers.0.attention]
- concatenate x2
+ concatenate x2 +144 cat 6x6 bf16 x2 joined (72 72 > 144) +144 cat 6x6 bf16 x2 joined (72 72 > 144) -72 -72 -72 -72
- matmul; pointwise; softmax
+ matmul +24t bmm 6x 1x2x6 nt bf16 (72 144 > 24)
+ pointwise +24t scale 6x2 bf16 (24 > 24) -24 +48t cast 6x2 bf16->fp32 (24 > 48)
+ softmax +48t softmax 6x2 fp32 (48 > 48) +24t cast 6x2 fp32->bf16 (48 > 24) -24 -48 -48
- matmul
+ matmul +72t bmm 6x 1x6x2 nn bf16 (24 144 > 72)
[forward layers.0]
- pointwise
+ pointwise +72t add 3x12 bf16,bf16->bf16 (72 72 > 72) -72 -24 -72 -72
[forward]
- concatenate
+ concatenate +72t cat 3x2 int64 x2 joined (48 24 > 72) -48 -24
- concatenate; pointwise x6
+ concatenate +72t cat 3x2 int64 x2 joined (48 24 > 72) -48
+ pointwise x6 +3t pointwise 1x3 bool (> 3) +3t pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3 +3t
    pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3 +3t pointwise 1x3 bool (3 > 3) -3
    copy_to_host 1x1 bool from gpu (3) sync -3 -24 -102 -24 -204 -144 -144 -24 -72 -72
)";

TEST(LlamaGenerationStep, ScoresOfOneTokenNeedNoMask) {
  EXPECT_EQ(OddStep(odd_composition("positions: learned"))
                .but([](OddStep& step) {
                  step.attention = AttentionChoice::eager;
                  step.training.micro_batch = 3;
                  step.training.sequence_length = 2;
                  step.training.inference = InferenceDescription{3, 2, 1, KeyValueCache::dynamic};
                })
                .changed([](OddStep& step) { step.training.sequence_length = 1; }),
            kLlamaGenerationStepListing2);
}

}  // namespace
}  // namespace ridgeline
