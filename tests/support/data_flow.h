// Whether operations of an op trace read what was written, and write what is read: a step computes nothing in vain.
#pragma once

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::testing_support {

/// What is odd in the forward and backward passes, each once: "reads unwritten: copy 0" (an operation and the number
/// of its operand), "writes unread: sort 1" (and the number of its result), "never written: attention" (a module).
/// Weights, inputs and states come from before.
inline std::set<std::string> oddities_of_flow(const OpTrace& trace) {
  struct Life {
    bool written = false, read = false;
    std::string writer;
  };
  std::vector<Life> lives(trace.storages.size());
  std::set<std::string> odd;
  const auto from_before = [&](StorageId id) {
    const Category category = trace.storages[id].category;
    return category == Category::weights || category == Category::inputs || category == Category::optimizer_state;
  };
  const auto module_of = [&](std::uint16_t module) { return module == 0 ? "none" : trace.modules[module - 1].name; };
  Phase phase = Phase::setup;
  for (const Record& record : trace.records) {
    if (record.kind == Record::Kind::free && !from_before(record.index)) {
      const Life& life = lives[record.index];
      if (life.read) continue;
      if (!life.writer.empty()) odd.insert("writes unread: " + life.writer);
      else if (!life.written && (phase == Phase::forward || phase == Phase::backward))
        odd.insert("never written: " + module_of(trace.storages[record.index].module));
    }
    if (record.kind != Record::Kind::op) continue;
    const Call& call = trace.calls[record.index];
    const Op& op = trace.ops[call.op];
    phase = call.phase;
    const bool passes = phase == Phase::forward || phase == Phase::backward;
    const bool lists = std::holds_alternative<MultiTensor>(op);  // these write what they read
    for (std::uint32_t k = 0; k < std::uint32_t{call.inputs} + call.outputs; ++k) {
      const StorageId id = trace.operands[call.operands_begin + k].storage;
      Life& life = lives[id];
      if (k < call.inputs) {
        const bool gradient = trace.storages[id].category == Category::gradients;
        if (!life.written && !from_before(id) && (passes || gradient))
          odd.insert("reads unwritten: " + name_of(op) + (lists ? "" : " " + std::to_string(k)));
        life.read = true;
        if (lists) life.written = true;
      } else {
        life = {true, false, passes ? name_of(op) + " " + std::to_string(k - call.inputs) : ""};
      }
    }
  }
  return odd;
}

}  // namespace ridgeline::testing_support
