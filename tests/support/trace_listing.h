// An op trace in words, a line for each of its records.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sim/workload/op_trace.h"
#include "tests/support/worked_call.h"

namespace ridgeline::trace {

/// A line for each record: "op mul 3x5 … [storage:bytes … > storage:bytes] phase".
inline std::string listing_of(const OpTrace& trace) {
  constexpr const char* kPhases[] = {"setup", "forward", "backward", "clipping", "optimizer", "other"};
  std::string text;
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    for (const StepRange& step : trace.steps)
      if (step.begin == i) text += "step\n";
    switch (record.kind) {
      case Record::Kind::allocate: text += fmt::format("allocate {}\n", record.index); break;
      case Record::Kind::free: text += fmt::format("free {}\n", record.index); break;
      case Record::Kind::host:
        text +=
            fmt::format("host {} {}\n", host_class_names()[static_cast<std::size_t>(record.host_class)], record.index);
        break;
      case Record::Kind::wait_for_gpu: text += "wait\n"; break;
      case Record::Kind::record_event: text += fmt::format("event {} of {}\n", record.index, record.stream); break;
      case Record::Kind::wait_event: text += fmt::format("{} waits for {}\n", record.stream, record.index); break;
      case Record::Kind::host_waits_for_event: text += fmt::format("host waits for {}\n", record.index); break;
      case Record::Kind::op: {
        const Call& call = trace.calls[record.index];
        text += text_of(trace.ops[call.op]) + " [";
        for (int k = 0; k < call.inputs + call.outputs; ++k) {
          const Operand& operand = trace.operands[call.operands_begin + static_cast<std::size_t>(k)];
          text += fmt::format("{}{}:{}", k == call.inputs ? " > " : k > 0 ? " " : "", operand.storage, operand.bytes);
        }
        text += fmt::format("] {}{}{}\n", kPhases[static_cast<int>(call.phase)],
                            call.stream > 0 ? fmt::format(" on {}", call.stream) : "",
                            call.layer >= 0 ? fmt::format(" of {}", call.layer) : "");
        break;
      }
    }
  }
  return text;
}

}  // namespace ridgeline::trace
