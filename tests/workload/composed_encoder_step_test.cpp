// Networks of two towers: an encoder and what reads its result.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedEncoderStepListing1[] = R"(
[forward encoder.embeddings]
embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360)
pointwise x2 +40t arange 1x5 int64 (> 40) +40 add 1x5 int64 (40 > 40) -40
embedding +120t embedding 5 of 7x12 bf16 (168 40 > 120)
pointwise +360 add 3x60 bf16,bf16->bf16 rows (360 120 > 360) -120 -360
[forward encoder.layers.0]
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward encoder.layers.0.attention]
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 bf16 (360 360 360 > 360 120)
transpose; view; view
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
dropout_off
[forward encoder.layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward encoder.layers.0.feed_forward]
linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t addmm 15x12x20 nt bf16 (600 480 24 > 360)
dropout_off
[forward encoder.layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[forward encoder.final_norm]
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward decoder.embeddings]
embedding +288 embedding 12 of 17x12 bf16 (408 96 > 288)
[forward decoder.positions]
pointwise x2 +32t arange 1x4 int64 (> 32) +32t add 1x4 int64 (32 > 32) -32 -32
[forward decoder.layers.0]
layer_norm_module +288 +48 +48 native_layer_norm 12x12 bf16 (288 24 24 > 288 48 48)
[forward decoder.layers.0.attention]
linear +288 addmm 12x12x12 nt bf16 (288 288 24 > 288)
view; transpose
linear +288 addmm 12x12x12 nt bf16 (288 288 24 > 288)
view; transpose
linear +288 addmm 12x12x12 nt bf16 (288 288 24 > 288)
view; transpose
attention_fused +288 +96 +16 +8 flash_attention 3x2x4x6 causal bf16 (288 288 288 > 288 96)
transpose; view; view
linear +288t addmm 12x12x12 nt bf16 (288 288 24 > 288)
dropout_off
[forward decoder.layers.0]
pointwise +288 add 12x12 bf16,bf16->bf16 (288 288 > 288) -288
layer_norm_module +288 +48 +48 native_layer_norm 12x12 bf16 (288 24 24 > 288 48 48)
[forward decoder.layers.0.cross_attention]
linear +288 addmm 12x12x12 nt bf16 (288 288 24 > 288)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
attention_fused +288 +96 +16 +8 flash_attention 3x2x4x6 bf16 keys5 (288 360 360 > 288 96)
transpose; view; view
linear +288t addmm 12x12x12 nt bf16 (288 288 24 > 288)
dropout_off
[forward decoder.layers.0]
pointwise +288 add 12x12 bf16,bf16->bf16 (288 288 > 288) -288
layer_norm_module +288 +48 +48 native_layer_norm 12x12 bf16 (288 24 24 > 288 48 48)
[forward decoder.layers.0.feed_forward]
linear +480 addmm 12x20x12 nt bf16 (288 480 40 > 480)
pointwise +480 gelu 12x20 bf16 (480 > 480)
linear +288t addmm 12x12x20 nt bf16 (480 480 24 > 288)
dropout_off
[forward decoder.layers.0]
pointwise +288 add 12x12 bf16,bf16->bf16 (288 288 > 288) -288
[forward decoder.final_norm]
layer_norm_module +288 +48 +48 native_layer_norm 12x12 bf16 (288 24 24 > 288 48 48)
[forward head]
linear +408t mm 12x17x12 nt bf16 (288 408 > 408)
view; view
[forward head.loss]
cross_entropy +408 log_softmax 12x17 bf16 (408 > 408) +2t +2 nll_loss 12x17 bf16 (408 96 > 2) -408
[forward]
loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
backward_call +2t fill 1x1 bf16 (> 2)
backward_first x40
pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
nll_backward +408t nll_loss_backward 12x17 bf16 (2 96 > 408) -2 -2
log_softmax_backward +408t log_softmax_backward 12x17 bf16 (408 408 > 408) -408 -408
view_backward; view_backward
[backward head]
mm_backward +408t mm 17x12x12 tn bf16 (408 288 > 408) +288t mm 12x12x17 nn bf16 (408 408 > 288) -408 -288
view_backward; view_backward
[backward decoder.final_norm]
layer_norm_backward +288t +24g +24g native_layer_norm_backward 12x12 bf16 (288 288 24 48 48 > 288 24 24) -288 -288
    -48 -48
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward decoder.layers.0.feed_forward]
addmm_backward +480t mm 12x20x12 nn bf16 (288 480 > 480) +480g mm 12x20x12 tn bf16 (288 480 > 480) +24g
    sum 12x12 bf16 rows (288 > 24) -480
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +480t gelu_backward 12x20 bf16,bf16->bf16 (480 480 > 480) -480 -480
view_backward
addmm_backward +288t mm 12x12x20 nn bf16 (480 480 > 288) +480g mm 20x12x12 tn bf16 (480 288 > 480) +40g
    sum 12x20 bf16 rows (480 > 40) -480 -288
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward decoder.layers.0]
layer_norm_backward +288t +24g +24g native_layer_norm_backward 12x12 bf16 (288 288 24 48 48 > 288 24 24) -288 -288
    -48 -48
