// Sequences that are cut over ranks.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

constexpr char kContextParallelStepListing1[] = R"(
[forward layers.0.attention]
- linear
[forward layers.0.attention]
+ linear +432t mm 6x36x36 nt bf16 (432 2592 > 432)
- linear
+ linear +144t mm 6x12x36 nt bf16 (432 864 > 144)
- linear
+ linear +144 mm 6x12x36 nt bf16 (432 864 > 144)
- concatenate
+ concatenate +432t mul 36x6 bf16,bf16->bf16 broadcast (432 24 > 432) +216t scale 36x3 bf16 strided (216 > 216) +432t
    cat 36x3 bf16 x2 joined strided (216 216 > 432) -216 +432t mul 18x12 bf16,bf16->bf16 rows (432 24 > 432) -432
    +432 add 36x6 bf16,bf16->bf16 strided (432 432 > 432) -432 -432
- concatenate; attention_fused
+ concatenate +144t mul 12x6 bf16,bf16->bf16 broadcast (144 24 > 144) +72t scale 12x3 bf16 strided (72 > 72) +144t
    cat 12x3 bf16 x2 joined strided (72 72 > 144) -72 +144t mul 6x12 bf16,bf16->bf16 rows (144 24 > 144) -144 +144
    add 12x6 bf16,bf16->bf16 strided (144 144 > 144) -144 -144 -432 -144
+ dtensor_op x69
+ contiguous +144t copy 12x6 bf16 permuted (144 > 144)
+ contiguous +144t copy 12x6 bf16 permuted (144 > 144)
+ view; view
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) +864t
+ collective event0 wait0@1 all_gather 864 bytes bf16, 3 ranks context@1 (288 > 864) event1@1
+ attention_fused +432t +144t +16t +8t flash_attention 3x6x2x6 causal bf16 kv2 (432 144 144 > 432 144)
+ cast +864t cast 36x6 bf16->fp32 (432 > 864)
+ view
+ view x4 wait1@0 -288 -144 -144
+ view; view
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) -288
+ view x2
+ attention_fused +432t +144t +16t +8t flash_attention 3x6x2x6 bf16 kv2 keys1 (432 72 72 > 432 144) -8 -16 -432
+ cast +864t cast 36x6 bf16->fp32 (432 > 864)
+ view
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144)
+ pointwise x2 +144t pointwise 36x1 fp32 (144 > 144) -144
+ pointwise +864t add 36x6 fp32,fp32->fp32 (864 864 > 864) +864t mul 36x6 fp32,fp32->fp32 strided (144 864 > 864)
    -864 -144
+ pointwise +864t add 36x6 fp32,fp32->fp32 strided (864 864 > 864) -864
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144)
+ pointwise +144t pointwise 36x1 fp32 (144 > 144) -144
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144) -144 -144 -864 -864
+ view x4; view x2
+ attention_fused +432t +144t +16 +8 flash_attention 3x6x2x6 bf16 kv2 keys1 (432 72 72 > 432 144) -8 -16 -432 -144
+ cast +864t cast 36x6 bf16->fp32 (432 > 864)
+ view
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144)
+ pointwise x2 +144t pointwise 36x1 fp32 (144 > 144) -144
+ pointwise +864t add 36x6 fp32,fp32->fp32 (864 864 > 864) +864t mul 36x6 fp32,fp32->fp32 strided (144 864 > 864)
    -864 -144
+ pointwise +864t add 36x6 fp32,fp32->fp32 strided (864 864 > 864) -864
+ pointwise +144t add 36x1 fp32,fp32->fp32 (144 144 > 144)
+ pointwise +144t pointwise 36x1 fp32 (144 > 144) -144
+ pointwise +144 add 36x1 fp32,fp32->fp32 (144 144 > 144) -144 -144 -864 -864
+ cast +432 cast 36x6 fp32->bf16 (864 > 432) -864 -864 -144 -432
- linear
[forward layers.0.attention]
+ linear +432t mm 6x36x36 nt bf16 (432 2592 > 432)
)";

// _templated_ring_attention of torch/distributed/tensor/experimental/_attention.py on the last of three ranks: of 6
// tokens it has 2 (2 · 36 · 3 sequences · 2 bytes = 432). Keys and values of two heads, 144 bytes each, are joined and
// gathered beside the first attention, which is causal; from the other ranks it needs the first half of the keys (72,
// keys1). _SDPAMerger joins each result in fp32 (864): out - sigmoid(block_lse - lse) · (out - block_out) and lse -
// logsigmoid(lse - block_lse), eight kernels. The lines before are Llama's, of 6 rows instead of 15.
TEST(ContextParallelStep, KeysGoAroundTheRanks) {
  EXPECT_EQ(under(OddStep(ModelFamily::llama)
                      .but([](OddStep& step) {
                        step.model.plain = true;
                        step.model.fused_norms = true;
                      })
                      .changed([](OddStep& step) {
                        step.training.sequence_length = 6;
                        step.training.parallel.context = 3;
                      }),
                  {"forward layers.0.attention"}),
            kContextParallelStepListing1);
}

// _AllToAllRotater of the same file sends keys and values to the next rank before each attention but the last: 288
// bytes twice instead of 864 gathered once, and each is waited for before it is used.
TEST(ContextParallelStep, OrNeighbourByNeighbour) {
  EXPECT_EQ(under(OddStep(ModelFamily::llama)
                      .but([](OddStep& step) {
                        step.model.plain = true;
                        step.model.fused_norms = true;
                      })
                      .but([](OddStep& step) {
                        step.training.sequence_length = 6;
                        step.training.parallel.context = 3;
                      })
                      .changed([](OddStep& step) { step.training.parallel.rotation = ContextRotation::all_to_all; }),
                  {"forward layers.0.attention"}),
            R"(
[forward layers.0.attention]
- concatenate; collective
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) +288t
+ collective event0 wait0@1 send_recv 288 bytes bf16, 3 ranks context@1 (288 > 288) event1@1
- concatenate
+ concatenate +288t cat 1x72 bf16 x2 joined (144 144 > 288) +288t
+ collective event2 wait2@1 send_recv 288 bytes bf16, 3 ranks context@1 (288 > 288) event3@1
- view x4
+ view x4 wait3@0 -288 -288
- cast
+ cast +432 cast 36x6 fp32->bf16 (864 > 432) -864 -288 -144 -432
)");
}

}  // namespace
}  // namespace ridgeline
