#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/allocator/caching_allocator.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMebi = 1 << 20;
constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

CachingAllocator allocator_with(const AllocatorSettings& settings = {}, std::int64_t capacity = kPlenty) {
  return CachingAllocator(settings, DeviceMemory(capacity));
}
std::int64_t reserved(const CachingAllocator& allocator) { return allocator.statistics().all.reserved_bytes.current; }
std::int64_t allocated(const CachingAllocator& allocator) { return allocator.statistics().all.allocated_bytes.current; }

TEST(CachingAllocator, a_request_of_1_mib_is_small_and_one_of_a_byte_more_is_large) {
  auto allocator = allocator_with();
  allocator.allocate(kMebi);
  EXPECT_EQ(reserved(allocator), 2 * kMebi);
  allocator.allocate(kMebi + 1);
  EXPECT_EQ(reserved(allocator), 22 * kMebi);
}

TEST(CachingAllocator, a_rest_of_exactly_1_mib_stays_with_a_large_block_and_more_is_split_off) {
  auto allocator = allocator_with();
  const BlockId whole = allocator.allocate(11 * kMebi);  // a segment of 12 MiB
  EXPECT_EQ(allocator.bytes_of(whole), 12 * kMebi);
  EXPECT_EQ(allocated(allocator), 12 * kMebi);
  const BlockId split = allocator.allocate(11 * kMebi - 512);
  EXPECT_EQ(allocator.bytes_of(split), 11 * kMebi - 512);
}

TEST(CachingAllocator, takes_the_block_that_fits_best_and_the_lowest_of_equals) {
  auto allocator = allocator_with();
  const BlockId large = allocator.allocate(64 * kMebi), a = allocator.allocate(32 * kMebi),
                b = allocator.allocate(32 * kMebi);
  const Address address_a = allocator.address_of(a), address_b = allocator.address_of(b);
  for (const BlockId block : {large, a, b}) allocator.free(block);
  EXPECT_EQ(allocator.address_of(allocator.allocate(31 * kMebi)), std::min(address_a, address_b));
}

TEST(CachingAllocator, merges_a_freed_block_with_both_neighbours) {
  auto allocator = allocator_with();
  const BlockId a = allocator.allocate(4 * kMebi), b = allocator.allocate(4 * kMebi), c = allocator.allocate(4 * kMebi);
  allocator.free(a);
  allocator.free(c);
  EXPECT_EQ(allocator.statistics().all.inactive_split.current, 2);
  allocator.free(b);
  EXPECT_EQ(allocator.statistics().all.inactive_split.current, 0);
  ASSERT_EQ(allocator.segments().size(), 1u);
  EXPECT_EQ(allocator.segments()[0].blocks.size(), 1u);
}

TEST(CachingAllocator, does_not_hand_a_block_of_one_stream_to_another) {
  auto allocator = allocator_with();
  allocator.free(allocator.allocate(kMebi, 0));
  allocator.allocate(kMebi, 1);
  EXPECT_EQ(reserved(allocator), 4 * kMebi);
}

TEST(CachingAllocator, a_block_another_stream_uses_stays_active_until_that_stream_is_done) {
  auto allocator = allocator_with();
  const BlockId block = allocator.allocate(30 * kMebi);
  allocator.record_stream(block, 1);
  allocator.free(block);
  EXPECT_EQ(allocated(allocator), 0);
  EXPECT_EQ(allocator.statistics().all.active_bytes.current, 30 * kMebi);
  allocator.free(allocator.allocate(30 * kMebi));
  EXPECT_EQ(reserved(allocator), 60 * kMebi);
  allocator.complete_events();
  EXPECT_EQ(allocator.statistics().all.active_bytes.current, 0);
}

TEST(CachingAllocator, peaks_are_kept_apart_and_start_again_at_a_reset) {
  auto allocator = allocator_with();
  allocator.free(allocator.allocate(100 * kMebi));
  EXPECT_EQ(allocator.statistics().all.allocated_bytes.peak, 100 * kMebi);
  allocator.reset_peaks();
  EXPECT_EQ(allocator.statistics().all.allocated_bytes.peak, 0);
  EXPECT_EQ(allocator.statistics().all.reserved_bytes.peak, 100 * kMebi);
}

TEST(CachingAllocator, gives_whole_free_segments_back_before_it_fails) {
  auto allocator = allocator_with({}, 100 * kMebi);
  allocator.free(allocator.allocate(60 * kMebi));
  EXPECT_NE(allocator.allocate(90 * kMebi), kNoBlock);
  EXPECT_EQ(allocator.statistics().retries, 1);
  EXPECT_EQ(reserved(allocator), 90 * kMebi);
}

TEST(CachingAllocator, running_out_is_a_result_that_says_what_is_missing) {
  auto allocator = allocator_with({}, 100 * kMebi);
  const BlockId kept = allocator.allocate(60 * kMebi);
  EXPECT_EQ(allocator.allocate(41 * kMebi), kNoBlock);
  EXPECT_EQ(allocator.last_failure().missing, 2 * kMebi);  // 42 MiB are asked for, 40 are left
  EXPECT_EQ(allocator.last_failure().allocated, 60 * kMebi);
  EXPECT_EQ(allocator.statistics().out_of_memory, 1);
  allocator.free(kept);
  EXPECT_NE(allocator.allocate(41 * kMebi), kNoBlock);
}

