// A step of a small llama, operation by operation, and what its variants do otherwise.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

const OddStep kLlama = OddStep(ModelFamily::llama).but([](OddStep& step) { step.model.plain = true; });

constexpr char kLlamaStepListing1[] = R"(
[forward embeddings]
embedding +1080t embedding 15 of 17x36 bf16 (1224 120 > 1080)
[forward positions]
pointwise x12 +24t arange 1x3 int64 (> 24) +12t cast 1x3 int64->fp32 (24 > 12) -24 +12t div 1x3 fp32 (12 > 12) +12t
    pow 1x3 fp32 (12 > 12) +12t reciprocal 1x3 fp32 (12 > 12) +40t arange 1x5 int64 (> 40) +20t
    cast 1x5 int64->fp32 (40 > 20) -40 +60t mul 5x3 fp32,fp32->fp32 broadcast (20 12 > 60) -20 -12 -12 -12 +120t
    cat 5x3 fp32 x2 joined (60 60 > 120) +120t rope 5x6 fp32 (120 > 120) +60 cast 5x6 fp32->bf16 (120 > 60) -120
    +120t rope 5x6 fp32 (120 > 120) +60 cast 5x6 fp32->bf16 (120 > 60) -120 -12 -60 -120
[forward layers.0]
pointwise x6 +2160 cast 15x36 bf16->fp32 (1080 > 2160) +2160t pow 15x36 fp32 (2160 > 2160) +60t
    mean 15x36 fp32 (2160 > 60) -2160 +60t add 15x1 fp32 (60 > 60) +60 sqrt 15x1 fp32 (60 > 60) -60 +2160t
    mul 15x36 fp32,fp32->fp32 broadcast (2160 60 > 2160) +1080 cast 15x36 fp32->bf16 (2160 > 1080) +1080
    mul 15x36 bf16,bf16->bf16 rows (72 1080 > 1080) -2160 -60
[forward layers.0.attention]
linear +1080t mm 15x36x36 nt bf16 (1080 2592 > 1080)
view; transpose
linear +360t mm 15x12x36 nt bf16 (1080 864 > 360)
view; transpose
linear +360 mm 15x12x36 nt bf16 (1080 864 > 360)
view; transpose; pointwise x4
concatenate +1080t mul 90x6 bf16,bf16->bf16 broadcast (1080 60 > 1080) +540t scale 90x3 bf16 strided (540 > 540)
    +1080t cat 90x3 bf16 x2 joined strided (540 540 > 1080) -540 +1080t
    mul 18x30 bf16,bf16->bf16 rows (1080 60 > 1080) -1080 +1080 add 90x6 bf16,bf16->bf16 strided (1080 1080 > 1080)
    -1080 -1080
pointwise x4
concatenate +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) +180t scale 30x3 bf16 strided (180 > 180) +360t
    cat 30x3 bf16 x2 joined strided (180 180 > 360) -180 +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360 +360
    add 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360 -360 -1080 -360
attention_fused +1080 +360 +16 +8 flash_attention 3x6x5x6 causal bf16 kv2 (1080 360 360 > 1080 360)
transpose; view; view
linear +1080t mm 15x36x36 nt bf16 (1080 2592 > 1080)
[forward layers.0]
pointwise +1080t add 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080
pointwise x6 +2160 cast 15x36 bf16->fp32 (1080 > 2160) +2160t pow 15x36 fp32 (2160 > 2160) +60t
    mean 15x36 fp32 (2160 > 60) -2160 +60t add 15x1 fp32 (60 > 60) +60 sqrt 15x1 fp32 (60 > 60) -60 +2160t
    mul 15x36 fp32,fp32->fp32 broadcast (2160 60 > 2160) +1080 cast 15x36 fp32->bf16 (2160 > 1080) +1080
    mul 15x36 bf16,bf16->bf16 rows (72 1080 > 1080) -2160 -60
[forward layers.0.feed_forward]
linear +600 mm 15x20x36 nt bf16 (1080 1440 > 600)
pointwise +600 silu 15x20 bf16 (600 > 600)
linear +600 mm 15x20x36 nt bf16 (1080 1440 > 600)
pointwise +600 mul 15x20 bf16,bf16->bf16 (600 600 > 600)
linear +1080t mm 15x36x20 nt bf16 (600 1440 > 1080)
[forward layers.0]
pointwise +1080t add 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080 -1080
[forward final_norm]
pointwise x6 +2160 cast 15x36 bf16->fp32 (1080 > 2160) +2160t pow 15x36 fp32 (2160 > 2160) +60t
    mean 15x36 fp32 (2160 > 60) -2160 +60t add 15x1 fp32 (60 > 60) +60 sqrt 15x1 fp32 (60 > 60) -60 +2160t
    mul 15x36 fp32,fp32->fp32 broadcast (2160 60 > 2160) +1080 cast 15x36 fp32->bf16 (2160 > 1080) +1080
    mul 15x36 bf16,bf16->bf16 rows (72 1080 > 1080) -2160 -60 -1080
