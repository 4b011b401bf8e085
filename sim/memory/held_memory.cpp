#include "sim/memory/held_memory.h"

#include "sim/units/budget.h"

namespace ridgeline {

bool HeldMemory::play(const Part& part) {
  const Action* const actions = part.actions.data();
  const Storage* const storages = part.storages.data();
  const Counter& allocated = allocator.statistics().all.allocated_bytes;
  std::uint32_t highest = Action::kNoCall;  // action of a peak whose breakdown is not written down yet
  const auto write_down = [&] {
    if (highest == Action::kNoCall) return;
    result.breakdown = by_category;
    result.peak = moment(actions[highest], part.number_of(highest));
    highest = Action::kNoCall;
  };
  for (std::uint32_t i = 0; i < part.actions.size(); ++i) {
    keep_budget_often("the run of the allocations");
    const Action& action = actions[i];
    if (action.kind > Action::Kind::free) continue;
    const Storage& storage = storages[action.index];
    std::int64_t& held = by_category[static_cast<std::size_t>(storage.category)];
    BlockId& block = blocks[action.index];
    if (action.kind == Action::Kind::free) {
      if (block == kNoBlock) continue;  // a step run again may free what only its first run had
      write_down();
      held -= allocator.bytes_of(block);
      allocator.free(block);
      block = kNoBlock;
      continue;
    }
    if (part.of_token && storage.bytes == 0) continue;  // a temporary of other tokens
    block = allocator.allocate(storage.bytes, storage.stream);
    if (block == kNoBlock) {
      write_down();
      fail(action, storage, part.number_of(i));
      return false;
    }
    held += allocator.bytes_of(block);
    if (allocated.current > peak) {
      peak = allocated.current;
      highest = i;
    }
  }
  write_down();
  return true;
}

void HeldMemory::fail(const Action& action, const Storage& storage, std::uint32_t index) {
  result.fits = false;
  result.failure = MemoryFailure{moment(action, index), allocator.last_failure(), storage.category, by_category};
}

Moment HeldMemory::moment(const Action& action, std::uint32_t index) const {
  Moment moment;
  moment.action = index;
  moment.call = action.call;
  moment.step = result.steps_run;
  if (action.call != Action::kNoCall && result.steps_run > 0) {
    moment.phase = program.trace->calls[action.call].phase;
    moment.layer = program.trace->calls[action.call].layer;
  }
  return moment;
}

}  // namespace ridgeline
