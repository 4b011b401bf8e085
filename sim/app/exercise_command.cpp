// ridgeline exercise: questions to think about, answered with the simulator.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/app/waiting.h"
#include "sim/output/standard_output.h"
#include "sim/report/exercise_measures.h"
#include "sim/report/json/exercise_json.h"
#include "sim/report/text/memory_words.h"
#include "sim/study/exercise/exercise.h"
#include "sim/study/exercise/pasted_command.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

constexpr std::size_t kExerciseColumns = 80;

struct ExerciseOptions {
  int number = 0;
  std::string answer, format = "text";
  bool solution = false;
};

/// Paragraphs of a block of text, which empty lines part, each wrapped anew.
void write_paragraphs(std::string& out, std::string_view text) {
  std::string paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) write_wrapped(out, "  ", paragraph, kExerciseColumns);
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

/// Where a command is parted: the last blank outside of quotes within `width` columns, else the first one; npos where
/// there is none.
std::size_t part_of_command(std::string_view command, std::size_t width) {
  std::size_t found = command.npos;
  char quote = 0;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const char c = command[i - 1];
    if (quote == 0 && (c == '"' || c == '\'')) quote = c;
    else if (c == quote) quote = 0;
    if (quote != 0 || command[i] != ' ') continue;
    if (i > width && found != command.npos) break;
    found = i;
  }
  return found;
}

/// Commands in lines that a shell takes as they are pasted.
void write_commands(std::string& out, const Exercise& e) {
  constexpr std::size_t kFirst = 4, kNext = 8;
  for (const std::string& command : e.explore) {
    std::string rest = shown_command(command);
    std::size_t margin = kFirst;
    while (margin + rest.size() > kExerciseColumns) {
      const std::size_t end = part_of_command(rest, kExerciseColumns - margin - 2);
      if (end == rest.npos) break;
      out += std::string(margin, ' ') + rest.substr(0, end) + " \\\n";
      rest.erase(0, end + 1);
      margin = kNext;
    }
    out += std::string(margin, ' ') + rest + "\n";
  }
}

void print_question(const Exercise& e, ExerciseNumbers& numbers) {
  std::optional<Waiting> waiting(std::in_place, "simulating");
  std::string out = fmt::format("Exercise {}: {}\n{}, about {} minutes\n\n", e.number, e.title, e.chapter, e.minutes);
  write_paragraphs(out, numbers.filled(e.question));
  out += "\n  to explore, after a guess\n";
  write_commands(out, e);
  out += fmt::format("\n  {} {} --answer X{}\n  {:.3g} % off is right; --solution shows it\n",
                     shown_command("ridgeline exercise"), e.number,
                     e.unit.empty() ? "" : fmt::format("   in {}", e.unit), 100 * e.tolerance);
  waiting.reset();
  print("{}", out);
}

/// Bars of at most 40 columns.
void draw(std::string& out, const ExercisePicture& picture, ExerciseNumbers& numbers) {
  constexpr double kBar = 40;
  double most = 0;
  std::size_t widest = 0;
  std::vector<double> values;
  for (const auto& [label, value] : picture.bars) {
    values.push_back(numbers.evaluate(value));
    most = std::max(most, std::abs(values.back()));
    widest = std::max(widest, label.size());
  }
  out += fmt::format("\n  {}\n", picture.title);
  for (std::size_t i = 0; i < values.size(); ++i)
    out += fmt::format(
        "    {:<{}}  {:>8}{}{}  {}\n", picture.bars[i].label, widest, significant_digits(values[i], 3),
        picture.unit.empty() ? "" : " ", picture.unit,
        std::string(most > 0 ? static_cast<std::size_t>(std::lround(kBar * std::abs(values[i]) / most)) : 0, '#'));
}

void print_solution(const Exercise& e, ExerciseNumbers& numbers) {
  std::optional<Waiting> waiting(std::in_place, "simulating");
  std::string out = fmt::format("\n  simulated     {}\n", in_unit(numbers.answer(), e));
  if (!e.measured.empty())
    write_wrapped(out, "  measured      ",
                  fmt::format("{} ({})", in_unit(numbers.evaluate(e.measured), e), e.measured_source),
                  kExerciseColumns);
  out += '\n';
  write_paragraphs(out, numbers.filled(e.explanation));
  draw(out, e.picture, numbers);
  waiting.reset();
  print("{}", out);
}

/// The teacher's list: every question with its answer.
void print_all(const std::vector<Exercise>& exercises) {
  int minutes = 0;
  for (const Exercise& e : exercises) {
    ExerciseNumbers numbers(e, ExerciseMeasures{});
    print_question(e, numbers);
    print_solution(e, numbers);
    print("\n");
    minutes += e.minutes;
  }
  print("{} exercises, about {} minutes together\n", exercises.size(), minutes);
}

void print_hint(const Exercise& e, double given, ExerciseNumbers& numbers) {
  std::string out = "\n";
  write_paragraphs(out, hint_for(given, e, numbers));
  out += "\n  then\n";
  write_commands(out, e);
  out += fmt::format("  or {} {} --solution\n", shown_command("ridgeline exercise"), e.number);
  print("{}", out);
}

void list(const std::vector<Exercise>& exercises, const std::string& format, bool solutions) {
  if (format == "json") {
    auto json = exercise_list_json(exercises);
    if (solutions)
      for (auto& one : json) {
        const Exercise& e = exercise_of(exercises, one["number"]);
        ExerciseNumbers numbers(e, ExerciseMeasures{});
        one = exercise_json(e, "", true, numbers);
      }
    print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  std::string chapter;
  for (const Exercise& e : exercises) {
    if (e.chapter != chapter) print("{}{}\n", chapter.empty() ? "" : "\n", chapter = e.chapter);
    print("{:>4}  {}\n", e.number, e.title);
  }
  print("\nridgeline exercise N asks one; exercise --solution shows all with their answers\n");
}

void run(const ExerciseOptions& options, Outcome& outcome) {
  const std::vector<Exercise> exercises = shipped_exercises();
  if (exercises.empty()) throw UserError("no exercises in scenarios/exercises");
  if (options.number == 0) {
    if (!options.answer.empty()) throw UserError("exercise: say which one: ridgeline exercise 3 --answer X");
    if (options.solution && options.format == "text") return print_all(exercises);
    return list(exercises, options.format, options.solution);
  }
  const Exercise& exercise = exercise_of(exercises, options.number);
  ExerciseNumbers numbers(exercise, ExerciseMeasures{});
  const bool answered = !options.answer.empty();
  std::optional<Waiting> waiting(std::in_place, "simulating");
  const bool right = answered && is_right(answer_from(options.answer, exercise), numbers.answer(), exercise);
  waiting.reset();
  if (answered && !right) outcome.exit_code = 2;
  if (options.format == "json") {
    const auto json = exercise_json(exercise, options.answer, options.solution, numbers);
    print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  if (!answered && !options.solution) return print_question(exercise, numbers);
  if (answered) print("{}\n", right ? "Right." : "Not quite.");
  if (right || options.solution) print_solution(exercise, numbers);
  else print_hint(exercise, answer_from(options.answer, exercise), numbers);
}

}  // namespace

void add_exercise_command(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<ExerciseOptions>();
  auto* command = program.add_subcommand("exercise", "questions about training steps, answered with the simulator");
  command->add_option("number", options->number, "which one; none lists them");
  command->add_option("--answer", options->answer,
                      "a number, with or without its unit; exit code 2 if it is not right");
  command->add_flag("--solution", options->solution, "show the answer and why; without a number, of all");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options, &outcome] { run(*options, outcome); });
}

}  // namespace ridgeline::app
