// One process with several GPUs: a copy of the network on each, or layers one behind the other.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kOneProcessStepListing1[] = R"(
[forward]
ddp_forward peer_copy 13 bytes int64, 3 ranks data (40 > 40)
concatenate +2992t copy 1x1496 bf16 (408 > 2992)
collective broadcast 2992 bytes bf16, 3 ranks data (2992 > 2992) -2992
optimizer_op x48
[forward embeddings]
embedding x3 +120t embedding 5 of 17x12 bf16 (408 40 > 120) +40 arange 1x5 int64 (> 40)
embedding x3 +120t embedding 5 of 7x12 bf16 (168 40 > 120)
pointwise x3 +120 add 5x12 bf16,bf16->bf16 (120 120 > 120) -120 -120
dropout_off x3
[forward layers.0]
layer_norm x3 +120 +20 +20 native_layer_norm 5x12 bf16 (120 24 24 > 120 20 20)
[forward layers.0.attention]
linear x3 +360 addmm 5x36x12 nt bf16 (120 864 72 > 360)
split x3; view x3; transpose x3; view x3; transpose x3; view x3; transpose x3
attention_fused x3 +120 +40 +16 +8 flash_attention 1x2x5x6 causal bf16 (120 120 120 > 120 40)
transpose x3; view x3; view x3
linear x3 +120t addmm 5x12x12 nt bf16 (120 288 24 > 120)
dropout_off x3
[forward layers.0]
pointwise x3 +120 add 5x12 bf16,bf16->bf16 (120 120 > 120) -120
layer_norm x3 +120 +20 +20 native_layer_norm 5x12 bf16 (120 24 24 > 120 20 20)
[forward layers.0.feed_forward]
linear x3 +200 addmm 5x20x12 nt bf16 (120 480 40 > 200)
pointwise x3 +200 gelu 5x20 bf16 (200 > 200)
linear x3 +120t addmm 5x12x20 nt bf16 (200 480 24 > 120)
dropout_off x3
pointwise x3 +120 add 5x12 bf16,bf16->bf16 (120 120 > 120) -120
[forward final_norm]
layer_norm x3 +120 +20 +20 native_layer_norm 5x12 bf16 (120 24 24 > 120 20 20)
[forward head]
linear x3 +170t mm 5x17x12 nt bf16 (120 408 > 170)
view x3; view x3
[forward head.loss]
cross_entropy x3 +170 log_softmax 5x17 bf16 (170 > 170) +2t +2 nll_loss 5x17 bf16 (170 40 > 2) -170
[forward]
concatenate x3 peer_copy 2 bytes bf16, 3 ranks data (2 > 2)
loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
backward_call +2t fill 1x1 bf16 (> 2)
backward_first x24
pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
nll_backward +170t nll_loss_backward 5x17 bf16 (2 40 > 170) -2 -2
log_softmax_backward +170t log_softmax_backward 5x17 bf16 (170 170 > 170) -170 -170
view_backward; view_backward
[backward head]
mm_backward +408t mm 17x12x5 tn bf16 (170 120 > 408) +120t mm 5x12x17 nn bf16 (170 408 > 120) -170 -120
view_backward; view_backward
[backward final_norm]
layer_norm_backward +120t +24g +24g native_layer_norm_backward 5x12 bf16 (120 120 24 20 20 > 120 24 24) -120 -120 -20
    -20
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.0.feed_forward]
addmm_backward +200t mm 5x20x12 nn bf16 (120 480 > 200) +480g mm 12x20x5 tn bf16 (120 200 > 480) +24g
    sum 5x12 bf16 rows (120 > 24) -200
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +200t gelu_backward 5x20 bf16,bf16->bf16 (200 200 > 200) -200 -200
view_backward
addmm_backward +120t mm 5x12x20 nn bf16 (200 480 > 120) +480g mm 20x12x5 tn bf16 (200 120 > 480) +40g
    sum 5x20 bf16 rows (200 > 40) -200 -120
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0]
layer_norm_backward +120t +24g +24g native_layer_norm_backward 5x12 bf16 (120 120 24 20 20 > 120 24 24) -120 -120 -20
    -20
