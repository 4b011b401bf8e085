#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"
#include "sim/workload/op_operands.h"
#include "sim/workload/repeated_range.h"
#include "sim/workload/training_step.h"
#include "tests/support/operand_sizes.h"
#include "tests/support/small_networks.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

ModelDescription small(ModelFamily family) {
  ModelDescription model = testing_support::small_network(family);
  if (family == ModelFamily::bert) model.head = ModelHead::sequence_classification;
  return model;
}

TrainingDescription small_training() {
  TrainingDescription training;
  training.micro_batch = 2;
  training.sequence_length = 32;
  training.gradient_clipping = 1.0;
  return training;
}

/// Every combination a scenario may ask for, on small models.
template <typename Check>
void for_each_combination(Check check) {
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::bert, ModelFamily::llama})
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::amp_fp16, Precision::amp_bf16, Precision::bf16})
      for (const AttentionChoice attention : {AttentionChoice::eager, AttentionChoice::flash, AttentionChoice::cudnn,
                                              AttentionChoice::efficient, AttentionChoice::math})
        for (const auto checkpointing : {ActivationCheckpointing::none, ActivationCheckpointing::block})
          for (const double dropout : {0.0, 0.1}) {
            ModelDescription model = small(family);
            model.dropout = model.attention_dropout = dropout;
            TrainingDescription training = small_training();
            training.precision = precision;
            training.activation_checkpointing = checkpointing;
            training.gradient_accumulation = 2;
            check(model, training, attention);
          }
}

TEST(TrainingRun, Trains_as_many_parameters_as_the_description_counts) {
  for (const std::string& name : model_names()) {
    TrainingDescription training = small_training();
    training.micro_batch = 1;
    const ModelDescription model = load_model(name);
    EXPECT_EQ(training_run(model, training, AttentionChoice::efficient, 1).parameters, parameter_count(model)) << name;
  }
  for (const ModelHead head : {ModelHead::question_answering, ModelHead::masked_lm, ModelHead::pretraining}) {
    ModelDescription bert = small(ModelFamily::bert);
    for (const bool tied : {true, false}) {
      bert.head = head;
      bert.tie_embeddings = tied;
      EXPECT_EQ(training_run(bert, small_training(), AttentionChoice::eager, 1).parameters, parameter_count(bert));
    }
  }
}

TEST(TrainingRun, Every_storage_is_allocated_before_it_is_used_and_freed_at_most_once) {
  for_each_combination(
      [](const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention) {
        const OpTrace trace = training_run(model, training, attention);
        std::set<std::uint32_t> live, dead;
        for (const Record& record : trace.records) {
          if (record.kind == Record::Kind::allocate) {
            ASSERT_FALSE(dead.contains(record.index)) << "storage ids are never used again";
            live.insert(record.index);
          } else if (record.kind == Record::Kind::free) {
            ASSERT_EQ(live.erase(record.index), 1u);
            dead.insert(record.index);
          } else if (record.kind == Record::Kind::op) {
            const Call& call = trace.calls[record.index];
            for (std::uint32_t i = 0; i < std::uint32_t{call.inputs} + call.outputs; ++i) {
              const Operand& operand = trace.operands[call.operands_begin + i];
              ASSERT_TRUE(live.contains(operand.storage)) << name_of(trace.ops[call.op]);
              ASSERT_LE(operand.bytes, trace.storages[operand.storage].bytes);
            }
          }
        }
      });
}

TEST(TrainingRun, Operands_of_a_call_are_those_its_operation_is_described_with) {
  for_each_combination(
      [](const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention) {
        const OpTrace trace = training_run(model, training, attention);
        for (const Call& call : trace.calls) {
          const Op& op = trace.ops[call.op];
          const auto* copy = std::get_if<Copy>(&op);
          const bool host =
              copy != nullptr && (copy->kind == CopyKind::host_to_device || copy->kind == CopyKind::device_to_host);
          const OperandCounts counts = operand_counts(op);
          if (host) continue;  // one end is not on the device
          if (const auto* lists = std::get_if<MultiTensor>(&op)) {
            ASSERT_GT(call.inputs, 0) << shape_of(op);
            ASSERT_EQ(call.inputs % lists->sizes->size(), 0u) << shape_of(op);
            continue;
          }
          ASSERT_EQ(call.inputs, counts.inputs) << name_of(op) << ' ' << shape_of(op);
          ASSERT_EQ(call.outputs, counts.outputs) << name_of(op) << ' ' << shape_of(op);
        }
      });
}

