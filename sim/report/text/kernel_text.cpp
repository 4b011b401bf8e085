#include "sim/report/text/kernel_text.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/report/text/memory_words.h"
#include "sim/report/text/profile_text.h"
#include "sim/units/parse.h"

namespace ridgeline {

std::string kernel_text(std::string_view title, const KernelPrediction& prediction, const Range& range,
                        const std::string& reason) {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{}\n", title);
  fmt::format_to(to, "  {} ({} to {}{})\n", to_string(prediction.time), to_string(prediction.time * range.low),
                 to_string(prediction.time * range.high),
                 range.validated  ? ""
                 : reason.empty() ? ", estimated"
                                  : ", estimated: " + reason);
  std::vector<ProfiledKernel> profiled;
  for (std::size_t i = 0; i < prediction.launches.size(); ++i) {
    const KernelLaunch& launch = prediction.launches[i];
    const KernelTime& time = prediction.times[i];
    fmt::format_to(to, "  {:>9}  {:<44.44} {:>13} blocks of {:>4}  {}\n", to_string(time.time), launch.name,
                   fmt::format("{:.0f}", launch.blocks()), launch.threads_per_block, words(name_of(time.limited_by())));
    if (time.profile && time.l2_bytes > 0.0) profiled.push_back({launch.name, 1, time.time, *time.profile});
  }
  return out + profile_tables(profiled);
}

}  // namespace ridgeline
