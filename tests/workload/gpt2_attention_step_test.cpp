// Attention of a small gpt2 in each of its codes, operation by operation; mixed precision.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

const OddStep kAttentiveGpt2(ModelFamily::gpt2);

// nanoGPT's written-out attention: bmm keeps copies of queries and transposed keys (360 bytes each), scores are scaled,
// the buffer's corner is compared with zero (5 · 5 = 25 bytes, kept by masked_fill), softmax and dropout keep their
// results (300, 150). Backward softmax multiplies the gradient by the result in a tensor of its own (SoftMax.cu).
TEST(Gpt2AttentionStep, EagerAttentionIsMadeOfProductsAndAMaskCutFromABuffer) {
  EXPECT_EQ(kAttentiveGpt2.changed([](OddStep& step) {
    step.attention = AttentionChoice::eager;
    step.model.attention_dropout = 0.1;
  }),
            R"(
[forward layers.0.attention]
- linear
+ linear +1080t addmm 15x36x12 nt bf16 (360 864 72 > 1080)
- attention_fused; view
+ matmul
+ matmul_copy x2 +360 copy 30x6 bf16 permuted (360 > 360) +360 copy 36x5 bf16 transposed (360 > 360) +300t
    bmm 6x 5x5x6 nn bf16 (360 360 > 300)
+ pointwise +300t scale 30x5 bf16 (300 > 300) -300
+ pointwise +25 eq 5x5 bf16->bool strided (50 > 25)
+ masked_fill +300t masked_fill 6x25 bf16,bool->bf16 rows (300 25 > 300) -300
+ softmax +300 softmax 30x5 bf16 (300 > 300)
+ dropout +150 +300 native_dropout 150 bf16 (300 > 300 150)
+ matmul
+ matmul_copy +360 copy 30x6 bf16 permuted (360 > 360) +360t bmm 6x 5x6x5 nn bf16 (300 360 > 360)
+ transpose
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360)
- dropout_off
+ dropout_off -1080 -360 -300
[backward]
- backward_first x20
+ backward_first x30
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
- attention_fused_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ bmm_backward +360t bmm 6x 5x6x5 tn bf16 (300 360 > 360) +300t bmm 6x 5x5x6 nt bf16 (360 360 > 300) -360 -360 -300
- split_backward
+ pointwise_backward +300t native_dropout_backward 30x5 bf16,bool->bf16 (300 150 > 300) -300 -150
+ softmax_backward +300t +300t softmax_backward 30x5 bf16 (300 300 > 300) -300 -300 -300
+ masked_fill_backward +300t masked_fill 6x25 bf16,bool->bf16 rows (300 25 > 300) -300 -25
+ pointwise_backward +300t scale 30x5 bf16 (300 > 300) -300
+ view_backward
+ bmm_backward +360t bmm 6x 6x5x5 tn bf16 (360 300 > 360) +360t bmm 6x 5x6x5 nt bf16 (300 360 > 360) -300 -360 -360
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward; view_backward;
    view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward; view_backward; view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ split_backward +1080t cat 15x12 bf16 x3 joined strided (360 360 360 > 1080) -360 -360 -360
+ view_backward
)");
}

