#include "sim/program/called_ops.h"

#include <utility>

namespace ridgeline {

std::vector<CalledOp> called_ops(const OpTrace& trace) {
  std::vector<CalledOp> called;
  std::vector<char> seen(trace.ops.size());
  for (const Record& record : trace.records) {
    if (record.kind != Record::Kind::op) continue;
    const std::uint32_t op = trace.calls[record.index].op;
    if (std::exchange(seen[op], 1) == 0) called.push_back({op, hash_of(trace.ops[op])});
  }
  return called;
}

}  // namespace ridgeline
