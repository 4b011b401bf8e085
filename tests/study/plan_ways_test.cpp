// The ways to train that a plan looks at, listed, and against all combinations of all choices: those that the reader of
// scenarios takes are the ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/study/plan/plan_base.h"
#include "sim/study/plan/plan_space.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;

constexpr const char* kFourBlocks =
    "{hardware: nvidia-h200-sxm-141gb, model: {family: llama, code: plain, layers: 4, heads: 8, hidden: 512, "
    "feed_forward: 1024, vocabulary: 8000}, training: {sequence_length: 256, precision: bf16}}";
constexpr const char* kSixteenBlocks =
    "{hardware: nvidia-h200-sxm-141gb, model: {family: gpt2, layers: 16, heads: 8, hidden: 512, vocabulary: 8000, "
    "max_positions: 256}, training: {sequence_length: 256, precision: bf16}}";
constexpr const char* kBert =
    "{hardware: nvidia-h200-sxm-141gb, model: bert-base, training: {sequence_length: 128, precision: fp32}}";
constexpr const char* kFourExperts =
    "{hardware: nvidia-h200-sxm-141gb, model: {family: composed, layers: 2, heads: 4, hidden: 256, feed_forward: 512, "
    "vocabulary: 4000, positions: rotary, norm: rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, "
    "output_bias: false, feed_forward_bias: false, experts: 4}, training: {sequence_length: 128, precision: bf16}}";

using Kept = std::map<std::string, std::string>;

struct Ways {
  Ways(const std::string& text, std::int64_t gpus, std::int64_t batch, const Kept& kept = {}) {
    PlanRequest request;
    request.source.text = text;
    request.source.text_name = "question";
    request.gpus = {gpus};
    request.batch = batch;
    for (const auto& [key, value] : kept)
      request.source.overrides.push_back(
          {(key == "activation_checkpointing" ? "training." : "training.parallel.") + key, value, ""});
    base = plan_base(request, descriptions);
    candidates = plan_space(base, gpus, descriptions);
  }
  [[nodiscard]] std::vector<std::string> listed() const {
    std::vector<std::string> result;
    for (const PlanCandidate& c : candidates) {
      std::string line = split_words(c);
      if (c.refused.empty()) line += "; " + step_words(c) + (c.no_sync ? ", no sync" : "");
      else
        line +=
            (c.recompute.empty() ? "" : "; " + c.recompute) + " - " + std::to_string(c.refusals) + " " + c.refused_key;
      result.push_back(line);
    }
    return result;
  }
  Descriptions descriptions;
  PlanBase base;
  std::vector<PlanCandidate> candidates;
};

TEST(PlanWays, OnOneGpuMicroBatchAndRecomputation) {
  EXPECT_THAT(
      Ways(kFourBlocks, 1, 6).listed(),
      ElementsAre("data 1; 6 x 1", "data 1; 3 x 2", "data 1; 2 x 3", "data 1; 1 x 6",  //
                  "data 1; 6 x 1, recompute block", "data 1; 3 x 2, recompute block", "data 1; 2 x 3, recompute block",
                  "data 1; 1 x 6, recompute block", "data 1; selective - 1 training.activation_checkpointing",
                  "data 1; 6 x 1, recompute operations", "data 1; 3 x 2, recompute operations",
                  "data 1; 2 x 3, recompute operations", "data 1; 1 x 6, recompute operations"));
}

