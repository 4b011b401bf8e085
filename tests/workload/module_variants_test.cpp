// One network, written in different ways: what the published codes of BERT do apart from HuggingFace's modules.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 128;

TrainingDescription training_in(Precision precision) {
  TrainingDescription training;
  training.micro_batch = kBatch;
  training.sequence_length = kLength;
  training.precision = precision;
  return training;
}

OpTrace trace_of(const std::string& changes, const TrainingDescription& training) {
  std::vector<config::Override> overrides;
  if (!changes.empty())
    overrides.push_back({changes.substr(0, changes.find('=')), changes.substr(changes.find('=') + 1), ""});
  return training_run(load_model("bert-base", overrides), training, AttentionChoice::eager);
}

/// Operations of the last step for which `wanted` holds.
template <typename Wanted>
std::int64_t count(const OpTrace& trace, Wanted wanted) {
  std::int64_t n = 0;
  for (std::size_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::op && wanted(trace.ops[trace.calls[record.index].op], trace.calls[record.index]))
      ++n;
  }
  return n;
}
std::int64_t products(const OpTrace& trace) {
  return count(trace, [](const Op& op, const Call&) { return std::holds_alternative<Matmul>(op); });
}
std::int64_t copies(const OpTrace& trace, Phase phase) {
  return count(trace, [phase](const Op& op, const Call& call) {
    return std::holds_alternative<Copy>(op) && call.phase == phase;
  });
}
std::int64_t waits(const OpTrace& trace) {
  return std::count_if(trace.records.begin() + trace.steps.back().begin, trace.records.begin() + trace.steps.back().end,
                       [](const Record& record) { return record.kind == Record::Kind::wait_for_gpu; });
}
std::int64_t kept_bytes(const OpTrace& trace, Category category) {
  std::int64_t bytes = 0;
  std::vector<bool> alive(trace.storages.size());
  for (std::size_t i = 0; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::allocate) alive[record.index] = true;
    if (record.kind == Record::Kind::free) alive[record.index] = false;
  }
  for (std::size_t i = 0; i < alive.size(); ++i)
    if (alive[i] && trace.storages[i].category == category) bytes += trace.storages[i].bytes;
  return bytes;
}

TEST(ModuleVariants, tokens_first_the_same_products_need_no_copies_of_heads) {
  const OpTrace usual = trace_of("", training_in(Precision::fp32)),
                first = trace_of("sequence_first=true", training_in(Precision::fp32));
  EXPECT_EQ(products(usual), products(first));
  // Three copied operands and the context a block; then the context alone, and x turned round twice. One for the
  // pooler.
  EXPECT_EQ(copies(usual, Phase::forward), 4 * 12 + 1);
  EXPECT_EQ(copies(first, Phase::forward), 12 + 2 + 1);
}

TEST(ModuleVariants, a_bias_of_its_own_is_one_operation_more_a_block) {
  const auto forward = [](const Op& op, const Call& call) {
    return std::holds_alternative<Pointwise>(op) && call.phase == Phase::forward;
  };
  const auto training = training_in(Precision::fp32);
  EXPECT_EQ(count(trace_of("activation_adds_bias=true", training), forward),
            count(trace_of("", training), forward) + 12);
  EXPECT_EQ(products(trace_of("activation_adds_bias=true", training)), products(trace_of("", training)));
}

TEST(ModuleVariants, gelu_spelled_out_is_five_operations_forward_and_nine_backward) {
  const auto training = training_in(Precision::fp32);
  const OpTrace whole = trace_of("", training), parts = trace_of("activation=gelu-spelled-out", training);
  for (const auto& [phase, more] : {std::pair{Phase::forward, 4}, std::pair{Phase::backward, 9}}) {
    const auto in_phase = [phase = phase](const Op& op, const Call& call) {
      return std::holds_alternative<Pointwise>(op) && call.phase == phase;
    };
    EXPECT_EQ(count(parts, in_phase), count(whole, in_phase) + more * 12);
  }
}

TEST(ApexO2, keeps_two_bytes_of_a_weight_and_twelve_for_the_optimizer) {
  TrainingDescription training = training_in(Precision::apex_o2);
  training.optimizer = {OptimizerKind::adamw, OptimizerImplementation::fused};
  const OpTrace trace = trace_of("", training);
  const auto parameters = static_cast<double>(trace.parameters);
  EXPECT_NEAR(static_cast<double>(kept_bytes(trace, Category::weights)) / parameters, 2.0, 0.01);
  EXPECT_NEAR(static_cast<double>(kept_bytes(trace, Category::optimizer_state)) / parameters, 12.0, 0.01);
}

TEST(ApexO2, casts_nothing_in_forward_and_waits_once_to_hear_of_overflow) {
  const OpTrace trace = trace_of("", training_in(Precision::apex_o2));
  EXPECT_EQ(count(trace,
                  [](const Op& op, const Call& call) {
                    const auto* pointwise = std::get_if<Pointwise>(&op);
                    return pointwise != nullptr && pointwise->function == PointwiseFunction::cast &&
                           call.phase == Phase::forward;
                  }),
            0);
  EXPECT_EQ(waits(trace), 1);
}

TEST(BertAdam, is_a_loop_of_twelve_or_fourteen_operations_a_tensor) {
  TrainingDescription training = training_in(Precision::fp32);
  training.optimizer = {OptimizerKind::bert_adam, OptimizerImplementation::for_loop};
  const OpTrace trace = trace_of("", training);
  const std::int64_t operations = count(trace, [](const Op& op, const Call& call) {
    return std::holds_alternative<Pointwise>(op) && call.phase == Phase::optimizer;
  });
  const std::int64_t matrices = 3 + 6 * 12 + 2;  // tables; products of a block; pooler and classifier
  EXPECT_EQ(operations, 12 * trace.parameter_tensors + 2 * matrices);
  EXPECT_EQ(waits(trace), 1);
}

TEST(NoOptimizer, leaves_forward_and_backward_and_keeps_nothing_but_weights) {
  TrainingDescription training = training_in(Precision::fp32);
  training.optimizer.kind = OptimizerKind::none;
  const OpTrace trace = trace_of("", training);
  EXPECT_EQ(count(trace, [](const Op&, const Call& call) { return call.phase == Phase::optimizer; }), 0);
  EXPECT_EQ(kept_bytes(trace, Category::optimizer_state), 0);
  EXPECT_EQ(kept_bytes(trace, Category::gradients), 0);
  EXPECT_EQ(kept_bytes(trace, Category::weights) / trace.parameters, 4);
}

TEST(ReadLoss, makes_the_host_wait_once_a_step_or_once_a_micro_batch) {
  TrainingDescription training = training_in(Precision::fp32);
  training.gradient_accumulation = 3;
  EXPECT_EQ(waits(trace_of("", training)), 0);
  training.reads_loss = LossRead::step;
  EXPECT_EQ(waits(trace_of("", training)), 1);
  training.reads_loss = LossRead::micro_batch;
  EXPECT_EQ(waits(trace_of("", training)), 3);
}

}  // namespace
}  // namespace ridgeline
