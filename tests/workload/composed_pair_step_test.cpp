// A pair of towers whose results are compared.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedPairStepListing1[] = R"(
[forward encoder.embeddings]
convolution +648t conv2d 3x3x6x6 to 12, 2x2 bf16 (648 288 > 648) add_ 108x3 bf16,bf16->bf16 broadcast (648 24 > 648)
view; transpose
concatenate +720 cat 3x60 bf16 x2 joined strided (24 648 > 720) -648
[forward encoder.layers.0]
layer_norm_module +720 +120 +120 native_layer_norm 30x12 bf16 (720 24 24 > 720 120 120)
[forward encoder.layers.0.attention]
linear +720 addmm 30x12x12 nt bf16 (720 288 24 > 720)
view; transpose
linear +720 addmm 30x12x12 nt bf16 (720 288 24 > 720)
view; transpose
linear +720 addmm 30x12x12 nt bf16 (720 288 24 > 720)
view; transpose
attention_fused +720 +240 +16 +8 flash_attention 3x2x10x6 bf16 (720 720 720 > 720 240)
transpose; view; view
linear +720t addmm 30x12x12 nt bf16 (720 288 24 > 720)
dropout_off
[forward encoder.layers.0]
pointwise +720 add 30x12 bf16,bf16->bf16 (720 720 > 720) -720
layer_norm_module +720 +120 +120 native_layer_norm 30x12 bf16 (720 24 24 > 720 120 120)
[forward encoder.layers.0.feed_forward]
linear +1200 addmm 30x20x12 nt bf16 (720 480 40 > 1200)
pointwise +1200 gelu 30x20 bf16 (1200 > 1200)
linear +720t addmm 30x12x20 nt bf16 (1200 480 24 > 720)
dropout_off
[forward encoder.layers.0]
pointwise +720 add 30x12 bf16,bf16->bf16 (720 720 > 720) -720
[forward encoder.final_norm]
layer_norm_module +720 +120 +120 native_layer_norm 30x12 bf16 (720 24 24 > 720 120 120)
[forward decoder.embeddings]
embedding +360 embedding 15 of 17x12 bf16 (408 120 > 360)
[forward decoder.positions]
pointwise x2 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40
pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t add 3x5 int64 (144 > 120)
    -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120 -40
[forward decoder.layers.0]
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward decoder.layers.0.attention]
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
transpose; view; view
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
dropout_off
[forward decoder.layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward decoder.layers.0.feed_forward]
linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t addmm 15x12x20 nt bf16 (600 480 24 > 360)
dropout_off
[forward decoder.layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[forward decoder.final_norm]
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
view
[forward head]
linear +60 mm 3x10x12 nt bf16 (72 240 > 60)
pointwise x3 +60t pow 3x10 bf16 (60 > 60) +6t mean 3x10 bf16 (60 > 6) +6 sqrt 3x1 bf16 (6 > 6) -6 +60
    mul 3x10 bf16,bf16->bf16 broadcast (60 6 > 60) -60
view
linear +60 mm 3x10x12 nt bf16 (72 240 > 60)
pointwise x3 +60t pow 3x10 bf16 (60 > 60) +6t mean 3x10 bf16 (60 > 6) +6 sqrt 3x1 bf16 (6 > 6) -6 +60
    mul 3x10 bf16,bf16->bf16 broadcast (60 6 > 60) -60
matmul +18 mm 3x3x10 nt bf16 (60 60 > 18) +18t mul 3x3 bf16,bf16->bf16 broadcast (18 2 > 18) +24
    arange 1x3 int64 (> 24)
view; view
[forward head.loss]
cross_entropy +18 log_softmax 3x3 bf16 (18 > 18) +2t +2 nll_loss 3x3 bf16 (18 24 > 2)
[forward head]
contiguous +18t copy 3x3 bf16 transposed (18 > 18)
view; view
[forward head.loss]
cross_entropy +18 log_softmax 3x3 bf16 (18 > 18) +2t +2 nll_loss 3x3 bf16 (18 24 > 2)
[forward head]
pointwise +2t add 1x1 bf16,bf16->bf16 (2 2 > 2)
loss_division +2t div 1x1 bf16 (2 > 2) -2 -2 -18 -2 -18
[forward]
loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
backward_call +2t fill 1x1 bf16 (> 2)
backward_first x40
pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head]
pointwise_backward +2t div 1x1 bf16 (2 > 2) -2
add_backward
[backward head.loss]
nll_backward +18t nll_loss_backward 3x3 bf16 (2 24 > 18) -2
log_softmax_backward +18t log_softmax_backward 3x3 bf16 (18 18 > 18) -18 -18
view_backward; view_backward; view_backward
nll_backward +18t nll_loss_backward 3x3 bf16 (2 24 > 18) -2 -24 -2
log_softmax_backward +18t log_softmax_backward 3x3 bf16 (18 18 > 18) -18 -18
view_backward
fan_in_add +18t add 3x3 bf16,bf16->bf16 strided (18 18 > 18) -18 -18
[backward head]
pointwise_backward +18t mul 3x3 bf16,bf16->bf16 strided (18 18 > 18) +18t
    mul 3x3 bf16,bf16->bf16 broadcast (18 2 > 18) +2g sum 1x9 bf16 (18 > 2) -18 -18 -18
