#include "sim/answer/parallel/communication.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "sim/network/communicator_memory.h"
#include "sim/occupancy/occupancy.h"
#include "sim/program/launched_kernels.h"
#include "sim/workload/composition.h"
#include "sim/workload/families/stage_part.h"

namespace ridgeline {
namespace {

const Collective* collective_of(const StepProgram& program, const Action& action) {
  if (action.call == Action::kNoCall) return nullptr;
  return std::get_if<Collective>(&program.trace->ops[program.trace->calls[action.call].op]);
}

/// Of a group that reaches over stages, of which as many run at once as there are groups beside it.
Placement placement_over_stages(const Scenario& scenario, const Collective& collective) {
  const ParallelDescription& how = scenario.training.parallel;
  const std::int64_t a_node = scenario.cluster->gpus, of_stage = how.tensor * how.gradient_ranks();
  Placement result{.ranks = static_cast<int>(collective.ranks),
                   .ranks_a_node = static_cast<int>(collective.ranks),
                   .nodes = 1,
                   .stride = static_cast<int>(collective.group == GroupKind::model ? 1 : of_stage),
                   .groups_a_nic = 1};
  if (how.gpus() <= a_node) return result;
  const std::int64_t together = collective.group == GroupKind::embedding
                                    ? 1
                                    : std::min(how.tensor, a_node) * std::max<std::int64_t>(1, a_node / of_stage);
  result.ranks_a_node = static_cast<int>(std::min(collective.ranks, together));
  result.nodes = static_cast<int>((collective.ranks + result.ranks_a_node - 1) / result.ranks_a_node);
  result.groups_a_nic = static_cast<int>(std::max<std::int64_t>(1, std::min(of_stage, a_node) / result.ranks_a_node));
  return result;
}

/// How often the thread of ProcessGroupNCCL looks (kWatchdogThreadSleepMillis of ProcessGroupNCCL.hpp).
constexpr Seconds kWatchdog{0.1};

/// Whether gradients go through buckets of DistributedDataParallel that live from step to step.
bool keeps_buckets(const Scenario& scenario) {
  const ParallelDescription& how = scenario.training.parallel;
  return scenario.cluster && how.gradient_ranks() > 1 && !how.megatron() && !how.deepspeed() &&
         !how.shards_parameters() && !how.one_process() && scenario.training.data_parallel != DataParallel::apex;
}

/// Bytes of the buckets that DistributedDataParallel makes when it wraps a network: trained parameters alone, and no
/// experts that are spread over ranks.
std::int64_t first_buckets(const OpTrace& trace) {
  std::int64_t bytes = 0;
  const std::uint32_t begin = trace.steps.empty() ? 0 : trace.steps.front().begin;
  for (std::uint32_t i = 0; i < begin; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::allocate) continue;
    const Storage& storage = trace.storages[record.index];
    if (storage.category == Category::gradients) bytes += storage.bytes;
  }
  return bytes;
}

}  // namespace

Placement placement_of(const Scenario& scenario, const Collective& collective) {
  if (collective.group == GroupKind::model || collective.group == GroupKind::embedding)
    return placement_over_stages(scenario, collective);
  const std::int64_t stride = stride_of(scenario.training.parallel, collective.group);
  Placement at = place(*scenario.cluster, static_cast<int>(collective.ranks), static_cast<int>(stride));
  const std::int64_t in_use = std::min<std::int64_t>(scenario.training.parallel.gpus(), scenario.cluster->gpus);
  at.groups_at_once = static_cast<int>(std::max<std::int64_t>(1, in_use / at.ranks_a_node));
  return at;
}

std::int64_t bytes_between_stages(const Scenario& scenario) {
  const TrainingDescription& t = scenario.training;
  const std::int64_t parts = t.parallel.megatron() ? t.parallel.tensor : 1;  // each tensor rank sends a part
  return t.micro_batch * families::most_between_stages(scenario.model, t) / parts * bytes_of(t.stage_type());
}

CollectiveTime time_between_stages(const Scenario& scenario, std::size_t from, std::size_t to, std::int64_t bytes) {
  const auto stride = static_cast<std::size_t>(stride_of(scenario.training.parallel, GroupKind::pipeline));
  const auto a_node = static_cast<std::size_t>(scenario.cluster->gpus);
  Placement between{.ranks = 2, .ranks_a_node = 2, .nodes = 1, .stride = static_cast<int>(stride), .groups_a_nic = 1};
  if (from * stride / a_node != to * stride / a_node) {
    between.ranks_a_node = 1;
    between.nodes = 2;
    between.groups_a_nic = static_cast<int>(std::min(stride, a_node));
  }
  const Collective exchange{CollectiveKind::send_recv, GroupKind::pipeline, scenario.training.stage_type(), 2, bytes};
  return collective_time(*scenario.cluster, scenario.gpu, exchange, between);
}

