// Disentangled positions: contents and distances score each other.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::odd_composition;
using testing_support::under;

constexpr char kComposedDisentangledStepListing1[] = R"(
[forward layers.0.attention]
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
contiguous +360 copy 30x6 bf16 permuted (360 > 360)
view -360
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
contiguous +360 copy 30x6 bf16 permuted (360 > 360)
view -360
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
contiguous +360 copy 30x6 bf16 permuted (360 > 360)
view -360
pointwise x3 +360 div 36x5 bf16 (360 > 360) +300t bmm 6x 5x5x6 nt bf16 (360 360 > 300)
dropout_off
linear +192t addmm 8x12x12 nt bf16 (192 288 24 > 192)
view; transpose
contiguous +192t copy 16x6 bf16 permuted (192 > 192)
view -192
contiguous +576 copy 48x6 bf16 permuted (192 > 576) -192
linear +192t addmm 8x12x12 nt bf16 (192 288 24 > 192)
view; transpose
contiguous +192t copy 16x6 bf16 permuted (192 > 192)
view -192
contiguous +576 copy 48x6 bf16 permuted (192 > 576) -192
pointwise x5 +480 bmm 6x 5x8x6 nt bf16 (360 576 > 480) +200t add 5x5 int64 (200 > 200) +200 add 5x5 int64 (200 > 200)
    -200 +300t gather 6x25 int64,bf16->bf16 rows (200 480 > 300) +300t div 30x5 bf16 (300 > 300) +300t
    add 30x5 bf16 (300 > 300) -300 -300
pointwise x6 +480 bmm 6x 5x8x6 nt bf16 (360 576 > 480) +200t add 5x5 int64 (200 > 200) +200t
    add 5x5 int64 (200 > 200) -200 +200 add 5x5 int64 (200 > 200) -200 +300t
    gather 6x25 int64,bf16->bf16 rows (200 480 > 300) +300t div 30x5 bf16 (300 > 300) -300
pointwise +300t add 30x5 bf16,bf16->bf16 strided (300 300 > 300) -300 -300
pointwise +300t add 30x5 bf16,bf16->bf16 (300 300 > 300) -300 -300
view
pointwise x2 +75t cast 15x5 int64->bool (600 > 75) +75 eq 15x5 bool (75 > 75)
masked_fill +300t masked_fill 30x5 bf16,bool->bf16 broadcast (300 75 > 300) -300 -75
softmax +300 softmax 30x5 bf16 (300 > 300)
dropout_off; view
matmul +360t bmm 6x 5x6x5 nn bf16 (300 360 > 360)
view
contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
view
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -300
dropout_off
)";

// DisentangledSelfAttention (modeling_deberta_v2.py): heads are copied to [sequence · head, token, width]; keys are
// divided by the scale before the product. Eight rows of distances go through projections of their own (8 · 12 · 2 =
// 192 bytes) and are repeated for three sequences (576). Each term is a product over eight distances (6 · 5 · 8 · 2 =
// 480), of which gather takes one for each pair by clamped indices (5 · 5 · 8 = 200), divided by the scale. The mask is
// inverted, fills scores with the lowest number, and softmax runs in bf16.
TEST(ComposedDisentangledStep, DistancesAreScoredAgainstContents) {
  EXPECT_EQ(under(OddStep(odd_composition("causal: false, positions: disentangled, position_rows: 8, position_terms: "
                                          "[content-to-position, position-to-content]"))
                      .text(),
                  {"forward layers.0.attention"}),
            kComposedDisentangledStepListing1);
}

}  // namespace
}  // namespace ridgeline
