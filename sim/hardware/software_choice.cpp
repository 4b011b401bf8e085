#include "sim/hardware/software_choice.h"

#include <array>
#include <cmath>

#include "sim/config/data_folder.h"
#include "sim/config/files_read.h"
#include "sim/hardware/load_host.h"

namespace ridgeline {
namespace {

constexpr std::array kNewestFirst{"pytorch-2.11", "pytorch-2.11-cuda-12.6", "pytorch-2.0", "pytorch-1.13"};
/// That recordings may name by their toolkit, besides.
constexpr std::array kRecordedNewestFirst{
    "pytorch-2.11", "pytorch-2.11-cuda-12.6", "pytorch-2.5",  "pytorch-2.1",  "pytorch-2.0",
    "pytorch-1.13", "pytorch-1.12",           "pytorch-1.11", "pytorch-1.10", "pytorch-1.7"};

/// 75 of 7.5.
long in_tenths(double capability) { return std::lround(10.0 * capability); }

/// Read once: every scenario that names none asks. What is chosen depends on all of them, also where they were read
/// before.
template <const auto& kNames>
const std::array<Software, kNames.size()>& known() {
  static const auto all = [] {
    std::array<Software, kNames.size()> read;
    for (std::size_t i = 0; i < read.size(); ++i) read[i] = load_software(kNames[i]);
    return read;
  }();
  if (!config::FilesRead::wanted()) return all;
  for (const Software& software : all)
    config::FilesRead::note(config::data_folder("hw") / "software" / (software.name + ".yaml"));
  return all;
}

}  // namespace

bool has_code_for(const Software& software, const Gpu& gpu) {
  const long chip = 10L * gpu.compute_major + gpu.compute_minor;
  return in_tenths(software.least_capability) <= chip && chip <= in_tenths(software.most_capability);
}

std::string default_software(const Gpu& gpu) {
  for (const Software& software : known<kNewestFirst>())
    if (has_code_for(software, gpu)) return software.name;
  return kNewestFirst.front();
}

std::string software_of_toolkit(double cuda, const Gpu& gpu) {
  constexpr double kRounding = 1e-3;  // 12.4 of tenths
  if (cuda > 0.0)
    for (const Software& software : known<kRecordedNewestFirst>())
      if (software.cuda <= cuda + kRounding && has_code_for(software, gpu)) return software.name;
  return default_software(gpu);
}

}  // namespace ridgeline
