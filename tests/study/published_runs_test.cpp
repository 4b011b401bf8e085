#include "sim/study/validation/published_runs.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

const char* const kFile = RIDGELINE_SOURCE_DIR "/measurements/public/runs.yaml";

TEST(PublishedRuns, a_star_stands_for_anything_and_for_nothing) {
  EXPECT_TRUE(matches_pattern("lambda-*-fp16-*", "lambda-a100-bert-fp16-b8"));
  EXPECT_TRUE(matches_pattern("a*", "a"));
  EXPECT_TRUE(matches_pattern("*b", "aab"));
  EXPECT_FALSE(matches_pattern("lambda-*-fp16-*", "lambda-a100-bert-tf32-b8"));
  EXPECT_FALSE(matches_pattern("a", "ab"));
  EXPECT_FALSE(matches_pattern("ab", "a"));
}

TEST(PublishedRuns, what_a_source_ran_follows_from_source_and_version) {
  const PublishedRuns runs(kFile);
  const auto value = [&](const char* id, std::string_view key) {
    std::string last;
    for (const config::Override& change : runs.run_of(id).overrides)
      if (change.key == key) last = change.value;
    return last;
  };
  EXPECT_EQ(value("lambda-x-squad-fp16-b8-pt1.13.0a0", "training.precision"), "apex-o2");
  EXPECT_EQ(value("lambda-x-squad-fp16-b8-pt1.13.0a0", "model.sequence_first"), "true");
  EXPECT_EQ(value("lambda-x-squad-fp16-b8-pt1.7.0a0", "model.sequence_first"), "");
  EXPECT_EQ(value("lambda-x-squad-fp16-b8-pt1.7.0a0", "model.activation_adds_bias"), "true");
  EXPECT_EQ(value("lambda-x-squad-tf32-b8-pt1.7.0a0", "training.precision"), "");
  // clip_grad_norm_ waits before 1.10; amp's own zero_grad fills in every version; only later runs are distributed.
  EXPECT_EQ(value("lambda-x-squad-tf32-b8-pt1.7.0a0", "software.clipping_waits"), "true");
  EXPECT_EQ(value("lambda-x-squad-tf32-b8-pt1.13.0a0", "software.clipping_waits"), "");
  EXPECT_EQ(value("lambda-x-squad-fp16-b8-pt2.3.0a0", "software.zero_grad_to_none"), "false");
  EXPECT_EQ(value("lambda-x-squad-tf32-b8-pt2.3.0a0", "software.zero_grad_to_none"), "");
  EXPECT_EQ(value("lambda-x-squad-tf32-b8-pt2.3.0a0", "training.data_parallel"), "apex");
  EXPECT_EQ(value("lambda-x-squad-tf32-b8-pt1.13.0a0", "training.data_parallel"), "");
  EXPECT_EQ(value("neusight-x-bert-large-b8", "training.clears_gradients"), "false");
  // Several GPUs: apex's wrapper always; no peer access from October 2022 until February 2023.
  EXPECT_EQ(value("lambda-v100-x-squad-fp16-b8-pt1.13.0a0-x4", "training.data_parallel"), "apex");
  EXPECT_EQ(value("lambda-v100-x-squad-fp16-b8-pt1.13.0a0-x4", "cluster.interconnect"), "none");
  EXPECT_EQ(value("lambda-h100-sxm-x-squad-fp16-b8-pt1.13.0a0-x4", "cluster.interconnect"), "");
  EXPECT_EQ(value("lambda-a100-x-squad-fp16-b8-pt1.9.0a0-x4", "cluster.interconnect"), "");
  EXPECT_EQ(value("dle-v100-x-squad-384-fp32-x8", "training.optimizer"), "{name: bert-adam, implementation: for-loop}");
}

TEST(PublishedRuns, rows_of_kernels_compiled_just_in_time_are_told_apart) {
  const PublishedRuns runs(kFile);
  EXPECT_FALSE(runs.run_of("dle-v100-32-bert-large-pretrain-128-amp-fp16-b64").comparable);
  EXPECT_TRUE(runs.run_of("notes-3090-bert-large-fp32-b4").comparable);
  EXPECT_TRUE(runs.run_of("lambda-x-squad-fp16-b8-pt1.7.0a0").comparable);
  EXPECT_TRUE(runs.run_of("nobody knows this one").comparable);
}

}  // namespace
}  // namespace ridgeline
