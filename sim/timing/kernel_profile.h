// What happens inside one simulated kernel: traffic at each level, occupancy and waves, why warps wait, all over time.
//
// Names are those of NVIDIA Nsight Compute where it has one; the comment gives its metric.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ridgeline {

/// Why a resident warp does not issue; shares of all of them add up to 1.
enum class Stall : std::uint8_t {
  long_scoreboard,     ///< waits for the L2 or the DRAM
  math_pipe_throttle,  ///< waits for a busy tensor or arithmetic pipe
  mio_throttle,        ///< waits for shared memory
  barrier,             ///< latency of a block's own dependent steps
  drain,               ///< stores and the tail of the grid
  count_
};
inline constexpr std::size_t kStalls = static_cast<std::size_t>(Stall::count_);
std::string_view name_of(Stall stall);

/// Means over an interval of the kernel that ends at `end_s`.
struct ProfileSample {
  double end_s = 0;                      ///< since the kernel began
  double occupancy = 0;                  ///< resident warps over the most the SMs can hold
  double active_sms = 0;                 ///< share of the SMs with a resident block
  double l2_hit_rate = 0;                ///< of the lookups
  double dram_read = 0, dram_write = 0;  ///< bytes a second
};

struct KernelProfile {
  double l2_read_bytes = 0, l2_write_bytes = 0;      ///< lts__t_sectors_op_read.sum, _write.sum, times 32 bytes
  double l2_hit_rate = 0;                            ///< lts__t_sector_hit_rate: lookups of reads and writes
  double l1_read_bytes = 0, l1_hit_rate = 0;         ///< through the L1: reads of blocks that find their own data again
  double dram_read_bytes = 0, dram_write_bytes = 0;  ///< dram__bytes_read.sum, dram__bytes_write.sum
  double dram_bandwidth = 0, dram_share = 0;         ///< bytes a second; share of the datasheet's (dram__throughput)
  double l2_bandwidth = 0, l2_share = 0;             ///< bytes a second; share of l2.read_bandwidth (lts__throughput)
  double theoretical_occupancy = 0;                  ///< sm__maximum_warps_per_active_cycle_pct
  double achieved_occupancy = 0;                     ///< sm__warps_active.avg.pct_of_peak_sustained_active
  double waves = 0;                                  ///< launch__waves_per_multiprocessor
  double tail_share = 0;                             ///< of the time, with fewer than all SMs at work at the end
  double pipe_active = 0;                            ///< sm__pipe_tensor_cycles_active, or of the arithmetic pipe
  std::array<double, kStalls> stalls{};              ///< shares (smsp__average_warps_issue_stalled_*)
  std::vector<ProfileSample> samples;                ///< in order of time
  std::vector<double> operand_hits;  ///< of each access's distinct bytes, reads then writes: there when first touched
};

}  // namespace ridgeline
