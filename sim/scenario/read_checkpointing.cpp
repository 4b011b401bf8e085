#include "sim/scenario/read_checkpointing.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ridgeline {
namespace {

using config::Mapping;

constexpr std::array<std::pair<std::string_view, ActivationCheckpointing>, 4> kCheckpointing{
    {{"none", ActivationCheckpointing::none},
     {"block", ActivationCheckpointing::block},
     {"selective", ActivationCheckpointing::selective},
     {"operations", ActivationCheckpointing::operations}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kUnits{{{"model", false}, {"blocks", true}}};
/// Blocks have numbers of 16 bits in an op trace.
constexpr std::int64_t kMostBlocks = 1 << 15;

/// Sets the bit of `part` for blocks that `value` names: all, none, 3, 0-11, or a list of those.
void read_blocks(const config::Value& value, BlockPart part, std::vector<std::uint8_t>& parts) {
  if (!value.exists() || value.is("none")) return;
  const auto bit = static_cast<std::uint8_t>(part);
  if (value.is_list()) {
    for (const config::Value& item : value.list()) read_blocks(item, part, parts);
    return;
  }
  if (value.is("all")) {
    for (std::uint8_t& bits : parts) bits |= bit;
    return;
  }
  const std::string text = value.text();
  const std::size_t dash = text.find('-');
  const auto number = [&](const std::string& digits) {
    std::int64_t result = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result);
    if (error != std::errc{} || end != digits.data() + digits.size() || result < 0 || result >= kMostBlocks)
      value.fail("expected all, none, a block's number from 0 on, a range such as 0-11, or a list of these");
    return static_cast<std::size_t>(result);
  };
  const std::size_t first = number(text.substr(0, dash)),
                    last = dash == std::string::npos ? first : number(text.substr(dash + 1));
  if (last < first) value.fail(fmt::format("block {} is before block {}", last, first));
  while (parts.size() < last + 2) parts.push_back(parts.back());  // those behind the last named one are as before
  for (std::size_t block = first; block <= last; ++block) parts[block] |= bit;
}

/// Parts of blocks that run again or wait on the host: a list of parts of all blocks, or blocks by part.
BlockTreatments read_parts(const config::Value& value) {
  BlockTreatments result{{0}};
  if (value.is_list()) {
    for (const config::Value& item : value.list())
      result.parts[0] |= static_cast<std::uint8_t>(item.choice<BlockPart>(kBlockParts));
  } else {
    const Mapping mapping(value, {"block", "attention", "feed-forward", "activation", "offload"});
    for (const auto& [name, part] : kBlockParts) read_blocks(mapping[name], part, result.parts);
  }
  const auto bit = [](BlockPart part) { return static_cast<std::uint8_t>(part); };
  for (std::size_t block = 0; block < result.parts.size(); ++block) {
    const std::uint8_t bits = result.parts[block];
    const bool nested = ((bits & bit(BlockPart::block)) != 0 && bits != bit(BlockPart::block)) ||
                        ((bits & bit(BlockPart::feed_forward)) != 0 && (bits & bit(BlockPart::activation)) != 0);
    if (nested)
      value.fail(
          fmt::format("block {} runs again, and a part of what runs again with it: expected one of both", block));
  }
  return result;
}

}  // namespace

void read_checkpointing(const Mapping& mapping, TrainingDescription& t) {
  const config::Value key = mapping["activation_checkpointing"];
  if (key.exists() && (key.is_mapping() || key.is_list())) {
    t.treated_blocks = read_parts(key);
    if (t.treated_blocks.any()) t.activation_checkpointing = ActivationCheckpointing::parts;
  } else {
    t.activation_checkpointing = key.choice<ActivationCheckpointing>(kCheckpointing, ActivationCheckpointing::none);
  }
  t.checkpointed_every = mapping["checkpointed_every"].integer({1, 1 << 16}, 1);
}

void read_compile_unit(const Mapping& mapping, TrainingDescription& t, bool compile) {
  const config::Value key = mapping["compile_unit"];
  if (!key.exists()) return;
  const bool blocks = key.choice<bool>(kUnits);
  if (!compile) key.fail("goes with training.compile: true");
  if (t.parallel.gpus() == 1) t.parallel.block_by_block = blocks;
  else if (blocks != t.parallel.compiles_blocks())
    key.fail(blocks ? "blocks over several GPUs goes with strategies fsdp, zero2 and hsdp: expected model"
                    : "sharded networks are compiled block by block: expected blocks");
}

void check_checkpointing(const Mapping& mapping, const TrainingDescription& t, bool compile) {
  if (t.activation_checkpointing == ActivationCheckpointing::selective && !t.parallel.megatron())
    mapping["activation_checkpointing"].fail("selective goes with training.parallel.framework: megatron");
  const bool torch_alone = !t.parallel.megatron() && !t.parallel.deepspeed() && t.parallel.tensor == 1;
  if (t.activation_checkpointing == ActivationCheckpointing::operations &&
      (t.parallel.pipelined() || (compile ? !t.parallel.compiles_blocks() : !torch_alone)))
    mapping["activation_checkpointing"].fail(
        "operations goes with compiled blocks (compile: true, strategy fsdp, zero2 or hsdp, or tensor parallel ranks), "
        "and without torch.compile with a network written out (code: plain) whose layers are whole");
  if (t.activation_checkpointing == ActivationCheckpointing::parts) {
    const config::Value key = mapping["activation_checkpointing"];
    if (compile) key.fail("parts of blocks under torch.compile are not modelled: expected none, block or operations");
    if (t.parallel.megatron() || t.parallel.pipelined())
      key.fail("parts of blocks go with torch's network whole on each rank: expected none, block or selective");
    if (t.checkpointed_every > 1) mapping["checkpointed_every"].fail("the parts name their blocks: expected 1");
  }
  if (t.checkpointed_every > 1 && (t.parallel.megatron() || t.parallel.deepspeed()))
    mapping["checkpointed_every"].fail("with frameworks other than torch is not modelled: expected 1");
}

void check_kept_operations(const ModelDescription& model, const TrainingDescription& t, bool compile,
                           const config::Value& section) {
  const auto reruns = [&](BlockPart part) { return t.treated_blocks.has(part); };
  if (model.program.given() &&
      (reruns(BlockPart::attention) || reruns(BlockPart::feed_forward) || reruns(BlockPart::activation)))
    section["activation_checkpointing"].fail("a program has no such parts: expected block or offload");
  if (t.activation_checkpointing != ActivationCheckpointing::operations || compile || model.written_plain()) return;
  section["activation_checkpointing"].fail(
      "operations goes with compiled blocks (compile: true), and without torch.compile with a network written out "
      "(model.code: plain)");
}

/// torch.compile goes with DistributedDataParallel, which cuts its graph, and with fully_shard and tensor parallel
/// ranks, where scripts compile block by block.
void check_compiled(const Mapping& mapping, const TrainingDescription& t, bool compile) {
  if (!compile) return;
  const ParallelDescription& how = t.parallel;
  const bool replicated = how.strategy == DataStrategy::ddp || how.strategy == DataStrategy::zero1;
  const bool sharded = how.shards_parameters() && how.strategy != DataStrategy::fsdp1;
  if (how.context > 1 || how.expert > 1 || how.pipelined() || how.split > 1 || how.megatron() ||
      (!replicated && !sharded) || (how.tensor > 1 && how.gradient_ranks() > 1 && !sharded))
    mapping["compile"].fail(
        "over several GPUs is modelled with strategy: ddp and zero1, with fsdp, zero2 and hsdp (block by block), and "
        "over tensor parallel ranks without ddp around them; sequences and experts whole on each, without stages");
  if (!how.compiles_blocks() && t.activation_checkpointing != ActivationCheckpointing::none)
    mapping["activation_checkpointing"].fail(
        "under torch.compile, DistributedDataParallel's graph is cut at its buckets, and PyTorch cuts none with "
        "checkpointed blocks: expected none");
}

}  // namespace ridgeline
