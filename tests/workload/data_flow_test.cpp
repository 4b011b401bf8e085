// A training step computes nothing in vain: what operations read was written, what they write is read, in every network
// that was measured and in every precision, attention and optimizer of three small ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/data_flow.h"
#include "tests/support/described_network.h"
#include "tests/support/measurement_index.h"
#include "tests/support/small_networks.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using testing_support::small_network;
using testing_support::two_sequences;
using Oddities = std::map<std::string, std::set<std::string>>;

/// In how many networks each oddity is found.
void collect(Oddities& all, const std::string& name, const OpTrace& trace) {
  for (const std::string& odd : testing_support::oddities_of_flow(trace)) all[odd].insert(name);
}
/// … in words, and in how many networks.
std::vector<std::pair<std::string, std::size_t>> counted(const Oddities& all) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const auto& [odd, networks] : all) counts.emplace_back(odd, networks.size());
  return counts;
}

TEST(DataFlow, NetworksComputeNothingInVain) {
  Oddities all, shipped;
  for_each_row(testing::measurements().file("networks/networks.jsonl.gz"), [&](const nlohmann::json& row) {
    const ModelDescription model = testing::described_network(row["config"]);
    TrainingDescription t = two_sequences(Precision::amp_bf16);
    collect(all, row["name"], training_run(model, t, AttentionChoice::cudnn));
  });
  EXPECT_THAT(
      counted(all),
      ElementsAre(
          // States of random numbers of fused attention and counters of experts are not operands, nor is the sum of
          // weights that a mean loss is divided by.
          Pair("never written: attention", 78), Pair("never written: cross_attention", 7),
          Pair("never written: experts", 11), Pair("never written: loss", 80),
          // The gradient of a trained bias comes out of attention's backward pass, and is no operand there.
          Pair("reads unwritten: copy 0", 2), Pair("reads unwritten: sum 0", 2),
          // Positions and masks made on the way that the attention which runs has no use for, or that the host reads.
          Pair("writes unread: add 0", 9), Pair("writes unread: arange 0", 11), Pair("writes unread: copy 0", 2),
          Pair("writes unread: copy_to_device 0", 11),
          // Where groups end, which a grouped product reads beside its factors.
          Pair("writes unread: cumsum 0", 11), Pair("writes unread: div 0", 80),  // the loss itself
          Pair("writes unread: fill 0", 15), Pair("writes unread: mul 0", 2),
          Pair("writes unread: native_layer_norm 1", 2), Pair("writes unread: native_layer_norm 2", 2),  // no weights
          // Clamped experts, which biases alone read.
          Pair("writes unread: pointwise 0", 9),
          // Of a sort, what is read is the places, and of the backward pass of a lookup neither is an operand.
          Pair("writes unread: scale 0", 2), Pair("writes unread: sort 0", 13), Pair("writes unread: sort 1", 13),
          Pair("writes unread: topk 0", 11)));
  for (const std::string& name : model_names())
    collect(shipped, name, training_run(load_model(name), two_sequences(Precision::bf16), AttentionChoice::efficient));
  for (const auto& [odd, networks] : shipped)
    EXPECT_TRUE(all.contains(odd)) << odd << " of " << *networks.begin() << " is known of no measured network";
}

TEST(DataFlow, SmallNetworksComputeNothingInVainInAnyWay) {
  Oddities all, again;
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::bert, ModelFamily::llama}) {
    ModelDescription model = small_network(family);
    const std::string name = family == ModelFamily::gpt2 ? "gpt2" : family == ModelFamily::bert ? "bert" : "llama";
    for (const double dropout : {0.0, 0.1})
      for (const Precision precision :
           {Precision::fp32, Precision::amp_fp16, Precision::amp_bf16, Precision::bf16, Precision::apex_o2})
        for (const AttentionChoice attention : {AttentionChoice::eager, AttentionChoice::flash, AttentionChoice::cudnn,
                                                AttentionChoice::efficient, AttentionChoice::math}) {
          model.dropout = model.attention_dropout = dropout;
          TrainingDescription t = two_sequences(precision);
          if (precision == Precision::apex_o2) t.gradient_clipping.reset();
          t.gradient_accumulation = 2;
          collect(all, name, training_run(model, t, attention));
          t.activation_checkpointing = ActivationCheckpointing::block;
          collect(again, name, training_run(model, t, attention));
        }
  }
  // As above; lists of copies in fp32 take their gradients from the host's list, and scalers hold a scaled loss.
  EXPECT_THAT(counted(all), ElementsAre(Pair("never written: attention", 3), Pair("never written: loss", 3),
                                        Pair("reads unwritten: foreach_copy", 3), Pair("writes unread: arange 0", 1),
                                        Pair("writes unread: copy_to_device 0", 1), Pair("writes unread: div 0", 3),
                                        Pair("writes unread: fill 0", 1), Pair("writes unread: mul 0", 3),
                                        Pair("writes unread: scale 0", 3)));
  // What only the backward pass would have read is not read where the block runs again, nor are its last results.
  EXPECT_THAT(counted(again),
              ElementsAre(Pair("never written: attention", 3), Pair("never written: loss", 3),
                          Pair("reads unwritten: foreach_copy", 3), Pair("writes unread: arange 0", 1),
                          Pair("writes unread: cast 0", 1), Pair("writes unread: copy_to_device 0", 1),
                          Pair("writes unread: cudnn_attention 1", 3), Pair("writes unread: div 0", 3),
                          Pair("writes unread: efficient_attention 1", 2), Pair("writes unread: fill 0", 1),
                          Pair("writes unread: flash_attention 1", 3), Pair("writes unread: mul 0", 3),
                          Pair("writes unread: native_dropout 0", 1), Pair("writes unread: native_dropout 1", 3),
                          Pair("writes unread: native_layer_norm 0", 1), Pair("writes unread: native_layer_norm 1", 2),
                          Pair("writes unread: native_layer_norm 2", 2), Pair("writes unread: scale 0", 3)));
}

}  // namespace
}  // namespace ridgeline