[forward head]
linear +510t mm 15x17x36 nt bf16 (1080 1224 > 510) +1020t cast 15x17 bf16->fp32 (510 > 1020)
view; view
[forward head.loss]
cross_entropy +1020 log_softmax 15x17 fp32 (1020 > 1020) +4t +4 nll_loss 15x17 fp32 (1020 120 > 4) -1020 -1080 -510
[forward]
loss_division +4 div 1x1 fp32 (4 > 4) -4
[backward]
backward_call +4t fill 1x1 fp32 (> 4)
backward_first x40
pointwise_backward +4t div 1x1 fp32 (4 > 4)
[backward head.loss]
nll_backward +1020t nll_loss_backward 15x17 fp32 (4 120 > 1020) -4 -4
log_softmax_backward +1020t log_softmax_backward 15x17 fp32 (1020 1020 > 1020) -1020 -1020
view_backward
cast_backward +510t cast 15x17 fp32->bf16 (1020 > 510) -1020
view_backward
[backward head]
mm_backward +1224g mm 17x36x15 tn bf16 (510 1080 > 1224) +1080t mm 15x36x17 nn bf16 (510 1224 > 1080) -510 -1080
view_backward; view_backward; accumulate_grad
[backward final_norm]
pointwise_backward +1080t mul 15x36 bf16,bf16->bf16 rows (1080 72 > 1080) +1080t
    mul 15x36 bf16,bf16->bf16 (1080 1080 > 1080) +72g sum 15x36 bf16 rows (1080 > 72) -1080 -1080 -1080
accumulate_grad
cast_backward +2160t cast 15x36 bf16->fp32 (1080 > 2160) -1080
pointwise_backward +2160t mul 15x36 fp32,fp32->fp32 (2160 2160 > 2160) +2160t
    mul 15x36 fp32,fp32->fp32 broadcast (2160 60 > 2160) +60t sum 15x36 fp32 cols (2160 > 60) -2160 -2160
pointwise_backward +60t pow 15x1 fp32 (60 > 60) +60t scale 15x1 fp32 (60 > 60) +60t
    mul 15x1 fp32,fp32->fp32 (60 60 > 60) -60 -60 -60 -60
add_backward
pointwise_backward +2160t div 15x36 fp32 strided (60 > 2160) -60
pointwise_backward +2160t copy 1x540 fp32 (2160 > 2160) +2160t scale 15x36 fp32 (2160 > 2160) +2160t
    mul 15x36 fp32,fp32->fp32 (2160 2160 > 2160) -2160 -2160 -2160 -2160
fan_in_add add_ 15x36 fp32,fp32->fp32 (2160 2160 > 2160) -2160
cast_backward +1080t cast 15x36 fp32->bf16 (2160 > 1080) -2160
add_backward; view_backward
[backward layers.0.feed_forward]
mm_backward +1440g mm 36x20x15 tn bf16 (1080 600 > 1440) +600t mm 15x20x36 nn bf16 (1080 1440 > 600) -600
view_backward; view_backward; accumulate_grad
pointwise_backward +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600) +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600)
    -600 -600 -600
view_backward
mm_backward +1440g mm 20x36x15 tn bf16 (600 1080 > 1440) +1080t mm 15x36x20 nn bf16 (600 1440 > 1080) -600
view_backward; view_backward; accumulate_grad
pointwise_backward +600t silu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
view_backward
mm_backward +1440g mm 20x36x15 tn bf16 (600 1080 > 1440) +1080t mm 15x36x20 nn bf16 (600 1440 > 1080) -600 -1080
view_backward
fan_in_add +1080t add 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080 -1080
view_backward; accumulate_grad
[backward layers.0]
pointwise_backward +1080t mul 15x36 bf16,bf16->bf16 rows (1080 72 > 1080) +1080t
    mul 15x36 bf16,bf16->bf16 (1080 1080 > 1080) +72g sum 15x36 bf16 rows (1080 > 72) -1080 -1080 -1080
