// zero_grad before PyTorch 2.0 filled gradients with zeros: they stay allocated, and the next backward pass adds to
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

OpTrace run(bool keep) {
  TrainingDescription training;
  training.micro_batch = 2;
  training.sequence_length = 128;
  training.keep_gradients = keep;
  return training_run(load_model("bert-base"), training, AttentionChoice::eager);
}

std::int64_t alive_at_end(const OpTrace& trace, Category category) {
  std::int64_t bytes = 0;
  for (const Record& record : trace.records) {
    const bool allocates = record.kind == Record::Kind::allocate;
    if (!allocates && record.kind != Record::Kind::free) continue;
    const Storage& storage = trace.storages[record.index];
    if (storage.category == category) bytes += allocates ? storage.bytes : -storage.bytes;
  }
  return bytes;
}

std::int64_t memsets(const OpTrace& trace) {
  return std::count_if(trace.calls.begin(), trace.calls.end(),
                       [&](const Call& call) { return std::holds_alternative<Memset>(trace.ops[call.op]); });
}

TEST(KeptGradients, stay_allocated_after_the_step_and_dropped_ones_do_not) {
  EXPECT_EQ(alive_at_end(run(false), Category::gradients), 0);
  const OpTrace kept = run(true);
  EXPECT_EQ(alive_at_end(kept, Category::gradients), 4 * kept.parameters);
}

TEST(KeptGradients, are_filled_with_zeros_one_by_one) {
  EXPECT_EQ(memsets(run(false)), 0);
  EXPECT_GT(memsets(run(true)), 2 * 190);  // two steps, 201 parameters
}

TEST(KeptGradients, take_one_addition_a_parameter_in_the_second_step) {
  const OpTrace dropped = run(false), kept = run(true);
  EXPECT_GT(kept.calls.size(), dropped.calls.size() + 2 * 190 + 190);
}

}  // namespace
}  // namespace ridgeline
