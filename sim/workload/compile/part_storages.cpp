#include "sim/workload/compile/part_storages.h"

#include <algorithm>
#include <vector>

namespace ridgeline::compile {
namespace {

std::vector<std::uint32_t> range_of_records(const OpTrace& trace) {
  std::vector<std::uint32_t> result(trace.records.size(), kNone);
  for (std::uint32_t r = 0; r < trace.compiled_ranges.size(); ++r)
    for (const StepRange& part : {trace.compiled_ranges[r].forward, trace.compiled_ranges[r].backward})
      std::fill(result.begin() + part.begin, result.begin() + part.end, r);
  return result;
}

}  // namespace

PartStorages::PartStorages(const OpTrace& trace) {
  if (std::none_of(trace.compiled_ranges.begin(), trace.compiled_ranges.end(),
                   [](const CompiledRange& range) { return range.is_part(); }))
    return;
  std::unordered_map<StorageId, StorageId> newest;
  for (const auto& [first, fresh] : trace.refills) {
    const auto before = newest.try_emplace(first, first).first;
    refilled_[before->second] = fresh;
    before->second = fresh;
  }
  const std::vector<std::uint32_t> range_of = range_of_records(trace);
  std::vector<std::uint32_t> made_in(trace.storages.size(), kNone), used_in(trace.storages.size(), kNone);
  for (std::uint32_t i = 0; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::allocate) {
      made_in[record.index] = used_in[record.index] = range_of[i];
    } else if (record.kind == Record::Kind::op) {
      const Call& call = trace.calls[record.index];
      for (std::uint32_t o = 0; o < std::uint32_t{call.inputs} + call.outputs; ++o) {
        const StorageId storage = trace.operands[call.operands_begin + o].storage;
        used_in[storage] = range_of[i];
        if (range_of[i] != made_in[storage]) storages_[storage].shared = true;
      }
    } else if (record.kind == Record::Kind::free && range_of[i] == kNone) {
      storages_[record.index].freed_at = i;
    } else if (record.kind == Record::Kind::free) {
      const std::uint32_t last = used_in[record.index];
      storages_[record.index].ends_in = last != kNone ? last : range_of[i];
    }
  }
}

bool PartStorages::shared(StorageId storage) const {
  const auto found = storages_.find(storage);
  return found != storages_.end() && found->second.shared;
}

std::uint32_t PartStorages::ends_in(StorageId storage) const {
  const auto found = storages_.find(storage);
  return found == storages_.end() ? kNone : found->second.ends_in;
}

bool PartStorages::gone_before(StorageId storage, std::uint32_t record) const {
  const auto found = storages_.find(storage);
  return found != storages_.end() && found->second.freed_at < record;
}

StorageId PartStorages::refilled(StorageId storage) const {
  const auto found = refilled_.find(storage);
  return found == refilled_.end() ? kNone : found->second;
}

}  // namespace ridgeline::compile