// _scaled_dot_product_attention_math (aten/src/ATen/native/transformers/attention.cpp) casts 16 bits to fp32 (30 · 6 ·
// 4 = 720 bytes), scales queries and keys by the root each, and multiplies: each cast, scale and product has its own
// backward pass. softmax multiplies the gradient by its result (600) first; three casts lead back to bf16, and heads
// are copied to the columns of the one projection.
TEST(Gpt2AttentionStep, MathAttentionIsMadeOfOperationsInFp32) {
  EXPECT_EQ(under(kAttentiveGpt2.changed([](OddStep& step) { step.attention = AttentionChoice::math; }),
                  {"backward layers.0.attention"}),
            R"(
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
- attention_fused_backward
+ cast_backward +720t cast 30x6 bf16->fp32 (360 > 720) -360
+ view_backward_copy +720t copy 30x6 fp32 permuted (720 > 720) -720
+ bmm_backward +720t bmm 6x 5x6x5 tn fp32 (600 720 > 720) +600t bmm 6x 5x5x6 nt fp32 (720 720 > 600) -720 -720
- split_backward
+ softmax_backward +600t +600t softmax_backward 30x5 fp32 (600 600 > 600) -600 -600 -600
+ add_backward; view_backward
+ bmm_backward +720t bmm 6x 6x5x5 tn fp32 (720 600 > 720) +720t bmm 6x 5x6x5 nt fp32 (600 720 > 720) -600 -720 -720
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
+ pointwise_backward +720t scale 36x5 fp32 (720 > 720) -720
+ view_backward
+ pointwise_backward +720t scale 30x6 fp32 (720 > 720) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward; view_backward; view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ split_backward +1080t cat 15x12 bf16 x3 joined strided (360 360 360 > 1080) -360 -360 -360
+ view_backward
)");
}

// cuDNN makes seed and offset (8 bytes each) and one statistic a query (3 · 2 · 5 · 4 = 120). The memory-efficient
// kernel rounds queries up to 32 (3 · 2 · 32 · 4 = 768), and without dropout keeps no seed.
TEST(Gpt2AttentionStep, EachFusedBackendHasItsStatistics) {
  EXPECT_EQ(kAttentiveGpt2.changed([](OddStep& step) { step.attention = AttentionChoice::cudnn; }), R"(
[forward layers.0.attention]
- attention_fused
+ attention_cudnn +8 +8 +360 +120 cudnn_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
[backward layers.0.attention]
- attention_fused_backward
+ attention_cudnn_backward +360t +360t +360t
    cudnn_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8 -8
)");
  EXPECT_EQ(kAttentiveGpt2.changed([](OddStep& step) { step.attention = AttentionChoice::efficient; }), R"(
[forward layers.0.attention]
- attention_fused
+ attention_fused +360 +768 efficient_attention 3x2x5x6 causal bf16 (360 360 360 > 360 768)
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    efficient_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 768 > 360 360 360) -360 -1080 -768 -360
)");
}

// Before PyTorch 1.11 autograd kept the input of softmax and of log_softmax besides the result, for its type alone
// (_softmax_backward_data in derivatives.yaml): scores (300 bytes) and logits (510) stay.
TEST(Gpt2AttentionStep, SoftmaxMayKeepItsInput) {
  EXPECT_EQ(
      kAttentiveGpt2.but([](OddStep& step) { step.attention = AttentionChoice::eager; }).changed([](OddStep& step) {
        step.training.softmax_saves_input = true;
      }),
      R"(
[forward layers.0.attention]
- masked_fill
+ masked_fill +300 masked_fill 6x25 bf16,bool->bf16 rows (300 25 > 300) -300
- dropout_off
+ dropout_off -1080 -360
[forward head]
- linear
+ linear +510 mm 15x17x12 nt bf16 (360 408 > 510)
[forward head.loss]
- cross_entropy
+ cross_entropy +510 log_softmax 15x17 bf16 (510 > 510) +2t +2 nll_loss 15x17 bf16 (510 120 > 2)
[backward head.loss]
- log_softmax_backward
+ log_softmax_backward +510t log_softmax_backward 15x17 bf16 (510 510 > 510) -510 -510 -510
[backward layers.0.attention]
- softmax_backward
+ softmax_backward +300t +300t softmax_backward 30x5 bf16 (300 300 > 300) -300 -300 -300 -300
)");
}