TEST(PlanWays, OnTwoGpusAllWaysToUseBoth) {
  EXPECT_THAT(
      Ways(kFourBlocks, 2, 4, {{"activation_checkpointing", "none"}}).listed(),
      ElementsAre("data 2 ddp; 2 x 1, no sync", "data 2 ddp; 1 x 2", "data 2 zero1; 2 x 1, no sync",
                  "data 2 zero1; 1 x 2", "data 2 zero2; 2 x 1", "data 2 zero2; 1 x 2", "data 2 fsdp; 2 x 1",
                  "data 2 fsdp; 1 x 2", "data 2 fsdp1; 2 x 1", "data 2 fsdp1; 1 x 2",
                  "data 2 dataparallel; none - 1 training.parallel.strategy",  // as few sequences as ranks
                  "pipeline 2 gpipe; 4 x 1", "pipeline 2 gpipe; 2 x 2", "pipeline 2 gpipe; 1 x 4",
                  "pipeline 2 1f1b; 4 x 1", "pipeline 2 1f1b; 2 x 2", "pipeline 2 1f1b; 1 x 4",
                  "pipeline 2 interleaved; 4 x 1", "pipeline 2 interleaved; 2 x 2", "pipeline 2 interleaved; 1 x 4",
                  "pipeline 2 zb1p; 4 x 1", "pipeline 2 zb1p; 2 x 2", "pipeline 2 zb1p; 1 x 4", "pipeline 2 zbv; 4 x 1",
                  "pipeline 2 zbv; 2 x 2", "pipeline 2 zbv; 1 x 4", "pipeline 2 interleaved-zero-bubble; 4 x 1",
                  "pipeline 2 interleaved-zero-bubble; 2 x 2", "pipeline 2 interleaved-zero-bubble; 1 x 4",
                  "tensor 2 dtensor; 4 x 1", "tensor 2 dtensor; 2 x 2", "tensor 2 dtensor; 1 x 4",
                  "tensor 2 dtensor, sequence; 4 x 1", "tensor 2 dtensor, sequence; 2 x 2",
                  "tensor 2 dtensor, sequence; 1 x 4", "tensor 2 by-hand; 4 x 1", "tensor 2 by-hand; 2 x 2",
                  "tensor 2 by-hand; 1 x 4",
                  "tensor 2 by-hand, sequence; none - 1 training.parallel.sequence_parallel"));
}

// One reason stands for all that is refused for it: five strategies, whole or checkpointed, cannot share three
// sequences evenly.
TEST(PlanWays, OneReasonStandsForAllThatItRefuses) {
  const Ways ways(kBert, 2, 3);
  const std::vector<std::string> listed = ways.listed();
  ASSERT_FALSE(listed.empty());
  EXPECT_EQ(listed[0], "data 2 ddp; none - 10 training.micro_batch");
  EXPECT_EQ(ways.candidates[0].refused, "2 data parallel ranks do not divide the 3 sequences of a step");
  EXPECT_EQ(ways.candidates[0].data, 2);
  EXPECT_EQ(std::count_if(ways.candidates.begin(), ways.candidates.end(),
                          [](const PlanCandidate& c) { return c.refused_key == "training.micro_batch"; }),
            1);
}

/// The schedule, stages a rank and ranks of each way that runs with one sequence a micro-batch.
std::vector<std::string> stages(const Ways& ways) {
  std::vector<std::string> result;
  for (const PlanCandidate& c : ways.candidates)
    if (c.refused.empty() && c.micro_batch == 1) result.push_back(split_words(c));
  return result;
}

// What a schedule has by itself comes first, then 2, 4, 8 and 16 stages a rank, as many as there are blocks for; zbv
// has two and no other number, schedules of one stage have one.
TEST(PlanWays, StagesDoubleAsLongAsThereAreBlocks) {
  const auto of = [](std::int64_t ranks, Kept kept) {
    kept["activation_checkpointing"] = "none";
    kept["pipeline"] = std::to_string(ranks);
    return stages(Ways(kSixteenBlocks, ranks, 8, kept));
  };
  EXPECT_THAT(of(2, {}),
              ElementsAre("pipeline 2 gpipe", "pipeline 2 1f1b", "pipeline 2 interleaved",
                          "pipeline 2 interleaved, 4 stages a rank", "pipeline 2 interleaved, 8 stages a rank",
                          "pipeline 2 zb1p", "pipeline 2 zbv", "pipeline 2 interleaved-zero-bubble",
                          "pipeline 2 interleaved-zero-bubble, 4 stages a rank",
                          "pipeline 2 interleaved-zero-bubble, 8 stages a rank"));
  EXPECT_THAT(of(4, {{"schedule", "interleaved"}}),
              ElementsAre("pipeline 4 interleaved", "pipeline 4 interleaved, 4 stages a rank"));
  EXPECT_THAT(of(8, {{"schedule", "interleaved"}}), ElementsAre("pipeline 8 interleaved"));
  EXPECT_THAT(of(2, {{"virtual_stages", "4"}}), ElementsAre("pipeline 2 interleaved, 4 stages a rank",
                                                            "pipeline 2 interleaved-zero-bubble, 4 stages a rank"));
  EXPECT_THAT(of(2, {{"virtual_stages", "4"}, {"schedule", "interleaved"}}),
              ElementsAre("pipeline 2 interleaved, 4 stages a rank"));
}