accumulate_grad
mm_backward +60t mm 3x10x3 nn bf16 (18 60 > 60) +60t mm 3x10x3 tn bf16 (18 60 > 60) -18 -60 -60
view_backward
pointwise_backward +60t mul 3x10 bf16,bf16->bf16 (60 60 > 60) +60t mul 3x10 bf16,bf16->bf16 broadcast (60 6 > 60) +6t
    sum 3x10 bf16 cols (60 > 6) -60 -60
pointwise_backward +6t pow 3x1 bf16 (6 > 6) +6t scale 3x1 bf16 (6 > 6) +6t mul 3x1 bf16,bf16->bf16 (6 6 > 6) -6 -6 -6
    -6
pointwise_backward +60t div 3x10 bf16 strided (6 > 60) -6
pointwise_backward +60t copy 1x30 bf16 (60 > 60) +60t scale 3x10 bf16 (60 > 60) +60t
    mul 3x10 bf16,bf16->bf16 (60 60 > 60) -60 -60 -60 -60
fan_in_add add_ 3x10 bf16,bf16->bf16 (60 60 > 60) -60
mm_backward +240g mm 10x12x3 tn bf16 (60 72 > 240) +72t mm 3x12x10 nn bf16 (60 240 > 72) -60 -360
view_backward; accumulate_grad
pointwise_backward +360t fill 15x12 bf16 (> 360) copy 3x12 bf16 permuted (72 > 360) -72
pointwise_backward +60t mul 3x10 bf16,bf16->bf16 (60 60 > 60) +60t mul 3x10 bf16,bf16->bf16 broadcast (60 6 > 60) +6t
    sum 3x10 bf16 cols (60 > 6) -60 -60
pointwise_backward +6t pow 3x1 bf16 (6 > 6) +6t scale 3x1 bf16 (6 > 6) +6t mul 3x1 bf16,bf16->bf16 (6 6 > 6) -6 -6 -6
    -6
pointwise_backward +60t div 3x10 bf16 strided (6 > 60) -6
pointwise_backward +60t copy 1x30 bf16 (60 > 60) +60t scale 3x10 bf16 (60 > 60) +60t
    mul 3x10 bf16,bf16->bf16 (60 60 > 60) -60 -60 -60 -60