constexpr char kGpt2AttentionStepListing1[] = R"(
[forward embeddings]
embedding +720t embedding 15 of 17x12 fp32 (816 120 > 720) +40 arange 1x5 int64 (> 40)
embedding +240t embedding 5 of 7x12 fp32 (336 40 > 240)
pointwise +720 add 3x60 fp32,fp32->fp32 rows (720 240 > 720) -720 -240
dropout_off
[forward layers.0]
layer_norm +720t +60 +60 native_layer_norm 15x12 fp32 (720 48 48 > 720 60 60)
[forward layers.0.attention]
linear_autocast +72t cast 1x36 fp32->fp16 (144 > 72) +864 cast 36x12 fp32->fp16 (1728 > 864) +360
    cast 15x12 fp32->fp16 (720 > 360) +1080t addmm 15x36x12 nt fp16 (360 864 72 > 1080)
split; view; transpose; view; transpose; view; transpose; transpose; matmul
matmul_copy x2 +360 copy 30x6 fp16 permuted (360 > 360) +360 copy 36x5 fp16 transposed (360 > 360) +300t
    bmm 6x 5x5x6 nn fp16 (360 360 > 300)
pointwise +300t scale 30x5 fp16 (300 > 300) -300
pointwise +25 eq 5x5 fp32->bool strided (100 > 25)
masked_fill +300t masked_fill 6x25 fp16,bool->fp16 rows (300 25 > 300) -300
softmax +600 softmax 30x5 fp16->fp32 (300 > 600)
dropout_off; matmul
matmul_copy +300 cast 30x5 fp32->fp16 (600 > 300) +360 copy 30x6 fp16 permuted (360 > 360) +360t
    bmm 6x 5x6x5 nn fp16 (300 360 > 360)
transpose
contiguous +360 copy 30x6 fp16 permuted (360 > 360)
view
linear_autocast +24t cast 1x12 fp32->fp16 (48 > 24) +288 cast 12x12 fp32->fp16 (576 > 288) +360t
    addmm 15x12x12 nt fp16 (360 288 24 > 360)
dropout_off -1080 -360 -300 -720
[forward layers.0]
pointwise +720 add 15x12 fp32,fp16->fp32 (720 360 > 720) -360
layer_norm +720t +60 +60 native_layer_norm 15x12 fp32 (720 48 48 > 720 60 60)
[forward layers.0.feed_forward]
linear_autocast +40t cast 1x20 fp32->fp16 (80 > 40) +480 cast 20x12 fp32->fp16 (960 > 480) +360
    cast 15x12 fp32->fp16 (720 > 360) +600 addmm 15x20x12 nt fp16 (360 480 40 > 600) -720
pointwise +600 gelu 15x20 fp16 (600 > 600)
linear_autocast +24t cast 1x12 fp32->fp16 (48 > 24) +480 cast 12x20 fp32->fp16 (960 > 480) +360t
    addmm 15x12x20 nt fp16 (600 480 24 > 360)
dropout_off
[forward layers.0]
pointwise +720 add 15x12 fp32,fp16->fp32 (720 360 > 720) -360
[forward final_norm]
layer_norm +720t +60 +60 native_layer_norm 15x12 fp32 (720 48 48 > 720 60 60)
[forward head]
linear_autocast +408 cast 17x12 fp32->fp16 (816 > 408) +360 cast 15x12 fp32->fp16 (720 > 360) +510t
    mm 15x17x12 nt fp16 (360 408 > 510) -720
view; view
[forward head.loss]
cross_entropy +510 log_softmax 15x17 fp16 (510 > 510) +1020 cast 15x17 fp16->fp32 (510 > 1020) +4t +4
    nll_loss 15x17 fp32 (1020 120 > 4) -510 -72 -24 -40 -24
