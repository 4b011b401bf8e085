#include "sim/occupancy/occupancy.h"

#include <algorithm>
#include <bit>

namespace ridgeline {
namespace {

/// An SM's registers lie in this many files, of which a warp has its registers in one (all chips since Maxwell). A
/// what-if with more schedulers shares them.
constexpr std::int64_t kRegisterFiles = 4;

/// Units of allocation are powers of two. Another number counts as the power below, so that a smaller unit never
/// allocates more.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  const auto power =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(unit, 1))));
  return (value + power - 1) / power * power;
}

}  // namespace

Occupancy occupancy_of(const SmSpec& sm, int threads_per_block, int registers_per_thread,
                       std::int64_t shared_bytes_per_block) {
  Occupancy result;
  result.warps_per_block = std::max(1, (threads_per_block + kThreadsPerWarp - 1) / kThreadsPerWarp);
  const auto limit_to = [&result](std::int64_t blocks, OccupancyLimit limit) {
    if (blocks < result.blocks) {
      result.blocks = static_cast<int>(blocks);
      result.limit = limit;
    }
  };
  result.blocks = sm.max_blocks;
  limit_to(sm.max_warps / result.warps_per_block, OccupancyLimit::warps);
  if (registers_per_thread > 0) {
    const std::int64_t per_warp =
        round_up(std::int64_t{registers_per_thread} * kThreadsPerWarp, sm.register_allocation_unit);
    const std::int64_t warps = sm.registers / kRegisterFiles / per_warp * kRegisterFiles;
    limit_to(warps / result.warps_per_block, OccupancyLimit::registers);
  }
  const auto capacity = static_cast<std::int64_t>(sm.shared_per_sm.value());
  const std::int64_t per_block =
      round_up(shared_bytes_per_block + static_cast<std::int64_t>(sm.shared_reserved_per_block.value()),
               static_cast<std::int64_t>(sm.shared_allocation_unit.value()));
  if (capacity > 0 && per_block > 0) limit_to(capacity / per_block, OccupancyLimit::shared_memory);
  return result;
}

Occupancy occupancy_of(const SmSpec& sm, const KernelLaunch& launch) {
  return occupancy_of(sm, launch.threads_per_block, launch.registers_per_thread, launch.shared_bytes_per_block);
}

}  // namespace ridgeline
