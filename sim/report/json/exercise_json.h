// An exercise as `ridgeline exercise --format json` prints it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/study/exercise/exercise.h"

namespace ridgeline {

/// Number, title, chapter and minutes of each, chapter by chapter.
nlohmann::ordered_json exercise_list_json(const std::vector<Exercise>& exercises);
/// `answer`: what the person says, empty for nothing; the solution is there with it, or where `solution` asks for it,
/// and a hint with an answer that is not right.
/// Throws UserError for an answer that is no number in the exercise's unit.
nlohmann::ordered_json exercise_json(const Exercise& exercise, const std::string& answer, bool solution,
                                     ExerciseNumbers& numbers);
/// Throws UserError for a number that none has.
const Exercise& exercise_of(const std::vector<Exercise>& exercises, int number);

}  // namespace ridgeline
