// Before PyTorch 1.11 autograd kept the input of softmax too, and models added a mask of ones in fp32: one more matrix
// of scores a block stays alive until its backward.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 128, kHeads = 12, kLayers = 12;

std::int64_t peak(Precision precision, bool saves_input, bool adds_mask) {
  TrainingDescription training;
  training.micro_batch = kBatch;
  training.sequence_length = kLength;
  training.precision = precision;
  training.softmax_saves_input = saves_input;
  training.mask_always_added = adds_mask;
  const OpTrace trace = training_run(load_model("bert-base"), training, AttentionChoice::eager);
  std::int64_t alive = 0, most = 0;
  for (std::size_t i = 0; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    const std::int64_t bytes = trace.storages[record.index < trace.storages.size() ? record.index : 0].bytes;
    if (record.kind == Record::Kind::allocate) alive += bytes;
    if (record.kind == Record::Kind::free) alive -= bytes;
    const bool in_forward = i > trace.steps.back().begin;
    if (in_forward && record.kind == Record::Kind::op && trace.calls[record.index].phase == Phase::forward)
      most = std::max(most, alive);
  }
  return most;
}

/// Tensors of scores in fp32, over all blocks, that the second forward pass holds more than the first.
double more_scores(std::int64_t more, std::int64_t less) {
  return static_cast<double>(more - less) / static_cast<double>(4 * kBatch * kHeads * kLength * kLength * kLayers);
}

TEST(SoftmaxInput, kept_it_is_one_more_matrix_of_scores_a_block) {
  const std::int64_t without = peak(Precision::fp32, false, true);
  EXPECT_NEAR(more_scores(peak(Precision::fp32, true, true), without), 1.0, 0.1);
}

TEST(SoftmaxInput, has_16_bits_under_autocast_and_32_once_a_mask_in_fp32_is_added) {
  const std::int64_t without = peak(Precision::amp_fp16, false, false);
  EXPECT_NEAR(more_scores(peak(Precision::amp_fp16, true, false), without), 0.5, 0.1);
  EXPECT_NEAR(more_scores(peak(Precision::amp_fp16, true, true), without), 1.0, 0.1);
}

TEST(SoftmaxInput, not_kept_the_mask_costs_no_memory_that_lasts) {
  EXPECT_NEAR(more_scores(peak(Precision::fp32, false, true), peak(Precision::fp32, false, false)), 0.0, 0.15);
}

}  // namespace
}  // namespace ridgeline
