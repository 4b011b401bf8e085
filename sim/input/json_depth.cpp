#include "sim/input/json_depth.h"

#include <fmt/format.h>

#include "sim/units/user_error.h"

namespace ridgeline {

std::string json_mistake(std::string_view what) {
  const auto drop_through = [&what](std::string_view mark, std::string_view begin) {
    const std::size_t at = what.find(mark);
    if (at != std::string_view::npos && what.starts_with(begin)) what.remove_prefix(at + mark.size());
  };
  drop_through("] ", "[json.exception.");
  drop_through("parse error at ", "parse error at ");
  drop_through("parse error: ", "parse error: ");
  const std::size_t syntax = what.find("syntax error while parsing "), reason = what.find(" - ");
  if (syntax == std::string_view::npos || reason == std::string_view::npos || reason < syntax) return std::string(what);
  return fmt::format("{}{}", what.substr(0, syntax), what.substr(reason + 3));
}

void check_json_depth(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) throw UserError(fmt::format("nested more than {} levels deep", kDeepestJson));
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace ridgeline
