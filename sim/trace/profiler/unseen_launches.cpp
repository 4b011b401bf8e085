#include "sim/trace/profiler/unseen_launches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace ridgeline::trace {
namespace {

constexpr std::size_t kRow = 8, kLongRow = 256;

class Stream {
 public:
  Stream(const std::vector<GpuEvent>& gpu, const std::vector<bool>& unseen, std::vector<std::size_t> order)
      : gpu_(gpu), unseen_(unseen), order_(std::move(order)) {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return gpu_[a].begin < gpu_[b].begin; });
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (!unseen_[order_[i]]) seen_[kind_of(i)].push_back(i);
  }

  void match(std::vector<std::size_t>& twins) const {
    std::size_t left = 0, at = 0;  // of the row that is being followed
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (!unseen_[order_[i]]) continue;  // a row ends before it
      if (left == 0) std::tie(left, at) = longest_row(i);
      if (left == 0) continue;
      twins[order_[i]] = order_[at++];
      --left;
    }
  }

 private:
  using Kind = std::pair<std::uint32_t, std::int64_t>;
  [[nodiscard]] Kind kind_of(std::size_t i) const { return {gpu_[order_[i]].name, gpu_[order_[i]].blocks}; }

  /// Of seen ones that are as those from `i` on: how many, and from where; 0 where they are fewer than a row.
  [[nodiscard]] std::pair<std::size_t, std::size_t> longest_row(std::size_t i) const {
    std::pair<std::size_t, std::size_t> best{0, 0};
    const auto starts = seen_.find(kind_of(i));
    if (starts == seen_.end()) return best;
    for (const std::size_t start : starts->second) {
      std::size_t length = 0;
      while (length < kLongRow && start + length < order_.size() && i + length < order_.size() &&
             unseen_[order_[i + length]] && !unseen_[order_[start + length]] &&
             kind_of(i + length) == kind_of(start + length))
        ++length;
      if (length > best.first) best = {length, start};
      if (length == kLongRow) break;
    }
    return best.first >= kRow ? best : std::pair<std::size_t, std::size_t>{0, 0};
  }

  const std::vector<GpuEvent>& gpu_;
  const std::vector<bool>& unseen_;
  std::vector<std::size_t> order_;
  std::map<Kind, std::vector<std::size_t>> seen_;
};

}  // namespace

std::vector<std::size_t> later_twins(const std::vector<GpuEvent>& gpu, const std::vector<bool>& unseen) {
  std::vector<std::size_t> twins(gpu.size());
  std::iota(twins.begin(), twins.end(), std::size_t{0});
  if (std::none_of(unseen.begin(), unseen.end(), [](bool u) { return u; })) return twins;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> streams;
  for (std::size_t g = 0; g < gpu.size(); ++g) streams[{gpu[g].device, gpu[g].stream}].push_back(g);
  for (auto& [stream, order] : streams) Stream(gpu, unseen, std::move(order)).match(twins);
  return twins;
}

}  // namespace ridgeline::trace
