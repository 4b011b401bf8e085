#include "sim/answer/changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/answer/step_run.h"
#include "sim/scenario/descriptions.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

bool could_be_fused(const OptimizerDescription& optimizer) {
  const bool has_fused = optimizer.kind == OptimizerKind::adamw || optimizer.kind == OptimizerKind::adam ||
                         optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::sgd_momentum;
  return has_fused && optimizer.implementation != OptimizerImplementation::fused;
}

/// Of the step, idle or in point-wise kernels, from which on what shortens it is tried.
constexpr double kWorthAShare = 0.1;

/// What helps a model in use; there is no optimizer, and nothing is kept for a backward pass.
std::vector<Change> inference_changes(const Scenario& s) {
  std::vector<Change> out;
  const Precision precision = s.training.precision;
  if (precision != Precision::bf16 && s.gpu.sm.rates.tensor_bf16 > 0)
    out.push_back({"inference.precision=bf16", "half the bytes of weights, keys and values, and faster tensor cores",
                   [](Scenario& c) { c.training.precision = Precision::bf16; }});
  if (s.training.attention == AttentionRequest::eager || s.training.attention == AttentionRequest::math)
    out.push_back({"inference.attention=sdpa", "the score matrix is never written",
                   [](Scenario& c) { c.training.attention = AttentionRequest::sdpa; }});
  if (s.training.inference->cache == KeyValueCache::none && s.training.inference->new_tokens > 1)
    out.push_back({"inference.cache=dynamic", "earlier tokens are not run again",
                   [](Scenario& c) { c.training.inference->cache = KeyValueCache::dynamic; }});
  if (!s.allocator.expandable_segments)
    out.push_back({"allocator.expandable_segments=true", "segments grow, so that less lies unused between tensors",
                   [](Scenario& c) { c.allocator.expandable_segments = true; }});
  if (const std::int64_t sequences = s.training.inference->sequences; sequences > 1)
    out.push_back({fmt::format("inference.sequences={}", sequences / 2), "half as many sequences side by side",
                   [sequences](Scenario& c) {
                     c.training.inference->sequences = sequences / 2;
                     c.training.micro_batch = sequences / 2 * c.training.inference->beams;
                   }});
  return out;
}

/// DeepSpeed's stages, and the size of their buckets, which is as large for a small network.
std::vector<Change> with_zero_changes(const TrainingDescription& t, std::vector<Change> out) {
  if (t.parallel.gradient_ranks() == 1) return out;
  if (t.parallel.strategy == DataStrategy::zero1)
    out.push_back({"training.parallel.strategy=zero2", "each rank keeps the gradients of its share",
                   [](Scenario& c) { c.training.parallel.strategy = DataStrategy::zero2; }});
  if (t.parallel.strategy == DataStrategy::zero2)
    out.push_back({"training.parallel.strategy=zero3", "parameters are cut over the GPUs too",
                   [](Scenario& c) { c.training.parallel.strategy = DataStrategy::zero3; }});
  if (!t.parallel.zero.overlap_comm.value_or(t.parallel.strategy == DataStrategy::zero3))
    out.push_back({"training.parallel.zero_optimization.overlap_comm=true",
                   "gradients are reduced beside the backward pass",
                   [](Scenario& c) { c.training.parallel.zero.overlap_comm = true; }});
  constexpr std::int64_t kSmaller = 50'000'000;
  if (t.parallel.zero.reduce_bucket_size > kSmaller)
    out.push_back({"training.parallel.zero_optimization.reduce_bucket_size=5e7", "the buffer of gradients is smaller",
                   [](Scenario& c) { c.training.parallel.zero.reduce_bucket_size = kSmaller; }});
  return out;
}

