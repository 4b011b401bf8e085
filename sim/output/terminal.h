// How wide pages of text are and whether they have colours: 100 columns and none, unless the program follows a
// terminal.
#pragma once

#include <cstddef>

namespace ridgeline {

struct PageStyle {
  std::size_t width = 100;  ///< columns, at least kNarrowestPage
  bool colours = false;
  bool operator==(const PageStyle&) const = default;
};
inline constexpr std::size_t kNarrowestPage = 80, kWidestPage = 400;

/// `columns` of the terminal (0: not known) and the environment's words, null where it does not say. NO_COLOR counts
/// when it is not empty (no-color.org).
PageStyle style_of(bool is_terminal, std::size_t columns, const char* no_color, const char* term);

/// Of this process. A library's text is as wide wherever it runs: only main() follows the terminal.
const PageStyle& page_style();
void set_page_style(const PageStyle& style);
/// The style that standard output and the environment ask for.
void follow_terminal();

inline std::size_t page_width() { return page_style().width; }

}  // namespace ridgeline
