// Small rules around networks and how they are trained: where groups of ranks stand, how a pipeline cuts, what
// predictions say of themselves, what a family does not do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/units/user_error.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/families/family.h"
#include "sim/workload/families/key_value_store.h"
#include "sim/workload/families/megatron_functions.h"
#include "sim/workload/inference_run.h"
#include "sim/workload/training_notes.h"
#include "tests/support/described_network.h"
#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::odd_composition;
using testing_support::odd_network;
using testing_support::odd_training;
using testing_support::OddStep;

// 2 tensor ranks, 3 of a sequence, 5 of data, 7 stages; 15 ranks that see other tokens.
TEST(WorkloadRules, GroupsOfRanksStandApartByWhatIsInsideThem) {
  ParallelDescription how;
  how.tensor = 2, how.context = 3, how.data = 5, how.pipeline = 7, how.expert = 4, how.replicate = 5;
  EXPECT_EQ(stride_of(how, GroupKind::tensor), 1);
  EXPECT_EQ(stride_of(how, GroupKind::model), 1);
  EXPECT_EQ(stride_of(how, GroupKind::data), 2);
  EXPECT_EQ(stride_of(how, GroupKind::shard), 2);
  EXPECT_EQ(stride_of(how, GroupKind::expert), 2);
  EXPECT_EQ(stride_of(how, GroupKind::context), 2);
  EXPECT_EQ(stride_of(how, GroupKind::replicate), 2 * 15 / 5);
  EXPECT_EQ(stride_of(how, GroupKind::expert_data), 2 * 4);
  EXPECT_EQ(stride_of(how, GroupKind::pipeline), 2 * 15);
  EXPECT_EQ(stride_of(how, GroupKind::embedding), 2 * 15 * 6);
}

/// What is said against a configuration of Transformers, behind the name of its file.
std::string against_configuration(const nlohmann::json& config) {
  try {
    (void)ridgeline::testing::described_network(config);
  } catch (const config::ConfigError& error) {
    const std::string said = error.what();
    return said.substr(std::min(said.size(), said.find(".json") == said.npos ? 0 : said.find(".json")));
  }
  return "";
}

// Numbers that follow from keys of a configuration stand where those keys stand.
TEST(WorkloadRules, MistakesInWhatAConfigurationBecomesAreShownWhereItSaysSo) {
  nlohmann::json config{{"architectures", {"RobertaForSequenceClassification"}},
                        {"hidden_size", 64},
                        {"id2label", nlohmann::json::object()},
                        {"max_position_embeddings", 40},
                        {"model_type", "roberta"},
                        {"num_attention_heads", 4},
                        {"num_hidden_layers", 2},
                        {"vocab_size", 100}};
  const std::string text = config.dump();
  EXPECT_EQ(against_configuration(config),
            fmt::format(".json:1:{}: labels: 0 is out of range, expected 1 to 16777216", text.find("{}") + 1));
  config["id2label"] = {{"0", "a"}};
  EXPECT_EQ(against_configuration(config), "");
}

std::string parts_of_rank(std::int64_t layers, std::int64_t ranks, std::int64_t rank, std::int64_t virtual_stages = 1,
                          PipelineSchedule schedule = PipelineSchedule::interleaved) {
  ModelDescription model = odd_network(ModelFamily::gpt2);
  model.layers = layers;
  ParallelDescription how;
  how.pipeline = ranks, how.pipeline_rank = rank, how.virtual_stages = virtual_stages, how.schedule = schedule;
  std::string text;
  for (const families::StagePart& part : families::parts_of(model, how))
    text += fmt::format("{}[{}{}-{}{}]", text.empty() ? "" : " ", part.embedding ? "embedding " : "", part.first,
                        part.last, part.head ? " head" : "");
  return text;
}

TEST(WorkloadRules, APipelineCutsBlocksEvenly) {
  EXPECT_EQ(parts_of_rank(7, 1, 0), "[embedding 0-7 head]");
  EXPECT_EQ(parts_of_rank(7, 3, 0), "[embedding 0-2]");
  EXPECT_EQ(parts_of_rank(7, 3, 1), "[2-5]");
  EXPECT_EQ(parts_of_rank(7, 3, 2), "[5-7 head]");
  EXPECT_EQ(parts_of_rank(7, 3, -1), "[embedding 0-2]") << "a question about all ranks is answered by the first";
  EXPECT_EQ(parts_of_rank(8, 2, 0, 2), "[embedding 0-2] [4-6]");
  EXPECT_EQ(parts_of_rank(8, 2, 1, 2), "[2-4] [6-8 head]");
  EXPECT_EQ(parts_of_rank(8, 2, 0, 2, PipelineSchedule::zbv), "[embedding 0-2] [6-8 head]");
  EXPECT_EQ(parts_of_rank(8, 2, 1, 2, PipelineSchedule::zbv), "[2-4] [4-6]");
}

