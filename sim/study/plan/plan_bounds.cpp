#include "sim/study/plan/plan_bounds.h"

#include <algorithm>
#include <functional>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/peak.h"
#include "sim/memory/memory_run.h"
#include "sim/workload/composition.h"
#include "sim/workload/families/composed_families.h"
#include "sim/workload/families/family.h"
#include "sim/workload/parallel/schedule.h"

namespace ridgeline {
namespace {

/// The FLOPs of a causal model count scores in full; a kernel may leave half of them out.
constexpr double kCausalShare = 0.5;
/// Of a forward and backward pass, the forward one is a third or less where blocks run again.
constexpr double kForwardShare = 0.25;

/// Of a stage's parameters, those of blocks are this share at least: tables are sharded apart.
constexpr double kWholeBlocks = 0.5;

/// Bytes of a parameter on a rank, before anything is shared out.
struct StateBytes {
  double weights = 4.0, gradients = 4.0, optimizer = 8.0;
};

double state_bytes(OptimizerKind kind, double element) {
  switch (kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam:
    case OptimizerKind::bert_adam:
    case OptimizerKind::lamb:
    case OptimizerKind::schedule_free_adamw:
    case OptimizerKind::adamw_kahan: return 2.0 * element;
    case OptimizerKind::adamw_8bit: return 2.0;
    case OptimizerKind::lion_8bit: return 1.0;
    case OptimizerKind::lion:
    case OptimizerKind::muon:
    case OptimizerKind::sgd_momentum: return element;
    case OptimizerKind::sgd:
    case OptimizerKind::adafactor:
    case OptimizerKind::none: break;
  }
  return 0.0;
}

StateBytes bytes_of_states(const TrainingDescription& t) {
  if (t.lora)
    return {t.lora->frozen == FrozenWeights::as_stored ? 2.0
            : t.lora->frozen == FrozenWeights::int8    ? 1.0
                                                       : 0.5,
            0.0, 0.0};
  const bool half = t.precision == Precision::bf16 || t.precision == Precision::apex_o2 ||
                    (t.parallel.megatron() && t.precision != Precision::fp32 && t.precision != Precision::tf32);
  if (!half) return {4.0, 4.0, state_bytes(t.optimizer.kind, 4.0)};
  if (t.precision == Precision::bf16) return {2.0, 2.0, state_bytes(t.optimizer.kind, 2.0)};
  return {2.0, 2.0, 4.0 + state_bytes(t.optimizer.kind, 4.0)};  // fp32 copies
}

/// Ranks over which shards are spread.
double shards(const ParallelDescription& p) {
  return static_cast<double>(p.gradient_ranks()) / static_cast<double>(p.replicate);
}

/// Weights of experts, which are spread over ranks of their own; the least of them.
double parameters_of_experts(const ModelDescription& model) {
  if (!model.composition.given()) return 0.0;
  return static_cast<double>(model.composition->stack.weights_of_experts());
}

/// Of the blocks alone: tables may be whole on each tensor parallel rank, and small models are mostly tables.
double parameters_of_rank(const Scenario& s) {
  const ParallelDescription& p = s.training.parallel;
  const double all = static_cast<double>(parameter_count(s.model));
  const double elsewhere =
      p.expert == 1 ? 0.0 : parameters_of_experts(s.model) * (1.0 - 1.0 / static_cast<double>(p.expert));
  // Shards are as many of either kind.
  if (p.shards_parameters()) return all / static_cast<double>(p.tensor * p.pipeline);
  return (all - elsewhere) / static_cast<double>(p.tensor * p.pipeline);
}

/// Of those that all data parallel ranks keep equal.
double shared_parameters(const Scenario& s) {
  const double spread = s.training.parallel.expert > 1 ? parameters_of_experts(s.model) : 0.0;
  const ParallelDescription& p = s.training.parallel;
  return parameters_of_rank(s) -
         spread / static_cast<double>(p.tensor * p.pipeline * (p.shards_parameters() ? 1 : p.expert));
}

struct HeldBytes {
  double always = 0.0;     ///< weights, states of the optimizer, buckets of gradients
  double gradients = 0.0;  ///< at the end of a backward pass, and while further micro-batches run
};

HeldBytes states_of_rank(const Scenario& s) {
  const TrainingDescription& t = s.training;
  const ParallelDescription& p = t.parallel;
  const StateBytes each = bytes_of_states(t);
  const double parameters = parameters_of_rank(s), n = shards(p);
  if (p.shards_parameters()) {
    const double whole = p.strategy == DataStrategy::zero2 && n > 1.0 ? std::min(2.0, each.weights) : 0.0;
    // Stages keep blocks whole and gradients unreduced until the last backward pass.
    if (p.pipelined())
      return {parameters * (each.weights + each.optimizer) / n,
              kWholeBlocks * parameters * (std::min(2.0, each.weights) + std::min(2.0, each.gradients))};
    return {parameters * (each.weights + each.optimizer) / n, parameters * (each.gradients / n + whole)};
  }
  const double optimizer =
      p.strategy == DataStrategy::zero1 ? each.optimizer / static_cast<double>(p.gradient_ranks()) : each.optimizer;
  const bool has_buckets = p.gradient_ranks() > 1 && !p.megatron() && !p.gradient_as_bucket_view;
  return {parameters * (each.weights + optimizer) + (has_buckets ? shared_parameters(s) * each.gradients : 0.0),
          parameters * each.gradients};
}

/// Passes of a stage whose activations the fullest rank holds at once, at least: those of a shorter step of the same
/// schedule.
double passes_held(const Scenario& s) {
  const ParallelDescription& p = s.training.parallel;
  const std::int64_t all = s.training.gradient_accumulation;
  if (p.schedule == PipelineSchedule::gpipe) return static_cast<double>(all);
  parallel::PipelineShape shape = parallel::shape_of(p, std::min(all, 4 * p.pipeline * p.virtual_stages));
  if (!parallel::complaint(shape).empty()) shape = parallel::shape_of(p, all);
  std::int64_t most = 0;
  for (const parallel::RankActions& rank : parallel::make_schedule(shape)) {
    std::int64_t now = 0;
    for (const parallel::StageAction& action : rank) {
      using Kind = parallel::StageAction::Kind;
      if (action.kind == Kind::forward) most = std::max(most, ++now);
      if (action.kind == Kind::backward || action.kind == Kind::backward_input) --now;
    }
  }
  return static_cast<double>(most);
}

/// What the loss keeps of a micro-batch, at least.
double logits_of_micro_batch(const Scenario& s) {
  const TrainingDescription& t = s.training;
  if (s.model.program.given() || families::composition_of(s.model)->stack.head != HeadKind::language_model ||
      t.loss_code == LossCode::chunked)
    return 0.0;
  const double tokens = static_cast<double>(t.micro_batch) * static_cast<double>(t.tokens_of_rank());
  return 2.0 * tokens * static_cast<double>(s.model.vocabulary) / static_cast<double>(t.parallel.tensor);
}

double activations_of_rank(const Scenario& s, const MicroStep& micro_step) {
  if (s.compile) return 0.0;
  const double sure = 1.0 - kMicroStepMargin;
  if (!s.training.parallel.pipelined()) return sure * micro_step.activations;
  const ParallelDescription& p = s.training.parallel;
  const auto blocks = static_cast<double>(s.model.layers / (p.pipeline * p.virtual_stages));  // of a stage
  const double fullest = passes_held(s) * blocks * micro_step.of_block;
  const double of_last = p.schedule == PipelineSchedule::gpipe ? passes_held(s) : 1.0;
  const double last = of_last * (blocks * micro_step.of_block + logits_of_micro_batch(s));
  return sure * std::max(fullest, last);
}

/// Of what a rank receives: one for every micro-batch of a step; ranks in the middle have as many from the other side.
double receive_buffers(const Scenario& s) {
  const TrainingDescription& t = s.training;
  if (!t.parallel.pipelined()) return 0.0;
  return static_cast<double>(t.gradient_accumulation) * static_cast<double>(bytes_between_stages(s));
}

/// FLOPs of one micro-batch over all ranks of a pipeline, on one of those that share layers or sequences.
double flops_of_micro_batch(const Scenario& s) {
  const TrainingDescription& t = s.training;
  double flops = model_flops(s.model, t.micro_batch, t.sequence_length);
  const double scores = 12.0 * static_cast<double>(t.micro_batch) * static_cast<double>(t.sequence_length) *
                        static_cast<double>(t.sequence_length) * static_cast<double>(s.model.attention_width()) *
                        static_cast<double>(s.model.layers);
  flops -= (t.packed_lengths.empty() ? kCausalShare : 1.0) * scores;
  if (t.lora) flops /= 1.5;
  // Experts that take fewer tokens than come to them.
  if (t.parallel.expert_capacity > 0.0) flops *= std::min(1.0, t.parallel.expert_capacity);
  // Embedding and head may be whole on each tensor parallel rank: fewer FLOPs than this has none.
  return std::max(0.0, flops) / static_cast<double>(t.parallel.tensor * t.parallel.context);
}

/// Micro-batches' worth of work until the busiest rank is done, a pass over a whole network being one: those of a rank
/// and the way to and from it.
double passes(const ParallelDescription& p, std::int64_t micro_batches) {
  const auto stages = static_cast<double>(p.pipeline);
  const double drain = parallel::splits_backward(p.schedule) ? kForwardShare : 1.0;
  return (static_cast<double>(micro_batches) + drain * (stages - 1.0) / static_cast<double>(p.virtual_stages)) / stages;
}

/// The kernels of the rank that is done last by its own: those of its parts for every micro-batch, behind the forward
/// passes and before the backward passes of the ranks between it and the first.
Seconds least_of_ranks(const Scenario& s, const MicroStep& micro_step) {
  ParallelDescription p = s.training.parallel;
  Seconds longest;
  if (!p.pipelined() || micro_step.block <= Seconds{}) return longest;
  const double drain = parallel::splits_backward(p.schedule) ? kForwardShare : 1.0;
  const auto blocks = static_cast<double>(s.model.layers / (p.pipeline * p.virtual_stages));  // of a stage, at least
  std::vector<std::int64_t> kinds = families::kinds_of_blocks(s.model, {0, s.model.layers});
  const bool several_kinds = std::adjacent_find(kinds.begin(), kinds.end(), std::not_equal_to<>()) != kinds.end();
  for (p.pipeline_rank = 0; p.pipeline_rank < p.pipeline; ++p.pipeline_rank) {
    Seconds own;
    // Blocks of several kinds: the ranks have as much of the average block on average, and no more is known of one.
    if (several_kinds) own = micro_step.block * (blocks * static_cast<double>(p.virtual_stages));
    for (const families::StagePart& part : families::parts_of(s.model, p))
      if (!several_kinds)
        own += micro_step.block * static_cast<double>(part.last - part.first) +
               (part.embedding ? micro_step.embedding : Seconds{}) + (part.head ? micro_step.head : Seconds{});
    const Seconds way =
        several_kinds ? Seconds{} : micro_step.block * (blocks * drain * static_cast<double>(p.pipeline_rank));
    longest = std::max(longest, own * static_cast<double>(s.training.gradient_accumulation) + way);
  }
  return longest;
}

/// Weights, gradients and states are read once at least.
Seconds least_optimizer_time(const Scenario& s) {
  const TrainingDescription& t = s.training;
  const ParallelDescription& p = t.parallel;
  const StateBytes each = bytes_of_states(t);
  const double share = p.strategy == DataStrategy::ddp ? 1.0 : shards(p);
  const double l2 = s.gpu.l2.capacity.value();
  const double bytes = parameters_of_rank(s) * (each.weights + each.gradients + each.optimizer) / share - l2;
  return Bytes{std::max(0.0, bytes)} / s.gpu.dram.bandwidth;
}

Seconds least_communication(const Scenario& s) {
  const TrainingDescription& t = s.training;
  const ParallelDescription& p = t.parallel;
  if (p.gradient_ranks() < 2 || t.lora) return {};
  const bool shards_all = p.shards_parameters();
  // In the smallest type that gradients are sent in; hsdp's groups are not looked at.
  if (p.strategy == DataStrategy::hsdp) return {};
  const auto bytes = static_cast<std::int64_t>(shared_parameters(s) * 2.0);
  const Collective gradients{.kind = shards_all ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                             .group = GroupKind::data,
                             .type = DType::bf16,
                             .ranks = p.gradient_ranks(),
                             .bytes = bytes};
  return time_of_collective(s, gradients).time;
}

/// Layers of attention that one rank runs, forward and backward, in a step.
double attentions(const Scenario& s) {
  return static_cast<double>(s.model.layers * s.training.gradient_accumulation) /
         static_cast<double>(s.training.parallel.pipeline);
}

/// What ranks that share sequences exchange, one after the other on one stream: keys and values of 16 bits, forward and
/// backward, and gradients in fp32 in every turn.
Seconds least_exchange(const Scenario& s) {
  const TrainingDescription& t = s.training;
  const std::int64_t ranks = t.parallel.context;
  if (ranks < 2) return {};
  const std::int64_t heads = std::max<std::int64_t>(1, s.model.key_value_count() / t.parallel.tensor),
                     own = 2 * t.micro_batch * t.tokens_of_rank() * heads * s.model.head_dim();
  const auto time_of = [&](CollectiveKind kind, DType type, std::int64_t elements) {
    return time_of_collective(s, {kind, GroupKind::context, type, ranks, elements * bytes_of(type)}).time;
  };
  const bool gathers = t.parallel.rotation == ContextRotation::all_gather;
  const Seconds keys = gathers ? time_of(CollectiveKind::all_gather, DType::bf16, own * ranks)
                               : time_of(CollectiveKind::send_recv, DType::bf16, own) * static_cast<double>(ranks - 1);
  const Seconds gradients = time_of(CollectiveKind::send_recv, DType::fp32, own) * static_cast<double>(ranks);
  return (keys * 2.0 + gradients) * attentions(s);
}

/// What their attention costs the host at least: kernels of attention and what merges them, turn by turn.
Seconds least_host_of_turns(const Scenario& s) {
  const std::int64_t ranks = s.training.parallel.context;
  if (ranks < 2) return {};
  constexpr double kKernels = 2.0, kPointwise = 10.0;  // of a turn, forward and backward
  const HostParts& parts = s.host.parts;
  const double factor = s.host.scale * std::min({parts.python, parts.dispatcher, parts.autograd, parts.allocation,
                                                 parts.launch, parts.backward});
  const auto cost = [&](HostClass what) { return s.host.class_costs[static_cast<std::size_t>(what)] * factor; };
  const Seconds turn = cost(HostClass::attention_fused) * kKernels + cost(HostClass::pointwise) * kPointwise;
  return turn * (static_cast<double>(ranks) * attentions(s));
}

}  // namespace

std::int64_t least_memory(const Scenario& s, const MicroStep& micro_step) {
  const HeldBytes states = states_of_rank(s);
  const double activations = activations_of_rank(s, micro_step);
  const bool gradients_stay = s.training.gradient_accumulation > 1 && !s.training.parallel.pipelined();
  const double more = gradients_stay ? states.gradients + activations : std::max(states.gradients, activations);
  return static_cast<std::int64_t>(states.always + more + receive_buffers(s)) + context_bytes(s.gpu, s.software) +
         communicator_bytes(s);
}

Seconds least_time(const Scenario& s, const MicroStep& micro_step) {
  const TrainingDescription& t = s.training;
  const double often = passes(t.parallel, t.gradient_accumulation), sure = 1.0 - kMicroStepMargin;
  const Seconds arithmetic =
      Seconds{flops_of_micro_batch(s) * often / peak_of_precision(t.compute_precision(), s.gpu).value()};
  const Seconds kernels = std::max(micro_step.kernels * often, least_of_ranks(s, micro_step)) * sure;
  const Seconds all = micro_step.first + micro_step.further * static_cast<double>(t.gradient_accumulation - 1);
  const Seconds one_after_the_other = all * (sure / static_cast<double>(t.parallel.pipeline));
  return std::max({std::max(arithmetic, kernels) + least_optimizer_time(s), one_after_the_other, least_communication(s),
                   least_exchange(s), least_host_of_turns(s)});
}

}  // namespace ridgeline
