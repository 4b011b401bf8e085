// How fast two training steps of BERT-Large (18,000 events) and a compressed file of them go through the allocator.
#include <benchmark/benchmark.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "sim/allocator/replay.h"

namespace ridgeline {
namespace {

AllocationHistory bert_large() {
  return read_history(std::string(RIDGELINE_SOURCE_DIR) + "/measurements/h200/allocations/bert-large-b4-fp32.csv.gz");
}

/// The events as storage numbers, so that only the allocator is measured.
void two_steps_of_bert_large(benchmark::State& state) {
  struct Event {
    bool allocate;
    std::uint32_t storage;
    std::int64_t bytes;
  };
  std::vector<Event> events;
  std::unordered_map<Address, std::uint32_t> live;
  std::uint32_t storages = 0;
  for (const HistoryEvent& event : bert_large().events) {
    if (event.action == HistoryEvent::Action::alloc) {
      live[event.address] = storages;
      events.push_back({true, storages++, event.bytes});
    } else if (event.action == HistoryEvent::Action::free_requested) {
      events.push_back({false, live.at(event.address), 0});
    }
  }
  AllocatorSettings settings;
  settings.expandable_segments = state.range(0) == 1;
  std::vector<BlockId> blocks(storages);
  for (auto _ : state) {
    CachingAllocator allocator(settings, DeviceMemory(std::int64_t{1} << 40));
    for (const Event& event : events) {
      if (event.allocate) blocks[event.storage] = allocator.allocate(event.bytes);
      else allocator.free(blocks[event.storage]);
    }
    benchmark::DoNotOptimize(allocator.statistics().all.reserved_bytes.peak);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(events.size()));
}
BENCHMARK(two_steps_of_bert_large)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void replay_of_bert_large(benchmark::State& state) {
  const AllocationHistory history = bert_large();
  for (auto _ : state) benchmark::DoNotOptimize(replay(history, {}).peak_reserved);
}
BENCHMARK(replay_of_bert_large)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ridgeline