fan_in_add add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward decoder.layers.0.cross_attention]
addmm_backward +288t mm 12x12x12 nn bf16 (288 288 > 288) +288g mm 12x12x12 tn bf16 (288 288 > 288) +24g
    sum 12x12 bf16 rows (288 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +288t +360t +360t
    flash_attention_backward 3x2x4x6 bf16 keys5 (288 288 360 360 288 96 > 288 360 360) -288 -360 -288 -360 -96 -288
    -8 -16
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
view_backward; view_backward; view_backward
addmm_backward +288t mm 12x12x12 nn bf16 (288 288 > 288) +288g mm 12x12x12 tn bf16 (288 288 > 288) +24g
    sum 12x12 bf16 rows (288 > 24) -288 -288
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward decoder.layers.0]
layer_norm_backward +288t +24g +24g native_layer_norm_backward 12x12 bf16 (288 288 24 48 48 > 288 24 24) -288 -288
    -48 -48
fan_in_add add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward decoder.layers.0.attention]
addmm_backward +288t mm 12x12x12 nn bf16 (288 288 > 288) +288g mm 12x12x12 tn bf16 (288 288 > 288) +24g
    sum 12x12 bf16 rows (288 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +288t +288t +288t
    flash_attention_backward 3x2x4x6 causal bf16 (288 288 288 288 288 96 > 288 288 288) -288 -288 -288 -288 -96 -288
    -8 -16
view_backward; view_backward; view_backward
addmm_backward +288t mm 12x12x12 nn bf16 (288 288 > 288) +288g mm 12x12x12 tn bf16 (288 288 > 288) +24g
    sum 12x12 bf16 rows (288 > 24) -288
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +288t mm 12x12x12 nn bf16 (288 288 > 288) +288g mm 12x12x12 tn bf16 (288 288 > 288) +24g
    sum 12x12 bf16 rows (288 > 24) -288
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +288t add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288
view_backward; view_backward; view_backward
addmm_backward +288t mm 12x12x12 nn bf16 (288 288 > 288) +288g mm 12x12x12 tn bf16 (288 288 > 288) +24g
    sum 12x12 bf16 rows (288 > 24) -288 -288
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288
[backward decoder.layers.0]
layer_norm_backward +288t +24g +24g native_layer_norm_backward 12x12 bf16 (288 288 24 48 48 > 288 24 24) -288 -288
    -48 -48
fan_in_add add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288
accumulate_grad; accumulate_grad
[backward decoder.embeddings]
embedding_backward +408t embedding_dense_backward 12 of 17x12 bf16 (288 96 > 408) -288
fan_in_add +408g add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
[backward encoder.final_norm]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward encoder.layers.0.feed_forward]
addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -600
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +600t gelu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
view_backward
addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480g mm 20x12x15 tn bf16 (600 360 > 480) +40g
    sum 15x20 bf16 rows (600 > 40) -600 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward encoder.layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward encoder.layers.0.attention]
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 bf16 (360 360 360 360 360 120 > 360 360 360) -360 -360 -360 -360 -120 -360 -8
    -16
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward encoder.layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad
[backward encoder.embeddings]
add_backward +120t sum 3x60 bf16 rows (360 > 120)
embedding_backward +168g embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120 -40
accumulate_grad
embedding_backward +408t embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
fan_in_add add_ 17x12 bf16,bf16->bf16 (408 408 > 408) -408
accumulate_grad -2 -2
per_parameter_zero_grad x48 -408 -168 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
    -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24
    -24 -24
)";

TEST(ComposedEncoderStep, ADecoderLooksAtAnEncoder) {
  EXPECT_EQ(OddStep(odd_composition("cross_attention: true, target_length: 4, encoder: {positions: learned}")).text(),
            kComposedEncoderStepListing1);
}

