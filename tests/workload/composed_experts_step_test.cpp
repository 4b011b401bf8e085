// Experts of compositions and their routers.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

TEST(ComposedExpertsStep, ARouterChoosesExperts) {
  EXPECT_EQ(changes_by_keys("experts: 5, experts_per_token: 2, expert_feed_forward: 7"), R"(
[forward layers.0.feed_forward]
- linear; pointwise; linear
+ view
[forward layers.0.experts]
+ linear +150t mm 15x5x12 nt bf16 (360 120 > 150) +300t cast 15x5 bf16->fp32 (150 > 300)
+ softmax +300 softmax 15x5 fp32 (300 > 300) -300
+ pointwise x4 +240t +120t topk 2 of 15x5 fp32 (300 > 120 240) +120t scale 15x2 fp32 strided (120 > 120) -120 -150
    +240 +240t
+ pointwise x12 sort 1x30 int64 8 bits (240 > 240 240) +240 div 1x30 int64 (240 > 240) +720
    index 30x12 bf16,int64->bf16 broadcast (360 240 > 720) +120 index 30x1 fp32,int64->fp32 (120 240 > 120) +30
    eq 30x1 int64->bool (240 > 30) masked_fill 30x12 bf16,bool->bf16 broadcast (720 30 > 720)
+ matmul x5
+ pointwise x2 +4t pointwise 1x1 fp32 (> 4) +1t eq 1x1 fp32->bool (4 > 1) copy_to_host 1x1 bool from gpu (1) sync -1
    -4 +420t bmm 5x 6x7x12 nt bf16 (720 840 > 420)
+ masked_fill +420 masked_fill 30x7 bf16,bool->bf16 broadcast (420 30 > 420) -420
+ pointwise +420 gelu 30x7 bf16 (420 > 420)
+ matmul x5
+ pointwise x2 +4t pointwise 1x1 fp32 (> 4) +1t eq 1x1 fp32->bool (4 > 1) copy_to_host 1x1 bool from gpu (1) sync -1
    -4 +720t bmm 5x 6x12x7 nt bf16 (420 840 > 720)
+ masked_fill +720 masked_fill 30x12 bf16,bool->bf16 broadcast (720 30 > 720) -720
+ pointwise +1440t mul 30x12 bf16,fp32->fp32 broadcast (720 120 > 1440) +240t arange 1x30 int64 (> 240) +240
    index 1x30 int64,int64->int64 (240 240 > 240) +1440t index 30x12 fp32,int64->fp32 broadcast (1440 240 > 1440)
    -1440 -240
+ pointwise +720t sum 30x12 fp32 rows (1440 > 720) +360t cast 15x12 fp32->bf16 (720 > 360) -720 -240 -1440 -120 -240
[backward]
- backward_first x34
+ backward_first x40
[backward layers.0.experts]
+ cast_backward +720t cast 15x12 bf16->fp32 (360 > 720)
[backward layers.0.feed_forward]
- addmm_backward; accumulate_grad
[backward layers.0.experts]
+ pointwise_backward +1440t fill 30x12 fp32 (> 1440) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 30x12 fp32 added (720 240 > 1440) -240 -240 -720 -240
+ pointwise_backward +1440t mul 30x12 fp32,bf16->fp32 (1440 720 > 1440) +1440t
    mul 30x12 fp32,fp32->fp32 broadcast (1440 120 > 1440)
+ cast_backward +720t cast 30x12 fp32->bf16 (1440 > 720) -1440 +120t sum 30x12 fp32 cols (1440 > 120) -1440 -1440
    -120 -720
+ masked_fill_backward +720t masked_fill 30x12 bf16,bool->bf16 broadcast (720 30 > 720) -720
+ bmm_backward +840g bmm 5x 12x7x6 tn bf16 (720 420 > 840) +420t bmm 5x 6x7x12 nn bf16 (720 840 > 420) -720 -420
- view_backward
[backward layers.0.feed_forward]
- pointwise_backward; view_backward; addmm_backward
[backward layers.0.experts]
+ pointwise_backward +420t gelu_backward 30x7 bf16,bf16->bf16 (420 420 > 420) -420 -420
+ masked_fill_backward +420t masked_fill 30x7 bf16,bool->bf16 broadcast (420 30 > 420) -420
+ bmm_backward +840g bmm 5x 7x12x6 tn bf16 (420 720 > 840) +720t bmm 5x 6x12x7 nn bf16 (420 840 > 720) -420 -720
+ masked_fill_backward +720t masked_fill 30x12 bf16,bool->bf16 broadcast (720 30 > 720) -720 -30
+ pointwise_backward +120t fill 30x1 fp32 (> 120) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 30x1 fp32 added (120 240 > 120) -240 -240 -120 -240
+ pointwise_backward +360t fill 15x12 bf16 (> 360) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 15x12 bf16 added (720 240 > 360) -240 -240 -720 -240
+ pointwise_backward +120t scale 15x2 fp32 (120 > 120) -120
+ pointwise_backward +300t fill 15x5 fp32 (> 300) copy 15x2 fp32 permuted (120 > 300) -120
+ softmax_backward +300t +300t softmax_backward 15x5 fp32 (300 300 > 300) -300 -300 -300
+ cast_backward +150t cast 15x5 fp32->bf16 (300 > 150) -300
+ mm_backward +120g mm 5x12x15 tn bf16 (150 360 > 120) +360t mm 15x12x5 nn bf16 (150 120 > 360) -150 -360
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
+ view_backward
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x18 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -120 -840 -840 -24 -24 -24 -24
)");
}