/// What costs several GPUs less communication or memory. Neither torch.compile nor CUDA graphs are predicted for them.
std::vector<Change> with_parallel_changes(const Scenario& s, std::vector<Change> out) {
  const TrainingDescription& t = s.training;
  if (t.parallel.megatron()) {
    if (t.parallel.tensor > 1 && !t.parallel.sequence_parallel)
      out.push_back({"training.parallel.sequence_parallel=true", "norms and residuals are split over the ranks too",
                     [](Scenario& c) { c.training.parallel.sequence_parallel = true; }});
    if (t.parallel.data > 1 && t.parallel.strategy == DataStrategy::ddp)
      out.push_back({"training.parallel.strategy=zero1", "each rank updates and keeps states for its share",
                     [](Scenario& c) { c.training.parallel.strategy = DataStrategy::zero1; }});
    return out;
  }
  if (t.parallel.deepspeed()) return with_zero_changes(t, std::move(out));
  if (t.parallel.gradient_ranks() == 1) return out;
  if (t.gradient_accumulation > 1 && !t.parallel.no_sync)
    out.push_back({"training.parallel.no_sync=true", "gradients are exchanged once a step, not once a micro-batch",
                   [](Scenario& c) { c.training.parallel.no_sync = true; }});
  if (t.parallel.shards_parameters()) {
    if (t.parallel.reshard_after_forward.ranks != 1)
      out.push_back({"training.parallel.reshard_after_forward=false", "parameters are gathered once, and stay",
                     [](Scenario& c) { c.training.parallel.reshard_after_forward = {1}; }});
    return out;
  }
  if (!t.parallel.gradient_as_bucket_view && t.parallel.strategy == DataStrategy::ddp)
    out.push_back({"training.parallel.gradient_as_bucket_view=true", "gradients live in the buckets: no second copy",
                   [](Scenario& c) { c.training.parallel.gradient_as_bucket_view = true; }});
  if (t.lora && t.lora->frozen != FrozenWeights::as_stored) return out;  // weights of four bits are not sharded
  out.push_back({"training.parallel.strategy=fsdp", "parameters, gradients and states are cut over the GPUs",
                 [](Scenario& c) { c.training.parallel.strategy = DataStrategy::fsdp; }});
  return out;
}

/// A recorded step runs as it was recorded: only what lies around it can be changed.
std::vector<Change> replay_changes(const Scenario& s, const StepShares& shares) {
  std::vector<Change> out;
  if (!s.cuda_graphs && shares.idle > kWorthAShare)
    out.push_back(
        {"training.cuda_graphs=true", "the GPU waits for the host now", [](Scenario& c) { c.cuda_graphs = true; }});
  return out;
}

}  // namespace

std::vector<config::Override> overrides_of(std::span<const std::string> sets) {
  std::vector<config::Override> changes;
  for (std::string_view set : sets)
    while (!set.empty()) {
      const std::size_t end = std::min(set.find(' '), set.size());
      changes.push_back(config::parse_override(set.substr(0, end)));
      set.remove_prefix(std::min(set.size(), end + 1));
    }
  return changes;
}

