// The program: commands, and what becomes of mistakes. 0 = done, 2 = the person's mistake, 1 = ours, or what was to be
// written could not be, 3 = --check: does not fit, 130 = stopped by Ctrl+C.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "sim/app/command_examples.h"
#include "sim/app/command_line.h"
#include "sim/app/commands.h"
#include "sim/app/given_files.h"
#include "sim/app/help_text.h"
#include "sim/app/output_files.h"
#include "sim/app/stop_signal.h"
#include "sim/app/usage_mistakes.h"
#include "sim/app/version.h"
#include "sim/output/output_error.h"
#include "sim/output/standard_error.h"
#include "sim/output/standard_output.h"
#include "sim/output/terminal.h"
#include "sim/units/budget.h"
#include "sim/units/readable_files.h"
#include "sim/units/user_error.h"

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 a fault of the program, or what was to be written could not be; 2 a mistake in the "
    "command line or in a file; 3 with --check: the step does not fit its device; 130 stopped by "
    "Ctrl+C.";

void add_commands(CLI::App& program, ridgeline::app::Outcome& outcome) {
  using namespace ridgeline::app;
  program.set_version_flag("--version", version_text());
  program.require_subcommand(1);
  program.formatter(std::make_shared<HelpText>());  // commands added from here on have it too
  add_predict_command(program, outcome);
  add_fit_command(program, outcome);
  add_fits_command(program, outcome);
  add_compare_command(program, outcome);
  add_sweep_command(program, outcome);
  add_plan_command(program, outcome);
  add_phases_command(program, outcome);
  add_exercise_command(program, outcome);
  add_kernels_command(program, outcome);
  add_collectives_command(program, outcome);
  add_memory_command(program, outcome);
  add_replay_command(program, outcome);
  add_validate_command(program, outcome);
  add_calibrate_command(program, outcome);
  add_refit_command(program, outcome);
  add_hardware_command(program, outcome);
  add_models_command(program, outcome);
  add_schema_command(program, outcome);
  add_serve_command(program, outcome);
  add_document_commands(program);
  program.parse_complete_callback([&program] { check_output_files(program); });
  program.footer(kExitCodes);
  for (CLI::App* command : program.get_subcommands({})) {
    const std::string_view example = command_example(command->get_name());
    command->footer(example.empty() ? kExitCodes : fmt::format("Example: {}\n\n{}", example, kExitCodes));
  }
}

/// `help`, `help COMMAND`, `version` and `-v` are the options that they spell otherwise.
std::vector<std::string> with_options(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (words.size() < 2) return words;
  if (words[1] == "version" || words[1] == "-v" || words[1] == "-V") words[1] = "--version";
  if (words[1] == "help") {
    words.erase(words.begin() + 1);
    words.insert(words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)), "--help");
  }
  return words;
}

/// Runs the command the person chose; help and version are answers too.
int answer(CLI::App& program, const ridgeline::app::Outcome& outcome, int argc, char** argv) {
  try {
    program.parse(argc, argv);
    return outcome.exit_code;
  } catch (const CLI::Success& asked_for) {
    std::ostringstream out;
    const int exit_code = program.exit(asked_for, out, out);
    ridgeline::print_text(out.str());
    return exit_code;
  }
}

/// `message`, or what a file of the command line is that its command does not take.
void print_mistake(const CLI::App& program, const std::vector<std::string>& words, const std::string& message) {
  const std::string about_a_file = ridgeline::app::wrong_file_given(program, words, message);
  ridgeline::print_message("ridgeline: {}\n", about_a_file.empty() ? message : about_a_file);
}

/// Sweeps and plans take and free lists of some MiB for every point: memory that is kept needs no new pages each time.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMebi = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMebi);
  mallopt(M_TRIM_THRESHOLD, 512 * kMebi);
  mallopt(M_TOP_PAD, 16 * kMebi);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ridgeline;
  hold_standard_descriptors();
  app::end_on_signals();
  keep_freed_memory();
  remember_read_files();
  CLI::App program{"Step time and peak memory of training a transformer on a GPU described in YAML, and why.",
                   "ridgeline"};
  app::Outcome outcome;
  follow_terminal();
  const std::vector<std::string> words = with_options(argc, argv);
  std::vector<std::string> given = words;
  std::vector<char*> pointers;
  for (std::string& word : given) pointers.push_back(word.data());
  argc = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  argv = pointers.data();
  app::remember_command_line(argc, argv);
  try {
    add_commands(program, outcome);
    if (const std::string mistake = app::mistake_before_parsing(program, words); !mistake.empty())
      throw UserError(mistake);
    const Budget budget({.memory = memory_budget()});
    const UnderBudget under(&budget);
    const int exit_code = answer(program, outcome, argc, argv);
    finish_output();
    return exit_code;
  } catch (const CLI::ParseError& e) {
    print_mistake(program, words, app::mistake_of(program, e));
    return 2;
  } catch (const UserError& e) {
    print_mistake(program, words, e.what());
    return app::exit_code_of(e);
  } catch (const Cancelled&) {
    print_message("ridgeline: stopped\n");
    return app::exit_code_of(Cancelled());
  } catch (const OverBudget& e) {
    print_message("ridgeline: {}\n", e.what());
    return 2;
  } catch (const std::bad_alloc&) {
    print_message("ridgeline: the question needs more memory than there is\n");
    return 2;
  } catch (const OutputError& e) {
    print_message("ridgeline: {}\n", e.what());
    return 1;
  } catch (const std::exception& e) {
    print_message("ridgeline: this is our bug, please report it: {}\n", e.what());
    return 1;
  }
}