constexpr char kComposedExpertsStepListing1[] = R"(
[forward layers.0.experts]
- linear; softmax; pointwise x4
+ linear +150t mm 15x5x12 nt bf16 (360 120 > 150)
+ pointwise x7 +300t cast 15x5 bf16->fp32 (150 > 300) +300 tanh 15x5 fp32 (300 > 300) -300 +300t
    add 15x5 fp32 (300 > 300) +240t +120t topk 2 of 15x5 fp32 (300 > 120 240) +120t
    gather 15x2 int64->fp32 (240 > 120) -120 +60 sum 15x2 fp32 cols (120 > 60) +120t
    div 15x2 fp32,fp32->fp32 strided (120 60 > 120) -120 -300 -150 +240 +240t
[backward layers.0.experts]
- pointwise_backward
+ pointwise_backward +120t div 15x2 fp32,fp32->fp32 broadcast (120 60 > 120) -120 -60
- softmax_backward
+ pointwise_backward +300t tanh_backward 15x5 fp32,fp32->fp32 (300 300 > 300) -300 -300
)";

constexpr char kComposedExpertsStepListing2[] = R"(
[forward layers.0.experts]
- linear; softmax; pointwise x4; pointwise x12
+ linear +150t mm 15x5x12 nt bf16 (360 120 > 150)
+ pointwise x22 +30t +120t sum 15x5 bf16 cols (150 > 30) -120 +150t pointwise 15x5 bf16 (150 > 150) +150t
    clamp 15x5 bf16,bf16->bf16 broadcast (150 30 > 150) +150t add 15x5 bf16,bf16->bf16 broadcast (30 150 > 150) +150t
    div 15x5 bf16,bf16->bf16 (150 150 > 150) +75t eq 15x5 bf16->bool (150 > 75) -150 -150 -150 -150 -30 +150t
    masked_fill 15x5 bf16,bool->bf16 (150 75 > 150) +150t pointwise 15x5 bf16 (> 150) +150t
    pointwise 15x5 bf16 (150 > 150) +150t add 15x5 bf16,bf16->bf16 (150 150 > 150) +30t +120
    sum 15x5 bf16 cols (150 > 30) -30 -150 -150 -150 +150 softmax 15x5 bf16 (150 > 150) -150 +30
    gather 15x1 int64->bf16 (120 > 30) +30t +120t sum 15x5 bf16 cols (150 > 30) +15t
    eq 15x1 int64,int64->bool (120 120 > 15) +30t pointwise 15x1 bf16 (> 30) +15t eq 15x1 bf16->bool (30 > 15) +15t
    pointwise 15x1 bool,bool->bool (15 15 > 15) +60t add 15x1 bool->fp32 (15 > 60) +30t
    cast 15x1 fp32->bf16 (60 > 30) -60 -15 -15 -30 -15 -120 -30 +30t mul 15x1 bf16,bf16->bf16 (30 30 > 30) -30 -75
