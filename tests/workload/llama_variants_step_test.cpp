// What a small llama does otherwise: attention, a tied head, the code of Transformers.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

const OddStep kVariedLlama = OddStep(ModelFamily::llama).but([](OddStep& step) { step.model.plain = true; });

// repeat_kv expands two key heads to six and copies (15 · 36 · 2 = 1080 bytes): copies lie by heads, so that bmm reads
// them as they are and only queries are copied again. 18 matrices of 5 by 5 are 900 bytes, 1800 in fp32, in which
// softmax runs. Backward the gradients of three heads each are summed (1080 > 360).
TEST(LlamaVariantsStep, EagerAttentionCopiesKeysForEachHead) {
  EXPECT_EQ(under(kVariedLlama.changed([](OddStep& step) { step.attention = AttentionChoice::eager; }),
                  {"forward layers.0.attention", "backward layers.0.attention"}),
            R"(
[forward layers.0.attention]
- linear
+ linear +360t mm 15x12x36 nt bf16 (1080 864 > 360)
- concatenate
+ concatenate +1080t mul 90x6 bf16,bf16->bf16 broadcast (1080 60 > 1080) +540t scale 90x3 bf16 strided (540 > 540)
    +1080t cat 90x3 bf16 x2 joined strided (540 540 > 1080) -540 +1080t
    mul 18x30 bf16,bf16->bf16 rows (1080 60 > 1080) -1080 +1080t add 90x6 bf16,bf16->bf16 strided (1080 1080 > 1080)
    -1080 -1080
- concatenate; attention_fused
+ concatenate +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) +180t scale 30x3 bf16 strided (180 > 180) +360t
    cat 30x3 bf16 x2 joined strided (180 180 > 360) -180 +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360
    +360t add 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360 -360 -1080 -360
+ contiguous +1080 copy 90x6 bf16 permuted (360 > 1080)
+ contiguous +1080 copy 90x6 bf16 permuted (360 > 1080)
- view
+ matmul
+ matmul_copy +1080 copy 90x6 bf16 permuted (1080 > 1080) +900t bmm 18x 5x5x6 nt bf16 (1080 1080 > 900)
+ pointwise +900t scale 90x5 bf16 (900 > 900) -900
+ pointwise +900t add 90x5 bf16,bf16->bf16 broadcast (900 150 > 900) -900 +1800t cast 90x5 bf16->fp32 (900 > 1800)
+ softmax +1800 softmax 90x5 fp32 (1800 > 1800) +900 cast 90x5 fp32->bf16 (1800 > 900) -1800
+ dropout_off
+ matmul +1080t bmm 18x 5x6x5 nn bf16 (900 1080 > 1080)
+ transpose
+ contiguous +1080 copy 90x6 bf16 permuted (1080 > 1080)
- linear
+ linear +1080t mm 15x36x36 nt bf16 (1080 2592 > 1080) -1080 -360 -360 -1080 -900
[backward layers.0.attention]
- mm_backward
+ mm_backward +2592g mm 36x36x15 tn bf16 (1080 1080 > 2592) +1080t mm 15x36x36 nn bf16 (1080 2592 > 1080) -1080
- attention_fused_backward
+ view_backward; view_backward
+ view_backward_copy +1080t copy 90x6 bf16 permuted (1080 > 1080) -1080
+ bmm_backward +1080t bmm 18x 5x6x5 tn bf16 (900 1080 > 1080) +900t bmm 18x 5x5x6 nt bf16 (1080 1080 > 900) -1080
    -1080 -900
+ view_backward; view_backward; view_backward; view_backward
+ cast_backward +1800t cast 90x5 bf16->fp32 (900 > 1800) -900
+ softmax_backward +1800t +1800t softmax_backward 90x5 fp32 (1800 1800 > 1800) -1800 -1800 -1800
+ cast_backward +900t cast 90x5 fp32->bf16 (1800 > 900) -1800
- pointwise_backward
+ pointwise_backward +900t scale 90x5 bf16 (900 > 900) -900
+ bmm_backward +1080t bmm 18x 6x5x5 tn bf16 (1080 900 > 1080) +1080t bmm 18x 5x6x5 nn bf16 (900 1080 > 1080) -900
    -1080 -1080
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward; view_backward;
    view_backward
+ view_backward +360t sum 3x180 bf16 rows (1080 > 360) -1080
+ view_backward; view_backward; view_backward
+ view_backward +360t sum 3x180 bf16 rows (1080 > 360) -1080
+ view_backward; add_backward
+ pointwise_backward +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360)
+ view_backward
- pointwise_backward; fan_in_add
+ pointwise_backward +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360
+ fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
- pointwise_backward
+ pointwise_backward +1080t mul 18x30 bf16,bf16->bf16 rows (1080 60 > 1080) -60
- pointwise_backward; fan_in_add
+ pointwise_backward +1080t mul 18x30 bf16,bf16->bf16 rows (1080 60 > 1080) -1080 -60
+ fan_in_add add_ 90x6 bf16,bf16->bf16 (1080 1080 > 1080) -1080
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
)");
}

