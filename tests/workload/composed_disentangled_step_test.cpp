// Disentangled positions: contents and distances score each other.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedDisentangledStepListing1[] = R"(
[forward embeddings]
embedding +360 embedding 15 of 17x12 bf16 (408 120 > 360)
[forward positions]
pointwise x18 +40t arange 1x5 int64 (> 40) +40t arange 1x5 int64 (> 40) +200t
    add 5x5 int64,int64->int64 rows (40 40 > 200) +200t pointwise 5x5 int64 (200 > 200) +100t
    div 5x5 int64->fp32 (200 > 100) -200 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 int64,fp32->fp32 (200 100 > 100) +200t cast 5x5 fp32->int64 (100 > 200) -100 -100 -200 -40 -40
    +120t fill 3x5 int64 (> 120) +600t mul 15x5 int64 broadcast (120 > 600) -120
[forward layers.0]
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.attention]
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
contiguous +360 copy 30x6 bf16 permuted (360 > 360)
view -360
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
contiguous +360 copy 30x6 bf16 permuted (360 > 360)
view -360
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
contiguous +360 copy 30x6 bf16 permuted (360 > 360)
view -360
pointwise x3 +360 div 36x5 bf16 (360 > 360) +300t bmm 6x 5x5x6 nt bf16 (360 360 > 300)
dropout_off
linear +192t addmm 8x12x12 nt bf16 (192 288 24 > 192)
view; transpose
contiguous +192t copy 16x6 bf16 permuted (192 > 192)
view -192
contiguous +576 copy 48x6 bf16 permuted (192 > 576) -192
linear +192t addmm 8x12x12 nt bf16 (192 288 24 > 192)
view; transpose
contiguous +192t copy 16x6 bf16 permuted (192 > 192)
view -192
contiguous +576 copy 48x6 bf16 permuted (192 > 576) -192
pointwise x5 +480 bmm 6x 5x8x6 nt bf16 (360 576 > 480) +200t add 5x5 int64 (200 > 200) +200 add 5x5 int64 (200 > 200)
    -200 +300t gather 6x25 bf16,int64->bf16 rows (480 200 > 300) +300t div 30x5 bf16 (300 > 300) +300t
    add 30x5 bf16 (300 > 300) -300 -300
pointwise x6 +480 bmm 6x 5x8x6 nt bf16 (360 576 > 480) +200t add 5x5 int64 (200 > 200) +200t
    add 5x5 int64 (200 > 200) -200 +200 add 5x5 int64 (200 > 200) -200 +300t
    gather 6x25 bf16,int64->bf16 rows (480 200 > 300) +300t div 30x5 bf16 (300 > 300) -300
pointwise +300t add 30x5 bf16,bf16->bf16 strided (300 300 > 300) -300 -300
pointwise +300t add 30x5 bf16,bf16->bf16 (300 300 > 300) -300 -300
view
pointwise x2 +75t cast 15x5 int64->bool (600 > 75) +75 eq 15x5 bool (75 > 75)
masked_fill +300t masked_fill 30x5 bf16,bool->bf16 broadcast (300 75 > 300) -300 -75
softmax +300 softmax 30x5 bf16 (300 > 300)
dropout_off; view
matmul +360t bmm 6x 5x6x5 nn bf16 (300 360 > 360)
view
contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
view
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -300
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.feed_forward]
linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t addmm 15x12x20 nt bf16 (600 480 24 > 360)
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -200 -600
[forward final_norm]
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
linear +510t mm 15x17x12 nt bf16 (360 408 > 510) +1020t cast 15x17 bf16->fp32 (510 > 1020)
pointwise x4 +144t fill 3x6 int64 (> 144) copy 3x5 int64 permuted (120 > 144) +120
    copy 3x5 int64 permuted (120 > 120)
