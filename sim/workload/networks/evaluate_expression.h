// Values of a program's expressions.
#pragma once

#include "sim/workload/networks/program_value.h"

namespace ridgeline::networks {

/// Numbers, lists, conditions; names and calls are those of whoever derives from it.
class ExpressionEvaluator {
 public:
  explicit ExpressionEvaluator(const NetworkProgram& program) : program_(program) {}
  virtual ~ExpressionEvaluator() = default;

  ProgramValue evaluate(const Expression& e);
  std::int64_t whole(const Expression& e);

 protected:
  [[noreturn]] void fail(const ProgramPlace& place, const std::string& message) const { program_.fail(place, message); }
  virtual ProgramValue value_of(const Expression& name) = 0;
  /// Of a call whose callee is no function of numbers; throws where there is none.
  virtual ProgramValue call(const Expression& call);
  virtual ProgramValue member(const Expression& e);
  virtual void set_variable(const Expression& each, ProgramValue value);
  /// One of both is a tensor.
  virtual ProgramValue tensor_operation(const Expression& e, const ProgramValue& a, const ProgramValue& b);

  const NetworkProgram& program_;

 private:
  ProgramValue binary(const Expression& e);
  ProgramValue arithmetic(const Expression& e, const ProgramValue& a, const ProgramValue& b);
  ProgramValue element(const Expression& e);
  ProgramValue part(const Expression& e);
  ProgramValue each(const Expression& e);
  ProgramValue number_function(const Expression& e);
};

/// range, len, min, max, int, sum, round: functions of numbers.
bool is_number_function(const std::string& name);

/// The sizes of a model: those that are given, and the defaults of the others.
std::vector<ProgramValue> evaluate_sizes(const NetworkProgram& program, std::vector<ProgramValue> given);

}  // namespace ridgeline::networks
