// What the L2 holds from kernel to kernel against the definition: the bytes touched since each byte's last use, the hit
// share averaged over many of a sweep's bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "sim/timing/l2_residency.h"

namespace ridgeline {
namespace {

constexpr double kCapacity = 1e6, kFull = 0.5, kNone = 0.8, kDirty = 1.35;

L2Spec round_l2() {
  L2Spec l2;
  l2.capacity = Bytes{kCapacity};
  l2.resident_full = kFull;
  l2.resident_none = kNone;
  return l2;
}

/// The ramp's mean over distances from `first` to `last`.
double slow_hit(double first, double last) {
  constexpr int kPoints = 4000;
  double sum = 0.0;
  for (int i = 0; i < kPoints; ++i) {
    const double distance = first + (last - first) * (i + 0.5) / kPoints;
    sum += std::clamp((kNone * kCapacity - distance) / ((kNone - kFull) * kCapacity), 0.0, 1.0);
  }
  return sum / kPoints;
}

/// One storage swept from `begin` to `end` of the bytes that a launch touches.
struct Sweep {
  StorageId storage = 0;
  double bytes = 0.0, begin = 0.0, end = 0.0;
};

/// Remembers of every storage the launch that touched it last, and what that one touched after its first and last byte.
class SlowResidency {
 public:
  double hit(const Sweep& sweep, double factor) const {
    const auto last = places_.find(sweep.storage);
    if (last == places_.end()) return 0.0;
    const double between = touched_after(last->second.launch, launch_);
    return slow_hit((last->second.after_first + between + sweep.begin) / factor,
                    (last->second.after_last + between + sweep.end) / factor);
  }
  void touch(const Sweep& sweep, double all) {
    places_[sweep.storage] = {launch_, all - sweep.begin, all - sweep.end, sweep.bytes};
  }
  void next() { ++launch_; }
  /// Storages of which anything is held, by storage.
  std::map<StorageId, double> held() const {
    std::map<StorageId, double> result;
    for (const auto& [storage, place] : places_) {
      const double since = touched_after(place.launch, launch_ + 1);
      if (const double share = slow_hit(place.after_first + since, place.after_last + since); share > 1e-9)
        result[storage] = share;
    }
    return result;
  }