view; view
[forward head.loss]
cross_entropy +1020 log_softmax 15x17 fp32 (1020 > 1020) +4t +4 nll_loss 15x17 fp32 (1020 120 > 4) -1020 -144 -510
[forward]
loss_division +4 div 1x1 fp32 (4 > 4) -4
[backward]
backward_call +4t fill 1x1 fp32 (> 4)
backward_first x40
pointwise_backward +4t div 1x1 fp32 (4 > 4)
[backward head.loss]
nll_backward +1020t nll_loss_backward 15x17 fp32 (4 120 > 1020) -4 -120 -4
log_softmax_backward +1020t log_softmax_backward 15x17 fp32 (1020 1020 > 1020) -1020 -1020
view_backward
[backward head]
cast_backward +510t cast 15x17 fp32->bf16 (1020 > 510) -1020
view_backward
mm_backward +408t mm 17x12x15 tn bf16 (510 360 > 408) +360t mm 15x12x17 nn bf16 (510 408 > 360) -510 -360
view_backward; view_backward
[backward final_norm]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.0.feed_forward]
addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -600
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +600t gelu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
view_backward
addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480g mm 20x12x15 tn bf16 (600 360 > 480) +40g
    sum 15x20 bf16 rows (600 > 40) -600 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.0.attention]
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward;
    view_backward
view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
bmm_backward +360t bmm 6x 5x6x5 tn bf16 (300 360 > 360) +300t bmm 6x 5x5x6 nt bf16 (360 360 > 300) -360 -360
view_backward
softmax_backward +300t +300t softmax_backward 30x5 bf16 (300 300 > 300) -300 -300 -300
masked_fill_backward +300t masked_fill 30x5 bf16,bool->bf16 broadcast (300 75 > 300) -300 -75
view_backward; add_backward; add_backward
pointwise_backward +300t div 30x5 bf16 (300 > 300)
view_backward
pointwise_backward +480t fill 30x8 bf16 (> 480) +300t gather 6x25 int64,bf16->bf16 strided (200 300 > 300) -300 -300
    -200 -480
bmm_backward +576t bmm 6x 6x8x5 tn bf16 (360 480 > 576) +360t bmm 6x 5x6x8 nn bf16 (480 576 > 360) -480 -576 -360
view_backward; add_backward
pointwise_backward +300t div 30x5 bf16 (300 > 300)
pointwise_backward +480t fill 30x8 bf16 (> 480) +300t gather 6x25 int64,bf16->bf16 rows (200 300 > 300) -300 -300
    -200 -480
bmm_backward +576t bmm 6x 6x8x5 tn bf16 (360 480 > 576) +360t bmm 6x 5x6x8 nn bf16 (480 576 > 360) -480 -576
view_backward
pointwise_backward +192t +576t copy 48x6 bf16 transposed (576 > 576) sum 3x96 bf16 rows (576 > 192) -576 -576
view_backward; view_backward; view_backward; view_backward
view_backward_copy +192t copy 16x6 bf16 permuted (192 > 192) -192
view_backward
addmm_backward +192t mm 8x12x12 nn bf16 (192 288 > 192) +288g mm 12x12x8 tn bf16 (192 192 > 288) +24g
    sum 8x12 bf16 rows (192 > 24) -192
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +192t +576t copy 48x6 bf16 transposed (576 > 576) sum 3x96 bf16 rows (576 > 192) -576 -576
view_backward; view_backward; view_backward; view_backward
view_backward_copy +192t copy 16x6 bf16 permuted (192 > 192) -192
view_backward
addmm_backward +192t mm 8x12x12 nn bf16 (192 288 > 192) +288g mm 12x12x8 tn bf16 (192 192 > 288) +24g
    sum 8x12 bf16 rows (192 > 24) -192
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +192g add 8x12 bf16,bf16->bf16 (192 192 > 192) -192 -192
view_backward; accumulate_grad
bmm_backward +360t bmm 6x 6x5x5 tn bf16 (360 300 > 360) +360t bmm 6x 5x6x5 nn bf16 (300 360 > 360) -300 -360 -360
fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
pointwise_backward +360t div 36x5 bf16 (360 > 360) -360
view_backward
fan_in_add add_ 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360
view_backward; view_backward; view_backward; view_backward
view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward;
    view_backward
