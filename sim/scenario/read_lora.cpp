#include "sim/scenario/read_lora.h"

#include <array>
#include <string_view>
#include <utility>

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

constexpr std::array<std::pair<std::string_view, FrozenWeights>, 3> kFrozenWeights{
    {{"as stored", FrozenWeights::as_stored}, {"nf4", FrozenWeights::nf4}, {"nf4-double", FrozenWeights::nf4_double}}};

/// The roles, each as its bit, and all of them.
constexpr auto kTargets = [] {
  std::array<std::pair<std::string_view, std::uint8_t>, kLinearRoles.size() + 1> targets{};
  for (std::size_t i = 0; i < kLinearRoles.size(); ++i)
    targets[i] = {kLinearRoles[i].first,
                  static_cast<std::uint8_t>(1U << static_cast<unsigned>(kLinearRoles[i].second))};
  targets.back() = {"all", 0xff};
  return targets;
}();

/// One of them, or a list.
std::uint8_t read_targets(const Value& value) {
  if (!value.exists()) return 0;
  const std::vector<Value> items = value.is_list() ? value.list() : std::vector<Value>{value};
  if (items.empty()) value.fail("names no layer; expected all, or a list of query, key, value, output, ...");
  unsigned bits = 0;
  for (const Value& item : items) bits |= item.choice<std::uint8_t>(kTargets);
  return static_cast<std::uint8_t>(bits);
}

/// What adapters go with over several GPUs.
void check_ranks(const Value& section, const Mapping& mapping, const LoraDescription& lora,
                 const TrainingDescription& training) {
  const ParallelDescription& how = training.parallel;
  const bool shards = how.shards_parameters() && how.several();
  if (how.megatron()) section.fail("adapters of Megatron-LM's networks are not modelled");
  if (how.deepspeed() && how.strategy == DataStrategy::zero3)
    section.fail("adapters under DeepSpeed are modelled with strategies zero1 and zero2");
  if (shards && how.offload) section.fail("adapters beside parameters in the host's memory (offload) are not modelled");
  if (lora.frozen != FrozenWeights::as_stored && (shards || how.tensor > 1 || how.deepspeed()))
    mapping["frozen_weights"].fail(
        "weights of four bits over ranks that share parameters are not modelled; strategies ddp and zero1 are");
  // FullyShardedDataParallel puts what it shards together into one flat parameter.
  if (shards && how.strategy == DataStrategy::fsdp1 && training.precision == Precision::bf16)
    section.fail(
        "PyTorch raises: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32 (adapters "
        "are "
        "kept in fp32); expected strategy: fsdp, or training.precision: amp-bf16");
}

}  // namespace

std::optional<LoraDescription> read_lora(const Value& section, const TrainingDescription& training, bool compile) {
  if (!section.exists() || section.is("none")) return std::nullopt;
  const Mapping mapping(section, {"rank", "targets", "dropout", "frozen_weights"});
  LoraDescription lora;
  lora.rank = mapping["rank"].integer({1, 65536}, lora.rank);
  lora.targets = read_targets(mapping["targets"]);
  lora.dropout = mapping["dropout"].number({0.0, 1.0}, lora.dropout);
  lora.frozen = mapping["frozen_weights"].choice<FrozenWeights>(kFrozenWeights, lora.frozen);
  if (training.precision == Precision::apex_o2)
    section.fail("apex-o2 keeps fp32 copies of all parameters: adapters go with other precisions");
  check_ranks(section, mapping, lora, training);
  if (compile && lora.frozen != FrozenWeights::as_stored)
    mapping["frozen_weights"].fail("weights of four bits under torch.compile are not modelled");
  return lora;
}

}  // namespace ridgeline
