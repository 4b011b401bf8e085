// Where norms of a composition stand, and what residual branches go through.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedBranchStepListing1[] = R"(
[forward layers.0]
- layer_norm_module
[forward final_norm]
+ layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward layers.0]
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ accumulate_grad; accumulate_grad
- layer_norm_backward
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
[backward layers.0.attention]
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
- fan_in_add
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward layers.0]
- layer_norm_backward; fan_in_add; accumulate_grad; accumulate_grad
)";

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

constexpr char kComposedBranchStepListing3[] = R"(
[forward layers.0]
- layer_norm_module
[forward layers.0.attention]
- linear
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
[forward layers.0]
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
- layer_norm_module
[forward layers.0.feed_forward]
- linear
+ linear +360 addmm 15x12x20 nt bf16 (600 480 24 > 360)
[forward layers.0]
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward layers.0]
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -60
    -60
+ accumulate_grad; accumulate_grad
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -600
[backward layers.0]
- layer_norm_backward
[backward layers.0.feed_forward]
+ add_backward
[backward layers.0]
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -60
    -60
- add_backward
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
- fan_in_add
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward layers.0]
- layer_norm_backward; fan_in_add; accumulate_grad; accumulate_grad
)";

constexpr char kComposedBranchStepListing4[] = R"(
[forward final_norm]
- layer_norm_module
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

TEST(ComposedBranchStep, NormsStandBeforeOrBehindAPart) {
  EXPECT_EQ(changes_by_keys("norm_place: post"), kComposedBranchStepListing1);
  EXPECT_EQ(changes_by_keys("norm_place: both"), kComposedBranchStepListing2);
  EXPECT_EQ(changes_by_keys("norm_place: after"), kComposedBranchStepListing3);
  EXPECT_EQ(changes_by_keys("final_norm: false"), kComposedBranchStepListing4);
  EXPECT_EQ(changes_by_keys("first_norm: false"), kComposedBranchStepListing5);
}

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
  EXPECT_EQ(changes_by_keys("residual: parallel-two-norms"), R"(
[forward layers.0]
- pointwise; pointwise
+ pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward final_norm]
+ add_backward
[backward layers.0]
- layer_norm_backward; fan_in_add
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -60
    -60
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
- add_backward
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
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

constexpr char kComposedBranchStepListing9[] = R"(
[forward layers.0]
- dropout
[backward]
- backward_first x36
+ backward_first x35
[backward layers.0]
- pointwise_backward
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24)
)";

constexpr char kComposedBranchStepListing10[] = R"(
[forward final_norm]
- layer_norm_module
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
+ dropout +180 +360 native_dropout 180 bf16 (360 > 360 180) -360
[backward]
- backward_first x36
+ backward_first x37
[backward final_norm]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -360 -180
)";

constexpr char kComposedBranchStepListing11[] = R"(
[forward layers.0.feed_forward]
- pointwise
+ pointwise +600t gelu 15x20 bf16 (600 > 600)
+ dropout +300 +600 native_dropout 300 bf16 (600 > 600 300) -600
[backward]
- backward_first x34
+ backward_first x35
[backward layers.0.feed_forward]
+ pointwise_backward +600t native_dropout_backward 15x20 bf16,bool->bf16 (600 300 > 600) -600 -300
)";

TEST(ComposedBranchStep, BranchesAreScaledAndDropped) {
  EXPECT_EQ(changes_by_keys("residual_scale: true"), kComposedBranchStepListing6);
  EXPECT_EQ(changes_by_keys("layer_scale: true"), kComposedBranchStepListing7);
  EXPECT_EQ(changes_by_keys("dropout: 0.1"), kComposedBranchStepListing8);
  EXPECT_EQ(changes_by_keys("attention_output_dropout: false", "dropout: 0.1"), kComposedBranchStepListing9);
  EXPECT_EQ(changes_by_keys("final_dropout: true", "dropout: 0.1"), kComposedBranchStepListing10);
  EXPECT_EQ(changes_by_keys("activation_dropout: 0.1"), kComposedBranchStepListing11);
  EXPECT_EQ(changes_by_keys("drops_layers: true"), R"(
[forward positions]
+ pointwise x2
)");
}

}  // namespace
}  // namespace ridgeline
