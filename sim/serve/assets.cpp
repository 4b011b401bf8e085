#include "sim/serve/assets.h"

#ifdef RIDGELINE_LAB_FOLDER
#define RIDGELINE_LAB_FILE(name, file)           \
  asm(".section .rodata\n"                       \
      ".global ridgeline_" name                  \
      "_begin\n"                                 \
      ".global ridgeline_" name                  \
      "_end\n"                                   \
      "ridgeline_" name                          \
      "_begin:\n"                                \
      ".incbin \"" RIDGELINE_LAB_FOLDER "/" file \
      "\"\n"                                     \
      "ridgeline_" name                          \
      "_end:\n"                                  \
      ".previous\n")
RIDGELINE_LAB_FILE("lab_html", "lab.html");
RIDGELINE_LAB_FILE("lab_js", "lab.js");
RIDGELINE_LAB_FILE("lab_css", "lab.css");
extern "C" {
extern const char ridgeline_lab_html_begin[], ridgeline_lab_html_end[];
extern const char ridgeline_lab_js_begin[], ridgeline_lab_js_end[];
extern const char ridgeline_lab_css_begin[], ridgeline_lab_css_end[];
}
#endif

namespace ridgeline::serve {
namespace {

#ifdef RIDGELINE_LAB_FOLDER
std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }
#endif

}  // namespace

std::optional<Asset> asset(std::string_view path) {
#ifdef RIDGELINE_LAB_FOLDER
  const std::string_view html = between(ridgeline_lab_html_begin, ridgeline_lab_html_end);
  const std::string_view js = between(ridgeline_lab_js_begin, ridgeline_lab_js_end);
  const std::string_view css = between(ridgeline_lab_css_begin, ridgeline_lab_css_end);
#else
  const std::string_view html, js, css;
#endif
  if (path == "/") return Asset{"text/html; charset=utf-8", html};
  if (path == "/lab.js") return Asset{"text/javascript; charset=utf-8", js};
  if (path == "/lab.css") return Asset{"text/css; charset=utf-8", css};
  return std::nullopt;
}

}  // namespace ridgeline::serve
