// Experts that are spread over ranks.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::odd_composition;

constexpr char kExpertParallelStepListing1[] = R"(
+ ddp_forward
[forward layers.0.experts]
- pointwise x4; pointwise x12; matmul x4; pointwise x2; masked_fill
+ pointwise x4 +240t +120t topk 2 of 15x4 fp32 (240 > 120 240) +120t scale 15x2 fp32 strided (120 > 120) -120 -120
+ view +240t +240t
+ pointwise x2 sort 1x30 int64 2 bits (240 > 240 240) -240
+ pointwise x3 +120t cast 1x30 int64->int32 (240 > 120) +16t fill 1x4 int32 (> 16) pointwise 30x1 int32 (120 > 16)
    -120 +16t
+ collective all_to_all 16 bytes int32, 2 ranks expert (16 > 16)
+ pointwise x3 +32t +32t cat 1x4 int32 x2 joined (16 16 > 32) sum 4x2 int64 cols (32 > 32)
    copy_to_host 1x4 int64 from gpu (32) sync -32 -32
+ pointwise +240 div 1x30 int64 (240 > 240)
+ pointwise +720t index 30x12 bf16,int64->bf16 broadcast (360 240 > 720)
+ tensor_boundary +720t
+ collective all_to_all 720 bytes bf16, 2 ranks expert (720 > 720)
+ pointwise x5 +16t arange 1x2 int64 (> 16) +32t cast 1x4 int64 broadcast (16 > 32) +32t
    cast 1x4 int32->int64 (16 > 32) +240t index 1x30 int64,int64->int64 broadcast (32 32 > 240) -32 -32 -16 +240t
    +240
+ pointwise x2 sort 1x30 int64 1 bits (240 > 240 240) -240
+ pointwise x2 +16t cast 1x2 int32->int64 (16 > 16) +8t cast 1x2 int64->int32 (16 > 8) -16
+ pointwise +720 index 30x12 bf16,int64->bf16 broadcast (720 240 > 720)
+ matmul +420 bmm 2x 15x7x12 nt bf16 (720 336 > 420)
- matmul x4; pointwise x2; masked_fill; pointwise; pointwise
+ matmul +720t bmm 2x 15x12x7 nt bf16 (420 336 > 720)
+ pointwise x3 +240t arange 1x30 int64 (> 240) +240 index 1x30 int64,int64->int64 (240 240 > 240) -240
+ pointwise +720t index 30x12 bf16,int64->bf16 broadcast (720 240 > 720)
+ tensor_boundary +720t
+ collective all_to_all 720 bytes bf16, 2 ranks expert (720 > 720) -720
+ pointwise x3 +240t arange 1x30 int64 (> 240) +240 index 1x30 int64,int64->int64 (240 240 > 240) -240
+ pointwise +720 index 30x12 bf16,int64->bf16 broadcast (720 240 > 720) -240 -16 -16 -720 -720 -240 -8 -720 -720
+ view
+ cast +60 cast 15x2 fp32->bf16 (120 > 60)
+ pointwise +720t mul 30x12 bf16,bf16->bf16 broadcast (720 60 > 720)
+ pointwise +360t sum 30x12 bf16 rows (720 > 360) -120 -240 -720
[backward final_norm]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 1x12 bf16 (24 > 24)
[backward layers.0.experts]
- cast_backward; pointwise_backward; pointwise_backward; cast_backward; masked_fill_backward; bmm_backward
+ pointwise_backward +720t mul 30x12 bf16,bf16->bf16 strided (360 720 > 720) +720t
    mul 30x12 bf16,bf16->bf16 strided (360 60 > 720) +60t sum 30x12 bf16 cols (720 > 60) -720 -60 -720