// The changes of a way are what a scenario would say, and no more: the nodes where they are others than the cluster's.
TEST(PlanWays, AreWrittenAsAScenarioSaysThem) {
  const auto text = [](const Ways& ways, const std::string& split, const std::string& step) {
    for (const PlanCandidate& c : ways.candidates) {
      if (split_words(c) != split || step_words(c) != step) continue;
      std::string result;
      for (const config::Override& change : all_changes(ways.base, c)) {
        EXPECT_EQ(change.origin, "plan");
        result += change.key + "=" + change.value + " ";
      }
      return result;
    }
    return std::string("no such way");
  };
  EXPECT_EQ(text(Ways(kFourBlocks, 1, 6), "data 1", "3 x 2, recompute block"),
            "training.micro_batch=2 training.gradient_accumulation=3 training.activation_checkpointing=block "
            "training.parallel.data=1 training.parallel.strategy=ddp ");
  EXPECT_EQ(text(Ways(kFourBlocks, 4, 8), "data 4 hsdp, 2 replicas", "2 x 1"),
            "training.micro_batch=1 training.gradient_accumulation=2 training.activation_checkpointing=none "
            "training.parallel.data=4 training.parallel.strategy=hsdp training.parallel.replicate=2 ");
  EXPECT_EQ(text(Ways(kFourBlocks, 4, 8), "data 2 fsdp, tensor 2 dtensor, sequence", "2 x 2"),
            "training.micro_batch=2 training.gradient_accumulation=2 training.activation_checkpointing=none "
            "training.parallel.data=2 training.parallel.strategy=fsdp training.parallel.tensor=2 "
            "training.parallel.tensor_style=dtensor training.parallel.sequence_parallel=true ");
  EXPECT_EQ(text(Ways(kSixteenBlocks, 16, 32, {{"pipeline", "4"}, {"tensor", "1"}}), "data 4 ddp, pipeline 4 1f1b",
                 "8 x 1, recompute block"),
            "cluster.nodes=2 training.micro_batch=1 training.gradient_accumulation=8 "
            "training.activation_checkpointing=block training.parallel.data=4 training.parallel.strategy=ddp "
            "training.parallel.pipeline=4 training.parallel.schedule=1f1b ");
  EXPECT_EQ(text(Ways(kSixteenBlocks, 2, 4), "pipeline 2 interleaved, 4 stages a rank", "4 x 1"),
            "training.micro_batch=1 training.gradient_accumulation=4 training.activation_checkpointing=none "
            "training.parallel.data=1 training.parallel.strategy=ddp training.parallel.pipeline=2 "
            "training.parallel.schedule=interleaved training.parallel.virtual_stages=4 ");
  EXPECT_EQ(text(Ways(kFourExperts, 4, 8), "data 4 ddp, expert 2", "2 x 1"),
            "training.micro_batch=1 training.gradient_accumulation=2 training.activation_checkpointing=none "
            "training.parallel.data=4 training.parallel.strategy=ddp training.parallel.expert=2 "
            "training.parallel.no_sync=true ");
  EXPECT_EQ(text(Ways(kFourBlocks, 4, 8, {{"context", "2"}}), "data 2 fsdp, context 2", "1 x 4"),
            "training.micro_batch=4 training.gradient_accumulation=1 training.activation_checkpointing=none "
            "training.parallel.data=2 training.parallel.strategy=fsdp training.parallel.context=2 ");
}

