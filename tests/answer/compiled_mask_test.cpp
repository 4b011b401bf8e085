// Whether fused attention of a compiled model gets its mask as a tensor: one rule for all of Transformers' decoders.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/answer/memory_prediction.h"
#include "sim/scenario/scenario.h"

namespace ridgeline::compiled_mask_test {
namespace {

constexpr const char* kStack =
    "{family: composed, layers: 2, heads: 8, key_value_heads: 2, hidden: 512, vocabulary: 2048, positions: rotary, "
    "norm: "
    "rms, feed_forward_kind: gated, feed_forward: 1024, tie_embeddings: false}";
constexpr const char* kLlama =
    "{family: llama, layers: 2, heads: 8, key_value_heads: 2, hidden: 512, vocabulary: 2048, feed_forward: 1024}";
constexpr const char* kPlain =
    "{family: llama, code: plain, layers: 2, heads: 8, key_value_heads: 2, hidden: 512, vocabulary: 2048, "
    "feed_forward: "
    "1024}";

Scenario scenario(const char* model, const char* software, bool compile, const char* gpu = "nvidia-h200-sxm-141gb") {
  return load_scenario({.file = {},
                        .text = fmt::format("hardware: {}\nmodel: {}\nsoftware: {}\ntraining: {{micro_batch: 2, "
                                            "sequence_length: 256, precision: bf16, optimizer: adamw, compile: {}}}\n",
                                            gpu, model, software, compile),
                        .text_name = "compiled.yaml",
                        .overrides = {}});
}

/// The attention operations of a step; all have the same mask.
struct Masked {
  int calls = 0;
  bool bias = false, causal = false;
  std::int64_t key_heads = 0;
  AttentionBackend backend = AttentionBackend::math;
};
Masked attention_of(const Scenario& s) {
  Masked result;
  for (const Op& op : trace_of(s, "analytic").ops)
    if (const auto* attention = std::get_if<Attention>(&op)) {
      ++result.calls;
      result.bias = attention->bias, result.causal = attention->causal;
      result.key_heads = attention->kv_heads;
      result.backend = attention->backend;
    }
  return result;
}

TEST(CompiledMask, every_decoder_of_transformers_follows_its_version) {
  for (const char* model : {kStack, kLlama})
    for (const auto& [software, masked] :
         std::initializer_list<std::pair<const char*, bool>>{{"pytorch-2.11", true}, {"pytorch-2.5", false}}) {
      const Masked compiled = attention_of(scenario(model, software, true));
      EXPECT_GT(compiled.calls, 0) << model;
      EXPECT_EQ(compiled.bias, masked) << model << software;
      EXPECT_EQ(compiled.causal, !masked) << model << software;
      EXPECT_EQ(compiled.key_heads, masked ? 8 : 2) << model << software << ": keys are repeated beside a mask";
      const Masked eager = attention_of(scenario(model, software, false));
      EXPECT_TRUE(eager.causal && !eager.bias) << model << software;
    }
}

TEST(CompiledMask, code_of_ones_own_tells_the_kernel_that_it_is_causal) {
  const Masked plain = attention_of(scenario(kPlain, "pytorch-2.11", true));
  EXPECT_TRUE(plain.causal && !plain.bias);
}

TEST(CompiledMask, flash_attention_takes_none) {
  for (const char* model : {kStack, kLlama})
    EXPECT_EQ(attention_of(scenario(model, "pytorch-2.11", true, "nvidia-a100-sxm4-80gb")).backend,
              AttentionBackend::efficient)
        << model;
}

}  // namespace
}  // namespace ridgeline::compiled_mask_test
