#include "sim/app/usage_mistakes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/command_examples.h"
#include "sim/app/meant_option.h"
#include "sim/scenario/named_kind.h"
#include "sim/scenario/short_flags.h"
#include "sim/units/meant_name.h"

namespace ridgeline::app {
namespace {

constexpr std::string_view kBeginWith = "begin with: ridgeline predict --model gpt2 --hardware h100";

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options())
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  return names;
}

const CLI::App* parsed_command(const CLI::App& program) {
  for (const CLI::App* command : program.get_subcommands(nullptr))
    if (command->parsed()) return command;
  return nullptr;
}

/// "; for example: ridgeline fits ..." of the command.
std::string example_of(const CLI::App* command) {
  const std::string_view example = command == nullptr ? "" : command_example(command->get_name());
  return example.empty() ? "" : fmt::format("; for example: {}", example);
}

std::string about_option(const CLI::Option& option) {
  for (const ShortFlag& flag : short_flags())
    if (option.check_name(std::string(flag.flag)) && !flag.example.empty())
      return fmt::format("{}, such as {} {}", option.get_description(), flag.flag, flag.example);
  return option.get_description();
}

const CLI::Option* option_called(const CLI::App* command, const std::string& name) {
  return command == nullptr ? nullptr : command->get_option_no_throw(name);
}

/// A word too many.
std::string unexpected(const CLI::App& program, const std::string& fallback) {
  const std::vector<std::string> given = program.remaining(true);
  const CLI::App* command = parsed_command(program);
  if (given.empty() || command == nullptr) return fallback;
  const auto option =
      std::find_if(given.begin(), given.end(), [](const std::string& a) { return a.starts_with("-") && a.size() > 1; });
  if (option != given.end()) {
    const std::string name = option->substr(0, option->find('='));
    const std::string meant = meant_option(name, options_of(*command));
    return fmt::format("{} is no option of {}{} (ridgeline {} --help lists them)", name, command->get_name(),
                       meant.empty() ? example_of(command) : "; " + meant, command->get_name());
  }
  return fmt::format("{}: one word too many for {} (quote names with blanks){}", given.front(), command->get_name(),
                     example_of(command));
}

std::string before(const std::string& text, std::string_view mark) { return text.substr(0, text.find(mark)); }
std::string after(const std::string& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? "" : text.substr(at + mark.size());
}

}  // namespace

std::string mistake_before_parsing(const CLI::App& program, const std::vector<std::string>& words) {
  if (words.size() < 2) return fmt::format("a command is missing: {} (ridgeline --help lists all)", kBeginWith);
  const std::string& given = words[1];
  std::vector<std::string> names;
  if (given.starts_with('-')) {
    for (const CLI::Option* known : program.get_options())
      if (known->check_name(given)) return "";
    if (flag_of_key(given.substr(std::min<std::size_t>(2, given.size()))) != nullptr)
      return fmt::format("{} goes behind a command: ridgeline predict {} ...", given, given);
    const std::string meant = meant_option(given, options_of(program));
    return fmt::format("{} is no option of ridgeline{} (ridgeline --help lists them)", given,
                       meant.empty() ? fmt::format("; {}", kBeginWith) : "; " + meant);
  }
  const CLI::App* command = nullptr;
  for (const CLI::App* one : program.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
    if (one->get_name() == given) command = one;
  }
  if (command == nullptr) {
    names.insert(names.end(), {"help", "version"});
    const std::string meant = meant_name(given, names), key = meant.empty() ? key_of_name(given) : "";
    const std::string named = key == "hardware" ? fmt::format("ridgeline predict --model gpt2 --hardware {}", given)
                                                : fmt::format("ridgeline predict --{} {} --hardware h100", key, given);
    return fmt::format("unknown command '{}'; {} (ridgeline --help lists them)", given,
                       !meant.empty() ? fmt::format("did you mean '{}'?", meant)
                       : !key.empty() ? fmt::format("{} is {}: {}", given, kind_words(key), named)
                                      : kBeginWith);
  }
  const std::vector<std::string> options = options_of(*command);
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string name = before(words[i], "=");
    if (name == "--") break;
    if (name.size() > 2 && name[0] == '-' && std::find(options.begin(), options.end(), "-" + name) != options.end())
      return fmt::format("{}: two dashes, -{}", name, words[i]);
  }
  return "";
}

std::string mistake_of(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* command = parsed_command(program);
  const std::string text = error.what(), name = before(text, ":");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return unexpected(program, text);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::string missing = before(text, " is required");
    const CLI::Option* option = option_called(command, missing);
    return fmt::format("{} is missing{}{}", missing,
                       option == nullptr ? "" : fmt::format(" ({})", option->get_description()), example_of(command));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    if (const CLI::Option* option = option_called(command, name); option != nullptr)
      return fmt::format("{}: a value is missing ({})", name, about_option(*option));
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    const std::string given = after(text, ": "), place = before(given, " = "), value = after(given, " = ");
    const CLI::Option* option = option_called(command, place);
    return fmt::format("{} {}: expected a number{}{}", place, value,
                       option == nullptr ? "" : fmt::format(" ({})", option->get_description()), example_of(command));
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr)
    return fmt::format("{} and {} do not go together: leave one out", before(text, " excludes "),
                       after(text, " excludes "));
  return text;
}

}  // namespace ridgeline::app
