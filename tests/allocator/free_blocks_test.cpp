// Free blocks in their order, few and many, against a set.
#include "sim/allocator/free_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace ridgeline {
namespace {

TEST(FreeBlocks, keep_the_order_of_a_set_however_many_there_are) {
  using Key = std::pair<std::uint64_t, Address>;
  const auto key_of = [](const FreeBlock& free) { return Key{free.order, free.address}; };
  std::mt19937_64 random(5);
  for (const std::size_t most : {3u, 400u, 9000u}) {
    FreeBlocks blocks;
    std::set<Key> expected;
    const auto fresh = [&] {
      return FreeBlock(static_cast<StreamId>(random() % 2), static_cast<std::int64_t>(random() % 3000 + 1) * 512,
                       static_cast<Address>(random()), 7);
    };
    const auto any = [&] {
      const auto it = expected.lower_bound(key_of(fresh()));
      return it == expected.end() ? *expected.begin() : *it;
    };
    const auto block_of = [](const Key& key) {
      FreeBlock block(0, 512, key.second, 7);
      block.order = key.first;
      return block;
    };
    for (int i = 0; i < 60000; ++i) {
      const bool grows = i < 30000;
      const auto what = random() % 4;
      if (expected.empty() || (what < (grows ? 2u : 1u) && expected.size() < most)) {
        const FreeBlock block = fresh();
        if (expected.insert(key_of(block)).second) blocks.insert(block);
      } else if (what == 2) {
        const Key old = any();
        const FreeBlock by = fresh();
        if (expected.contains(key_of(by))) continue;
        expected.erase(old);
        expected.insert(key_of(by));
        blocks.replace(block_of(old), by);
      } else {
        const Key old = any();
        expected.erase(old);
        blocks.erase(block_of(old));
      }
      if (i % 997 == 0 || most == 3) {
        auto it = blocks.begin();
        for (const Key& key : expected) {
          ASSERT_TRUE(it != blocks.end());
          ASSERT_EQ(key_of(*it), key);
          ++it;
        }
        ASSERT_TRUE(it == blocks.end());
        for (auto back = expected.rbegin(); back != expected.rend(); ++back) ASSERT_EQ(key_of(*--it), *back);
      }
      const std::int64_t bytes = static_cast<std::int64_t>(random() % 3000 + 1) * 512;
      const auto found = blocks.best_fit(1, bytes);
      const auto wanted = expected.lower_bound(key_of(FreeBlock(1, bytes, 0, kNoBlock)));
      ASSERT_EQ(found == blocks.end(), wanted == expected.end());
      if (wanted != expected.end()) {
        ASSERT_EQ(key_of(*found), *wanted);
      }
    }
  }
}

TEST(FreeBlocks, of_a_stream_are_found_by_what_is_at_least_asked_for) {
  FreeBlocks blocks;
  blocks.insert({1, 4096, 0x1000, 1});
  blocks.insert({3, 512, 0x2000, 2});
  EXPECT_EQ(blocks.best_fit(1, 4096).block(), 1);
  EXPECT_TRUE(blocks.best_fit(1, 4608) == blocks.end()) << "what is left is of another stream";
  EXPECT_TRUE(blocks.best_fit(2, 512) == blocks.end());
  EXPECT_EQ(blocks.first_of_at_least(1, 4608).block(), 2) << "from which the largest of the stream is one step back";
  EXPECT_EQ((--blocks.first_of_at_least(1, 4608)).block(), 1);
  EXPECT_TRUE(blocks.first_of_at_least(3, 1024) == blocks.end());
}

}  // namespace
}  // namespace ridgeline