constexpr char kLlamaVariantsStepListing3[] = R"(
[backward head]
- mm_backward
+ mm_backward +1224t mm 17x36x15 tn bf16 (510 1080 > 1224) +1080t mm 15x36x17 nn bf16 (510 1224 > 1080) -510 -1080
- accumulate_grad
[backward embeddings]
- embedding_backward
+ embedding_backward +1224t embedding_dense_backward 15 of 17x36 bf16 (1080 120 > 1224) -1080
+ fan_in_add +1224g add 17x36 bf16,bf16->bf16 (1224 1224 > 1224) -1224 -1224
- per_parameter_zero_grad x12
+ per_parameter_zero_grad x11 -1224 -72 -2592 -864 -864 -2592 -72 -1440 -1440 -1440 -72
)";

// The head's gradient waits (1224t) for that of the embedding; a parameter is missing.
TEST(LlamaVariantsStep, ATiedHeadAddsToTheGradientOfTheTable) {
  EXPECT_EQ(kVariedLlama.changed([](OddStep& step) { step.model.tie_embeddings = true; }), kLlamaVariantsStepListing3);
}

// LlamaModel makes positions and looks for documents in them (masking_utils.py); LlamaRotaryEmbedding multiplies
// frequencies by positions each time; ForCausalLMLoss pads labels (3 · 6 · 8 = 144 bytes) and copies those shifted
// (120). Parameters are cleared in the order in which the modules own them.
TEST(LlamaVariantsStep, TransformersCodeDoesMoreBesides) {
  EXPECT_EQ(kVariedLlama.changed([](OddStep& step) { step.model.plain = false; }), R"(
[forward positions]
- pointwise x12
+ pointwise x2 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40
+ pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t
    add 3x5 int64 (144 > 120) -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120
+ pointwise x8 +12t cast 3x1 bf16->fp32 (6 > 12) +20t cast 1x5 int64->fp32 (40 > 20) +60t
    mm 3x5x1 nn fp32 (12 20 > 60) +120t cat 5x3 fp32 x2 joined strided (60 60 > 120) +120t rope 5x6 fp32 (120 > 120)
    +120t scale 5x6 fp32 (120 > 120) -120 +120t rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120) -120 +60
    cast 5x6 fp32->bf16 (120 > 60) +60 cast 5x6 fp32->bf16 (120 > 60) -12 -20 -60 -120 -120 -120
[forward final_norm]
- pointwise x6
+ pointwise x6 +2160 cast 15x36 bf16->fp32 (1080 > 2160) +2160t pow 15x36 fp32 (2160 > 2160) +60t
    mean 15x36 fp32 (2160 > 60) -2160 +60t add 15x1 fp32 (60 > 60) +60 sqrt 15x1 fp32 (60 > 60) -60 +2160t
    mul 15x36 fp32,fp32->fp32 broadcast (2160 60 > 2160) +1080 cast 15x36 fp32->bf16 (2160 > 1080) +1080
    mul 15x36 bf16,bf16->bf16 rows (72 1080 > 1080) -2160 -60 -1080 -40 -1080
+ view
[forward head.loss]
+ pointwise x4 +144t fill 3x6 int64 (> 144) copy 3x5 int64 permuted (120 > 144) +120
    copy 3x5 int64 permuted (120 > 120)
- cross_entropy
+ cross_entropy +1020 log_softmax 15x17 fp32 (1020 > 1020) +4t +4 nll_loss 15x17 fp32 (1020 120 > 4) -1020 -144 -510
[backward head.loss]
- nll_backward
+ nll_backward +1020t nll_loss_backward 15x17 fp32 (4 120 > 1020) -4 -120 -4
[backward head]
+ view_backward
[backward embeddings]
- per_parameter_zero_grad x12
+ per_parameter_zero_grad x12 -1224 -2592 -864 -864 -2592 -1440 -1440 -1440 -72 -72 -72 -1224
)");
}

}  // namespace
}  // namespace ridgeline
