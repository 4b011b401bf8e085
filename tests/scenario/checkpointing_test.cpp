// Which ways of running blocks again go with what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

Scenario checkpointed(const std::string& training, const std::string& parallel) {
  ScenarioSource source;
  source.text_name = "a question";
  source.text =
      "cluster: hgx-h100\nmodel: {family: llama, code: plain, layers: 2, heads: 4, hidden: 256, feed_forward: 512, "
      "vocabulary: "
      "1024}\n"
      "training: {micro_batch: 1, sequence_length: 128, precision: bf16, " +
      training + ", parallel: {" + parallel + "}}\n";
  return load_scenario(source);
}

std::string refusal_of(const std::string& training, const std::string& parallel) {
  try {
    checkpointed(training, parallel);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Checkpointing, by_operation_goes_with_compiled_blocks) {
  const std::string operations = "activation_checkpointing: operations";
  EXPECT_EQ(refusal_of(operations + ", compile: true", "data: 8, strategy: fsdp"), "");
  EXPECT_EQ(refusal_of(operations + ", compile: true", "data: 2, strategy: fsdp, tensor: 4"), "");
  for (const char* training :
       {"activation_checkpointing: operations", "activation_checkpointing: operations, compile: false"})
    EXPECT_THAT(refusal_of(training, "data: 8, strategy: fsdp"), HasSubstr("compiled blocks"));
  EXPECT_THAT(refusal_of(operations + ", compile: true", "data: 8, strategy: ddp"), HasSubstr("compiled blocks"));
  EXPECT_THAT(refusal_of("activation_checkpointing: block, compile: true", "data: 8, strategy: ddp"),
              HasSubstr("cuts none with checkpointed blocks"));
}

TEST(Checkpointing, of_every_second_block_leaves_the_first) {
  const Scenario s = checkpointed("activation_checkpointing: block, checkpointed_every: 2", "data: 8, strategy: fsdp");
  EXPECT_FALSE(s.training.checkpoints(0));
  EXPECT_TRUE(s.training.checkpoints(1));
  EXPECT_THAT(refusal_of("activation_checkpointing: block, checkpointed_every: 0", "data: 8, strategy: fsdp"),
              HasSubstr("checkpointed_every"));
}

}  // namespace
}  // namespace ridgeline
