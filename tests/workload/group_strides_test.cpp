// GPUs between neighbours of a group, in a layout whose degrees are all different primes; and what ranks start with.
#include <gtest/gtest.h>

#include "sim/workload/parallel/parallel.h"
#include "sim/workload/training_step.h"
#include "tests/support/small_networks.h"

namespace ridgeline {
namespace {

TEST(GroupStrides, AreTheProductOfTheDegreesInside) {
  ParallelDescription how;
  how.tensor = 2;
  how.context = 3;
  how.data = 35;
  how.replicate = 5;
  how.expert = 7;
  how.pipeline = 11;
  EXPECT_EQ(stride_of(how, GroupKind::tensor), 1);
  EXPECT_EQ(stride_of(how, GroupKind::model), 1);
  for (const GroupKind kind : {GroupKind::data, GroupKind::shard, GroupKind::expert, GroupKind::context})
    EXPECT_EQ(stride_of(how, kind), 2);
  EXPECT_EQ(stride_of(how, GroupKind::expert_data), 2 * 7);
  EXPECT_EQ(stride_of(how, GroupKind::replicate), 2 * 3 * 35 / 5);
  EXPECT_EQ(stride_of(how, GroupKind::pipeline), 2 * 3 * 35);
  EXPECT_EQ(stride_of(how, GroupKind::embedding), 2 * 3 * 35 * 10);
  EXPECT_EQ(how.gpus(), 2 * 3 * 35 * 11);
  EXPECT_EQ(how.expert_copies(), 3 * 35 / 7);
}

// DistributedDataParallel sends every parameter of rank 0 once, before the first step.
TEST(GroupStrides, ParametersAreSentOnceBeforeTheFirstStep) {
  const ModelDescription model = testing_support::small_network(ModelFamily::gpt2, 1000);
  TrainingDescription t;
  t.micro_batch = 1;
  t.sequence_length = 32;
  t.parallel.data = 4;
  const OpTrace trace = training_run(model, t, AttentionChoice::flash);
  std::int64_t sent = 0, allocated = 0;
  for (std::uint32_t i = 0; i < trace.steps.front().begin; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const Call& call = trace.calls[trace.records[i].index];
    const auto* one = std::get_if<Collective>(&trace.ops[call.op]);
    if (one == nullptr || one->kind != CollectiveKind::broadcast) continue;
    sent += one->bytes;
    allocated += trace.storages[trace.operands[call.operands_begin].storage].bytes;
  }
  EXPECT_EQ(sent, 4 * trace.parameters);
  EXPECT_EQ(allocated, 4 * trace.parameters);
}

}  // namespace
}  // namespace ridgeline
