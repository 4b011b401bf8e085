#include "sim/units/utf8.h"

#include <boost/locale/utf.hpp>

namespace ridgeline {
namespace {

namespace utf = boost::locale::utf;
using Utf8 = utf::utf_traits<char>;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

std::size_t first_not_utf8(std::string_view text) {
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    const char* const begin = at;
    const utf::code_point character = Utf8::decode(at, end);
    if (character == utf::illegal || character == utf::incomplete) return static_cast<std::size_t>(begin - text.data());
  }
  return std::string_view::npos;
}

std::string as_utf8(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (true) {
    const std::size_t bad = first_not_utf8(text);
    shown += text.substr(0, bad);
    if (bad == std::string_view::npos) return shown;
    shown += kReplacement;
    text.remove_prefix(bad + 1);
  }
}

}  // namespace ridgeline
