// Attention of compositions that is written out in operations.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;
using testing_support::under;

// eager_attention_forward of Transformers (modeling_llama.py): a product, a scale, the mask (3 · 25 · 2 = 150 bytes), a
// softmax in fp32 that is cast back, a product. bmm keeps copies of queries and of transposed keys (360 each): both are
// views of [sequence, token, head] that no batch of matrices can have. 6 matrices of 5 by 5 are 300 bytes in bf16, 600
// in fp32; softmax keeps its result, of which its backward pass first makes the product with the gradient, in a tensor
// of its own (aten/src/ATen/native/cuda/SoftMax.cu).
TEST(ComposedScoresStep, ScoresAreProductsAndASoftmax) {
  EXPECT_EQ(under(changes_by_keys("attention_code: written-out"),
                  {"forward layers.0.attention", "backward layers.0.attention"}),
            R"(
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- attention_fused; view
+ matmul
+ matmul_copy x2 +360 copy 30x6 bf16 permuted (360 > 360) +360 copy 36x5 bf16 transposed (360 > 360) +300t
    bmm 6x 5x5x6 nn bf16 (360 360 > 300)
+ pointwise +300t scale 30x5 bf16 (300 > 300) -300
+ pointwise +300t add 30x5 bf16,bf16->bf16 broadcast (300 150 > 300) -300 +600t cast 30x5 bf16->fp32 (300 > 600)
+ softmax +600 softmax 30x5 fp32 (600 > 600) +300 cast 30x5 fp32->bf16 (600 > 300) -300 -600
+ dropout_off; matmul
+ matmul_copy +360 copy 30x6 bf16 permuted (360 > 360) +360t bmm 6x 5x6x5 nn bf16 (300 360 > 360)
+ transpose
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -360 -360 -360
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
- attention_fused_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ bmm_backward +360t bmm 6x 5x6x5 tn bf16 (300 360 > 360) +300t bmm 6x 5x5x6 nt bf16 (360 360 > 300) -360 -360 -300
+ view_backward; view_backward; view_backward; view_backward
+ cast_backward +600t cast 30x5 bf16->fp32 (300 > 600) -300
+ softmax_backward +600t +600t softmax_backward 30x5 fp32 (600 600 > 600) -600 -600 -600
+ cast_backward +300t cast 30x5 fp32->bf16 (600 > 300) -600
+ add_backward
+ pointwise_backward +300t scale 30x5 bf16 (300 > 300) -300
+ view_backward
+ bmm_backward +360t bmm 6x 6x5x5 tn bf16 (360 300 > 360) +360t bmm 6x 5x6x5 nt bf16 (300 360 > 360) -300 -360 -360
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward; view_backward;
    view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward
+ view_backward_copy +360t copy 15x12 bf16 transposed (360 > 360) -360
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
)");
}

constexpr char kComposedScoresStepListing3[] = R"(
[forward layers.0.attention]
- pointwise; softmax
+ pointwise +300t add 30x5 bf16,bf16->bf16 broadcast (300 150 > 300) -300
+ softmax +300 softmax 30x5 bf16 (300 > 300) -300
[backward layers.0.attention]
- bmm_backward
+ bmm_backward +360t bmm 6x 5x6x5 tn bf16 (300 360 > 360) +300t bmm 6x 5x5x6 nt bf16 (360 360 > 300) -360 -360
- cast_backward; softmax_backward; cast_backward
+ softmax_backward +300t +300t softmax_backward 30x5 bf16 (300 300 > 300) -300 -300 -300
)";

// A softmax that is not asked for another type runs in bf16: both casts and the fp32 results are missing.
TEST(ComposedScoresStep, SoftmaxMayRunInSixteenBits) {
  EXPECT_EQ(changes_by_keys("softmax_fp32: false", "attention_code: written-out"), kComposedScoresStepListing3);
}

