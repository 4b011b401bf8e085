// Classes of sequences, tokens and spans; networks of two towers.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

const std::string kClassTokens =
    "input: image, image_size: 6, patch: 2, channels: 5, causal: false, head: image-classification, labels: 4, "
    "class_token: true";
/// Nine patches and the class.
void with_class(OddStep& step) { step.training.sequence_length = 10; }

constexpr char kComposedClassesStepListing1[] = R"(
[forward final_norm]
- layer_norm_module
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
+ dropout +36 +72 native_dropout 36 bf16 (72 > 72 36)
+ linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72)
+ pointwise +72 tanh 3x12 bf16 (72 > 72) -72
+ dropout +36 +72 native_dropout 36 bf16 (72 > 72 36)
[forward head.loss]
- cross_entropy
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24 -360
[backward]
- backward_first x21
+ backward_first x25
[backward head]
- addmm_backward
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -72
+ pointwise_backward +72t native_dropout_backward 3x12 bf16,bool->bf16 (72 36 > 72) -72 -36
+ pointwise_backward +72t tanh_backward 3x12 bf16,bf16->bf16 (72 72 > 72) -72 -72
+ addmm_backward +72t mm 3x12x12 nn bf16 (72 288 > 72) +288g mm 12x12x3 tn bf16 (72 72 > 288) +24g
    sum 3x12 bf16 rows (72 > 24) -72 -72
+ accumulate_grad; view_backward; accumulate_grad
+ pointwise_backward +72t native_dropout_backward 3x12 bf16,bool->bf16 (72 36 > 72) -72 -36
[backward embeddings]
- per_parameter_zero_grad x21
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -288
    -24 -96 -8
)";

constexpr char kComposedClassesStepListing2[] = R"(
[forward final_norm]
+ dropout_off
[forward head]
+ linear +72 addmm 3x12x12 nt bf16 (72 288 24 > 72)
+ pointwise +72 gelu 3x12 bf16 (72 > 72)
+ dropout_off
[backward]
- backward_first x19
+ backward_first x21
[backward head]
- addmm_backward
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -72
+ pointwise_backward +72t gelu_backward 3x12 bf16,bf16->bf16 (72 72 > 72) -72 -72
+ addmm_backward +72t mm 3x12x12 nn bf16 (72 288 > 72) +288g mm 12x12x3 tn bf16 (72 72 > 288) +24g
    sum 3x12 bf16 rows (72 > 24) -72 -360
+ accumulate_grad; view_backward; accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x21
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -288
    -24 -96 -8
)";

constexpr char kComposedClassesStepListing3[] = R"(
[forward final_norm]
- layer_norm_module; view
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
+ pointwise +72 sum 15x12 bf16 rows (360 > 72)
[forward head.loss]
- cross_entropy
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24 -360
[backward]
- backward_first x19
+ backward_first x20
[backward head]
- addmm_backward
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -72
- pointwise_backward
+ view_backward +360t div 15x12 bf16 strided (72 > 360) -72
)";

constexpr char kComposedClassesStepListing4[] = R"(
[forward final_norm]
- layer_norm_module; view
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
+ pointwise +72 sum 12x12 bf16 rows (288 > 72)
+ layer_norm_module +72 +12 +12 native_layer_norm 3x12 bf16 (72 24 24 > 72 12 12)
[forward head.loss]
- cross_entropy
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24 -360
[backward]
- backward_first x19
+ backward_first x21
[backward head]
- addmm_backward
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -72
- pointwise_backward
+ layer_norm_backward +72t +24g +24g native_layer_norm_backward 3x12 bf16 (72 72 24 12 12 > 72 24 24) -72 -72 -12 -12
+ accumulate_grad; accumulate_grad
+ view_backward +288t div 12x12 bf16 strided (72 > 288) -72
+ pointwise_backward +360t fill 15x12 bf16 (> 360) copy 12x12 bf16 permuted (288 > 360) -288
[backward embeddings]
- per_parameter_zero_grad x21
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -24
    -24 -96 -8
)";

