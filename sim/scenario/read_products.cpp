#include "sim/scenario/read_products.h"

#include <fmt/format.h>

#include <array>

#include "sim/scenario/choice.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

constexpr std::array<Choice<DType>, 3> kWeightTypes{
    {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}}};
constexpr std::array<Choice<ScaledLinear>, 3> kScaledLinears{
    {{"none", ScaledLinear::none}, {"tensorwise", ScaledLinear::tensorwise}, {"rowwise", ScaledLinear::rowwise}}};
constexpr std::array<Choice<LossCode>, 3> kLossCodes{
    {{"whole", LossCode::whole}, {"chunked", LossCode::chunked}, {"chunked-output", LossCode::chunked_output}}};
}  // namespace

// Without autocast one type is stored and computed in.
void read_weight_dtype(const Value& value, TrainingDescription& t) {
  if (!value.exists()) return;
  const DType type = value.choice<DType>(kWeightTypes);
  switch (t.precision) {
    case Precision::amp_bf16:
      if (type == DType::fp16) value.fail("autocast to bf16 is modelled over weights in fp32 or bf16: expected either");
      break;
    case Precision::amp_fp16:
      if (type == DType::bf16) value.fail("autocast to fp16 is modelled over weights in fp32 or fp16: expected either");
      break;
    case Precision::apex_o2:
      value.fail("apex-o2 keeps its weights in fp16 and copies of them in fp32: expected no key");
    case Precision::bf16:
      if (type != DType::bf16) value.fail("precision: bf16 stores all weights in bf16: expected bf16, or amp-bf16");
      return;
    case Precision::fp32:
    case Precision::tf32:
      if (type != DType::fp32)
        value.fail("weights in 16 bits need autocast or precision: bf16: expected fp32, or precision: amp-bf16");
      return;
  }
  if (type != DType::fp32) t.weight_dtype = type;
}

void check_weight_dtype(const Value& value, const TrainingDescription& t) {
  if (!t.weight_dtype) return;
  if (t.parallel.megatron()) value.fail("Megatron-LM casts its network itself: expected no key");
  if (t.parallel.deepspeed()) value.fail("DeepSpeed casts the network to its own type: expected no key");
  if (*t.weight_dtype == DType::fp16 && (!t.lora || t.lora->dtype == DType::fp16))
    value.fail(
        "PyTorch raises: Attempting to unscale FP16 gradients (GradScaler): expected fp32, or training.lora with "
        "dtype: fp32");
}

void read_loss_code(const Mapping& mapping, TrainingDescription& t) {
  t.loss_code = mapping["loss_code"].choice<LossCode>(kLossCodes, LossCode::whole);
}

/// Products of 8 bits give 16, and their inner width is a multiple of 16: tokens too, for gradients of weights.
void read_scaled(const Mapping& mapping, TrainingDescription& t, bool compile) {
  t.scaled_linear = mapping["fp8"].choice<ScaledLinear>(kScaledLinears, ScaledLinear::none);
  if (t.loss_code != LossCode::whole && (t.parallel.tensor > 1 || t.parallel.pipelined() || t.parallel.context > 1))
    mapping["loss_code"].fail("over ranks that share layers or sequences is not modelled: expected whole");
  if (t.loss_code == LossCode::chunked && compile)
    mapping["loss_code"].fail("under torch.compile is not modelled: expected whole");
  if (t.loss_code == LossCode::chunked && t.lora && t.lora->targets != 0 && t.lora->adapts(LinearRole::head))
    mapping["loss_code"].fail(
        "chunked reads the head's weight alone: expected chunked-output, or adapters without head");
  if (t.scaled_linear == ScaledLinear::none) return;
  const Value key = mapping["fp8"];
  if (t.precision != Precision::bf16 && t.precision != Precision::amp_bf16 && t.precision != Precision::amp_fp16)
    mapping["precision"].fail("training.fp8 gives results in 16 bits: expected bf16, amp-bf16 or amp-fp16");
  constexpr std::int64_t kMultiple = 16;
  if (t.micro_batch * t.tokens_of_rank() % kMultiple != 0)
    key.fail(fmt::format("{} tokens of a micro-batch are no multiple of {}, which torch._scaled_mm needs",
                         t.micro_batch * t.tokens_of_rank(), kMultiple));
  if (compile) key.fail("under torch.compile was not measured and is not modelled: expected none");
  if (t.parallel.megatron() || t.parallel.deepspeed())
    key.fail("with framework: megatron or deepspeed is not modelled: expected none");
  // Scales of a whole matrix would be found over ranks that have a part of it.
  if (t.parallel.tensor > 1 && t.parallel.tensor_style == TensorStyle::dtensor &&
      t.scaled_linear == ScaledLinear::tensorwise)
    key.fail("tensorwise scales of DTensors are not modelled: expected rowwise, or tensor_style: by-hand");
}

}  // namespace ridgeline
