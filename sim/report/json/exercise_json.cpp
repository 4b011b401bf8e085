#include "sim/report/json/exercise_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/study/exercise/pasted_command.h"
#include "sim/units/user_error.h"

namespace ridgeline {

using nlohmann::ordered_json;

ordered_json exercise_list_json(const std::vector<Exercise>& exercises) {
  ordered_json all = ordered_json::array();
  for (const Exercise& e : exercises)
    all.push_back({{"number", e.number}, {"title", e.title}, {"chapter", e.chapter}, {"minutes", e.minutes}});
  return all;
}

namespace {

ordered_json picture_json(const ExercisePicture& picture, ExerciseNumbers& numbers) {
  ordered_json bars = ordered_json::array();
  for (const auto& [label, value] : picture.bars)
    bars.push_back({{"label", label}, {"value", numbers.evaluate(value)}});
  return {{"title", picture.title}, {"unit", picture.unit}, {"bars", std::move(bars)}};
}

}  // namespace

ordered_json exercise_json(const Exercise& e, const std::string& answer, bool solution, ExerciseNumbers& numbers) {
  ordered_json json{{"number", e.number},
                    {"title", e.title},
                    {"chapter", e.chapter},
                    {"minutes", e.minutes},
                    {"question", numbers.filled(e.question)},
                    {"explore", ordered_json::array()},
                    {"view", e.view},
                    {"unit", e.unit},
                    {"tolerance", e.tolerance}};
  for (const std::string& command : e.explore) json["explore"].push_back(pasted_anywhere(command));
  if (!answer.empty()) {
    const double given = answer_from(answer, e);
    json["correct"] = is_right(given, numbers.answer(), e);
    if (!json["correct"]) json["hint"] = hint_for(given, e, numbers);
  }
  if (!solution && answer.empty()) return json;
  json["answer"] = numbers.answer();
  if (!e.measured.empty()) json["measured"] = {{"value", numbers.evaluate(e.measured)}, {"source", e.measured_source}};
  json["explanation"] = numbers.filled(e.explanation);
  json["picture"] = picture_json(e.picture, numbers);
  json["mistakes"] = ordered_json::array();
  for (const WrongAnswer& one : e.wrong)
    json["mistakes"].push_back({{"answer", numbers.evaluate(one.answer)}, {"hint", numbers.filled(one.hint)}});
  return json;
}

const Exercise& exercise_of(const std::vector<Exercise>& exercises, int number) {
  if (exercises.empty()) throw UserError("no exercises in scenarios/exercises");
  for (const Exercise& exercise : exercises)
    if (exercise.number == number) return exercise;
  throw UserError(fmt::format("there is no exercise {}; they are 1 to {}", number, exercises.back().number));
}

}  // namespace ridgeline