TEST(ComposedClassesStep, PoolersDiffer) {
  EXPECT_EQ(
      changes_by_keys("pooler: dense-tanh", "causal: false, head: sequence-classification, labels: 4, dropout: 0.1"),
      kComposedClassesStepListing1);
  EXPECT_EQ(changes_by_keys("pooler: dense-activation", "causal: false, head: sequence-classification, labels: 4"),
            kComposedClassesStepListing2);
  EXPECT_EQ(changes_by_keys("pooler: mean", "causal: false, head: sequence-classification, labels: 4"),
            kComposedClassesStepListing3);
  EXPECT_EQ(changes_by_keys("pooler: mean-norm", "causal: false, head: sequence-classification, labels: 4"),
            kComposedClassesStepListing4);
}

constexpr char kComposedClassesStepListing5[] = R"(
[forward head]
- linear; pointwise x4
+ linear +120t addmm 15x4x12 nt bf16 (360 96 8 > 120)
[forward head.loss]
- cross_entropy
[forward]
- loss_division
[backward]
- backward_call; backward_first x23; pointwise_backward
[backward head.loss]
- nll_backward; log_softmax_backward
[forward head.loss]
+ cross_entropy +120 log_softmax 15x4 bf16 (120 > 120) +2t +2 nll_loss 15x4 bf16 (120 120 > 2) -120
[forward]
+ loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
+ backward_call +2t fill 1x1 bf16 (> 2)
+ backward_first x19
+ pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
+ nll_backward +120t nll_loss_backward 15x4 bf16 (2 120 > 120) -2 -2
+ log_softmax_backward +120t log_softmax_backward 15x4 bf16 (120 120 > 120) -120 -120
[backward head]
- cast_backward; mm_backward
+ addmm_backward +360t mm 15x12x4 nn bf16 (120 96 > 360) +96g mm 4x12x15 tn bf16 (120 360 > 96) +8g
    sum 15x4 bf16 rows (120 > 8) -120 -360
+ accumulate_grad; accumulate_grad
[backward embeddings]
- embedding_backward; fan_in_add; accumulate_grad; per_parameter_zero_grad x19
+ embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
+ accumulate_grad -2 -2
+ per_parameter_zero_grad x21 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -96
    -8
)";

constexpr char kComposedClassesStepListing6[] = R"(
[forward head]
- linear; pointwise x4
+ linear +60t addmm 15x2x12 nt bf16 (360 48 4 > 60)
+ split
+ contiguous +30t copy 3x5 bf16 transposed (30 > 30)
[forward head.loss]
- cross_entropy
[forward]
- loss_division
[backward]
- backward_call; backward_first x23; pointwise_backward
[backward head.loss]
- nll_backward; log_softmax_backward
[forward head]
+ contiguous +30t copy 3x5 bf16 transposed (30 > 30)
+ cross_entropy +30 log_softmax 3x5 bf16 (30 > 30) +2t +2 nll_loss 3x5 bf16 (30 24 > 2)
+ cross_entropy +30 log_softmax 3x5 bf16 (30 > 30) +2t +2 nll_loss 3x5 bf16 (30 24 > 2)
+ pointwise +2t add 1x1 bf16,bf16->bf16 (2 2 > 2)
+ loss_division +2t div 1x1 bf16 (2 > 2) -2 -2 -2 -30 -30 -60
[forward]
+ loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
+ backward_call +2t fill 1x1 bf16 (> 2)
+ backward_first x25
+ pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head]
+ pointwise_backward +2t div 1x1 bf16 (2 > 2) -2
+ add_backward
+ nll_backward +30t nll_loss_backward 3x5 bf16 (2 24 > 30) -2
+ log_softmax_backward +30t log_softmax_backward 3x5 bf16 (30 30 > 30) -30 -30
+ nll_backward +30t nll_loss_backward 3x5 bf16 (2 24 > 30) -2 -2
+ log_softmax_backward +30t log_softmax_backward 3x5 bf16 (30 30 > 30) -30 -30
- cast_backward; mm_backward
+ split_backward +60t cat 15x1 bf16 x2 joined (30 30 > 60) -30 -30
+ view_backward
+ addmm_backward +360t mm 15x12x2 nn bf16 (60 48 > 360) +48g mm 2x12x15 tn bf16 (60 360 > 48) +4g
    sum 15x2 bf16 rows (60 > 4) -60 -360
