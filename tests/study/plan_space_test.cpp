// The ways to train that a plan looks at: each is a scenario that says what it chose.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/study/plan/plan_base.h"
#include "sim/study/plan/plan_space.h"

namespace ridgeline {
namespace {

std::vector<PlanCandidate> ways_on(std::int64_t gpus, std::vector<config::Override> kept = {}) {
  PlanRequest asked;
  asked.source.text =
      "{hardware: nvidia-h200-sxm-141gb, model: {family: llama, code: plain, layers: 4, heads: 8, hidden: 512, "
      "feed_forward: 1024, vocabulary: 8000}, training: {micro_batch: 16, sequence_length: 256, precision: bf16}}";
  asked.source.text_name = "question";
  asked.source.overrides = std::move(kept);
  asked.gpus = {gpus};
  Descriptions descriptions;
  return plan_space(plan_base(asked, descriptions), gpus, descriptions);
}

bool runs(const PlanCandidate& c) { return c.refused.empty(); }

std::string said(const PlanCandidate& c, const std::string& key) {
  std::string value;
  for (const config::Override& change : c.changes)
    if (change.key == "training." + key) value = change.value;
  return value;
}

TEST(PlanSpace, EveryWayUsesAllGpusAndKeepsTheBatch) {
  std::size_t found = 0;
  for (const PlanCandidate& c : ways_on(8)) {
    EXPECT_EQ(c.gpus, 8);
    if (!runs(c)) continue;
    ++found;
    EXPECT_EQ(c.data * c.tensor * c.pipeline * c.context, 8);
    EXPECT_EQ(c.micro_batch * c.accumulation * c.data, 16);
  }
  EXPECT_GT(found, 50U);
}

TEST(PlanSpace, AWaysChangesSayWhatItChose) {
  for (const PlanCandidate& c : ways_on(8)) {
    if (!runs(c)) continue;
    EXPECT_EQ(said(c, "micro_batch"), std::to_string(c.micro_batch));
    EXPECT_EQ(said(c, "gradient_accumulation"), std::to_string(c.accumulation));
    EXPECT_EQ(said(c, "parallel.data"), std::to_string(c.data));
    if (c.tensor > 1) {
      EXPECT_EQ(said(c, "parallel.tensor"), std::to_string(c.tensor));
    }
    if (c.pipeline > 1) {
      EXPECT_EQ(said(c, "parallel.schedule"), c.schedule);
    }
    if (c.virtual_stages > 0) {
      EXPECT_EQ(said(c, "parallel.virtual_stages"), std::to_string(c.virtual_stages));
    }
    if (c.replicate > 0) {
      EXPECT_EQ(said(c, "parallel.replicate"), std::to_string(c.replicate));
    }
    if (c.data > 1) {
      EXPECT_EQ(said(c, "parallel.strategy"), c.strategy);
    }
  }
}

// One group of shards is fsdp and eight of eight ranks shard nothing: two groups or four are hsdp.
TEST(PlanSpace, GroupsThatHoldTheSameShardsAreNeitherOneNorAll) {
  std::map<std::string, std::set<std::int64_t>> groups;
  for (const PlanCandidate& c : ways_on(8))
    if (runs(c) && c.data == 8) groups[c.strategy].insert(c.replicate);
  EXPECT_EQ(groups["hsdp"], (std::set<std::int64_t>{2, 4}));
  EXPECT_EQ(groups["fsdp"], (std::set<std::int64_t>{0}));
  EXPECT_EQ(groups["ddp"], (std::set<std::int64_t>{0}));
  for (const PlanCandidate& c :
       ways_on(8, {{"training.parallel.strategy", "hsdp", ""}, {"training.parallel.replicate", "4", ""}}))
    if (runs(c) && c.strategy == "hsdp") {
      EXPECT_EQ(c.replicate, 4);
    }
}

TEST(PlanSpace, OneGpuHasNothingToShare) {
  for (const PlanCandidate& c : ways_on(1)) {
    if (!runs(c)) continue;
    EXPECT_EQ(c.data * c.tensor * c.pipeline * c.context * c.expert, 1);
    EXPECT_FALSE(c.no_sync || c.sequence_parallel);
  }
}

// What is not said stands as none, and no way is told twice.
TEST(PlanSpace, NoWayStandsTwice) {
  std::set<std::string> seen;
  for (const PlanCandidate& c : ways_on(4)) {
    if (!runs(c)) continue;
    EXPECT_EQ(c.virtual_stages > 0, c.pipeline > 1 && c.virtual_stages > 0);
    std::string all;
    for (const config::Override& change : c.changes) all += change.key + "=" + change.value + " ";
    EXPECT_TRUE(seen.insert(all).second) << all;
  }
}

}  // namespace
}  // namespace ridgeline
