#include "sim/hardware/measured_section.h"

#include <fmt/format.h>

#include "sim/units/parse.h"

namespace ridgeline {
namespace {

void collect(const config::Node& node, const std::string& path, std::vector<SheetRow>& rows) {
  if (const config::Node* value = node.find("value")) {
    SheetRow row;
    row.key = path;
    split_unit(row, *value);
    if (const config::Node* source = node.find("source")) row.source = source->scalar;
    if (const config::Node* note = node.find("note")) row.note = note->scalar;
    if (const config::Node* spread = node.find("spread")) {
      const auto measure = parse_measure(spread->scalar);
      if (measure) row.spread = measure->value;
    }
    rows.push_back(std::move(row));
    return;
  }
  for (const config::Entry& entry : node.entries)
    collect(entry.value, path.empty() ? entry.key : path + "." + entry.key, rows);
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string field(const SheetRow& row) {
  std::string value = row.unit.empty() ? row.value : row.value + " " + row.unit;
  if (value.find(',') != std::string::npos) value = "[" + value + "]";
  std::string result = fmt::format("{{value: {}, source: {}", value, in_quotes(row.source));
  if (row.spread) result += fmt::format(", spread: {:.2g} %", 100.0 * *row.spread);
  if (!row.note.empty()) result += ", note: " + in_quotes(row.note);
  return result + "}";
}

std::string section(const std::vector<SheetRow>& rows, const std::vector<std::string>& comments) {
  std::string result = "measured:\n";
  for (const std::string& comment : comments) result += "  " + comment + "\n";
  std::vector<std::string> open;  // the sections of the row before
  for (const SheetRow& row : rows) {
    std::vector<std::string> path;
    std::size_t begin = 0;
    for (std::size_t dot = row.key.find('.'); dot != std::string::npos; dot = row.key.find('.', begin)) {
      path.push_back(row.key.substr(begin, dot - begin));
      begin = dot + 1;
    }
    std::size_t same = 0;
    while (same < path.size() && same < open.size() && path[same] == open[same]) ++same;
    for (std::size_t i = same; i < path.size(); ++i) result += std::string(2 + 2 * i, ' ') + path[i] + ":\n";
    result += std::string(2 + 2 * path.size(), ' ') + row.key.substr(begin) + ": " + field(row) + "\n";
    open = std::move(path);
  }
  return result;
}

}  // namespace

std::vector<SheetRow> measured_rows(const config::Node& tree) {
  std::vector<SheetRow> rows;
  if (const config::Node* measured = tree.find("measured")) collect(*measured, "", rows);
  return rows;
}

std::string with_measured_section(std::string_view text, const std::vector<SheetRow>& rows,
                                  const std::vector<std::string>& conditions) {
  std::vector<std::string> comments;
  for (const std::string& condition : conditions) comments.push_back(fmt::format("{} {}", kConditionMark, condition));
  std::string before, after;
  enum class Part { above, inside, below } part = Part::above;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = text.substr(begin, end - begin);
    begin = end;
    if (part == Part::above && line.starts_with("measured:")) {
      part = Part::inside;
      continue;
    }
    const std::size_t first = line.find_first_not_of(" \t\r\n");
    if (part == Part::inside && first == 0 && line[0] != '#') part = Part::below;
    if (part == Part::inside) {
      if (first == std::string_view::npos || line[first] != '#') continue;
      const std::string_view comment = line.substr(first, line.find_last_not_of(" \t\r\n") + 1 - first);
      if (!comment.starts_with(kConditionMark)) comments.emplace_back(comment);
      continue;
    }
    (part == Part::above ? before : after) += line;
  }
  if (!before.empty() && before.back() != '\n') before += '\n';
  if (part == Part::above) before += '\n';
  return before + section(rows, comments) + (after.empty() ? "" : "\n" + after);
}

}  // namespace ridgeline