+ accumulate_grad; view_backward; accumulate_grad; view_backward
[backward embeddings]
- embedding_backward; fan_in_add; accumulate_grad; per_parameter_zero_grad x19
+ embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
+ accumulate_grad -2 -2
+ per_parameter_zero_grad x21 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -48
    -4
)";

constexpr char kComposedClassesStepListing7[] = R"(
[forward final_norm]
- layer_norm_module
[forward head]
- linear; pointwise x4; view; view
[forward head.loss]
- cross_entropy
[forward]
- loss_division
[backward]
- backward_call; backward_first x34; pointwise_backward
[backward head.loss]
- nll_backward; log_softmax_backward; view_backward
[backward head]
- cast_backward; view_backward; mm_backward; view_backward; view_backward
[forward final_norm]
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
+ pointwise +2t sum 1x180 bf16 (360 > 2) -360
[forward]
+ loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
+ backward_call +2t fill 1x1 bf16 (> 2)
+ backward_first x28
+ pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head]
+ pointwise_backward +360t div 15x12 bf16 strided (2 > 360) -2
[backward embeddings]
- embedding_backward; fan_in_add; accumulate_grad
+ embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
+ accumulate_grad -2 -2
)";

TEST(ComposedClassesStep, EveryTokenOrASpanHasAClass) {
  EXPECT_EQ(changes_by_keys("head: token-classification, labels: 4", "causal: false"), kComposedClassesStepListing5);
  EXPECT_EQ(changes_by_keys("head: question-answering", "causal: false"), kComposedClassesStepListing6);
  EXPECT_EQ(changes_by_keys("head: none"), kComposedClassesStepListing7);
}

constexpr char kComposedClassesStepListing8[] = R"(
[forward final_norm]
- layer_norm_module
+ layer_norm_module +720t +120 +120 native_layer_norm 30x12 bf16 (720 24 24 > 720 120 120)
[forward head]
- linear
+ pointwise +72t sum 27x12 bf16 rows (648 > 72)
+ concatenate +144 cat 3x12 bf16 x2 joined strided (72 72 > 144) -72
+ linear +24t addmm 3x4x24 nt bf16 (144 192 8 > 24)
[forward head.loss]
- cross_entropy
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24 -720
[backward]
- backward_first x21
+ backward_first x23
[backward head]
- addmm_backward
+ addmm_backward +144t mm 3x24x4 nn bf16 (24 192 > 144) +192g mm 4x24x3 tn bf16 (24 144 > 192) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -144
- pointwise_backward
+ view_backward
+ view_backward +648t div 27x12 bf16 strided (144 > 648)
+ pointwise_backward +720t fill 30x12 bf16 (> 720) copy 27x12 bf16 permuted (648 > 720) -648
+ pointwise_backward +720t fill 30x12 bf16 (> 720) copy 3x12 bf16 permuted (72 > 720) -144
+ fan_in_add add_ 30x12 bf16,bf16->bf16 (720 720 > 720) -720
[backward embeddings]
- per_parameter_zero_grad x23
+ per_parameter_zero_grad x23 -24 -480 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24
    -24 -192 -8
)";

constexpr char kComposedClassesStepListing9[] = R"(
[forward final_norm]
- layer_norm_module; view
+ layer_norm_module +720t +120 +120 native_layer_norm 30x12 bf16 (720 24 24 > 720 120 120)
[forward head]
+ pointwise +72 sum 27x12 bf16 rows (648 > 72)
[forward head.loss]
- cross_entropy
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24 -720
[backward]
- backward_first x21
+ backward_first x22
[backward head]
- addmm_backward
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -72
- pointwise_backward
+ view_backward +648t div 27x12 bf16 strided (72 > 648) -72
+ pointwise_backward +720t fill 30x12 bf16 (> 720) copy 27x12 bf16 permuted (648 > 720) -648
)";

