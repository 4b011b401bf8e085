// Configurations as they are published, of families whose parameters were counted by hand from Transformers' source
// (InternLM2's from its own), and keys that change the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/workload/composition.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/described_network.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ridgeline::testing::described_network;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refused(const json& config) {
  try {
    described_network(config);
  } catch (const config::ConfigError& e) {
    return e.what();
  }
  return "";
}

struct Published {
  const char* config;
  std::int64_t parameters;
};

const std::vector<Published> kPublished{
    // facebook/xglm-564M
    {R"({"architectures": ["XGLMForCausalLM"], "model_type": "xglm", "activation_dropout": 0,
         "activation_function": "gelu", "attention_dropout": 0.1, "attention_heads": 16, "d_model": 1024,
         "dropout": 0.1, "ffn_dim": 4096, "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048,
         "num_layers": 24, "scale_embedding": true, "vocab_size": 256008, "decoder_start_token_id": 2})",
     564463616},
    // facebook/nllb-200-distilled-600M
    {R"({"architectures": ["M2M100ForConditionalGeneration"], "model_type": "m2m_100", "activation_dropout": 0.0,
         "activation_function": "relu", "attention_dropout": 0.1, "d_model": 1024, "decoder_attention_heads": 16,
         "decoder_ffn_dim": 4096, "decoder_layerdrop": 0, "decoder_layers": 12, "dropout": 0.1,
         "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layerdrop": 0, "encoder_layers": 12,
         "init_std": 0.02, "is_encoder_decoder": true, "max_length": 200, "max_position_embeddings": 1024,
         "num_hidden_layers": 12, "scale_embedding": true, "tokenizer_class": "NllbTokenizer", "vocab_size": 256206})",
     615073792},
    // facebook/blenderbot_small-90M
    {R"({"architectures": ["BlenderbotSmallForConditionalGeneration"], "model_type": "blenderbot-small",
         "activation_function": "gelu", "d_model": 512, "decoder_attention_heads": 16, "decoder_ffn_dim": 2048,
         "decoder_layers": 8, "encoder_attention_heads": 16, "encoder_ffn_dim": 2048, "encoder_layers": 8,
         "max_position_embeddings": 512, "vocab_size": 54944, "is_encoder_decoder": true, "dropout": 0.1,
         "attention_dropout": 0.0, "normalize_before": false, "normalize_embedding": true, "scale_embedding": true,
         "static_position_embeddings": false, "extra_pos_embeddings": 0, "num_hidden_layers": 8})",
     87508992},
    // uclanlp/plbart-base
    {R"({"architectures": ["PLBartForConditionalGeneration"], "model_type": "plbart",
         "activation_function": "gelu", "d_model": 768, "decoder_attention_heads": 12, "decoder_ffn_dim": 3072,
         "decoder_layers": 6, "encoder_attention_heads": 12, "encoder_ffn_dim": 3072, "encoder_layers": 6,
         "max_position_embeddings": 1024, "vocab_size": 50005, "is_encoder_decoder": true, "dropout": 0.1,
         "attention_dropout": 0.1, "scale_embedding": true, "num_hidden_layers": 6, "normalize_embedding": true,
         "normalize_before": false})",
     139220736},
    // facebook/vit-msn-base with 1000 labels
    {R"({"architectures": ["ViTMSNForImageClassification"], "model_type": "vit_msn", "hidden_act": "gelu",
         "hidden_size": 768, "image_size": 224, "intermediate_size": 3072, "num_attention_heads": 12,
         "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": true, "num_labels": 1000})",
     86567656},
    // openai-community/openai-gpt
    {R"({"architectures": ["OpenAIGPTLMHeadModel"], "model_type": "openai-gpt", "afn": "gelu", "attn_pdrop": 0.1,
         "embd_pdrop": 0.1, "n_ctx": 512, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 512,
         "n_special": 0, "predict_special_tokens": true, "resid_pdrop": 0.1, "summary_activation": null,
         "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
         "summary_use_proj": true, "vocab_size": 40478})",
     116534784},
    // ibm-research/moe-7b-1b-active-shared-experts, sizes of granite-3.1-3b
    {R"({"architectures": ["GraniteMoeSharedForCausalLM"], "model_type": "granitemoeshared",
         "attention_bias": false, "attention_multiplier": 0.0078125, "embedding_multiplier": 12.0,
         "hidden_act": "silu", "hidden_size": 1536, "intermediate_size": 512, "logits_scaling": 6.0,
         "num_attention_heads": 24, "num_experts_per_tok": 8, "num_hidden_layers": 32, "num_key_value_heads": 8,
         "num_local_experts": 40, "output_router_logits": false, "residual_multiplier": 0.22,
         "router_aux_loss_coef": 0.001, "shared_intermediate_size": 1024, "tie_word_embeddings": true,
         "vocab_size": 49155, "max_position_embeddings": 131072})",
     3449788416},
    // sizes of Ministral-8B
    {R"({"architectures": ["MinistralForCausalLM"], "model_type": "ministral", "head_dim": 128,
         "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288, "layer_types": ["sliding_attention",
         "full_attention", "full_attention", "full_attention"], "num_attention_heads": 32, "num_hidden_layers": 36,
         "num_key_value_heads": 8, "sliding_window": 32768, "tie_word_embeddings": false, "vocab_size": 131072,
         "max_position_embeddings": 131072})",
     8019808256},
    // google/vaultgemma-1b
    {R"({"architectures": ["VaultGemmaForCausalLM"], "model_type": "vaultgemma", "attention_bias": false,
         "attn_logit_softcapping": null, "final_logit_softcapping": null, "head_dim": 256,
         "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "intermediate_size": 6912,
         "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 4, "query_pre_attn_scalar": 256,
         "sliding_window": 512, "vocab_size": 256000, "max_position_embeddings": 1024})",
     1038741120},
    // internlm/internlm2-7b
    {R"({"architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2", "bias": false, "hidden_act": "silu",
         "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
         "num_key_value_heads": 8, "tie_word_embeddings": false, "vocab_size": 92544,
         "max_position_embeddings": 32768, "rope_theta": 1000000.0, "rope_scaling": {"type": "dynamic",
         "factor": 2.0}, "attn_implementation": "eager", "pretraining_tp": 1})",
     7737708544},
    // LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct
    {R"({"architectures": ["ExaoneForCausalLM"], "model_type": "exaone", "activation_function": "silu",
         "attention_dropout": 0.0, "embed_dropout": 0.0, "head_dim": 128, "hidden_size": 4096,
         "intermediate_size": 14336, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 32768,
         "num_attention_heads": 32, "num_key_value_heads": 8, "num_layers": 32, "rope_theta": 1000000,
         "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "tie_word_embeddings": false,
         "vocab_size": 102400})",
     7818448896},
    // baidu/ERNIE-4.5-21B-A3B-PT
    {R"({"architectures": ["Ernie4_5_MoeForCausalLM"], "model_type": "ernie4_5_moe", "hidden_act": "silu",
         "hidden_size": 2560, "intermediate_size": 12288, "num_attention_heads": 20, "num_key_value_heads":
         4, "num_hidden_layers": 28, "max_position_embeddings": 131072, "moe_num_experts": 64,
         "moe_num_shared_experts": 2, "moe_k": 6, "moe_intermediate_size": 1536, "moe_layer_start_index":
         1, "moe_layer_end_index": 27, "moe_layer_interval": 1, "moe_capacity": [64, 64, 64], "moe_gate":
         "topk", "moe_use_aux_free": true, "use_bias": false, "rms_norm_eps": 1e-05, "rope_theta": 500000,
         "tie_word_embeddings": true, "vocab_size": 103424})",
     21825437888},
    // tencent/Hunyuan-A13B-Instruct
    {R"({"architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe", "attention_bias":
         false, "attention_dropout": 0.0, "attention_head_dim": 128, "head_dim": 128, "hidden_act": "silu",
         "hidden_size": 4096, "intermediate_size": 3072, "mlp_bias": false, "moe_intermediate_size": [3072,
         3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072,
         3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072],
         "moe_topk": [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
         8, 8, 8, 8], "num_shared_expert": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
         1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "num_experts": 64, "num_attention_heads": 32,
         "num_key_value_heads": 8, "num_hidden_layers": 32, "use_cla": false, "use_mla": false,
         "use_qk_norm": true, "use_mixed_mlp_moe": true, "moe_layer_num_skipped": 0, "moe_drop_tokens":
         false, "norm_type": "rms", "tie_word_embeddings": true, "vocab_size": 128167,
         "max_position_embeddings": 32768, "rope_theta": 10000.0})",
     80393183232},
    // MiniMaxAI/MiniMax-M2 as Transformers builds it
    {R"({"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "hidden_act": "silu",
         "hidden_size": 3072, "intermediate_size": 1536, "num_hidden_layers": 62, "num_attention_heads":
         48, "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 256, "num_experts_per_tok": 8,
         "tie_word_embeddings": false, "vocab_size": 200064, "max_position_embeddings": 196608,
         "rms_norm_eps": 1e-06, "router_jitter_noise": 0.0, "router_aux_loss_coef": 0.001, "use_qk_norm":
         true, "rotary_dim": 64, "scoring_func": "sigmoid", "use_routing_bias": true})",
     228689748992},
    // allenai/FlexOlmo-7x7B-1T
    {R"({"architectures": ["FlexOlmoForCausalLM"], "model_type": "flex_olmo", "attention_bias": false,
         "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008,
         "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "num_experts": 7,
         "num_experts_per_tok": 5, "norm_topk_prob": false, "output_router_logits": false,
         "router_aux_loss_coef": 0.01, "tie_word_embeddings": false, "vocab_size": 100352,
         "max_position_embeddings": 4096})",
     33270665216},
    // facebook/cwm
    {R"({"architectures": ["CwmForCausalLM"], "model_type": "cwm", "attention_dropout": 0.0, "head_dim":
         128, "hidden_act": "silu", "hidden_size": 6144, "intermediate_size": 21504, "mlp_bias": false,
         "num_attention_heads": 48, "num_hidden_layers": 64, "num_key_value_heads": 8, "pretraining_tp": 1,
         "sliding_window": 8192, "tie_word_embeddings": false, "vocab_size": 128256, "layer_types":
         ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention",
         "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "sliding_attention"], "max_position_embeddings": 131072})",
     32581097472},
    // sizes of Ministral-3-8B
    {R"({"architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3", "attention_dropout": 0.0,
         "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
         "num_attention_heads": 32, "num_hidden_layers": 34, "num_key_value_heads": 8, "sliding_window":
         null, "tie_word_embeddings": false, "vocab_size": 131072, "max_position_embeddings": 262144,
         "rope_parameters": {"rope_type": "yarn", "llama_4_scaling_beta": 0.1,
         "original_max_position_embeddings": 16384}})",
     8489553920},
    // facebook/dinov2-with-registers-base with 1000 labels
    {R"({"architectures": ["Dinov2WithRegistersForImageClassification"], "model_type":
         "dinov2_with_registers", "apply_layernorm": true, "attention_probs_dropout_prob": 0.0,
         "drop_path_rate": 0.0, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768,
         "image_size": 518, "layer_norm_eps": 1e-06, "layerscale_value": 1.0, "mlp_ratio": 4,
         "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12, "num_register_tokens": 4,
         "patch_size": 14, "qkv_bias": true, "reshape_hidden_states": true, "use_swiglu_ffn": false,
         "num_labels": 1000})",
     88120552},
    // microsoft/beit-base-patch16-224
    {R"({"architectures": ["BeitForImageClassification"], "model_type": "beit",
         "attention_probs_dropout_prob": 0.0, "drop_path_rate": 0.1, "hidden_act": "gelu",
         "hidden_dropout_prob": 0.0, "hidden_size": 768, "image_size": 224, "intermediate_size": 3072,
         "layer_norm_eps": 1e-12, "layer_scale_init_value": 0.1, "num_attention_heads": 12, "num_channels":
         3, "num_hidden_layers": 12, "patch_size": 16, "use_absolute_position_embeddings": false,
         "use_auxiliary_head": true, "use_mask_token": false, "use_mean_pooling": true,
         "use_relative_position_bias": true, "use_shared_relative_position_bias": false, "vocab_size":
         8192, "pool_scales": [1, 2, 3, 6], "num_labels": 1000})",
     86530984},
    // facebook/esm2_t6_8M_UR50D
    {R"({"architectures": ["EsmForMaskedLM"], "model_type": "esm", "attention_probs_dropout_prob": 0.0,
         "classifier_dropout": null, "emb_layer_norm_before": false, "esmfold_config": null, "hidden_act":
         "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 320, "intermediate_size": 1280,
         "is_folding_model": false, "layer_norm_eps": 1e-05, "mask_token_id": 32,
         "max_position_embeddings": 1026, "num_attention_heads": 20, "num_hidden_layers": 6,
         "pad_token_id": 1, "position_embedding_type": "rotary", "token_dropout": true, "use_cache": true,
         "vocab_list": null, "vocab_size": 33})",
     7512474},
    // microsoft/mpnet-base
    {R"({"architectures": ["MPNetForMaskedLM"], "model_type": "mpnet", "attention_probs_dropout_prob":
         0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "intermediate_size":
         3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "num_attention_heads": 12,
         "num_hidden_layers": 12, "relative_attention_num_buckets": 32, "vocab_size": 30527})",
     109518527}};