fan_in_add add_ 3x10 bf16,bf16->bf16 (60 60 > 60) -60
mm_backward +240g mm 10x12x3 tn bf16 (60 72 > 240) +72t mm 3x12x10 nn bf16 (60 240 > 72) -60 -720
view_backward; accumulate_grad
pointwise_backward +720t fill 30x12 bf16 (> 720) copy 3x12 bf16 permuted (72 > 720) -72
[backward decoder.final_norm]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward decoder.layers.0.feed_forward]
addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -600
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +600t gelu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
view_backward
addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480g mm 20x12x15 tn bf16 (600 360 > 480) +40g
    sum 15x20 bf16 rows (600 > 40) -600 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward decoder.layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward decoder.layers.0.attention]
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -360 -360 -360 -120
    -360 -8 -16
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
[backward decoder.layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad
[backward decoder.embeddings]
embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
accumulate_grad
[backward encoder.final_norm]
layer_norm_backward +720t +24g +24g native_layer_norm_backward 30x12 bf16 (720 720 24 120 120 > 720 24 24) -720 -720
    -120 -120
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward encoder.layers.0.feed_forward]
addmm_backward +1200t mm 30x20x12 nn bf16 (720 480 > 1200) +480g mm 12x20x30 tn bf16 (720 1200 > 480) +24g
    sum 30x12 bf16 rows (720 > 24) -1200
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +1200t gelu_backward 30x20 bf16,bf16->bf16 (1200 1200 > 1200) -1200 -1200
view_backward
addmm_backward +720t mm 30x12x20 nn bf16 (1200 480 > 720) +480g mm 20x12x30 tn bf16 (1200 720 > 480) +40g
    sum 30x20 bf16 rows (1200 > 40) -1200 -720
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward encoder.layers.0]
layer_norm_backward +720t +24g +24g native_layer_norm_backward 30x12 bf16 (720 720 24 120 120 > 720 24 24) -720 -720
    -120 -120
fan_in_add add_ 30x12 bf16,bf16->bf16 (720 720 > 720) -720
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward encoder.layers.0.attention]
addmm_backward +720t mm 30x12x12 nn bf16 (720 288 > 720) +288g mm 12x12x30 tn bf16 (720 720 > 288) +24g
    sum 30x12 bf16 rows (720 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +720t +720t +720t
    flash_attention_backward 3x2x10x6 bf16 (720 720 720 720 720 240 > 720 720 720) -720 -720 -720 -720 -240 -720 -8
    -16
view_backward; view_backward; view_backward
addmm_backward +720t mm 30x12x12 nn bf16 (720 288 > 720) +288g mm 12x12x30 tn bf16 (720 720 > 288) +24g
    sum 30x12 bf16 rows (720 > 24) -720
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +720t mm 30x12x12 nn bf16 (720 288 > 720) +288g mm 12x12x30 tn bf16 (720 720 > 288) +24g
    sum 30x12 bf16 rows (720 > 24) -720
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +720t add 30x12 bf16,bf16->bf16 (720 720 > 720) -720 -720
view_backward; view_backward; view_backward
addmm_backward +720t mm 30x12x12 nn bf16 (720 288 > 720) +288g mm 12x12x30 tn bf16 (720 720 > 288) +24g
    sum 30x12 bf16 rows (720 > 24) -720 -720
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 30x12 bf16,bf16->bf16 (720 720 > 720) -720
[backward encoder.layers.0]
layer_norm_backward +720t +24g +24g native_layer_norm_backward 30x12 bf16 (720 720 24 120 120 > 720 24 24) -720 -720
    -120 -120
fan_in_add add_ 30x12 bf16,bf16->bf16 (720 720 > 720) -720
accumulate_grad; accumulate_grad; view_backward
[backward encoder.embeddings]
view_backward +24g sum 3x12 bf16 rows (72 > 24)
accumulate_grad; view_backward; view_backward
convolution_backward +648t copy 108x3 bf16 transposed (648 > 648) +648t +288g
    conv2d_backward 3x3x6x6 to 12, 2x2 bf16 (648 648 288 > 648 288) +24g sum 12x27 bf16 cols (648 > 24) -648 -720
    -648
accumulate_grad
accumulate_grad -2 -2
per_parameter_zero_grad x43 -24 -288 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24
    -24 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -240 -240 -2
)";

TEST(ComposedPairStep, APairIsCompared) {
  EXPECT_EQ(OddStep(odd_composition("head: contrastive, projection_width: 10, encoder: {input: image, image_size: 6, "
                                    "patch: 2, class_token: true}"))
                .text(),
            kComposedPairStepListing1);
}

}  // namespace
}  // namespace ridgeline