view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
view_backward; view_backward; view_backward; view_backward
view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad
[backward embeddings]
embedding_backward +408t embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
fan_in_add +408g add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
accumulate_grad -4 -4
per_parameter_zero_grad x24 -408 -192 -288 -24 -288 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24
    -24 -24 -24 -24
)";

TEST(ComposedDisentangledStep, DistancesAreScoredAgainstContents) {
  EXPECT_EQ(OddStep(odd_composition("causal: false, positions: disentangled, position_rows: 8, position_terms: "
                                    "[content-to-position, position-to-content]"))
                .text(),
            kComposedDisentangledStepListing1);
}

constexpr char kComposedDisentangledStepListing2[] = R"(
[backward layers.0.attention]
- addmm_backward; accumulate_grad
+ addmm_backward +192t mm 8x12x12 nn bf16 (192 288 > 192) +288t mm 12x12x8 tn bf16 (192 192 > 288) +24t
    sum 8x12 bf16 rows (192 > 24) -192
- accumulate_grad; addmm_backward; accumulate_grad
+ addmm_backward +192t mm 8x12x12 nn bf16 (192 288 > 192) +288t mm 12x12x8 tn bf16 (192 192 > 288) +24t
    sum 8x12 bf16 rows (192 > 24) -192
- accumulate_grad; addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360
+ fan_in_add +24g add 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -24
+ fan_in_add +288g add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360 -360
+ fan_in_add +24g add 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -24
+ fan_in_add +288g add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288
[backward embeddings]
- per_parameter_zero_grad x24
+ per_parameter_zero_grad x20 -408 -192 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedDisentangledStepListing3[] = R"(
[forward positions]
- pointwise x18
+ pointwise x18 +40t arange 1x5 int64 (> 40) +40t arange 1x5 int64 (> 40) +200t
    add 5x5 int64,int64->int64 rows (40 40 > 200) +200t pointwise 5x5 int64 (200 > 200) +100t
    div 5x5 int64->fp32 (200 > 100) -200 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 int64,fp32->fp32 (200 100 > 100) +200t cast 5x5 fp32->int64 (100 > 200) -100 -100 -200 -40 -40
    +120t fill 3x5 int64 (> 120) +600t mul 15x5 int64 broadcast (120 > 600)
+ layer_norm_module +192 +32 +32 native_layer_norm 8x12 bf16 (192 24 24 > 192 32 32) -120
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +192t mm 8x12x12 nn bf16 (192 288 > 192) +288g mm 12x12x8 tn bf16 (192 192 > 288) +24g
    sum 8x12 bf16 rows (192 > 24) -192 -192
- fan_in_add
+ fan_in_add +192t add 8x12 bf16,bf16->bf16 (192 192 > 192) -192 -192
- accumulate_grad
[backward positions]
+ layer_norm_backward +192g +24g +24g native_layer_norm_backward 8x12 bf16 (192 192 24 32 32 > 192 24 24) -192 -32
    -32
+ accumulate_grad; accumulate_grad; accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x24
+ per_parameter_zero_grad x26 -408 -192 -24 -24 -288 -24 -288 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480
    -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedDisentangledStepListing4[] = R"(
[forward embeddings]
- embedding
+ embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360)
+ pointwise x2 +40t arange 1x5 int64 (> 40) +40 add 1x5 int64 (40 > 40) -40
+ embedding +120t embedding 5 of 7x12 bf16 (168 40 > 120)
+ pointwise +360 add 3x60 bf16,bf16->bf16 rows (360 120 > 360) -120 -360
[backward embeddings]
+ add_backward +120t sum 3x60 bf16 rows (360 > 120)
+ embedding_backward +168g embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120 -40
+ accumulate_grad
- per_parameter_zero_grad x24
+ per_parameter_zero_grad x25 -408 -168 -192 -288 -24 -288 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40
    -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedDisentangledStepListing5[] = R"(
