// What layers of compositions may share or leave out.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

TEST(ComposedLayersStep, PathsAreDroppedBehindTheFirstLayer) {
  EXPECT_EQ(changes_by_keys("drop_path: 0.1", "layers: 2"), R"(
[forward layers.1]
+ pointwise x5 +6t pointwise 3x1 bf16 (> 6) +6t add 3x1 bf16 (6 > 6) -6 +6 pointwise 3x1 bf16 (6 > 6) -6 +360t
    div 15x12 bf16 (360 > 360) +360t mul 15x12 bf16,bf16->bf16 broadcast (360 6 > 360) -360 -360
+ pointwise x5 +6t pointwise 3x1 bf16 (> 6) +6t add 3x1 bf16 (6 > 6) -6 +6 pointwise 3x1 bf16 (6 > 6) -6 +360t
    div 15x12 bf16 (360 > 360) +360t mul 15x12 bf16,bf16->bf16 broadcast (360 6 > 360) -360 -360
[backward layers.1]
+ pointwise_backward +360t mul 15x12 bf16,bf16->bf16 broadcast (360 6 > 360) -6
+ pointwise_backward +360t div 15x12 bf16 (360 > 360) -360
[backward layers.1.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -600
[backward layers.1]
+ pointwise_backward +360t mul 15x12 bf16,bf16->bf16 broadcast (360 6 > 360) -6
+ pointwise_backward +360t div 15x12 bf16 (360 > 360) -360
[backward layers.1.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
)");
}

TEST(ComposedLayersStep, LayersMayShareWeights) {
  EXPECT_EQ(changes_by_keys("layer_groups: 1", "layers: 2"), R"(
[backward layers.1.feed_forward]
- addmm_backward; accumulate_grad
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480t mm 12x20x15 tn bf16 (360 600 > 480) +24t
    sum 15x12 bf16 rows (360 > 24) -600
- accumulate_grad; addmm_backward; accumulate_grad
+ addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480t mm 20x12x15 tn bf16 (600 360 > 480) +40t
    sum 15x20 bf16 rows (600 > 40) -600 -360
- accumulate_grad
[backward layers.1]
- accumulate_grad; accumulate_grad
[backward layers.1.attention]
- addmm_backward; accumulate_grad
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24)
- accumulate_grad; addmm_backward; accumulate_grad
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360
- accumulate_grad; addmm_backward; accumulate_grad
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360
- accumulate_grad; addmm_backward; accumulate_grad
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360 -360
- accumulate_grad
[backward layers.1]
- accumulate_grad; accumulate_grad
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480t mm 12x20x15 tn bf16 (360 600 > 480) +24t
    sum 15x12 bf16 rows (360 > 24) -600
+ fan_in_add +24g add 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -24
+ fan_in_add +480g add 12x20 bf16,bf16->bf16 (480 480 > 480) -480 -480
- addmm_backward
+ addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480t mm 20x12x15 tn bf16 (600 360 > 480) +40t
    sum 15x20 bf16 rows (600 > 40) -600 -360
+ fan_in_add +40g add 1x20 bf16,bf16->bf16 (40 40 > 40) -40 -40
+ fan_in_add +480g add 20x12 bf16,bf16->bf16 (480 480 > 480) -480 -480
[backward layers.0]
- layer_norm_backward
+ layer_norm_backward +360t +24t +24t native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ fan_in_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
+ fan_in_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24)
+ fan_in_add +24g add 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -24
+ fan_in_add +288g add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360
+ fan_in_add +24g add 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -24
+ fan_in_add +288g add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360
+ fan_in_add +24g add 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -24
+ fan_in_add +288g add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24) -360 -360
+ fan_in_add +24g add 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -24
+ fan_in_add +288g add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288
[backward layers.0]
- layer_norm_backward
+ layer_norm_backward +360t +24t +24t native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ fan_in_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
+ fan_in_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
[backward embeddings]
- per_parameter_zero_grad x35
+ per_parameter_zero_grad x19 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)");
}

TEST(ComposedLayersStep, WeightsMayLieByInputs) {
  EXPECT_EQ(changes_by_keys("weights_by_inputs: true"), R"(
[forward layers.0.attention]
- linear
+ linear +360 addmm 15x12x12 nn bf16 (360 288 24 > 360)
- linear
+ linear +360 addmm 15x12x12 nn bf16 (360 288 24 > 360)
- linear
+ linear +360 addmm 15x12x12 nn bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nn bf16 (360 288 24 > 360)
[forward layers.0.feed_forward]
- linear
+ linear +600 addmm 15x20x12 nn bf16 (360 480 40 > 600)
- linear
+ linear +360t addmm 15x12x20 nn bf16 (600 480 24 > 360)
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nt bf16 (360 480 > 600) +480g mm 20x12x15 tn bf16 (600 360 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -600
- view_backward; addmm_backward
+ addmm_backward +360t mm 15x12x20 nt bf16 (600 480 > 360) +480g mm 12x20x15 tn bf16 (360 600 > 480) +40g
    sum 15x20 bf16 rows (600 > 40) -600 -360
- view_backward
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nt bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24)
- view_backward; addmm_backward
+ addmm_backward +360t mm 15x12x12 nt bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
- view_backward; addmm_backward
+ addmm_backward +360t mm 15x12x12 nt bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
- view_backward; addmm_backward
+ addmm_backward +360t mm 15x12x12 nt bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
- view_backward
)");
}

}  // namespace
}  // namespace ridgeline