+ pointwise x2
+ contiguous +150t copy 1x75 bf16 (150 > 150) +30t gather 15x1 int64->bf16 (120 > 30)
+ pointwise x22 +30t +120t sum 15x5 bf16 cols (150 > 30) -120 +150t pointwise 15x5 bf16 (150 > 150) +150t
    clamp 15x5 bf16,bf16->bf16 broadcast (150 30 > 150) +150t add 15x5 bf16,bf16->bf16 broadcast (30 150 > 150) +150t
    div 15x5 bf16,bf16->bf16 (150 150 > 150) +75t eq 15x5 bf16->bool (150 > 75) -150 -150 -150 -150 -30 +150t
    masked_fill 15x5 bf16,bool->bf16 (150 75 > 150) +150t pointwise 15x5 bf16 (> 150) +150t
    pointwise 15x5 bf16 (150 > 150) +150t add 15x5 bf16,bf16->bf16 (150 150 > 150) +30t +120
    sum 15x5 bf16 cols (150 > 30) -30 -150 -150 -150 +150 softmax 15x5 bf16 (150 > 150) -150 +30
    gather 15x1 int64->bf16 (120 > 30) +30t +120t sum 15x5 bf16 cols (150 > 30) +15t
    eq 15x1 int64,int64->bool (120 120 > 15) +30t pointwise 15x1 bf16 (> 30) +30t pointwise 15x1 bf16 (> 30) -30 +15t
    eq 15x1 bf16->bool (30 > 15) +15t pointwise 15x1 bool,bool->bool (15 15 > 15) +60t add 15x1 bool->fp32 (15 > 60)
    +30t cast 15x1 fp32->bf16 (60 > 30) -60 -15 -15 -30 -15 -120 -30 +30t mul 15x1 bf16,bf16->bf16 (30 30 > 30) -30
    -75 -30 -150
+ concatenate x2 +60t cat 15x1 bf16 x2 joined (30 30 > 60) +240t cat 15x1 int64 x2 joined (120 120 > 240) -30 -30
    -150 +240 +240t
+ pointwise x12 sort 1x30 int64 8 bits (240 > 240 240) +240 div 1x30 int64 (240 > 240) +720
    index 30x12 bf16,int64->bf16 broadcast (360 240 > 720) +60 index 30x1 bf16,int64->bf16 (60 240 > 60) +30
    eq 30x1 int64->bool (240 > 30) masked_fill 30x12 bf16,bool->bf16 broadcast (720 30 > 720)
- pointwise; pointwise
+ pointwise +720t mul 30x12 bf16,bf16->bf16 broadcast (720 60 > 720) +240t arange 1x30 int64 (> 240) +240
    index 1x30 int64,int64->int64 (240 240 > 240) +720t index 30x12 bf16,int64->bf16 broadcast (720 240 > 720) -720
    -240
+ pointwise +360t sum 30x12 bf16 rows (720 > 360) -240 -720 -60 -240
[backward layers.0.experts]
- cast_backward; pointwise_backward; pointwise_backward; cast_backward
+ pointwise_backward +720t fill 30x12 bf16 (> 720) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 30x12 bf16 added (360 240 > 720) -240 -240 -240
+ pointwise_backward +720t mul 30x12 bf16,bf16->bf16 (720 720 > 720) +720t
    mul 30x12 bf16,bf16->bf16 broadcast (720 60 > 720) +60t sum 30x12 bf16 cols (720 > 60) -720 -720 -60 -720
- pointwise_backward
+ pointwise_backward +60t fill 30x1 bf16 (> 60) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 30x1 bf16 added (60 240 > 60) -240 -240 -60 -240
- pointwise_backward; pointwise_backward; softmax_backward; cast_backward
+ view_backward
+ pointwise_backward +30t mul 15x1 bf16,bf16->bf16 strided (30 30 > 30) +30t scale 15x1 bf16 (30 > 30) +150t
    mul 15x5 bf16,bf16->bf16 broadcast (150 30 > 150) gather 15x1 int64,bf16->bf16 (120 30 > 30) -30 -30 -150 -120
    -30
