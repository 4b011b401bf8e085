// What apex's DistributedDataParallel goes with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

std::string refusal_of_apex(const std::string& precision, const std::string& parallel = "") {
  ScenarioSource source;
  source.text_name = "a question";
  source.text =
      "cluster: hgx-h100\n"
      "model: {family: llama, layers: 2, heads: 4, hidden: 256, feed_forward: 512, vocabulary: 1024}\n"
      "training: {micro_batch: 1, sequence_length: 128, data_parallel: apex, precision: " +
      precision + ", parallel: {data: 8" + parallel + "}}\n";
  try {
    load_scenario(source);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ApexWrapper, has_whole_networks_on_each_gpu_and_none_of_torchs_options) {
  EXPECT_EQ(refusal_of_apex("fp32"), "");
  EXPECT_EQ(refusal_of_apex("apex-o2"), "");
  for (const char* strategy : {"strategy: fsdp", "strategy: zero2", "strategy: zero1"})
    EXPECT_THAT(refusal_of_apex("fp32", ", " + std::string(strategy)),
                HasSubstr("apex over several GPUs goes with strategy: ddp"))
        << strategy;
  for (const char* option : {"bucket_cap: 25 MiB", "gradient_as_bucket_view: true", "static_graph: true",
                             "find_unused_parameters: true", "broadcast_buffers: false"}) {
    const std::string key(option, std::string_view(option).find(':'));
    EXPECT_THAT(refusal_of_apex("fp32", ", " + std::string(option)), HasSubstr("apex's wrapper has no " + key))
        << option;
  }
}

}  // namespace
}  // namespace ridgeline
