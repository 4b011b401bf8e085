// fully_shard with CPUOffloadPolicy: nothing of a shard stays on the device, and what goes over PCIe.
#include <gtest/gtest.h>

#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/live_storages.h"

namespace ridgeline {
namespace {

using testing_support::last_step_of;

constexpr std::int64_t kHidden = 64, kBlocks = 3, kShards = 4;
constexpr std::int64_t kOfBlocks = kBlocks * (12 * kHidden * kHidden + 13 * kHidden);
constexpr std::int64_t kOfRoot = (1000 + 32) * kHidden + 2 * kHidden;

OpTrace offloaded(TrainingDescription t) {
  ModelDescription model;
  model.family = ModelFamily::gpt2;
  model.layers = kBlocks;
  model.heads = 4;
  model.hidden = kHidden;
  model.vocabulary = 1000;
  model.max_positions = 32;
  return training_run(model, t, AttentionChoice::flash);
}

TrainingDescription with_offload() {
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 32;
  t.parallel.data = kShards;
  t.parallel.strategy = DataStrategy::fsdp;
  t.parallel.offload = true;
  return t;
}

std::int64_t bytes_copied(const OpTrace& trace, CopyKind kind) {
  std::int64_t bytes = 0;
  for (const Copy& copy : last_step_of<Copy>(trace))
    if (copy.kind == kind && copy.type != DType::int64) bytes += copy.rows * copy.cols * bytes_of(copy.type);
  return bytes;
}

std::int64_t host_count(const OpTrace& trace, HostClass host_class) {
  std::int64_t count = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
    if (trace.records[i].kind == Record::Kind::host && trace.records[i].host_class == host_class)
      count += trace.records[i].index;
  return count;
}

TEST(HostShards, leave_neither_states_nor_gradients_on_the_device) {
  const OpTrace trace = offloaded(with_offload());
  for (const StorageId storage : testing_support::live_storages(trace)) {
    EXPECT_NE(trace.storages[storage].category, Category::optimizer_state);
    EXPECT_NE(trace.storages[storage].category, Category::gradients);
  }
  ASSERT_EQ(testing_support::first_inconsistency(trace), "");
}

// Blocks come twice, the root once; gradients go once. All sizes divide.
TEST(HostShards, cross_the_bus_with_every_gather_and_reduction) {
  TrainingDescription t = with_offload();
  EXPECT_EQ(bytes_copied(offloaded(t), CopyKind::host_to_device), 4 * (2 * kOfBlocks + kOfRoot) / kShards);
  EXPECT_EQ(bytes_copied(offloaded(t), CopyKind::device_to_host), 4 * (kOfBlocks + kOfRoot) / kShards);
  t.parallel.strategy = DataStrategy::zero2;
  EXPECT_EQ(bytes_copied(offloaded(t), CopyKind::host_to_device), 4 * (kOfBlocks + kOfRoot) / kShards);
  // They are cast on the device: fp32 crosses whatever is computed in.
  t.parallel.parameter_type = DType::bf16;
  EXPECT_EQ(bytes_copied(offloaded(t), CopyKind::host_to_device), 4 * (kOfBlocks + kOfRoot) / kShards);
}

TEST(HostShards, are_updated_by_the_host) {
  TrainingDescription t = with_offload();
  constexpr std::int64_t kCounts = ((kOfBlocks + kOfRoot) / kShards + kHostElements - 1) / kHostElements;
  EXPECT_EQ(host_count(offloaded(t), HostClass::host_update_for_loop), kCounts);
  EXPECT_TRUE(last_step_of<MultiTensor>(offloaded(t)).size() == 2u * kBlocks + 1u);  // copies into gathered buffers
  t.optimizer.implementation = OptimizerImplementation::fused;
  EXPECT_EQ(host_count(offloaded(t), HostClass::host_update_fused), kCounts);
  EXPECT_EQ(host_count(offloaded(t), HostClass::host_update_for_loop), 0);
}

TEST(HostShards, gradients_of_further_micro_batches_are_added_there) {
  TrainingDescription t = with_offload();
  EXPECT_EQ(host_count(offloaded(t), HostClass::host_addition), 0);
  t.gradient_accumulation = 2;
  EXPECT_GT(host_count(offloaded(t), HostClass::host_addition), 0);
  t.parallel.no_sync = true;
  EXPECT_EQ(host_count(offloaded(t), HostClass::host_addition), 0);
}

}  // namespace
}  // namespace ridgeline