TEST(PublishedConfigurations, ParametersAreThoseOfTransformersSource) {
  for (const Published& row : kPublished) {
    const json config = json::parse(row.config);
    const ModelDescription model = described_network(config);
    EXPECT_EQ(parameter_count(model), row.parameters) << config["model_type"];
    EXPECT_THAT(model.unread, IsEmpty()) << config["model_type"];
  }
}

TEST(PublishedConfigurations, StepsRunWithTheParametersThatAreCounted) {
  TrainingDescription training;
  training.precision = Precision::amp_bf16;
  training.micro_batch = 1;
  for (const Published& row : kPublished) {
    json config = json::parse(row.config);
    for (const char* key : {"num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers"})
      if (config.contains(key)) config[key] = 2;
    config.erase("layer_types");
    const ModelDescription model = described_network(config);
    training.sequence_length = config.contains("image_size") ? model.max_positions : 64;
    const OpTrace trace = training_run(model, training, AttentionChoice::cudnn, 1);
    EXPECT_EQ(trace.parameters, parameter_count(model)) << config["model_type"];
    EXPECT_GT(trace.model_flops, 0.0) << config["model_type"];
  }
}

json small(const std::string& type, const std::string& architecture) {
  return {{"model_type", type}, {"architectures", {architecture}}, {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"hidden_size", 64},  {"intermediate_size", 128}};
}

