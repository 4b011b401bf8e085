// Networks put together from PyTorch's own modules (code: plain) beside the classes of Transformers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <variant>

#include "sim/workload/training_step.h"
#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::odd_composition;
using testing_support::odd_training;

constexpr const char* kNetworksInBothCodes[] = {
    "positions: learned",
    "positions: learned, projection: fused, dropout: 0.1, embedding_dropout: 0.1",
    "positions: rotary, norm: rms, feed_forward_kind: gated, activation: silu, residual_dropout: false",
    "positions: rotary, norm: rms-fused, key_value_heads: 1, residual: parallel",
    "positions: alibi, key_value_heads: 1",
    "positions: learned, causal: false, head: masked-lm, norm_place: post, final_norm: false, head_transform: true",
};

OpTrace step_by_code(const std::string& keys, const char* code, AttentionChoice attention) {
  return training_run(odd_composition(keys + ", code: " + code), odd_training(), attention);
}

using ProductCounts = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, std::int64_t>;

ProductCounts products_of_step(const OpTrace& trace) {
  ProductCounts products;
  for (const Call& call : trace.calls)
    if (const auto* product = std::get_if<Matmul>(&trace.ops[call.op]))
      ++products[{product->batch, product->m, product->n, product->k}];
  return products;
}

std::int64_t questions_of_step(const OpTrace& trace) {
  return std::count_if(trace.calls.begin(), trace.calls.end(), [&](const Call& call) {
    const auto* copy = std::get_if<Copy>(&trace.ops[call.op]);
    return copy != nullptr && copy->kind == CopyKind::device_to_host && call.phase == Phase::forward;
  });
}

// Angles of rotary positions are a batched product of Transformers' classes, and point-wise in plain code.
TEST(PlainCode, MultipliesWhatTheClassOfTransformersMultiplies) {
  for (const char* keys : kNetworksInBothCodes)
    for (const AttentionChoice attention : {AttentionChoice::flash, AttentionChoice::eager}) {
      ProductCounts plain = products_of_step(step_by_code(keys, "plain", attention)),
                    classes = products_of_step(step_by_code(keys, "transformers", attention));
      for (ProductCounts* products : {&plain, &classes})
        std::erase_if(*products, [](const auto& one) { return std::get<3>(one.first) == 1; });
      EXPECT_EQ(plain, classes) << keys;
    }
}

TEST(PlainCode, AsksTheDeviceNothingInItsForwardPass) {
  for (const char* keys : kNetworksInBothCodes)
    EXPECT_EQ(questions_of_step(step_by_code(keys, "plain", AttentionChoice::flash)), 0) << keys;
  EXPECT_GT(questions_of_step(step_by_code("positions: rotary", "transformers", AttentionChoice::flash)), 0);
}

TEST(PlainCode, HasAMaskOfAllPositionsInEachLayerWhereScoresAreFilledIn) {
  const auto masks = [](AttentionChoice attention) {
    const OpTrace trace = step_by_code("positions: learned, mask_filled: true, layers: 3", "plain", attention);
    return std::count_if(trace.storages.begin(), trace.storages.end(), [](const Storage& storage) {
      return storage.category == Category::weights && storage.bytes == 2 * 7 * 7;
    });
  };
  EXPECT_EQ(masks(AttentionChoice::eager), 3);
  EXPECT_EQ(masks(AttentionChoice::flash), 0);
}

// A network of a few sizes is the composition that its keys say.
TEST(PlainCode, AFewSizesSayTheSameNetworkAsItsParts) {
  ModelDescription sizes = testing_support::odd_network(ModelFamily::gpt2);
  sizes.layers = 1;
  const OpTrace by_sizes = training_run(sizes, odd_training(), AttentionChoice::eager),
                by_parts = step_by_code(
                    "positions: learned, projection: fused, mask_filled: true, softmax_fp32: false, loss_fp32: false, "
                    "loss_alone: true, activation: " +
                        std::string(sizes.activation == Activation::gelu ? "gelu" : "gelu-tanh"),
                    "plain", AttentionChoice::eager);
  EXPECT_EQ(by_sizes.ops, by_parts.ops);
  EXPECT_EQ(by_sizes.records.size(), by_parts.records.size());
}

}  // namespace
}  // namespace ridgeline
