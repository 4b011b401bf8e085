#include "sim/app/help_text.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "sim/output/terminal.h"

namespace ridgeline::app {
namespace {

/// Lines of at most `width` columns, parted where there is room for it.
std::string in_lines(std::string_view text, std::size_t width) {
  std::string lines;
  while (text.size() > width) {
    std::size_t end = text.rfind(' ', width);
    if (end == std::string_view::npos) end = text.find(' ');
    if (end == std::string_view::npos) break;
    lines += text.substr(0, end);
    lines += '\n';
    text.remove_prefix(end + 1);
  }
  return lines += text;
}

std::string in_columns(const std::string& left, std::string_view right, std::size_t column) {
  std::ostringstream out;
  CLI::detail::format_help(out, left, in_lines(right, std::max<std::size_t>(page_width() - column, 20)), column);
  return out.str();
}

}  // namespace

std::string HelpText::make_option(const CLI::Option* option, bool is_positional) const {
  return in_columns(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option),
                    get_column_width());
}

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return in_columns(command->get_name(), command->get_description(), get_column_width());
}

std::string HelpText::make_footer(const CLI::App* command) const {
  const std::string footer = command->get_footer();
  std::string text;
  for (std::size_t begin = 0; begin < footer.size();) {
    const std::size_t end = std::min(footer.find('\n', begin), footer.size());
    text += in_lines(std::string_view(footer).substr(begin, end - begin), page_width()) + "\n";
    begin = end + 1;
  }
  return text;
}

}  // namespace ridgeline::app
