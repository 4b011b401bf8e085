#include "sim/allocator/history.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "sim/input/text_source.h"
#include "sim/units/meant_name.h"

namespace ridgeline {
namespace {

using Action = HistoryEvent::Action;

constexpr std::array<std::pair<std::string_view, Action>, 10> kActions{{{"alloc", Action::alloc},
                                                                        {"free_requested", Action::free_requested},
                                                                        {"free_completed", Action::free_completed},
                                                                        {"segment_alloc", Action::segment_alloc},
                                                                        {"segment_free", Action::segment_free},
                                                                        {"segment_map", Action::segment_map},
                                                                        {"segment_unmap", Action::segment_unmap},
                                                                        {"snapshot", Action::other},
                                                                        {"oom", Action::other},
                                                                        {"user_defined", Action::other}}};

template <typename Number>
bool parse_number(std::string_view text, Number& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Action action_of(std::string_view name) {
  for (const auto& [known, action] : kActions) {
    if (name == known) return action;
  }
  std::vector<std::string_view> names;
  for (const auto& entry : kActions) names.push_back(entry.first);
  throw std::invalid_argument(fmt::format("unknown action \"{}\"; {}", name, expected_names(name, names)));
}

AllocationHistory parse_history(std::string_view text, std::string source) {
  AllocationHistory history;
  history.source = std::move(source);
  history.events.reserve(text.size() / 32);
  std::uint32_t line_number = 0;
  bool in_header = true;
  if (constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf"; text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  const auto fail = [&](const std::string& what) {
    throw HistoryError(fmt::format("{}:{}: {}", history.source, line_number, what));
  };
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    if (std::exchange(in_header, false)) {
      if (line != "action,addr,size,stream") fail("expected the header \"action,addr,size,stream\"");
      continue;
    }
    std::array<std::string_view, 4> fields;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t comma = line.find(',');
      if ((comma == std::string_view::npos) != (i == 3)) fail("expected four fields: action,addr,size,stream");
      fields[i] = line.substr(0, comma);
      if (i < 3) line.remove_prefix(comma + 1);
    }
    HistoryEvent event;
    event.line = line_number;
    try {
      event.action = action_of(fields[0]);
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
    if (!parse_number(fields[1], event.address, 16))
      fail(fmt::format("\"{}\" is not a hexadecimal address", fields[1]));
    // A request that ran out of memory may ask for anything.
    constexpr std::int64_t kMostOfAnEvent = std::int64_t{1} << 50;  // as in snapshots
    if (!parse_number(fields[2], event.bytes, 10) || event.bytes < 0 ||
        (event.bytes > kMostOfAnEvent && event.action != Action::other))
      fail(fmt::format("\"{}\" is not a number of bytes", fields[2]));
    if (!parse_number(fields[3], event.stream, 10)) fail(fmt::format("\"{}\" is not a stream", fields[3]));
    if (event.action != Action::other) history.events.push_back(event);
  }
  if (in_header) throw HistoryError(fmt::format("{}: the file is empty", history.source));
  return history;
}

std::string history_bytes(const std::string& path) {
  try {
    return read_text(path);
  } catch (const UserError& error) {
    throw HistoryError(error.what());
  }
}

AllocationHistory read_history(const std::string& path) { return parse_history(history_bytes(path), path); }

}  // namespace ridgeline