[forward]
loss_division +4 div 1x1 fp32 (4 > 4) -4
pointwise +4 mul 1x1 fp32,fp32->fp32 (4 4 > 4)
[backward]
backward_call +4t fill 1x1 fp32 (> 4)
backward_first x40
pointwise_backward +4t mul 1x1 fp32,fp32->fp32 (4 4 > 4)
pointwise_backward +4t div 1x1 fp32 (4 > 4) -4
[backward head.loss]
nll_backward +1020t nll_loss_backward 15x17 fp32 (4 120 > 1020) -4 -1020 -4
cast_backward +510t cast 15x17 fp32->fp16 (1020 > 510) -1020
log_softmax_backward +510t log_softmax_backward 15x17 fp16 (510 510 > 510) -510 -510
view_backward; view_backward
[backward head]
mm_backward +408t mm 17x12x15 tn fp16 (510 360 > 408) +360t mm 15x12x17 nn fp16 (510 408 > 360) -510 -408 -360
view_backward; view_backward
cast_backward +720t cast 15x12 fp16->fp32 (360 > 720) -360
cast_backward +816g cast 17x12 fp16->fp32 (408 > 816) -408
[backward final_norm]
layer_norm_backward +720t +48g +48g native_layer_norm_backward 15x12 fp32 (720 720 48 60 60 > 720 48 48) -720 -720
    -60 -60
accumulate_grad; accumulate_grad; add_backward
[backward layers.0]
cast_backward +360t cast 15x12 fp32->fp16 (720 > 360)
view_backward
[backward layers.0.feed_forward]
addmm_backward +600t mm 15x20x12 nn fp16 (360 480 > 600) +480t mm 12x20x15 tn fp16 (360 600 > 480) +24t
    sum 15x12 fp16 rows (360 > 24) -360 -600 -480
view_backward; view_backward
cast_backward +960g cast 12x20 fp16->fp32 (480 > 960) -480
accumulate_grad
cast_backward +48g cast 1x12 fp16->fp32 (24 > 48) -24
accumulate_grad
pointwise_backward +600t gelu_backward 15x20 fp16,fp16->fp16 (600 600 > 600) -600 -600
view_backward
addmm_backward +360t mm 15x12x20 nn fp16 (600 480 > 360) +480t mm 20x12x15 tn fp16 (600 360 > 480) +40t
    sum 15x20 fp16 rows (600 > 40) -600 -360 -480
view_backward; view_backward
cast_backward +720t cast 15x12 fp16->fp32 (360 > 720) -360
cast_backward +960g cast 20x12 fp16->fp32 (480 > 960) -480
accumulate_grad
cast_backward +80g cast 1x20 fp16->fp32 (40 > 80) -40
accumulate_grad
[backward layers.0]
layer_norm_backward +720t +48g +48g native_layer_norm_backward 15x12 fp32 (720 720 48 60 60 > 720 48 48) -720 -720
    -60 -60
fan_in_add add_ 15x12 fp32,fp32->fp32 (720 720 > 720) -720
accumulate_grad; accumulate_grad; add_backward
cast_backward +360t cast 15x12 fp32->fp16 (720 > 360)
view_backward
[backward layers.0.attention]
addmm_backward +360t mm 15x12x12 nn fp16 (360 288 > 360) +288t mm 12x12x15 tn fp16 (360 360 > 288) +24t
    sum 15x12 fp16 rows (360 > 24) -360 -360 -288
view_backward; view_backward
cast_backward +576g cast 12x12 fp16->fp32 (288 > 576) -288
accumulate_grad
cast_backward +48g cast 1x12 fp16->fp32 (24 > 48) -24
accumulate_grad; view_backward; view_backward; view_backward; view_backward
view_backward_copy +360t copy 30x6 fp16 permuted (360 > 360) -360
bmm_backward +360t bmm 6x 5x6x5 tn fp16 (300 360 > 360) +300t bmm 6x 5x5x6 nt fp16 (360 360 > 300) -360 -360 -300
view_backward; view_backward; view_backward; view_backward; view_backward
cast_backward +600t cast 30x5 fp16->fp32 (300 > 600) -300
softmax_backward +300t +600t softmax_backward 30x5 fp32->fp16 (600 600 > 300) -600 -600 -600
masked_fill_backward +300t masked_fill 6x25 fp16,bool->fp16 rows (300 25 > 300) -300 -25
pointwise_backward +300t scale 30x5 fp16 (300 > 300) -300
view_backward
bmm_backward +360t bmm 6x 6x5x5 tn fp16 (360 300 > 360) +360t bmm 6x 5x6x5 nt fp16 (300 360 > 360) -300 -360 -360
view_backward; view_backward; view_backward; view_backward; view_backward; view_backward; view_backward; view_backward;
    view_backward
