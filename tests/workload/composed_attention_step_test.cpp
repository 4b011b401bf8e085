// How compositions project queries, keys and values, and attend.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;

constexpr char kComposedAttentionStepListing1[] = R"(
[forward layers.0.attention]
- linear
+ linear +1080 addmm 15x36x12 nt bf16 (360 864 72 > 1080)
+ split
- linear; linear
[backward]
- backward_first x34
+ backward_first x32
[backward layers.0.attention]
- attention_fused_backward; view_backward; view_backward; view_backward; addmm_backward; accumulate_grad;
    view_backward; accumulate_grad; view_backward; view_backward
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8 -16
- addmm_backward; accumulate_grad; accumulate_grad; fan_in_add
+ split_backward +1080t cat 15x12 bf16 x3 joined (360 360 360 > 1080) -360 -360 -360
- addmm_backward
+ addmm_backward +360t mm 15x12x36 nn bf16 (1080 864 > 360) +864g mm 36x12x15 tn bf16 (1080 360 > 864) +72g
    sum 15x36 bf16 rows (1080 > 72) -1080 -360
- fan_in_add
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x15 -408 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedAttentionStepListing2[] = R"(
[forward layers.0.attention]
- linear; view; transpose; linear; view; transpose; linear
+ linear +1080 addmm 15x36x12 nt bf16 (360 864 72 > 1080)
+ split
[backward]
- backward_first x34
+ backward_first x32
[backward layers.0.attention]
- attention_fused_backward; view_backward; view_backward; view_backward; addmm_backward; accumulate_grad;
    view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward; addmm_backward;
    accumulate_grad; view_backward; accumulate_grad; view_backward; fan_in_add
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8 -16
+ split_backward +1080t cat 30x6 bf16 x3 joined strided (360 360 360 > 1080) -360 -360 -360
+ view_backward_copy +1080t copy 30x18 bf16 permuted (1080 > 1080) -1080
- addmm_backward
+ addmm_backward +360t mm 15x12x36 nn bf16 (1080 864 > 360) +864g mm 36x12x15 tn bf16 (1080 360 > 864) +72g
    sum 15x36 bf16 rows (1080 > 72) -1080 -360
- fan_in_add
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x15 -408 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedAttentionStepListing3[] = R"(
[forward layers.0.attention]
- linear
+ linear +1080 addmm 15x36x12 nt bf16 (360 864 72 > 1080)
+ split
- linear; view; linear; view
[backward]
- backward_first x34
+ backward_first x32
[backward layers.0.attention]
- attention_fused_backward; view_backward; view_backward; view_backward; addmm_backward; accumulate_grad;
    view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward; addmm_backward;
    accumulate_grad
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8 -16
- accumulate_grad
+ pointwise_backward +1080t fill 30x18 bf16 (> 1080) copy 30x6 bf16 permuted (360 > 1080) -360
- fan_in_add
+ pointwise_backward +1080t fill 30x18 bf16 (> 1080) copy 30x6 bf16 permuted (360 > 1080) -360
+ fan_in_add add_ 30x18 bf16,bf16->bf16 (1080 1080 > 1080) -1080
+ pointwise_backward +1080t fill 30x18 bf16 (> 1080) copy 30x6 bf16 permuted (360 > 1080) -360
+ fan_in_add add_ 30x18 bf16,bf16->bf16 (1080 1080 > 1080) -1080
- addmm_backward
+ addmm_backward +360t mm 15x12x36 nn bf16 (1080 864 > 360) +864g mm 36x12x15 tn bf16 (1080 360 > 864) +72g
    sum 15x36 bf16 rows (1080 > 72) -1080 -360
- fan_in_add
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x15 -408 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedAttentionStepListing5[] = R"(
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
- view
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360)
[backward]
- backward_first x34
+ backward_first x38
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
+ view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward
)";

constexpr char kComposedAttentionStepListing8[] = R"(
[forward layers.0.attention]
- linear
+ linear +360 mm 15x12x12 nt bf16 (360 288 > 360)
[backward layers.0.attention]
- addmm_backward; accumulate_grad; view_backward; accumulate_grad
+ mm_backward +288g mm 12x12x15 tn bf16 (360 360 > 288) +360t mm 15x12x12 nn bf16 (360 288 > 360) -360
+ accumulate_grad; view_backward
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x18 -408 -288 -24 -288 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

// One product gives 36 columns (15 · 36 · 2 = 1080 bytes), which attention keeps as views. Split by columns, three
// gradients are joined; parts of each head (GPTNeoXAttention) are joined by head and copied back to [token, head];
// parts taken by select (BloomAttention) each fill 1080 bytes with zeros and are added. Heads copied before attention
// give a result that lies by heads too, for flash_attention makes it like its queries: one more copy. Whisper's key
// projection has no bias.
TEST(ComposedAttentionStep, ProjectionsAreOneOrSeveral) {
  EXPECT_EQ(changes_by_keys("projection: fused"), kComposedAttentionStepListing1);
  EXPECT_EQ(changes_by_keys("projection: fused-by-head"), kComposedAttentionStepListing2);
  EXPECT_EQ(changes_by_keys("projection: fused-by-head, parts_selected: true"), kComposedAttentionStepListing3);
  EXPECT_EQ(changes_by_keys("copies_heads: true"), kComposedAttentionStepListing5);
  EXPECT_EQ(changes_by_keys("key_bias: false"), kComposedAttentionStepListing8);
}

// Qwen3Attention norms each head (modeling_qwen3.py): 30 rows of 6, whose mean and deviation are 30 · 4 = 120 bytes
// each, before heads and tokens change places, so that nothing is copied. A scale of queries (BartAttention) is an
// operation on 15 · 12 numbers; attention keeps its result instead of the projection's.
TEST(ComposedAttentionStep, QueriesAndKeysAreNormed) {
  EXPECT_EQ(changes_by_keys("query_key_norm: head"), R"(
[forward layers.0.attention]
+ layer_norm_module +360 +120 +120 native_layer_norm 30x6 bf16 (360 12 12 > 360 120 120)
+ layer_norm_module +360 +120 +120 native_layer_norm 30x6 bf16 (360 12 12 > 360 120 120)
[backward]
- backward_first x34
+ backward_first x36
[backward layers.0.attention]
+ layer_norm_backward +360t +12g +12g native_layer_norm_backward 30x6 bf16 (360 360 12 120 120 > 360 12 12) -360 -360
    -120 -120
+ accumulate_grad; accumulate_grad
+ layer_norm_backward +360t +12g +12g native_layer_norm_backward 30x6 bf16 (360 360 12 120 120 > 360 12 12) -360 -360
    -120 -120
+ accumulate_grad; accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -12 -12 -12 -12 -24 -24 -480 -40 -480 -24 -24
    -24 -24 -24
)");
  EXPECT_EQ(changes_by_keys("score_scale: queries"), R"(
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ pointwise +360 scale 15x12 bf16 (360 > 360) -360
[backward]
- backward_first x34
+ backward_first x35
[backward layers.0.attention]
+ pointwise_backward +360t scale 15x12 bf16 (360 > 360) -360
)");
}

}  // namespace
}  // namespace ridgeline
