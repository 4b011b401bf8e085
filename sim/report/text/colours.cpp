#include "sim/report/text/colours.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ridgeline {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kRed = "\x1b[1;31m", kYellow = "\x1b[33m", kGreen = "\x1b[32m",
                           kCyan = "\x1b[36m", kPlain = "\x1b[0m";
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kWords{{{"DOES NOT FIT", kRed},
                                                                               {"MAY NOT FIT", kYellow},
                                                                               {" NO ", kRed},
                                                                               {"cannot run", kRed},
                                                                               {"estimated", kYellow},
                                                                               {"note:", kYellow},
                                                                               {"host not measured", kYellow}}};
constexpr std::size_t kLabelBegin = 2, kTextBegin = 16;  // where labels and what they label begin

/// "  step time     306 ms": the length of the label with its margin; 0 for other lines.
std::size_t label_of(std::string_view line) {
  if (line.size() <= kTextBegin || line.substr(0, kLabelBegin) != "  " || line[kLabelBegin] == ' ' ||
      line[kTextBegin] == ' ')
    return 0;
  const std::string_view label = line.substr(kLabelBegin, kTextBegin - kLabelBegin);
  if (!label.ends_with(' ') || label.find("  ") < label.find_last_not_of(' ')) return 0;
  const char first = label.front();
  const bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
  return letter ? kLabelBegin + label.find_last_not_of(' ') + 1 : 0;
}

void mark(std::string& out, std::string_view text, std::string_view colour) {
  out += colour;
  out += text;
  out += kPlain;
}

/// Changes that can be typed end with the line.
void add_words(std::string& out, std::string_view line) {
  if (const auto set = line.find("--set "); set != line.npos) {
    add_words(out, line.substr(0, set));
    return mark(out, line.substr(set), kGreen);
  }
  while (!line.empty()) {
    std::size_t at = line.npos;
    std::pair<std::string_view, std::string_view> word;
    for (const auto& one : kWords)
      if (const auto found = line.find(one.first); found < at) at = found, word = one;
    out += line.substr(0, at);
    if (at == line.npos) return;
    mark(out, word.first, word.second);
    line.remove_prefix(at + word.first.size());
  }
}

}  // namespace

std::string coloured(std::string_view report) {
  std::string out;
  out.reserve(report.size() + report.size() / 8);
  for (bool first = true; !report.empty(); first = false) {
    const std::size_t end = std::min(report.find('\n'), report.size());
    const std::string_view line = report.substr(0, end);
    if (first && !line.empty()) {
      mark(out, line, kBold);
    } else {
      const std::size_t label = label_of(line);
      out += line.substr(0, std::min(label, kLabelBegin));
      if (label > 0) mark(out, line.substr(kLabelBegin, label - kLabelBegin), kCyan);
      add_words(out, line.substr(label));
    }
    if (end < report.size()) out += '\n';
    report.remove_prefix(std::min(end + 1, report.size()));
  }
  return out;
}

}  // namespace ridgeline
