#include "sim/timeline/list_operands.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "sim/timing/l2_residency.h"

namespace ridgeline {

ListOperands::ListOperands(const OpTrace& trace) {
  entries_.resize(trace.calls.size());
  std::vector<std::uint32_t> seen_by(trace.storages.size());
  for (std::uint32_t i = 0; i < trace.calls.size(); ++i) {
    const Call& call = trace.calls[i];
    if (!std::holds_alternative<MultiTensor>(trace.ops[call.op])) continue;
    OfCall& made = lists_.emplace_back();
    entries_[i] = static_cast<std::uint32_t>(lists_.size());
    made.inputs = call.inputs;
    const auto operands =
        std::span(trace.operands).subspan(call.operands_begin, std::size_t{call.inputs} + call.outputs);
    made.before.reserve(operands.size() + 1);
    made.before.push_back(0.0);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Operand& operand = operands[k];
      made.hash = (made.hash ^ operand.storage) * 0x9e3779b97f4a7c15u;
      made.hash = (made.hash ^ made.hash >> 29 ^ static_cast<std::uint64_t>(operand.bytes)) * 0xff51afd7ed558ccdu;
      if (k < call.inputs) made.reads_once = made.reads_once && seen_by[operand.storage] != i + 1;
      seen_by[operand.storage] = i + 1;
      made.before.push_back(made.before.back() + static_cast<double>(operand.bytes));
    }
  }
}

double bytes_read_once(const ListOperands::OfCall& operands, const KernelLaunch& launch) {
  if (!operands.reads_once) return 0.0;
  const std::size_t lists = lists_of(launch);
  if (lists == 0) return 0.0;
  const std::size_t all = operands.before.size() - 1, tensors = all / lists;
  double bytes = 0.0;
  for (std::size_t i = 0; i < launch.reads.size(); ++i) {
    const Access& access = launch.reads[i];
    if (access.list < 0 || (i > 0 && access.list <= launch.reads[i - 1].list)) return 0.0;
    const std::size_t list = static_cast<std::size_t>(access.list) * tensors;
    if (list + tensors > operands.inputs) return 0.0;
    // Bytes of the list up to a place in it.
    const auto up_to = [&](double place) {
      const auto whole = std::min(static_cast<std::size_t>(place), tensors);
      const double begun = operands.before[list + whole];
      if (whole == tensors) return begun;
      return begun + (place - std::floor(place)) * (operands.before[list + whole + 1] - begun);
    };
    bytes += up_to(access.to) - up_to(access.from);
  }
  return bytes;
}

}  // namespace ridgeline