// Transformers makes as many labels as num_labels says where no id2label names them, and two where nothing does.
TEST(PublishedConfigurations, NumberOfLabelsIsThatOfTheNamesOrOfTheKey) {
  json vit = small("vit", "ViTForImageClassification");
  const auto parameters = [&] { return parameter_count(described_network(vit)); };
  const std::int64_t with_two = parameters();
  vit["num_labels"] = 1000;
  EXPECT_EQ(parameters() - with_two, 998 * (64 + 1));
  vit["id2label"] = {{"0", "cat"}, {"1", "dog"}, {"2", "none"}};
  EXPECT_EQ(parameters() - with_two, 64 + 1);
  json roberta = small("roberta", "RobertaForSequenceClassification");
  roberta.update({{"vocab_size", 1000}, {"max_position_embeddings", 66}});
  const std::int64_t before = parameter_count(described_network(roberta));
  roberta["num_labels"] = 3;
  EXPECT_EQ(parameter_count(described_network(roberta)) - before, 64 + 1);
}

// Transformers' decoders all have these heads: scores of every token without a bias, or of every token with one.
TEST(PublishedConfigurations, DecodersClassifySequencesAndTokens) {
  TrainingDescription training;
  training.micro_batch = 2;
  training.sequence_length = 32;
  for (const auto& [type, stem] : {std::pair{"llama", "Llama"}, std::pair{"mistral", "Mistral"},
                                   std::pair{"qwen2", "Qwen2"}, std::pair{"qwen3", "Qwen3"}}) {
    const std::string name = stem;
    json config = small(type, name + "ForCausalLM");
    config.update({{"vocab_size", 1000}, {"tie_word_embeddings", false}, {"num_key_value_heads", 2}});
    const std::int64_t body = parameter_count(described_network(config)) - 1000 * 64;
    for (const auto& [task, bias] :
         {std::pair{"ForSequenceClassification", 0}, std::pair{"ForTokenClassification", 1}}) {
      config["architectures"] = {name + task};
      config["num_labels"] = 5;
      const ModelDescription model = described_network(config);
      EXPECT_EQ(parameter_count(model), body + 5 * (64 + bias)) << name << task;
      EXPECT_EQ(training_run(model, training, AttentionChoice::cudnn, 1).parameters, parameter_count(model));
      EXPECT_THAT(model.unread, IsEmpty());
    }
    config["architectures"] = {name + "ForNothing"};
    EXPECT_THAT(refused(config), HasSubstr("ForNothing"));
  }
  json gpt = {{"model_type", "gpt2"}, {"architectures", {"GPT2ForSequenceClassification"}},
              {"n_layer", 1},         {"n_head", 2},
              {"n_embd", 32},         {"vocab_size", 100},
              {"num_labels", 1}};
  EXPECT_GT(parameter_count(described_network(gpt)), 100 * 32);
}

