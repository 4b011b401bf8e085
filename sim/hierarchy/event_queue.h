// Events in the order of their time; of one time, in the order they were announced.
//
// Time is a whole number of ticks of 1/16 ns: sums of it do not depend on their order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ridgeline {

using Ticks = std::int64_t;
inline constexpr double kTicksASecond = 16e9;

inline Ticks ticks_of(double seconds) { return std::llround(seconds * kTicksASecond); }
inline double seconds_of(Ticks ticks) { return static_cast<double>(ticks) / kTicksASecond; }

template <typename What>
class EventQueue {
 public:
  struct Event {
    Ticks time = 0;
    std::uint64_t sequence = 0;
    What what;
  };

  void announce(Ticks time, const What& what) {
    heap_.push_back({time, sequence_++, what});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// Of the next event. Not to be asked when empty.
  [[nodiscard]] Ticks time() const { return heap_.front().time; }
  What take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const What what = heap_.back().what;
    heap_.pop_back();
    return what;
  }

  /// Announces what `picks` chooses a second time, changed, for the same times.
  template <typename Picks, typename Changes>
  void repeat(Picks picks, Changes changes) {
    const std::size_t before = heap_.size();
    for (std::size_t i = 0; i < before; ++i)
      if (picks(heap_[i].what)) heap_.push_back({heap_[i].time, sequence_++, changes(heap_[i].what)});
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

 private:
  static bool later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }
  std::vector<Event> heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace ridgeline
