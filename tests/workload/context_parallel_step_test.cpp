// Sequences that are cut over ranks.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kContextParallelStepListing1[] = R"(
[forward embeddings]
- embedding
[forward positions]
- pointwise x12
[forward layers.0]
- layer_norm_module
[forward layers.0.attention]
- linear
[forward]
+ pointwise x7 +24t arange 1x6 int32 (> 24) +24t arange 1x3 int64 (> 24) +24t add 1x3 int64 (24 > 24) +24t
    add 1x3 int64 (24 > 24) -24 +12t +12t index 1x3 int32,int64->int32 (24 24 > 12)
    index 1x3 int32,int64->int32 (24 24 > 12) +24t cat 3x1 int32 x2 joined (12 12 > 24) -12 -12 -24 -24 -24
+ pointwise +48t index 1x6 int64,int32->int64 (48 24 > 48)
+ pointwise copy 1x6 int64 (48 > 48) -48
+ pointwise +48t index 1x6 int64,int32->int64 (48 24 > 48)
+ pointwise copy 1x6 int64 (48 > 48) -48
+ pointwise +48t index 1x6 int64,int32->int64 (48 24 > 48)
+ pointwise copy 1x6 int64 (48 > 48) -48
+ dtensor_op +48t
+ pointwise copy 1x6 int64 (48 > 48) +48t
+ pointwise copy 1x6 int64 (48 > 48) -48
+ pointwise copy 1x6 int64 (48 > 48) -48
+ pointwise +48t index 1x6 int64,int32->int64 (48 24 > 48)
+ pointwise copy 1x6 int64 (48 > 48) -48
+ pointwise +48t index 1x6 int64,int32->int64 (48 24 > 48)
+ pointwise copy 1x6 int64 (48 > 48) -48
+ pointwise +48t index 1x6 int64,int32->int64 (48 24 > 48)
+ pointwise copy 1x6 int64 (48 > 48) -48
+ dtensor_op +48t
+ pointwise copy 1x6 int64 (48 > 48) +48t
+ pointwise copy 1x6 int64 (48 > 48) -48
+ pointwise copy 1x6 int64 (48 > 48) -48 -24
+ ddp_forward
[forward embeddings]
+ embedding +432 embedding 6 of 17x36 bf16 (1224 48 > 432)
[forward positions]
+ pointwise x12 +24t arange 1x3 int64 (> 24) +12t cast 1x3 int64->fp32 (24 > 12) -24 +12t div 1x3 fp32 (12 > 12) +12t
    pow 1x3 fp32 (12 > 12) +12t reciprocal 1x3 fp32 (12 > 12) +16t arange 1x2 int64 (> 16) +8t
    cast 1x2 int64->fp32 (16 > 8) -16 +24t mul 2x3 fp32,fp32->fp32 broadcast (8 12 > 24) -8 -12 -12 -12 +48t
    cat 2x3 fp32 x2 joined (24 24 > 48) +48t rope 2x6 fp32 (48 > 48) +24 cast 2x6 fp32->bf16 (48 > 24) -48 +48t
    rope 2x6 fp32 (48 > 48) +24 cast 2x6 fp32->bf16 (48 > 24) -48 -12 -24 -48
[forward layers.0]
+ layer_norm_module +432 +24 rms_norm 6x36 bf16 (432 72 > 432 24)
[forward layers.0.attention]
+ linear +432t mm 6x36x36 nt bf16 (432 2592 > 432)
- linear
+ linear +144t mm 6x12x36 nt bf16 (432 864 > 144)
- linear
+ linear +144 mm 6x12x36 nt bf16 (432 864 > 144)
- concatenate
+ concatenate +432t mul 36x6 bf16,bf16->bf16 broadcast (432 24 > 432) +216t scale 36x3 bf16 strided (216 > 216) +432t
    cat 36x3 bf16 x2 joined (216 216 > 432) -216 +432t mul 18x12 bf16,bf16->bf16 rows (432 24 > 432) -432 +432
    add 36x6 bf16,bf16->bf16 strided (432 432 > 432) -432 -432
- concatenate; attention_fused
+ concatenate +144t mul 12x6 bf16,bf16->bf16 broadcast (144 24 > 144) +72t scale 12x3 bf16 strided (72 > 72) +144t
    cat 12x3 bf16 x2 joined (72 72 > 144) -72 +144t mul 6x12 bf16,bf16->bf16 rows (144 24 > 144) -144 +144
    add 12x6 bf16,bf16->bf16 strided (144 144 > 144) -144 -144 -432 -144
