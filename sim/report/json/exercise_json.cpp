#include "sim/report/json/exercise_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/units/user_error.h"

namespace ridgeline {

using nlohmann::ordered_json;

ordered_json exercise_list_json(const std::vector<Exercise>& exercises) {
  ordered_json all = ordered_json::array();
  for (const Exercise& e : exercises) all.push_back({{"number", e.number}, {"title", e.title}});
  return all;
}

ordered_json exercise_json(const Exercise& e, const std::string& answer, bool solution, ExerciseNumbers& numbers) {
  ordered_json json{{"number", e.number},   {"title", e.title}, {"question", e.question},
                    {"explore", e.explore}, {"unit", e.unit},   {"tolerance", e.tolerance}};
  if (!answer.empty()) json["correct"] = is_right(answer_from(answer, e), numbers.answer(), e);
  if (!solution && answer.empty()) return json;
  json["answer"] = numbers.answer();
  if (!e.measured.empty()) json["measured"] = {{"value", numbers.evaluate(e.measured)}, {"source", e.measured_source}};
  json["explanation"] = numbers.filled(e.explanation);
  return json;
}

const Exercise& exercise_of(const std::vector<Exercise>& exercises, int number) {
  if (exercises.empty()) throw UserError("no exercises in scenarios/exercises");
  for (const Exercise& exercise : exercises)
    if (exercise.number == number) return exercise;
  throw UserError(fmt::format("there is no exercise {}; they are 1 to {}", number, exercises.back().number));
}

}  // namespace ridgeline