constexpr char kComposedEncoderStepListing2[] = R"(
[forward encoder.embeddings]
- embedding; pointwise x2; embedding; pointwise
[forward encoder.layers.0]
- layer_norm_module
[forward encoder.layers.0.attention]
- linear
[forward encoder.embeddings]
+ convolution +1008 conv2d 3x8x4x4 to 12, 3x3 bf16 (672 576 > 1008)
    add_ 36x14 bf16,bf16->bf16 broadcast (1008 24 > 1008)
+ pointwise +1008 gelu 36x14 bf16 (1008 > 1008)
+ convolution +504 conv2d 3x12x4x4 to 12, 3x3 bf16 (1008 864 > 504)
    add_ 36x7 bf16,bf16->bf16 broadcast (504 24 > 504)
+ pointwise +504t gelu 36x7 bf16 (504 > 504)
+ pointwise +504t add 21x12 bf16,bf16->bf16 broadcast (504 168 > 504) -504 +504
    copy 21x12 bf16 transposed (504 > 504)
[forward encoder.layers.0]
+ layer_norm_module +504 +84 +84 native_layer_norm 21x12 bf16 (504 24 24 > 504 84 84)
[forward encoder.layers.0.attention]
+ linear +504 addmm 21x12x12 nt bf16 (504 288 24 > 504)
- linear
+ linear +504 addmm 21x12x12 nt bf16 (504 288 24 > 504)
- linear
+ linear +504 addmm 21x12x12 nt bf16 (504 288 24 > 504)
- attention_fused
+ attention_fused +504 +168 +16 +8 flash_attention 3x2x7x6 bf16 (504 504 504 > 504 168)
- linear
+ linear +504t addmm 21x12x12 nt bf16 (504 288 24 > 504)
[forward encoder.layers.0]
- pointwise; layer_norm_module
[forward encoder.layers.0.feed_forward]
- linear; pointwise; linear
[forward encoder.layers.0]
+ pointwise +504t add 21x12 bf16,bf16->bf16 strided (504 504 > 504) -504 +504 copy 21x12 bf16 transposed (504 > 504)
+ layer_norm_module +504 +84 +84 native_layer_norm 21x12 bf16 (504 24 24 > 504 84 84)
[forward encoder.layers.0.feed_forward]
+ linear +840 addmm 21x20x12 nt bf16 (504 480 40 > 840)
+ pointwise +840 gelu 21x20 bf16 (840 > 840)
+ linear +504t addmm 21x12x20 nt bf16 (840 480 24 > 504)
[forward encoder.layers.0]
- pointwise
[forward encoder.final_norm]
- layer_norm_module
[forward encoder.layers.0]
+ pointwise +504t add 21x12 bf16,bf16->bf16 strided (504 504 > 504) -504 -504 -504 +504
    copy 21x12 bf16 transposed (504 > 504)
[forward encoder.final_norm]
+ layer_norm_module +504 +84 +84 native_layer_norm 21x12 bf16 (504 24 24 > 504 84 84) -504
[forward decoder.layers.0.cross_attention]
- linear
+ linear +504 addmm 21x12x12 nt bf16 (504 288 24 > 504)
- linear
+ linear +504 addmm 21x12x12 nt bf16 (504 288 24 > 504)
- attention_fused
+ attention_fused +288 +96 +16 +8 flash_attention 3x2x4x6 bf16 keys7 (288 504 504 > 288 96)
[backward decoder.layers.0.cross_attention]
- attention_fused_backward
+ attention_fused_backward +288t +504t +504t
    flash_attention_backward 3x2x4x6 bf16 keys7 (288 288 504 504 288 96 > 288 504 504) -288 -504 -288 -504 -96 -288
    -8 -16
- addmm_backward
+ addmm_backward +504t mm 21x12x12 nn bf16 (504 288 > 504) +288g mm 12x12x21 tn bf16 (504 504 > 288) +24g
    sum 21x12 bf16 rows (504 > 24) -504
- addmm_backward
+ addmm_backward +504t mm 21x12x12 nn bf16 (504 288 > 504) +288g mm 12x12x21 tn bf16 (504 504 > 288) +24g
    sum 21x12 bf16 rows (504 > 24) -504 -504
- fan_in_add
+ fan_in_add +504t add 21x12 bf16,bf16->bf16 (504 504 > 504) -504 -504
[backward encoder.final_norm]
- layer_norm_backward
+ layer_norm_backward +504t +24g +24g native_layer_norm_backward 21x12 bf16 (504 504 24 84 84 > 504 24 24) -504 -504
    -84 -84
+ accumulate_grad; view_backward
[backward encoder.layers.0.feed_forward]
- addmm_backward
+ addmm_backward +840t mm 21x20x12 nn bf16 (504 480 > 840) +480g mm 12x20x21 tn bf16 (504 840 > 480) +24g
    sum 21x12 bf16 rows (504 > 24) -840
