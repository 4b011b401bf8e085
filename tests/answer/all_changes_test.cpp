// Every change that a step is worth trying with: those that do something there and that the reader of scenarios takes,
// and each does what --set with its words does.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sim/answer/changes.h"

namespace ridgeline {
namespace {

std::string on_gpu(const std::string& hardware, const std::string& model, const std::string& training,
                   const std::string& more = "") {
  return "{hardware: " + hardware + ", model: " + model + ", " + more +
         "training: {micro_batch: 2, sequence_length: 128, " + training + "}}";
}
std::string on_cluster(const std::string& training) {
  return "{cluster: dgx-a100, model: gpt2, training: {micro_batch: 2, sequence_length: 128, precision: amp-bf16, "
         "optimizer: {name: adamw, implementation: fused}, " +
         training + "}}";
}
const std::string kAmpere = "nvidia-a100-sxm4-80gb", kVolta = "nvidia-v100-sxm2-16gb",
                  kPlain = "precision: amp-bf16, optimizer: {name: adamw, implementation: fused}";
const std::string kPadded = "model.vocabulary=50304", kGrow = "allocator.expandable_segments=true",
                  kBlock = "training.activation_checkpointing=block", kEight = "training.optimizer.name=adamw-8bit",
                  kFused = "training.optimizer.implementation=fused", kSdpa = "training.attention=sdpa",
                  kHalved = "training.micro_batch=1 training.gradient_accumulation=2",
                  kQuarter = "training.micro_batch=1 training.gradient_accumulation=4",
                  kOnce = "training.micro_batch=4 training.gradient_accumulation=1",
                  kGraphs = "training.cuda_graphs=true", kCompile = "training.compile=true",
                  kParallel = "training.parallel.";

struct Case {
  std::string text;
  StepShares shares;
  std::set<std::string> time, memory;
};

std::vector<Case> on_one_gpu() {
  return {
      {on_gpu(kAmpere, "gpt2", "precision: fp32, attention: eager, optimizer: adamw"),
       {},
       {kPadded, kSdpa, kFused, "training.precision=amp-bf16", "training.precision=tf32"},
       {kGrow, kBlock, kSdpa, kHalved, kFused, kEight}},
      // A GPU that waits takes generated code or graphs, one that is busy with small kernels the first.
      {on_gpu(kAmpere, "gpt2", kPlain), {.idle = 0.2}, {kPadded, kCompile, kGraphs}, {kGrow, kBlock, kHalved, kEight}},
      {on_gpu(kAmpere, "gpt2", kPlain), {.elementwise = 0.2}, {kPadded, kCompile}, {kGrow, kBlock, kHalved, kEight}},
      {on_gpu(kAmpere, "gpt2", kPlain),
       {.idle = 0.05, .elementwise = 0.05},
       {kPadded},
       {kGrow, kBlock, kHalved, kEight}},
      {on_gpu(kAmpere, "bert-base", "precision: amp-bf16, cuda_graphs: true, compile: true, optimizer: {name: sgd}"),
       {.idle = 0.5, .elementwise = 0.5},
       {kFused},
       {kGrow, kBlock, kHalved, kFused}},
      // No tf32 and no bf16 on Volta; more of them at once where they are accumulated.
      {on_gpu(kVolta, "bert-base",
              "precision: fp32, activation_checkpointing: block, gradient_accumulation: 2, optimizer: {name: adam}"),
       {},
       {"training.activation_checkpointing=none", kOnce, kFused, "training.precision=amp-fp16"},
       {kGrow, kQuarter, kFused, kEight}},
      {on_gpu(kAmpere, "gpt2", "precision: amp-bf16, attention: math, optimizer: {name: adamw-8bit}",
              "allocator: {expandable_segments: true}, "),
       {},
       {kPadded},
       {kBlock, kSdpa, kHalved}},
      {"{hardware: nvidia-a100-sxm4-80gb, model: gpt2, inference: {sequences: 4, prompt_length: 64, new_tokens: 8, "
       "precision: fp32, attention: eager, cache: none}}",
       {.idle = 0.5},
       {},
       {kGrow, "inference.attention=sdpa", "inference.cache=dynamic", "inference.precision=bf16",
        "inference.sequences=2"}},
      {"{hardware: nvidia-a100-sxm4-80gb, model: gpt2, inference: {sequences: 1, prompt_length: 64, new_tokens: 8, "
       "precision: bf16}}",
       {},
       {},
       {kGrow}},
  };
}

std::vector<Case> on_several() {
  const std::set<std::string> memory{kGrow, kBlock, kHalved, kEight}, accumulated{kGrow, kBlock, kQuarter, kEight};
  return {
      {on_cluster("parallel: {data: 2, strategy: ddp}"),
       {.idle = 0.5},
       {kPadded, kParallel + "gradient_as_bucket_view=true", kParallel + "strategy=fsdp"},
       memory},
      {on_cluster("gradient_accumulation: 2, parallel: {data: 2, strategy: ddp, no_sync: true, "
                  "gradient_as_bucket_view: true}"),
       {},
       {kPadded, kOnce, kParallel + "strategy=fsdp"},
       accumulated},
      {on_cluster("gradient_accumulation: 2, parallel: {data: 2, strategy: fsdp}"),
       {.idle = 0.5},
       {kPadded, kOnce, kParallel + "no_sync=true", kParallel + "reshard_after_forward=false"},
       accumulated},
      {on_cluster("parallel: {data: 2, strategy: zero1}"), {}, {kPadded, kParallel + "strategy=fsdp"}, memory},
      // Megatron-LM pads its vocabulary itself and has no 8-bit optimizer.
      {on_cluster("gradient_accumulation: 2, parallel: {framework: megatron, tensor: 2, data: 4}"),
       {},
       {kOnce, kParallel + "sequence_parallel=true", kParallel + "strategy=zero1"},
       {kGrow, kBlock, kQuarter}},
      {on_cluster("parallel: {framework: megatron, pipeline: 2, data: 4}"),
       {.idle = 0.5},
       {},
       {kGrow, kBlock, kHalved}},
      {on_cluster("parallel: {framework: deepspeed, data: 2, strategy: zero1}"),
       {},
       {kPadded, kParallel + "strategy=zero2", kParallel + "zero_optimization.overlap_comm=true",
        kParallel + "zero_optimization.reduce_bucket_size=5e7"},
       {kGrow, kBlock, kHalved}},
      {on_cluster("parallel: {framework: deepspeed, data: 2, strategy: zero2, zero_optimization: {overlap_comm: true, "
                  "reduce_bucket_size: 5e7}}"),
       {},
       {kPadded, kParallel + "strategy=zero3"},
       {kGrow, kBlock, kHalved}},
      {on_cluster("parallel: {framework: deepspeed, data: 2, strategy: zero3}"),
       {},
       {kPadded, kParallel + "zero_optimization.reduce_bucket_size=5e7"},
       {kGrow, kBlock, kHalved}},
  };
}

Scenario told_to(const std::string& text, const std::string& set) {
  ScenarioSource source;
  source.text = text;
  source.text_name = "test";
  for (std::size_t begin = 0; begin < set.size();) {
    const std::size_t end = std::min(set.find(' ', begin), set.size());
    source.overrides.push_back(config::parse_override(set.substr(begin, end - begin)));
    begin = end + 1;
  }
  return load_scenario(source);
}

std::set<std::string> sets_of(const std::vector<Change>& changes) {
  std::set<std::string> sets;
  for (const Change& change : changes) {
    EXPECT_TRUE(sets.insert(change.set).second) << change.set << " twice";
    EXPECT_FALSE(change.why.empty());
  }
  return sets;
}

void expect_changes(const Case& one) {
  SCOPED_TRACE(one.text);
  const Scenario asked = told_to(one.text, "");
  EXPECT_EQ(sets_of(time_changes(asked, one.shares)), one.time);
  EXPECT_EQ(sets_of(memory_changes(asked)), one.memory);
  std::vector<Change> all = time_changes(asked, one.shares);
  for (Change& change : memory_changes(asked)) all.push_back(std::move(change));
  for (const Change& change : all) {
    SCOPED_TRACE(change.set);
    Scenario applied = asked;
    change.apply(applied);
    const Scenario told = told_to(one.text, change.set);
    EXPECT_EQ(applied.training, told.training);
    EXPECT_EQ(applied.model.vocabulary, told.model.vocabulary);
    EXPECT_EQ(applied.compile, told.compile);
    EXPECT_EQ(applied.cuda_graphs, told.cuda_graphs);
    EXPECT_EQ(applied.allocator.expandable_segments, told.allocator.expandable_segments);
  }
}

TEST(AllChanges, of_one_gpu_are_those_that_do_something_and_do_what_they_say) {
  for (const Case& one : on_one_gpu()) expect_changes(one);
}
TEST(AllChanges, of_several_gpus_are_those_that_do_something_and_do_what_they_say) {
  for (const Case& one : on_several()) expect_changes(one);
}

}  // namespace
}  // namespace ridgeline
