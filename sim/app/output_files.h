// Options that name a file to write: no empty name, no two options of one file, no file that the command reads.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ridgeline::app {

/// Adds option `name`, whose value is the file to write; --help shows it as OUTPUT. `file` must outlive the parsing of
/// the command line.
CLI::Option* add_output_option(CLI::App& command, const std::string& name, std::string& file,
                               const std::string& meaning);

/// Throws UserError where the parsed command is to write one file twice, or a file that another argument of it names.
/// To be called once the command line is parsed and before the command runs.
void check_output_files(const CLI::App& program);

/// Throws UserError where this process has read the file: a scenario may name inputs that the command line does not.
void refuse_input(const std::string& path);

/// write_file (sim/output/write_file.h) of an answer. Throws as refuse_input() does.
void write_answer(const std::string& path, const std::string& text);

}  // namespace ridgeline::app
