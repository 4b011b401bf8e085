// Layers of a llama that are split over ranks by DTensors.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

constexpr char kSplitLlamaStepListing1[] = R"(
[forward embeddings]
- embedding
+ pointwise x5
+ masked_fill +18t eq 3x6 int64->bool (144 > 18) +18t eq 3x6 int64->bool (144 > 18) +18
    pointwise 3x6 bool,bool->bool (18 18 > 18) +144t copy 1x18 int64 (144 > 144) +144 add 3x6 int64 (144 > 144)
    masked_fill 3x6 int64,bool->int64 (144 18 > 144) -144 -18 -18
+ embedding +1296t embedding 18 of 9x36 bf16 (648 144 > 1296)
+ masked_fill masked_fill 18x36 bf16,bool->bf16 broadcast (1296 18 > 1296)
+ dtensor_op
+ dtensor_redistribute +1296 copy 1x648 bf16 (1296 > 1296)
+ collective event0 wait0@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event1@1 wait1@0 -1296
[forward layers.0.feed_forward]
- linear; pointwise; linear; pointwise; linear
+ dtensor_op x12
+ linear +360 mm 18x10x36 nt bf16 (1296 720 > 360)
+ dtensor_op x5
+ pointwise +360 silu 18x10 bf16 (360 > 360)
+ linear +360 mm 18x10x36 nt bf16 (1296 720 > 360)
+ dtensor_op x5
+ pointwise +360 mul 18x10 bf16,bf16->bf16 (360 360 > 360)
+ linear +1296t mm 18x36x10 nt bf16 (360 720 > 1296)
+ dtensor_op x5
+ dtensor_redistribute +1296t copy 1x648 bf16 (1296 > 1296)
+ collective event4 wait4@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event5@1 wait5@0 -1296
[forward head]
- linear
+ dtensor_op x12
+ linear +324t mm 18x9x36 nt bf16 (1296 648 > 324)
+ dtensor_op x5
+ dtensor_redistribute +648t
+ collective event6 wait6@1 all_gather 648 bytes bf16, 2 ranks tensor@1 (324 > 648) event7@1 wait7@0 +648t
    copy 18x18 bf16 permuted (648 > 648) -648 -324 +1296t cast 18x18 bf16->fp32 (648 > 1296)
[backward head]
+ dtensor_op_backward +324t copy 18x9 bf16 permuted (648 > 324) -648
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +648g mm 9x36x18 tn bf16 (324 1296 > 648) +1296t mm 18x36x9 nn bf16 (324 648 > 1296) -324 -1296
+ dtensor_op_backward
+ dtensor_redistribute +1296t copy 1x648 bf16 (1296 > 1296)
+ collective event8 wait8@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event9@1 wait9@0 -1296
[backward layers.0.feed_forward]
- mm_backward
+ mm_backward +720g mm 36x10x18 tn bf16 (1296 360 > 720) +360t mm 18x10x36 nn bf16 (1296 720 > 360) -360
- pointwise_backward
+ pointwise_backward +360t mul 18x10 bf16,bf16->bf16 (360 360 > 360) +360t mul 18x10 bf16,bf16->bf16 (360 360 > 360)
    -360 -360 -360
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +720g mm 10x36x18 tn bf16 (360 1296 > 720) +1296t mm 18x36x10 nn bf16 (360 720 > 1296) -360
- pointwise_backward
+ pointwise_backward +360t silu_backward 18x10 bf16,bf16->bf16 (360 360 > 360) -360 -360
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +720g mm 10x36x18 tn bf16 (360 1296 > 720) +1296t mm 18x36x10 nn bf16 (360 720 > 1296) -360 -1296
+ dtensor_op_backward
+ dtensor_redistribute +1296t copy 1x648 bf16 (1296 > 1296)
+ collective event10 wait10@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event11@1 wait11@0 -1296
[backward layers.0]
+ dtensor_op_backward; dtensor_op_backward; dtensor_op_backward x4
[backward embeddings]
- embedding_backward
+ dtensor_op_backward; dtensor_op_backward
+ masked_fill_backward +1296t masked_fill 18x36 bf16,bool->bf16 broadcast (1296 18 > 1296) -1296 -18
+ embedding_backward +648g embedding_dense_backward 18 of 9x36 bf16 (1296 144 > 648) -1296 -144
- per_parameter_zero_grad x12
+ per_parameter_shard x12
+ per_parameter_zero_grad x12 -648 -72 -1296 -432 -432 -1296 -72 -720 -720 -720 -72 -648
)";

// parallelize_module (torch/distributed/tensor/parallel/style.py) on two ranks: the table has 9 of 18 rows; tokens of
// the other rank read row 0 and their rows are filled with zeros before the sum over ranks (_MaskPartial in
// tensor/_ops/_embedding_ops.py). An all-reduce copies its input first (_functional_collectives.py), 18 · 36 · 2 = 1296
// bytes. The feed-forward part has 10 of 20 columns and is summed once forward; backward the gradient of its input is.
// The head's 9 of 18 columns are gathered along rows first, so that they are copied into columns (648).
TEST(SplitLlamaStep, LayersAreSplit) {
  EXPECT_EQ(under(OddStep(ModelFamily::llama)
                      .but([](OddStep& step) {
                        step.model.plain = true;
                        step.model.fused_norms = true;
                        step.model.vocabulary = 18;
                        step.training.sequence_length = 6;
                      })
                      .changed([](OddStep& step) { step.training.parallel.tensor = 2; }),
                  {"forward embeddings", "forward layers.0.feed_forward", "forward head", "backward head",
                   "backward layers.0.feed_forward", "backward layers.0", "backward embeddings"}),
            kSplitLlamaStepListing1);
}

}  // namespace
}  // namespace ridgeline
