// Random sequences of what a program may ask of the allocator, against what the allocator promises.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "sim/allocator/caching_allocator.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {
namespace {

class ByteStream {
 public:
  ByteStream(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] bool empty() const { return at_ >= size_; }
  std::uint32_t next() { return at_ < size_ ? data_[at_++] : 0; }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

AllocatorSettings settings_from(ByteStream& bytes) {
  AllocatorSettings settings;
  const std::uint32_t flags = bytes.next();
  settings.expandable_segments = (flags & 1) != 0;
  if ((flags & 2) != 0) settings.max_split_size = std::int64_t{20 + static_cast<int>(bytes.next() % 64)} << 20;
  if ((flags & 4) != 0) settings.garbage_collection_threshold = 0.1 + 0.003 * bytes.next();
  if ((flags & 8) != 0) settings.roundup_power2_divisions.fill(1 << (bytes.next() % 6));
  if ((flags & 16) != 0)
    settings.large_segment_size = std::int64_t{20 + 2 * static_cast<int>(bytes.next() % 50)} << 20;  // whole pages
  if ((flags & 32) != 0) settings.memory_fraction = 0.2 + 0.003 * bytes.next();
  if ((flags & 64) != 0) settings.max_non_split_rounding = std::int64_t{1 + static_cast<int>(bytes.next())} << 20;
  settings.max_split_size = std::max(settings.max_split_size, settings.large_segment_size);
  return settings;
}

/// Sizes around the borders of rounding, pools and segments, and everything between.
std::int64_t size_from(ByteStream& bytes) {
  static constexpr std::int64_t kBorders[] = {1, 512, 1 << 20, 2 << 20, 10 << 20, 20 << 20, 24 << 20, 64 << 20};
  const std::uint32_t choice = bytes.next();
  const std::int64_t border = kBorders[choice % 8];
  if (choice < 64) return border;
  if (choice < 128) return border + 1;
  if (choice < 160) return std::max<std::int64_t>(border - 1, 1);
  return 1 + ((static_cast<std::int64_t>(bytes.next()) << 8) + bytes.next()) * (std::int64_t{1} << (choice % 11));
}

struct Sums {
  std::int64_t bytes = 0, allocated = 0, active = 0, requested = 0, inactive_split = 0;
};

std::string tiled(const CachingAllocator& allocator, Sums& sums) {
  Address end_of_last = 0;
  for (const SegmentView& segment : allocator.segments()) {
    if (segment.address < end_of_last) return "segments overlap";
    Address next = segment.address;
    bool last_free = false;
    for (const BlockView& block : segment.blocks) {
      if (block.address != next) return "blocks do not tile their segment";
      next += static_cast<Address>(block.bytes);
      const bool unmapped = block.state == BlockView::State::unmapped, free = block.state == BlockView::State::free;
      if (block.bytes <= 0 || block.bytes % kMinBlock != 0) return "a block of no whole number of 512 bytes";
      if (free && last_free) return "two free neighbours";
      last_free = free;
      if (unmapped) continue;
      sums.bytes += block.bytes;
      if (block.state == BlockView::State::allocated) sums.allocated += block.bytes;
      if (!free) {
        sums.active += block.bytes;
        sums.requested += block.requested;
        if (block.requested > block.bytes) return "a block smaller than its request";
      } else if (segment.blocks.size() > 1 && !segment.expandable) {
        sums.inactive_split += block.bytes;
      }
    }
    end_of_last = next;
  }
  return {};
}

std::string promises(const CachingAllocator& allocator, std::int64_t capacity) {
  Sums sums;
  if (std::string broken = tiled(allocator, sums); !broken.empty()) return broken;
  const AllocatorStatistics& s = allocator.statistics();
  const auto differs = [](const char* what, std::int64_t counted, std::int64_t summed) {
    return fmt::format("{}: counted {}, blocks hold {}", what, counted, summed);
  };
  const auto& all = s.all;
  if (all.reserved_bytes.current != sums.bytes) return differs("reserved", all.reserved_bytes.current, sums.bytes);
  if (all.allocated_bytes.current != sums.allocated)
    return differs("allocated", all.allocated_bytes.current, sums.allocated);
  if (all.active_bytes.current != sums.active) return differs("active", all.active_bytes.current, sums.active);
  if (all.requested_bytes.current != sums.requested)
    return differs("requested", all.requested_bytes.current, sums.requested);
  if (all.inactive_split_bytes.current != sums.inactive_split)
    return differs("inactive split", all.inactive_split_bytes.current, sums.inactive_split);
  const auto &small = s.of(PoolKind::small), &large = s.of(PoolKind::large);
  if (small.reserved_bytes.current + large.reserved_bytes.current != sums.bytes) return "pools do not add up";
  if (small.allocated_bytes.current + large.allocated_bytes.current != sums.allocated) return "pools do not add up";
  if (all.reserved_bytes.peak < sums.bytes || all.allocated_bytes.peak < sums.allocated) return "a peak below now";
  if (allocator.device().used() != sums.bytes) return "the device counts other bytes";
  if (sums.bytes > capacity) return "more than the device has";
  return {};
}

struct Live {
  BlockId block = kNoBlock;
  Address address = 0;
  StreamId stream = 0;
};

}  // namespace

std::string fuzz_sequence(const std::uint8_t* data, std::size_t size) {
  ByteStream bytes(data, size);
  const AllocatorSettings settings = settings_from(bytes);
  const std::int64_t capacity = std::int64_t{64 + 16 * static_cast<int>(bytes.next())} << 20;
  CachingAllocator allocator(settings, DeviceMemory(capacity));
  std::vector<Live> live;
  constexpr int kStreams = 4;
  for (int action = 0; !bytes.empty() && action < 4000; ++action) {
    const std::uint32_t what = bytes.next();
    const std::size_t which = live.empty() ? 0 : bytes.next() % live.size();
    if (what < 144 || live.empty()) {
      const StreamId stream = what % kStreams;
      const std::int64_t asked = size_from(bytes);
      const BlockId block = allocator.allocate(asked, stream);
      if (block != kNoBlock) {
        if (allocator.bytes_of(block) < asked) return "a block smaller than its request";
        live.push_back({block, allocator.address_of(block), stream});
      } else if (allocator.last_failure().requested != asked) {
        return "a failure that names another request";
      }
    } else if (what < 224) {
      if (allocator.address_of(live[which].block) != live[which].address) return "a block moved";
      allocator.free(live[which].block);
      live[which] = live.back();
      live.pop_back();
    } else if (what < 240) {
      allocator.record_stream(live[which].block, (live[which].stream + 1 + what % (kStreams - 1)) % kStreams);
    } else if (what < 250) {
      allocator.complete_events();
    } else {
      allocator.empty_cache();
    }
    if (std::string broken = promises(allocator, capacity); !broken.empty())
      return fmt::format("after action {}: {}", action, broken);
  }
  for (const Live& l : live) allocator.free(l.block);
  allocator.complete_events();
  allocator.empty_cache();
  if (allocator.statistics().all.reserved_bytes.current != 0 || allocator.device().used() != 0)
    return "memory is left when everything was given back";
  return {};
}

}  // namespace ridgeline
