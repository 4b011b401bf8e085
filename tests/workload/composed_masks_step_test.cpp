// Keys that heads share, and what a causal mask needs.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;

constexpr char kComposedMasksStepListing1[] = R"(
[forward layers.0.attention]
- linear
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- linear
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 kv1 (360 180 180 > 360 120)
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +180t +180t
    flash_attention_backward 3x2x5x6 causal bf16 kv1 (360 360 180 180 360 120 > 360 180 180) -360 -180 -360 -180 -120
    -360 -8 -16
- addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
- addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x19 -408 -288 -24 -144 -12 -144 -12 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

// scaled_dot_product_attention with enable_gqa: keys and values have one head (15 · 6 · 2 = 180 bytes), kernels and
// their gradients too; nothing is repeated.
TEST(ComposedMasksStep, HeadsShareKeys) {
  EXPECT_EQ(changes_by_keys("key_value_heads: 1"), kComposedMasksStepListing1);
}

constexpr char kComposedMasksStepListing5[] = R"(
[forward positions]
- pointwise x2; pointwise x8
[forward layers.0.attention]
- attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 bf16 (360 360 360 > 360 120)
[forward final_norm]
- layer_norm_module
+ layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward]
- backward_first x34
+ backward_first x23
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 bf16 (360 360 360 360 360 120 > 360 360 360) -360 -360 -360 -360 -120 -360 -8
    -16
)";

constexpr char kComposedMasksStepListing6[] = R"(
[forward positions]
- pointwise x8
[backward]
- backward_first x34
+ backward_first x25
)";

// A network that is not causal makes no positions and looks for no documents; one that does not look makes positions
// only.
TEST(ComposedMasksStep, DocumentsAreLookedForUnderACausalMask) {
  EXPECT_EQ(changes_by_keys("causal: false"), kComposedMasksStepListing5);
  EXPECT_EQ(changes_by_keys("looks_for_documents: false"), kComposedMasksStepListing6);
}

}  // namespace
}  // namespace ridgeline
