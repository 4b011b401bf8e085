// Networks that mix tokens by scans, delta rules and short convolutions, as configurations of the hub name them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/units/user_error.h"
#include "sim/workload/networks/program_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/described_network.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ridgeline::testing::described_network;

json mamba() {  // state-spaces/mamba-130m-hf
  return {{"architectures", {"MambaForCausalLM"}},
          {"model_type", "mamba"},
          {"hidden_size", 768},
          {"intermediate_size", 1536},
          {"num_hidden_layers", 24},
          {"state_size", 16},
          {"time_step_rank", 48},
          {"vocab_size", 50280},
          {"conv_kernel", 4},
          {"use_bias", false},
          {"use_conv_bias", true},
          {"residual_in_fp32", true}};
}
json mamba2() {  // mistralai/Mamba-Codestral-7B-v0.1
  return {{"architectures", {"Mamba2ForCausalLM"}},
          {"model_type", "mamba2"},
          {"hidden_size", 4096},
          {"num_hidden_layers", 64},
          {"vocab_size", 32768},
          {"num_heads", 128},
          {"head_dim", 64},
          {"state_size", 128},
          {"n_groups", 8},
          {"conv_kernel", 4},
          {"chunk_size", 256},
          {"tie_word_embeddings", false},
          {"use_bias", false},
          {"use_conv_bias", true}};
}
json nemotron_h() {  // nvidia/NVIDIA-Nemotron-Nano-9B-v2
  return {{"architectures", {"NemotronHForCausalLM"}},
          {"model_type", "nemotron_h"},
          {"hybrid_override_pattern", "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"},
          {"hidden_size", 4480},
          {"intermediate_size", 15680},
          {"num_hidden_layers", 56},
          {"num_attention_heads", 40},
          {"num_key_value_heads", 8},
          {"head_dim", 128},
          {"mamba_num_heads", 128},
          {"mamba_head_dim", 80},
          {"ssm_state_size", 128},
          {"n_groups", 8},
          {"conv_kernel", 4},
          {"use_conv_bias", true},
          {"vocab_size", 131072},
          {"tie_word_embeddings", false}};
}
json jamba() {  // ai21labs/AI21-Jamba-1.5-Mini
  return {{"architectures", {"JambaForCausalLM"}},
          {"model_type", "jamba"},
          {"hidden_size", 4096},
          {"intermediate_size", 14336},
          {"num_hidden_layers", 32},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 8},
          {"vocab_size", 65536},
          {"attn_layer_offset", 4},
          {"attn_layer_period", 8},
          {"expert_layer_offset", 1},
          {"expert_layer_period", 2},
          {"num_experts", 16},
          {"num_experts_per_tok", 2},
          {"mamba_d_state", 16},
          {"mamba_dt_rank", 256},
          {"mamba_expand", 2},
          {"mamba_d_conv", 4},
          {"tie_word_embeddings", false}};
}
json lfm2() {  // LiquidAI/LFM2-1.2B
  json config{{"architectures", {"Lfm2ForCausalLM"}},
              {"model_type", "lfm2"},
              {"hidden_size", 2048},
              {"num_hidden_layers", 16},
              {"num_attention_heads", 32},
              {"num_key_value_heads", 8},
              {"vocab_size", 65536},
              {"block_ff_dim", 12288},
              {"conv_L_cache", 3},
              {"layer_types", json::array()}};
  for (int i = 0; i < 16; ++i) {
    const bool attends = i == 2 || i == 5 || i == 8 || i == 10 || i == 12 || i == 14;
    config["layer_types"].push_back(attends ? "full_attention" : "conv");
  }
  return config;
}
json qwen3_next() {
  return {{"architectures", {"Qwen3NextForCausalLM"}},
          {"model_type", "qwen3_next"},
          {"hidden_size", 2048},
          {"num_hidden_layers", 48},
          {"num_attention_heads", 16},
          {"num_key_value_heads", 2},
          {"head_dim", 256},
          {"vocab_size", 151936},
          {"num_experts", 512},
          {"num_experts_per_tok", 10},
          {"moe_intermediate_size", 512},
          {"shared_expert_intermediate_size", 512}};
}

struct Counted {
  json config;
  std::int64_t parameters;
};

