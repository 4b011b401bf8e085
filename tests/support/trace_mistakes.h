// What is wrong with an op trace by itself: storages that are used while they are not there, operations with other
// tensors than their shapes say.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/operand_sizes.h"

namespace ridgeline::testing_support {

/// Storages come and go: each is allocated once, used between its birth and its end, and freed at most once. One that
/// is never allocated lies in another.
inline std::string first_use_of_nothing(const OpTrace& trace) {
  enum class Life : std::uint8_t { unborn, alive, dead };
  std::vector<Life> lives(trace.storages.size(), Life::unborn);
  std::vector<bool> allocated(trace.storages.size());
  for (const Record& record : trace.records)
    if (record.kind == Record::Kind::allocate) allocated.at(record.index) = true;
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::allocate) {
      if (lives.at(record.index) != Life::unborn) return fmt::format("record {} allocates a storage again", i);
      lives[record.index] = Life::alive;
    } else if (record.kind == Record::Kind::free) {
      if (lives.at(record.index) != Life::alive) return fmt::format("record {} frees what is not there", i);
      lives[record.index] = Life::dead;
    } else if (record.kind == Record::Kind::op) {
      const Call& call = trace.calls.at(record.index);
      for (std::uint32_t k = 0; k < std::uint32_t{call.inputs} + call.outputs; ++k) {
        const Operand& operand = trace.operands.at(call.operands_begin + k);
        if (allocated[operand.storage] && lives[operand.storage] != Life::alive)
          return fmt::format("operand {} of {} {} in layer {} is {}", k, name_of(trace.ops[call.op]),
                             shape_of(trace.ops[call.op]), call.layer,
                             lives[operand.storage] == Life::dead ? "gone" : "not there yet");
      }
    }
  }
  return {};
}

/// No operand is longer than its storage.
inline std::string first_beyond_its_storage(const OpTrace& trace) {
  for (const Call& call : trace.calls)
    for (std::uint32_t k = 0; k < std::uint32_t{call.inputs} + call.outputs; ++k) {
      const Operand& operand = trace.operands.at(call.operands_begin + k);
      const std::int64_t bytes = trace.storages.at(operand.storage).bytes;
      if (operand.bytes > bytes || operand.bytes < 0)
        return fmt::format("{} touches {} bytes of {}", name_of(trace.ops[call.op]), operand.bytes, bytes);
    }
  return {};
}

/// As many tensors as workload/op_operands.h says; of lists a multiple, or none where they are not tracked.
inline std::string first_of_another_count(const OpTrace& trace) {
  for (const Call& call : trace.calls) {
    const Op& op = trace.ops[call.op];
    const OperandCounts counts = operand_counts(op);
    if (const auto* copy = std::get_if<Copy>(&op); copy && leaves_device(copy->kind)) continue;
    const auto* lists = std::get_if<MultiTensor>(&op);
    const bool right = lists != nullptr ? call.inputs % lists->sizes->size() == 0
                                        : call.inputs == counts.inputs && call.outputs == counts.outputs;
    if (!right)
      return fmt::format("{} {} in layer {} has {} inputs and {} outputs", name_of(op), shape_of(op), call.layer,
                         call.inputs, call.outputs);
  }
  return {};
}

/// Steps follow each other, calls belong to modules that are named, and phases come as they do in a script.
inline std::string first_out_of_place(const OpTrace& trace, std::int64_t layers) {
  std::uint32_t end = 0;
  for (const StepRange& step : trace.steps) {
    if (step.begin < end || step.end < step.begin || step.end > trace.records.size()) return "steps overlap";
    end = step.end;
  }
  for (std::size_t i = 0; i < trace.modules.size(); ++i)
    if (trace.modules[i].parent > i) return "a module stands before its parent";
  for (const Call& call : trace.calls) {
    if (call.module > trace.modules.size()) return "a call belongs to no module";
    if (call.layer < -1 || call.layer >= layers) return fmt::format("a call of layer {}", call.layer);
  }
  return {};
}

/// The first mistake of all of these; "": none.
inline std::string first_mistake(const OpTrace& trace, std::int64_t layers) {
  for (const std::string& mistake :
       {first_use_of_nothing(trace), first_beyond_its_storage(trace), first_of_another_count(trace),
        first_of_another_size(trace), first_out_of_place(trace, layers)})
    if (!mistake.empty()) return mistake;
  return {};
}

}  // namespace ridgeline::testing_support