+ pointwise_backward +30t mul 15x1 bf16,bf16->bf16 strided (30 30 > 30) +30t scale 15x1 bf16 (30 > 30) +150t
    mul 15x5 bf16,bf16->bf16 broadcast (150 30 > 150) gather 15x1 int64,bf16->bf16 (120 30 > 30) -30 -30 -60 -150
    -120 -30
+ fan_in_add add_ 15x5 bf16,bf16->bf16 (150 150 > 150) -150
)";

constexpr char kComposedExpertsStepListing3[] = R"(
[forward layers.0]
- layer_norm_module
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.experts]
- linear; softmax; pointwise x4
+ cast x2
+ linear +240 cast 5x12 bf16->fp32 (120 > 240) +720 cast 15x12 bf16->fp32 (360 > 720) +300t
    mm 15x5x12 nt fp32 (720 240 > 300)
+ softmax +300 softmax 15x5 fp32 (300 > 300)
+ pointwise x4 +240t +120t topk 2 of 15x5 fp32 (300 > 120 240) +120t scale 15x2 fp32 strided (120 > 120) -120 -300
    +240 +240t
- pointwise
+ pointwise +720t sum 30x12 fp32 rows (1440 > 720) +360t cast 15x12 fp32->bf16 (720 > 360) -720 -240 -1440 -120 -240
    -360
[backward layers.0.experts]
- cast_backward; mm_backward; fan_in_add
+ mm_backward +240t mm 5x12x15 tn fp32 (300 720 > 240) +720t mm 15x12x5 nn fp32 (300 240 > 720) -300 -240 -720
+ cast_backward +360t cast 15x12 fp32->bf16 (720 > 360) -720
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
+ cast_backward +120g cast 5x12 fp32->bf16 (240 > 120) -240
)";

constexpr char kComposedExpertsStepListing4[] = R"(
[forward layers.0.experts]
- linear
+ linear +150t addmm 15x5x12 nt bf16 (360 120 10 > 150) +300t cast 15x5 bf16->fp32 (150 > 300)
[backward layers.0.experts]
- mm_backward
+ addmm_backward +360t mm 15x12x5 nn bf16 (150 120 > 360) +120g mm 5x12x15 tn bf16 (150 360 > 120) +10g
    sum 15x5 bf16 rows (150 > 10) -150 -360
+ accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x18
+ per_parameter_zero_grad x19 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -120 -10 -2400 -2400 -24 -24 -24 -24
)";

constexpr char kComposedExpertsStepListing5[] = R"(
[forward layers.0.experts]
- pointwise x4
+ pointwise x5 +300t add 15x5 fp32 (300 > 300) +240t +120t topk 2 of 15x5 fp32 (300 > 120 240) +120t
    scale 15x2 fp32 strided (120 > 120) -120 -300 -150 +240 +240t
)";

constexpr char kComposedExpertsStepListing6[] = R"(
[forward layers.0.experts]
- linear; softmax; pointwise x4
+ linear +150t mm 15x5x12 nt bf16 (360 120 > 150)
+ pointwise x7 +300t cast 15x5 bf16->fp32 (150 > 300) +300 tanh 15x5 fp32 (300 > 300) -300 +300t
    add 15x5 fp32 (300 > 300) +240t +120t topk 2 of 15x5 fp32 (300 > 120 240) +120t
    gather 15x2 int64->fp32 (240 > 120) -120 +60 sum 15x2 fp32 cols (120 > 60) +120t
    div 15x2 fp32,fp32->fp32 strided (120 60 > 120) -120 -300 -150 +240 +240t
[backward layers.0.experts]
- pointwise_backward
+ pointwise_backward +120t div 15x2 fp32,fp32->fp32 broadcast (120 60 > 120) -120 -60
- softmax_backward
+ pointwise_backward +300t tanh_backward 15x5 fp32,fp32->fp32 (300 300 > 300) -300 -300
)";

constexpr char kComposedExpertsStepListing7[] = R"(
[forward layers.0.experts]
- pointwise x4
+ pointwise x4 +240t +120t topk 2 of 15x5 fp32 (300 > 120 240) +120t scale 15x2 fp32 strided (120 > 120) -120 -150
    +240 +240