TEST(TrainingRun, Operations_are_as_large_as_their_tensors) {
  for_each_combination(
      [](const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention) {
        ASSERT_EQ(testing_support::first_of_another_size(training_run(model, training, attention)), "");
      });
}

std::int64_t live_after(const OpTrace& trace, std::uint32_t records) {
  std::int64_t bytes = 0;
  for (std::uint32_t i = 0; i < records; ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::allocate) bytes += trace.storages[record.index].bytes;
    if (record.kind == Record::Kind::free) bytes -= trace.storages[record.index].bytes;
  }
  return bytes;
}

TEST(TrainingRun, From_the_second_step_on_every_step_ends_with_what_it_began_with) {
  for_each_combination(
      [](const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention) {
        const OpTrace trace = training_run(model, training, attention, 3);
        EXPECT_LT(live_after(trace, trace.steps[0].begin), live_after(trace, trace.steps[0].end)) << "optimizer states";
        EXPECT_EQ(live_after(trace, trace.steps[1].begin), live_after(trace, trace.steps[1].end));
        EXPECT_EQ(trace.steps[1].end - trace.steps[1].begin, trace.steps[2].end - trace.steps[2].begin);
      });
}

TEST(TrainingRun, Lasting_memory_is_weights_inputs_and_optimizer_states) {
  struct Case {
    OptimizerKind kind;
    OptimizerImplementation implementation;
    double states;  ///< bytes a parameter, for large matrices
  };
  const Case cases[] = {{OptimizerKind::sgd, OptimizerImplementation::foreach, 0.0},
                        {OptimizerKind::sgd_momentum, OptimizerImplementation::foreach, 4.0},
                        {OptimizerKind::adam, OptimizerImplementation::for_loop, 8.0},
                        {OptimizerKind::adamw, OptimizerImplementation::foreach, 8.0},
                        {OptimizerKind::adamw, OptimizerImplementation::fused, 8.0},
                        {OptimizerKind::adamw_kahan, OptimizerImplementation::foreach, 12.0},
                        {OptimizerKind::adamw_8bit, OptimizerImplementation::foreach, 2.0 + 8.0 / 256.0},
                        {OptimizerKind::lion, OptimizerImplementation::foreach, 4.0},
                        {OptimizerKind::lion, OptimizerImplementation::for_loop, 4.0},
                        {OptimizerKind::lion, OptimizerImplementation::fused, 4.0},
                        {OptimizerKind::lion_8bit, OptimizerImplementation::foreach, 1.0 + 4.0 / 256.0},
                        {OptimizerKind::lamb, OptimizerImplementation::fused, 8.0},
                        {OptimizerKind::schedule_free_adamw, OptimizerImplementation::foreach, 8.0},
                        {OptimizerKind::schedule_free_adamw, OptimizerImplementation::for_loop, 8.0},
                        {OptimizerKind::adafactor, OptimizerImplementation::for_loop, 0.0}};
  ModelDescription model = small(ModelFamily::gpt2);
  model.hidden = 512;
  for (const Case& c : cases) {
    TrainingDescription training = small_training();
    training.optimizer = {c.kind, c.implementation};
    const OpTrace trace = training_run(model, training, AttentionChoice::flash);
    std::map<Category, std::int64_t> bytes;
    std::set<std::uint32_t> live;
    for (const Record& record : trace.records) {
      if (record.kind == Record::Kind::allocate) live.insert(record.index);
      if (record.kind == Record::Kind::free) live.erase(record.index);
    }
    for (const std::uint32_t storage : live) bytes[trace.storages[storage].category] += trace.storages[storage].bytes;
    const auto parameters = static_cast<double>(trace.parameters);
    EXPECT_EQ(bytes[Category::weights], 4 * trace.parameters);
    EXPECT_EQ(bytes[Category::inputs], 2 * 2 * 32 * 8);
    EXPECT_NEAR(static_cast<double>(bytes[Category::optimizer_state]) / parameters, c.states, 0.05) << c.states;
    EXPECT_EQ(bytes[Category::activations] + bytes[Category::temporaries] + bytes[Category::gradients], 0);
  }
}