fan_in_add add_ 5x12 bf16,bf16->bf16 (120 120 > 120) -120
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.0.attention]
addmm_backward +120t mm 5x12x12 nn bf16 (120 288 > 120) +288g mm 12x12x5 tn bf16 (120 120 > 288) +24g
    sum 5x12 bf16 rows (120 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +120t +120t +120t
    flash_attention_backward 1x2x5x6 causal bf16 (120 120 120 120 120 40 > 120 120 120) -120 -360 -40 -120 -8 -16
view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
split_backward +360t cat 5x12 bf16 x3 joined (120 120 120 > 360) -120 -120 -120
view_backward
addmm_backward +120t mm 5x12x36 nn bf16 (360 864 > 120) +864g mm 36x12x5 tn bf16 (360 120 > 864) +72g
    sum 5x36 bf16 rows (360 > 72) -360 -120
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0]
layer_norm_backward +120t +24g +24g native_layer_norm_backward 5x12 bf16 (120 120 24 20 20 > 120 24 24) -120 -120 -20
    -20
fan_in_add add_ 5x12 bf16,bf16->bf16 (120 120 > 120) -120
accumulate_grad; accumulate_grad
[backward embeddings]
add_backward +120t sum 1x60 bf16 rows (120 > 120)
embedding_backward +168g embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120 -40
accumulate_grad
embedding_backward +408t embedding_dense_backward 5 of 17x12 bf16 (120 40 > 408) -120
fan_in_add +408g add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
accumulate_grad
[backward]
concatenate +2992t copy 1x1496 bf16 (408 > 2992) +2992g
collective reduce 2992 bytes bf16, 3 ranks data (2992 > 2992) -2992 -408 -168 -24 -24 -864 -72 -288 -24 -24 -24 -480
    -40 -480 -24 -24 -24 -2 -2
per_parameter_zero_grad x16 -2992
)";

TEST(OneProcessStep, EachGpuGetsACopy) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 3;
                  step.training.parallel.strategy = DataStrategy::dataparallel;
                })
                .text(),
            kOneProcessStepListing1);
}

constexpr char kOneProcessStepListing2[] = R"(
[forward embeddings]
embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360) +40 arange 1x5 int64 (> 40)
embedding +120t embedding 5 of 7x12 bf16 (168 40 > 120)
pointwise +360 add 3x60 bf16,bf16->bf16 rows (360 120 > 360) -360 -120
dropout_off
[forward layers.0]
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.attention]
linear +1080 addmm 15x36x12 nt bf16 (360 864 72 > 1080)
split; view; transpose; view; transpose; view; transpose
attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
transpose; view; view
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.feed_forward]
linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t addmm 15x12x20 nt bf16 (600 480 24 > 360)
dropout_off
pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[forward layers.1]
cast +360@1 event0@1 wait0@0 peer_copy 360 bytes bf16, 2 ranks pipeline (360 > 360) event1 wait1@1
layer_norm +360@1 +60@1 +60@1 native_layer_norm 15x12 bf16@1 (360 24 24 > 360 60 60)
[forward layers.1.attention]
linear +1080@1 addmm 15x36x12 nt bf16@1 (360 864 72 > 1080)
split; view; transpose; view; transpose; view; transpose
attention_fused +360@1 +120@1 +16@1 +8@1 flash_attention 3x2x5x6 causal bf16@1 (360 360 360 > 360 120)
transpose; view; view
linear +360t@1 addmm 15x12x12 nt bf16@1 (360 288 24 > 360)
dropout_off
[forward layers.1]
pointwise +360@1 add 15x12 bf16,bf16->bf16@1 (360 360 > 360) -360
layer_norm +360@1 +60@1 +60@1 native_layer_norm 15x12 bf16@1 (360 24 24 > 360 60 60)
[forward layers.1.feed_forward]
linear +600@1 addmm 15x20x12 nt bf16@1 (360 480 40 > 600)
pointwise +600@1 gelu 15x20 bf16@1 (600 > 600)
linear +360t@1 addmm 15x12x20 nt bf16@1 (600 480 24 > 360)
dropout_off
pointwise +360@1 add 15x12 bf16,bf16->bf16@1 (360 360 > 360) -360 -360
[forward final_norm]
layer_norm +360@1 +60@1 +60@1 native_layer_norm 15x12 bf16@1 (360 24 24 > 360 60 60)
[forward head]
linear +510t@1 mm 15x17x12 nt bf16@1 (360 408 > 510)
view; view
[forward head.loss]
cross_entropy +510@1 log_softmax 15x17 bf16@1 (510 > 510) +2t@1 +2@1 nll_loss 15x17 bf16@1 (510 120 > 2) -510
[forward]
loss_division +2@1 div 1x1 bf16@1 (2 > 2) -2
[backward]
backward_call +2t@1 fill 1x1 bf16@1 (> 2)
backward_first x31
pointwise_backward +2t@1 div 1x1 bf16@1 (2 > 2)
[backward head.loss]
nll_backward +510t@1 nll_loss_backward 15x17 bf16@1 (2 120 > 510) -2 -2
log_softmax_backward +510t@1 log_softmax_backward 15x17 bf16@1 (510 510 > 510) -510 -510
view_backward; view_backward
[backward head]
mm_backward +408g@1 mm 17x12x15 tn bf16@1 (510 360 > 408) +360t@1 mm 15x12x17 nn bf16@1 (510 408 > 360) -510 -360
view_backward; view_backward; accumulate_grad
[backward final_norm]
layer_norm_backward +360t@1 +24g@1 +24g@1 native_layer_norm_backward 15x12 bf16@1 (360 360 24 60 60 > 360 24 24) -360
    -360 -60 -60
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.1.feed_forward]
addmm_backward +600t@1 mm 15x20x12 nn bf16@1 (360 480 > 600) +480g@1 mm 12x20x15 tn bf16@1 (360 600 > 480) +24g@1
    sum 15x12 bf16 rows@1 (360 > 24) -600
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +600t@1 gelu_backward 15x20 bf16,bf16->bf16@1 (600 600 > 600) -600 -600
view_backward
addmm_backward +360t@1 mm 15x12x20 nn bf16@1 (600 480 > 360) +480g@1 mm 20x12x15 tn bf16@1 (600 360 > 480) +40g@1
    sum 15x20 bf16 rows@1 (600 > 40) -600 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.1]
