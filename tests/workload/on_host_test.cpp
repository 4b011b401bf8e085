// An optimizer in the host's memory beside one GPU: what stays on the device, what crosses the bus, who waits.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/live_storages.h"

namespace ridgeline::on_host_test {
namespace {

using testing_support::last_step_of;

constexpr std::int64_t kHidden = 64, kBlocks = 3, kVocabulary = 1000, kPositions = 32;
/// Matrices of 4,096 elements and more: query, key and value in one, output, two of the feed-forward part; tables.
constexpr std::int64_t kLarge = kBlocks * 12 * kHidden * kHidden + kVocabulary * kHidden;
/// Biases, norms and the 2,048 numbers of the positions stay on the device.
constexpr std::int64_t kSmall = kBlocks * 13 * kHidden + 2 * kHidden + kPositions * kHidden;

OpTrace trace_with(OptimizerOffload offload, std::int64_t accumulation = 1) {
  ModelDescription model;
  model.family = ModelFamily::gpt2;
  model.layers = kBlocks;
  model.heads = 4;
  model.hidden = kHidden;
  model.vocabulary = kVocabulary;
  model.max_positions = kPositions;
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = kPositions;
  t.gradient_accumulation = accumulation;
  t.optimizer = {OptimizerKind::adamw, OptimizerImplementation::fused};
  t.optimizer.offload = offload;
  return training_run(model, t, AttentionChoice::flash);
}

std::int64_t bytes_of_states(const OpTrace& trace) {
  std::int64_t bytes = 0;
  for (const StorageId storage : testing_support::live_storages(trace))
    if (trace.storages[storage].category == Category::optimizer_state) bytes += trace.storages[storage].bytes;
  return bytes;
}

std::int64_t bytes_copied(const OpTrace& trace, CopyKind kind) {
  std::int64_t bytes = 0;
  for (const Copy& copy : last_step_of<Copy>(trace))
    if (copy.kind == kind && copy.type != DType::int64) bytes += copy.rows * copy.cols * bytes_of(copy.type);
  return bytes;
}

std::int64_t most_gradients(const OpTrace& trace) {
  std::int64_t alive = 0, most = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::allocate && record.kind != Record::Kind::free) continue;
    if (trace.storages[record.index].category != Category::gradients) continue;
    alive += (record.kind == Record::Kind::allocate ? 1 : -1) * trace.storages[record.index].bytes;
    most = std::max(most, alive);
  }
  return most;
}

TEST(OptimizerOnHost, KeepsStatesOfSmallTensorsOnTheDeviceAlone) {
  const std::int64_t all = bytes_of_states(trace_with(OptimizerOffload::none)),
                     left = bytes_of_states(trace_with(OptimizerOffload::states));
  constexpr std::int64_t kCounts = 16 * 512;  // of steps, a number a tensor
  EXPECT_GE(all - left, 2 * 4 * kLarge);
  EXPECT_LE(all - left, 2 * 4 * kLarge + kCounts);
  EXPECT_GE(left, 2 * 4 * kSmall);
  EXPECT_EQ(testing_support::first_inconsistency(trace_with(OptimizerOffload::states)), "");
  EXPECT_EQ(testing_support::first_inconsistency(trace_with(OptimizerOffload::gradients)), "");
}

TEST(OptimizerOnHost, CopiesGradientsOutAndWeightsBack) {
  for (const OptimizerOffload offload : {OptimizerOffload::states, OptimizerOffload::gradients}) {
    const OpTrace trace = trace_with(offload);
    EXPECT_EQ(bytes_copied(trace, CopyKind::device_to_host), 4 * kLarge);
    EXPECT_EQ(bytes_copied(trace, CopyKind::host_to_device), 4 * kLarge);
  }
  // Each micro-batch copies the sum so far.
  EXPECT_EQ(bytes_copied(trace_with(OptimizerOffload::states, 3), CopyKind::device_to_host), 3 * 4 * kLarge);
  EXPECT_EQ(bytes_copied(trace_with(OptimizerOffload::states, 3), CopyKind::host_to_device), 4 * kLarge);
}

TEST(OptimizerOnHost, DropsGradientsThatWereCopied) {
  EXPECT_EQ(most_gradients(trace_with(OptimizerOffload::states)), most_gradients(trace_with(OptimizerOffload::none)));
  EXPECT_LT(2 * most_gradients(trace_with(OptimizerOffload::gradients)),
            most_gradients(trace_with(OptimizerOffload::states)));
}

TEST(OptimizerOnHost, IsRefusedWhereTorchaoRefusesIt) {
  const auto refusal = [](const std::string& training) {
    try {
      load_scenario({.file = {},
                     .text = "hardware: nvidia-h100-sxm5-80gb\nmodel: gpt2\ntraining: {micro_batch: 1, "
                             "sequence_length: 64, " +
                             training + "}",
                     .text_name = "s",
                     .overrides = {}});
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("optimizer: {offload: states}"), "");
  for (const char* training :
       {"optimizer: {name: sgd, offload: states}", "gradient_clipping: 1, optimizer: {offload: states}",
        "gradient_accumulation: 2, optimizer: {offload: gradients}",
        "precision: amp-fp16, optimizer: {offload: states}", "optimizer: {offload: states, in_backward: true}",
        "compile: true, optimizer: {offload: states}"})
    EXPECT_NE(refusal(training).find("training.optimizer.offload"), std::string::npos) << training << refusal(training);
}

}  // namespace
}  // namespace ridgeline::on_host_test
