// Counters of kernels as `ncu --csv` prints them: a row a metric (the page "details") or a row a kernel (--page raw).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ridgeline::trace {

/// A kernel of the file, its counters in seconds, bytes and shares of one; nothing where it was not counted.
struct CountedKernel {
  std::string id, name, block, grid, device;
  std::optional<double> seconds{}, dram_read_bytes{}, dram_write_bytes{}, dram_throughput{}, l2_throughput{},
      sm_throughput{}, l1_hit_rate{}, l2_hit_rate{}, theoretical_occupancy{}, achieved_occupancy{}, registers{},
      waves{};
};

/// A counter with the name that reports and JSON give it.
template <typename Kernel, typename Visit>
void for_each_counter(Kernel& kernel, Visit&& visit) {
  visit("time_s", kernel.seconds), visit("dram_read_bytes", kernel.dram_read_bytes);
  visit("dram_write_bytes", kernel.dram_write_bytes), visit("dram_throughput", kernel.dram_throughput);
  visit("l2_throughput", kernel.l2_throughput), visit("sm_throughput", kernel.sm_throughput);
  visit("l1_hit_rate", kernel.l1_hit_rate), visit("l2_hit_rate", kernel.l2_hit_rate);
  visit("theoretical_occupancy", kernel.theoretical_occupancy);
  visit("achieved_occupancy", kernel.achieved_occupancy), visit("registers_per_thread", kernel.registers);
  visit("waves_per_sm", kernel.waves);
}

/// Tells whether a heading of such a file stands in the text's first lines.
bool looks_like_ncu(const std::string& path);

/// In the order of the file. Throws UserError for a file without such a table, with its line for a number that is none.
std::vector<CountedKernel> read_ncu(const std::string& path);

}  // namespace ridgeline::trace