TEST(PublishedConfigurations, EncodersClassifyTokensWithoutAPooler) {
  TrainingDescription training;
  training.micro_batch = 2;
  training.sequence_length = 32;
  for (const auto& [type, stem] : {std::pair{"bert", "Bert"}, std::pair{"roberta", "Roberta"},
                                   std::pair{"deberta-v2", "DebertaV2"}, std::pair{"deberta", "Deberta"}}) {
    const std::string name = stem;
    json config = small(type, name + "ForMaskedLM");
    config.update({{"vocab_size", 1000},
                   {"max_position_embeddings", 66},
                   {"type_vocab_size", 2},
                   {"position_buckets", 8},
                   {"pos_att_type", "c2p|p2c"},
                   {"relative_attention", true},
                   {"num_labels", 9}});
    const std::int64_t transform = 64 * 64 + 64, norm = 2 * 64, bias = 1000;
    const std::int64_t body = parameter_count(described_network(config)) - transform - norm - bias;
    config["architectures"] = {name + "ForTokenClassification"};
    const ModelDescription model = described_network(config);
    EXPECT_EQ(parameter_count(model), body + 9 * (64 + 1)) << name;
    EXPECT_EQ(training_run(model, training, AttentionChoice::eager, 1).parameters, parameter_count(model)) << name;
  }
  EXPECT_THAT(refused(small("modernbert", "ModernBertForTokenClassification")), HasSubstr("ModernBertForMaskedLM"));
}