accumulate_grad
cast_backward +2160t cast 15x36 bf16->fp32 (1080 > 2160) -1080
pointwise_backward +2160t mul 15x36 fp32,fp32->fp32 (2160 2160 > 2160) +2160t
    mul 15x36 fp32,fp32->fp32 broadcast (2160 60 > 2160) +60t sum 15x36 fp32 cols (2160 > 60) -2160 -2160
pointwise_backward +60t pow 15x1 fp32 (60 > 60) +60t scale 15x1 fp32 (60 > 60) +60t
    mul 15x1 fp32,fp32->fp32 (60 60 > 60) -60 -60 -60 -60
add_backward
pointwise_backward +2160t div 15x36 fp32 strided (60 > 2160) -60
pointwise_backward +2160t copy 1x540 fp32 (2160 > 2160) +2160t scale 15x36 fp32 (2160 > 2160) +2160t
    mul 15x36 fp32,fp32->fp32 (2160 2160 > 2160) -2160 -2160 -2160 -2160
fan_in_add add_ 15x36 fp32,fp32->fp32 (2160 2160 > 2160) -2160
cast_backward +1080t cast 15x36 fp32->bf16 (2160 > 1080) -2160
fan_in_add add_ 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080
add_backward; view_backward
[backward layers.0.attention]
mm_backward +2592g mm 36x36x15 tn bf16 (1080 1080 > 2592) +1080t mm 15x36x36 nn bf16 (1080 2592 > 1080)
view_backward; view_backward; accumulate_grad; view_backward; view_backward
attention_fused_backward +1080t +360t +360t
    flash_attention_backward 3x6x5x6 causal bf16 kv2 (1080 1080 360 360 1080 360 > 1080 360 360) -1080 -360 -1080
    -360 -360 -1080 -8 -16
add_backward
pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360)
view_backward
pointwise_backward +180t scale 30x3 bf16 strided (180 > 180)
pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -180
pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -360
fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360
fan_in_add add_ 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360
add_backward
pointwise_backward +1080t mul 90x6 bf16,bf16->bf16 broadcast (1080 60 > 1080) -60
view_backward
pointwise_backward +540t scale 90x3 bf16 strided (540 > 540)
pointwise_backward +1080t fill 90x6 bf16 (> 1080) copy 90x3 bf16 permuted (540 > 1080) -540
pointwise_backward +1080t fill 90x6 bf16 (> 1080) copy 90x3 bf16 permuted (540 > 1080) -1080
fan_in_add add_ 90x6 bf16,bf16->bf16 (1080 1080 > 1080) -1080
pointwise_backward +1080t mul 90x6 bf16,bf16->bf16 broadcast (1080 60 > 1080) -1080 -60
fan_in_add add_ 90x6 bf16,bf16->bf16 strided (1080 1080 > 1080) -1080
view_backward; view_backward; view_backward
mm_backward +864g mm 12x36x15 tn bf16 (360 1080 > 864) +1080t mm 15x36x12 nn bf16 (360 864 > 1080) -360
view_backward; view_backward; accumulate_grad; view_backward; view_backward
view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
view_backward
mm_backward +864g mm 12x36x15 tn bf16 (360 1080 > 864) +1080t mm 15x36x12 nn bf16 (360 864 > 1080) -360
view_backward
fan_in_add +1080t add 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080 -1080
view_backward; accumulate_grad; view_backward; view_backward
view_backward_copy +1080t copy 90x6 bf16 permuted (1080 > 1080) -1080
view_backward
mm_backward +2592g mm 36x36x15 tn bf16 (1080 1080 > 2592) +1080t mm 15x36x36 nn bf16 (1080 2592 > 1080) -1080 -1080
view_backward
fan_in_add add_ 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080
view_backward; accumulate_grad
[backward layers.0]
pointwise_backward +1080t mul 15x36 bf16,bf16->bf16 rows (1080 72 > 1080) +1080t
    mul 15x36 bf16,bf16->bf16 (1080 1080 > 1080) +72g sum 15x36 bf16 rows (1080 > 72) -1080 -1080 -1080
accumulate_grad
cast_backward +2160t cast 15x36 bf16->fp32 (1080 > 2160) -1080
pointwise_backward +2160t mul 15x36 fp32,fp32->fp32 (2160 2160 > 2160) +2160t
    mul 15x36 fp32,fp32->fp32 broadcast (2160 60 > 2160) +60t sum 15x36 fp32 cols (2160 > 60) -2160 -2160