TEST(WorkloadRules, StagesSendTheirPartOfASplitSequence) {
  TrainingDescription t;
  t.parallel.pipeline = t.parallel.tensor = 2;
  for (const bool plain : {false, true}) {
    ModelDescription llama = odd_network(ModelFamily::llama);
    llama.plain = plain;
    EXPECT_EQ(families::most_between_stages(llama, t), t.sequence_length * llama.hidden);
  }
  t.parallel.sequence_parallel = true;
  EXPECT_EQ(2 * families::most_between_stages(odd_network(ModelFamily::llama), t),
            t.sequence_length * odd_network(ModelFamily::llama).hidden);
}

TEST(WorkloadRules, WhatIsNotCutSaysWhy) {
  const ModelDescription gpt2 = odd_network(ModelFamily::gpt2), bert = odd_network(ModelFamily::bert);
  ModelDescription llama = odd_network(ModelFamily::llama);
  const std::string megatron = "a pipeline of Megatron-LM cuts networks of family gpt2 and llama";
  EXPECT_EQ(families::why_not_cut(gpt2, Framework::torch), "");
  EXPECT_EQ(families::why_not_cut(bert, Framework::torch), "");
  for (const auto& change : {+[](ModelDescription& m) { m.head = ModelHead::pretraining; },
                             +[](ModelDescription& m) { m.sequence_first = true; }}) {
    ModelDescription changed = bert;
    change(changed);
    EXPECT_THAT(families::why_not_cut(changed, Framework::torch), HasSubstr("not modelled in a pipeline"));
  }
  EXPECT_EQ(families::why_not_cut(llama, Framework::torch), "");
  llama.plain = true;
  EXPECT_EQ(families::why_not_cut(llama, Framework::torch), "");
  EXPECT_EQ(families::why_not_cut(gpt2, Framework::megatron), "");
  EXPECT_EQ(families::why_not_cut(llama, Framework::megatron), "");
  EXPECT_EQ(families::why_not_cut(bert, Framework::megatron), megatron);
}

TEST(WorkloadRules, WhatIsNotPackedSaysWhy) {
  EXPECT_EQ(families::why_not_packed(odd_network(ModelFamily::gpt2)), "");
  ModelDescription bert = odd_network(ModelFamily::bert);
  bert.sequence_first = true;
  EXPECT_THAT(families::why_not_packed(bert), HasSubstr("[tokens, sequences, hidden]"));
  EXPECT_EQ(families::why_not_packed(odd_composition()), "");
  for (const char* keys :
       {"encoder: {layers: 1}", "input: image, image_size: 6, patch: 2, causal: false", "attention_code: written-out",
        "sinks: true", "score_cap: 30", "copies_heads: true", "key_value_heads: 1, grouping: broadcast",
        "always_masked: true", "window: 3", "positions: alibi", "positions: relative",
        "key_value_rank: 4, rotary_head_dim: 2, value_head_dim: 3, positions: rotary",
        "causal: false, positions: disentangled, position_rows: 8, position_terms: [content-to-position]"})
    EXPECT_NE(families::why_not_packed(odd_composition(keys)), "") << keys;
  for (const char* keys : {"positions: rotary", "positions: learned", "key_value_heads: 1", "causal: false"})
    EXPECT_EQ(families::why_not_packed(odd_composition(keys)), "") << keys;
}

std::vector<std::string> notes_of(const std::function<void(OddStep&)>& change) {
  OddStep step(ModelFamily::gpt2);
  change(step);
  OpTrace trace;
  add_notes(trace, step.model, step.training, step.attention, 0);
  return trace.notes;
}

