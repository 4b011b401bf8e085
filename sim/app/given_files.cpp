#include "sim/app/given_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "sim/recognition/recognise.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct GivenFile {
  std::string path, role;
};

constexpr std::array<std::string_view, 9> kInputOptions{
    "--model", "--hardware", "--cluster", "--host", "--software", "--from", "--record", "--recorded-on", "--rank"};

/// The role of a command's positional; empty where it names no file that is read.
std::string role_of_positional(const std::string& command, std::size_t place) {
  if (command == "models") return "--model";
  if (command == "fits") return place == 0 ? "--model" : "--hardware";
  if (command == "compare") return place == 0 ? "compare" : "";  // others may be GPUs or scenarios
  return command == "exercise" || command == "phases" || command == "schema" || command == "completion" ? "" : command;
}

bool takes_a_value(const CLI::App& command, const std::string& option) {
  const CLI::Option* known = command.get_option_no_throw(option);
  return known != nullptr && known->get_items_expected_max() > 0;
}

std::vector<GivenFile> given_files(const CLI::App& program, const std::vector<std::string>& words) {
  std::vector<GivenFile> files;
  if (words.size() < 3) return files;
  const std::vector<const CLI::App*> commands = program.get_subcommands([](const CLI::App*) { return true; });
  const auto found =
      std::find_if(commands.begin(), commands.end(), [&](const CLI::App* one) { return one->get_name() == words[1]; });
  if (found == commands.end()) return files;
  const CLI::App* command = *found;
  const auto is_input = [](std::string_view option) {
    return option == "--kernels" ||
           std::find(kInputOptions.begin(), kInputOptions.end(), option) != kInputOptions.end();
  };
  std::size_t positionals = 0;
  for (std::size_t i = 2; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("-")) {
      files.push_back({word, role_of_positional(words[1], positionals++)});
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string option = word.substr(0, equals);
    if (equals == std::string::npos && !takes_a_value(*command, option)) continue;
    const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                              : i + 1 < words.size()      ? words[++i]
                                                          : "";
    if (is_input(option)) files.push_back({value, option});
  }
  return files;
}

}  // namespace

std::string wrong_file_given(const CLI::App& program, const std::vector<std::string>& words,
                             const std::string& message) {
  try {
    std::vector<GivenFile> files = given_files(program, words);
    const std::string blamed = recognition::file_of_message(message);
    const bool known =
        std::any_of(files.begin(), files.end(), [&](const GivenFile& one) { return one.path == blamed; });
    const bool typed = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return !blamed.empty() && word.ends_with(blamed);  // also behind "--keep="
    });
    if (!known && typed) return "";
    if (!known && !blamed.empty()) return recognition::about_file_of(message);
    std::error_code ignored;
    for (const GivenFile& file : files) {
      if (file.role.empty() || file.path.empty() || !std::filesystem::exists(file.path, ignored)) continue;
      if (!blamed.empty() && file.path != blamed) continue;
      if (std::string sentence = recognition::wrong_file(file.path, file.role); !sentence.empty()) return sentence;
    }
  } catch (const UserError&) {
    return "";  // a file that may not be read: the message says so already
  }
  return "";
}

}  // namespace ridgeline::app