/// Times an operation's name occurs in the last step.
int count(const OpTrace& trace, std::string_view name, Phase phase) {
  int result = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const Call& call = trace.calls[trace.records[i].index];
    result += call.phase == phase && name_of(trace.ops[call.op]) == name;
  }
  return result;
}

TEST(TrainingRun, A_checkpointed_block_is_run_again_up_to_the_last_tensor_that_is_saved) {
  const ModelDescription model = small(ModelFamily::gpt2);
  TrainingDescription training = small_training();
  training.activation_checkpointing = ActivationCheckpointing::block;
  const OpTrace trace = training_run(model, training, AttentionChoice::flash);
  EXPECT_EQ(count(trace, "addmm", Phase::forward), 4 * 2);
  EXPECT_EQ(count(trace, "addmm", Phase::backward), 3 * 2) << "the last projection is not needed again";
  EXPECT_EQ(count(trace, "gelu", Phase::backward), 2);
}

TEST(TrainingRun, Checkpointing_holds_one_tensor_a_block_between_forward_and_backward) {
  const ModelDescription model = [] {
    ModelDescription deep = small(ModelFamily::gpt2);
    deep.layers = 12;
    return deep;
  }();
  TrainingDescription training = small_training();
  training.micro_batch = 64;
  const auto peak = [&] {
    const OpTrace trace = training_run(model, training, AttentionChoice::flash);
    std::int64_t live = 0, most = 0;
    for (const Record& record : trace.records) {
      if (record.kind == Record::Kind::allocate) live += trace.storages[record.index].bytes;
      if (record.kind == Record::Kind::free) live -= trace.storages[record.index].bytes;
      most = std::max(most, live);
    }
    return most;
  };
  const std::int64_t kept = peak();
  training.activation_checkpointing = ActivationCheckpointing::block;
  EXPECT_LT(peak(), kept / 2);
}

TEST(TrainingRun, A_scaler_waits_for_the_gpu_unless_the_optimizer_reads_the_overflow_flag_itself) {
  TrainingDescription training = small_training();
  training.precision = Precision::amp_fp16;
  const auto waits = [&] {
    const OpTrace trace = training_run(small(ModelFamily::gpt2), training, AttentionChoice::flash);
    int result = 0;
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
      result += trace.records[i].kind == Record::Kind::wait_for_gpu;
    return result;
  };
  EXPECT_EQ(waits(), 1);
  training.optimizer.implementation = OptimizerImplementation::fused;
  EXPECT_EQ(waits(), 0);
}

TEST(TrainingRun, Micro_batches_repeat_forward_and_backward_and_not_the_optimizer) {
  TrainingDescription training = small_training();
  const ModelDescription model = small(ModelFamily::bert);
  const OpTrace once = training_run(model, training, AttentionChoice::eager);
  training.gradient_accumulation = 3;
  const OpTrace thrice = training_run(model, training, AttentionChoice::eager);
  EXPECT_EQ(count(thrice, "addmm", Phase::forward), 3 * count(once, "addmm", Phase::forward));
  EXPECT_EQ(count(thrice, "foreach_lerp", Phase::optimizer), count(once, "foreach_lerp", Phase::optimizer));
  EXPECT_DOUBLE_EQ(thrice.model_flops, 3.0 * once.model_flops);
}

