#include "sim/kernels/memory_bound/partial_stores.h"

#include <algorithm>
#include <set>

#include "sim/kernels/memory_bound/gathered_rows.h"

namespace ridgeline {

void store_partly(const PartialStores& stores, DType type, double times, const L2Spec& l2, KernelLaunch& launch) {
  constexpr std::int64_t kSector = 32, kWarp = 32, kWarpsOfBlock = 4, kSampledBlocks = 4;
  const std::int64_t element = bytes_of(type), of_warp = kWarp * stores.of_thread, of_block = kWarpsOfBlock * of_warp,
                     blocks = std::max<std::int64_t>(1, stores.stores / of_block);
  std::int64_t stored = 0, left = 0, counted = 0;
  const auto sector = [&](std::int64_t i) {
    return (i / stores.run * stores.apart + i % stores.run) * element / kSector;
  };
  for (std::int64_t k = 0; k < std::min(blocks, kSampledBlocks); ++k) {
    const std::int64_t first = blocks * k / kSampledBlocks * of_block, last = std::min(stores.stores, first + of_block);
    std::set<std::int64_t> of_all;
    for (std::int64_t warp = first; warp < last; warp += of_warp)
      for (std::int64_t turn = 0; turn < stores.of_thread; ++turn) {
        std::set<std::int64_t> of_turn;
        for (std::int64_t i = warp + turn; i < std::min(last, warp + of_warp); i += stores.of_thread)
          of_turn.insert(sector(i));
        stored += static_cast<std::int64_t>(of_turn.size());
        of_all.merge(of_turn);
      }
    left += static_cast<std::int64_t>(of_all.size());
    counted += last - first;
  }
  const double each =
      times * static_cast<double>(stores.stores) / static_cast<double>(std::max<std::int64_t>(1, counted));
  Access& access = launch.writes.front();
  // Where the stores of a block fill their sectors, the L2 is given whole ones.
  constexpr double kWhole = 1.15;
  const double visited = each * static_cast<double>(left * kSector), partly = std::max(0.0, visited - access.bytes);
  if (visited > kWhole * access.bytes)
    access.requested = std::max(access.bytes, each * (kStoredSectorBytes * static_cast<double>(stored) +
                                                      kLeftSectorBytes * static_cast<double>(left)));
  // A sector that leaves the L2 before the other parts are stored is read again, and written, 64 bytes at a time.
  const double moved = stores.run * element < kSector ? 2.0 * partly * beyond_l2(access.bytes, l2) : 0.0;
  access.bytes += moved;
  access.requested = std::max(access.requested, access.bytes);
  if (moved > 0.0) launch.reads.push_back({access.operand, moved});
}

void store_scattered(double stores, KernelLaunch& launch) {
  Access& access = launch.writes.front();
  access.requested = std::max(access.requested, stores * (kStoredSectorBytes + kLeftSectorBytes));
}

}  // namespace ridgeline
