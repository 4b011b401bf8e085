#include "sim/input/json_depth.h"

#include <fmt/format.h>

#include "sim/units/user_error.h"

namespace ridgeline {

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