+ dtensor_op x69
+ contiguous +144t copy 12x6 bf16 permuted (144 > 144)
+ contiguous +144t copy 12x6 bf16 permuted (144 > 144)
+ view; view
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) +864t
+ collective event0 wait0@1 all_gather 864 bytes bf16, 3 ranks context@1 (288 > 864) event1@1
+ attention_fused +432t +144t +16t +8t flash_attention 3x6x2x6 causal bf16 kv2 (432 144 144 > 432 144)
+ cast +864t cast 36x6 bf16->fp32 (432 > 864)
+ view
+ view x4 wait1@0 -288 -144 -144
+ view; view
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) -288
+ view x2
+ attention_fused +432t +144t +16t +8t flash_attention 3x6x2x6 bf16 kv2 keys1 (432 72 72 > 432 144) -8 -16 -432
+ cast +864t cast 36x6 bf16->fp32 (432 > 864)
+ view
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144)
+ pointwise x2 +144t pointwise 36x1 fp32 (144 > 144) -144
+ pointwise +864t add 36x6 fp32,fp32->fp32 (864 864 > 864) +864t mul 36x6 fp32,fp32->fp32 strided (144 864 > 864)
    -864 -144
+ pointwise +864t add 36x6 fp32,fp32->fp32 strided (864 864 > 864) -864
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144)
+ pointwise +144t pointwise 36x1 fp32 (144 > 144) -144
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144) -144 -144 -864 -864
+ view x4; view x2
+ attention_fused +432t +144t +16 +8 flash_attention 3x6x2x6 bf16 kv2 keys1 (432 72 72 > 432 144) -8 -16 -432 -144
+ cast +864t cast 36x6 bf16->fp32 (432 > 864)
+ view
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144)
+ pointwise x2 +144t pointwise 36x1 fp32 (144 > 144) -144
+ pointwise +864t add 36x6 fp32,fp32->fp32 (864 864 > 864) +864t mul 36x6 fp32,fp32->fp32 strided (144 864 > 864)
    -864 -144
+ pointwise +864t add 36x6 fp32,fp32->fp32 strided (864 864 > 864) -864
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144)
+ pointwise +144t pointwise 36x1 fp32 (144 > 144) -144
+ pointwise +144 add 36x1 fp32,fp32->fp32 (144 144 > 144) -144 -144 -864 -864
+ cast +432 cast 36x6 fp32->bf16 (864 > 432) -864 -864 -144 -432
- linear
[forward layers.0]
- pointwise; layer_norm_module
[forward layers.0.feed_forward]
- linear; pointwise; linear; pointwise; linear
[forward layers.0]
- pointwise
[forward final_norm]
- layer_norm_module
[forward layers.0.attention]
+ linear +432t mm 6x36x36 nt bf16 (432 2592 > 432)
[forward layers.0]
+ pointwise +432 add 6x36 bf16,bf16->bf16 (432 432 > 432) -432
+ layer_norm_module +432 +24 rms_norm 6x36 bf16 (432 72 > 432 24)
[forward layers.0.feed_forward]
+ linear +240 mm 6x20x36 nt bf16 (432 1440 > 240)
+ pointwise +240 silu 6x20 bf16 (240 > 240)
+ linear +240 mm 6x20x36 nt bf16 (432 1440 > 240)
+ pointwise +240 mul 6x20 bf16,bf16->bf16 (240 240 > 240)
+ linear +432t mm 6x36x20 nt bf16 (240 1440 > 432)
[forward layers.0]
+ pointwise +432 add 6x36 bf16,bf16->bf16 (432 432 > 432) -432
[forward final_norm]
+ layer_norm_module +432 +24 rms_norm 6x36 bf16 (432 72 > 432 24)
[forward head]
- linear
+ linear +204t mm 6x17x36 nt bf16 (432 1224 > 204) +408t cast 6x17 bf16->fp32 (204 > 408)
[forward head.loss]
- cross_entropy
+ cross_entropy +408 log_softmax 6x17 fp32 (408 > 408) +4t +4 nll_loss 6x17 fp32 (408 48 > 4) -408 -204
[backward head.loss]
- nll_backward; log_softmax_backward
+ nll_backward +408t nll_loss_backward 6x17 fp32 (4 48 > 408) -4 -4
+ log_softmax_backward +408t log_softmax_backward 6x17 fp32 (408 408 > 408) -408 -408
- cast_backward
+ cast_backward +204t cast 6x17 fp32->bf16 (408 > 204) -408
[backward head]
- mm_backward
+ mm_backward +1224g mm 17x36x6 tn bf16 (204 432 > 1224) +432t mm 6x36x17 nn bf16 (204 1224 > 432) -204 -432
+ ddp_hook scale 17x36 bf16 (1224 > 1224)
[backward final_norm]
- layer_norm_backward
+ layer_norm_backward +432t +72g rms_norm_backward 6x36 bf16 (432 432 72 24 > 432 72) -432 -432 -24
+ ddp_hook scale 1x36 bf16 (72 > 72)
[backward layers.0.feed_forward]
- mm_backward
+ mm_backward +1440g mm 36x20x6 tn bf16 (432 240 > 1440) +240t mm 6x20x36 nn bf16 (432 1440 > 240) -240
- pointwise_backward
+ ddp_hook scale 36x20 bf16 (1440 > 1440)
+ pointwise_backward +240t mul 6x20 bf16,bf16->bf16 (240 240 > 240) +240t mul 6x20 bf16,bf16->bf16 (240 240 > 240)
    -240 -240 -240
