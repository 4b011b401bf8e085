#include "sim/other_simulators/gpgpusim.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <vector>

namespace ridgeline::other_simulators {
namespace {

/// "-name value" of each line; a later one counts.
std::map<std::string, std::string, std::less<>> options_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> options;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t dash = line.find_first_not_of(" \t");
    if (dash == std::string_view::npos || line[dash] != '-') continue;
    line.remove_prefix(dash + 1);
    const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const std::size_t value = line.find_first_not_of(" \t", blank);
    if (value == std::string_view::npos) continue;
    const std::size_t last = line.find_first_of(" \t\r", value);
    options[std::string(line.substr(0, blank))] = std::string(line.substr(value, last - value));
  }
  return options;
}

/// Numbers between marks that are none: "S:64:128:16,L:B" has 64, 128, 16.
std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_of("0123456789");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) break;
    numbers.push_back(value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return numbers;
}

}  // namespace

void add_gpgpusim(std::string_view text, MachineFacts& machine) {
  const auto options = options_of(text);
  const auto number = [&](std::string_view key, std::size_t which = 0) {
    const auto found = options.find(key);
    if (found == options.end()) return 0.0;
    const std::vector<double> numbers = numbers_of(found->second);
    return which < numbers.size() ? numbers[which] : 0.0;
  };
  const auto or_one = [](double value) { return value > 0.0 ? value : 1.0; };
  constexpr double kMega = 1e6, kKibi = 1024.0, kThreadsOfAWarp = 32.0;
  constexpr double kMajor = 10.0;
  machine.compute_capability = static_cast<int>(
      std::min(1000.0, kMajor * number("gpgpu_compute_capability_major") + number("gpgpu_compute_capability_minor")));
  machine.set(Fact::sms, number("gpgpu_n_clusters") * or_one(number("gpgpu_n_cores_per_cluster")), "gpgpu_n_clusters");
  machine.set(Fact::clock, number("gpgpu_clock_domains") * kMega, "gpgpu_clock_domains");
  machine.set(Fact::registers, number("gpgpu_shader_registers"), "gpgpu_shader_registers");
  machine.set(Fact::warps, number("gpgpu_shader_core_pipeline") / kThreadsOfAWarp, "gpgpu_shader_core_pipeline");
  machine.set(Fact::shared, number("gpgpu_shmem_size"), "gpgpu_shmem_size");
  machine.set(Fact::l1_and_shared, number("gpgpu_unified_l1d_size") * kKibi, "gpgpu_unified_l1d_size");
  const double channels = number("gpgpu_n_mem"), parts = or_one(number("gpgpu_n_sub_partition_per_mchannel"));
  machine.set(
      Fact::l2,
      number("gpgpu_cache:dl2") * number("gpgpu_cache:dl2", 1) * number("gpgpu_cache:dl2", 2) * channels * parts,
      "gpgpu_cache:dl2");
  // A channel moves its width twice a clock of the DRAM where commands run at half the data's rate, and so on.
  machine.set(Fact::memory_bandwidth,
              channels * or_one(number("gpgpu_n_mem_per_ctrlr")) * number("gpgpu_dram_buswidth") *
                  or_one(number("dram_data_command_freq_ratio")) * number("gpgpu_clock_domains", 3) * kMega,
              "gpgpu_dram_buswidth and gpgpu_clock_domains");
  for (const auto& [key, value] : options)
    if (key.find("latency") != std::string::npos || key.find("initiation") != std::string::npos)
      machine.unread.push_back(key);
  machine.notes.emplace_back("memory is not said by GPGPU-Sim: the capacity is the base's");
}

}  // namespace ridgeline::other_simulators
