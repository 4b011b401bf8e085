#include "sim/output/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ridgeline {
namespace {

PageStyle style_of_process;

}  // namespace

PageStyle style_of(bool is_terminal, std::size_t columns, const char* no_color, const char* term) {
  if (!is_terminal) return {};
  PageStyle style;
  if (columns > 0) style.width = std::clamp(columns, kNarrowestPage, kWidestPage);
  const bool refused = no_color != nullptr && *no_color != '\0';
  style.colours = !refused && (term == nullptr || std::string_view(term) != "dumb");
  return style;
}

const PageStyle& page_style() { return style_of_process; }
void set_page_style(const PageStyle& style) { style_of_process = style; }

void follow_terminal() {
  winsize size{};
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal) (void)::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  set_page_style(style_of(is_terminal, size.ws_col, std::getenv("NO_COLOR"), std::getenv("TERM")));
}

}  // namespace ridgeline
