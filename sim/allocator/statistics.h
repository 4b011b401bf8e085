// The allocator's counters, as torch.cuda.memory_stats() names them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace ridgeline {

/// One counter; its peak is kept by itself, so peaks of two counters may belong to different moments.
struct Counter {
  std::int64_t current = 0, peak = 0;
  void add(std::int64_t amount) {
    current += amount;
    peak = std::max(peak, current);
  }
  /// As adding what is negative: the peak stays.
  void take(std::int64_t amount) { current -= amount; }
  void reset_peak() { peak = current; }
};

struct PoolStatistics {
  Counter allocation, allocated_bytes;           ///< blocks handed out
  Counter active, active_bytes;                  ///< handed out, or freed but still in use by another stream
  Counter segment, reserved_bytes;               ///< held of the device
  Counter inactive_split, inactive_split_bytes;  ///< free blocks of segments in use: cannot go back to the device
  Counter requested_bytes;                       ///< active, before rounding

  void reset_peaks() {
    for (Counter* c : {&allocation, &allocated_bytes, &active, &active_bytes, &segment, &reserved_bytes,
                       &inactive_split, &inactive_split_bytes, &requested_bytes}) {
      c->reset_peak();
    }
  }
};

enum class PoolKind : std::uint8_t { small, large };

struct AllocatorStatistics {
  PoolStatistics all;
  std::array<PoolStatistics, 2> pools;  ///< by PoolKind
  std::int64_t device_allocations = 0, device_frees = 0;
  std::int64_t retries = 0, out_of_memory = 0;

  [[nodiscard]] const PoolStatistics& of(PoolKind kind) const { return pools[static_cast<std::size_t>(kind)]; }
  /// What was counted since `since` comes `times` times more; currents and peaks are as they are.
  void count_again(const AllocatorStatistics& since, std::int64_t times) {
    const auto again = [&](std::int64_t& now, std::int64_t before) { now += times * (now - before); };
    again(device_allocations, since.device_allocations);
    again(device_frees, since.device_frees);
    again(retries, since.retries);
    again(out_of_memory, since.out_of_memory);
  }
  void reset_peaks() {
    all.reset_peaks();
    for (auto& pool : pools) pool.reset_peaks();
  }
};

}  // namespace ridgeline