pointwise_backward +60t pow 15x1 fp32 (60 > 60) +60t scale 15x1 fp32 (60 > 60) +60t
    mul 15x1 fp32,fp32->fp32 (60 60 > 60) -60 -60 -60 -60
add_backward
pointwise_backward +2160t div 15x36 fp32 strided (60 > 2160) -60
pointwise_backward +2160t copy 1x540 fp32 (2160 > 2160) +2160t scale 15x36 fp32 (2160 > 2160) +2160t
    mul 15x36 fp32,fp32->fp32 (2160 2160 > 2160) -2160 -2160 -2160 -2160
fan_in_add add_ 15x36 fp32,fp32->fp32 (2160 2160 > 2160) -2160
cast_backward +1080t cast 15x36 fp32->bf16 (2160 > 1080) -2160
fan_in_add add_ 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080
[backward embeddings]
embedding_backward +1224g embedding_dense_backward 15 of 17x36 bf16 (1080 120 > 1224) -1080
accumulate_grad -4 -4
per_parameter_zero_grad x12 -1224 -72 -2592 -864 -864 -2592 -72 -1440 -1440 -1440 -72 -1224
)";

// A Llama block in plain PyTorch, 36 columns, 6 heads of queries and 2 of keys. The norm runs in fp32 (15 · 36 · 4 =
// 2160 bytes): pow keeps x, rsqrt its result (60), both products their factors. Turned heads are q · cos +
// rotate_half(q) · sin: products keep cos and sin only (5 · 6 · 2 = 60). flash_attention reads two key heads as they
// are (kv2: 360). silu keeps its input, the gate's product both factors (600 each). Gradients of slices fill zeros and
// copy; rsqrt's and pow's are three kernels each (derivatives.yaml).
TEST(LlamaStep, RunsTheModulesOfTheNetworkForwardAndTheirFormulasBackward) {
  EXPECT_EQ(kLlama.text(), kLlamaStepListing1);
}

// torch.nn.RMSNorm: one kernel, which keeps its input and the inverse root of each row (15 · 4 = 60).
TEST(LlamaStep, ANormMayBeOneKernel) {
  EXPECT_EQ(kLlama.changed([](OddStep& step) { step.model.fused_norms = true; }), R"(
[forward embeddings]
- embedding
+ embedding +1080 embedding 15 of 17x36 bf16 (1224 120 > 1080)
[forward layers.0]
- pointwise x6
+ layer_norm_module +1080 +60 rms_norm 15x36 bf16 (1080 72 > 1080 60)
- pointwise; pointwise x6
+ pointwise +1080 add 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080
+ layer_norm_module +1080 +60 rms_norm 15x36 bf16 (1080 72 > 1080 60)
- pointwise
[forward final_norm]
- pointwise x6
[forward layers.0]
+ pointwise +1080 add 15x36 bf16,bf16->bf16 (1080 1080 > 1080) -1080
[forward final_norm]
+ layer_norm_module +1080 +60 rms_norm 15x36 bf16 (1080 72 > 1080 60)
[forward head.loss]
- cross_entropy
+ cross_entropy +1020 log_softmax 15x17 fp32 (1020 > 1020) +4t +4 nll_loss 15x17 fp32 (1020 120 > 4) -1020 -510
[backward final_norm]
- pointwise_backward
+ layer_norm_backward +1080t +72g rms_norm_backward 15x36 bf16 (1080 1080 72 60 > 1080 72) -1080 -1080 -60
- cast_backward; pointwise_backward; pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add;
    cast_backward; add_backward
[backward layers.0]
- pointwise_backward; accumulate_grad; cast_backward; pointwise_backward; pointwise_backward; add_backward;
    pointwise_backward; pointwise_backward; fan_in_add; cast_backward
+ layer_norm_backward +1080t +72g rms_norm_backward 15x36 bf16 (1080 1080 72 60 > 1080 72) -1080 -1080 -60
+ accumulate_grad
- pointwise_backward; accumulate_grad; cast_backward; pointwise_backward; pointwise_backward; add_backward;
    pointwise_backward; pointwise_backward; fan_in_add; cast_backward
+ layer_norm_backward +1080t +72g rms_norm_backward 15x36 bf16 (1080 1080 72 60 > 1080 72) -1080 -1080 -60
+ accumulate_grad
)");
}

}  // namespace
}  // namespace ridgeline