- pointwise x2
+ pointwise x2 +4t pointwise 1x1 fp32 (> 4) +1t eq 1x1 fp32->bool (4 > 1) copy_to_host 1x1 bool from gpu (1) sync -1
    -4 +1200t bmm 5x 6x20x12 nt bf16 (720 2400 > 1200) +1200t index 30x20 bf16,int64->bf16 broadcast (200 240 > 1200)
+ pointwise +1200t add 30x20 bf16,bf16->bf16 (1200 1200 > 1200) -1200 -1200
- pointwise x2
+ pointwise x2 +4t pointwise 1x1 fp32 (> 4) +1t eq 1x1 fp32->bool (4 > 1) copy_to_host 1x1 bool from gpu (1) sync -1
    -4 +720t bmm 5x 6x12x20 nt bf16 (1200 2400 > 720) +720t index 30x12 bf16,int64->bf16 broadcast (120 240 > 720)
+ pointwise +720t add 30x12 bf16,bf16->bf16 (720 720 > 720) -720 -720
- pointwise
+ pointwise +720t sum 30x12 fp32 rows (1440 > 720) +360t cast 15x12 fp32->bf16 (720 > 360) -720 -1440 -120 -240
[backward layers.0.experts]
+ add_backward
+ pointwise_backward +120g fill 5x12 bf16 (> 120) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 5x12 bf16 added (720 240 > 120) -240 -240
+ accumulate_grad; add_backward
+ pointwise_backward +200g fill 5x20 bf16 (> 200) +240t +240t sort 1x30 int64 (240 > 240 240)
    index_put 30 of 5x20 bf16 added (1200 240 > 200) -240 -240 -240
+ accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x18
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -120 -2400 -200 -2400 -120 -24 -24 -24
    -24
)";

constexpr char kComposedExpertsStepListing8[] = R"(
[forward layers.0.experts]
- pointwise x2; masked_fill; pointwise
+ pointwise x2 +4t pointwise 1x1 fp32 (> 4) +1t eq 1x1 fp32->bool (4 > 1) copy_to_host 1x1 bool from gpu (1) sync -1
    -4 +2400t bmm 5x 6x40x12 nt bf16 (720 4800 > 2400)
+ masked_fill +2400 masked_fill 30x40 bf16,bool->bf16 broadcast (2400 30 > 2400) -2400
+ split
+ pointwise +1200 gelu 30x20 bf16 strided (1200 > 1200)
+ pointwise +1200 mul 30x20 bf16,bf16->bf16 strided (1200 1200 > 1200)
[backward layers.0.experts]
- pointwise_backward; masked_fill_backward; bmm_backward
+ pointwise_backward +1200t mul 30x20 bf16,bf16->bf16 (1200 1200 > 1200) +1200t
    mul 30x20 bf16,bf16->bf16 strided (1200 1200 > 1200) -1200 -1200
+ pointwise_backward +1200t gelu_backward 30x20 bf16,bf16->bf16 strided (1200 1200 > 1200) -1200 -2400
+ split_backward +2400t cat 30x20 bf16 x2 joined (1200 1200 > 2400) -1200 -1200
+ masked_fill_backward +2400t masked_fill 30x40 bf16,bool->bf16 broadcast (2400 30 > 2400) -2400
+ bmm_backward +4800g bmm 5x 40x12x6 tn bf16 (2400 720 > 4800) +720t bmm 5x 6x12x40 nn bf16 (2400 4800 > 720) -2400
    -720
[backward embeddings]
- per_parameter_zero_grad x18
+ per_parameter_zero_grad x18 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -120 -4800 -2400 -24 -24 -24 -24
)";

