#include "sim/answer/kernel_caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "sim/timeline/step_launches.h"
#include "sim/timing/kernel_profile.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/memory_bound/rereads.h"

namespace ridgeline {
namespace {

constexpr std::size_t kMostEvicted = 20;

using Names = std::vector<std::string>;

/// Inputs and outputs in the order of workload/op_operands.h; what has no name there is counted.
std::pair<Names, Names> operand_names(const Op& op) {
  if (std::holds_alternative<Matmul>(op)) return {{"A", "B", "bias"}, {"C"}};
  if (const auto* attention = std::get_if<Attention>(&op)) {
    if (attention->backward) return {{"dO", "Q", "K", "V", "O", "logsumexp", "mask"}, {"dQ", "dK", "dV"}};
    return {{"Q", "K", "V", "mask"}, {"O", "logsumexp"}};
  }
  if (const auto* softmax = std::get_if<Softmax>(&op)) {
    if (softmax->backward) return {{"dy", "y"}, {"dx"}};
    return {{"x"}, {"y"}};
  }
  if (const auto* embedding = std::get_if<Embedding>(&op)) {
    if (embedding->backward) return {{"dy", "indices"}, {"dtable"}};
    return {{"table", "indices"}, {"rows"}};
  }
  return {};
}

std::string access_name(const Access& access, const std::pair<Names, Names>& names, int inputs) {
  if (access.operand == Access::kTemporary) return "temporary";
  if (access.operand < 0) return access.list >= 0 ? fmt::format("list {}", access.list + 1) : "tensors";
  const bool input = access.operand < inputs;
  const auto place = static_cast<std::size_t>(input ? access.operand : access.operand - inputs);
  const Names& known = input ? names.first : names.second;
  return place < known.size() ? known[place] : fmt::format("{} {}", input ? "input" : "output", place + 1);
}

/// Shares `total` out by weight; evenly where none has any.
void share_out(double total, std::vector<KernelCaches::Operand*> among,
               double (*weight)(const KernelCaches::Operand&)) {
  double all = 0.0;
  for (const auto* operand : among) all += weight(*operand);
  for (auto* operand : among)
    operand->dram += total * (all > 0.0 ? weight(*operand) / all : 1.0 / static_cast<double>(among.size()));
}

/// Rows that blocks read again, from the L1 as far as it keeps them.
void add_rereads(std::vector<KernelCaches::Operand>& operands, const KernelLaunch& launch, const SmSpec& sm) {
  const auto* work = std::get_if<MemoryBoundWork>(&launch.work);
  if (work == nullptr || work->reread_bytes <= 0.0) return;
  double all = 0.0;
  for (const auto& operand : operands) all += operand.written ? 0.0 : operand.bytes;
  const double missed = l1_miss_again(launch, *work, sm);
  for (auto& operand : operands) {
    if (operand.written || all <= 0.0) continue;
    const double again = work->reread_bytes * operand.bytes / all;
    operand.loaded += again;
    operand.requested += again * missed;
  }
}

/// What the DRAM moves for each: first its bytes that are not in the L2; what the kernel moves beyond them falls on
/// what is asked for more than once.
void add_dram(std::vector<KernelCaches::Operand>& operands, const KernelTime& time) {
  for (const bool written : {false, true}) {
    std::vector<KernelCaches::Operand*> among;
    double cold = 0.0;
    for (auto& operand : operands)
      if (operand.written == written) {
        among.push_back(&operand);
        cold += operand.bytes * (1.0 - operand.resident);
      }
    if (among.empty()) continue;
    const double moved = written ? time.dram_write_bytes : time.dram_read_bytes;
    const double first = std::min(cold, moved);
    for (auto* operand : among)
      if (cold > 0.0) operand->dram = first * operand->bytes * (1.0 - operand->resident) / cold;
    if (moved > first) {
      const bool again =
          !written && std::any_of(among.begin(), among.end(), [](const auto* o) { return o->requested > o->bytes; });
      share_out(
          moved - first, among,
          again ? [](const KernelCaches::Operand& o) { return o.requested - o.bytes; }
                : [](const KernelCaches::Operand& o) { return o.bytes; });
    }
  }
}

/// The L2 around one launch of the steady step.
struct Around {
  const Action* action = nullptr;
  std::vector<double> shares;  ///< of its accesses
  std::vector<L2Residency::Held> before, after;
};
Around around(const StepProgram& program, const L2Spec& l2, std::size_t launch) {
  Around result;
  L2Residency held(l2);
  FurtherRuns further(program, l2);
  const auto visit = [&](const KernelLaunch& one, std::span<const Operand> operands) {
    held.visit(one, operands, result.shares);
  };
  for (const Action* action : launches_before(program))
    visit(program.launches[action->index], program.operands_of(action->call));
  std::size_t at = 0;
  for (const Action& action : program.steady_step()) {
    if (further.begin_at(action)) further.visit(visit);
    if (action.kind != Action::Kind::launch) continue;
    if (at == launch) result.before = held.held();
    visit(program.launches[action.index], program.operands_of(action.call));
    if (at++ != launch) continue;
    result.action = &action;
    result.after = held.held();
    break;
  }
  return result;
}

/// The call in front of which each storage was made last, up to `end`.
std::uint32_t maker_of(const StepProgram& program, StorageId storage, std::uint32_t end) {
  for (std::uint32_t i = end; i-- > 0;) {
    const Action& action = program.actions[i];
    if (action.kind == Action::Kind::allocate && action.index == static_cast<std::uint32_t>(storage))
      return !program.steps.empty() && i < program.steps.front().begin ? Action::kNoCall : action.call;
  }
  return Action::kNoCall;
}

std::int64_t kernels_to_next(const StepProgram& program, StorageId storage, const Action* after) {
  const auto steady = program.steady_step();
  std::int64_t kernels = 0;
  for (const Action* action = after + 1; action < steady.data() + steady.size(); ++action) {
    if (action->kind != Action::Kind::launch) continue;
    ++kernels;
    if (action->call == Action::kNoCall) continue;
    for (const Operand& operand : program.operands_of(action->call))
      if (operand.storage == storage) return kernels;
  }
  return 0;
}

void add_evicted(KernelCaches& caches, const StepProgram& program, const Around& seen) {
  std::unordered_map<StorageId, double> after;
  for (const auto& held : seen.after) {
    after[held.storage] = held.share;
    caches.held_after += held.share * held.bytes;
  }
  std::vector<std::pair<double, StorageId>> gone;
  for (const auto& held : seen.before) {
    caches.held_before += held.share * held.bytes;
    const auto left = after.find(held.storage);
    const double bytes = held.bytes * (held.share - (left != after.end() ? left->second : 0.0));
    if (bytes <= 0.0 || static_cast<std::size_t>(held.storage) >= program.storages.size()) continue;
    gone.emplace_back(bytes, held.storage);
    caches.evicted_bytes += bytes;
  }
  std::stable_sort(gone.begin(), gone.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  gone.resize(std::min(gone.size(), kMostEvicted));
  const auto here = static_cast<std::uint32_t>(seen.action - program.actions.data());
  for (const auto& [bytes, storage] : gone) {
    const Storage& one = program.storages[static_cast<std::size_t>(storage)];
    const std::uint32_t call = maker_of(program, storage, here);
    caches.evicted.push_back({call == Action::kNoCall ? "set-up" : op_name(program, call), one.category, one.layer,
                              static_cast<double>(one.bytes), bytes, kernels_to_next(program, storage, seen.action)});
  }
}

}  // namespace

KernelCaches kernel_caches(const StepRun& run, std::size_t launch) {
  const StepProgram& program = run.program();
  const Gpu& gpu = run.scenario().gpu;
  const Around seen = around(program, gpu.l2, launch);
  KernelCaches caches;
  if (seen.action == nullptr) return caches;
  const KernelLaunch& kernel = program.launches[seen.action->index];
  const KernelTime& time = run.times()[launch];
  std::pair<Names, Names> names;
  int inputs = 0;
  if (seen.action->call != Action::kNoCall) {
    const Call& call = program.trace->calls[seen.action->call];
    names = operand_names(program.trace->ops[call.op]);
    inputs = call.inputs;
  }
  const std::vector<double>& hits = time.profile ? time.profile->operand_hits : seen.shares;
  for (const auto* accesses : {&kernel.reads, &kernel.writes})
    for (const Access& access : *accesses) {
      const std::size_t place = caches.operands.size();
      const double requested = std::max(access.bytes, access.requested);
      caches.operands.push_back({.name = access_name(access, names, inputs),
                                 .written = accesses == &kernel.writes,
                                 .bytes = access.bytes,
                                 .loaded = std::max(requested, access.loaded),
                                 .requested = requested,
                                 .resident = place < hits.size() ? hits[place] : 0.0});
    }
  add_rereads(caches.operands, kernel, gpu.sm);
  add_dram(caches.operands, time);
  add_evicted(caches, program, seen);
  return caches;
}

}  // namespace ridgeline
