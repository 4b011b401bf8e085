#include "sim/report/page.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/units/user_error.h"

#ifdef RIDGELINE_PAGE_FILE
// The bundle as bytes of the program: a string literal of this length is beyond what compilers must take.
asm(".section .rodata\n"
    ".global ridgeline_page_begin\n"
    ".global ridgeline_page_end\n"
    "ridgeline_page_begin:\n"
    ".incbin \"" RIDGELINE_PAGE_FILE
    "\"\n"
    "ridgeline_page_end:\n"
    ".previous\n");
extern "C" {
extern const char ridgeline_page_begin[], ridgeline_page_end[];
}
#endif

namespace ridgeline {
namespace {

/// Empty where npm or its packages were missing when the program was built.
std::string_view page_template() {
#ifdef RIDGELINE_PAGE_FILE
  return {ridgeline_page_begin, static_cast<std::size_t>(ridgeline_page_end - ridgeline_page_begin)};
#else
  return {};
#endif
}

}  // namespace

std::string page(const nlohmann::ordered_json& data) {
  constexpr std::string_view kPlace = "/*DATA*/";
  std::string out(page_template());
  if (out.empty())
    throw UserError(
        "--html: this program was built without npm's packages, which draw the page; install npm and build again");
  const std::string json = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // Inside a script element "</script" ends it, and "<!--" with "<script" hides its end: both stand in strings alone.
  std::string data_text;
  data_text.reserve(json.size());
  for (const char c : json)
    if (c == '<') data_text += "\\u003c";
    else data_text += c;
  out.replace(out.find(kPlace), kPlace.size(), data_text);
  return out;
}

}  // namespace ridgeline
