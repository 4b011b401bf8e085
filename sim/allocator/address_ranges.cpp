#include "sim/allocator/address_ranges.h"

#include <algorithm>
#include <iterator>

namespace ridgeline {

void AddressRanges::add(Address address, AddressRange range) {
  auto next = ranges_.lower_bound(address);
  if (next != ranges_.end() && next->first == address + static_cast<Address>(range.bytes) &&
      next->second.joins(range)) {
    range.bytes += next->second.bytes;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->first + static_cast<Address>(before->second.bytes) == address && before->second.joins(range)) {
      before->second.bytes += range.bytes;
      return;
    }
  }
  ranges_.insert_or_assign(address, range);
}

std::int64_t AddressRanges::remove(Address address, std::int64_t bytes) {
  const Address end = address + static_cast<Address>(bytes);
  std::int64_t removed = 0;
  auto it = ranges_.upper_bound(address);
  if (it != ranges_.begin()) --it;
  while (it != ranges_.end() && it->first < end) {
    const Address from = it->first, to = from + static_cast<Address>(it->second.bytes);
    if (to <= address) {
      ++it;
      continue;
    }
    const AddressRange range = it->second;
    it = ranges_.erase(it);
    const auto keep = [&](Address begin, Address finish) {
      AddressRange rest = range;
      rest.bytes = static_cast<std::int64_t>(finish - begin);
      if (begin < finish) ranges_.insert_or_assign(begin, rest);
    };
    keep(from, std::max(from, address));
    keep(std::min(to, end), to);
    removed += static_cast<std::int64_t>(std::min(to, end) - std::max(from, address));
  }
  return removed;
}

const AddressRanges::Map::value_type* AddressRanges::at(Address address) const {
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return nullptr;
  --it;
  return address < it->first + static_cast<Address>(it->second.bytes) ? &*it : nullptr;
}

const AddressRange* AddressRanges::growing_next_to(Address begin, Address end) const {
  const auto after = ranges_.find(end);
  if (after != ranges_.end() && after->second.expandable) return &after->second;
  const auto* before = begin > 0 ? at(begin - 1) : nullptr;
  return before != nullptr && before->second.expandable ? &before->second : nullptr;
}

}  // namespace ridgeline
