#include "sim/allocator/device_memory.h"

#include <algorithm>

namespace ridgeline {
namespace {

std::int64_t pages(std::int64_t bytes) {
  return (bytes + DeviceMemory::kPage - 1) / DeviceMemory::kPage * DeviceMemory::kPage;
}

}  // namespace

void DeviceMemory::add_hole(const Hole& hole) {
  holes_.push_back(hole);
  largest_hole_ = std::max(largest_hole_, hole.bytes);
}

Address DeviceMemory::take_addresses(std::int64_t bytes) {
  bytes = pages(bytes);
  const auto hole = bytes > largest_hole_
                        ? holes_.rend()
                        : std::find_if(holes_.rbegin(), holes_.rend(), [&](const Hole& h) { return h.bytes >= bytes; });
  if (hole != holes_.rend()) {
    const Address address = hole->address;
    hole->address += static_cast<Address>(bytes);
    hole->bytes -= bytes;
    if (hole->bytes == 0) holes_.erase(std::next(hole).base());
    return address;
  }
  largest_hole_ = std::min(largest_hole_, bytes - kPage);
  const std::int64_t slots = (bytes + kSlot - 1) / kSlot * kSlot;
  lowest_ -= static_cast<Address>(slots);
  if (slots > bytes) add_hole({lowest_ + static_cast<Address>(bytes), slots - bytes});
  return lowest_;
}

std::optional<Address> DeviceMemory::allocate(std::int64_t bytes) {
  if (!map(bytes)) return std::nullopt;
  if (!expected_.empty()) {
    const auto [expected_bytes, address] = expected_.front();
    if (expected_bytes == bytes) {
      expected_.pop_front();
      return address;
    }
    expected_.clear();  // the run has left the recorded one: nothing of the rest can be trusted
  }
  return take_addresses(bytes);
}

void DeviceMemory::release(Address address, std::int64_t bytes) {
  unmap(bytes);
  add_hole({address, pages(bytes)});
}

Address DeviceMemory::reserve_addresses(std::int64_t bytes) { return take_addresses(bytes); }

bool DeviceMemory::map(std::int64_t bytes) {
  if (pages(bytes) > available()) return false;
  used_ += pages(bytes);
  return true;
}

void DeviceMemory::unmap(std::int64_t bytes) { used_ -= pages(bytes); }

}  // namespace ridgeline