[forward layers.0.attention]
- linear
+ linear +1080t addmm 15x36x12 nt bf16 (360 864 72 > 1080)
+ split
- contiguous; view; linear; transpose
+ pointwise +360t add 30x6 bf16,bf16->bf16 strided (360 24 > 360)
- linear
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360)
- transpose
+ view
+ pointwise +360t add 30x6 bf16,bf16->bf16 strided (360 24 > 360)
- view
+ view -1080 -360
- linear
+ linear +240t addmm 10x12x12 nt bf16 (240 288 24 > 240)
- contiguous; view; contiguous; linear
+ contiguous +240t copy 20x6 bf16 permuted (240 > 240)
+ view -240
+ contiguous +720 copy 60x6 bf16 permuted (240 > 720) -240
+ linear +240t mm 10x12x12 nt bf16 (240 288 > 240)
- contiguous; view; contiguous; pointwise x5; pointwise x6
+ contiguous +240t copy 20x6 bf16 permuted (240 > 240)
+ view -240
+ contiguous +720 copy 60x6 bf16 permuted (240 > 720) -240
+ pointwise x5 +600 bmm 6x 5x10x6 nt bf16 (360 720 > 600) +200t add 5x5 int64 (200 > 200) +200
    add 5x5 int64 (200 > 200) -200 +300t gather 6x25 bf16,int64->bf16 rows (600 200 > 300) +300t
    div 30x5 bf16 (300 > 300) +300t add 30x5 bf16 (300 > 300) -300 -300
+ pointwise x6 +600 bmm 6x 5x10x6 nt bf16 (360 720 > 600) +200t add 5x5 int64 (200 > 200) +200t
    add 5x5 int64 (200 > 200) -200 +200 add 5x5 int64 (200 > 200) -200 +300t
    gather 6x25 bf16,int64->bf16 rows (600 200 > 300) +300t div 30x5 bf16 (300 > 300) -300
[backward layers.0.attention]
- pointwise_backward; bmm_backward
+ pointwise_backward +600t fill 30x10 bf16 (> 600) +300t gather 6x25 int64,bf16->bf16 strided (200 300 > 300) -300
    -300 -200 -600
+ bmm_backward +720t bmm 6x 6x10x5 tn bf16 (360 600 > 720) +360t bmm 6x 5x6x10 nn bf16 (600 720 > 360) -600 -720 -360
- pointwise_backward; bmm_backward
+ pointwise_backward +600t fill 30x10 bf16 (> 600) +300t gather 6x25 int64,bf16->bf16 rows (200 300 > 300) -300 -300
    -200 -600
+ bmm_backward +720t bmm 6x 6x10x5 tn bf16 (360 600 > 720) +360t bmm 6x 5x6x10 nn bf16 (600 720 > 360) -600 -720
- pointwise_backward
+ pointwise_backward +240t +720t copy 60x6 bf16 transposed (720 > 720) sum 3x120 bf16 rows (720 > 240) -720 -720
- view_backward_copy
+ view_backward_copy +240t copy 20x6 bf16 permuted (240 > 240) -240
- addmm_backward; accumulate_grad
+ mm_backward +288g mm 12x12x10 tn bf16 (240 240 > 288) +240t mm 10x12x12 nn bf16 (240 288 > 240) -240
- accumulate_grad; pointwise_backward
+ accumulate_grad
+ pointwise_backward +240t +720t copy 60x6 bf16 transposed (720 > 720) sum 3x120 bf16 rows (720 > 240) -720 -720
- view_backward_copy
+ view_backward_copy +240t copy 20x6 bf16 permuted (240 > 240) -240
- addmm_backward
+ addmm_backward +240t mm 10x12x12 nn bf16 (240 288 > 240) +288g mm 12x12x10 tn bf16 (240 240 > 288) +24g
    sum 10x12 bf16 rows (240 > 24) -240
