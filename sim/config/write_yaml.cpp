#include "sim/config/write_yaml.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridgeline::config {
namespace {

bool is_plain(const std::string& text) {
  constexpr std::string_view kInside = "._-+/%() ";
  const auto letter = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && (letter(text.front()) || text.front() == '.' || text.front() == '/') && text.back() != ' ' &&
         text != "null" && text != "~" &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || kInside.find(c) != kInside.npos; });
}

std::string quoted(const std::string& text) {
  if (is_plain(text)) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else out += c;
  }
  return out + '"';
}

std::string flow(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Node::Kind::null: return "null";
    case Node::Kind::scalar: return quoted(node.scalar);
    case Node::Kind::list:
      for (const Node& item : node.items) out += (out.empty() ? "" : ", ") + flow(item);
      return "[" + out + "]";
    case Node::Kind::mapping: break;
  }
  for (const Entry& entry : node.entries)
    out += (out.empty() ? "" : ", ") + quoted(entry.key) + ": " + flow(entry.value);
  return "{" + out + "}";
}

void write(const Node& mapping, int indent, std::string& out) {
  for (const Entry& entry : mapping.entries) {
    out += fmt::format("{:{}}{}:", "", indent, quoted(entry.key));
    if (entry.value.kind == Node::Kind::mapping && !entry.value.entries.empty()) {
      out += '\n';
      write(entry.value, indent + 2, out);
      continue;
    }
    out += " " + flow(entry.value);
    const Origin& origin = entry.value.origin;
    if (origin.name)
      out += fmt::format("   # {}{}", *origin.name, origin.line > 0 ? fmt::format(":{}", origin.line) : "");
    out += '\n';
  }
}

}  // namespace

std::string write_yaml(const Node& tree) {
  if (tree.kind != Node::Kind::mapping) return flow(tree) + "\n";
  std::string out;
  write(tree, 0, out);
  return out;
}

}  // namespace ridgeline::config