constexpr char kComposedClassesStepListing10[] = R"(
[forward embeddings]
- concatenate; pointwise
+ concatenate +720t cat 3x60 bf16 x2 joined strided (24 648 > 720) -648
+ pointwise +720t add 3x120 bf16,bf16->bf16 rows (720 240 > 720) -720
+ concatenate +864 cat 3x48 bf16 x3 joined strided (72 48 648 > 864) -720
[forward head]
- pointwise
+ pointwise +72t sum 27x12 bf16 rows (648 > 72)
[backward]
- backward_first x24
+ backward_first x25
[backward head]
- view_backward; pointwise_backward
+ view_backward +648t div 27x12 bf16 strided (144 > 648)
+ pointwise_backward +864t fill 36x12 bf16 (> 864) copy 27x12 bf16 permuted (648 > 864) -648
[backward embeddings]
- add_backward
+ view_backward +48g sum 3x24 bf16 rows (144 > 48)
+ pointwise_backward +720t fill 30x12 bf16 (> 720) copy 27x12 bf16 permuted (648 > 720)
+ pointwise_backward +720t fill 30x12 bf16 (> 720) copy 3x12 bf16 permuted (72 > 720) -864
+ fan_in_add add_ 30x12 bf16,bf16->bf16 (720 720 > 720) -720
+ add_backward +240g sum 3x120 bf16 rows (720 > 240)
- view_backward
+ view_backward
- convolution_backward
+ convolution_backward +648t copy 108x3 bf16 transposed (648 > 648) +1080t +480g
    conv2d_backward 3x5x6x6 to 12, 2x2 bf16 (648 1080 480 > 1080 480) +24g sum 12x27 bf16 cols (648 > 24) -648 -720
    -1080
- per_parameter_zero_grad x25
+ per_parameter_zero_grad x25 -24 -48 -480 -24 -240 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24
    -24 -24 -24 -192 -8
)";

TEST(ComposedClassesStep, ClassAndMeanAreJoined) {
  EXPECT_EQ(changes_by_keys("pooler: class-and-mean", kClassTokens, with_class), kComposedClassesStepListing8);
  EXPECT_EQ(changes_by_keys("pooler: mean-patches", kClassTokens, with_class), kComposedClassesStepListing9);
  EXPECT_EQ(changes_by_keys("late_tokens: true",
                            kClassTokens + ", pooler: class-and-mean, extra_tokens: 2, positions: learned",
                            [](OddStep& step) { step.training.sequence_length = 12; }),
            kComposedClassesStepListing10);
}

TEST(ComposedClassesStep, WhatNoLossReads) {
  EXPECT_EQ(changes_by_keys("unread_top: norm", kClassTokens + ", pooler: first-token", with_class),
            R"(
[forward pooler]
+ pointwise +72t pointwise 3x12 bf16 (720 > 72) -72
[backward]
- backward_first x21
+ backward_first x22
)");
  EXPECT_EQ(changes_by_keys("unread_top: dense", kClassTokens + ", pooler: first-token", with_class),
            R"(
[forward pooler]
+ pointwise +72t pointwise 3x12 bf16 (720 > 72)
+ linear
+ view +72t mm 3x12x12 nt bf16 (72 288 > 72)
+ pointwise +72t tanh 3x12 bf16 (72 > 72) -72 -72 -72
[backward]
- backward_first x21
+ backward_first x24
)");
  EXPECT_EQ(changes_by_keys("unread_top: probe", kClassTokens + ", pooler: first-token", with_class),
            R"(
[forward pooler]
+ pointwise +72t pointwise 3x12 bf16 rows (24 > 72)
+ linear
+ view +72t mm 3x12x12 nt bf16 (72 288 > 72)
+ linear
+ view +1440t mm 30x24x12 nt bf16 (720 576 > 1440)
+ contiguous +1440t pointwise 30x24 bf16 (1440 > 1440)
+ attention_fused +72t pointwise 3x12 bf16,bf16->bf16 (1440 72 > 72)
+ linear
+ view +72t mm 3x12x12 nt bf16 (72 288 > 72) -72
+ linear
+ view +120t mm 3x20x12 nt bf16 (72 480 > 120)
+ pointwise +120t gelu 3x20 bf16 (120 > 120) -120
+ linear
+ view +72t mm 3x12x20 nt bf16 (120 480 > 72) -72 -120 -72 -1440 -1440 -72 -72
[backward]
- backward_first x21
+ backward_first x30
)");
  EXPECT_EQ(changes_by_keys("mask_token: true", kClassTokens + ", pooler: first-token", with_class),
            R"(
)");
}

}  // namespace
}  // namespace ridgeline
