// Networks of two towers: an encoder and what reads its result.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::odd_composition;
using testing_support::under;

constexpr char kComposedEncoderStepListing1[] = R"(
[forward decoder.layers.0.cross_attention]
linear +288 addmm 12x12x12 nt bf16 (288 288 24 > 288)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
attention_fused +288 +96 +16 +8 flash_attention 3x2x4x6 bf16 keys5 (288 360 360 > 288 96)
transpose; view; view
linear +288t addmm 12x12x12 nt bf16 (288 288 24 > 288)
dropout_off
[backward decoder.layers.0.cross_attention]
addmm_backward +288t mm 12x12x12 nn bf16 (288 288 > 288) +288g mm 12x12x12 tn bf16 (288 288 > 288) +24g
    sum 12x12 bf16 rows (288 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +288t +360t +360t
    flash_attention_backward 3x2x4x6 bf16 keys5 (288 288 360 360 288 96 > 288 360 360) -288 -360 -288 -360 -96 -288
    -8 -16
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
view_backward; view_backward; view_backward
addmm_backward +288t mm 12x12x12 nn bf16 (288 288 > 288) +288g mm 12x12x12 tn bf16 (288 288 > 288) +24g
    sum 12x12 bf16 rows (288 > 24) -288 -288
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward decoder.embeddings]
embedding_backward +408t embedding_dense_backward 12 of 17x12 bf16 (288 96 > 408) -288
fan_in_add +408g add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
[backward encoder.embeddings]
add_backward +120t sum 3x60 bf16 rows (360 > 120)
embedding_backward +168g embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120 -40
accumulate_grad
embedding_backward +408t embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
fan_in_add add_ 17x12 bf16,bf16->bf16 (408 408 > 408) -408
accumulate_grad -2 -2
per_parameter_zero_grad x48 -408 -168 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
    -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24
    -24 -24
)";

// BartAttention between towers (modeling_bart.py): queries are of 3 · 4 rows of the decoder (12 · 12 · 2 = 288 bytes),
// keys and values of 3 · 5 of the encoder (360); the statistics are 3 · 2 · 4 · 4 = 96. Both projections of the
// encoder's rows have a gradient of them, which are added. One token table serves head, decoder and encoder: the head's
// gradient is a view, so that the sum with the decoder's is a new tensor; the encoder's is added to that in place
// (can_accumulate_inplace in torch/csrc/autograd/input_buffer.cpp).
TEST(ComposedEncoderStep, ADecoderLooksAtAnEncoder) {
  EXPECT_EQ(
      under(OddStep(odd_composition("cross_attention: true, target_length: 4, encoder: {positions: learned}")).text(),
            {"forward decoder.layers.0.cross_attention", "backward decoder.layers.0.cross_attention",
             "backward decoder.embeddings", "backward encoder.embeddings"}),
      kComposedEncoderStepListing1);
}

}  // namespace
}  // namespace ridgeline
