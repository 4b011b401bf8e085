// The memory of a recorded run by address: segments, and the mapped parts of growing ones.
#pragma once

#include <cstdint>
#include <map>

#include "sim/allocator/free_blocks.h"
#include "sim/allocator/statistics.h"

namespace ridgeline {

struct AddressRange {
  std::int64_t bytes = 0;
  StreamId owner = 0;
  PoolKind kind = PoolKind::large;
  bool expandable = false;
  [[nodiscard]] bool joins(const AddressRange& other) const {
    return expandable && other.expandable && owner == other.owner && kind == other.kind;
  }
};

class AddressRanges {
 public:
  using Map = std::map<Address, AddressRange>;

  /// Adjacent ranges of one growing segment become one.
  void add(Address address, AddressRange range);
  /// Takes out what of `bytes` from `address` on is there; returns how much that was.
  std::int64_t remove(Address address, std::int64_t bytes);
  /// The range an address lies in; null where it lies in none.
  [[nodiscard]] const Map::value_type* at(Address address) const;
  /// The growing range that ends or begins at an address; null without one.
  [[nodiscard]] const AddressRange* growing_next_to(Address begin, Address end) const;
  [[nodiscard]] const Map& all() const { return ranges_; }

 private:
  Map ranges_;
};

}  // namespace ridgeline
