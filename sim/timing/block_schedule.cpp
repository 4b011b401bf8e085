#include "sim/timing/block_schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace ridgeline {
namespace {

constexpr double kTail = 0.62;
constexpr double kExactRounds = 4.0;

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

}  // namespace ridgeline