TEST(CachingAllocator, a_split_segment_cannot_be_given_back) {
  auto allocator = allocator_with({}, 100 * kMebi);
  const BlockId rest = allocator.allocate(60 * kMebi);
  allocator.free(rest);
  allocator.allocate(20 * kMebi);  // splits the 60 MiB
  EXPECT_EQ(allocator.allocate(50 * kMebi), kNoBlock);
}

TEST(CachingAllocator, a_memory_fraction_is_a_limit_even_where_the_device_has_more) {
  AllocatorSettings settings;
  settings.memory_fraction = 0.5;
  auto allocator = allocator_with(settings, 100 * kMebi);
  EXPECT_NE(allocator.allocate(50 * kMebi), kNoBlock);
  EXPECT_EQ(allocator.allocate(kMebi), kNoBlock);
}

TEST(CachingAllocator, garbage_collection_frees_old_segments_above_the_threshold) {
  AllocatorSettings settings;
  settings.memory_fraction = 1.0;
  settings.garbage_collection_threshold = 0.5;
  auto allocator = allocator_with(settings, 100 * kMebi);
  allocator.free(allocator.allocate(60 * kMebi));
  allocator.allocate(70 * kMebi);
  EXPECT_EQ(allocator.statistics().retries, 0);  // the threshold came first
  EXPECT_EQ(reserved(allocator), 70 * kMebi);
}

TEST(CachingAllocator, blocks_from_the_split_limit_on_are_kept_whole) {
  AllocatorSettings settings;
  settings.max_split_size = 100 * kMebi;
  auto allocator = allocator_with(settings);
  allocator.free(allocator.allocate(100 * kMebi));
  allocator.allocate(50 * kMebi);  // must not break up the large block
  EXPECT_EQ(reserved(allocator), 150 * kMebi);
  const BlockId again = allocator.allocate(100 * kMebi);
  EXPECT_EQ(reserved(allocator), 150 * kMebi);
  allocator.free(again);
}

TEST(CachingAllocator, a_large_block_is_not_wasted_on_a_request_that_is_smaller_by_the_rounding_limit) {
  AllocatorSettings settings;
  settings.max_split_size = 100 * kMebi;
  auto allocator = allocator_with(settings);
  allocator.free(allocator.allocate(130 * kMebi));
  allocator.allocate(110 * kMebi);  // 20 MiB would be lost: not less than the limit
  EXPECT_EQ(reserved(allocator), 240 * kMebi);
  allocator.allocate(112 * kMebi);
  EXPECT_EQ(reserved(allocator), 240 * kMebi);
}

TEST(CachingAllocator, refuses_zero_bytes_and_a_second_free) {
  auto allocator = allocator_with();
  EXPECT_THROW(allocator.allocate(0), std::invalid_argument);
  const BlockId block = allocator.allocate(1);
  const BlockId neighbour = allocator.allocate(1);
  allocator.free(block);
  EXPECT_THROW(allocator.free(block), std::logic_error);
  allocator.free(neighbour);
}

AllocatorSettings growing() {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  return settings;
}

TEST(ExpandableSegments, grow_by_pages_of_20_mib_and_split_everything) {
  auto allocator = allocator_with(growing());
  const BlockId first = allocator.allocate(11 * kMebi);
  EXPECT_EQ(allocator.bytes_of(first), 11 * kMebi);
  EXPECT_EQ(reserved(allocator), 20 * kMebi);
  allocator.allocate(30 * kMebi);  // 9 are left, 21 are missing
  EXPECT_EQ(reserved(allocator), 60 * kMebi);
  EXPECT_EQ(allocator.statistics().all.segment.current, 0);
}

TEST(ExpandableSegments, give_pages_in_the_middle_back_when_the_device_is_full) {
  auto allocator = allocator_with(growing(), 100 * kMebi);
  const BlockId a = allocator.allocate(20 * kMebi), b = allocator.allocate(60 * kMebi),
                c = allocator.allocate(20 * kMebi);
  allocator.free(b);
  EXPECT_EQ(allocator.allocate(80 * kMebi), kNoBlock);
  allocator.free(c);
  allocator.free(a);
  EXPECT_NE(allocator.allocate(80 * kMebi), kNoBlock);
  EXPECT_LE(reserved(allocator), 100 * kMebi);
}

TEST(ExpandableSegments, empty_when_everything_is_freed_and_the_cache_emptied) {
  auto allocator = allocator_with(growing());
  const BlockId a = allocator.allocate(33 * kMebi), b = allocator.allocate(100), c = allocator.allocate(7 * kMebi);
  for (const BlockId block : {b, a, c}) allocator.free(block);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 0);
  EXPECT_EQ(allocator.device().used(), 0);
}

}  // namespace
}  // namespace ridgeline
