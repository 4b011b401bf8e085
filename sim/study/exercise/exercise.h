// A question to think about, whose answer the simulator computes: it stays right when the model improves.
//
// The file (scenarios/exercises/NN-name.yaml) names measures, each a number out of a prediction, a kernel, an
// occupancy, a hardware or model description, and an expression over them that is the answer. Texts may show measures
// as {name} or {name:3} (significant digits). A wrong answer gets the hint of the mistake that leads to it, where the
// file names that mistake, else one that says on which side to look.
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

/// A mistake and where it leads.
struct WrongAnswer {
  std::string answer;  ///< expression: what somebody who makes it says
  std::string hint;
};

/// Bars of one unit, which show why the answer is what it is.
struct ExercisePicture {
  struct Bar {
    std::string label, value;  ///< value: expression
  };
  std::string title, unit;
  std::vector<Bar> bars;
};

struct Exercise {
  int number = 0;
  int minutes = 0;      ///< that a learner needs, about
  std::string chapter;  ///< exercises of one are listed together
  std::string file, title, question, explanation;
  std::vector<std::string> explore;  ///< commands
  std::vector<MeasureSource> measures;
  std::string answer;                     ///< expression
  std::string unit;                       ///< of the answer; "" for a plain number
  double tolerance = 0;                   ///< relative
  std::string measured, measured_source;  ///< expression, and where it was measured; empty where nobody did
  std::vector<WrongAnswer> wrong;
  std::string low, high;  ///< hints for other answers below and above the right one
  ExercisePicture picture;
  std::string view;  ///< of the lab, which shows it best: overview, timeline, memory, kernels
};

/// Throws ConfigError with file:line:column.
Exercise load_exercise(const std::string& file);
/// The same of a tree that would stand in `file`.
Exercise read_exercise(const config::Node& tree, const std::string& file);
/// All of scenarios/exercises, by number, which is the order to read them in: a chapter holds consecutive numbers.
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

/// As texts show it, without an exponent where it is large.
std::string significant_digits(double value, int digits);

/// "12", "12 ms", "45 %": a number in the unit of the exercise, or with one that measures the same. Throws UserError.
double answer_from(const std::string& text, const Exercise& exercise);
bool is_right(double given, double right, const Exercise& exercise);
/// What helps somebody who says `given`, which is not right: the hint of the nearest mistake within the tolerance, else
/// of the side.
std::string hint_for(double given, const Exercise& exercise, ExerciseNumbers& numbers);

}  // namespace ridgeline