- mm_backward
+ mm_backward +1440g mm 20x36x6 tn bf16 (240 432 > 1440) +432t mm 6x36x20 nn bf16 (240 1440 > 432) -240
- pointwise_backward
+ ddp_hook scale 20x36 bf16 (1440 > 1440)
+ pointwise_backward +240t silu_backward 6x20 bf16,bf16->bf16 (240 240 > 240) -240 -240
- mm_backward
+ mm_backward +1440g mm 20x36x6 tn bf16 (240 432 > 1440) +432t mm 6x36x20 nn bf16 (240 1440 > 432) -240 -432
- fan_in_add
+ fan_in_add +432t add 6x36 bf16,bf16->bf16 (432 432 > 432) -432 -432
[backward layers.0]
- layer_norm_backward; fan_in_add
[backward layers.0.feed_forward]
+ ddp_hook scale 20x36 bf16 (1440 > 1440)
[backward layers.0]
+ layer_norm_backward +432t +72g rms_norm_backward 6x36 bf16 (432 432 72 24 > 432 72) -432 -432 -24
+ fan_in_add add_ 6x36 bf16,bf16->bf16 (432 432 > 432) -432
+ ddp_hook scale 1x36 bf16 (72 > 72)
[backward layers.0.attention]
- mm_backward
+ mm_backward +2592g mm 36x36x6 tn bf16 (432 432 > 2592) +432t mm 6x36x36 nn bf16 (432 2592 > 432)
+ ddp_hook scale 36x36 bf16 (2592 > 2592)
- attention_fused_backward
+ attention_fused_backward; dtensor_op_backward x117
+ pointwise +864t fill 36x6 fp32 (> 864)
+ pointwise +288t fill 12x6 fp32 (> 288)
+ pointwise +288t fill 12x6 fp32 (> 288)
+ contiguous +144t copy 12x6 bf16 permuted (144 > 144)
+ contiguous +144t copy 12x6 bf16 permuted (144 > 144)
+ view; view
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) +864t
+ collective event2 wait2@1 all_gather 864 bytes bf16, 3 ranks context@1 (288 > 864) event3@1
+ attention_fused +432t +144t +144t
    flash_attention_backward 3x6x2x6 causal bf16 kv2 (432 432 144 144 432 144 > 432 144 144)
+ pointwise add_ 12x6 fp32,bf16->fp32 strided (288 144 > 288)
+ pointwise add_ 12x6 fp32,bf16->fp32 strided (288 144 > 288)
+ contiguous +288t copy 12x6 fp32 permuted (288 > 288)
+ contiguous +288t copy 12x6 fp32 permuted (288 > 288)
+ concatenate +576t cat 1x72 fp32 x2 joined (288 288 > 576) -288 -288 +576t
+ collective event4 wait4@1 send_recv 576 bytes fp32, 3 ranks context@1 (576 > 576) event5@1
+ pointwise add_ 36x6 fp32,bf16->fp32 (864 432 > 864)
+ view x4 wait3@0 -144 -144
+ view; view
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) -288
+ view x2
+ attention_fused +432t +72t +72t flash_attention_backward 3x6x2x6 bf16 kv2 keys1 (432 432 72 72 432 144 > 432 72 72)
    -432 -144 -144