/// All combinations of names and of degrees that use all GPUs and make up the batch.
class AllCombinations {
 public:
  AllCombinations(Ways& ways, std::int64_t gpus, std::int64_t batch, const Kept& kept)
      : ways_(ways), gpus_(gpus), batch_(batch), kept_(kept) {}

  std::vector<TrainingDescription> that_run() {
    for (std::int64_t tensor = 1; tensor <= gpus_; ++tensor)
      for (std::int64_t pipeline = 1; pipeline <= gpus_; ++pipeline)
        for (std::int64_t data = 1; data <= gpus_; ++data)
          if (tensor * pipeline * data * context() == gpus_ && allowed("tensor", tensor) &&
              allowed("pipeline", pipeline) && allowed("data", data))
            splits(tensor, pipeline, data);
    return std::move(found_);
  }

 private:
  using Said = std::map<std::string, std::string>;
  [[nodiscard]] std::int64_t context() const { return kept_.contains("context") ? std::stoll(kept_.at("context")) : 1; }
  [[nodiscard]] bool allowed(const std::string& key, const std::string& value) const {
    return !kept_.contains(key) || kept_.at(key) == value;
  }
  [[nodiscard]] bool allowed(const std::string& key, std::int64_t value) const {
    return allowed(key, std::to_string(value));
  }

  void splits(std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
    Said said{{"parallel.data", std::to_string(data)}, {"parallel.tensor", std::to_string(tensor)}};
    said["parallel.pipeline"] = std::to_string(pipeline);
    said["parallel.context"] = std::to_string(context());
    const bool by_torch = tensor > 1 && !ways_.base.scenario.training.parallel.megatron();
    for (const std::string& style :
         by_torch ? std::vector<std::string>{"dtensor", "by-hand"} : std::vector<std::string>{""})
      for (const char* sequence : {"false", "true"}) {
        if (!style.empty() && !allowed("tensor_style", style)) continue;
        if (!allowed("sequence_parallel", sequence)) continue;
        if (style.empty()) said.erase("parallel.tensor_style");
        else said["parallel.tensor_style"] = style;
        said["parallel.sequence_parallel"] = sequence;
        if (tensor == 1 && sequence == std::string("true")) continue;
        schedules(said, pipeline, data);
      }
  }
  void schedules(Said said, std::int64_t pipeline, std::int64_t data) {
    if (pipeline == 1) return strategies(said, data, false);
    for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb1p", "zbv", "interleaved-zero-bubble"})
      for (const std::int64_t stages : {0, 2, 4, 8, 16}) {  // what it has by itself, and more
        if (!allowed("schedule", schedule) || !allowed("virtual_stages", stages)) continue;
        said["parallel.schedule"] = schedule;
        said["parallel.virtual_stages"] = std::to_string(stages);
        if (stages == 0) said.erase("parallel.virtual_stages");
        strategies(said, data, true);
      }
  }
  void strategies(Said said, std::int64_t data, bool pipelined) {
    for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp", "fsdp1", "hsdp"}) {
      if (!allowed("strategy", strategy) || (data == 1 && strategy != std::string("ddp"))) continue;
      said["parallel.strategy"] = strategy;
      for (std::int64_t replicate = 1; replicate <= data; ++replicate) {
        // As many replicas as ranks only where somebody says so.
        const bool groups = replicate > 1 && (replicate < data || kept_.contains("replicate"));
        if (groups != (strategy == std::string("hsdp")) || (!groups && replicate > 1)) continue;
        if (groups && !allowed("replicate", replicate)) continue;
        said["parallel.replicate"] = std::to_string(replicate);
        if (!groups) said.erase("parallel.replicate");
        // Only where gradients stay whole can their exchange wait for the last micro-batch.
        micro_batches(said, data,
                      !pipelined && data > 1 && (strategy == std::string("ddp") || strategy == std::string("zero1")));
      }
    }
  }
  void micro_batches(Said said, std::int64_t data, bool can_wait) {
    for (const char* recompute : {"none", "block", "selective", "operations"})
      for (std::int64_t micro_batch = 1; micro_batch <= batch_; ++micro_batch)
        for (std::int64_t steps = 1; steps <= batch_; ++steps) {
          if (micro_batch * steps * data != batch_ || !allowed("activation_checkpointing", recompute)) continue;
          const bool waits = kept_.contains("no_sync") ? kept_.at("no_sync") == "true" : can_wait && steps > 1;
          said["micro_batch"] = std::to_string(micro_batch);
          said["gradient_accumulation"] = std::to_string(steps);
          said["activation_checkpointing"] = recompute;
          said["parallel.no_sync"] = waits ? "true" : "false";
          experts(said, data);
        }
  }
  void experts(Said said, std::int64_t data) {
    for (std::int64_t expert = 1; expert <= data; ++expert) {
      if (!allowed("expert", expert) || (expert > 1 && !has_experts())) continue;
      said["parallel.expert"] = std::to_string(expert);
      ask(said);
    }
  }
  [[nodiscard]] bool has_experts() const { return ways_.base.scenario.model.composition.given(); }

  void ask(const Said& said) {
    std::vector<config::Override> changes = ways_.base.changes;
    for (const auto& [key, value] : said) changes.push_back({"training." + key, value, "test"});
    try {
      const TrainingDescription read =
          load_shared_scenario(ways_.base.tree, changes, ways_.descriptions).scenario.training;
      if (std::find(found_.begin(), found_.end(), read) == found_.end()) found_.push_back(read);
    } catch (const UserError&) {
      return;  // no way
    }
  }

  Ways& ways_;
  std::int64_t gpus_, batch_;
  const Kept& kept_;
  std::vector<TrainingDescription> found_;
};

