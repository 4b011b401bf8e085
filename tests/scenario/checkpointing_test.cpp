// Which ways of running blocks again go with what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

Scenario checkpointed(const std::string& training, const std::string& parallel,
                      const std::string& code = "code: plain") {
  ScenarioSource source;
  source.text_name = "a question";
  source.text = "cluster: hgx-h100\nmodel: {family: llama, " + code +
                ", layers: 2, heads: 4, hidden: 256, feed_forward: 512, vocabulary: 1024}\n"
                "training: {micro_batch: 1, sequence_length: 128, precision: bf16, " +
                training + ", parallel: {" + parallel + "}}\n";
  return load_scenario(source);
}

std::string refusal_of(const std::string& training, const std::string& parallel,
                       const std::string& code = "code: plain") {
  try {
    checkpointed(training, parallel, code);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Checkpointing, by_operation_goes_with_compiled_blocks_and_networks_written_out) {
  const std::string operations = "activation_checkpointing: operations";
  EXPECT_EQ(refusal_of(operations + ", compile: true", "data: 8, strategy: fsdp"), "");
  EXPECT_EQ(refusal_of(operations + ", compile: true", "data: 2, strategy: fsdp, tensor: 4"), "");
  EXPECT_EQ(refusal_of(operations, "data: 8, strategy: fsdp"), "");
  EXPECT_THAT(refusal_of(operations, "data: 2, tensor: 4, strategy: fsdp"), HasSubstr("whose layers are whole"));
  EXPECT_THAT(refusal_of(operations, "data: 8, strategy: fsdp", "code: transformers"), HasSubstr("code: plain"));
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

// torch.utils.checkpoint without reentrance stops early since PyTorch 2.1.
TEST(Checkpointing, runs_a_block_to_its_end_before_pytorch_2_1) {
  for (const auto& [software, early] : std::vector<std::pair<const char*, bool>>{
           {"pytorch-1.13", false}, {"pytorch-2.0", false}, {"pytorch-2.1", true}, {"pytorch-2.11", true}}) {
    ScenarioSource source;
    source.text_name = "a question";
    source.text =
        std::string("hardware: nvidia-a100-sxm4-80gb\nmodel: gpt2\nsoftware: ") + software +
        "\ntraining: {micro_batch: 1, sequence_length: 128, activation_checkpointing: block, attention: eager}\n";
    EXPECT_EQ(load_scenario(source).training.checkpoint_stops_early, early) << software;
  }
}

}  // namespace
}  // namespace ridgeline
