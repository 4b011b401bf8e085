// Adapters beside frozen layers: as many numbers are trained as PEFT prints, nothing frozen has gradients or states,
// and four bits are four bits and their scales.
#include "sim/workload/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

constexpr std::uint8_t kAll = 0xff;

TrainingDescription training_with(const LoraDescription& lora, Precision precision = Precision::amp_bf16) {
  TrainingDescription training;
  training.micro_batch = 1;
  training.sequence_length = 64;
  training.precision = precision;
  training.lora = lora;
  return training;
}
OpTrace run(const ModelDescription& model, const TrainingDescription& training) {
  return training_run(model, training, AttentionChoice::efficient, 2, 4);
}
std::int64_t bytes_of(const OpTrace& trace, Category category) {
  std::int64_t sum = 0;
  for (const Storage& storage : trace.storages) sum += storage.category == category ? storage.bytes : 0;
  return sum;
}
std::int64_t trained(const OpTrace& trace) {
  for (const std::string& note : trace.notes)
    if (note.starts_with("lora: ")) return std::stoll(note.substr(6));
  return -1;
}

struct Printed {
  const char* model;
  LoraDescription lora;
  std::int64_t trained;  ///< as print_trainable_parameters of PEFT says it
};
class Counts : public ::testing::TestWithParam<Printed> {};

TEST_P(Counts, AreThoseThatPeftPrints) {
  EXPECT_EQ(trained(run(load_model(GetParam().model), training_with(GetParam().lora))), GetParam().trained);
}
INSTANTIATE_TEST_SUITE_P(Published, Counts,
                         ::testing::Values(Printed{"llama-7b", {.rank = 8}, 4'194'304},
                                           Printed{"llama-7b", {.rank = 8, .targets = kAll}, 19'988'480},
                                           Printed{"llama-7b", {.rank = 64, .targets = kAll}, 159'907'840},
                                           Printed{"gpt2", {.rank = 8}, 294'912}));

TEST(Lora, FrozenParametersHaveNoGradientsAndNoStates) {
  for (const char* name : {"gpt2", "bert-base"}) {
    const ModelDescription model = load_model(name);
    const OpTrace trace = run(model, training_with({.rank = 4}, Precision::fp32));
    const std::int64_t count = trained(trace);
    ASSERT_GT(count, 0);
    EXPECT_EQ(bytes_of(trace, Category::gradients), 2 * 4 * count) << name;  // of two steps
    const std::int64_t states = bytes_of(trace, Category::optimizer_state);
    EXPECT_GE(states, 2 * 4 * count) << name;
    EXPECT_LE(states, 2 * 4 * count + 4096) << name;  // counts of steps
    const OpTrace whole = run(model, [] {
      TrainingDescription t;
      t.micro_batch = 1;
      t.sequence_length = 64;
      return t;
    }());
    EXPECT_EQ(trace.parameters - whole.parameters, count - (std::string(name) == "bert-base" ? 768 * 2 + 2 : 0))
        << name;
    EXPECT_EQ(bytes_of(trace, Category::weights) - bytes_of(whole, Category::weights),
              4 * (trace.parameters - whole.parameters))
        << name;
  }
}

// The gradient of a weight sums over the tokens: k of its product is their number.
TEST(Lora, NoProductMakesTheGradientOfAFrozenWeight) {
  const ModelDescription model = load_model("gpt2");
  const auto wide_sums = [](const OpTrace& trace) {
    int count = 0;
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
      if (trace.records[i].kind != Record::Kind::op) continue;
      const auto* product = std::get_if<Matmul>(&trace.ops[trace.calls[trace.records[i].index].op]);
      count += product != nullptr && product->batch == 1 && product->k == 64 && product->m > 16 && product->n > 16;
    }
    return count;
  };
  TrainingDescription training = training_with({.rank = 4}, Precision::fp32);
  EXPECT_EQ(wide_sums(run(model, training)), 0);
  training.lora.reset();
  EXPECT_GT(wide_sums(run(model, training)), 40);
}

TEST(Lora, FourBitsAreFourBitsAndTheirScales) {
  ModelDescription model = load_model("llama-7b");
  model.layers = 2;
  const std::int64_t d = 4096, inner = 11008, frozen = 2 * (4 * d * d + 3 * d * inner);
  LoraDescription lora{.rank = 8};
  const auto weights = [&](FrozenWeights how) {
    lora.frozen = how;
    return bytes_of(run(model, training_with(lora)), Category::weights);
  };
  const std::int64_t whole = weights(FrozenWeights::as_stored);
  EXPECT_EQ(whole - weights(FrozenWeights::nf4), 4 * frozen - frozen / 2 - 4 * (frozen / 64));
  EXPECT_EQ(whole - weights(FrozenWeights::nf4_double),
            4 * frozen - frozen / 2 - frozen / 64 - 4 * (frozen / 64 / 256));
  // LLM.int8: a byte and a scale a row; GPTQ and AWQ: groups of 128 with fp16 scales and zeros of four bits.
  const std::int64_t rows = 2 * (4 * d + 2 * inner + d), columns = 2 * (6 * d + inner);
  EXPECT_EQ(whole - weights(FrozenWeights::int8), 3 * frozen - 4 * rows);
  EXPECT_EQ(whole - weights(FrozenWeights::awq), 4 * frozen - frozen / 2 - frozen / 128 * 5 / 2);
  EXPECT_EQ(weights(FrozenWeights::gptq) - weights(FrozenWeights::awq), 4 * columns);
  EXPECT_EQ(whole - weights(FrozenWeights::hqq), 4 * frozen - frozen / 2 - 8 * (frozen / 64)) << "fp32 scales, zeros";
}

TEST(Lora, EveryFamilyTrainsInEveryPrecisionWithCheckpoints) {
  for (const char* name : {"gpt2", "bert-base", "llama-7b"})
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::amp_fp16, Precision::amp_bf16, Precision::bf16})
      for (const FrozenWeights frozen : {FrozenWeights::as_stored, FrozenWeights::nf4_double, FrozenWeights::int8,
                                         FrozenWeights::gptq, FrozenWeights::hqq})
        for (const auto checkpointing : {ActivationCheckpointing::none, ActivationCheckpointing::block}) {
          ModelDescription model = load_model(name);
          model.layers = 2;
          TrainingDescription training =
              training_with({.rank = 4, .dropout = 0.1, .targets = kAll, .frozen = frozen}, precision);
          training.activation_checkpointing = checkpointing;
          training.gradient_clipping = 1.0;
          const OpTrace trace = run(model, training);
          EXPECT_EQ(trace.steps.size(), 2u);
          // All that a step makes, it frees.
          std::int64_t alive = 0;
          for (std::uint32_t i = trace.steps[1].begin; i < trace.steps[1].end; ++i)
            alive +=
                int{trace.records[i].kind == Record::Kind::allocate} - int{trace.records[i].kind == Record::Kind::free};
          EXPECT_EQ(alive, 0) << name;
        }
}

