// Reports on standard output, with colours where a person watches.
#pragma once

#include <string_view>

namespace ridgeline::app {

/// As print_text, in the colours that page_style() asks for.
void print_report(std::string_view text);

}  // namespace ridgeline::app