// The counts that are published with the weights.
TEST(ScanPrograms, HaveTheParametersThatArePublished) {
  const std::vector<Counted> all{{mamba(), 129135360},   {mamba2(), 7285403648}, {nemotron_h(), 8888227328},
                                 {jamba(), 51570323328}, {lfm2(), 1170340608},   {qwen3_next(), 79674391296}};
  for (const Counted& one : all)
    EXPECT_EQ(parameter_count(described_network(one.config)), one.parameters) << one.config["model_type"];
}

// Scans grow with the tokens, attention with their square.
TEST(ScanPrograms, CostOfTokensIsTheSameAtEveryLength) {
  for (const json& config : {mamba(), mamba2()}) {
    const ModelDescription model = described_network(config);
    const double one = model_flops(model, 1, 1024), two = model_flops(model, 1, 2048);
    EXPECT_NEAR(two / one, 2.0, 1e-9) << config["model_type"];
  }
  const ModelDescription hybrid = described_network(nemotron_h());
  EXPECT_GT(model_flops(hybrid, 1, 8192), 8.0 * model_flops(hybrid, 1, 1024));
}

json few_layers(json config) {
  const int layers = config.contains("hybrid_override_pattern") ? 3 : 8;
  config["num_hidden_layers"] = layers;
  if (layers == 3) config["hybrid_override_pattern"] = "M-*";
  if (config.contains("layer_types"))
    config["layer_types"].erase(config["layer_types"].begin() + 8, config["layer_types"].end());
  if (config.contains("num_experts")) config["num_experts"] = 4, config["num_experts_per_tok"] = 2;
  config["vocab_size"] = 1000;
  return config;
}

TEST(ScanPrograms, StepsTrainEveryParameterThatIsCounted) {
  for (const json& whole : {mamba(), mamba2(), nemotron_h(), jamba(), lfm2(), qwen3_next()}) {
    const ModelDescription model = described_network(few_layers(whole));
    for (const Precision precision : {Precision::bf16, Precision::amp_bf16}) {
      TrainingDescription training;
      training.precision = precision;
      training.micro_batch = 1;
      training.sequence_length = 256;
      const OpTrace trace = training_run(model, training, AttentionChoice::flash, 1);
      EXPECT_EQ(trace.parameters, parameter_count(model)) << whole["model_type"];
      EXPECT_FALSE(model.program->packaged.empty()) << whole["model_type"];
    }
  }
}

// Every kernel of a package has its backward pass.
TEST(ScanPrograms, BackwardPassesRunTheKernelsOfTheirOwn) {
  const auto names = [](const json& config) {
    TrainingDescription training;
    training.micro_batch = 1;
    training.sequence_length = 256;
    const OpTrace trace = training_run(described_network(few_layers(config)), training, AttentionChoice::flash, 1);
    std::vector<std::string> all;
    for (const Call& call : trace.calls)
      if (const auto* one = std::get_if<FusedKernel>(&trace.ops[call.op])) all.push_back(one->name);
    return all;
  };
  const auto count = [](const std::vector<std::string>& all, const char* name) {
    return std::count(all.begin(), all.end(), name);
  };
  const std::vector<std::string> scans = names(mamba()), apart = names(jamba()), chunks = names(mamba2());
  EXPECT_EQ(count(scans, "selective_scan_fwd"), 8);
  EXPECT_EQ(count(scans, "selective_scan_bwd"), 8);
  EXPECT_EQ(count(scans, "causal_conv1d_fwd"), 16);  // again in the backward pass
  EXPECT_EQ(count(apart, "causal_conv1d_fwd"), 7);   // kept; one layer of eight attends
  EXPECT_EQ(count(apart, "selective_scan_bwd"), 7);
  EXPECT_EQ(count(chunks, "state_passing_fwd"), 16);
  EXPECT_EQ(count(chunks, "state_passing_bwd"), 8);
  EXPECT_EQ(count(names(qwen3_next()), "chunk_gated_delta_rule_fwd_kkt_solve"), 6);
}

TEST(ScanPrograms, ConfigurationsOfOtherVariantsAreRefused) {
  json config = nemotron_h();
  config["hybrid_override_pattern"] = "M-X";
  EXPECT_THROW((void)described_network(config), UserError);
  config = jamba();
  config["hidden_act"] = "gelu";
  EXPECT_THROW((void)described_network(config), UserError);
}

}  // namespace
}  // namespace ridgeline