// Layers before max_window_layers see everything where no list says which do.
TEST(PublishedConfigurations, WindowsBeginAtALayer) {
  json qwen = small("qwen2", "Qwen2ForCausalLM");
  qwen.update({{"vocab_size", 1000},
               {"num_key_value_heads", 2},
               {"use_sliding_window", true},
               {"sliding_window", 16},
               {"max_window_layers", 1}});
  const ModelDescription model = described_network(qwen);
  EXPECT_FALSE(model.composition->stack.windowed(0));
  EXPECT_TRUE(model.composition->stack.windowed(1));
  qwen["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_TRUE(described_network(qwen).composition->stack.windowed(0));
  qwen.erase("layer_types");
  qwen.erase("max_window_layers");
  EXPECT_FALSE(described_network(qwen).composition->stack.windowed(1));  // 28 where nothing is said
}

TEST(PublishedConfigurations, KeysThatChangeTheNetworkAndAreNotBuiltAreRefusedByName) {
  json experts = small("qwen3_moe", "Qwen3MoeForCausalLM");
  experts.update({{"vocab_size", 1000},
                  {"num_experts", 4},
                  {"num_experts_per_tok", 2},
                  {"moe_intermediate_size", 32},
                  {"mlp_only_layers", json::array()}});
  EXPECT_EQ(refused(experts), "");
  experts["mlp_only_layers"] = {0};
  EXPECT_THAT(refused(experts), HasSubstr("mlp_only_layers"));
  json gemma = small("gemma2", "Gemma2ForCausalLM");
  gemma.update({{"vocab_size", 1000}, {"use_bidirectional_attention", false}});
  EXPECT_EQ(refused(gemma), "");
  gemma["use_bidirectional_attention"] = true;
  EXPECT_THAT(refused(gemma), HasSubstr("use_bidirectional_attention"));
  experts["mlp_only_layers"] = json::array();
  experts["output_router_logits"] = true;  // a loss of its own
  EXPECT_THAT(refused(experts), HasSubstr("output_router_logits"));
  json vit = small("vit", "ViTForImageClassification");
  vit["image_size"] = {224, 224};
  EXPECT_EQ(refused(vit), "");
  vit["image_size"] = {224, 384};
  EXPECT_THAT(refused(vit), HasSubstr("differs from the first"));
  json hunyuan = small("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM");
  hunyuan.update({{"vocab_size", 1000}, {"num_experts", 4}, {"moe_topk", {2, 2}}});
  EXPECT_EQ(refused(hunyuan), "");
  hunyuan["moe_topk"] = {2, 1};
  EXPECT_THAT(refused(hunyuan), HasSubstr("differs from the first"));
  json beit = small("beit", "BeitForImageClassification");
  beit["use_shared_relative_position_bias"] = true;
  EXPECT_THAT(refused(beit), HasSubstr("use_shared_relative_position_bias"));
  json exaone = small("exaone", "ExaoneForCausalLM");
  exaone["vocab_size"] = 1000;
  EXPECT_THAT(refused(exaone), HasSubstr("num_layers is missing"));  // its own name, not that of the table it is like
  json latent = small("deepseek_v2", "DeepseekV2ForCausalLM");
  latent["vocab_size"] = 1000;
  latent["moe_layer_freq"] = 2;
  EXPECT_THAT(refused(latent), HasSubstr("moe_layer_freq"));
}

}  // namespace
}  // namespace ridgeline
