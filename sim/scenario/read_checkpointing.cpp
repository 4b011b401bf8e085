#include "sim/scenario/read_checkpointing.h"

#include <array>
#include <string_view>
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

}  // namespace

void read_checkpointing(const Mapping& mapping, TrainingDescription& t) {
  t.activation_checkpointing = mapping["activation_checkpointing"].choice<ActivationCheckpointing>(
      kCheckpointing, ActivationCheckpointing::none);
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
  if (t.checkpointed_every > 1 && (t.parallel.megatron() || t.parallel.deepspeed()))
    mapping["checkpointed_every"].fail("with frameworks other than torch is not modelled: expected 1");
}

void check_kept_operations(const ModelDescription& model, const TrainingDescription& t, bool compile,
                           const config::Value& section) {
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