CollectiveTime time_of_collective(const Scenario& scenario, const Collective& collective) {
  return collective_time(*scenario.cluster, scenario.gpu, collective, placement_of(scenario, collective));
}

KernelTime kernel_time_of_collective(const Scenario& scenario, const Collective& collective) {
  const CollectiveTime alone = time_of_collective(scenario, collective);
  KernelTime result;
  result.time = alone.time;
  result.limiter = alone.limiter == CollectiveLimiter::latency ? Limiter::latency : Limiter::link;
  result.dram_read_bytes = result.dram_write_bytes = 0.5 * alone.dram.value();
  result.l2_bytes = alone.dram.value();  // all of it passes the L2
  return result;
}

StepContention::StepContention(const StepProgram& program, std::span<const KernelTime> times, const Scenario& scenario)
    : gpu_(scenario.gpu), collectives_(program.launches.size()) {
  launches_.reserve(times.size());
  // Launches that are one in the program fill SMs alike.
  std::vector<double> blocks(program.launches.size());
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const KernelLaunch& launch = program.launches[action.index];
    const KernelTime& time = times[launches_.size()];
    Launch& one = launches_.emplace_back();
    if (const Collective* collective = collective_of(program, action)) {
      std::optional<CollectiveTime>& known = collectives_[action.index];
      if (!known) known = time_of_collective(scenario, *collective);
      one.collective = &*known;
      continue;
    }
    double& most = blocks[action.index];
    if (most == 0.0) most = std::max(1, occupancy_of(gpu_.sm, launch).blocks);
    const bool of_memory = time.limiter == Limiter::dram || time.limiter == Limiter::l2;
    one.kernel = {time.time, launch.blocks(), most, Bytes(time.dram_read_bytes + time.dram_write_bytes),
                  of_memory ? 1.0 : 0.0};
  }
}

double StepContention::of_kernel(std::size_t kernel, std::size_t collective) const {
  const CollectiveTime* beside = launches_[collective].collective;
  return beside != nullptr ? compute_slowdown(gpu_, *beside, launches_[kernel].kernel) : 1.0;
}

double StepContention::of_collective(std::size_t collective, std::size_t kernel) const {
  const CollectiveTime* slowed = launches_[collective].collective;
  return slowed != nullptr ? collective_slowdown(gpu_, *slowed, launches_[kernel].kernel) : 1.0;
}

Seconds StepContention::wait_for_room(std::size_t collective, std::size_t kernel, Seconds elapsed) const {
  if (launches_[collective].collective == nullptr) return Seconds{};
  return ridgeline::wait_for_room(gpu_, launches_[kernel].kernel, elapsed);
}

void name_collectives(StepProgram& program, const Scenario& scenario) {
  if (!scenario.cluster || !program.has_streams()) return;
  std::vector<char> named(program.launches.size());
  for (const Action& action : program.actions) {
    if (action.kind != Action::Kind::launch) continue;
    const Collective* collective = collective_of(program, action);
    if (collective == nullptr || std::exchange(named[action.index], 1) != 0) continue;
    KernelLaunch launch = program.launches[action.index];
    const CollectiveTime time = time_of_collective(scenario, *collective);
    launch.name = nccl_kernel_name(*collective, time);
    launch.grid = {std::max(1, time.channels), 1, 1};
    launch.threads_per_block = std::max(1, time.threads);
    program.launches.replace(action.index, std::move(launch));
  }
}

Seconds unproven_overlap(const StepProgram& program, const Timeline& timeline, const Scenario& scenario) {
  constexpr int kMeasured = 9;  // compute capability of the GPU that measured kernels beside collectives
  Seconds covered;
  if (!scenario.cluster || scenario.gpu.compute_major == kMeasured) return covered;
  const std::vector<LaunchedKernel> kernels = launched_kernels(program);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const KernelSpan& span = timeline.kernels[i];
    if (std::holds_alternative<Collective>(*kernels[i].op)) covered += kernels[i].times * (span.taken - span.exposed);
  }
  return covered;
}

bool compresses_gradients(const Scenario& scenario) {
  const ParallelDescription& how = scenario.training.parallel;
  return keeps_buckets(scenario) && how.compression != GradientCompression::none;
}

