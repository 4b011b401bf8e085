#include "sim/report/text/memory_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/output/terminal.h"
#include "sim/report/text/names.h"
#include "sim/units/parse.h"

namespace ridgeline {

std::string gib(std::int64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / kGiB); }

std::string words(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

void write_wrapped(std::string& out, std::string_view margin, std::string_view text) {
  write_wrapped(out, margin, text, page_width());
}

void write_wrapped(std::string& out, std::string_view margin, std::string_view text, std::size_t columns) {
  const std::size_t width = columns - margin.size();
  bool first = true;
  while (!text.empty()) {
    std::size_t length = std::min(width, text.size());
    if (length < text.size())
      if (const auto space = text.rfind(' ', length); space != std::string_view::npos && space > 0) length = space;
    out += first ? std::string(margin) : std::string(margin.size(), ' ');
    out += text.substr(0, length);
    out += '\n';
    text.remove_prefix(std::min(text.size(), length + (length < text.size() && text[length] == ' ' ? 1 : 0)));
    first = false;
  }
}

std::string shortage_words(const MemoryShortage& oom) {
  const std::string where = oom.phase == Phase::setup
                                ? "setting up"
                                : fmt::format("in {} of the {}{}", oom.op, phase_name(oom.phase),
                                              oom.layer >= 0 ? fmt::format(", block {}", oom.layer) : "");
  return fmt::format("{}, at {} of {}", where, to_string(Bytes{static_cast<double>(oom.requested_bytes)}),
                     words(kCategoryNames[static_cast<std::size_t>(oom.category)]));
}

std::size_t largest_category(const MemoryShortage& shortage) {
  return static_cast<std::size_t>(std::max_element(shortage.held.begin(), shortage.held.end()) - shortage.held.begin());
}

std::string as_sets(std::span<const std::string> changes) {
  std::string out;
  for (std::string set : changes) {
    for (auto space = set.find(' '); space != std::string::npos; space = set.find(' ', space + 7))
      set.replace(space, 1, " --set ");
    out += (out.empty() ? "--set " : " --set ") + set;
  }
  return out;
}

}  // namespace ridgeline
