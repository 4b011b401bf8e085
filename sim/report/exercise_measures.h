// The numbers behind an exercise, from the same JSON that the commands print.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/study/exercise/exercise.h"

namespace ridgeline {

class ExerciseMeasures {
 public:
  /// In base units. Each prediction is made once. Throws UserError for what is not there.
  double operator()(const MeasureSource& source);
  /// Alike for sources of one number, different for others.
  static std::string key_of(const MeasureSource& source);

 private:
  std::map<std::string, nlohmann::json> known_;
};

/// The number at a dotted path of JSON; with a list on the way ("kernels[class=attention].flops") the sum over its
/// entries, or over those whose field has the value. Throws UserError.
double number_at(const nlohmann::json& json, const std::string& path);

}  // namespace ridgeline
