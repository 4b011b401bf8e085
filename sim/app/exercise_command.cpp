// ridgeline exercise: questions to think about, answered with the simulator.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/output/standard_output.h"
#include "sim/report/exercise_measures.h"
#include "sim/report/json/exercise_json.h"
#include "sim/report/text/memory_words.h"
#include "sim/study/exercise/exercise.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct ExerciseOptions {
  int number = 0;
  std::string answer, format = "text";
  bool solution = false;
};

/// Paragraphs of a block of text, which empty lines part, each wrapped anew.
void write_paragraphs(std::string& out, std::string_view text) {
  std::string paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) write_wrapped(out, "  ", paragraph);
    paragraph.clear();
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end == 0) {
      flush();
      out += '\n';
    } else {
      if (!paragraph.empty()) paragraph += ' ';
      paragraph += text.substr(0, end);
    }
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  flush();
}

std::string in_unit(double value, const Exercise& exercise) {
  return fmt::format("{:.4g}{}{}", value, exercise.unit.empty() ? "" : " ", exercise.unit);
}

void print_question(const Exercise& e) {
  std::string out = fmt::format("Exercise {}: {}\n\n", e.number, e.title);
  write_paragraphs(out, e.question);
  out += "\n  to explore\n";
  for (const std::string& command : e.explore) out += "    " + command + "\n";
  out += fmt::format("\n  ridgeline exercise {} --answer X{}   ({:.3g} % off is right; --solution shows it)\n",
                     e.number, e.unit.empty() ? "" : fmt::format("   in {}", e.unit), 100 * e.tolerance);
  print("{}", out);
}

void print_solution(const Exercise& e, ExerciseNumbers& numbers) {
  std::string out = fmt::format("\n  simulated     {}\n", in_unit(numbers.answer(), e));
  if (!e.measured.empty())
    write_wrapped(out, "  measured      ",
                  fmt::format("{} ({})", in_unit(numbers.evaluate(e.measured), e), e.measured_source));
  out += '\n';
  write_paragraphs(out, numbers.filled(e.explanation));
  print("{}", out);
}

void list(const std::vector<Exercise>& exercises, const std::string& format) {
  if (format == "json") {
    print("{}\n", exercise_list_json(exercises).dump(2));
    return;
  }
  for (const Exercise& e : exercises) print("{:>4}  {}\n", e.number, e.title);
  print("\nridgeline exercise N asks one\n");
}

void run(const ExerciseOptions& options, Outcome& outcome) {
  const std::vector<Exercise> exercises = shipped_exercises();
  if (exercises.empty()) throw UserError("no exercises in scenarios/exercises");
  if (options.number == 0) {
    if (options.solution || !options.answer.empty())
      throw UserError("exercise: say which one: ridgeline exercise 3 --answer X");
    return list(exercises, options.format);
  }
  const Exercise& exercise = exercise_of(exercises, options.number);
  ExerciseNumbers numbers(exercise, ExerciseMeasures{});
  const bool answered = !options.answer.empty();
  const bool right = answered && is_right(answer_from(options.answer, exercise), numbers.answer(), exercise);
  if (answered && !right) outcome.exit_code = 2;
  if (options.format == "json") {
    const auto json = exercise_json(exercise, options.answer, options.solution, numbers);
    print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  if (!answered && !options.solution) return print_question(exercise);
  if (answered) print("{}\n", right ? "Right." : "Not quite.");
  if (right || options.solution) print_solution(exercise, numbers);
  else print("  try the commands once more, or --solution\n");
}

}  // namespace

void add_exercise_command(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<ExerciseOptions>();
  auto* command = program.add_subcommand("exercise", "questions about training steps, answered with the simulator");
  command->add_option("number", options->number, "which one; none lists them");
  command->add_option("--answer", options->answer,
                      "a number, with or without its unit; exit code 2 if it is not right");
  command->add_flag("--solution", options->solution, "show the answer and why");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options, &outcome] { run(*options, outcome); });
}

}  // namespace ridgeline::app
