// One process with two GPUs: layers one behind the other.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

constexpr char kOneProcessStepListing2[] = R"(
[forward layers.1]
cast +360@1 event0@1 wait0@0 peer_copy 360 bytes bf16, 2 ranks pipeline (360 > 360) event1 wait1@1
layer_norm +360@1 +60@1 +60@1 native_layer_norm 15x12 bf16@1 (360 24 24 > 360 60 60)
[forward layers.1]
pointwise +360@1 add 15x12 bf16,bf16->bf16@1 (360 360 > 360) -360
layer_norm +360@1 +60@1 +60@1 native_layer_norm 15x12 bf16@1 (360 24 24 > 360 60 60)
[forward layers.1]
pointwise +360@1 add 15x12 bf16,bf16->bf16@1 (360 360 > 360) -360 -360
[backward layers.1]
layer_norm_backward +360t@1 +24g@1 +24g@1 native_layer_norm_backward 15x12 bf16@1 (360 360 24 60 60 > 360 24 24) -360
    -360 -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16@1 (360 360 > 360) -360
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.1]
layer_norm_backward +360t@1 +24g@1 +24g@1 native_layer_norm_backward 15x12 bf16@1 (360 360 24 60 60 > 360 24 24) -360
    -360 -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16@1 (360 360 > 360) -360
accumulate_grad; accumulate_grad
cast_backward +360t event2 wait2@1 peer_copy 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1 wait3@0 -360
add_backward; view_backward
)";

// A tensor that goes to another GPU (aten/src/ATen/native/cuda/Copy.cu): the receiver's stream (1) lets the sender's
// wait until it is ready, the copy of 360 bytes runs on the sender's stream, and the receiver's waits for it. Backward
// the gradient goes the other way. What the second GPU runs is on its own stream.
TEST(OneProcessStep, LayersFollowEachOther) {
  EXPECT_EQ(under(OddStep(ModelFamily::gpt2)
                      .but([](OddStep& step) {
                        step.model.layers = 2;
                        step.training.parallel.split = 2;
                      })
                      .text(),
                  {"forward layers.1", "backward layers.1"}),
            kOneProcessStepListing2);
}

}  // namespace
}  // namespace ridgeline
