#include "sim/hierarchy/simulate_engine.h"

#include "sim/hierarchy/kernel_simulation.h"
#include "sim/hierarchy/traffic.h"

namespace ridgeline {
KernelTime SimulatedRun::next(const KernelLaunch& launch, std::span<const Operand> operands) {
  const std::vector<PlacedAccess> accesses = places_.of(launch, operands);
  if (!remembers_ || !Memo::worth_it(launch, accesses, l2_)) return simulate(launch, accesses);
  std::vector<std::uint32_t> names = Memo::names_of(accesses);
  const L2Cache::State before = l2_.state(names);
  const Memo::Key key = Memo::key_of(launch, accesses, names, before);
  if (const Memo::Entry* known = memo_.find(key)) {
    l2_.restore(known->after, names);
    return known->time;
  }
  const KernelTime time = simulate(launch, accesses);
  memo_.keep(key, {time, l2_.state(names)});
  return time;
}

KernelTime SimulatedRun::simulate(const KernelLaunch& launch, std::span<const PlacedAccess> accesses) {
  return simulated_time(launch, simulate_traffic(launch, accesses, gpu_, l2_), gpu_);
}

KernelTime SimulateEngine::time(const KernelLaunch& launch, Residency residency) const {
  L2Cache l2(gpu_.l2);
  // Every access is a tensor of its own, of which the given share was touched before: its first part.
  std::vector<Operand> operands;
  KernelLaunch apart = launch;
  std::size_t i = 0;
  for (auto* accesses : {&apart.reads, &apart.writes})
    for (Access& access : *accesses) {
      access.operand = static_cast<int>(i);
      operands.push_back({static_cast<StorageId>(i), static_cast<std::int64_t>(access.bytes)});
      ++i;
    }
  AccessPlaces places;
  const std::vector<PlacedAccess> placed = places.of(apart, operands);
  for (std::size_t a = 0; a < placed.size() && a < residency.size(); ++a) {
    L2Cache::Run run = placed[a].run;
    run.end = residency[a];
    if (a < apart.reads.size()) l2.read(run, l2.stream_copies());
    else l2.write(run);
  }
  return simulated_time(apart, simulate_traffic(apart, placed, gpu_, l2), gpu_);
}

std::unique_ptr<TimingRun> SimulateEngine::start_run() const { return std::make_unique<SimulatedRun>(gpu_, true); }

}  // namespace ridgeline
