#include "sim/workload/repeated_range.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ridgeline {
namespace {

/// Of each record of a stretch that waits for an event, the record that the event is of; kOlder: one before the
/// stretch.
class RecordedEvents {
 public:
  static constexpr std::uint32_t kOlder = UINT32_MAX;
  RecordedEvents(const OpTrace& trace, StepRange stretch) : begin_(stretch.begin) {
    std::unordered_map<std::uint32_t, std::uint32_t> last;
    of_wait_.resize(stretch.end - stretch.begin, kOlder);
    for (std::uint32_t i = stretch.begin; i < stretch.end; ++i) {
      const Record& record = trace.records[i];
      if (record.kind == Record::Kind::record_event) last[record.index] = i;
      if (record.kind != Record::Kind::wait_event && record.kind != Record::Kind::host_waits_for_event) continue;
      if (const auto found = last.find(record.index); found != last.end()) of_wait_[i - begin_] = found->second;
    }
  }
  [[nodiscard]] std::uint32_t of(std::uint32_t wait) const { return of_wait_[wait - begin_]; }

 private:
  std::uint32_t begin_;
  std::vector<std::uint32_t> of_wait_;
};

/// Goes through two stretches side by side, of which the second follows the first.
class Comparison {
 public:
  Comparison(const OpTrace& trace, StepRange before, StepRange range)
      : trace_(trace),
        before_(before),
        range_(range),
        events_(trace, {before.begin - std::min(before.begin, before.end - before.begin), range.end}) {}

  /// Records number `i` of both.
  bool same(std::uint32_t i) {
    const Record &a = trace_.records[before_.begin + i], &b = trace_.records[range_.begin + i];
    if (a.kind != b.kind || a.host_class != b.host_class || a.stream != b.stream) return false;
    switch (a.kind) {
      case Record::Kind::allocate: return born(a.index, b.index);
      case Record::Kind::free:
        alive_.erase(b.index);
        return known(a.index) && same_storage(a.index, b.index);  // what lives longer is not freed every time
      case Record::Kind::host: return a.index == b.index;
      case Record::Kind::wait_for_gpu: return true;
      case Record::Kind::record_event: return true;
      case Record::Kind::wait_event:
      case Record::Kind::host_waits_for_event: return same_event(i);
      case Record::Kind::op: return same_call(trace_.calls[a.index], trace_.calls[b.index]);
    }
    return false;
  }
  [[nodiscard]] bool all_freed() const { return alive_.empty(); }

 private:
  /// Both wait for the same event from before both, or each for the one in the same place of its own stretch or of the
  /// one before its own.
  [[nodiscard]] bool same_event(std::uint32_t i) const {
    const std::uint32_t first = before_.begin + i, second = range_.begin + i;
    const std::uint32_t one = events_.of(first), other = events_.of(second);
    const bool one_is_older = one == RecordedEvents::kOlder || one < before_.begin;
    const bool other_is_older = other == RecordedEvents::kOlder || other < before_.begin;
    if (other_is_older) return one_is_older && trace_.records[first].index == trace_.records[second].index;
    return one != RecordedEvents::kOlder && other - one == range_.begin - before_.begin;
  }
  bool born(StorageId a, StorageId b) {
    const Storage &one = trace_.storages[a], &other = trace_.storages[b];
    own_[a] = b;
    alive_.insert(b);
    return one.bytes == other.bytes && one.category == other.category && one.layer == other.layer &&
           one.stream == other.stream && one.module == other.module;
  }
  [[nodiscard]] bool known(StorageId a) const { return own_.contains(a); }
  [[nodiscard]] bool same_storage(StorageId a, StorageId b) const {
    const auto found = own_.find(a);
    if (found != own_.end()) return found->second == b;
    return a == b || (trace_.storages[a].bytes == 0 && trace_.storages[b].bytes == 0);  // those are never allocated
  }
  [[nodiscard]] bool same_call(const Call& a, const Call& b) const {
    if (a.op != b.op || a.phase != b.phase || a.layer != b.layer || a.module != b.module || a.stream != b.stream ||
        a.inputs != b.inputs || a.outputs != b.outputs)
      return false;
    const std::uint32_t count = static_cast<std::uint32_t>(a.inputs) + a.outputs;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Operand &one = trace_.operands[a.operands_begin + i], &other = trace_.operands[b.operands_begin + i];
      if (one.bytes != other.bytes || !same_storage(one.storage, other.storage)) return false;
    }
    return true;
  }

  const OpTrace& trace_;
  StepRange before_, range_;
  RecordedEvents events_;
  std::unordered_map<StorageId, StorageId> own_;  ///< storage of the first stretch → of the second
  std::unordered_set<StorageId> alive_;           ///< allocated in the second and not yet freed
};

}  // namespace

bool runs_again(const OpTrace& trace, StepRange before, StepRange range) {
  if (range.end <= range.begin || range.end - range.begin != before.end - before.begin) return false;
  Comparison comparison(trace, before, range);
  for (std::uint32_t i = 0; i < range.end - range.begin; ++i)
    if (!comparison.same(i)) return false;
  return comparison.all_freed();
}

bool repeats_are_steady(const OpTrace& trace) {
  return std::all_of(trace.repeats.begin(), trace.repeats.end(), [&](const RepeatedRange& repeat) {
    const std::uint32_t length = repeat.records.end - repeat.records.begin;
    return length <= repeat.records.begin && repeat.records.end <= trace.records.size() &&
           runs_again(trace, {repeat.records.begin - length, repeat.records.begin}, repeat.records);
  });
}

RepeatedCalls repeated_calls(const OpTrace& trace) {
  RepeatedCalls calls;
  if (trace.repeats.empty() || trace.repeats.back().records.begin < trace.steps.back().begin) return calls;
  const RepeatedRange& repeat = trace.repeats.back();
  for (std::uint32_t i = repeat.records.begin; i < repeat.records.end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    if (calls.end == 0) calls.begin = record.index;
    calls.end = record.index + 1;
  }
  calls.times = repeat.times;
  return calls;
}

}  // namespace ridgeline
