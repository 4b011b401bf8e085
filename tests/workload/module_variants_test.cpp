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

std::int64_t pointwise_in(const OpTrace& trace, Phase phase) {
  return count(trace, [phase](const Op& op, const Call& call) {
    return std::holds_alternative<Pointwise>(op) && call.phase == phase;
  });
}
std::int64_t norms_in(const OpTrace& trace, Phase phase) {
  return count(trace, [phase](const Op& op, const Call& call) {
    const auto* reduction = std::get_if<Reduction>(&op);
    return reduction != nullptr && reduction->kind == ReductionKind::norm_all && call.phase == phase;
  });
}

// Average, square, root, update and their product with the learning rate are ten kernels, decay two more; clipping one
// tensor two norms and three scalar kernels, then a comparison that the host waits for, or a clamp and a product.
TEST(BertAdam, is_a_loop_that_clips_each_tensor) {
  TrainingDescription training = training_in(Precision::fp32);
  training.optimizer = {OptimizerKind::bert_adam, OptimizerImplementation::for_loop};
  const std::int64_t matrices = 3 + 6 * 12 + 2;  // tables; products of a block; pooler and classifier
  training.clipping_style = {.by_lists = false, .waits = true};
  const OpTrace old = trace_of("", training);
  const std::int64_t tensors = old.parameter_tensors;
  EXPECT_EQ(pointwise_in(old, Phase::optimizer), (10 + 4) * tensors + 2 * matrices);
  EXPECT_EQ(norms_in(old, Phase::optimizer), 2 * tensors);
  EXPECT_EQ(waits(old), tensors);
  training.clipping_style = {.by_lists = false, .waits = false};
  const OpTrace later = trace_of("", training);
  EXPECT_EQ(pointwise_in(later, Phase::optimizer), (10 + 5) * tensors + 2 * matrices);
  EXPECT_EQ(norms_in(later, Phase::optimizer), 2 * tensors);
  EXPECT_EQ(waits(later), 0);
  training.clipping_style = {.by_lists = true, .waits = false};
  const OpTrace today = trace_of("", training);
  EXPECT_EQ(pointwise_in(today, Phase::optimizer), (10 + 4) * tensors + 2 * matrices);
  EXPECT_EQ(norms_in(today, Phase::optimizer), tensors);
  EXPECT_EQ(waits(today), 0);
}

TEST(Clipping, is_of_lists_or_of_tensors_and_waits_where_the_version_does) {
  TrainingDescription training = training_in(Precision::fp32);
  training.gradient_clipping = 1.0;
  const OpTrace lists = trace_of("", training);
  const std::int64_t tensors = lists.parameter_tensors;
  EXPECT_EQ(norms_in(lists, Phase::clipping), 1);
  EXPECT_EQ(pointwise_in(lists, Phase::clipping), 4);
  EXPECT_EQ(waits(lists), 0);
  training.clipping_style = {.by_lists = true, .waits = true};
  EXPECT_EQ(waits(trace_of("", training)), 1);
  training.clipping_style = {.by_lists = false, .waits = false};
  const OpTrace loop = trace_of("", training);
  EXPECT_EQ(norms_in(loop, Phase::clipping), tensors + 1);
  EXPECT_EQ(pointwise_in(loop, Phase::clipping), tensors + 4);
  EXPECT_EQ(waits(loop), 0);
  training.clipping_style.waits = true;
  EXPECT_EQ(waits(trace_of("", training)), 1);
}

TEST(Clipping, by_apex_is_two_passes_over_lists_and_a_wait) {
  TrainingDescription training = training_in(Precision::fp32);
  training.gradient_clipping = 1.0;
  training.gradient_clipper = GradientClipper::apex;
  const OpTrace trace = trace_of("", training);
  EXPECT_EQ(count(trace,
                  [](const Op& op, const Call& call) {
                    return std::holds_alternative<MultiTensor>(op) && call.phase == Phase::clipping;
                  }),
            2);
  EXPECT_EQ(waits(trace), 1);
}

TEST(DataLoader, takes_each_sequence_of_each_tensor_and_waits_for_each_copy) {
  TrainingDescription training = training_in(Precision::fp32);
  training.data_loader = DataLoader::tensor_dataset;
  const OpTrace trace = trace_of("", training);
  const std::int64_t tensors = 4;  // tokens, mask, types, target
  EXPECT_EQ(waits(trace), tensors);
  const auto views = [](const OpTrace& whole) {
    std::int64_t n = 0;
    for (std::size_t i = whole.steps.back().begin; i < whole.steps.back().end; ++i)
      if (whole.records[i].kind == Record::Kind::host && whole.records[i].host_class == HostClass::view)
        n += whole.records[i].index;
    return n;
  };
  EXPECT_EQ(views(trace) - views(trace_of("", training_in(Precision::fp32))), tensors * kBatch);
}

TEST(DataParallel, of_one_process_passes_over_the_gradients_three_times) {
  const TrainingDescription alone = training_in(Precision::apex_o2);
  TrainingDescription wrapped = alone;
  wrapped.data_parallel = DataParallel::apex;
  const auto every = [](const Op&, const Call&) { return true; };
  EXPECT_EQ(count(trace_of("", wrapped), every) - count(trace_of("", alone), every), 3);
}

TEST(ClearsGradients, a_script_without_zero_grad_adds_each_gradient_to_the_last_ones) {
  TrainingDescription training = training_in(Precision::fp32);
  training.optimizer.kind = OptimizerKind::none;
  const OpTrace dropped = trace_of("", training);
  training.clears_gradients = false;
  const OpTrace kept = trace_of("", training);
  EXPECT_EQ(kept_bytes(kept, Category::gradients), 4 * kept.parameters);
  EXPECT_EQ(pointwise_in(kept, Phase::backward) - pointwise_in(dropped, Phase::backward), kept.parameter_tensors);
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
