// The L2's choice of what leaves against a plain list of one slice, and its books over random accesses.
#include "sim/hierarchy/l2_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <string>
#include <vector>

#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

constexpr double kPart = 4096.0;  // the smallest granule: tensors of one, all of one size, lie in one slice

/// One slice as the page says it (docs/model/simulated-hierarchy.md, section L2), newest first.
class PlainSlice {
 public:
  PlainSlice(const L2Spec& l2)
      : l2_(l2), capacity_(l2.capacity.value() / 8.0), most_dirty_(l2.dirty_fraction * capacity_) {}

  L2Traffic access(std::uint32_t tensor, bool writes, double copies) {
    L2Traffic moved;
    moved.bytes = kPart;
    now_ += kPart;
    const bool through = writes && l2_.writes == L2Writes::through;
    if (through) moved.written_back += kPart;
    Line line{tensor, 0.0, now_};
    bool dirty = false;
    const auto found = [&](std::list<Line>& lines) {
      const auto at = std::find_if(lines.begin(), lines.end(), [&](const Line& one) { return one.tensor == tensor; });
      if (at == lines.end()) return false;
      line = *at;
      lines.erase(at);
      return true;
    };
    if (found(dirty_)) dirty = true;
    else if (!found(clean_)) moved.missed = kPart;
    moved.dirty = dirty ? kPart : 0.0;
    line.room = std::max(line.room, kPart * copies);
    line.touched = now_;
    if (writes) dirty = !through;
    while (room() > 0.0 && room() + line.room > capacity_) evict(moved);
    (dirty ? dirty_ : clean_).push_front(line);
    while (static_cast<double>(dirty_.size()) * kPart > most_dirty_ && dirty_.back().tensor != tensor) {
      moved.written_back += kPart;  // written, and the next to go
      clean_.push_back(dirty_.back());
      dirty_.pop_back();
    }
    return moved;
  }
  [[nodiscard]] double resident() const { return kPart * static_cast<double>(clean_.size() + dirty_.size()); }
  [[nodiscard]] double dirty() const { return kPart * static_cast<double>(dirty_.size()); }

 private:
  struct Line {
    std::uint32_t tensor;
    double room, touched;
  };
  [[nodiscard]] double room() const {
    double sum = 0.0;
    for (const auto* lines : {&clean_, &dirty_})
      for (const Line& line : *lines) sum += line.room;
    return sum;
  }
  void evict(L2Traffic& moved) {
    const double slower = l2_.replacement == L2Replacement::aged ? 1.7 : 1.0;
    const bool clean =
        dirty_.empty() || (!clean_.empty() && now_ - clean_.back().touched >= (now_ - dirty_.back().touched) / slower);
    if (!clean) moved.written_back += kPart;
    (clean ? clean_ : dirty_).pop_back();
  }

  L2Spec l2_;
  double capacity_, most_dirty_, now_ = 0.0;
  std::list<Line> clean_, dirty_;
};

L2Spec drawn_l2(Draws& draws) {
  L2Spec l2;
  const double parts = 3.0 + static_cast<double>(draws.index(30));
  l2.capacity = Bytes{8.0 * kPart * parts};
  l2.partitions = static_cast<int>(1 + draws.index(2));
  l2.dirty_fraction = std::max(1.1 / parts, 0.2 + 0.7 * draws.share());  // no tensor is more than may be dirty
  l2.replacement = draws.index(2) == 0 ? L2Replacement::aged : L2Replacement::lru;
  if (draws.index(4) == 0) l2.writes = L2Writes::through;
  return l2;
}

TEST(L2Slice, gives_up_what_a_plain_list_does) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 100; ++i) {
    const L2Spec l2 = drawn_l2(draws);
    L2Cache cache(l2);
    PlainSlice plain(l2);
    const std::size_t tensors = 4 + draws.index(60);
    for (int step = 0; step < 400; ++step) {
      const auto tensor = static_cast<std::uint32_t>(draws.index(tensors));
      const bool writes = draws.index(3) == 0;
      const double copies = writes ? cache.written_copies() : cache.shared_copies(draws.index(2) == 0 ? 1.0 : 4.0);
      const L2Cache::Run run{.storage = tensor, .bytes = kPart};
      const L2Traffic moved = writes ? cache.write(run) : cache.read(run, copies);
      const L2Traffic expected = plain.access(tensor, writes, copies);
      const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i) +
                                ", access " + std::to_string(step);
      ASSERT_EQ(moved.bytes, expected.bytes) << which;
      ASSERT_EQ(moved.missed, expected.missed) << which;
      ASSERT_EQ(moved.dirty, expected.dirty) << which;
      ASSERT_EQ(moved.written_back, expected.written_back) << which;
      ASSERT_EQ(cache.resident_bytes(), plain.resident()) << which;
      ASSERT_EQ(cache.dirty_bytes(), plain.dirty()) << which;
      ASSERT_EQ(static_cast<double>(cache.resident_parts()) * kPart, plain.resident()) << which;
    }
  }
}

TEST(L2Slice, copies_are_those_of_the_page) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (const int partitions : {1, 2, 4}) {
    L2Spec l2;
    l2.capacity = Bytes{1e6};
    l2.partitions = partitions;
    const L2Cache cache(l2);
    const double P = partitions, n = draws.between(1, 30);
    EXPECT_NEAR(cache.shared_copies(n), 1.0 + (P - 1.0) * (1.0 - std::pow(P, -n)), 1e-12);
    EXPECT_EQ(cache.stream_copies(), cache.shared_copies(1.0));
    EXPECT_EQ(cache.written_copies(), partitions > 1 ? 1.25 : 1.0);
  }
}

