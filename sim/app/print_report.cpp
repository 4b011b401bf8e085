#include "sim/app/print_report.h"

#include "sim/output/standard_output.h"
#include "sim/output/terminal.h"
#include "sim/report/text/colours.h"

namespace ridgeline::app {

void print_report(std::string_view text) {
  if (page_style().colours) print_as_it_is(coloured(without_controls(text)));
  else print_text(text);
}

}  // namespace ridgeline::app