+ view x4 wait5@0 -576 -288 -288
+ pointwise add_ 6x6 fp32,bf16->fp32 strided (144 72 > 144)
+ view
+ concatenate +288t cat 6x6 fp32 x2 joined strided (144 144 > 288)
+ pointwise add_ 6x6 fp32,bf16->fp32 strided (144 72 > 144)
+ view
+ concatenate +288t cat 6x6 fp32 x2 joined strided (144 144 > 288)
+ view; view
+ concatenate +576t cat 1x72 fp32 x2 joined (288 288 > 576) +576t -576
+ collective event6 wait6@1 send_recv 576 bytes fp32, 3 ranks context@1 (576 > 576) event7@1
+ pointwise add_ 36x6 fp32,bf16->fp32 (864 432 > 864)
+ view x4; view x2
+ attention_fused +432t +72t +72t flash_attention_backward 3x6x2x6 bf16 kv2 keys1 (432 432 72 72 432 144 > 432 72 72)
    -432 -72 -72
+ view x4 wait7@0 -576 -288 -288
+ pointwise add_ 6x6 fp32,bf16->fp32 strided (144 72 > 144)
+ view
+ concatenate +288t cat 6x6 fp32 x2 joined strided (144 144 > 288)
+ pointwise add_ 6x6 fp32,bf16->fp32 strided (144 72 > 144)
+ view
+ concatenate +288t cat 6x6 fp32 x2 joined strided (144 144 > 288)
+ view; view
+ concatenate +576t cat 1x72 fp32 x2 joined (288 288 > 576) +576t -576
+ collective event8 wait8@1 send_recv 576 bytes fp32, 3 ranks context@1 (576 > 576) event9@1
+ pointwise add_ 36x6 fp32,bf16->fp32 (864 432 > 864)
+ cast +432t cast 36x6 fp32->bf16 (864 > 432) -288 -288 wait9@0 -576
+ cast +288t cast 1x144 fp32->bf16 (576 > 288)
+ view x4 -288 -72 -72 -432 -576 -864 -864 -432 -144 -432 -144 -144 -432 -8 -16
- pointwise_backward
+ pointwise_backward +144t mul 6x12 bf16,bf16->bf16 rows (144 24 > 144)
- pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add; pointwise_backward; fan_in_add
+ pointwise_backward +72t scale 12x3 bf16 strided (72 > 72)
+ pointwise_backward +144t fill 12x6 bf16 (> 144) copy 12x3 bf16 permuted (72 > 144) -72
+ pointwise_backward +144t fill 12x6 bf16 (> 144) copy 12x3 bf16 permuted (72 > 144) -144
+ fan_in_add add_ 12x6 bf16,bf16->bf16 (144 144 > 144) -144
+ pointwise_backward +144t mul 6x12 bf16,bf16->bf16 rows (144 24 > 144)
+ fan_in_add add_ 12x6 bf16,bf16->bf16 (144 144 > 144) -144
- pointwise_backward
+ pointwise_backward +432t mul 36x6 bf16,bf16->bf16 broadcast (432 24 > 432) -24
- pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add; pointwise_backward; fan_in_add
+ pointwise_backward +216t scale 36x3 bf16 strided (216 > 216)
+ pointwise_backward +432t fill 36x6 bf16 (> 432) copy 36x3 bf16 permuted (216 > 432) -216
+ pointwise_backward +432t fill 36x6 bf16 (> 432) copy 36x3 bf16 permuted (216 > 432) -432
+ fan_in_add add_ 36x6 bf16,bf16->bf16 (432 432 > 432) -432
+ pointwise_backward +432t mul 36x6 bf16,bf16->bf16 broadcast (432 24 > 432) -432 -24
+ fan_in_add add_ 36x6 bf16,bf16->bf16 strided (432 432 > 432) -432
+ view_backward_copy +144t copy 12x6 bf16 permuted (144 > 144) -288
- mm_backward
+ mm_backward +864g mm 12x36x6 tn bf16 (144 432 > 864) +432t mm 6x36x12 nn bf16 (144 864 > 432) -144
+ ddp_hook scale 12x36 bf16 (864 > 864)
- view_backward_copy
+ view_backward_copy +144t copy 12x6 bf16 permuted (144 > 144) -144
- mm_backward
+ mm_backward +864g mm 12x36x6 tn bf16 (144 432 > 864) +432t mm 6x36x12 nn bf16 (144 864 > 432) -144
- fan_in_add
+ fan_in_add +432t add 6x36 bf16,bf16->bf16 (432 432 > 432) -432 -432
+ ddp_hook scale 12x36 bf16 (864 > 864)
- view_backward_copy
+ view_backward_copy +432t copy 36x6 bf16 permuted (432 > 432) -432
- mm_backward
+ mm_backward +2592g mm 36x36x6 tn bf16 (432 432 > 2592) +432t mm 6x36x36 nn bf16 (432 2592 > 432) -432 -432
- fan_in_add
+ fan_in_add add_ 6x36 bf16,bf16->bf16 (432 432 > 432) -432
[backward layers.0]
- layer_norm_backward; fan_in_add
[backward layers.0.attention]
+ ddp_hook scale 36x36 bf16 (2592 > 2592)
[backward layers.0]
+ layer_norm_backward +432t +72g rms_norm_backward 6x36 bf16 (432 432 72 24 > 432 72) -432 -432 -24
+ fan_in_add add_ 6x36 bf16,bf16->bf16 (432 432 > 432) -432
[backward embeddings]
- embedding_backward; accumulate_grad
[backward layers.0]
+ ddp_hook scale 1x36 bf16 (72 > 72)
[backward embeddings]
+ embedding_backward +1224g embedding_dense_backward 6 of 17x36 bf16 (432 48 > 1224) -432
+ accumulate_grad
+ ddp_hook scale 17x36 bf16 (1224 > 1224)
+ collective event10 wait10@2 all_reduce 13896 bytes bf16, 3 ranks data@2 (13896 > 13896) event11@2 wait11@0
[backward]
+ ddp_copy_back copy 1x612 bf16 (1224 > 1224)
+ ddp_copy_back copy 1x36 bf16 (72 > 72)
+ ddp_copy_back copy 1x720 bf16 (1440 > 1440)
+ ddp_copy_back copy 1x720 bf16 (1440 > 1440)
+ ddp_copy_back copy 1x720 bf16 (1440 > 1440)
+ ddp_copy_back copy 1x36 bf16 (72 > 72)
+ ddp_copy_back copy 1x1296 bf16 (2592 > 2592)
+ ddp_copy_back copy 1x432 bf16 (864 > 864)
+ ddp_copy_back copy 1x432 bf16 (864 > 864)
+ ddp_copy_back copy 1x1296 bf16 (2592 > 2592)
+ ddp_copy_back copy 1x36 bf16 (72 > 72)
+ ddp_copy_back copy 1x612 bf16 (1224 > 1224) -4 -4
)";