+ view_backward
+ cast_backward +120t cast 15x2 bf16->fp32 (60 > 120) -60
+ view_backward
+ view_backward_copy +720t copy 30x12 bf16 transposed (720 > 720) -720
+ pointwise_backward +720t fill 30x12 bf16 (> 720) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 30x12 bf16 added (720 240 > 720) -240 -240 -720 -240
+ tensor_boundary_backward +720t
+ collective all_to_all 720 bytes bf16, 2 ranks expert (720 > 720) -720
+ pointwise_backward +720t fill 30x12 bf16 (> 720) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 30x12 bf16 added (720 240 > 720) -240 -240 -720 -240
+ bmm_backward +336g bmm 2x 12x7x15 tn bf16 (720 420 > 336) +420t bmm 2x 15x7x12 nn bf16 (720 336 > 420) -720 -420
- masked_fill_backward; bmm_backward
+ bmm_backward +336g bmm 2x 7x12x15 tn bf16 (420 720 > 336) +720t bmm 2x 15x12x7 nn bf16 (420 336 > 720) -420 -720
- masked_fill_backward; pointwise_backward; view_backward
+ pointwise_backward +720t fill 30x12 bf16 (> 720) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 30x12 bf16 added (720 240 > 720) -240 -240 -720 -240
+ tensor_boundary_backward +720t
+ collective all_to_all 720 bytes bf16, 2 ranks expert (720 > 720) -720
+ ddp_hook scale 4x12 bf16 (96 > 96)
[backward layers.0]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 1x12 bf16 (24 > 24)
[backward layers.0.attention]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 12x12 bf16 (288 > 288)
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 12x12 bf16 (288 > 288)
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 12x12 bf16 (288 > 288)
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 12x12 bf16 (288 > 288)
[backward layers.0]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 1x12 bf16 (24 > 24)
[backward embeddings]
- accumulate_grad; per_parameter_zero_grad x18
+ accumulate_grad
+ ddp_hook scale 17x12 bf16 (408 > 408)
+ collective event0 wait0@2 all_reduce 1896 bytes bf16, 2 ranks data@2 (1896 > 1896) event1@2 wait1@0
[backward]
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x48 bf16 (96 > 96)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x144 bf16 (288 > 288)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x144 bf16 (288 > 288)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x144 bf16 (288 > 288)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x144 bf16 (288 > 288)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x204 bf16 (408 > 408) -4 -4
+ optimizer_op foreach_mul 2 tensors, 336 elements bf16 ()
+ per_parameter_zero_grad x18 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -96 -336 -336 -24 -24 -24 -24
)";

TEST(ExpertParallelStep, TokensGoToTheirExperts) {
  EXPECT_EQ(
      OddStep(odd_composition("experts: 4, experts_per_token: 2, expert_feed_forward: 7, looks_for_documents: false"))
          .changed([](OddStep& step) {
            step.training.parallel.data = 2;
            step.training.parallel.expert = 2;
          }),
      kExpertParallelStepListing1);
}

