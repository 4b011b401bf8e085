#include "sim/report/text/sensitivity_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/units/parse.h"

namespace ridgeline {

double share_of(Seconds saved, const Sensitivity& sensitivity) {
  return sensitivity.time > Seconds{} ? ratio(saved, sensitivity.time) : 0.0;
}

namespace {

/// "-1.20 us", "0".
std::string signed_time(Seconds time) {
  if (time.value() == 0.0) return "0";
  return (time.value() < 0.0 ? "-" : "") + to_string(Seconds{std::abs(time.value())});
}

std::string line(Seconds saved, double share, std::string_view name) {
  return fmt::format("  {:>9}  {:>6.2f} %   {}\n", signed_time(saved), 100.0 * share, name);
}

/// Names in lines of at most 80 columns.
std::string wrapped_names(const std::vector<std::string_view>& names) {
  std::string out, row = "   ";
  for (const std::string_view name : names) {
    if (row.size() + 1 + name.size() > 80) {
      out += row + "\n";
      row = "   ";
    }
    row += fmt::format(" {}", name);
  }
  return out + row + "\n";
}

/// Less than this share of the time is the rounding of a step that settles (timeline.h).
constexpr double kNoticed = 1e-6;

std::string key_table(const Sensitivity& sensitivity) {
  std::vector<KeyGain> keys = sensitivity.keys;
  std::stable_sort(keys.begin(), keys.end(), [](const KeyGain& a, const KeyGain& b) { return a.saved > b.saved; });
  std::string out = "\n  10 % more of one number of the hardware saves (less than nothing: costs)\n";
  std::vector<std::string_view> others;
  for (const KeyGain& gain : keys) {
    const double share = share_of(gain.saved, sensitivity);
    if (std::abs(share) < kNoticed) others.push_back(gain.key->key);
    else out += line(gain.saved, share, gain.key->key);
  }
  if (!others.empty()) out += "  none of these changes the time:\n" + wrapped_names(others);
  return out;
}

}  // namespace

std::string sensitivity_table(const Sensitivity& sensitivity) {
  struct Line {
    Seconds saved;
    std::string name;
  };
  std::vector<Line> lines;
  for (const Resource resource : kResources)
    lines.push_back({sensitivity.saved_by(resource),
                     resource != Resource::sm_count
                         ? std::string(title_of(resource))
                         : fmt::format("{} ({} to {})", title_of(resource), sensitivity.sms, sensitivity.more_sms)});
  for (const LinkGain& gain : sensitivity.links) lines.push_back({gain.saved, std::string(title_of(gain.resource))});
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.saved > b.saved; });
  std::string out = "\n  10 % more of one resource saves (less than nothing: costs)\n";
  for (const Line& one : lines) out += line(one.saved, share_of(one.saved, sensitivity), one.name);
  return out + key_table(sensitivity);
}

}  // namespace ridgeline
