// A question to think about, whose answer the simulator computes: it stays right when the model improves.
//
// The file (scenarios/exercises/NN-name.yaml) names measures, each a number out of a prediction, a kernel, an
// occupancy, a hardware or model description, and an expression over them that is the answer. Texts may show measures
// as {name} or {name:3} (significant digits).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/override.h"

namespace ridgeline {

struct MeasureSource {
  enum class Kind : unsigned char { prediction, kernel, occupancy, hardware, model } kind = Kind::prediction;
  std::string name;                       ///< in expressions and texts
  std::string subject;                    ///< scenario file, kernel case (JSON), hardware or model
  std::string hardware;                   ///< of a kernel or an occupancy
  std::vector<config::Override> changes;  ///< as --set takes them
  int threads = 0, registers = 0;         ///< of an occupancy, with
  long long shared_bytes = 0;             ///< a block
  std::string key;                        ///< dotted path; "kernels[class=attention].flops" sums over a list
  std::optional<std::string> expression;  ///< of other measures, in place of all that
};

struct Exercise {
  int number = 0;
  std::string file, title, question, explanation;
  std::vector<std::string> explore;  ///< commands
  std::vector<MeasureSource> measures;
  std::string answer;                     ///< expression
  std::string unit;                       ///< of the answer; "" for a plain number
  double tolerance = 0;                   ///< relative
  std::string measured, measured_source;  ///< expression, and where it was measured; empty where nobody did
};

/// Throws ConfigError with file:line:column.
Exercise load_exercise(const std::string& file);
/// The same of a tree that would stand in `file`.
Exercise read_exercise(const config::Node& tree, const std::string& file);
/// All of scenarios/exercises, by number.
std::vector<Exercise> shipped_exercises();

/// Numbers of an exercise by name, each measured once.
class ExerciseNumbers {
 public:
  /// `measure` gives the number behind a source without an expression.
  ExerciseNumbers(const Exercise& exercise, std::function<double(const MeasureSource&)> measure);
  double evaluate(const std::string& expression);
  double answer() { return evaluate(exercise_.answer); }
  /// The text with its {name} filled in.
  std::string filled(const std::string& text);

 private:
  double value_of(const std::string& name);
  const Exercise& exercise_;
  std::function<double(const MeasureSource&)> measure_;
  std::vector<std::optional<double>> known_;
  int depth_ = 0;
};

/// "12", "12 ms", "45 %": a number in the unit of the exercise, or with one that measures the same. Throws UserError.
double answer_from(const std::string& text, const Exercise& exercise);
bool is_right(double given, double right, const Exercise& exercise);

}  // namespace ridgeline
