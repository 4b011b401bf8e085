// Positions by which compositions turn heads.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;

constexpr char kComposedPositionsStepListing1[] = R"(
[forward positions]
+ pointwise x8 +20t cast 1x5 int64->fp32 (40 > 20) +60t mm 3x5x1 nn fp32 (12 20 > 60) +120t
    cat 5x3 fp32 x2 joined strided (60 60 > 120) +120t rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120)
    -120 +120t rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120) -120 +60 cast 5x6 fp32->bf16 (120 > 60) +60
    cast 5x6 fp32->bf16 (120 > 60) -20 -60 -120 -120 -120
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ pointwise x4
+ concatenate +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) +180t scale 30x3 bf16 strided (180 > 180) +360t
    cat 30x3 bf16 x2 joined strided (180 180 > 360) -180 +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360 +360
    add 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360 -360
+ pointwise x4
+ concatenate +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) +180t scale 30x3 bf16 strided (180 > 180) +360t
    cat 30x3 bf16 x2 joined strided (180 180 > 360) -180 +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360 +360
    add 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360 -360 -360 -360
[backward]
- backward_first x34
+ backward_first x40
[backward layers.0.attention]
+ add_backward
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360)
+ pointwise_backward +180t scale 30x3 bf16 strided (180 > 180)
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -180
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -360
+ fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360
+ fan_in_add add_ 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360
+ add_backward
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -60
+ pointwise_backward +180t scale 30x3 bf16 strided (180 > 180)
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -180
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -360
+ fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360 -60
+ fan_in_add add_ 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360
+ view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
)";

// LlamaRotaryEmbedding (modeling_llama.py): frequencies times positions in fp32 (3 · 5 · 4 = 60 bytes), joined with
// themselves (120), cosine and sine, each times a scale, cast to bf16 (60 each; kept). apply_rotary_pos_emb: q · cos,
// rotate_half (the negated second half before the first), times sin, sum; the products keep cos and sin only. Backward
// each half fills 360 bytes with zeros and copies into them (slice_backward), and all are added; the result lies by
// heads and is copied for the projection.
TEST(ComposedPositionsStep, PairsOfNumbersAreTurned) {
  EXPECT_EQ(changes_by_keys("positions: rotary"), kComposedPositionsStepListing1);
}

}  // namespace
}  // namespace ridgeline
