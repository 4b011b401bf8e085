// The granular L2 against a cache simulated line by line, and its policies at their edges.
#include "sim/hierarchy/l2_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sim/hierarchy/line_cache.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr double kCapacity = 4.0 * kMiB;

L2Spec plain(L2Replacement replacement = L2Replacement::lru, L2Writes writes = L2Writes::back) {
  L2Spec l2;
  l2.capacity = Bytes{kCapacity};
  l2.partitions = 1;
  l2.dirty_fraction = 1.0;
  l2.replacement = replacement;
  l2.writes = writes;
  return l2;
}
LineCache lines(const L2Spec& l2) {
  return {static_cast<std::uint64_t>(l2.capacity.value()), 16, l2.replacement, l2.writes};
}
L2Cache::Run whole(std::uint32_t storage, double bytes) { return {.storage = storage, .bytes = bytes}; }

/// Share of the bytes that miss when a tensor is read for the fourth time.
double missing(const L2Spec& l2, double bytes) {
  L2Cache cache(l2);
  L2Traffic last;
  for (int i = 0; i < 4; ++i) last = cache.read(whole(0, bytes), cache.stream_copies());
  return last.missed / last.bytes;
}
double missing_lines(const L2Spec& l2, double bytes) {
  LineCache cache = lines(l2);
  double before = 0;
  for (int i = 0; i < 4; ++i) {
    before = static_cast<double>(cache.missed_bytes());
    cache.access(0, static_cast<std::uint64_t>(bytes), false);
  }
  return (static_cast<double>(cache.missed_bytes()) - before) / bytes;
}

TEST(L2Cache, KeepsWhatFitsAndLosesWhatDoesNotAsLinesDo) {
  for (const double share : {0.25, 0.5, 0.75, 1.5, 2.0, 4.0}) {
    const double bytes = share * kCapacity;
    EXPECT_NEAR(missing(plain(), bytes), missing_lines(plain(), bytes), 0.02) << share;
  }
}

TEST(L2Cache, RandomReplacementKeepsAPartOfWhatDoesNotFit) {
  const L2Spec l2 = plain(L2Replacement::random);
  for (const double share : {1.25, 1.5, 2.0, 3.0})
    EXPECT_NEAR(missing(l2, share * kCapacity), missing_lines(l2, share * kCapacity), 0.06) << share;
  EXPECT_LT(missing(l2, 1.5 * kCapacity), 0.8);
  EXPECT_GT(missing(plain(), 1.5 * kCapacity), 0.98);
}

TEST(L2Cache, WritesEveryDirtyByteBackOnceAsLinesDo) {
  L2Cache cache(plain());
  LineCache reference = lines(plain());
  double written = 0, missed = 0;
  // Two tensors written and read in turn, together 1.5 capacities.
  const double bytes = 0.75 * kCapacity;
  for (int i = 0; i < 6; ++i) {
    const auto storage = static_cast<std::uint32_t>(i % 2);
    const std::uint64_t address = storage * static_cast<std::uint64_t>(bytes);
    const bool write = i % 3 == 0;
    const L2Traffic moved =
        write ? cache.write(whole(storage, bytes)) : cache.read(whole(storage, bytes), cache.stream_copies());
    reference.access(address, static_cast<std::uint64_t>(bytes), write);
    written += moved.written_back;
    missed += moved.missed;
  }
  EXPECT_NEAR(written, static_cast<double>(reference.written_back()), 0.05 * kCapacity);
  EXPECT_NEAR(missed, static_cast<double>(reference.missed_bytes()), 0.05 * kCapacity);
  EXPECT_NEAR(cache.dirty_bytes(), static_cast<double>(reference.dirty_bytes()), 0.05 * kCapacity);
}

TEST(L2Cache, WritesThroughAtOnceAndLeavesNothingDirty) {
  const L2Spec l2 = plain(L2Replacement::lru, L2Writes::through);
  L2Cache cache(l2);
  EXPECT_DOUBLE_EQ(cache.write(whole(0, kMiB)).written_back, kMiB);
  EXPECT_DOUBLE_EQ(cache.dirty_bytes(), 0.0);
  EXPECT_DOUBLE_EQ(cache.read(whole(0, kMiB), 1.0).missed, 0.0);
}

TEST(L2Cache, WithoutAnL2EveryByteMisses) {
  L2Cache cache(plain(L2Replacement::none));
  for (int i = 0; i < 2; ++i) EXPECT_DOUBLE_EQ(cache.read(whole(0, kMiB), 1.0).missed, kMiB);
  EXPECT_DOUBLE_EQ(cache.write(whole(0, kMiB)).written_back, kMiB);
}

TEST(L2Cache, HoldsNoMoreDirtyBytesThanItMay) {
  L2Spec l2 = plain();
  l2.dirty_fraction = 0.5;
  L2Cache cache(l2);
  const double below = cache.write(whole(0, 0.4 * kCapacity)).written_back;
  EXPECT_LT(below, 0.02 * kCapacity);
  const L2Traffic more = cache.write(whole(1, 0.4 * kCapacity));
  EXPECT_NEAR(more.written_back, 0.3 * kCapacity, 0.05 * kCapacity);
  EXPECT_LE(cache.dirty_bytes(), 0.5 * kCapacity);
  EXPECT_NEAR(cache.resident_bytes(), 0.8 * kCapacity, 0.05 * kCapacity);  // cleaned, not thrown out
}