void allow_for_held_buckets(MemoryPrediction& memory, const Scenario& scenario, const OpTrace& trace, Seconds step) {
  if (!keeps_buckets(scenario)) return;
  const ParallelDescription& how = scenario.training.parallel;
  const std::int64_t bytes = first_buckets(trace);
  if (compresses_gradients(scenario)) {
    constexpr std::int64_t kHalf = 2;  // compressed to 16 bits
    const std::int64_t exchanges = how.no_sync ? 1 : scenario.training.gradient_accumulation;
    const auto earlier = static_cast<std::int64_t>(
        std::floor(kWatchdog.value() * static_cast<double>(exchanges) / std::max(step.value(), 1e-6)));
    // The trace drops those of this step behind its backward pass.
    const std::int64_t own = memory.peak_phase == Phase::clipping || memory.peak_phase == Phase::optimizer ? 1 : 0;
    const std::int64_t held = (earlier + own) * bytes / kHalf;
    memory.peak_allocated += held;
    memory.at_peak[static_cast<std::size_t>(Category::gradients)] += held;
    // What the allocator has cached holds them as a rule; the range reaches further.
    const std::int64_t more = std::max<std::int64_t>(0, memory.peak_allocated - memory.peak_reserved);
    memory.cached_unused = std::max<std::int64_t>(0, memory.cached_unused - held);
    for (std::int64_t* value :
         {&memory.peak_reserved, &memory.device_used, &memory.needed, &memory.needed_low, &memory.needed_high})
      *value += more;
    memory.fits = memory.fits && memory.needed_high <= memory.capacity;
  }
  if (how.find_unused_parameters) return;  // buckets are never made anew
  if (scenario.training.holds_first_buckets() && how.compression == GradientCompression::none) {
    memory.needed_low -= bytes;
    return;
  }
  memory.needed_high += bytes;
  memory.fits = memory.fits && memory.needed_high <= memory.capacity;
}

namespace {

/// Of the fullest tensor parallel rank. DTensor splits layers by a scatter from the first one: it has sent to all
/// others, each of which has received.
Bytes tensor_parallel_bytes(const Cluster& cluster, const ParallelDescription& how) {
  const int ranks = static_cast<int>(how.tensor);
  if (how.tensor_style != TensorStyle::dtensor || how.megatron()) return communicator_memory(cluster, {.ranks = ranks});
  return std::max(communicator_memory(cluster, {.ranks = ranks, .sends_to = ranks - 1}),
                  communicator_memory(cluster, {.ranks = ranks, .receives_from = 1}));
}

}  // namespace

std::int64_t communicator_bytes(const Scenario& scenario) {
  const ParallelDescription& how = scenario.training.parallel;
  if (!scenario.cluster || how.gpus() == 1 || how.split > 1) return 0;
  const Cluster& cluster = *scenario.cluster;
  const auto group = [&](std::int64_t ranks) {
    return communicator_memory(cluster, {.ranks = static_cast<int>(ranks), .collectives = true, .peers = 0});
  };
  Bytes sum = nccl_base_memory(cluster);
  if (how.pipelined()) {
    // Neighbours in the pipeline; of looped schedules the last rank sends to the first too.
    const bool end = how.pipeline_rank <= 0 || how.pipeline_rank + 1 == how.pipeline;
    const bool loops = how.virtual_stages > 1 && how.schedule != PipelineSchedule::zbv;
    const int peers = how.pipeline == 2 || (end && !loops) ? 1 : 2;
    sum +=
        communicator_memory(cluster, {.ranks = static_cast<int>(how.pipeline), .collectives = false, .peers = peers});
  }
  if (how.pipelined() && how.megatron()) {
    sum += group(how.pipeline * how.tensor);
    const bool end = how.pipeline_rank <= 0 || how.pipeline_rank + 1 == how.pipeline;
    if (end && scenario.model.tie_embeddings) sum += group(2);
  }
  if (how.expert > 1) {
    // Each rank sends to all others; the norm of gradients is added up over rings.
    sum += communicator_memory(cluster, {.ranks = static_cast<int>(how.expert),
                                         .collectives = scenario.training.gradient_clipping.has_value(),
                                         .peers = static_cast<int>(how.expert - 1)});
    if (how.expert_copies() > 1) sum += group(how.expert_copies());
  }
  const std::int64_t shards = how.gradient_ranks() / how.replicate;
  if (shards > 1) sum += group(shards);
  if (how.tensor > 1) sum += tensor_parallel_bytes(cluster, how);
  if (how.context > 1) sum += group(how.context);
  if (how.replicate > 1) sum += group(how.replicate);
  // Each module gathers again from a smaller group of its own, and has one across these that nothing is sent through.
  if (how.shards_parameters() && how.reshard_after_forward.ranks > 1 && how.wrap > 0) {
    const int across = static_cast<int>(shards / how.reshard_after_forward.ranks);
    sum += static_cast<double>((scenario.model.layers + how.wrap - 1) / how.wrap) *
           (group(how.reshard_after_forward.ranks) +
            communicator_memory(cluster, {.ranks = across, .collectives = false}));
  }
  return std::llround(sum.value());
}

}  // namespace ridgeline