TEST(WorkloadRules, PredictionsSayWhatWasNotMeasured) {
  EXPECT_THAT(notes_of([](OddStep&) {}), IsEmpty());
  const auto one = [](const char* words) { return ElementsAre(HasSubstr(words)); };
  EXPECT_THAT(notes_of([](OddStep& s) { s.training.optimizer.kind = OptimizerKind::adamw_8bit; }), IsEmpty());
  EXPECT_THAT(notes_of([](OddStep& s) { s.training.optimizer.kind = OptimizerKind::adamw_kahan; }),
              one("adamw-kahan:"));
  EXPECT_THAT(notes_of([](OddStep& s) { s.training.optimizer.kind = OptimizerKind::adafactor; }), one("adafactor:"));
  EXPECT_THAT(notes_of([](OddStep& s) { s.training.activation_offload = ActivationOffload::pinned; }),
              one("beside one NVIDIA H100"));
  EXPECT_THAT(notes_of([](OddStep& s) { s.training.activation_offload = ActivationOffload::pageable; }),
              one("H100, where memory that is not pinned moved"));
  EXPECT_THAT(notes_of([](OddStep& s) { s.training.packed_lengths = {5}; }),
              one("packed_lengths: one sequence in a row"));
  EXPECT_THAT(notes_of([](OddStep& s) {
                s.training.packed_lengths = {2, 3};
              }),
              one("packed_lengths: 2 sequences in a row"));
  EXPECT_THAT(notes_of([](OddStep& s) { s.attention = AttentionChoice::math; }), one("math attention:"));
  EXPECT_THAT(notes_of([](OddStep& s) { s.model.sparse_weights = true; }), one("2:4 sparse weights: a what-if"));
}

TEST(WorkloadRules, PredictionsForSeveralGpusSayMore) {
  const auto of = [](const std::function<void(ParallelDescription&)>& change) {
    return notes_of([&](OddStep& s) { change(s.training.parallel); });
  };
  const auto one = [](const char* words) { return ElementsAre(HasSubstr(words)); };
  EXPECT_THAT(of([](ParallelDescription& p) { p.framework = Framework::megatron; }), one("megatron:"));
  EXPECT_THAT(of([](ParallelDescription& p) { p.framework = Framework::deepspeed; }), one("deepspeed:"));
  EXPECT_THAT(of([](ParallelDescription& p) { p.tensor = 2; }), one("tensor parallel ranks: measured"));
  EXPECT_THAT(notes_of([](OddStep& s) { s.model.family = ModelFamily::llama, s.training.parallel.tensor = 2; }),
              IsEmpty());
  EXPECT_THAT(of([](ParallelDescription& p) { p.context = 2; }), one("context parallel ranks:"));
  EXPECT_THAT(of([](ParallelDescription& p) { p.data = 2, p.strategy = DataStrategy::fsdp1; }), one("fsdp1:"));
  EXPECT_THAT(of([](ParallelDescription& p) { p.strategy = DataStrategy::fsdp1; }), IsEmpty());
  EXPECT_THAT(of([](ParallelDescription& p) { p.data = 4, p.reshard_after_forward = {2}; }),
              one("reshard_after_forward over some ranks"));
  EXPECT_THAT(of([](ParallelDescription& p) { p.data = 4, p.reshard_after_forward = {1}; }), IsEmpty());
  EXPECT_THAT(of([](ParallelDescription& p) { p.pipeline = 2; }), one("a pipeline ties nothing"));
  EXPECT_THAT(of([](ParallelDescription& p) { p.pipeline = 2, p.framework = Framework::megatron; }), one("megatron:"));
  EXPECT_THAT(notes_of([](OddStep& s) { s.training.parallel.pipeline = 2, s.model.tie_embeddings = false; }),
              IsEmpty());
  EXPECT_THAT(of([](ParallelDescription& p) { p.split = 2; }), one("split: the script's own copies"));
  const auto copies = [](ParallelDescription& p) { p.data = 2, p.strategy = DataStrategy::dataparallel; };
  EXPECT_THAT(of(copies), ElementsAre(::testing::EndsWith("was measured with CUDA 13 only")));
  EXPECT_THAT(notes_of([&](OddStep& s) { copies(s.training.parallel), s.training.precision = Precision::amp_bf16; }),
              one("its threads enter autocast with fp16"));
}

TEST(WorkloadRules, AdaptersNeedLayersThatTheyAreFor) {
  OddStep step(ModelFamily::gpt2);
  step.training.lora = LoraDescription{};
  step.training.lora->targets = 1U << static_cast<unsigned>(LinearRole::gate);
  try {
    (void)step.trace();
    ADD_FAILURE() << "a trace was made";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("training.lora.targets: the network has no such layer; there are "));
    for (const char* name : {"qkv", "output", "up", "down"}) EXPECT_THAT(error.what(), HasSubstr(name));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("gate")));
  }
}

