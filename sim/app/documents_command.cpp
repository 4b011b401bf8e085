// ridgeline completion, and the man page that packages carry: both from the commands as they are.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/commands.h"
#include "sim/app/version.h"
#include "sim/output/standard_output.h"

namespace ridgeline::app {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : program.get_subcommands(nullptr))
    if (!command->get_group().empty()) commands.push_back(command);
  return commands;
}

std::string long_options(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) words += (words.empty() ? "--" : " --") + name;
  return words;
}

/// What an option's help lists where it is a list of words, "fp32, tf32, bf16", after a colon or alone.
std::string listed_words(const CLI::Option& option) {
  std::string text = option.get_description();
  if (const auto colon = text.rfind(": "); colon != std::string::npos) text.erase(0, colon + 2);
  std::string words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(", ", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    constexpr std::string_view kOfAWord = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    if (word.empty() || word.find_first_not_of(kOfAWord) != std::string::npos) return "";
    words += (words.empty() ? "" : " ") + word;
    begin = end + 2;
  }
  return words.find(' ') != std::string::npos ? words : "";
}

/// A line of the completion for each option whose words its help lists.
std::string completed_words(const CLI::App& program) {
  std::map<std::string, std::string> words;
  for (const CLI::App* command : commands_of(program))
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        if (const std::string listed = listed_words(*option); !listed.empty()) words.try_emplace(name, listed);
  std::string lines;
  for (const auto& [name, listed] : words)
    lines +=
        fmt::format("    --{}) mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$current\"); return ;;\n", name, listed);
  return lines;
}

std::string bash_completion(const CLI::App& program) {
  std::string names, cases;
  for (const CLI::App* command : commands_of(program)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), long_options(*command));
  }
  return fmt::format(R"SH(# Completion of ridgeline for bash: source <(ridgeline completion bash)
_ridgeline() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "{} --help --version" -- "$current")
    return
  fi
  case "$before" in
    --hardware|--recorded-on) mapfile -t COMPREPLY < <(compgen -W "$(ridgeline hardware --names 2>/dev/null)" -- "$current"); return ;;
    --cluster) mapfile -t COMPREPLY < <(compgen -W "$(ridgeline hardware --clusters 2>/dev/null)" -- "$current"); return ;;
    --engine) mapfile -t COMPREPLY < <(compgen -W "roofline analytic simulate" -- "$current"); return ;;
    --model) mapfile -t COMPREPLY < <(compgen -W "$(ridgeline models --names 2>/dev/null)" -f -- "$current"); return ;;
{}  esac
  case "${{COMP_WORDS[1]}}" in
{}  esac
  if [[ $current == -* ]]; then mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  elif [[ ${{COMP_WORDS[1]}} == hardware || ${{COMP_WORDS[1]}} == models ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(ridgeline "${{COMP_WORDS[1]}}" --names 2>/dev/null)" -f -- "$current")
  else mapfile -t COMPREPLY < <(compgen -f -- "$current"); fi
}}
complete -o filenames -F _ridgeline ridgeline
)SH",
                     names, completed_words(program), cases);
}

/// roff reads a backslash and a dash at the start of a line as its own.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  }
  return out.starts_with(".") || out.starts_with("'") ? "\\&" + out : out;
}

std::string man_page(const CLI::App& program) {
  std::string page = fmt::format(
      ".TH RIDGELINE 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\nridgeline \\- {}\n.SH SYNOPSIS\n.B ridgeline\n.I "
      "COMMAND\n"
      "[\\fIOPTION\\fR]...\n.SH COMMANDS\n",
      kProgramAndVersion, "time and memory of a training step on a described GPU");
  for (const CLI::App* command : commands_of(program)) {
    page += fmt::format(".SS {}\n{}.\n", roff(command->get_name()), roff(command->get_description()));
    for (const CLI::Option* option : command->get_options()) {
      const std::string name = option->get_positional() ? option->get_name(true) : option->get_name(false, true);
      page += fmt::format(".TP\n.B {}\n{}\n", roff(name), roff(option->get_description()));
    }
  }
  page += fmt::format(".SH EXIT STATUS\n{}\n", roff(program.get_footer()));
  return page +
         ".SH ENVIRONMENT\n.TP\n.B RIDGELINE_DATA\nFolder whose hw, models and scenarios are read in the place of the "
         "installed ones.\n";
}

}  // namespace

void add_document_commands(CLI::App& program) {
  auto shell = std::make_shared<std::string>("bash");
  auto* completion = program.add_subcommand("completion", "what a shell sources to complete ridgeline's commands");
  completion->add_option("shell", *shell, "bash")->check(CLI::IsMember({"bash"}));
  completion->callback([&program, shell] { print("{}", bash_completion(program)); });
  auto* man = program.add_subcommand("man", "the manual page, for packages")->group("");
  man->callback([&program] { print("{}", man_page(program)); });
}

}  // namespace ridgeline::app