TEST(ExpertParallelStep, ExpertsMayHavePlaces) {
  EXPECT_EQ(
      OddStep(odd_composition("experts: 4, experts_per_token: 2, expert_feed_forward: 7, looks_for_documents: false"))
          .but([](OddStep& step) {
            step.training.parallel.data = 2;
            step.training.parallel.expert = 2;
          })
          .changed([](OddStep& step) { step.training.parallel.expert_capacity = 1.5; }),
      R"(
[forward layers.0.experts]
- pointwise x3; collective; pointwise x3; pointwise; pointwise; tensor_boundary; collective; pointwise x5;
    pointwise x2; pointwise x2; pointwise; matmul; pointwise; matmul; pointwise x3; pointwise; tensor_boundary;
    collective; pointwise x3; pointwise
+ pointwise x14 +240t index 1x30 int64,int64->int64 (240 240 > 240)
+ pointwise x3 +120t cast 1x30 int64->int32 (240 > 120) +16t fill 1x4 int32 (> 16) pointwise 30x1 int32 (120 > 16)
    -120 +32t cast 1x4 int32->int64 (16 > 32) +32t add 1x4 int64,int32->int64 (32 16 > 32) +240t
    arange 1x30 int64 (> 240) +240t index 1x30 int64,int64->int64 broadcast (32 240 > 240) +240t
    add 1x30 int64,int64->int64 (240 240 > 240) -240 -240 -32 -32 +30t eq 1x30 int64->bool (240 > 30) +240t
    scale 1x30 int64 (240 > 240) +240t add 1x30 int64,int64->int64 (240 240 > 240) +240t
    pointwise 1x30 bool,int64->int64 (30 240 > 240) -240 -240 -30 +392 fill 1x49 int64 (> 392) +240t
    div 1x30 int64 (240 > 240) index 30x1 int64,int64->int64 (240 240 > 392) -240
+ pointwise x2 +24t fill 1x12 bf16 (> 24) +384t cat 1x96 bf16 x2 joined (360 24 > 384) -24
+ embedding +1152t embedding 48 of 16x12 bf16 (384 384 > 1152) -384
+ tensor_boundary +1152t
+ collective all_to_all 1152 bytes bf16, 2 ranks expert (1152 > 1152)
+ transpose
+ contiguous +1152 copy 48x12 bf16 permuted (1152 > 1152)
+ matmul +672 bmm 2x 24x7x12 nt bf16 (1152 336 > 672)
+ pointwise +672 gelu 48x7 bf16 (672 > 672)
+ matmul +1152t bmm 2x 24x12x7 nt bf16 (672 336 > 1152)
+ view; transpose
+ contiguous +1152t copy 48x12 bf16 permuted (1152 > 1152)
+ tensor_boundary +1152t
+ collective all_to_all 1152 bytes bf16, 2 ranks expert (1152 > 1152)
+ pointwise x2 +24t fill 1x12 bf16 (> 24) +1176t cat 1x294 bf16 x2 joined (1152 24 > 1176) -24 -1152 +240
    index 1x30 int64,int64->int64 (240 240 > 240)
+ embedding +720 embedding 30 of 49x12 bf16 (1176 240 > 720) -240 -240 -16 -240 -240 -1152 -1152 -1152 -1152 -1176
+ view
[backward layers.0.experts]
- pointwise_backward; tensor_boundary_backward; collective; pointwise_backward; bmm_backward; accumulate_grad;
    pointwise_backward; bmm_backward; accumulate_grad; pointwise_backward; tensor_boundary_backward; collective;
    pointwise_backward
+ embedding_backward +1176t embedding_dense_backward 30 of 49x12 bf16 (720 240 > 1176) -720 -240
+ view_backward
+ tensor_boundary_backward +1152t
+ collective all_to_all 1152 bytes bf16, 2 ranks expert (1152 > 1152) -1176
+ view_backward; view_backward; view_backward; view_backward
+ view_backward_copy +1152t copy 48x12 bf16 permuted (1152 > 1152) -1152
+ bmm_backward +336t bmm 2x 7x12x24 tn bf16 (672 1152 > 336) +672t bmm 2x 24x7x12 nn bf16 (1152 336 > 672) -1152 -672
+ view_backward
+ accumulate_grad +336g copy 24x7 bf16 transposed (336 > 336) -336
+ pointwise_backward +672t gelu_backward 48x7 bf16,bf16->bf16 (672 672 > 672) -672 -672
+ bmm_backward +336t bmm 2x 12x7x24 tn bf16 (1152 672 > 336) +1152t bmm 2x 24x12x7 nn bf16 (672 336 > 1152) -672
    -1152
+ view_backward
+ accumulate_grad +336g copy 14x12 bf16 transposed (336 > 336) -336
+ view_backward; view_backward; view_backward; view_backward
+ view_backward_copy +1152t copy 48x12 bf16 permuted (1152 > 1152) -1152
+ tensor_boundary_backward +1152t
+ collective all_to_all 1152 bytes bf16, 2 ranks expert (1152 > 1152) -1152
+ embedding_backward +384t embedding_dense_backward 48 of 16x12 bf16 (1152 384 > 384) -1152 -392
+ view_backward
- fan_in_add
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -384 -360
)");
}

constexpr char kExpertParallelStepListing2[] = R"(
[forward layers.0.experts]
- pointwise x3; collective; pointwise x3; pointwise; pointwise; tensor_boundary; collective; pointwise x5;
    pointwise x2; pointwise x2; pointwise; matmul; pointwise
+ pointwise x14 +240t index 1x30 int64,int64->int64 (240 240 > 240)
+ pointwise x3 +120t cast 1x30 int64->int32 (240 > 120) +16t fill 1x4 int32 (> 16) pointwise 30x1 int32 (120 > 16)
    -120 +32t cast 1x4 int32->int64 (16 > 32) +32t add 1x4 int64,int32->int64 (32 16 > 32) +240t
    arange 1x30 int64 (> 240) +240t index 1x30 int64,int64->int64 broadcast (32 240 > 240) +240t
    add 1x30 int64,int64->int64 (240 240 > 240) -240 -240 -32 -32 +30t eq 1x30 int64->bool (240 > 30) +240t
    scale 1x30 int64 (240 > 240) +240t add 1x30 int64,int64->int64 (240 240 > 240) +240t
    pointwise 1x30 bool,int64->int64 (30 240 > 240) -240 -240 -30 +392 fill 1x49 int64 (> 392) +240t
    div 1x30 int64 (240 > 240) index 30x1 int64,int64->int64 (240 240 > 392) -240
