// Words of other tools lead to keys of this one that are there, and no word to two of them.
#include "sim/config/other_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace ridgeline::config {
namespace {

using ::testing::HasSubstr;

TEST(OtherWords, NoWordMeansTwoThings) {
  std::set<std::string> known;
  for (const OtherWord& row : other_words()) {
    std::istringstream words{std::string(row.words)};
    for (std::string word; words >> word;) {
      EXPECT_TRUE(known.insert(word).second) << word;
      EXPECT_EQ(other_word(word), &row) << word << " is spelled like another word";
    }
  }
  EXPECT_GT(known.size(), 150u);
  EXPECT_EQ(other_word("BATCH_SIZE"), other_word("batch-size"));
  EXPECT_EQ(other_word("no-such-word"), nullptr);
}

TEST(OtherWords, AnUnknownKeyIsToldWithTheKeyThatSaysIt) {
  const std::vector<std::string> root{"title", "hardware", "model", "training", "inference"};
  const std::vector<std::string> training{"micro_batch", "sequence_length", "precision", "optimizer", "lora"};
  EXPECT_EQ(unknown_key_fix("", "gpu", root), "did you mean hardware?");
  EXPECT_EQ(unknown_key_fix("", "batch_size", root), "did you mean training.micro_batch?");
  EXPECT_EQ(unknown_key_fix("training", "batch_size", training), "did you mean micro_batch?");
  EXPECT_EQ(unknown_key_fix("training", "lora_rank", training), "did you mean lora.rank?");
  EXPECT_EQ(unknown_key_fix("training", "bf16", training), "did you mean precision: bf16?");
  EXPECT_THAT(unknown_key_fix("", "micro_batch", root), HasSubstr("below training:"));
  EXPECT_EQ(unknown_key_fix("training", "learning_rate", training), kWithoutEffect);
  EXPECT_EQ(unknown_key_fix("", "memory", {"sm", "dram", "l2"}), "did you mean dram.capacity?");
  EXPECT_THAT(unknown_key_fix("training", "micro_bach", training), HasSubstr("did you mean micro_batch?"));
  EXPECT_EQ(unknown_key_fix("training", "zzz", {"a", "b"}), "expected one of a, b");
}

TEST(OtherWords, ValuesOfOtherToolsLeadToThoseOfAKey) {
  EXPECT_EQ(other_value("training.precision", "float16"), "amp-fp16");
  EXPECT_EQ(other_value("precision", "torch.bfloat16"), "bf16");
  EXPECT_EQ(other_value("training.activation_checkpointing", "True"), "block");
  EXPECT_EQ(other_value("training.attention", "float16"), "");
}

}  // namespace
}  // namespace ridgeline::config
