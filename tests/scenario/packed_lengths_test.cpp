// Sequences packed into the rows of a batch: which attention runs over them, what stays as it was, and what is refused,
// with its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/answer/memory_prediction.h"
#include "sim/answer/step_run.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/op_trace/write_op_trace.h"
#include "sim/units/user_error.h"
#include "sim/workload/kernel_case.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Six lines; what is given stands on the seventh.
ScenarioSource text_with(const std::string& training, const std::string& model = "gpt2") {
  return {.file = {},
          .text = "hardware: nvidia-h100-sxm5-80gb\nmodel: " + model +
                  "\ntraining:\n  micro_batch: 2\n  sequence_length: 1024\n  gradient_accumulation: 1\n  " + training +
                  "\n",
          .text_name = "packed.yaml",
          .overrides = {}};
}
std::string refusal_of(const ScenarioSource& source) {
  try {
    static_cast<void>(load_scenario(source));
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}
std::string refusal_of_case(const char* params) {
  try {
    static_cast<void>(
        kernel_case_from({{"op", "flash_attention"}, {"dtype", "bf16"}, {"params", nlohmann::json::parse(params)}}));
  } catch (const KernelCaseError& e) {
    return e.what();
  }
  return "";
}
std::vector<Attention> attention_of(const OpTrace& trace) {
  std::vector<Attention> found;
  for (const Op& op : trace.ops)
    if (const auto* one = std::get_if<Attention>(&op)) found.push_back(*one);
  return found;
}
OpTrace trace_of_packed(const std::vector<std::int64_t>& lengths) {
  const Scenario s = load_scenario(text_with("precision: amp-bf16"));
  TrainingDescription training = s.training;
  training.packed_lengths = lengths;
  return training_run(s.model, training, AttentionChoice::flash, 1);
}

TEST(PackedLengths, one_number_leaves_the_rest_to_the_last_and_a_list_fills_the_row) {
  const auto lengths = [](const std::string& given) {
    return load_scenario(text_with("precision: bf16\n  packed_lengths: " + given)).training.packed_lengths;
  };
  EXPECT_THAT(lengths("400"), ElementsAre(400, 400, 224));
  EXPECT_THAT(lengths("512"), ElementsAre(512, 512));
  EXPECT_THAT(lengths("[1000, 20, 4]"), ElementsAre(1000, 20, 4));
  EXPECT_TRUE(lengths("none").empty());
}

TEST(PackedLengths, attention_is_told_of_them_and_nothing_else_changes) {
  const OpTrace rows = trace_of_packed({}), packed = trace_of_packed({1000, 24});
  const std::vector<Attention> before = attention_of(rows), after = attention_of(packed);
  ASSERT_EQ(after.size(), 2u);  // forward and backward, once for all layers
  ASSERT_EQ(before.size(), after.size());
  for (const Attention& op : after) {
    EXPECT_EQ(op.backend, AttentionBackend::flash);
    ASSERT_TRUE(op.lengths.any());
    EXPECT_THAT(*op.lengths.list, ElementsAre(1000, 24));
    EXPECT_EQ(op.seq_q, 1024);
  }
  EXPECT_EQ(rows.ops.size(), packed.ops.size());
  EXPECT_EQ(rows.records.size(), packed.records.size());
  EXPECT_EQ(rows.storages.size(), packed.storages.size());
  // Scores of sequences with each other are no part of what the model asks for: 12 a pair, layer and number of a row.
  const double saved = 1024.0 * 1024.0 - 1000.0 * 1000.0 - 24.0 * 24.0;
  EXPECT_NEAR(rows.model_flops - packed.model_flops, 12.0 * 2.0 * saved * 768.0 * 12.0, 1.0);
}

TEST(PackedLengths, an_op_trace_keeps_them) {
  const OpTrace packed = trace_of_packed({1000, 24});
  const trace::Recording read = trace::parse_op_trace(trace::op_trace_lines({}, packed), "lines");
  for (const Attention& op : attention_of(read.trace)) {
    ASSERT_TRUE(op.lengths.any());
    EXPECT_THAT(*op.lengths.list, ElementsAre(1000, 24));
  }
  EXPECT_EQ(hash_of(Op{attention_of(read.trace)[0]}), hash_of(Op{attention_of(packed)[0]}));
  EXPECT_NE(hash_of(Op{attention_of(packed)[0]}), hash_of(Op{attention_of(trace_of_packed({24, 1000}))[0]}));
}

TEST(PackedLengths, a_step_over_shorter_sequences_is_shorter_and_says_what_was_measured) {
  const auto predicted = [](const char* lengths) {
    ScenarioSource source = text_with(std::string("precision: bf16\n  packed_lengths: ") + lengths);
    source.overrides = {{"training.micro_batch", "16", ""}};  // so many that the host is not waited for
    return predict(load_scenario(source), "analytic");
  };
  const Prediction one = predicted("1024"), eight = predicted("128");
  EXPECT_LT(eight.step.time.value(), one.step.time.value());
  EXPECT_EQ(eight.memory.peak_reserved, one.memory.peak_reserved);
  EXPECT_THAT(eight.notes, Contains(HasSubstr("packed_lengths: 8 sequences in a row")));
  EXPECT_FALSE(eight.step.validated);
}

TEST(PackedLengths, says_what_is_wrong_and_where) {
  EXPECT_THAT(
      refusal_of(text_with("packed_lengths: [1000, 25]\n  precision: bf16")),
      HasSubstr("packed.yaml:7:19: training.packed_lengths: the lengths add up to 1025 tokens: expected the 1024 "
                "of training.sequence_length"));
  EXPECT_THAT(refusal_of(text_with("packed_lengths: 2000\n  precision: bf16")),
              HasSubstr("packed.yaml:7:19: training.packed_lengths: 2000 tokens do not fit into the 1024"));
  EXPECT_THAT(refusal_of(text_with("packed_lengths: [1024, 0]\n  precision: bf16")),
              HasSubstr("packed.yaml:7:26: training.packed_lengths.1: 0 is out of range"));
  EXPECT_THAT(
      refusal_of(text_with("packed_lengths: 512\n  precision: tf32")),
      HasSubstr("packed.yaml:8:14: training.precision: training.packed_lengths needs FlashAttention, which takes "
                "16 bits"));
  EXPECT_THAT(
      refusal_of(text_with("packed_lengths: 512\n  precision: bf16\n  attention: eager")),
      HasSubstr("packed.yaml:9:14: training.attention: training.packed_lengths needs FlashAttention by cumulative "
                "lengths: expected flash or sdpa"));
  EXPECT_THAT(refusal_of(text_with("packed_lengths: 512\n  precision: bf16",
                                   "{family: composed, layers: 2, heads: 2, hidden: 64, vocabulary: 100, positions: "
                                   "alibi}")),
              HasSubstr("packed.yaml:7:19: training.packed_lengths: needs attention that FlashAttention computes"));
  EXPECT_THAT(
      refusal_of(text_with("packed_lengths: 512\n  precision: bf16\n  parallel: {context: 2}\ncluster: hgx-h100")),
      HasSubstr("packed.yaml:7:19: training.packed_lengths: over ranks that share sequences"));
}

// While a mask cannot be looked at, PyTorch takes matrix products where there is dropout too: lengths need no mask.
TEST(PackedLengths, a_compiled_network_with_dropout_keeps_its_fused_attention) {
  ScenarioSource source = text_with("precision: bf16\n  compile: true", "bert-base");
  source.overrides = {{"training.sequence_length", "512", ""}};
  EXPECT_TRUE(attention_of(trace_of(load_scenario(source), "analytic")).empty());
  source.overrides.push_back({"training.packed_lengths", "[400, 112]", ""});
  EXPECT_EQ(attention_of(trace_of(load_scenario(source), "analytic")).size(), 2u);
}

// Positions restart: a row may be longer than the table where no sequence is.
TEST(PackedLengths, the_position_table_is_as_long_as_the_longest_sequence) {
  ScenarioSource source = text_with("precision: bf16\n  packed_lengths: 1024");
  source.overrides = {{"training.sequence_length", "4096", ""}};
  EXPECT_EQ(refusal_of(source), "");
  source.overrides.push_back({"training.packed_lengths", "2048", ""});
  EXPECT_THAT(refusal_of(source), HasSubstr("2048 tokens, but gpt2 has positions for 1024 only"));
}

TEST(PackedLengths, kernel_cases_take_a_list_in_the_place_of_a_length) {
  const KernelCase given = kernel_case_from(nlohmann::json::parse(
      R"({"op":"flash_attention","dtype":"bf16","params":{"batch":1,"heads":32,"kv_heads":8,"lengths":[96,32],"head_dim":64}})"));
  const auto& op = std::get<Attention>(given.op);
  EXPECT_EQ(op.seq_q, 128);
  EXPECT_EQ(op.kv_heads, 8);
  EXPECT_FALSE(op.head_major);
  EXPECT_DOUBLE_EQ(scores_of_row(op), 96.0 * 96.0 + 32.0 * 32.0);
  EXPECT_THAT(refusal_of_case(R"({"batch":1,"heads":4,"head_dim":64,"lengths":[96,32],"seq":64})"),
              HasSubstr("lengths add up to 128, seq is 64"));
  EXPECT_THAT(refusal_of_case(R"({"batch":1,"heads":4,"head_dim":64,"lengths":[96,0]})"),
              HasSubstr("lengths must be a list of 1 to 65536 whole numbers"));
  EXPECT_THAT(refusal_of_case(R"({"batch":1,"heads":4,"head_dim":64,"lengths":[96],"head_major":true})"),
              HasSubstr("head_major must be false"));
  EXPECT_THAT(refusal_of_case(R"({"batch":1,"heads":4,"kv_heads":3,"head_dim":64,"seq":96})"),
              HasSubstr("kv_heads must divide heads"));
}

}  // namespace
}  // namespace ridgeline