- pointwise_backward
+ pointwise_backward +840t gelu_backward 21x20 bf16,bf16->bf16 (840 840 > 840) -840 -840
- addmm_backward
+ addmm_backward +504t mm 21x12x20 nn bf16 (840 480 > 504) +480g mm 20x12x21 tn bf16 (840 504 > 480) +40g
    sum 21x20 bf16 rows (840 > 40) -840 -504
[backward encoder.layers.0]
- layer_norm_backward; fan_in_add
+ layer_norm_backward +504t +24g +24g native_layer_norm_backward 21x12 bf16 (504 504 24 84 84 > 504 24 24) -504 -504
    -84 -84
+ view_backward
+ fan_in_add add_ 21x12 bf16,bf16->bf16 (504 504 > 504) -504
[backward encoder.layers.0.attention]
- addmm_backward
+ addmm_backward +504t mm 21x12x12 nn bf16 (504 288 > 504) +288g mm 12x12x21 tn bf16 (504 504 > 288) +24g
    sum 21x12 bf16 rows (504 > 24)
- attention_fused_backward
+ attention_fused_backward +504t +504t +504t
    flash_attention_backward 3x2x7x6 bf16 (504 504 504 504 504 168 > 504 504 504) -504 -504 -504 -504 -168 -504 -8
    -16
- addmm_backward
+ addmm_backward +504t mm 21x12x12 nn bf16 (504 288 > 504) +288g mm 12x12x21 tn bf16 (504 504 > 288) +24g
    sum 21x12 bf16 rows (504 > 24) -504
- addmm_backward
+ addmm_backward +504t mm 21x12x12 nn bf16 (504 288 > 504) +288g mm 12x12x21 tn bf16 (504 504 > 288) +24g
    sum 21x12 bf16 rows (504 > 24) -504
- fan_in_add
+ fan_in_add +504t add 21x12 bf16,bf16->bf16 (504 504 > 504) -504 -504
- addmm_backward
+ addmm_backward +504t mm 21x12x12 nn bf16 (504 288 > 504) +288g mm 12x12x21 tn bf16 (504 504 > 288) +24g
    sum 21x12 bf16 rows (504 > 24) -504 -504
- fan_in_add
[backward encoder.layers.0]
- layer_norm_backward; fan_in_add
[backward encoder.layers.0.attention]
+ fan_in_add add_ 21x12 bf16,bf16->bf16 (504 504 > 504) -504
[backward encoder.layers.0]
+ layer_norm_backward +504t +24g +24g native_layer_norm_backward 21x12 bf16 (504 504 24 84 84 > 504 24 24) -504 -504
    -84 -84
[backward encoder.embeddings]
- add_backward; embedding_backward
+ view_backward
[backward encoder.layers.0]
+ fan_in_add add_ 21x12 bf16,bf16->bf16 (504 504 > 504) -504
+ add_backward; view_backward
[backward encoder.embeddings]
+ pointwise_backward +504t gelu_backward 36x7 bf16,bf16->bf16 strided (504 504 > 504) -504 -504
+ convolution_backward +504t copy 36x7 bf16 transposed (504 > 504) +1008t +864g
    conv2d_backward 3x12x4x4 to 12, 3x3 bf16 (504 1008 864 > 1008 864) +24g sum 12x21 bf16 cols (504 > 24) -504 -504
    -1008
- embedding_backward; fan_in_add
+ accumulate_grad
+ pointwise_backward +1008t gelu_backward 36x14 bf16,bf16->bf16 (1008 1008 > 1008) -1008 -1008
+ convolution_backward +672t +576g conv2d_backward 3x8x4x4 to 12, 3x3 bf16 (1008 672 576 > 672 576) +24g
    sum 12x42 bf16 cols (1008 > 24) -1008 -672
+ accumulate_grad
- per_parameter_zero_grad x48
+ per_parameter_zero_grad x51 -576 -24 -864 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24
    -24 -24 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40
    -480 -24 -24 -24 -24 -24
)";

TEST(ComposedEncoderStep, ASpectrogramIsConvolved) {
  EXPECT_EQ(OddStep(odd_composition("cross_attention: true, target_length: 4, encoder: {positions: learned}"))
                .changed([](OddStep& step) {
                  step.model = odd_composition(
                      "cross_attention: true, target_length: 4, encoder: {input: audio, audio_bins: 8, positions: "
                      "sinusoidal}");
                }),
            kComposedEncoderStepListing2);
}

}  // namespace
}  // namespace ridgeline