+ pointwise x2 +24t fill 1x12 bf16 (> 24) +384t cat 1x96 bf16 x2 joined (360 24 > 384) -24
+ embedding +1152t embedding 48 of 16x12 bf16 (384 384 > 1152) -384
+ tensor_boundary +1152t
+ collective all_to_all 1152 bytes bf16, 2 ranks expert (1152 > 1152)
+ view; transpose
+ contiguous +1152 copy 48x12 bf16 permuted (1152 > 1152)
+ matmul +3840t bmm 2x 24x40x12 nt bf16 (1152 1920 > 3840)
+ view
+ pointwise +3840 add 48x40 bf16,bf16->bf16 broadcast (3840 160 > 3840) -3840
- pointwise; pointwise; matmul; pointwise; pointwise x3; pointwise; tensor_boundary; collective; pointwise x3;
    pointwise
+ pointwise +1920 gelu 48x20 bf16 strided (1920 > 1920)
+ pointwise +1920 mul 48x20 bf16,bf16->bf16 strided (1920 1920 > 1920)
+ matmul +1152t bmm 2x 24x12x20 nt bf16 (1920 960 > 1152)
+ pointwise +1152t add 48x12 bf16,bf16->bf16 broadcast (1152 48 > 1152) -1152
+ view; transpose
+ contiguous +1152t copy 48x12 bf16 permuted (1152 > 1152)
+ tensor_boundary +1152t
+ collective all_to_all 1152 bytes bf16, 2 ranks expert (1152 > 1152)
+ pointwise x2 +24t fill 1x12 bf16 (> 24) +1176t cat 1x294 bf16 x2 joined (1152 24 > 1176) -24 -1152 +240
    index 1x30 int64,int64->int64 (240 240 > 240)
+ embedding +720 embedding 30 of 49x12 bf16 (1176 240 > 720) -240 -240 -16 -240 -240 -1152 -1152 -1152 -1152 -1176
+ view
[backward layers.0.experts]
- pointwise_backward; tensor_boundary_backward; collective; pointwise_backward; add_backward; pointwise_backward;
    accumulate_grad; bmm_backward; accumulate_grad; pointwise_backward; pointwise_backward; split_backward;
    add_backward; pointwise_backward
+ embedding_backward +1176t embedding_dense_backward 30 of 49x12 bf16 (720 240 > 1176) -720 -240
+ view_backward
+ tensor_boundary_backward +1152t
+ collective all_to_all 1152 bytes bf16, 2 ranks expert (1152 > 1152) -1176
+ view_backward; view_backward; view_backward; view_backward
+ view_backward_copy +1152t copy 48x12 bf16 permuted (1152 > 1152) -1152
+ add_backward +48g sum 24x24 bf16 rows (1152 > 48)
+ view_backward
- bmm_backward
+ bmm_backward +960t bmm 2x 20x12x24 tn bf16 (1920 1152 > 960) +1920t bmm 2x 24x20x12 nn bf16 (1152 960 > 1920) -1152
    -1920
+ view_backward
+ accumulate_grad +960g copy 24x20 bf16 transposed (960 > 960) -960
+ pointwise_backward +1920t mul 48x20 bf16,bf16->bf16 (1920 1920 > 1920) +1920t
    mul 48x20 bf16,bf16->bf16 strided (1920 1920 > 1920) -1920 -1920
+ pointwise_backward +1920t gelu_backward 48x20 bf16,bf16->bf16 strided (1920 1920 > 1920) -1920 -3840
+ split_backward +3840t cat 48x20 bf16 x2 joined (1920 1920 > 3840) -1920 -1920
+ add_backward +160g sum 24x80 bf16 rows (3840 > 160)
+ view_backward
- pointwise_backward; tensor_boundary_backward; collective; pointwise_backward
+ bmm_backward +1920t bmm 2x 12x40x24 tn bf16 (1152 3840 > 1920) +1152t bmm 2x 24x12x40 nn bf16 (3840 1920 > 1152)
    -3840 -1152
