// A program without its kernels: what is allocated, launched and waited for, in order.
//
// It follows from the op trace and from a few numbers of the lowered operations: how many launches each has, what it
// allocates meanwhile, what the matrix library reserves. GPUs for which these are equal run the same layout, however
// fast they are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/program/called_ops.h"
#include "sim/program/lowered_ops.h"
#include "sim/program/step_program.h"

namespace ridgeline {

struct LayoutKey {
  /// Of an operation of the trace, all zero where no call names it.
  struct Operation {
    std::uint32_t first_launch = 0, launches = 0;
    std::vector<std::int64_t> temporaries;  ///< bytes
    bool operator==(const Operation&) const = default;
  };
  std::vector<Operation> operations;  ///< beside the trace's `ops`
  std::int64_t workspace = 0;         ///< bytes of the matrix library's
  std::int64_t light_workspace = 0;   ///< of what adds biases
  std::int64_t engine_workspace = 0;  ///< of TransformerEngine, where the trace has it
  bool fuses_bias = false;            ///< products add biases themselves
  bool operator==(const LayoutKey&) const = default;
};

/// A storage of a layout that is none of its trace.
struct AddedStorage {
  enum class Kind : std::uint8_t { temporary, workspace, light_workspace, engine_workspace };
  Kind kind = Kind::temporary;
  std::uint32_t op = 0, number = 0;  ///< of temporaries: entry of LayoutKey::operations, and of its temporaries
};

/// A program of this key's launches that holds none of them; the storages beyond those of its trace go to `added`.
StepProgram lay_out(const OpTrace& trace, const LayoutKey& key, std::vector<AddedStorage>* added = nullptr);

/// What the actions of a layout follow from where the records of the trace are known: of traces that differ in sizes
/// alone, those with one shape run the same actions.
struct LayoutShape {
  LayoutShape(const OpTrace& trace, const LayoutKey& key);
  struct Operation {
    std::uint32_t first_launch = 0, launches = 0, temporaries = 0;
    bool multiplies = false, adds_bias = false;
    bool operator==(const Operation&) const = default;
  };
  std::vector<Operation> operations;
  std::uint64_t calls = 0;  ///< hash of which operation each call is
  bool workspace = false, light_workspace = false, engine_workspace = false, fuses_bias = false;
  bool operator==(const LayoutShape&) const = default;
};

/// lay_out(trace, key) from `like`, which lay_out() made of a trace of the same records and a key of the same shape.
StepProgram lay_out_like(const StepProgram& like, std::span<const AddedStorage> added, const OpTrace& trace,
                         const LayoutKey& key);

/// As make_program(trace, known), with the layout that `layout_of` gives: lay_out() of the key, or one kept from
/// before. `called`: called_ops() of the trace.
StepProgram make_program(const OpTrace& trace, std::span<const CalledOp> called, LoweredOps& known,
                         const std::function<StepProgram(const LayoutKey&)>& layout_of);

}  // namespace ridgeline