TEST(TrainingRun, Products_of_a_step_are_the_flops_of_the_model) {
  // A decoder whose attention is made of products: forward and twice that backward, nothing else.
  const ModelDescription model = small(ModelFamily::gpt2);
  const OpTrace trace = training_run(model, small_training(), AttentionChoice::eager);
  double flops = 0.0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const auto* op = std::get_if<Matmul>(&trace.ops[trace.calls[trace.records[i].index].op]);
    if (op != nullptr)
      flops += 2.0 * static_cast<double>(op->batch) * static_cast<double>(op->m) * static_cast<double>(op->n) *
               static_cast<double>(op->k);
  }
  EXPECT_DOUBLE_EQ(flops, trace.model_flops);
}

TEST(TrainingRun, Blocks_are_told_apart) {
  const OpTrace trace = training_run(small(ModelFamily::llama), small_training(), AttentionChoice::eager);
  std::set<std::int16_t> forward, backward;
  for (const Call& call : trace.calls) (call.phase == Phase::backward ? backward : forward).insert(call.layer);
  EXPECT_EQ(forward, (std::set<std::int16_t>{-1, 0, 1}));
  EXPECT_EQ(backward, (std::set<std::int16_t>{-1, 0, 1}));
}

TEST(TrainingRun, Pure_bf16_keeps_weights_gradients_and_states_in_two_bytes) {
  TrainingDescription training = small_training();
  training.precision = Precision::bf16;
  const OpTrace trace = training_run(small(ModelFamily::gpt2), training, AttentionChoice::flash);
  std::map<Category, std::int64_t> bytes;
  for (const Storage& storage : trace.storages) bytes[storage.category] += storage.bytes;
  EXPECT_EQ(bytes[Category::weights], 2 * trace.parameters);
  EXPECT_EQ(bytes[Category::optimizer_state], 4 * trace.parameters);
}

template <typename Run>
std::string message_of(Run run) {
  try {
    run();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TrainingRun, What_was_never_measured_is_noted_and_the_rest_is_not) {
  TrainingDescription training = small_training();
  EXPECT_TRUE(training_run(small(ModelFamily::gpt2), training, AttentionChoice::flash).notes.empty());
  training.optimizer.kind = OptimizerKind::adamw_kahan;
  EXPECT_EQ(training_run(small(ModelFamily::gpt2), training, AttentionChoice::math).notes.size(), 2u);
}

TEST(TrainingRun, Says_what_cannot_be_trained) {
  const ModelDescription model = small(ModelFamily::gpt2);
  TrainingDescription training = small_training();
  training.sequence_length = 32;
  EXPECT_NO_THROW(training_run(model, training, AttentionChoice::flash));
  training.sequence_length = 33;
  EXPECT_THAT(message_of([&] { training_run(model, training, AttentionChoice::flash); }),
              HasSubstr("33 is more than the 32 positions"));
  training = small_training();
  training.optimizer = {OptimizerKind::adafactor, OptimizerImplementation::fused};
  EXPECT_THAT(message_of([&] { training_run(model, training, AttentionChoice::flash); }),
              HasSubstr("adafactor has no fused"));
}

// What a replay asks of a trace whose micro-batches are not all written out: the calls of those that stand for more.
TEST(RepeatedCalls, are_those_of_the_records_that_run_again) {
  const ModelDescription model = testing_support::small_network(ModelFamily::gpt2, 1000);
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 32;
  t.gradient_accumulation = 64;
  const OpTrace trace = training_run(model, t, AttentionChoice::flash);
  ASSERT_FALSE(trace.repeats.empty());
  const RepeatedRange& repeat = trace.repeats.back();
  const RepeatedCalls calls = repeated_calls(trace);
  EXPECT_GT(calls.times, 1);
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const bool inside = i >= repeat.records.begin && i < repeat.records.end;
    EXPECT_EQ(calls.times_of(trace.records[i].index), inside ? repeat.times : 1) << i;
  }
}

}  // namespace
}  // namespace ridgeline