TEST(ComposedExpertsStep, RoutersDiffer) {
  EXPECT_EQ(changes_by_keys("router: sigmoid", "experts: 5, experts_per_token: 2"), kComposedExpertsStepListing1);
  EXPECT_EQ(changes_by_keys("router: sparse-mixer", "experts: 5, experts_per_token: 2"), kComposedExpertsStepListing2);
  EXPECT_EQ(changes_by_keys("router_fp32: true", "experts: 5, experts_per_token: 2"), kComposedExpertsStepListing3);
  EXPECT_EQ(changes_by_keys("router_bias: true", "experts: 5, experts_per_token: 2"), kComposedExpertsStepListing4);
  EXPECT_EQ(changes_by_keys("router_correction: true", "experts: 5, experts_per_token: 2"),
            kComposedExpertsStepListing5);
  EXPECT_EQ(changes_by_keys("router: sigmoid, router_correction: true", "experts: 5, experts_per_token: 2"),
            kComposedExpertsStepListing6);
  EXPECT_EQ(changes_by_keys("expert_bias: true", "experts: 5, experts_per_token: 2"), kComposedExpertsStepListing7);
  EXPECT_EQ(changes_by_keys("feed_forward_kind: gated", "experts: 5, experts_per_token: 2"),
            kComposedExpertsStepListing8);
}

TEST(ComposedExpertsStep, SomePartIsSharedByAllTokens) {
  EXPECT_EQ(changes_by_keys("shared_feed_forward: 8", "experts: 5"), R"(
[forward layers.0.experts.feed_forward]
+ linear +240 addmm 15x8x12 nt bf16 (360 192 16 > 240)
+ pointwise +240 gelu 15x8 bf16 (240 > 240)
+ linear +360t addmm 15x12x8 nt bf16 (240 192 24 > 360)
[forward layers.0.experts]
+ pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward final_norm]
+ add_backward; view_backward
[backward layers.0.experts.feed_forward]
+ addmm_backward +240t mm 15x8x12 nn bf16 (360 192 > 240) +192g mm 12x8x15 tn bf16 (360 240 > 192) +24g
    sum 15x12 bf16 rows (360 > 24) -240
+ accumulate_grad; view_backward; accumulate_grad; view_backward
+ pointwise_backward +240t gelu_backward 15x8 bf16,bf16->bf16 (240 240 > 240) -240 -240
+ view_backward
+ addmm_backward +360t mm 15x12x8 nn bf16 (240 192 > 360) +192g mm 8x12x15 tn bf16 (240 360 > 192) +16g
    sum 15x8 bf16 rows (240 > 16) -240
+ accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0.experts]
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward embeddings]
- per_parameter_zero_grad x18
+ per_parameter_zero_grad x22 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -120 -2400 -2400 -192 -16 -192 -24 -24
    -24 -24 -24
)");
  EXPECT_EQ(changes_by_keys("shared_gate: true", "experts: 5, shared_feed_forward: 8"), R"(
[forward layers.0.experts.feed_forward]
- linear
+ linear +360 addmm 15x12x8 nt bf16 (240 192 24 > 360)
+ pointwise x2
[forward layers.0.experts]
+ linear +30t mm 15x1x12 nn bf16 (360 24 > 30) +30 tanh 15x1 bf16 (30 > 30) -30 +360t
    mul 15x12 bf16,bf16->bf16 broadcast (30 360 > 360)
[backward layers.0.experts]
+ pointwise_backward +360t mul 15x12 bf16,bf16->bf16 broadcast (360 30 > 360) +360t
    mul 15x12 bf16,bf16->bf16 (360 360 > 360) +30t sum 15x12 bf16 cols (360 > 30) -360 -360
+ pointwise_backward +30t tanh_backward 15x1 bf16,bf16->bf16 (30 30 > 30) -30 -30
[backward layers.0.experts.feed_forward]
- addmm_backward
[backward layers.0.experts]
+ mm_backward +24g mm 1x12x15 nn bf16 (30 360 > 24) +360t mm 15x12x1 nn bf16 (30 24 > 360) -30
+ view_backward; view_backward
[backward layers.0.experts.feed_forward]
+ addmm_backward +240t mm 15x8x12 nn bf16 (360 192 > 240) +192g mm 12x8x15 tn bf16 (360 240 > 192) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -240
+ accumulate_grad; view_backward
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward layers.0.experts]
- fan_in_add
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward embeddings]
- per_parameter_zero_grad x22
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -120 -2400 -2400 -192 -16 -192 -24 -24
    -24 -24 -24 -24
)");
}

}  // namespace
}  // namespace ridgeline
