// Where norms of a composition stand, and what residual branches go through.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;

constexpr char kComposedBranchStepListing2[] = R"(
[forward layers.0.attention]
- linear
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
[forward layers.0]
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.feed_forward]
- linear
+ linear +360 addmm 15x12x20 nt bf16 (600 480 24 > 360)
[forward layers.0]
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward]
- backward_first x34
+ backward_first x36
[backward layers.0]
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -60
    -60
+ accumulate_grad; accumulate_grad
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -600
[backward layers.0]
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -60
    -60
+ accumulate_grad; accumulate_grad
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24
    -24 -24 -24
)";

constexpr char kComposedBranchStepListing4[] = R"(
[forward layers.0]
- pointwise
[forward final_norm]
- layer_norm_module
[forward layers.0]
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -40
[backward]
- backward_first x34
+ backward_first x33
[backward final_norm]
- layer_norm_backward; accumulate_grad; accumulate_grad
[backward layers.0]
- fan_in_add
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x17 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24
)";

constexpr char kComposedBranchStepListing5[] = R"(
[forward layers.0]
- layer_norm_module
[backward]
- backward_first x34
+ backward_first x33
[backward layers.0.attention]
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
- fan_in_add
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward layers.0]
- layer_norm_backward; fan_in_add; accumulate_grad; accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x17 -408 -288 -24 -288 -24 -288 -24 -288 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

// Gemma2DecoderLayer norms what each part gave as well: the norm keeps the part's result (360 bytes), which a sum alone
// did not keep. Without a last norm the gradient of the head goes to the residual sum and to the feed-forward part: the
// engine may not add in place to a tensor that two edges hold, and makes a new one
// (torch/csrc/autograd/input_buffer.cpp).
TEST(ComposedBranchStep, NormsStandBeforeOrBehindAPart) {
  EXPECT_EQ(changes_by_keys("norm_place: both"), kComposedBranchStepListing2);
  EXPECT_EQ(changes_by_keys("final_norm: false"), kComposedBranchStepListing4);
  EXPECT_EQ(changes_by_keys("first_norm: false"), kComposedBranchStepListing5);
}

// GPTJBlock (modeling_gptj.py): one norm feeds attention and the feed-forward part; both results are added to the
// residual. The norm's result has four gradients, of queries, keys, values and of the feed-forward part.
TEST(ComposedBranchStep, PartsMayStandSideBySide) {
  EXPECT_EQ(changes_by_keys("residual: parallel"), R"(
[forward layers.0]
- pointwise; layer_norm_module; pointwise
+ pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward]
- backward_first x34
+ backward_first x33
[backward final_norm]
+ add_backward
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480g mm 20x12x15 tn bf16 (600 360 > 480) +40g
    sum 15x20 bf16 rows (600 > 40) -600
[backward layers.0]
- layer_norm_backward; fan_in_add; accumulate_grad; accumulate_grad; add_backward
[backward layers.0.attention]
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
- fan_in_add
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x17 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24
)");
}

constexpr char kComposedBranchStepListing6[] = R"(
[forward layers.0]
+ pointwise +360t scale 15x12 bf16 (360 > 360) -360
+ pointwise +360t scale 15x12 bf16 (360 > 360) -360
[backward]
- backward_first x34
+ backward_first x36
[backward layers.0]
+ pointwise_backward +360t scale 15x12 bf16 (360 > 360)
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -600
[backward layers.0]
+ pointwise_backward +360t scale 15x12 bf16 (360 > 360)
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
)";

constexpr char kComposedBranchStepListing7[] = R"(
[forward layers.0.attention]
- linear
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
[forward layers.0]
+ pointwise +360t mul 15x12 bf16,bf16->bf16 rows (360 24 > 360)
[forward layers.0.feed_forward]
- linear
+ linear +360 addmm 15x12x20 nt bf16 (600 480 24 > 360)
[forward layers.0]
+ pointwise +360t mul 15x12 bf16,bf16->bf16 rows (360 24 > 360)
[backward]
- backward_first x34
+ backward_first x36
[backward layers.0]
+ pointwise_backward +360t mul 15x12 bf16,bf16->bf16 (360 360 > 360) +360t
    mul 15x12 bf16,bf16->bf16 rows (360 24 > 360) +24g sum 15x12 bf16 rows (360 > 24) -360 -360
+ accumulate_grad
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -600
[backward layers.0]
+ pointwise_backward +360t mul 15x12 bf16,bf16->bf16 (360 360 > 360) +360t
    mul 15x12 bf16,bf16->bf16 rows (360 24 > 360) +24g sum 15x12 bf16 rows (360 > 24) -360 -360
+ accumulate_grad
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x21 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
    -24
)";

constexpr char kComposedBranchStepListing8[] = R"(
[forward layers.0.attention]
- dropout_off
[forward layers.0]
+ dropout +180 +360t native_dropout 180 bf16 (360 > 360 180) -360
[forward layers.0.feed_forward]
- dropout_off
[forward layers.0]
+ dropout +180 +360t native_dropout 180 bf16 (360 > 360 180) -360
[backward]
- backward_first x34
+ backward_first x36
[backward layers.0]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -180
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -600
[backward layers.0]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -180
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
)";

// A number times a branch (GraniteDecoderLayer) keeps nothing, and its gradient is a kernel of its own. A weight for
// each column (BeitLayer's lambda) keeps the branch (360 bytes) and has a gradient of 12 sums. Dropout keeps a byte for
// each of 180 numbers (native_dropout_backward in derivatives.yaml reads the mask only).
TEST(ComposedBranchStep, BranchesAreScaledAndDropped) {
  EXPECT_EQ(changes_by_keys("residual_scale: true"), kComposedBranchStepListing6);
  EXPECT_EQ(changes_by_keys("layer_scale: true"), kComposedBranchStepListing7);
  EXPECT_EQ(changes_by_keys("dropout: 0.1"), kComposedBranchStepListing8);
}

}  // namespace
}  // namespace ridgeline
