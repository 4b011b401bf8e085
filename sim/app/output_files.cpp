#include "sim/app/output_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "sim/output/write_file.h"
#include "sim/units/readable_files.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutput = "output file";  // CLI11 finds a validator of an option by its name

struct NamedFile {
  std::string option, path;
  bool is_output;
};

bool names_output(const CLI::Option& option) {
  try {
    (void)const_cast<CLI::Option&>(option).get_validator(kOutput);  // changes nothing
    return true;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

/// Several outputs may go to one device, such as /dev/null or a terminal.
bool is_file_or_new(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::is_regular_file(status) || status.type() == fs::file_type::not_found;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error) return true;
  const fs::path whole_a = fs::weakly_canonical(written_file(fs::absolute(a, error)), error);
  const fs::path whole_b = fs::weakly_canonical(written_file(fs::absolute(b, error)), error);
  return !error && whole_a == whole_b;
}

/// Files that the arguments of `command` name; of those that are read only such as exist.
std::vector<NamedFile> named_files(const CLI::App& command) {
  std::vector<NamedFile> files;
  for (const CLI::Option* option : command.get_options()) {
    const bool is_output = names_output(*option);
    for (const std::string& value : option->results())
      if (!value.empty() && is_file_or_new(value)) {
        std::error_code error;
        if (is_output || fs::exists(value, error)) files.push_back({option->get_name(), value, is_output});
      }
  }
  return files;
}

}  // namespace

CLI::Option* add_output_option(CLI::App& command, const std::string& name, std::string& file,
                               const std::string& meaning) {
  const CLI::Validator named(
      [](const std::string& value) {
        return value.empty() ? std::string("a file to write needs a name; without the option none is written") : "";
      },
      "", kOutput);
  return command.add_option(name, file, meaning)->check(named)->type_name("OUTPUT");
}

void check_output_files(const CLI::App& program) {
  for (const CLI::App* command : program.get_subcommands()) {
    const std::vector<NamedFile> files = named_files(*command);
    for (const NamedFile& output : files) {
      if (!output.is_output) continue;
      for (const NamedFile& other : files) {
        if (&other == &output || !same_file(output.path, other.path)) continue;
        throw UserError(
            other.is_output
                ? fmt::format("{} and {} both write {}; name two files", output.option, other.option, output.path)
                : fmt::format("{} {}: would be written over, but the command reads it; name another file",
                              output.option, output.path));
      }
    }
  }
}

void refuse_input(const std::string& path) {
  if (was_read(path))
    throw UserError(fmt::format("{}: was read for this answer and is not written over; name another file", path));
}

void write_answer(const std::string& path, const std::string& text) {
  refuse_input(path);
  write_file(path, text);
}

}  // namespace ridgeline::app
