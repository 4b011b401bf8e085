// Parts of blocks that run again or wait on the host: the backward pass has every tensor it reads, the same products
// are made twice, and less lies on the device.
#include "sim/workload/block_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/data_flow.h"
#include "tests/support/last_step.h"

namespace ridgeline::parts_of_blocks {
namespace {

constexpr std::uint8_t bit(BlockPart part) { return static_cast<std::uint8_t>(part); }

OpTrace run_parts(const std::string& model, std::vector<std::uint8_t> parts,
                  AttentionChoice attention = AttentionChoice::eager) {
  TrainingDescription training;
  training.micro_batch = 8;  // so that what autograd keeps outweighs the weights' own temporaries
  training.sequence_length = 512;
  training.optimizer.kind = OptimizerKind::none;
  training.precision = Precision::amp_bf16;
  training.treated_blocks.parts = std::move(parts);
  training.activation_checkpointing =
      training.treated_blocks.any() ? ActivationCheckpointing::parts : ActivationCheckpointing::none;
  return training_run(load_model(model), training, attention);
}

std::int64_t most_alive(const OpTrace& trace) {
  std::int64_t now = 0, most = 0;
  for (const Record& record : trace.records) {
    if (record.kind == Record::Kind::allocate) now += trace.storages[record.index].bytes;
    else if (record.kind == Record::Kind::free) now -= trace.storages[record.index].bytes;
    most = std::max(most, now);
  }
  EXPECT_GE(now, 0);
  return most;
}

/// Operations of one kind in the last step.
template <typename Kind>
std::int64_t count_in_step(const OpTrace& trace) {
  return static_cast<std::int64_t>(testing_support::last_step_of<Kind>(trace).size());
}

/// Operations that read what nobody wrote: a recomputation computes a little in vain, and reads nothing that is gone.
std::set<std::string> never_written(const OpTrace& trace) {
  std::set<std::string> result;
  for (const std::string& odd : testing_support::oddities_of_flow(trace))
    if (odd.starts_with("never written")) result.insert(odd);
  return result;
}

TEST(BlockParts, OfABlockBeyondTheListAreThoseOfTheLast) {
  const BlockTreatments treated{{bit(BlockPart::block), 0, bit(BlockPart::attention)}};
  EXPECT_TRUE(treated.has(0, BlockPart::block));
  EXPECT_FALSE(treated.has(1, BlockPart::block));
  EXPECT_TRUE(treated.has(7, BlockPart::attention));
  EXPECT_FALSE(BlockTreatments{}.has(0, BlockPart::block));
}

TEST(BlockParts, TakeLessMemoryAndReadNothingThatIsGone) {
  for (const char* model : {"bert-base", "tinyllama-1.1b"}) {
    const OpTrace kept = run_parts(model, {});
    for (const BlockPart part : {BlockPart::attention, BlockPart::feed_forward, BlockPart::block, BlockPart::offload}) {
      SCOPED_TRACE(std::string(model) + " " + std::to_string(static_cast<int>(part)));
      const OpTrace treated = run_parts(model, {bit(part)});
      EXPECT_LT(most_alive(treated), most_alive(kept));
      if (part != BlockPart::offload) {
        EXPECT_EQ(never_written(treated), never_written(kept));
      }
    }
  }
}

// BERT's attention: products of the three projections and of the output, two batched ones; softmax once more.
TEST(BlockParts, AttentionRunsAgainAndNothingElseDoes) {
  const OpTrace kept = run_parts("bert-base", {}), treated = run_parts("bert-base", {bit(BlockPart::attention)});
  constexpr std::int64_t kBlocks = 12;
  EXPECT_EQ(count_in_step<Softmax>(treated) - count_in_step<Softmax>(kept), kBlocks);
  const std::int64_t products = count_in_step<Matmul>(treated) - count_in_step<Matmul>(kept);
  EXPECT_GE(products, 5 * kBlocks);
  EXPECT_LE(products, 6 * kBlocks);
  EXPECT_EQ(count_in_step<Norm>(treated), count_in_step<Norm>(kept));
}

TEST(BlockParts, OfSomeBlocksCostAndSaveTheirShare) {
  const OpTrace kept = run_parts("bert-base", {}), all = run_parts("bert-base", {bit(BlockPart::feed_forward)}),
                half = run_parts("bert-base", {bit(BlockPart::feed_forward), 4, 4, 4, 4, 4, 0});
  EXPECT_EQ(2 * (count_in_step<Matmul>(half) - count_in_step<Matmul>(kept)),
            count_in_step<Matmul>(all) - count_in_step<Matmul>(kept));
  const std::int64_t saved = most_alive(kept) - most_alive(half), most = most_alive(kept) - most_alive(all);
  EXPECT_NEAR(static_cast<double>(saved), 0.5 * static_cast<double>(most), 0.1 * static_cast<double>(most));
}

TEST(BlockParts, WhatWentToTheHostComesBack) {
  const OpTrace trace = run_parts("tinyllama-1.1b", {0, bit(BlockPart::offload), 0});
  std::int64_t out = 0, in = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const auto* copy = std::get_if<Copy>(&trace.ops[trace.calls[trace.records[i].index].op]);
    if (copy == nullptr || copy->rows * copy->cols < 2) continue;
    if (copy->kind == CopyKind::device_to_host) out += copy->rows * copy->cols * bytes_of(copy->type);
    if (copy->kind == CopyKind::host_to_device) in += copy->rows * copy->cols * bytes_of(copy->type);
    EXPECT_NE(copy->kind, CopyKind::pageable_to_device);
  }
  EXPECT_GT(out, 0);
  EXPECT_EQ(out, in);
}

}  // namespace
}  // namespace ridgeline::parts_of_blocks
