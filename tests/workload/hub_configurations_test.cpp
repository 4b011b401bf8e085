// Configurations of the hub whose parameters their publishers count: networks that see, hear and draw, and those of
// code of their own.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/units/user_error.h"
#include "tests/support/described_network.h"

namespace ridgeline {
namespace {

struct Published {
  const char* config;
  std::int64_t parameters;
};

const std::vector<Published> kPublished{
    // google/siglip-base-patch16-224
    {R"({"architectures": ["SiglipModel"], "initializer_factor": 1.0, "model_type": "siglip", "text_config":
         {"model_type": "siglip_text_model", "vocab_size": 32000, "hidden_size": 768, "intermediate_size": 3072,
         "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 64}, "vision_config":
         {"model_type": "siglip_vision_model", "image_size": 224, "patch_size": 16, "hidden_size": 768,
         "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}})",
     203155970},
    // meta-llama/Llama-4-Scout-17B-16E-Instruct
    {R"({"architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", "image_token_index": 200092,
         "text_config": {"attention_bias": false, "attention_chunk_size": 8192, "attention_dropout": 0.0,
         "for_llm_compressor": false, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120,
         "interleave_moe_layer_step": 1, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
         "max_position_embeddings": 10485760, "model_type": "llama4_text", "no_rope_layers": [], "num_attention_heads":
         40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 16,
         "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "router_aux_loss_coef": 0.001,
         "router_jitter_noise": 0.0, "use_qk_norm": true, "vocab_size": 202048}, "vision_config": {"attention_dropout":
         0.0, "hidden_act": "gelu", "hidden_size": 1408, "image_size": 336, "intermediate_size": 5632, "model_type":
         "llama4_vision_model", "multi_modal_projector_bias": false, "norm_eps": 1e-05, "num_attention_heads": 16,
         "num_channels": 3, "num_hidden_layers": 34, "patch_size": 14, "pixel_shuffle_ratio": 0.5, "projector_dropout":
         0.0, "projector_input_dim": 4096, "projector_output_dim": 4096, "rope_theta": 10000, "vision_feature_layer":
         -1, "vision_feature_select_strategy": "default", "vision_output_dim": 4096}})",
     108641793536},
    // nvidia/segformer-b0-finetuned-ade-512-512
    {R"({"architectures": ["SegformerForSemanticSegmentation"], "attention_probs_dropout_prob": 0.0,
         "classifier_dropout_prob": 0.1, "decoder_hidden_size": 256, "depths": [2, 2, 2, 2], "downsampling_rates": [1,
         4, 8, 16], "drop_path_rate": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_sizes": [32, 64,
         160, 256], "image_size": 224, "layer_norm_eps": 1e-06, "mlp_ratios": [4, 4, 4, 4], "model_type": "segformer",
         "num_attention_heads": [1, 2, 5, 8], "num_channels": 3, "num_encoder_blocks": 4, "patch_sizes": [7, 3, 3, 3],
         "reshape_last_stage": true, "sr_ratios": [8, 4, 2, 1], "strides": [4, 2, 2, 2], "num_labels": 150})",
     3752694},
    // microsoft/resnet-18
    {R"({"architectures": ["ResNetForImageClassification"], "depths": [2, 2, 2, 2], "downsample_in_first_stage":
         false, "embedding_size": 64, "hidden_act": "relu", "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic",
         "model_type": "resnet", "num_channels": 3, "num_labels": 1000})",
     11689512},
    // facebook/convnextv2-tiny-1k-224
    {R"({"architectures": ["ConvNextV2ForImageClassification"], "depths": [3, 3, 9, 3], "drop_path_rate": 0.0,
         "hidden_act": "gelu", "hidden_sizes": [96, 192, 384, 768], "image_size": 224, "layer_norm_eps": 1e-12,
         "model_type": "convnextv2", "num_channels": 3, "num_stages": 4, "patch_size": 4, "num_labels": 1000})",
     28635496},
    // facebook/wav2vec2-base-960h
    {R"({"activation_dropout": 0.1, "apply_spec_augment": true, "architectures": ["Wav2Vec2ForCTC"],
         "attention_dropout": 0.1, "codevector_dim": 256, "contrastive_logits_temperature": 0.1, "conv_bias": false,
         "conv_dim": [512, 512, 512, 512, 512, 512, 512], "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_stride": [5, 2,
         2, 2, 2, 2, 2], "ctc_loss_reduction": "sum", "ctc_zero_infinity": false, "diversity_loss_weight": 0.1,
         "do_stable_layer_norm": false, "feat_extract_activation": "gelu", "feat_extract_dropout": 0.0,
         "feat_extract_norm": "group", "feat_proj_dropout": 0.1, "feat_quantizer_dropout": 0.0, "final_dropout": 0.1,
         "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout": 0.1, "hidden_size": 768,
         "intermediate_size": 3072, "layer_norm_eps": 1e-05, "layerdrop": 0.1, "mask_feature_length": 10,
         "mask_feature_prob": 0.0, "mask_time_length": 10, "mask_time_prob": 0.05, "model_type": "wav2vec2",
         "num_attention_heads": 12, "num_codevector_groups": 2, "num_codevectors_per_group": 320,
         "num_conv_pos_embedding_groups": 16, "num_conv_pos_embeddings": 128, "num_feat_extract_layers": 7,
         "num_hidden_layers": 12, "num_negatives": 100, "proj_codevector_dim": 256, "vocab_size": 32})",
     94396320},
    // facebook/wav2vec2-large-960h-lv60-self
    {R"({"activation_dropout": 0.1, "apply_spec_augment": true, "architectures": ["Wav2Vec2ForCTC"],
         "attention_dropout": 0.1, "codevector_dim": 256, "contrastive_logits_temperature": 0.1, "conv_bias": true,
         "conv_dim": [512, 512, 512, 512, 512, 512, 512], "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_stride": [5, 2,
         2, 2, 2, 2, 2], "ctc_loss_reduction": "sum", "ctc_zero_infinity": false, "diversity_loss_weight": 0.1,
         "do_stable_layer_norm": true, "feat_extract_activation": "gelu", "feat_extract_dropout": 0.0,
         "feat_extract_norm": "layer", "feat_proj_dropout": 0.1, "feat_quantizer_dropout": 0.0, "final_dropout": 0.1,
         "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout": 0.1, "hidden_size": 1024,
         "intermediate_size": 4096, "layer_norm_eps": 1e-05, "layerdrop": 0.1, "mask_feature_length": 10,
         "mask_feature_prob": 0.0, "mask_time_length": 10, "mask_time_prob": 0.05, "model_type": "wav2vec2",
         "num_attention_heads": 16, "num_codevector_groups": 2, "num_codevectors_per_group": 320,
         "num_conv_pos_embedding_groups": 16, "num_conv_pos_embeddings": 128, "num_feat_extract_layers": 7,
         "num_hidden_layers": 24, "num_negatives": 100, "proj_codevector_dim": 256, "vocab_size": 32})",
     315471520},
    // black-forest-labs/FLUX.1-dev/transformer
    {R"({"_class_name": "FluxTransformer2DModel", "attention_head_dim": 128, "guidance_embeds": true, "in_channels":
         64, "joint_attention_dim": 4096, "num_attention_heads": 24, "num_layers": 19, "num_single_layers": 38,
         "patch_size": 1, "pooled_projection_dim": 768})",
     11901408320},
    // stabilityai/stable-diffusion-xl-base-1.0/unet
    {R"({"_class_name": "UNet2DConditionModel", "act_fn": "silu", "addition_embed_type": "text_time",
         "addition_time_embed_dim": 256, "attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, 1280],
         "cross_attention_dim": 2048, "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D",
         "CrossAttnDownBlock2D"], "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
         "in_channels": 4, "out_channels": 4, "layers_per_block": 2, "transformer_layers_per_block": [1, 2, 10],
         "use_linear_projection": true, "projection_class_embeddings_input_dim": 2816, "sample_size": 128})",
     2567463684},
    // ibm-granite/granite-4.0-h-tiny
    {R"({"architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "attention_bias": false,
         "attention_dropout": 0.0, "attention_multiplier": 0.0078125, "embedding_multiplier": 12, "hidden_act": "silu",
         "hidden_size": 1536, "intermediate_size": 512, "layer_types": ["mamba", "mamba", "mamba", "mamba", "mamba",
         "attention", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "attention",
         "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "attention", "mamba",
         "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "attention", "mamba", "mamba",
         "mamba", "mamba"], "logits_scaling": 6, "mamba_chunk_size": 256, "mamba_conv_bias": true, "mamba_d_conv": 4,
         "mamba_d_head": 64, "mamba_d_state": 128, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 48,
         "mamba_proj_bias": false, "max_position_embeddings": 131072, "normalization_function": "rmsnorm",
         "num_attention_heads": 12, "num_experts_per_tok": 6, "num_hidden_layers": 40, "num_key_value_heads": 4,
         "num_local_experts": 64, "output_router_logits": false, "position_embedding_type": "nope",
         "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_theta": 10000, "router_aux_loss_coef": 0.01,
         "shared_intermediate_size": 1024, "tie_word_embeddings": true, "vocab_size": 100352})",
     6939037248},
    // facebook/detr-resnet-50, whose frozen norms are buffers
    {R"({"activation_dropout": 0.0, "activation_function": "relu", "architectures": ["DetrForObjectDetection"],
         "attention_dropout": 0.0, "auxiliary_loss": false, "backbone": "resnet50", "d_model": 256,
         "decoder_attention_heads": 8, "decoder_ffn_dim": 2048, "decoder_layers": 6, "dilation": false, "dropout": 0.1,
         "encoder_attention_heads": 8, "encoder_ffn_dim": 2048, "encoder_layers": 6, "is_encoder_decoder": true,
         "model_type": "detr", "num_hidden_layers": 6, "num_queries": 100, "position_embedding_type": "sine"})",
     41524768},
    // tiiuae/falcon-mamba-7b
    {R"({"architectures": ["FalconMambaForCausalLM"], "conv_kernel": 4, "expand": 16, "hidden_act": "silu",
         "hidden_size": 4096, "intermediate_size": 8192, "layer_norm_epsilon": 1e-05, "mixer_rms_eps": 1e-06,
         "model_type": "falcon_mamba", "num_hidden_layers": 64, "rescale_prenorm_residual": false, "residual_in_fp32":
         true, "state_size": 16, "tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_init_scheme":
         "random", "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 256, "time_step_scale": 1.0,
         "use_bias": false, "use_conv_bias": true, "vocab_size": 65024})",
     7272665088},
    // databricks/dbrx-base
    {R"({"architectures": ["DbrxForCausalLM"], "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": "",
         "rope_theta": 500000}, "d_model": 6144, "emb_pdrop": 0.0, "ffn_config": {"ffn_hidden_size": 10752,
         "model_type": "", "moe_jitter_eps": 0.01, "moe_loss_weight": 0.05, "moe_num_experts": 16, "moe_top_k": 4},
         "max_seq_len": 32768, "model_type": "dbrx", "n_heads": 48, "n_layers": 40, "output_router_logits": false,
         "resid_pdrop": 0.0, "router_aux_loss_coef": 0.05, "tie_word_embeddings": false, "vocab_size": 100352})",
     131596523520},
    // HuggingFaceTB/SmolVLM-Instruct
    {R"({"architectures": ["Idefics3ForConditionalGeneration"], "image_token_id": 49153, "model_type": "idefics3",
         "scale_factor": 3, "text_config": {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
         "num_attention_heads": 32, "num_hidden_layers": 24, "num_key_value_heads": 32, "vocab_size": 49155,
         "max_position_embeddings": 16384, "rope_theta": 273768.0, "tie_word_embeddings": false, "rms_norm_eps": 1e-05,
         "use_resampler": false, "qk_layer_norms": false}, "tie_word_embeddings": false, "vision_config":
         {"model_type": "idefics3", "hidden_size": 1152, "image_size": 384, "intermediate_size": 4304,
         "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "max_image_size": {"longest_edge": 384},
         "size": {"longest_edge": 1920}, "tie_word_embeddings": false, "use_base_siglip": true}})",
     2246272880},
    // google/paligemma-3b-pt-224
    {R"({"architectures": ["PaliGemmaForConditionalGeneration"], "hidden_size": 2048, "image_token_index": 257152,
         "model_type": "paligemma", "projection_dim": 2048, "text_config": {"hidden_size": 2048, "intermediate_size":
         16384, "model_type": "gemma", "num_attention_heads": 8, "num_hidden_layers": 18, "num_image_tokens": 256,
         "num_key_value_heads": 1, "vocab_size": 257216}, "vision_config": {"hidden_size": 1152, "intermediate_size":
         4304, "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27,
         "num_image_tokens": 256, "patch_size": 14, "projection_dim": 2048, "projector_hidden_act": "gelu_fast",
         "vision_use_head": false}})",
     2923466480},
    // mistralai/Mistral-Small-3.1-24B
    {R"({"architectures": ["Mistral3ForConditionalGeneration"], "image_token_index": 10, "model_type": "mistral3",
         "multimodal_projector_bias": false, "projector_hidden_act": "gelu", "spatial_merge_size": 2, "text_config":
         {"attention_dropout": 0.0, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size":
         32768, "max_position_embeddings": 131072, "model_type": "mistral", "num_attention_heads": 32,
         "num_hidden_layers": 40, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000000.0,
         "sliding_window": null, "vocab_size": 131072}, "vision_config": {"attention_dropout": 0.0, "head_dim": 64,
         "hidden_act": "silu", "hidden_size": 1024, "image_size": 1540, "intermediate_size": 4096, "model_type":
         "pixtral", "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 24, "patch_size": 14,
         "rope_theta": 10000.0}, "vision_feature_layer": -1})",
     24011361280},
    // Qwen/Qwen2.5-VL-7B-Instruct
    {R"({"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "attention_dropout":
         0.0, "vision_start_token_id": 151652, "vision_end_token_id": 151653, "vision_token_id": 151654,
         "image_token_id": 151655, "video_token_id": 151656, "hidden_act": "silu", "hidden_size": 3584,
         "intermediate_size": 18944, "max_position_embeddings": 128000, "max_window_layers": 28, "num_attention_heads":
         28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
         "sliding_window": 32768, "tie_word_embeddings": false, "use_sliding_window": false, "vision_config": {"depth":
         32, "hidden_act": "silu", "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3,
         "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size":
         112, "fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2, "temporal_patch_size": 2},
         "vocab_size": 152064})",
     8292166656},
    // Qwen/Qwen3-VL-8B-Instruct
    {R"({"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", "image_token_id": 151655,
         "video_token_id": 151656, "vision_start_token_id": 151652, "vision_end_token_id": 151653,
         "tie_word_embeddings": false, "text_config": {"attention_bias": false, "attention_dropout": 0.0, "dtype":
         "bfloat16", "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288,
         "max_position_embeddings": 262144, "model_type": "qwen3_vl_text", "num_attention_heads": 32,
         "num_hidden_layers": 36, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_theta": 5000000, "vocab_size":
         151936}, "vision_config": {"deepstack_visual_indexes": [8, 16, 24], "depth": 27, "hidden_act":
         "gelu_pytorch_tanh", "hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "model_type":
         "qwen3_vl", "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 4096, "patch_size": 16,
         "spatial_merge_size": 2, "temporal_patch_size": 2}})",
     8767123696},
    // OpenGVLab/InternVL3-8B-hf
    {R"({"architectures": ["InternVLForConditionalGeneration"], "model_type": "internvl", "image_token_id": 151667,
         "downsample_ratio": 0.5, "projector_hidden_act": "gelu", "vision_feature_layer": -1, "text_config":
         {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
         "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 151674, "architectures":
         ["Qwen2ForCausalLM"], "tie_word_embeddings": false}, "vision_config": {"model_type": "internvl_vision",
         "architectures": ["InternVisionModel"], "attention_bias": true, "hidden_size": 1024, "intermediate_size":
         4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": [448, 448], "patch_size": [14, 14],
         "norm_type": "layer_norm", "use_qk_norm": false, "use_absolute_position_embeddings": true, "use_mask_token":
         false, "layer_scale_init_value": 0.1, "use_mean_pooling": true}})",
     7944373760},
    // THUDM/chatglm3-6b
    {R"({"architectures": ["ChatGLMModel"], "model_type": "chatglm", "add_bias_linear": false, "add_qkv_bias": true,
         "apply_query_key_layer_scaling": true, "apply_residual_connection_post_layernorm": false, "attention_dropout":
         0.0, "attention_softmax_in_fp32": true, "bias_dropout_fusion": true, "ffn_hidden_size": 13696,
         "fp32_residual_connection": false, "hidden_dropout": 0.0, "hidden_size": 4096, "kv_channels": 128,
         "layernorm_epsilon": 1e-05, "multi_query_attention": true, "multi_query_group_num": 2, "num_attention_heads":
         32, "num_layers": 28, "original_rope": true, "padded_vocab_size": 65024, "post_layer_norm": true,
         "quantization_bit": 0, "rmsnorm": true, "seq_length": 8192, "tie_word_embeddings": false})",
     6243584000},
    // Qwen/Qwen-7B
    {R"({"architectures": ["QWenLMHeadModel"], "attn_dropout_prob": 0.0, "bf16": false, "emb_dropout_prob": 0.0,
         "fp16": false, "fp32": false, "hidden_size": 4096, "intermediate_size": 22016, "kv_channels": 128,
         "layer_norm_epsilon": 1e-06, "max_position_embeddings": 32768, "model_type": "qwen", "no_bias": true,
         "num_attention_heads": 32, "num_hidden_layers": 32, "onnx_safe": null, "rotary_emb_base": 10000, "rotary_pct":
         1.0, "scale_attn_weights": true, "seq_length": 8192, "tie_word_embeddings": false, "tokenizer_class":
         "QWenTokenizer", "use_dynamic_ntk": true, "use_flash_attn": "auto", "use_logn_attn": true, "vocab_size":
         151936})",
     7721324544},
    // baichuan-inc/Baichuan2-7B-Base
    {R"({"architectures": ["BaichuanForCausalLM"], "tokenizer_class": "BaichuanTokenizer", "hidden_act": "silu",
         "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 4096, "model_max_length": 4096,
         "model_type": "baichuan", "num_attention_heads": 32, "num_hidden_layers": 32, "rms_norm_eps": 1e-06,
         "_from_model_config": true, "tie_word_embeddings": false, "vocab_size": 125696})",
     7505973248},
    // deepseek-ai/deepseek-moe-16b-base
    {R"({"architectures": ["DeepseekForCausalLM"], "model_type": "deepseek", "attention_bias": false,
         "attention_dropout": 0.0, "aux_loss_alpha": 0.001, "first_k_dense_replace": 1, "hidden_act": "silu",
         "hidden_size": 2048, "intermediate_size": 10944, "max_position_embeddings": 4096, "moe_intermediate_size":
         1408, "moe_layer_freq": 1, "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false,
         "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 28, "num_key_value_heads": 16,
         "pretraining_tp": 1, "rms_norm_eps": 1e-06, "rope_theta": 10000, "scoring_func": "softmax",
         "tie_word_embeddings": false, "vocab_size": 102400})",
     16375728128},
    // stabilityai/stablelm-2-12b
    {R"({"architectures": ["StableLmForCausalLM"], "model_type": "stablelm", "hidden_act": "silu", "hidden_size":
         5120, "intermediate_size": 13824, "max_position_embeddings": 4096, "layer_norm_eps": 1e-05, "norm_eps": 1e-05,
         "num_attention_heads": 32, "num_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
         "partial_rotary_factor": 0.25, "qk_layernorm": true, "rope_theta": 10000, "rotary_scaling_factor": 1.0,
         "tie_word_embeddings": false, "use_norm_bias": false, "use_parallel_residual": true, "use_qkv_bias": false,
         "vocab_size": 100352})",
     12143185920},
    // CohereForAI/c4ai-command-r-plus
    {R"({"architectures": ["CohereForCausalLM"], "model_type": "cohere", "attention_bias": false, "attention_dropout":
         0.0, "hidden_act": "silu", "hidden_size": 12288, "intermediate_size": 33792, "layer_norm_eps": 1e-05,
         "logit_scale": 0.8333333333333334, "max_position_embeddings": 8192, "num_attention_heads": 96,
         "num_hidden_layers": 64, "num_key_value_heads": 8, "rope_theta": 75000000.0, "use_qk_norm": true,
         "vocab_size": 256000})",
     103810674688},
    // facebook/bart-large-mnli
    {R"({"activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": false, "add_final_layer_norm":
         false, "architectures": ["BartForSequenceClassification"], "attention_dropout": 0.1, "classif_dropout": 0.1,
         "classifier_dropout": 0.0, "d_model": 1024, "decoder_attention_heads": 16, "decoder_ffn_dim": 4096,
         "decoder_layerdrop": 0.0, "decoder_layers": 12, "decoder_start_token_id": 2, "dropout": 0.1, "early_stopping":
         true, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layerdrop": 0.0, "encoder_layers": 12,
         "forced_eos_token_id": 2, "gradient_checkpointing": false, "init_std": 0.02, "is_encoder_decoder": true,
         "max_position_embeddings": 1024, "model_type": "bart", "no_repeat_ngram_size": 3, "normalize_before": false,
         "num_beams": 4, "num_hidden_layers": 12, "scale_embedding": false, "task_specific_params": {}, "vocab_size":
         50265, "static_position_embeddings": false, "num_labels": 3})",
     407344131},
    // microsoft/trocr-base-handwritten
    {R"({"architectures": ["VisionEncoderDecoderModel"], "model_type": "vision-encoder-decoder", "is_encoder_decoder":
         true, "encoder": {"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "intermediate_size": 3072, "image_size": 384, "patch_size": 16, "qkv_bias": false, "hidden_act": "gelu"},
         "decoder": {"model_type": "trocr", "d_model": 1024, "decoder_layers": 12, "decoder_attention_heads": 16,
         "decoder_ffn_dim": 4096, "vocab_size": 50265, "max_position_embeddings": 512, "activation_function": "gelu",
         "cross_attention_hidden_size": 768, "use_learned_position_embeddings": true, "layernorm_embedding": true,
         "dropout": 0.1, "scale_embedding": false}, "tie_word_embeddings": false})",
     333921792},
    // MCG-NJU/videomae-base-finetuned-kinetics, counted from its modules
    {R"({"architectures": ["VideoMAEForVideoClassification"], "model_type": "videomae",
         "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768,
         "image_size": 224, "intermediate_size": 3072, "num_attention_heads": 12, "num_channels": 3, "num_frames": 16,
         "num_hidden_layers": 12, "num_labels": 400, "patch_size": 16, "qkv_bias": true, "tubelet_size": 2,
         "use_mean_pooling": true, "norm_pix_loss": false})",
     86534800},
    // microsoft/layoutlmv3-base with seven labels, counted from its modules
    {R"({"architectures": ["LayoutLMv3ForTokenClassification"], "model_type": "layoutlmv3",
         "attention_probs_dropout_prob": 0.1, "coordinate_size": 128, "has_relative_attention_bias": true,
         "has_spatial_attention_bias": true, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
         "input_size": 224, "intermediate_size": 3072, "max_2d_position_embeddings": 1024, "max_position_embeddings":
         514, "max_rel_2d_pos": 256, "max_rel_pos": 128, "num_attention_heads": 12, "num_hidden_layers": 12,
         "rel_2d_pos_bins": 64, "rel_pos_bins": 32, "second_input_size": 112, "shape_size": 128, "text_embed": true,
         "type_vocab_size": 1, "visual_embed": true, "vocab_size": 50265, "num_labels": 7})",
     125332359},
    // stabilityai/sd-vae-ft-mse
    {R"({"_class_name": "AutoencoderKL", "act_fn": "silu", "block_out_channels": [128, 256, 512, 512],
         "down_block_types": ["DownEncoderBlock2D"], "in_channels": 3, "latent_channels": 4, "layers_per_block": 2,
         "norm_num_groups": 32, "out_channels": 3, "sample_size": 256, "up_block_types": []})",
     83653863},
    // openbmb/MiniCPM-2B-sft-bf16
    {R"({"architectures": ["MiniCPMForCausalLM"], "model_type": "minicpm", "hidden_act": "silu", "hidden_size": 2304,
         "intermediate_size": 5760, "num_attention_heads": 36, "num_hidden_layers": 40, "num_key_value_heads": 36,
         "rms_norm_eps": 1e-05, "scale_depth": 1.4, "scale_emb": 12, "dim_model_base": 256, "vocab_size": 122753,
         "tie_word_embeddings": true})",
     2724880896},
};

TEST(HubConfigurations, HaveTheParametersThatArePublished) {
  for (const Published& one : kPublished) {
    const nlohmann::json config = nlohmann::json::parse(one.config);
    const nlohmann::json name = config.contains("model_type") ? config["model_type"] : config["_class_name"];
    EXPECT_EQ(parameter_count(testing::described_network(config)), one.parameters) << name;
  }
}

// A missing part is said in a sentence.
TEST(HubConfigurations, TypesThatAreKnownNotToBeBuiltSayWhy) {
  try {
    (void)testing::described_network({{"model_type", "yolos"}});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("'yolos' is not built: its loss matches boxes"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace ridgeline
