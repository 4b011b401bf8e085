#include "sim/report/text/profile_text.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/units/parse.h"

namespace ridgeline {
namespace {

std::string percent_in_tenths(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

std::string in_megabytes(double bytes) {
  return bytes < 1e10 ? fmt::format("{:.4g} MB", bytes * 1e-6) : fmt::format("{:.4g} GB", bytes * 1e-9);
}

std::string counted(const ProfiledKernel& kernel) {
  return kernel.count == 1 ? kernel.name : fmt::format("{} x {}", kernel.count, kernel.name);
}

}  // namespace

std::string profile_tables(std::span<const ProfiledKernel> kernels) {
  if (kernels.empty()) return {};
  std::string out;
  auto to = std::back_inserter(out);
  constexpr const char* kMemory = "  {:<30.30} {:>10} {:>10} {:>18} {:>8} {:>8} {:>8}\n";
  fmt::format_to(to, "\n");
  fmt::format_to(to, kMemory, "", "DRAM", "DRAM", "DRAM", "L2", "L2", "L1/TEX");
  fmt::format_to(to, kMemory, "memory", "Read", "Write", "Throughput", "Thrput", "Hit Rate", "Hit Rate");
  for (const ProfiledKernel& k : kernels) {
    const KernelProfile& p = k.profile;
    fmt::format_to(to, kMemory, counted(k), in_megabytes(p.dram_read_bytes), in_megabytes(p.dram_write_bytes),
                   fmt::format("{:.0f} GB/s, {}", 1e-9 * p.dram_bandwidth, percent_in_tenths(p.dram_share)),
                   percent_in_tenths(p.l2_share), percent_in_tenths(p.l2_hit_rate),
                   p.l1_read_bytes > 0.0 ? percent_in_tenths(p.l1_hit_rate) : "-");
  }
  constexpr const char* kSms = "  {:<30.30} {:>9} {:>11} {:>10} {:>10} {:>8} {:>11}\n";
  fmt::format_to(to, "\n");
  fmt::format_to(to, kSms, "", "", "Theoretical", "Achieved", "Waves", "", "Pipe");
  fmt::format_to(to, kSms, "SMs", "Duration", "Occupancy", "Occupancy", "Per SM", "Tail", "Active");
  for (const ProfiledKernel& k : kernels) {
    const KernelProfile& p = k.profile;
    fmt::format_to(to, kSms, counted(k), to_string(k.time), percent_in_tenths(p.theoretical_occupancy),
                   percent_in_tenths(p.achieved_occupancy), fmt::format("{:.2f}", p.waves),
                   percent_in_tenths(p.tail_share), percent_in_tenths(p.pipe_active));
  }
  constexpr const char* kStallRow = "  {:<30.30} {:>12} {:>12} {:>12} {:>12} {:>12}\n";
  fmt::format_to(to, "\n");
  fmt::format_to(to, kStallRow, "", "Stall Long", "Stall Math", "Stall MIO", "Stall", "Stall");
  fmt::format_to(to, kStallRow, "warps wait", "Scoreboard", "Pipe Thr.", "Throttle", "Barrier", "Drain");
  for (const ProfiledKernel& k : kernels) {
    const auto& s = k.profile.stalls;
    fmt::format_to(to, kStallRow, counted(k), percent_in_tenths(s[0]), percent_in_tenths(s[1]), percent_in_tenths(s[2]),
                   percent_in_tenths(s[3]), percent_in_tenths(s[4]));
  }
  return out;
}

}  // namespace ridgeline