- fan_in_add
+ fan_in_add +240t add 10x12 bf16,bf16->bf16 (240 240 > 240) -240 -240
+ pointwise_backward +288g fill 12x12 bf16 (> 288) copy 10x12 bf16 (240 > 288) -240
- view_backward; view_backward; view_backward_copy; view_backward; addmm_backward; accumulate_grad
+ add_backward +24g sum 15x12 bf16 rows (360 > 24)
- view_backward; view_backward_copy; view_backward; addmm_backward; accumulate_grad
+ add_backward +24g sum 15x12 bf16 rows (360 > 24)
- view_backward; fan_in_add; view_backward; view_backward
+ split_backward +1080t cat 30x6 bf16 x3 joined (360 360 360 > 1080) -360 -360 -360
- view_backward_copy
+ view_backward_copy +1080t copy 30x18 bf16 permuted (1080 > 1080) -1080
- addmm_backward
+ addmm_backward +360t mm 15x12x36 nn bf16 (1080 864 > 360) +864g mm 36x12x15 tn bf16 (1080 360 > 864) +72g
    sum 15x36 bf16 rows (1080 > 72) -1080 -360
- fan_in_add
[backward embeddings]
- per_parameter_zero_grad x24
+ per_parameter_zero_grad x21 -408 -288 -864 -72 -288 -24 -24 -24 -288 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24
    -24
)";

TEST(ComposedDisentangledStep, TermsAndProjections) {
  EXPECT_EQ(changes_by_keys("shared_position_projection: true",
                            "causal: false, positions: disentangled, position_rows: 8, position_terms: "
                            "[content-to-position, position-to-content]"),
            kComposedDisentangledStepListing2);
  EXPECT_EQ(changes_by_keys("position_norm: true",
                            "causal: false, positions: disentangled, position_rows: 8, position_terms: "
                            "[content-to-position, position-to-content]"),
            kComposedDisentangledStepListing3);
  EXPECT_EQ(changes_by_keys("position_table: true",
                            "causal: false, positions: disentangled, position_rows: 8, position_terms: "
                            "[content-to-position, position-to-content]"),
            kComposedDisentangledStepListing4);
  EXPECT_EQ(changes_by_keys("projection: fused-by-head",
                            "causal: false, positions: disentangled, position_rows: 12, position_terms: "
                            "[content-to-position, position-to-content]"),
            kComposedDisentangledStepListing5);
}

TEST(ComposedDisentangledStep, EitherTermAlone) {
  EXPECT_EQ(
      OddStep(odd_composition(
                  "causal: false, positions: disentangled, position_rows: 8, position_terms: [position-to-content]"))
          .changed([](OddStep& step) {
            step.model = odd_composition(
                "causal: false, positions: disentangled, position_rows: 8, position_terms: [content-to-position]");
          }),
      R"(
[forward layers.0.attention]
- contiguous
+ contiguous +360t copy 30x6 bf16 permuted (360 > 360)
- pointwise x6; pointwise
+ pointwise x5 +480 bmm 6x 5x8x6 nt bf16 (360 576 > 480) +200t add 5x5 int64 (200 > 200) +200
    add 5x5 int64 (200 > 200) -200 +300t gather 6x25 bf16,int64->bf16 rows (480 200 > 300) +300t
    div 30x5 bf16 (300 > 300) +300t add 30x5 bf16 (300 > 300) -300 -300
+ pointwise +300t add 30x5 bf16,bf16->bf16 (300 300 > 300) -300 -300
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -360 -300
[backward layers.0.attention]
- view_backward; pointwise_backward; bmm_backward
+ pointwise_backward +480t fill 30x8 bf16 (> 480) +300t gather 6x25 int64,bf16->bf16 rows (200 300 > 300) -300 -300
    -200 -480
+ bmm_backward +576t bmm 6x 6x8x5 tn bf16 (360 480 > 576) +360t bmm 6x 5x6x8 nn bf16 (480 576 > 360) -480 -576
+ fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
- fan_in_add; view_backward_copy
+ view_backward_copy +360t copy 15x12 bf16 transposed (360 > 360) -360
)");
}

}  // namespace
}  // namespace ridgeline
