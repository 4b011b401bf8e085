// One line of a kernel-case file: {"op":"mm","dtype":"bf16","params":{"m":4096,...},"input_sets":3,"id":"..."}.
//
// The vocabulary of ops and parameters is fixed (see docs/kernel-cases.md). A bad line throws KernelCaseError with a
// sentence for people; the caller reports it on that line and goes on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/units/user_error.h"
#include "sim/workload/op.h"

namespace ridgeline {

struct KernelCaseError : UserError {
  using UserError::UserError;
};

struct KernelCase {
  Op op;
  /// Different sets of inputs used in turn; 0 means inputs are cold and the L2 is clean.
  int input_sets = 0;
  int shared_operand = -1;  ///< the operand that all sets have in common; -1: none
};

/// Throws KernelCaseError: unknown op (with the nearest name), missing, unknown or impossible parameter.
KernelCase kernel_case_from(const nlohmann::json& line);

/// Every op of the vocabulary, in alphabetical order.
std::vector<std::string> kernel_op_names();

}  // namespace ridgeline
