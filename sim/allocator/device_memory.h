// The device under the allocator: how many bytes there are and which addresses it hands out.
//
// Addresses decide nothing but ties: the allocator prefers the lowest address among equally fitting blocks. In the
// recorded histories of an H200 most new segments lie below all earlier ones, aligned to 32 MiB, and one that fits into
// the rest of the last such slot goes there, upwards; that is the rule here. (The real driver also fills holes that
// other mappings of the process left, which no model without the process can know.) Tested by
// tests/allocator/device_memory_test.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace ridgeline {

using Address = std::uint64_t;

class DeviceMemory {
 public:
  static constexpr std::int64_t kPage = 2 << 20;   ///< physical memory comes in pages of this size
  static constexpr std::int64_t kSlot = 32 << 20;  ///< alignment of new address ranges

  /// `occupied` bytes are taken by the context and whatever else does not come from this object.
  explicit DeviceMemory(std::int64_t capacity, std::int64_t occupied = 0) : capacity_(capacity), used_(occupied) {}

  /// cudaMalloc: empty when fewer than `bytes` are left.
  std::optional<Address> allocate(std::int64_t bytes);
  void release(Address address, std::int64_t bytes);

  /// A range of addresses without memory behind it, and the memory itself (expandable segments).
  Address reserve_addresses(std::int64_t bytes);
  bool map(std::int64_t bytes);
  void unmap(std::int64_t bytes);

  /// The next segment of `bytes` goes to `address`; for replaying a recorded run, in the order of recording. A segment
  /// of another size than expected next gets an address of the rule instead.
  void expect(std::int64_t bytes, Address address) { expected_.emplace_back(bytes, address); }

  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  [[nodiscard]] std::int64_t used() const { return used_; }
  [[nodiscard]] std::int64_t available() const { return capacity_ - used_; }

 private:
  struct Hole {
    Address address;
    std::int64_t bytes;
  };
  Address take_addresses(std::int64_t bytes);
  void add_hole(const Hole& hole);

  std::int64_t capacity_, used_;
  Address lowest_ = Address{0x7f0000000000};  ///< everything below is free
  std::vector<Hole> holes_;                   ///< free ranges above `lowest_`
  std::int64_t largest_hole_ = 0;             ///< none of `holes_` has more bytes
  std::deque<std::pair<std::int64_t, Address>> expected_;
};

}  // namespace ridgeline