TEST(L2Cache, KeepsAPartOfAnOutputThatIsLargerThanMayBeDirty) {
  L2Spec l2 = plain();
  l2.dirty_fraction = 0.4;
  const auto dirty = [&](double bytes) {  // of the fourth time that it is written
    L2Cache cache(l2);
    L2Traffic last;
    for (int i = 0; i < 4; ++i) last = cache.write(whole(0, bytes));
    return last.dirty / last.bytes;
  };
  EXPECT_GT(dirty(0.35 * kCapacity), 0.99);
  const double little = dirty(0.45 * kCapacity), more = dirty(0.55 * kCapacity);
  EXPECT_GT(little, 0.5);
  EXPECT_GT(little, more);
  EXPECT_GT(more, 0.1);
  EXPECT_LT(dirty(2.0 * kCapacity), 0.1);
}

TEST(L2Cache, TwoPartitionsKeepSecondCopiesOfWhatIsRead) {
  L2Spec two = plain();
  two.partitions = 2;
  EXPECT_DOUBLE_EQ(L2Cache(two).stream_copies(), 1.5);
  EXPECT_NEAR(L2Cache(two).shared_copies(8), 2.0, 0.01);
  EXPECT_DOUBLE_EQ(L2Cache(plain()).shared_copies(8), 1.0);
  EXPECT_LT(missing(two, 0.5 * kCapacity), 0.01);
  EXPECT_GT(missing(two, 0.9 * kCapacity), 0.9);  // 0.9 · 1.5 is more than there is
}

TEST(L2Cache, RunsThatJoinTouchEveryByteOnce) {
  for (const double bytes : {1.0, 4096.0, 4097.0, 1.0e6, 3.3e7 + 5.0}) {
    for (const int parts : {1, 3, 7, 1000}) {
      L2Cache cache(plain());
      double touched = 0;
      for (int i = 0; i < parts; ++i)
        touched += cache
                       .read({.storage = 3,
                              .bytes = bytes,
                              .begin = static_cast<double>(i) / parts,
                              .end = static_cast<double>(i + 1) / parts},
                             1.0)
                       .bytes;
      EXPECT_DOUBLE_EQ(touched, bytes) << parts;
    }
  }
}

TEST(L2Cache, AListThatIsSweptOncePushesOthersOut) {
  L2Cache cache(plain());
  cache.read(whole(0, 0.5 * kCapacity), 1.0);
  EXPECT_DOUBLE_EQ(cache.read_once(2.0 * kCapacity).missed, 2.0 * kCapacity);
  EXPECT_GT(cache.read(whole(0, 0.5 * kCapacity), 1.0).missed, 0.45 * kCapacity);
}

TEST(L2Cache, forgets_what_is_not_there_without_a_difference) {
  for (const L2Replacement replacement : {L2Replacement::lru, L2Replacement::aged, L2Replacement::random}) {
    L2Spec l2 = plain(replacement);
    l2.partitions = 2;
    l2.dirty_fraction = 0.4;
    L2Cache remembers(l2), forgets(l2, 64);
    std::mt19937_64 random(3);
    for (int i = 0; i < 4000; ++i) {
      const auto storage = static_cast<std::uint32_t>(random() % 40);
      L2Cache::Run run = whole(storage, (storage % 5 + 1) * 300e3 + static_cast<double>(random() % 2) * 1e3);
      run.begin = static_cast<double>(random() % 4) / 4.0;
      const bool writes = random() % 3 == 0, once = random() % 10 == 0;
      const auto ask = [&](L2Cache& cache) {
        if (once) return writes ? cache.write_once(run.bytes) : cache.read_once(run.bytes);
        return writes ? cache.write(run) : cache.read(run, cache.stream_copies());
      };
      const L2Traffic a = ask(remembers), b = ask(forgets);
      ASSERT_EQ(a.bytes, b.bytes) << i;
      ASSERT_EQ(a.missed, b.missed) << i;
      ASSERT_EQ(a.dirty, b.dirty) << i;
      ASSERT_EQ(a.written_back, b.written_back) << i;
      std::vector<std::uint32_t> names, same;
      if (i % 100 != 0) continue;
      ASSERT_TRUE(remembers.state(names) == forgets.state(same)) << i;
    }
  }
}

TEST(L2Cache, ends_before_it_takes_minutes) {
  L2Cache l2(plain());
  const L2Cache::Run run = whole(1, 60e9);
  const auto sweep = [&] {
    for (std::uint64_t touched = 0; touched <= 2 * L2Cache::kMostWork; touched += L2Cache::parts_of(run.bytes))
      l2.read(run, 1.0);
  };
  EXPECT_THROW(sweep(), UserError);
}

TEST(L2Cache, takes_tensors_larger_than_any_device) {
  L2Cache cache(plain());
  for (std::uint32_t storage = 0; storage < 12; ++storage)
    EXPECT_NEAR(cache.read(whole(storage, 64e12), 1.0).missed, 64e12, 64e12 * 1e-6);
}

}  // namespace
}  // namespace ridgeline
