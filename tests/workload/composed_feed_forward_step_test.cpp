// Feed-forward parts of compositions: gates, activations.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;

// LlamaMLP (modeling_llama.py): the activation's result and a second product (15 · 20 · 2 = 600 bytes each) are
// multiplied, which keeps both. Phi3MLP makes one product of 40 columns (1200) and splits it: gelu reads strided rows,
// and backward both parts are joined.
TEST(ComposedFeedForwardStep, AGateMultipliesTheInnerRows) {
  EXPECT_EQ(changes_by_keys("feed_forward_kind: gated"), R"(
[forward layers.0.feed_forward]
+ linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
+ pointwise +600 mul 15x20 bf16,bf16->bf16 (600 600 > 600)
[backward]
- backward_first x34
+ backward_first x36
[backward layers.0.feed_forward]
+ pointwise_backward +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600) +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600)
    -600 -600 -600
+ view_backward
+ addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480g mm 20x12x15 tn bf16 (600 360 > 480) +40g
    sum 15x20 bf16 rows (600 > 40) -600
+ accumulate_grad; view_backward; accumulate_grad; view_backward
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x21 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -40 -480 -24 -24 -24 -24
    -24
)");
  EXPECT_EQ(changes_by_keys("feed_forward_kind: gated-fused"), R"(
[forward layers.0.feed_forward]
- linear; pointwise
+ linear +1200 addmm 15x40x12 nt bf16 (360 960 80 > 1200)
+ split
+ pointwise +600 gelu 15x20 bf16 strided (600 > 600)
+ pointwise +600 mul 15x20 bf16,bf16->bf16 strided (600 600 > 600)
[backward]
- backward_first x34
+ backward_first x35
[backward layers.0.feed_forward]
- pointwise_backward
+ pointwise_backward +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600) +600t
    mul 15x20 bf16,bf16->bf16 strided (600 600 > 600) -600 -600
+ pointwise_backward +600t gelu_backward 15x20 bf16,bf16->bf16 strided (600 600 > 600) -600 -1200
+ split_backward +1200t cat 15x20 bf16 x2 joined (600 600 > 1200) -600 -600
- addmm_backward
+ addmm_backward +360t mm 15x12x40 nn bf16 (1200 960 > 360) +960g mm 40x12x15 tn bf16 (1200 360 > 960) +80g
    sum 15x40 bf16 rows (1200 > 80) -1200 -360
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x19 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -960 -80 -480 -24 -24 -24 -24 -24
)");
}

constexpr char kComposedFeedForwardStepListing2[] = R"(
[forward layers.0.feed_forward]
- linear; pointwise
+ linear +600t addmm 15x20x12 nt bf16 (360 480 40 > 600)
+ pointwise x4
+ pointwise +600 scale 15x20 bf16 (600 > 600) +600 div 15x20 bf16 (600 > 600) +600t pointwise 15x20 bf16 (600 > 600)
    +600 add 15x20 bf16 (600 > 600) -600 +600 mul 15x20 bf16,bf16->bf16 (600 600 > 600) -600
[backward]
- backward_first x34
+ backward_first x38
[backward layers.0.feed_forward]
- pointwise_backward
+ pointwise_backward +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600) +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600)
    -600 -600 -600
+ add_backward
+ pointwise_backward +600t pow 15x20 bf16 (600 > 600) +600t scale 15x20 bf16 (600 > 600) +600t
    pointwise 15x20 bf16 (600 > 600) +600t scale 15x20 bf16 (600 > 600) +600t
    mul 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600 -600 -600 -600 -600
+ pointwise_backward +600t div 15x20 bf16 (600 > 600) -600
+ pointwise_backward +600t scale 15x20 bf16 (600 > 600) -600
+ fan_in_add add_ 15x20 bf16,bf16->bf16 (600 600 > 600) -600
)";

constexpr char kComposedFeedForwardStepListing3[] = R"(
[forward layers.0.feed_forward]
- pointwise
+ pointwise x8 +600 scale 15x20 bf16 (600 > 600) +600t pow 15x20 bf16 (600 > 600) +600t scale 15x20 bf16 (600 > 600)
    -600 +600t add 15x20 bf16,bf16->bf16 (600 600 > 600) -600 +600t scale 15x20 bf16 (600 > 600) -600 +600
    tanh 15x20 bf16 (600 > 600) -600 +600 add 15x20 bf16 (600 > 600) +600 mul 15x20 bf16,bf16->bf16 (600 600 > 600)
