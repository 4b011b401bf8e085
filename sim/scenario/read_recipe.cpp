#include "sim/scenario/read_recipe.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

bool trains_adapters(const Mapping& mapping) {
  const Value lora = mapping["lora"];
  return lora.exists() && !lora.is("none");
}

bool quantized(const Mapping& mapping) {
  const Value frozen = mapping["lora"]["frozen_weights"];
  return frozen.exists() && !frozen.is("as stored");
}

/// Weights of bitsandbytes, beside which all others are cast to fp32.
bool of_bitsandbytes(const Mapping& mapping) {
  const Value frozen = mapping["lora"]["frozen_weights"];
  return quantized(mapping) && (frozen.is("nf4") || frozen.is("nf4-double") || frozen.is("int8"));
}

}  // namespace

void take_torchtune_recipe(const Mapping& mapping, bool compile, TrainingDescription& t) {
  if (!compile || t.parallel.gpus() > 1) return;
  const Value loss = mapping["loss_code"];
  const bool adapters = trains_adapters(mapping) && t.precision == Precision::bf16 && !loss.exists();
  if (!adapters && !loss.is("chunked")) return;
  t.loss_code = LossCode::chunked_output;
  if (!mapping.has("compile_unit")) t.parallel.block_by_block = true;
}

void take_autocast_recipe(const Mapping& mapping, bool large, TrainingDescription& t) {
  const bool autocast = t.precision == Precision::amp_bf16 || t.precision == Precision::amp_fp16;
  if (!autocast || !trains_adapters(mapping) || t.parallel.megatron() || t.parallel.deepspeed()) return;
  // FullyShardedDataParallel flattens tensors of one type, that of the adapters.
  const bool flattened = t.parallel.several() && t.parallel.strategy == DataStrategy::fsdp1;
  if (large && !flattened && !of_bitsandbytes(mapping) && !mapping.has("weight_dtype"))
    t.weight_dtype = t.precision == Precision::amp_bf16 ? DType::bf16 : DType::fp16;
  // prepare_model_for_kbit_training of peft/utils/other.py turns checkpointing on.
  if (quantized(mapping) && !mapping.has("activation_checkpointing") && t.parallel.gpus() == 1)
    t.activation_checkpointing = ActivationCheckpointing::block;
}

DType default_adapter_type(const TrainingDescription& t, FrozenWeights frozen, bool compile, const Software& software) {
  if (t.parallel.deepspeed() || t.precision == Precision::amp_fp16) return DType::fp32;
  const bool torchtune = t.precision == Precision::bf16 && (compile || t.loss_code != LossCode::whole);
  const bool of_layer = software.adapters_of_layer_type && frozen == FrozenWeights::as_stored;
  return torchtune || of_layer ? t.stored_type() : DType::fp32;
}

}  // namespace ridgeline