OddStep generating(ModelFamily family, const InferenceDescription& how) {
  OddStep step(family);
  step.training.micro_batch = how.sequences * how.beams;
  step.training.sequence_length = 4;
  step.training.inference = how;
  return step;
}
std::string why_no_text(const OddStep& step) {
  try {
    (void)step.trace();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// 15 tokens of 3 sequences: blocks, scores of 5 for each, and of the head's only those of two of each five.
TEST(WorkloadRules, TextTakesTheFlopsOfItsTokensForward) {
  const OpTrace text = generating(ModelFamily::gpt2, {3, 2, 1, KeyValueCache::dynamic}).trace();
  EXPECT_DOUBLE_EQ(text.model_flops, 2.0 * 15 * 1056 + 4.0 * 15 * 5 * 12 + 2.0 * (15 - 3 * 3) * 12 * 17);
  EXPECT_TRUE(text.without_gradients);
  EXPECT_EQ(text.parameters, 1496);
  EXPECT_THAT(text.notes, IsEmpty());
  const OpTrace evaluation = generating(ModelFamily::gpt2, {3, 0, 1, KeyValueCache::dynamic}).trace();
  EXPECT_DOUBLE_EQ(evaluation.model_flops, 2.0 * 12 * 1056 + 4.0 * 12 * 4 * 12 + 2.0 * 12 * 12 * 17);
}

TEST(WorkloadRules, TextSaysHowItWasMade) {
  EXPECT_THAT(generating(ModelFamily::gpt2, {3, 2, 1, KeyValueCache::fixed}).trace().notes,
              ElementsAre(HasSubstr("static cache: run eagerly")));
  EXPECT_THAT(generating(ModelFamily::gpt2, {3, 0, 1, KeyValueCache::fixed}).trace().notes, IsEmpty());
  EXPECT_THAT(generating(ModelFamily::gpt2, {1, 2, 2, KeyValueCache::dynamic}).trace().notes, IsEmpty());
  EXPECT_EQ(why_no_text(generating(ModelFamily::gpt2, {3, 3, 1, KeyValueCache::dynamic})), "");
  EXPECT_THAT(why_no_text(generating(ModelFamily::gpt2, {3, 4, 1, KeyValueCache::dynamic})),
              HasSubstr("4 tokens of prompt and 4 new ones are more than the 7 positions"));
  EXPECT_THAT(why_no_text(generating(ModelFamily::bert, {3, 2, 1, KeyValueCache::dynamic})),
              HasSubstr("the network generates no text"));
  EXPECT_EQ(why_no_text(generating(ModelFamily::bert, {3, 0, 1, KeyValueCache::dynamic}).but([](OddStep& s) {
              s.model.head = ModelHead::masked_lm;
            })),
            "");
  EXPECT_THAT(why_no_text(generating(ModelFamily::llama, {3, 2, 1, KeyValueCache::dynamic}).but([](OddStep& s) {
                s.model.plain = true;
              })),
              HasSubstr("generate() is Transformers'"));
  EXPECT_THAT(why_no_text(generating(ModelFamily::llama, {3, 2, 1, KeyValueCache::dynamic}).but([](OddStep& s) {
                s.model.window = 5;
              })),
              HasSubstr("longer than the window of 5 tokens"));
  EXPECT_THAT(why_no_text(generating(ModelFamily::gpt2, {3, 2, 1, KeyValueCache::dynamic}).but([](OddStep& s) {
                s.model.key_value_heads = 1;
              })),
              HasSubstr("family gpt2 has keys for each head"));
}

// A product [tokens 3, sequences 5, 2 groups of (3 queries, key, value) of 4]: views of one tensor.
TEST(WorkloadRules, QueriesKeysAndValuesOfAGroupStandTogether) {
  OpTrace trace;
  eager::Eager eager(trace);
  {
    eager.recorder.phase = Phase::forward;
    const eager::Tensor mixed = eager.empty({3, 5, 2 * (3 + 2) * 4}, DType::bf16);
    const auto [q, k, v] = families::megatron::split_heads(eager, mixed, 6, 2, 4);
    EXPECT_EQ(q.sizes, (eager::Dims{3, 5, 6, 4})) << "copied together";
    EXPECT_TRUE(q.contiguous());
    for (const eager::Tensor& one : {k, v}) {
      EXPECT_EQ(one.sizes, (eager::Dims{3, 5, 2, 4}));
      EXPECT_EQ(one.strides, (eager::Dims{5 * 40, 40, 20, 1}));
      EXPECT_EQ(one.storage.id(), mixed.storage.id());
    }
    const auto own = families::megatron::split_heads(eager, eager.empty({3, 5, 6 * 3 * 4}, DType::bf16), 6, 6, 4);
    for (const eager::Tensor& one : own) {
      EXPECT_EQ(one.sizes, (eager::Dims{3, 5, 6, 4}));
      EXPECT_EQ(one.strides, (eager::Dims{5 * 72, 72, 12, 1}));
    }
  }
  eager.recorder.closed = true;
}

}  // namespace
}  // namespace ridgeline