TEST(ContextParallelStep, KeysGoAroundTheRanks) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.model.plain = true;
                  step.model.fused_norms = true;
                })
                .changed([](OddStep& step) {
                  step.training.sequence_length = 6;
                  step.training.parallel.context = 3;
                }),
            kContextParallelStepListing1);
}

TEST(ContextParallelStep, OrNeighbourByNeighbour) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.model.plain = true;
                  step.model.fused_norms = true;
                })
                .but([](OddStep& step) {
                  step.training.sequence_length = 6;
                  step.training.parallel.context = 3;
                })
                .changed([](OddStep& step) { step.training.parallel.rotation = ContextRotation::all_to_all; }),
            R"(
[forward layers.0.attention]
- concatenate; collective
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) +288t
+ collective event0 wait0@1 send_recv 288 bytes bf16, 3 ranks context@1 (288 > 288) event1@1
- concatenate
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) +288t
+ collective event2 wait2@1 send_recv 288 bytes bf16, 3 ranks context@1 (288 > 288) event3@1
- view x4
+ view x4 wait3@0 -288 -288
- cast
+ cast +432 cast 36x6 fp32->bf16 (864 > 432) -864 -288 -144 -432
[backward layers.0.attention]
- concatenate; collective
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) +288t
+ collective event4 wait4@1 send_recv 288 bytes bf16, 3 ranks context@1 (288 > 288) event5@1
- collective
+ collective event6 wait6@1 send_recv 576 bytes fp32, 3 ranks context@1 (576 > 576) event7@1
- view x4
+ view x4 wait5@0 -144 -144
- concatenate
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) -288 +288t
+ collective event8 wait8@1 send_recv 288 bytes bf16, 3 ranks context@1 (288 > 288) event9@1
- view x4
+ view x4 wait7@0 -576 -288 -288
- collective
+ collective event10 wait10@1 send_recv 576 bytes fp32, 3 ranks context@1 (576 > 576) event11@1
- view x4
+ view x4 wait9@0 -288
- view x4
+ view x4 wait11@0 -576 -288 -288
- collective
+ collective event12 wait12@1 send_recv 576 bytes fp32, 3 ranks context@1 (576 > 576) event13@1
- cast
+ cast +432t cast 36x6 fp32->bf16 (864 > 432) -288 -288 wait13@0 -576
- view x4
+ view x4 -288 -72 -72 -432 -576 -288 -864 -432 -144 -432 -144 -144 -432 -8 -16
[backward embeddings]
- collective
+ collective event14 wait14@2 all_reduce 13896 bytes bf16, 3 ranks data@2 (13896 > 13896) event15@2 wait15@0
)");
}

}  // namespace
}  // namespace ridgeline