+ view_backward
+ accumulate_grad +1920g copy 80x12 bf16 transposed (1920 > 1920) -1920
+ view_backward; view_backward; view_backward; view_backward
+ view_backward_copy +1152t copy 48x12 bf16 permuted (1152 > 1152) -1152
+ tensor_boundary_backward +1152t
+ collective all_to_all 1152 bytes bf16, 2 ranks expert (1152 > 1152) -1152
+ embedding_backward +384t embedding_dense_backward 48 of 16x12 bf16 (1152 384 > 384) -1152 -392
+ view_backward
- fan_in_add
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -384 -360
)";

TEST(ExpertParallelStep, BiasesAndGates) {
  EXPECT_EQ(OddStep(odd_composition("experts: 4, expert_bias: true, feed_forward_kind: gated"))
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.parallel.expert = 2;
                })
                .changed([](OddStep& step) { step.training.parallel.expert_capacity = 1.5; }),
            kExpertParallelStepListing2);
}

TEST(ExpertParallelStep, CopiesOfExpertsAreAveraged) {
  EXPECT_EQ(
      OddStep(odd_composition("experts: 4, experts_per_token: 2, expert_feed_forward: 7, looks_for_documents: false"))
          .but([](OddStep& step) {
            step.training.parallel.data = 4;
            step.training.parallel.expert = 4;
          })
          .changed([](OddStep& step) { step.training.parallel.expert = 2; }),
      R"(
[forward layers.0.experts]
- collective; pointwise x3
+ collective all_to_all 16 bytes int32, 2 ranks expert (16 > 16)
+ pointwise x3 +32t +32t cat 1x4 int32 x2 joined (16 16 > 32) sum 4x2 int64 cols (32 > 32)
    copy_to_host 1x4 int64 from gpu (32) sync -32 -32
- collective; pointwise x5
+ collective all_to_all 720 bytes bf16, 2 ranks expert (720 > 720)
+ pointwise x5 +16t arange 1x2 int64 (> 16) +32t cast 1x4 int64 broadcast (16 > 32) +32t
    cast 1x4 int32->int64 (16 > 32) +240t index 1x30 int64,int64->int64 broadcast (32 32 > 240) -32 -32 -16 +240t
    +240
- pointwise x2
+ pointwise x2 +16t cast 1x2 int32->int64 (16 > 16) +8t cast 1x2 int64->int32 (16 > 8) -16
- matmul
+ matmul +420 bmm 2x 15x7x12 nt bf16 (720 336 > 420)
- matmul
+ matmul +720t bmm 2x 15x12x7 nt bf16 (420 336 > 720)
- collective
+ collective all_to_all 720 bytes bf16, 2 ranks expert (720 > 720) -720
- pointwise
+ pointwise +720 index 30x12 bf16,int64->bf16 broadcast (720 240 > 720) -240 -16 -16 -720 -720 -240 -8 -720 -720
[backward layers.0.experts]
- collective
+ collective all_to_all 720 bytes bf16, 2 ranks expert (720 > 720) -720
- bmm_backward
+ bmm_backward +336g bmm 2x 12x7x15 tn bf16 (720 420 > 336) +420t bmm 2x 15x7x12 nn bf16 (720 336 > 420) -720 -420
- bmm_backward
+ bmm_backward +336g bmm 2x 7x12x15 tn bf16 (420 720 > 336) +720t bmm 2x 15x12x7 nn bf16 (420 336 > 720) -420 -720
- collective
+ collective all_to_all 720 bytes bf16, 2 ranks expert (720 > 720) -720
[backward embeddings]
- collective
+ collective event0 wait0@3 all_reduce 1896 bytes bf16, 4 ranks data@3 (1896 > 1896) event1@3 wait1@0
[backward]
- optimizer_op; per_parameter_zero_grad x18
+ optimizer_op foreach_mul 2 tensors, 336 elements bf16 ()
+ collective all_reduce 336 bytes bf16, 2 ranks expert_data (336 > 336)
+ collective all_reduce 336 bytes bf16, 2 ranks expert_data (336 > 336)
+ per_parameter_zero_grad x18 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -96 -336 -336 -24 -24 -24 -24
)");
}

}  // namespace
}  // namespace ridgeline
