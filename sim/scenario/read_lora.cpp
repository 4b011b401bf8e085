#include "sim/scenario/read_lora.h"

#include "sim/scenario/read_recipe.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

constexpr std::array<std::pair<std::string_view, FrozenWeights>, 7> kFrozenWeights{
    {{"as stored", FrozenWeights::as_stored},
     {"nf4", FrozenWeights::nf4},
     {"nf4-double", FrozenWeights::nf4_double},
     {"int8", FrozenWeights::int8},
     {"gptq", FrozenWeights::gptq},
     {"awq", FrozenWeights::awq},
     {"hqq", FrozenWeights::hqq}}};

constexpr std::array<std::pair<std::string_view, DType>, 3> kAdapterTypes{
    {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}}};

/// The roles, each as its bit, and all those of blocks.
constexpr auto kTargets = [] {
  std::array<std::pair<std::string_view, std::uint16_t>, kLinearRoles.size() + 1> targets{};
  for (std::size_t i = 0; i < kLinearRoles.size(); ++i)
    targets[i] = {kLinearRoles[i].first,
                  static_cast<std::uint16_t>(1U << static_cast<unsigned>(kLinearRoles[i].second))};
  targets.back() = {"all", kRolesOfBlocks};
  return targets;
}();

/// One of them, or a list.
std::uint16_t read_targets(const Value& value) {
  if (!value.exists()) return 0;
  const std::vector<Value> items = value.is_list() ? value.list() : std::vector<Value>{value};
  if (items.empty()) value.fail("names no layer; expected all, or a list of query, key, value, output, ...");
  unsigned bits = 0;
  for (const Value& item : items) bits |= item.choice<std::uint16_t>(kTargets);
  return static_cast<std::uint16_t>(bits);
}

/// The type that adapters are trained in.
DType read_type(const Value& value, const TrainingDescription& training, DType otherwise) {
  if (!value.exists()) return otherwise;
  const DType type = value.choice<DType>(kAdapterTypes);
  if (training.parallel.deepspeed()) value.fail("DeepSpeed casts adapters with the network: expected no key");
  if (type == DType::fp16 && training.precision == Precision::amp_fp16)
    value.fail("PyTorch raises: Attempting to unscale FP16 gradients (GradScaler): expected fp32");
  return type;
}

/// Modules that are trained whole beside adapters.
void read_saved(const Value& value, const TrainingDescription& training, LoraDescription& lora) {
  if (!value.exists() || value.is("none")) return;
  constexpr std::array<std::pair<std::string_view, bool>, 2> kSaved{{{"embeddings", false}, {"head", true}}};
  for (const Value& item : value.list()) (item.choice<bool>(kSaved) ? lora.saves_head : lora.saves_embeddings) = true;
  if (training.parallel.gpus() > 1) value.fail("over several GPUs is not modelled: expected none");
  if (lora.saves_head && lora.targets != 0 && lora.adapts(LinearRole::head))
    value.fail("head has an adapter (training.lora.targets): expected one of both");
}

/// Adapters are refused beside ways over several GPUs that are not modelled with them.
void check_ranks(const Value& section, const Mapping& mapping, const LoraDescription& lora,
                 const TrainingDescription& training) {
  const ParallelDescription& how = training.parallel;
  const bool shards = how.shards_parameters() && how.several();
  if (how.megatron()) section.fail("adapters of Megatron-LM's networks are not modelled");
  if (shards && how.offload) section.fail("adapters beside parameters in the host's memory (offload) are not modelled");
  if (lora.frozen != FrozenWeights::as_stored && (shards || how.tensor > 1 || how.deepspeed()))
    mapping["frozen_weights"].fail(
        "weights of four bits over ranks that share parameters are not modelled; strategies ddp and zero1 are");
  if (lora.targets != 0 && lora.adapts(LinearRole::head) && how.tensor > 1)
    mapping["targets"].fail("adapters of the head over tensor parallel ranks are not modelled: expected no head");
  // FullyShardedDataParallel puts what it shards together into one flat parameter.
  if (shards && how.strategy == DataStrategy::fsdp1 && training.stored_type() != lora.dtype)
    section.fail(
        fmt::format("PyTorch raises: Must flatten tensors with uniform dtype but got {} weights and {} adapters; "
                    "expected training.lora.dtype: {}, or strategy: fsdp",
                    name_of(training.stored_type()), name_of(lora.dtype), name_of(training.stored_type())));
}

}  // namespace

std::optional<LoraDescription> read_lora(const Value& section, const TrainingDescription& training, bool compile,
                                         const Software& software) {
  if (!section.exists() || section.is("none")) return std::nullopt;
  const Mapping mapping(section, {"rank", "targets", "dropout", "dtype", "dora", "modules_to_save", "frozen_weights"});
  LoraDescription lora;
  lora.rank = mapping["rank"].integer({1, 65536}, lora.rank);
  lora.targets = read_targets(mapping["targets"]);
  lora.dropout = mapping["dropout"].number({0.0, 1.0}, lora.dropout);
  lora.frozen = mapping["frozen_weights"].choice<FrozenWeights>(kFrozenWeights, lora.frozen);
  lora.dtype = read_type(mapping["dtype"], training, default_adapter_type(training, lora.frozen, compile, software));
  read_saved(mapping["modules_to_save"], training, lora);
  if (training.precision == Precision::apex_o2)
    section.fail("apex-o2 keeps fp32 copies of all parameters: adapters go with other precisions");
  lora.dora = mapping["dora"].boolean(false);
  if (lora.dora && (training.parallel.gpus() > 1 || lora.frozen != FrozenWeights::as_stored || lora.dropout > 0.0))
    mapping["dora"].fail(
        "over several GPUs, beside weights of four bits or with dropout is not modelled: expected false");
  check_ranks(section, mapping, lora, training);
  return lora;
}

}  // namespace ridgeline
