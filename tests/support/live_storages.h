// What an op trace holds, and whether it works on what is there.
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::testing_support {

/// Storages that live behind the last record.
inline std::set<StorageId> live_storages(const OpTrace& trace) {
  std::set<StorageId> live;
  for (const Record& record : trace.records) {
    if (record.kind == Record::Kind::allocate) live.insert(record.index);
    if (record.kind == Record::Kind::free) live.erase(record.index);
  }
  return live;
}

/// The first record that works on what is not there, makes it twice, or waits for what was not recorded; "": none.
inline std::string first_inconsistency(const OpTrace& trace) {
  std::vector<bool> alive(trace.storages.size(), false), recorded(trace.events, false);
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    switch (record.kind) {
      case Record::Kind::allocate:
        if (alive[record.index]) return fmt::format("record {} makes storage {} again", i, record.index);
        alive[record.index] = true;
        break;
      case Record::Kind::free:
        if (!alive[record.index]) return fmt::format("record {} frees storage {}, which is not there", i, record.index);
        alive[record.index] = false;
        break;
      case Record::Kind::op: {
        const Call& call = trace.calls[record.index];
        for (std::uint32_t o = 0; o < std::uint32_t{call.inputs} + call.outputs; ++o) {
          const Operand& operand = trace.operands[call.operands_begin + o];
          if (!alive[operand.storage] && trace.storages[operand.storage].bytes > 0)
            return fmt::format("record {}: {} of layer {} works on storage {}, which is not there", i,
                               name_of(trace.ops[call.op]), call.layer, operand.storage);
        }
        break;
      }
      case Record::Kind::record_event: recorded[record.index] = true; break;
      case Record::Kind::wait_event:
      case Record::Kind::host_waits_for_event:
        if (!recorded[record.index]) return fmt::format("record {} waits for event {}", i, record.index);
        break;
      default: break;
    }
  }
  return {};
}

}  // namespace ridgeline::testing_support
