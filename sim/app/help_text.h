// --help as wide as the page: descriptions wrapped in their column, which CLI11 leaves as long as they are.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ridgeline::app {

class HelpText : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;
};

}  // namespace ridgeline::app
