// What compositions with experts share among all tokens.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;

// Qwen2MoeSparseMoeBlock (modeling_qwen2_moe.py): a feed-forward part that every token runs (15 rows of 8: 240 bytes)
// is added to what the experts gave; sigmoid of a product with one row of 12 weights (24 bytes, 15 numbers: 30)
// multiplies it before. The product keeps both factors, sigmoid its result (listed as tanh, which reads as much).
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