void expect_all_ways(const std::string& text, std::int64_t gpus, std::int64_t batch, const Kept& kept) {
  SCOPED_TRACE(text + (kept.empty() ? "" : " " + kept.begin()->first));
  Ways ways(text, gpus, batch, kept);
  const std::vector<TrainingDescription> expected = AllCombinations(ways, gpus, batch, kept).that_run();
  std::size_t found = 0;
  for (const PlanCandidate& c : ways.candidates) {
    if (!c.refused.empty()) continue;
    TrainingDescription read;
    try {
      read = load_shared_scenario(ways.base.tree, all_changes(ways.base, c), ways.descriptions).scenario.training;
    } catch (const UserError&) {
      continue;  // a leaf, of which the plan says that it is refused
    }
    ++found;
    EXPECT_NE(std::find(expected.begin(), expected.end(), read), expected.end())
        << split_words(c) << "; " << step_words(c);
  }
  EXPECT_GT(found, 0u);
  EXPECT_EQ(found, expected.size());
}

TEST(PlanWays, AreAllCombinationsThatRun) {
  expect_all_ways(kFourBlocks, 2, 4, {});
  expect_all_ways(kFourBlocks, 4, 4, {});
  expect_all_ways(kFourBlocks, 4, 8, {{"context", "2"}});
  expect_all_ways(kBert, 4, 12, {});
  expect_all_ways(kFourExperts, 4, 8, {});
  expect_all_ways(kSixteenBlocks, 4, 4, {{"activation_checkpointing", "none"}});
}

TEST(PlanWays, KeepWhatIsSaid) {
  expect_all_ways(kFourBlocks, 4, 8, {{"tensor", "2"}, {"tensor_style", "by-hand"}});
  expect_all_ways(kFourBlocks, 4, 8, {{"tensor", "2"}, {"tensor_style", "dtensor"}});
  expect_all_ways(kFourBlocks, 4, 8, {{"sequence_parallel", "true"}, {"tensor", "2"}});
  expect_all_ways(kFourBlocks, 4, 8, {{"sequence_parallel", "false"}});
  expect_all_ways(kFourBlocks, 4, 8, {{"no_sync", "false"}});
  expect_all_ways(kFourBlocks, 4, 8, {{"data", "2"}, {"pipeline", "1"}});
  expect_all_ways(kFourBlocks, 8, 8, {{"strategy", "hsdp"}, {"replicate", "4"}});
  expect_all_ways(kFourExperts, 4, 8, {{"expert", "2"}});
}

}  // namespace
}  // namespace ridgeline