namespace {

/// Nothing where the program refuses them.
std::optional<Scenario> read_with(const AskedScenario& asked, std::span<const std::string> sets, Descriptions& known) {
  try {
    return load_changed(asked, overrides_of(sets), known);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// Changes can be read as the scenario was.
bool is_in_words(const Scenario& scenario) { return scenario.asked != nullptr && scenario.recorded == nullptr; }

}  // namespace

bool accepts(const Scenario& scenario, std::span<const std::string> sets, Descriptions& known) {
  return !is_in_words(scenario) || read_with(*scenario.asked, sets, known).has_value();
}

std::optional<Scenario> with_change(const Scenario& scenario, const Change& change, Descriptions& known) {
  if (is_in_words(scenario)) return read_with(*scenario.asked, {&change.set, 1}, known);
  Scenario changed = scenario;
  change.apply(changed);
  return changed;
}

std::vector<Change> time_changes(const Scenario& s, const StepShares& shares) {
  if (s.recorded) return replay_changes(s, shares);
  if (s.training.inference) return {};  // what saves memory here saves time as well
  std::vector<Change> out;
  const auto add = [&](std::string set, std::string why, std::function<void(Scenario&)> apply) {
    out.push_back({std::move(set), std::move(why), std::move(apply)});
  };
  const bool predicts_tokens = s.model.head == ModelHead::language_model || s.model.head == ModelHead::masked_lm ||
                               s.model.head == ModelHead::pretraining;
  if (predicts_tokens && !s.model.program.given() && !s.training.parallel.megatron() && s.model.vocabulary % 64 != 0) {
    const std::int64_t padded = (s.model.vocabulary + 63) / 64 * 64;
    add(fmt::format("model.vocabulary={}", padded), "a multiple of 64 suits the tensor cores' tiles",
        [padded](Scenario& c) { c.model.vocabulary = padded; });
  }
  const MathRates& rates = s.gpu.sm.rates;
  const Precision precision = s.training.precision;
  if (precision == Precision::fp32 && rates.tensor_tf32 > 0)
    add("training.precision=tf32", "matrix products on the tensor cores, fp32 in memory", [](Scenario& c) {
      c.training.precision = Precision::tf32;
      c.training.tf32 = true;
    });
  if (precision == Precision::fp32 || precision == Precision::tf32) {
    if (rates.tensor_bf16 > 0)
      add("training.precision=amp-bf16", "half the bytes and faster tensor cores",
          [](Scenario& c) { c.training.precision = Precision::amp_bf16; });
    else if (rates.tensor_fp16 > 0)
      add("training.precision=amp-fp16", "half the bytes and tensor cores",
          [](Scenario& c) { c.training.precision = Precision::amp_fp16; });
  }
  if (s.training.attention == AttentionRequest::eager)
    add("training.attention=sdpa", "the score matrix is never written",
        [](Scenario& c) { c.training.attention = AttentionRequest::sdpa; });
  if (could_be_fused(s.training.optimizer))
    add("training.optimizer.implementation=fused", "one sweep over weights and states",
        [](Scenario& c) { c.training.optimizer.implementation = OptimizerImplementation::fused; });
  if (s.training.activation_checkpointing != ActivationCheckpointing::none)
    add("training.activation_checkpointing=none", "no second forward pass",
        [](Scenario& c) { c.training.activation_checkpointing = ActivationCheckpointing::none; });
  if (s.training.gradient_accumulation > 1 && !s.training.parallel.pipelined()) {
    const std::int64_t batch = s.training.micro_batch * s.training.gradient_accumulation;
    add(fmt::format("training.micro_batch={} training.gradient_accumulation=1", batch),
        "one larger batch fills the GPU better", [batch](Scenario& c) {
          c.training.micro_batch = batch;
          c.training.gradient_accumulation = 1;
        });
  }
  if (s.cluster && s.training.parallel.pipelined()) return out;
  if (s.cluster && s.training.parallel.several()) return with_parallel_changes(s, std::move(out));
  const bool can_compile = s.software.has_compile && !s.training.optimizer.in_backward;
  if (!s.compile && can_compile && (shares.idle > kWorthAShare || shares.elementwise > kWorthAShare))
    add("training.compile=true",
        shares.idle > shares.elementwise ? "generated code asks less of the host than Python does"
                                         : "generated kernels do chains of point-wise operations in one sweep",
        [](Scenario& c) { c.compile = true; });
  if (!s.cuda_graphs && shares.idle > kWorthAShare)
    add("training.cuda_graphs=true", "the GPU waits for the host now", [](Scenario& c) { c.cuda_graphs = true; });
  return out;
}

namespace {

/// Weights of NF4 as PEFT prepares them: under autocast all others are in fp32, and blocks are checkpointed.
Change four_bit_weights(const TrainingDescription& t) {
  std::string set = "training.lora.frozen_weights=nf4";
  const bool autocast = t.autocast_type().has_value();
  const bool checkpointed = t.activation_checkpointing != ActivationCheckpointing::none;
  const DType adapters = autocast ? DType::fp32 : t.lora->dtype;
  if (autocast) set += " training.weight_dtype=fp32";
  if (autocast && !checkpointed) set += " training.activation_checkpointing=block";
  if (autocast || adapters != DType::fp32) set += fmt::format(" training.lora.dtype={}", name_of(adapters));
  return {std::move(set), "frozen weights of blocks in four bits (bitsandbytes)", [=](Scenario& c) {
            c.training.lora->frozen = FrozenWeights::nf4;
            c.training.lora->dtype = adapters;
            if (!autocast) return;
            c.training.weight_dtype.reset();
            if (!checkpointed) c.training.activation_checkpointing = ActivationCheckpointing::block;
          }};
}

}  // namespace

std::vector<Change> memory_changes(const Scenario& s) {
  if (s.recorded) {
    if (s.allocator.expandable_segments || !knows_allocations(s)) return {};
    return {{"allocator.expandable_segments=true", "segments grow, so that less lies unused between tensors",
             [](Scenario& c) { c.allocator.expandable_segments = true; }}};
  }
  if (s.training.inference) return inference_changes(s);
  std::vector<Change> out;
  const TrainingDescription& t = s.training;
  if (t.attention == AttentionRequest::eager || t.attention == AttentionRequest::math)
    out.push_back({"training.attention=sdpa", "the score matrix is never written",
                   [](Scenario& c) { c.training.attention = AttentionRequest::sdpa; }});
  if (could_be_fused(t.optimizer))
    out.push_back({"training.optimizer.implementation=fused", "no temporaries as large as the weights",
                   [](Scenario& c) { c.training.optimizer.implementation = OptimizerImplementation::fused; }});
  if (!s.allocator.expandable_segments)
    out.push_back({"allocator.expandable_segments=true", "segments grow, so that less lies unused between tensors",
                   [](Scenario& c) { c.allocator.expandable_segments = true; }});
  if (t.micro_batch > 1 && !t.optimizer.in_backward) {
    // Half as much at a time where that keeps the batch of a step, else one sequence after the other.
    const std::int64_t parts = t.micro_batch % 2 == 0 ? 2 : t.micro_batch;
    const std::int64_t micro_batch = t.micro_batch / parts, accumulation = t.gradient_accumulation * parts;
    out.push_back({fmt::format("training.micro_batch={} training.gradient_accumulation={}", micro_batch, accumulation),
                   "the same batch in smaller parts", [=](Scenario& c) {
                     c.training.micro_batch = micro_batch;
                     c.training.gradient_accumulation = accumulation;
                   }});
  }
  if (const auto type = t.autocast_type(); type && t.lora && !t.weight_dtype && !t.parallel.deepspeed())
    out.push_back({fmt::format("training.weight_dtype={}", name_of(*type)), "frozen weights in 16 bits are never cast",
                   [type](Scenario& c) { c.training.weight_dtype = *type; }});
  if (t.lora && t.lora->frozen == FrozenWeights::as_stored && !t.parallel.several() && !t.parallel.deepspeed())
    out.push_back(four_bit_weights(t));
  if (t.activation_checkpointing == ActivationCheckpointing::none)
    out.push_back({"training.activation_checkpointing=block", "a block keeps its input only and runs twice",
                   [](Scenario& c) { c.training.activation_checkpointing = ActivationCheckpointing::block; }});
  if (!t.parallel.megatron() && !t.parallel.deepspeed() &&
      (t.optimizer.kind == OptimizerKind::adamw || t.optimizer.kind == OptimizerKind::adam))
    out.push_back({"training.optimizer.name=adamw-8bit", "optimizer states of one byte (bitsandbytes)",
                   [](Scenario& c) { c.training.optimizer.kind = OptimizerKind::adamw_8bit; }});
  return out;
}

std::vector<std::string> changes_that_make_it_fit(Session& session, const Scenario& scenario) {
  Descriptions known;
  std::vector<std::string> taken;
  Scenario current = scenario;
  const auto take = [&](const Change& change) {
    change.apply(current);
    // A batch made smaller once more replaces the one before.
    const auto key = change.set.substr(0, change.set.find('='));
    std::erase_if(taken, [&](const std::string& set) { return set.starts_with(key + "="); });
    taken.push_back(change.set);
  };
  const auto memory_of = [&](const Scenario& s) { return StepRun(session, s, "analytic").memory(); };
  while (true) {
    const std::vector<Change> changes = memory_changes(current);
    const Change* smallest = nullptr;
    std::int64_t needed = memory_of(current).needed;
    for (const Change& change : changes) {
      std::vector<std::string> sets = taken;
      sets.push_back(change.set);
      if (!accepts(scenario, sets, known)) continue;
      Scenario changed = current;
      change.apply(changed);
      try {
        const MemoryPrediction memory = memory_of(changed);
        if (memory.fits) {
          take(change);
          return taken;
        }
        if (memory.needed >= needed) continue;
        needed = memory.needed;
        smallest = &change;
      } catch (const UserError&) {
        continue;
      }
    }
    if (smallest == nullptr) return {};
    take(*smallest);
  }
}

}  // namespace ridgeline