[backward]
- backward_first x34
+ backward_first x40
[backward layers.0.feed_forward]
- pointwise_backward
+ pointwise_backward +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600) +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600)
    -600 -600 -600
+ add_backward
+ pointwise_backward +600t tanh_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
+ pointwise_backward +600t scale 15x20 bf16 (600 > 600) -600
+ add_backward
+ pointwise_backward +600t scale 15x20 bf16 (600 > 600)
+ pointwise_backward +600t pow 15x20 bf16 (600 > 600) +600t scale 15x20 bf16 (600 > 600) +600t
    mul 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600 -600 -600
+ fan_in_add add_ 15x20 bf16,bf16->bf16 (600 600 > 600) -600
+ pointwise_backward +600t scale 15x20 bf16 (600 > 600) -600
+ fan_in_add add_ 15x20 bf16,bf16->bf16 (600 600 > 600) -600
)";

constexpr char kComposedFeedForwardStepListing4[] = R"(
[forward layers.0.feed_forward]
- linear; pointwise
+ linear +600t addmm 15x20x12 nt bf16 (360 480 40 > 600)
+ pointwise +600 relu 15x20 bf16 (600 > 600) -600
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24)
- pointwise_backward
+ pointwise_backward +600t relu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
)";

constexpr char kComposedFeedForwardStepListing5[] = R"(
[forward layers.0.feed_forward]
- linear; pointwise
+ linear +600t addmm 15x20x12 nt bf16 (360 480 40 > 600)
+ pointwise x2 +600 relu 15x20 bf16 (600 > 600) +600 pow 15x20 bf16 (600 > 600) -600
[backward]
- backward_first x34
+ backward_first x35
[backward layers.0.feed_forward]
- pointwise_backward
+ pointwise_backward +600t copy 1x300 bf16 (600 > 600) +600t scale 15x20 bf16 (600 > 600) +600t
    mul 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600 -600
+ pointwise_backward +600t relu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
)";

constexpr char kComposedFeedForwardStepListing7[] = R"(
[forward layers.0.feed_forward]
- pointwise
+ pointwise x3 +600t scale 15x20 bf16 (600 > 600) +600 tanh 15x20 bf16 (600 > 600) -600 +600
    mul 15x20 bf16,bf16->bf16 (600 600 > 600)
[backward]
- backward_first x34
+ backward_first x36
[backward layers.0.feed_forward]
- pointwise_backward
+ pointwise_backward +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600) +600t mul 15x20 bf16,bf16->bf16 (600 600 > 600)
    -600 -600
+ pointwise_backward +600t tanh_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
+ pointwise_backward +600t scale 15x20 bf16 (600 > 600) -600
+ fan_in_add add_ 15x20 bf16,bf16->bf16 (600 600 > 600) -600
)";

// From activations.py of Transformers. GELUActivation in Python: x / 2, x / √2, erf, + 1, product; erf keeps its input
// and is 2 / √π · exp(-x²) · grad backward: five kernels. NewGELUActivation: pow(x, 3) keeps x and is 3 · x² · grad,
// tanh keeps its result. relu keeps its result, which the next product keeps too, so that its input is freed; squared,
// pow keeps it and is grad · (2 · x¹). QuickGELUActivation multiplies x by sigmoid(1.702 x) (listed as tanh, which
// reads as much).
TEST(ComposedFeedForwardStep, EachActivationHasItsOperations) {
  EXPECT_EQ(changes_by_keys("activation: gelu-spelled-out"), kComposedFeedForwardStepListing2);
  EXPECT_EQ(changes_by_keys("activation: gelu-written-out"), kComposedFeedForwardStepListing3);
  EXPECT_EQ(changes_by_keys("activation: relu"), kComposedFeedForwardStepListing4);
  EXPECT_EQ(changes_by_keys("activation: relu-squared"), kComposedFeedForwardStepListing5);
  EXPECT_EQ(changes_by_keys("activation: quick-gelu"), kComposedFeedForwardStepListing7);
}

}  // namespace
}  // namespace ridgeline
