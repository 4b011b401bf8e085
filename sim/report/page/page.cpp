#include "sim/report/page/page.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/units/text_buffer.h"
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
  const std::string_view whole = page_template();
  if (whole.empty())
    throw UserError(
        "--html: this program was built without npm's packages, which draw the page; install npm and build again");
  const std::string json = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const std::size_t place = whole.find(kPlace);
  TextBuffer out(whole.size() + json.size() + json.size() / 64);
  out.add(whole.substr(0, place));
  // Inside a script element "</script" ends it, and "<!--" with "<script" hides its end: both stand in strings alone.
  std::string_view rest = json;
  for (std::size_t at = rest.find('<'); at != std::string_view::npos; at = rest.find('<')) {
    out.add(rest.substr(0, at));
    out.add("\\u003c");
    rest.remove_prefix(at + 1);
  }
  out.add(rest);
  out.add(whole.substr(place + kPlace.size()));
  return std::move(out).take();
}

}  // namespace ridgeline
