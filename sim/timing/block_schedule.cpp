#include "sim/timing/block_schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <vector>

namespace ridgeline {
namespace {

constexpr double kTail = 0.62;
constexpr double kExactRounds = 4.0;

/// The SMs of a grid whose blocks share them: of each what its blocks have left, as shares of their work.
class SharedSms {
 public:
  SharedSms(std::span<const double> alone, std::span<const double> more, double repeats, int sms, int resident)
      : alone_(alone),
        more_(more),
        blocks_(static_cast<std::int64_t>(static_cast<double>(alone.size()) * repeats)),
        sms_(static_cast<std::size_t>(sms)),
        resident_(static_cast<std::size_t>(resident)) {
    slots_.assign(sms_ * resident_, {});
    count_.assign(sms_, 0);
    now_.assign(sms_, 0.0);
    next_end_.assign(sms_, kNever);
    heap_.resize(sms_);
    std::iota(heap_.begin(), heap_.end(), std::size_t{0});
  }

  double end() {
    deal();
    for (std::size_t sm = 0; sm < sms_; ++sm) plan(sm);
    for (std::size_t at = sms_ / 2 + 1; at-- > 0;) settle(at);
    double last = 0.0;
    while (next_end_[heap_[0]] < kNever) {
      last = std::max(last, next_end_[heap_[0]]);
      finish(heap_[0]);
      settle(0);
    }
    return last;
  }

 private:
  struct Slot {
    std::size_t block = 0;
    double left = 0.0;
  };
  static constexpr double kNever = 1e300;

  [[nodiscard]] double cost(std::size_t block, std::size_t together) const {
    return alone_[block] + static_cast<double>(together - 1) * more_[block];
  }
  void start(std::size_t sm) {
    slots_[sm * resident_ + count_[sm]++] = {static_cast<std::size_t>(started_++) % alone_.size(), 1.0};
  }
  void deal() {
    auto stride = static_cast<std::size_t>(0.46 * static_cast<double>(sms_)) + 1;
    while (std::gcd(stride, sms_) != 1) ++stride;
    for (std::size_t round = 0; round < resident_; ++round)
      for (std::size_t i = 0; i < sms_ && started_ < blocks_; ++i)
        start(round == 0 ? i : (i * stride + 29 * round) % sms_);
  }
  void plan(std::size_t sm) {
    next_end_[sm] = kNever;
    for (std::size_t k = 0; k < count_[sm]; ++k) {
      const Slot& slot = slots_[sm * resident_ + k];
      next_end_[sm] = std::min(next_end_[sm], now_[sm] + slot.left * cost(slot.block, count_[sm]));
    }
  }
  /// Ends the blocks that are through, starts others in their place.
  void finish(std::size_t sm) {
    const double passed = next_end_[sm] - now_[sm];
    const std::size_t together = count_[sm];
    now_[sm] = next_end_[sm];
    std::size_t kept = 0, ended = 0;
    Slot* slots = &slots_[sm * resident_];
    for (std::size_t k = 0; k < together; ++k) {
      const double left = slots[k].left - passed / cost(slots[k].block, together);
      if (left > 1e-9) slots[kept++] = {slots[k].block, left};
      else ++ended;
    }
    count_[sm] = kept;
    for (; ended > 0 && started_ < blocks_; --ended) start(sm);
    plan(sm);
  }
  void settle(std::size_t at) {
    const std::size_t sm = heap_[at];
    for (std::size_t child = 2 * at + 1; child < sms_; child = 2 * at + 1) {
      if (child + 1 < sms_ && next_end_[heap_[child + 1]] < next_end_[heap_[child]]) ++child;
      if (next_end_[heap_[child]] >= next_end_[sm]) break;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = sm;
  }

  std::span<const double> alone_, more_;
  std::int64_t blocks_, started_ = 0;
  std::size_t sms_, resident_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> count_, heap_;
  std::vector<double> now_, next_end_;
};

}  // namespace

double schedule_end(std::span<const double> cost, double repeats, int slots) {
  if (cost.empty() || slots < 1) return 0.0;
  const auto [shortest, longest] = std::minmax_element(cost.begin(), cost.end());
  const double blocks = static_cast<double>(cost.size()) * repeats;
  if (blocks <= slots) return *longest;
  if (*shortest == *longest) return std::ceil(blocks / slots - 1e-9) * *longest;
  if (blocks > kExactRounds * slots) {
    double total = 0.0;
    for (const double c : cost) total += c;
    return std::max(*longest, total * repeats / slots + kTail * *longest);
  }
  static thread_local std::vector<double> free_at;
  free_at.assign(static_cast<std::size_t>(slots), 0.0);
  // A min-heap of the times slots come free: replacing its top keeps it one.
  const auto settle = [](std::vector<double>& heap) {
    std::size_t at = 0;
    const double value = heap[0];
    for (std::size_t child = 1; child < heap.size(); child = 2 * at + 1) {
      if (child + 1 < heap.size() && heap[child + 1] < heap[child]) ++child;
      if (heap[child] >= value) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = value;
  };
  const auto times = static_cast<std::size_t>(repeats);
  for (std::size_t i = 0; i < times; ++i)
    for (const double c : cost) {
      free_at[0] += c;
      settle(free_at);
    }
  return *std::max_element(free_at.begin(), free_at.end());
}

double shared_schedule_end(std::span<const double> alone, std::span<const double> more, double repeats, int sms,
                           int resident) {
  if (alone.empty() || sms < 1) return 0.0;
  if (resident <= 1) return schedule_end(alone, repeats, sms);
  if (static_cast<double>(alone.size()) * repeats <= kExactRounds * sms * resident)
    return SharedSms(alone, more, repeats, sms, resident).end();
  static thread_local std::vector<double> together;
  together.clear();
  for (std::size_t i = 0; i < alone.size(); ++i) together.push_back(alone[i] + (resident - 1) * more[i]);
  return schedule_end(together, repeats, sms * resident);
}

namespace {

/// What a schedule depends on besides the number of SMs, as one number.
std::uint64_t digest_of(std::span<const double> alone, std::span<const double> more, double repeats, int resident) {
  std::uint64_t digest = 0x9e3779b97f4a7c15ULL;
  const auto add = [&digest](double value) {
    digest = (digest ^ std::bit_cast<std::uint64_t>(value)) * 0xff51afd7ed558ccdULL;
    digest ^= digest >> 32;
  };
  for (const double value : alone) add(value);
  for (const double value : more) add(value);
  add(repeats);
  add(resident);
  return digest;
}

/// From one number of SMs that is tried to the next, and the nearest of them that is no more.
int step_at(int sms) { return std::max(1, static_cast<int>(std::bit_floor(static_cast<unsigned>(sms))) / 64); }
int tried_from(int sms) { return sms - sms % step_at(sms); }

double remembered_end(std::uint64_t digest, std::span<const double> alone, std::span<const double> more, double repeats,
                      int sms, int resident) {
  constexpr std::size_t kMostRemembered = 1U << 16;
  static thread_local std::unordered_map<std::uint64_t, double> ends;
  const std::uint64_t key = digest + static_cast<std::uint64_t>(sms) * 0x2545f4914f6cdd1dULL;
  if (const auto found = ends.find(key); found != ends.end()) return found->second;
  if (ends.size() >= kMostRemembered) ends.clear();
  const double end = shared_schedule_end(alone, more, repeats, sms, resident);
  ends.emplace(key, end);
  return end;
}

}  // namespace

double least_schedule_end(std::span<const double> alone, std::span<const double> more, double repeats, int sms,
                          int resident) {
  double longest = 0.0, together = 0.0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    longest = std::max(longest, alone[i]);
    together += alone[i] + (resident - 1) * more[i];
  }
  return std::max(longest, together * repeats / (static_cast<double>(sms) * resident));
}

namespace {

/// What no end of a grid is later than: the less, the more slots there are.
class LatestEnd {
 public:
  /// `sorted`: what each block of the list takes on a full SM, ascending; `total` of all blocks.
  LatestEnd(std::span<const double> sorted, double blocks, double total)
      : sorted_(sorted), blocks_(blocks), total_(total) {}

