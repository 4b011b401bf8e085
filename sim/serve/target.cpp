#include "sim/serve/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/units/meant_name.h"
#include "sim/units/user_error.h"

namespace ridgeline::serve {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus_is_space) c = ' ';
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) throw UserError("the address has a % without two hexadecimal digits behind it");
      c = static_cast<char>(16 * high + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) throw UserError("the address has a control character");
    out += c;
  }
  return out;
}

}  // namespace

std::string Target::get(std::string_view name) const {
  const auto found =
      std::find_if(parameters.rbegin(), parameters.rend(), [&](const auto& one) { return one.first == name; });
  return found == parameters.rend() ? "" : found->second;
}

std::vector<std::string> Target::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : parameters)
    if (key == name) values.push_back(value);
  return values;
}

bool Target::flag(std::string_view name) const {
  const std::string value = get(name);
  if (value.empty() || value == "0" || value == "false") return false;
  if (value == "1" || value == "true") return true;
  throw UserError(fmt::format("{}: expected 0 or 1, got '{}'", name, value));
}

std::optional<std::uint64_t> Target::number(std::string_view name) const {
  const std::string value = get(name);
  if (value.empty()) return std::nullopt;
  std::uint64_t out = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), out);
  if (read.ec != std::errc() || read.ptr != value.data() + value.size())
    throw UserError(fmt::format("{}: expected a whole number, got '{}'", name, value));
  return out;
}

void Target::refuse_others(const std::vector<std::string>& names) const {
  for (const auto& [key, value] : parameters) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    const std::string meant = meant_name(key, names);
    throw UserError(fmt::format("{}: {} knows no parameter of that name{}", key, path,
                                meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }
}

Target parse_target(std::string_view text) {
  if (text.empty() || text.front() != '/') throw UserError("the address is no absolute path");
  text = text.substr(0, text.find('#'));
  const std::size_t question = text.find('?');
  Target target;
  target.path = decoded(text.substr(0, question), false);
  if (question == std::string_view::npos) return target;
  std::string_view query = text.substr(question + 1);
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.empty()) continue;
    if (target.parameters.size() == kMostParameters) throw UserError("the address has too many parameters");
    const std::size_t equals = one.find('=');
    target.parameters.emplace_back(decoded(one.substr(0, equals), true), equals == std::string_view::npos
                                                                             ? std::string()
                                                                             : decoded(one.substr(equals + 1), true));
  }
  return target;
}

}  // namespace ridgeline::serve