layer_norm_backward +360t@1 +24g@1 +24g@1 native_layer_norm_backward 15x12 bf16@1 (360 360 24 60 60 > 360 24 24) -360
    -360 -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16@1 (360 360 > 360) -360
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.1.attention]
addmm_backward +360t@1 mm 15x12x12 nn bf16@1 (360 288 > 360) +288g@1 mm 12x12x15 tn bf16@1 (360 360 > 288) +24g@1
    sum 15x12 bf16 rows@1 (360 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +360t@1 +360t@1 +360t@1
    flash_attention_backward 3x2x5x6 causal bf16@1 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8
    -16
view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
split_backward +1080t@1 cat 15x12 bf16 x3 joined@1 (360 360 360 > 1080) -360 -360 -360
view_backward
addmm_backward +360t@1 mm 15x12x36 nn bf16@1 (1080 864 > 360) +864g@1 mm 36x12x15 tn bf16@1 (1080 360 > 864) +72g@1
    sum 15x36 bf16 rows@1 (1080 > 72) -1080 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.1]
layer_norm_backward +360t@1 +24g@1 +24g@1 native_layer_norm_backward 15x12 bf16@1 (360 360 24 60 60 > 360 24 24) -360
    -360 -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16@1 (360 360 > 360) -360
accumulate_grad; accumulate_grad
cast_backward +360t event2 wait2@1 peer_copy 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1 wait3@0 -360
add_backward; view_backward
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
    sum 15x12 bf16 rows (360 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8 -16
view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
split_backward +1080t cat 15x12 bf16 x3 joined (360 360 360 > 1080) -360 -360 -360
view_backward
addmm_backward +360t mm 15x12x36 nn bf16 (1080 864 > 360) +864g mm 36x12x15 tn bf16 (1080 360 > 864) +72g
    sum 15x36 bf16 rows (1080 > 72) -1080 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad
[backward embeddings]
add_backward +120t sum 3x60 bf16 rows (360 > 120)
embedding_backward +168g embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120 -40
accumulate_grad
embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
accumulate_grad -2 -2
per_parameter_zero_grad x29 -408 -168 -24 -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -864 -72 -288 -24
    -24 -24 -480 -40 -480 -24 -24 -24 -408
)";

TEST(OneProcessStep, LayersFollowEachOther) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.model.layers = 2;
                  step.training.parallel.split = 2;
                })
                .text(),
            kOneProcessStepListing2);
}

}  // namespace
}  // namespace ridgeline