std::string mistake(const std::string& lora, const std::string& more = "") {
  ScenarioSource source;
  source.text = "hardware: nvidia-h200-sxm-141gb\nmodel: gpt2\ntraining:\n  micro_batch: 1\n  sequence_length: 64\n" +
                more + "  lora: " + lora + "\n";
  source.text_name = "s.yaml";
  try {
    (void)load_scenario(source);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Lora, LayersThatANetworkLacksAreRefused) {
  const auto refusal = [](const char* model, LinearRole role) -> std::string {
    LoraDescription lora{.rank = 4};
    lora.targets = static_cast<std::uint8_t>(1U << static_cast<unsigned>(role));
    ModelDescription small = load_model(model);
    small.layers = 1;
    try {
      TrainingDescription training = training_with(lora);
      training.gradient_clipping = 1.0;
      (void)run(small, training);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  for (const auto& [name, role] : kLinearRoles)
    for (const char* model : {"gpt2", "bert-base", "llama-7b"}) {
      const bool fused = std::string(model) == "gpt2", gated = std::string(model) == "llama-7b";
      const bool split = role == LinearRole::query || role == LinearRole::key || role == LinearRole::value;
      const bool lacks =
          (fused && split) || (!fused && role == LinearRole::qkv) || (!gated && role == LinearRole::gate);
      if (lacks)
        EXPECT_THAT(refusal(model, role), HasSubstr("the network has no such layer; there are")) << name << model;
      else EXPECT_EQ(refusal(model, role), "") << name << model;
    }
}

// Keys of the first block need no gradient there: what only it would read is not kept.
TEST(Lora, BatchedProductsOfCompiledNetworksReadWhatIsKept) {
  LoraDescription lora{.rank = 4};
  lora.targets = static_cast<std::uint8_t>(1U << static_cast<unsigned>(LinearRole::query));
  ModelDescription small = load_model("bert-base");
  small.layers = 2;
  TrainingDescription training = training_with(lora);
  training.precision = Precision::amp_bf16;
  training.mask_given = true;
  EXPECT_GT(training_run(small, training, AttentionChoice::eager, 1).ops.size(), 0u);
}

TEST(Lora, MistakesAreTold) {
  EXPECT_EQ(mistake("{rank: 4, targets: [qkv, up]}"), "");
  EXPECT_EQ(mistake("none"), "");
  EXPECT_THAT(mistake("{rank: 0}"), HasSubstr("training.lora.rank"));
  EXPECT_THAT(mistake("{targets: [q]}"), HasSubstr("query"));
  EXPECT_THAT(mistake("{targets: []}"), HasSubstr("names no layer"));
  EXPECT_THAT(mistake("{frozen_weights: int4}"), HasSubstr("nf4"));
  EXPECT_THAT(mistake("{alpha: 16}"), HasSubstr("alpha"));
  EXPECT_THAT(mistake("{}", "  precision: apex-o2\n"), HasSubstr("apex-o2"));
  EXPECT_EQ(mistake("{frozen_weights: nf4}", "  compile: true\n"), "");
}

// bitsandbytes: scales come out of their 8 bits, their mean is added again, and then the weights come out of their 4.
TEST(Lora, DoublyQuantizedScalesAreExpandedBeforeTheirWeights) {
  LoraDescription lora;
  lora.targets = kAll;
  lora.frozen = FrozenWeights::nf4_double;
  const OpTrace trace = run(load_model("gpt2"), training_with(lora));
  std::int64_t weights = 0;
  for (std::size_t i = 2; i < trace.calls.size(); ++i) {
    const auto name = [&](std::size_t call) { return name_of(trace.ops[trace.calls[call].op]); };
    if (name(i).find("dequantize_4bit") == std::string::npos) continue;
    ++weights;
    EXPECT_EQ(name(i - 1), "add_");
    EXPECT_NE(name(i - 2).find("dequantize_blockwise"), std::string::npos);
    const auto first = [&](std::size_t call) { return trace.operands[trace.calls[call].operands_begin].storage; };
    const Operand& scales = trace.operands[trace.calls[i - 2].operands_begin + 1];
    EXPECT_EQ(first(i - 1), scales.storage);
  }
  EXPECT_GT(weights, 12);
}

}  // namespace
}  // namespace ridgeline