// Gemma 2 divides scores, takes tanh (which keeps its result) and multiplies (modeling_gemma2.py). Dropout keeps a byte
// for each score. A scale of queries moves to 15 · 12 numbers. With one key head repeat_kv needs no copy: two heads at
// a stride of zero are still a view, and the copy is the product's own; backward they are summed (360 > 180).
TEST(ComposedScoresStep, ScoresAreCappedDroppedAndScaled) {
  EXPECT_EQ(changes_by_keys("score_cap: 30", "attention_code: written-out"), R"(
[forward layers.0.attention]
+ pointwise x3 +300t div 30x5 bf16 (300 > 300) +300 tanh 30x5 bf16 (300 > 300) -300 +300t scale 30x5 bf16 (300 > 300)
    -300
[backward layers.0.attention]
+ pointwise_backward +300t tanh_backward 30x5 bf16,bf16->bf16 (300 300 > 300) -300 -300
+ pointwise_backward +300t div 30x5 bf16 (300 > 300) -300
+ pointwise_backward +300t scale 30x5 bf16 (300 > 300) -300
)");
  EXPECT_EQ(changes_by_keys("attention_dropout: 0.1", "attention_code: written-out"), R"(
[forward layers.0.attention]
- softmax; dropout_off
+ softmax +600 softmax 30x5 fp32 (600 > 600) +300t cast 30x5 fp32->bf16 (600 > 300) -300 -600
+ dropout +150 +300 native_dropout 150 bf16 (300 > 300 150) -300
[backward layers.0.attention]
+ pointwise_backward +300t native_dropout_backward 30x5 bf16,bool->bf16 (300 150 > 300) -300 -150
)");
  EXPECT_EQ(changes_by_keys("score_scale: queries", "attention_code: written-out"), R"(
[forward layers.0.attention]
+ pointwise +360t scale 15x12 bf16 (360 > 360) -360
- pointwise
[backward layers.0.attention]
- pointwise_backward
+ pointwise_backward +360t scale 15x12 bf16 (360 > 360) -360
)");
  EXPECT_EQ(changes_by_keys("key_value_heads: 1", "attention_code: written-out"), R"(
[forward layers.0.attention]
- linear
+ linear +180t addmm 15x6x12 nt bf16 (360 144 12 > 180)
- linear
+ linear +180t addmm 15x6x12 nt bf16 (360 144 12 > 180)
+ contiguous; contiguous
- matmul_copy x2
+ matmul_copy x2 +360 copy 30x6 bf16 permuted (360 > 360) +360 copy 36x5 bf16 transposed (180 > 360) +300t
    bmm 6x 5x5x6 nn bf16 (360 360 > 300)
- matmul_copy
+ matmul_copy +360 copy 30x6 bf16 permuted (180 > 360) +360t bmm 6x 5x6x5 nn bf16 (300 360 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -360 -180 -180
[backward layers.0.attention]
+ view_backward +180t sum 2x90 bf16 rows (360 > 180) -360
- view_backward_copy; addmm_backward
+ view_backward +180t sum 2x90 bf16 rows (360 > 180) -360
+ view_backward; view_backward; view_backward; view_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
- view_backward_copy; addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x19 -408 -288 -24 -144 -12 -144 -12 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)");
}

// Without a mask nothing is added to scores and nothing looks for documents.
TEST(ComposedScoresStep, WithoutAMaskNothingIsAdded) {
  EXPECT_EQ(changes_by_keys("causal: false", "attention_code: written-out"), R"(
[forward positions]
- pointwise x2; pointwise x8; pointwise x10
[forward layers.0.attention]
- pointwise; pointwise
+ pointwise +300t scale 30x5 bf16 (300 > 300) -300 +600t cast 30x5 bf16->fp32 (300 > 600)
[forward final_norm]
- layer_norm_module
+ layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward]
- backward_first x40
+ backward_first x32
[backward layers.0.attention]
- add_backward
)");
}

}  // namespace
}  // namespace ridgeline
