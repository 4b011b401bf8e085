// Weights of compositions that lie by inputs.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;

// Conv1D of GPT-2 (pytorch_utils.py of Transformers) keeps weights as [inputs, outputs]: addmm reads them as they lie,
// the gradient of its input reads them transposed, and the gradient of the weight is input · gradient instead of its
// transpose: no view turns it.
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