view_backward_copy +360t copy 30x6 fp16 permuted (360 > 360) -360
view_backward; view_backward; view_backward; view_backward
view_backward_copy +360t copy 30x6 fp16 permuted (360 > 360) -360
split_backward +1080t cat 15x12 fp16 x3 joined strided (360 360 360 > 1080) -360 -360 -360
view_backward
addmm_backward +360t mm 15x12x36 nn fp16 (1080 864 > 360) +864t mm 36x12x15 tn fp16 (1080 360 > 864) +72t
    sum 15x36 fp16 rows (1080 > 72) -1080 -360 -864
view_backward; view_backward
cast_backward +720t cast 15x12 fp16->fp32 (360 > 720) -360
cast_backward +1728g cast 36x12 fp16->fp32 (864 > 1728) -864
accumulate_grad
cast_backward +144g cast 1x36 fp16->fp32 (72 > 144) -72
accumulate_grad
[backward layers.0]
layer_norm_backward +720t +48g +48g native_layer_norm_backward 15x12 fp32 (720 720 48 60 60 > 720 48 48) -720 -720
    -60 -60
fan_in_add add_ 15x12 fp32,fp32->fp32 (720 720 > 720) -720
accumulate_grad; accumulate_grad
[backward embeddings]
add_backward +240t sum 3x60 fp32 rows (720 > 240)
embedding_backward +336g embedding_dense_backward 5 of 7x12 fp32 (240 40 > 336) -240 -40
accumulate_grad
embedding_backward +816t embedding_dense_backward 15 of 17x12 fp32 (720 120 > 816) -720
fan_in_add add_ 17x12 fp32,fp32->fp32 (816 816 > 816) -816
accumulate_grad -4 -4 -4
unscale_fixed
[optimizer]
per_parameter_unscale x16 +8t cast 1x1 fp32->fp64 (4 > 8) +8t reciprocal 1x1 fp64 (8 > 8) -8 +4t
    cast 1x1 fp64->fp32 (8 > 4) -8 +4t fill 1x1 fp32 (> 4) +4t copy 1x1 fp32 (4 > 4) +4t copy 1x1 fp32 (4 > 4)
    amp_foreach_unscale 16 tensors, 1496 elements fp32 (816 336 48 48 1728 144 576 48 48 48 960 80 960 48 48 48) -4
    -4 -4 copy_to_host 1x1 fp32 from gpu (4) sync pointwise 1x1 fp32,fp32->fp32 (4 4 > 4) -4
per_parameter_zero_grad x16 -816 -336 -48 -48 -1728 -144 -576 -48 -48 -48 -960 -80 -960 -48 -48 -48
)";

// Autocast (aten/src/ATen/autocast_mode.cpp) casts inputs, weights and biases of products to fp16; casts of weights
// stay until the block ends (72, 24, 40 and 24 bytes of biases go then, those of weights with the product's backward
// pass). softmax reads fp16 and gives fp32 in one kernel; cross_entropy names a type for log_softmax, which stays in
// fp16, and nll_loss casts. Gradients become fp32 again. GradScaler multiplies the loss and divides gradients in one
// kernel, and the host reads whether one was infinite (torch/amp/grad_scaler.py).
TEST(Gpt2AttentionStep, MixedPrecisionCastsOperandsOfProducts) {
  EXPECT_EQ(kAttentiveGpt2
                .but([](OddStep& step) {
                  step.training.precision = Precision::amp_fp16;
                  step.attention = AttentionChoice::eager;
                })
                .text(),
            kGpt2AttentionStepListing1);
}

}  // namespace
}  // namespace ridgeline