  [[nodiscard]] double on(double slots) const {
    const double longest = sorted_.back();
    if (blocks_ <= slots) return longest;
    // The last block starts no later than all slots' even share …
    double start = total_ / slots;
    // … and no later than so many blocks have ended, of which the first all began at once.
    const double lists = std::floor(slots / static_cast<double>(sorted_.size()));
    if (lists >= 1.0 && blocks_ < 2.0 * slots) {
      const auto ended = static_cast<std::size_t>((blocks_ - slots - 1.0) / lists);
      start = std::min(start, sorted_[std::min(ended, sorted_.size() - 1)]);
    }
    return start + longest;
  }

 private:
  std::span<const double> sorted_;
  double blocks_, total_;
};

}  // namespace

double latest_schedule_end(std::span<const double> alone, std::span<const double> more, double repeats, int sms,
                           int resident) {
  if (alone.empty() || sms < 1) return 0.0;
  const double blocks = static_cast<double>(alone.size()) * repeats;
  static thread_local std::vector<double> costs;
  costs.clear();
  double together = 0.0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    costs.push_back(alone[i] + (resident - 1) * more[i]);
    together += costs.back();
  }
  std::sort(costs.begin(), costs.end());
  const LatestEnd bound(costs, blocks, together * repeats);
  const std::uint64_t digest = digest_of(alone, more, repeats, resident);
  double latest = 0.0;
  // Rounding of sums must not leave out an end that is as late as any. On more SMs than blocks every block is alone.
  constexpr double kRounding = 1.0 + 1e-12;
  for (int count = tried_from(static_cast<int>(std::min<double>(sms, blocks)));
       bound.on(static_cast<double>(count) * resident) * kRounding > latest; count += step_at(count)) {
    latest = std::max(latest, remembered_end(digest, alone, more, repeats, count, resident));
    if (count >= blocks) break;
  }
  return latest;
}

}  // namespace ridgeline
