// Text that a small gpt2 generates, operation by operation.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

constexpr char kGenerationStepListing1[] = R"(
[forward layers.0.attention]
linear +864t addmm 12x36x12 nt bf16 (288 864 72 > 864)
split; view; transpose; view; transpose; view; transpose
concatenate x2 +288 copy 24x6 bf16 permuted (288 > 288) +288 copy 24x6 bf16 permuted (288 > 288)
attention_fused +288t +96t +16t +8t flash_attention 3x2x4x6 causal bf16 (288 288 288 > 288 96) -96 -16 -8
transpose; view; view
linear +288t addmm 12x12x12 nt bf16 (288 288 24 > 288)
dropout_off -864 -288 -288
[forward layers.0.attention]
linear +216t addmm 3x36x12 nt bf16 (72 864 72 > 216)
split; view; transpose; view; transpose; view; transpose
concatenate x2 +360 cat 6x30 bf16 joined strided (288 > 360) +360 cat 6x30 bf16 joined strided (288 > 360) -288 -288
attention_fused +72t +24t +16t +8t flash_attention 3x2x1x6 bf16 keys5 (72 360 360 > 72 24) -24 -16 -8
transpose; view; view
linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72)
dropout_off -216 -72 -72
)";

// DynamicLayer.update of Transformers (cache_utils.py) joins keys and values with those it has: of the prompt's 3 · 4
// tokens with nothing (288 bytes), then with one token each (288 + 72 = 360). The first attention is causal; one query
// reads all five keys without a mask. Nothing is kept for a backward pass: statistics (96) and dropout's numbers go at
// once.
TEST(GenerationStep, APromptIsReadAndATokenFollows) {
  EXPECT_EQ(under(OddStep(ModelFamily::gpt2)
                      .but([](OddStep& step) {
                        step.training.micro_batch = 3;
                        step.training.sequence_length = 4;
                        step.training.inference = InferenceDescription{3, 2, 1, KeyValueCache::dynamic};
                      })
                      .text(),
                  {"forward layers.0.attention"}),
            kGenerationStepListing1);
}

}  // namespace
}  // namespace ridgeline