 private:
  struct Place {
    int launch = 0;
    double after_first = 0.0, after_last = 0.0, bytes = 0.0;
  };
  double touched_after(int launch, int before) const {
    double bytes = 0.0;
    for (const auto& [storage, place] : places_)
      if (place.launch > launch && place.launch < before) bytes += place.bytes;
    return bytes;
  }
  int launch_ = 0;
  std::map<StorageId, Place> places_;
};

/// Storages 0 to 29, small ones often used.
struct DrawnLaunch {
  KernelLaunch launch;
  std::vector<Operand> operands;
  std::vector<std::vector<Sweep>> accesses;  // reads, then writes
  double touched = 0.0;
};

std::int64_t bytes_of_storage(StorageId storage) {
  return storage < 20 ? 1000 * (storage + 1) : 70'000 * (storage - 19);
}

/// Reads one to three storages, writes one or two: each access sweeps its storage all the while.
DrawnLaunch plain_launch(std::mt19937_64& random) {
  DrawnLaunch drawn;
  std::vector<StorageId> storages;
  for (StorageId s = 0; s < 30; ++s) storages.push_back(s);
  std::shuffle(storages.begin(), storages.begin() + (random() % 4 == 0 ? 30 : 20), random);
  const std::size_t reads = 1 + random() % 3, writes = 1 + random() % 2;
  for (std::size_t i = 0; i < reads + writes; ++i) {
    const std::int64_t bytes = bytes_of_storage(storages[i]);
    drawn.operands.push_back({storages[i], bytes});
    (i < reads ? drawn.launch.reads : drawn.launch.writes).push_back({static_cast<int>(i), static_cast<double>(bytes)});
    drawn.touched += static_cast<double>(bytes);
  }
  for (std::size_t i = 0; i < reads + writes; ++i)
    drawn.accesses.push_back({{storages[i], 1.0 * static_cast<double>(drawn.operands[i].bytes), 0.0, drawn.touched}});
  return drawn;
}

/// Two lists of five tensors, of which it works on some one after the other; the first list is written in place.
DrawnLaunch list_launch(std::mt19937_64& random) {
  DrawnLaunch drawn;
  constexpr std::size_t kTensors = 5;
  const StorageId of[2] = {static_cast<StorageId>(100 + 10 * (random() % 3)),
                           static_cast<StorageId>(200 + 10 * (random() % 3))};
  const std::size_t from = random() % kTensors, to = from + 1 + random() % (kTensors - from);
  for (const StorageId first : of)
    for (StorageId i = 0; i < static_cast<StorageId>(kTensors); ++i)
      drawn.operands.push_back({first + i, 20'000 + 9'000 * i});
  double list_bytes = 0.0;
  for (std::size_t i = from; i < to; ++i) list_bytes += static_cast<double>(drawn.operands[i].bytes);
  drawn.touched = 2 * list_bytes;
  for (int list = 0; list < 2; ++list) {
    drawn.launch.reads.push_back({.operand = Access::kUntracked,
                                  .bytes = list_bytes,
                                  .requested = 0.0,
                                  .list = list,
                                  .from = static_cast<double>(from),
                                  .to = static_cast<double>(to)});
    std::vector<Sweep> sweeps;
    double at = 0.0;
    for (std::size_t i = from; i < to; ++i) {
      const Operand& operand = drawn.operands[static_cast<std::size_t>(list) * kTensors + i];
      const double bytes = static_cast<double>(operand.bytes), end = at + drawn.touched * bytes / list_bytes;
      sweeps.push_back({operand.storage, bytes, at, end});
      at = end;
    }
    drawn.accesses.push_back(sweeps);
  }
  drawn.launch.writes.push_back(drawn.launch.reads[0]);
  drawn.accesses.push_back(drawn.accesses[0]);
  return drawn;
}

TEST(SlowResidency, every_access_hits_what_the_bytes_touched_since_leave_of_it) {
  std::mt19937_64 random(20261201);
  L2Residency residency(round_l2());
  SlowResidency slow;
  int partly = 0;
  for (int i = 0; i < 1500; ++i) {
    // Now and then a long row of launches on little memory, so that some look back over hundreds of them.
    const bool lists = i % 300 < 150 && random() % 3 == 0;
    const DrawnLaunch drawn = lists ? list_launch(random) : plain_launch(random);
    std::vector<double> shares;
    residency.visit(drawn.launch, drawn.operands, shares);
    slow.next();
    ASSERT_EQ(shares.size(), drawn.accesses.size());
    for (std::size_t a = 0; a < shares.size(); ++a) {
      const double factor = a < drawn.launch.reads.size() ? 1.0 : kDirty;
      double hit = 0.0, all = 0.0;
      for (const Sweep& sweep : drawn.accesses[a]) {
        hit += sweep.bytes * slow.hit(sweep, factor);
        all += sweep.bytes;
      }
      ASSERT_NEAR(shares[a], hit / all, 1e-4) << "launch " << i << ", access " << a;
      partly += shares[a] > 0.01 && shares[a] < 0.99;
    }
    for (const auto& access : drawn.accesses)
      for (const Sweep& sweep : access) slow.touch(sweep, drawn.touched);
    if (i % 100 != 99) continue;
    const std::map<StorageId, double> expected = slow.held();
    const std::vector<L2Residency::Held> held = residency.held();
    ASSERT_EQ(held.size(), expected.size());
    for (const L2Residency::Held& one : held) EXPECT_NEAR(one.share, expected.at(one.storage), 1e-4);
  }
  EXPECT_GT(partly, 50) << "the ramp itself must be seen";
}

TEST(SlowResidency, a_storage_not_used_for_a_thousand_launches_is_found_where_those_touch_little) {
  for (const int launches : {1, 15, 16, 17, 31, 33, 255, 257, 600, 1100}) {
    L2Residency residency(round_l2());
    std::vector<double> shares;
    const auto touch = [&](StorageId storage, std::int64_t bytes) {
      KernelLaunch launch;
      launch.reads.push_back({0, static_cast<double>(bytes)});
      residency.visit(launch, std::vector{Operand{storage, bytes}}, shares);
    };
    touch(1, 100'000);
    touch(2, 100'000);
    const std::int64_t each = 400'000 / launches, later = 100'000 / launches;
    for (int i = 0; i < launches; ++i) touch(static_cast<StorageId>(3 + i), each);
    touch(1, 100'000);
    const double first = static_cast<double>(each * launches), second = static_cast<double>(later * launches);
    EXPECT_NEAR(shares[0], slow_hit(200e3 + first, 200e3 + first), 1e-6)
        << launches << ": the second one and itself beside";
    for (int i = 0; i < launches; ++i) touch(static_cast<StorageId>(5000 + i), later);
    touch(2, 100'000);
    const double since = 200e3 + first + second;
    EXPECT_NEAR(shares[0], slow_hit(since, since), 1e-6)
        << launches << ": storage 1 counts once, where it was touched last";
  }
}

TEST(SlowResidency, the_next_repetition_finds_what_all_sets_leave) {
  // A kernel that reads 100 kB of inputs and writes 50 kB, with so many sets of inputs.
  KernelLaunch launch;
  launch.reads.push_back({0, 100e3});
  launch.writes.push_back({1, 50e3});
  const std::vector<KernelLaunch> launches{launch};
  for (const int sets : {1, 3, 5, 6, 7, 9}) {
    const auto shares = repeated_residency(launches, 1, sets, round_l2());
    const double cycle = 100e3 * sets + 50e3;
    EXPECT_NEAR(shares[0][0], slow_hit(cycle, cycle), 1e-9) << sets;
    EXPECT_NEAR(shares[0][1], 1.0, 1e-9) << "the output is the same each time";
  }
  const auto partly = repeated_residency(launches, 1, 2, round_l2(), 1e6);
  EXPECT_NEAR(partly[0][0], slow_hit(0.3 * 1e6 * 2 + 50e3, 0.3 * 1e6 * 2 + 50e3), 1e-9) << "what is made and not read";
  const auto shared = repeated_residency(launches, 1, 9, round_l2(), 0.0, 0);
  EXPECT_NEAR(shared[0][0], 1.0, 1e-9);
}

}  // namespace
}  // namespace ridgeline