/// What is dirty is what was written and has not been written back, whatever came between; nothing is over full.
TEST(L2Books, hold_over_random_accesses) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 60; ++i) {
    L2Spec l2 = drawn_l2(draws);
    l2.capacity = Bytes{draws.between(3e6, 6e7)};
    if (draws.index(3) == 0) l2.replacement = L2Replacement::random;
    const double capacity = l2.capacity.value();
    L2Cache cache(l2, draws.index(2) == 0 ? 1000 : L2Cache::kMostGranules);
    double dirty = 0.0;
    std::vector<double> sizes;
    for (int k = 0; k < 12; ++k) sizes.push_back(std::floor(draws.between(1e4, 4e7)));
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i);
    for (int step = 0; step < 60; ++step) {
      const std::size_t tensor = draws.index(sizes.size());
      const double offset = draws.index(4) == 0 ? std::floor(0.3 * sizes[tensor]) : 0.0;
      L2Cache::Run run{
          .storage = static_cast<std::uint32_t>(tensor), .offset = offset, .bytes = sizes[tensor] - offset};
      if (draws.index(3) == 0) run.end = draws.share(), run.begin = run.end * draws.share();
      const bool writes = draws.index(2) == 0, once = draws.index(6) == 0;
      const double before = cache.resident_bytes();
      const L2Traffic moved = once ? (writes ? cache.write_once(run.bytes) : cache.read_once(run.bytes))
                                   : (writes ? cache.write(run) : cache.read(run, cache.stream_copies()));
      if (once || (run.begin == 0.0 && run.end == 1.0 && offset == 0.0)) {
        ASSERT_NEAR(moved.bytes, run.bytes, 1.0) << which;
      }
      ASSERT_GE(moved.missed, 0.0) << which;
      ASSERT_LE(moved.missed, moved.bytes) << which;
      ASSERT_LE(moved.dirty, moved.bytes - moved.missed + 1e-6) << which;
      const bool through = l2.writes == L2Writes::through;
      if (writes && !through) dirty += moved.bytes - moved.dirty;
      dirty -= moved.written_back - (writes && through ? moved.bytes : 0.0);
      ASSERT_NEAR(cache.dirty_bytes(), dirty, 1.0) << which << ", access " << step;
      ASSERT_LE(cache.resident_bytes(), capacity) << which;
      ASSERT_LE(cache.resident_bytes(), before + moved.missed + 1e-6) << which;
      ASSERT_LE(cache.dirty_bytes(), l2.dirty_fraction * capacity + 8.0 * 65536.0) << which;
    }
    // What fits beside everything else is there when it is read again at once.
    const L2Cache::Run small{.storage = 99, .bytes = 0.05 * capacity};
    cache.read(small, cache.stream_copies());
    if (l2.replacement != L2Replacement::random) {
      ASSERT_EQ(cache.read(small, cache.stream_copies()).missed, 0.0) << which;
    }
  }
}

/// A state that is taken up by another cache goes on as in the first, anonymous memory and sizes included.
TEST(L2Books, a_state_goes_on_elsewhere) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 60; ++i) {
    L2Spec l2 = drawn_l2(draws);
    l2.capacity = Bytes{draws.between(3e6, 3e7)};
    L2Cache first(l2), second(l2);
    const auto access = [&](L2Cache& cache, std::size_t tensor, std::size_t kind, double share) {
      const L2Cache::Run run{
          .storage = static_cast<std::uint32_t>(tensor), .bytes = 1e6 * static_cast<double>(1 + tensor), .end = share};
      L2Traffic moved;
      if (kind == 0) moved = cache.write(run);
      else if (kind == 1) moved = cache.read_once(run.bytes);
      else if (kind == 2) moved = cache.write_once(run.bytes);
      else moved = cache.read(run, cache.stream_copies());
      return moved;
    };
    for (int step = 0; step < 40; ++step) access(first, draws.index(12), draws.index(5), 1.0);
    for (int step = 0; step < 10; ++step) access(second, draws.index(12), draws.index(5), 1.0);  // is forgotten
    std::vector<std::uint32_t> names;
    const L2Cache::State state = first.state(names);
    second.restore(state, names);
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_EQ(second.state(names), state) << which;
    ASSERT_EQ(second.resident_bytes(), first.resident_bytes()) << which;
    ASSERT_EQ(second.dirty_bytes(), first.dirty_bytes()) << which;
    for (int step = 0; step < 30; ++step) {
      const std::size_t tensor = draws.index(12), kind = draws.index(5);
      const double share = draws.index(2) == 0 ? 1.0 : draws.share();
      const L2Traffic a = access(first, tensor, kind, share), b = access(second, tensor, kind, share);
      ASSERT_EQ(a.bytes, b.bytes) << which;
      ASSERT_EQ(a.missed, b.missed) << which;
      ASSERT_EQ(a.dirty, b.dirty) << which;
      ASSERT_EQ(a.written_back, b.written_back) << which;
    }
  }
}

}  // namespace
}  // namespace ridgeline
