#include "sim/workload/compile/reorder.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace ridgeline::compile {
namespace {

using Order = std::vector<std::uint32_t>;

/// One of the two graphs: kernels, the buffers they make and read, and who reads each.
class Schedule {
 public:
  Schedule(const Graph& graph, const std::vector<Group>& groups) : graph_(graph), count_(groups.size()) {
    made_.resize(count_);
    read_.resize(count_);
    before_.resize(count_);
    after_.resize(count_);
    std::unordered_map<ValueId, std::uint32_t> maker;
    for (std::uint32_t g = 0; g < count_; ++g)
      for (const Use& use : groups[g].writes) {
        maker[use.value] = g;
        made_[g].push_back(buffer(use.value, groups[g].backward));
      }
    for (std::uint32_t g = 0; g < count_; ++g) {
      const auto reads = [&](ValueId value) {
        const auto found = maker.find(value);
        if (found != maker.end() && found->second == g) return;
        if (found != maker.end()) {
          before_[g].insert(found->second);
          after_[found->second].insert(g);
        } else if (!freeable(value, groups[g].backward)) {
          return;
        }
        const std::uint32_t b = buffer(value, groups[g].backward);
        if (buffers_[b].readers.insert(g).second) read_[g].push_back(b);
      };
      for (const Use& use : groups[g].reads) reads(use.value);
      for (const Use& use : groups[g].writes)
        if (graph.values[use.value].in_place_of != kNone) reads(graph.values[use.value].in_place_of);
    }
    for (std::uint32_t g = 0; g < count_; ++g) {
      std::int64_t size = 0;
      for (const std::uint32_t b : made_[g]) size += buffers_[b].bytes;
      made_bytes_.push_back(size);
    }
  }

  [[nodiscard]] Order best() const {
    Order as_it_is(count_);
    std::iota(as_it_is.begin(), as_it_is.end(), 0U);
    Order best = as_it_is;
    std::int64_t lowest = peak(as_it_is);
    for (const Order& order : {least_memory_first(), breadth_first(), depth_first()})
      if (const std::int64_t other = peak(order); other < lowest) {
        lowest = other;
        best = order;
      }
    return best;
  }

 private:
  struct Buffer {
    std::int64_t bytes = 0;
    bool outlives = false;  ///< a result of the graph
    bool made_here = false;
    std::set<std::uint32_t> readers;
  };

  /// Weights and inputs of the script stay; what the forward graph kept dies with its last reader.
  [[nodiscard]] bool freeable(ValueId value, bool backward) const {
    const NodeId producer = graph_.values[value].producer;
    return producer != kNone && backward && !graph_.nodes[producer].backward;
  }
  std::uint32_t buffer(ValueId value, bool backward) {
    const auto [found, fresh] = numbers_.try_emplace(value, static_cast<std::uint32_t>(buffers_.size()));
    if (fresh) {
      const Value& v = graph_.values[value];
      const bool here = v.producer != kNone && graph_.nodes[v.producer].backward == backward;
      // What is written in place, or into memory of the script, takes none of its own.
      const bool in_place = v.in_place_of != kNone || (v.storage != kNone && v.stored && !v.leaves);
      buffers_.push_back({in_place ? 0 : v.bytes, v.leaves || v.held || (here && !backward && v.stored), here, {}});
    }
    return found->second;
  }

  [[nodiscard]] std::int64_t peak(const Order& order) const {
    std::vector<std::uint32_t> step(count_);
    for (std::uint32_t i = 0; i < count_; ++i) step[order[i]] = i;
    std::vector<std::int64_t> change(count_ + 1, 0);
    const auto end_of = [&](const Buffer& b, std::uint32_t begin) {
      std::uint32_t end = b.outlives ? static_cast<std::uint32_t>(count_) - 1 : begin;
      for (const std::uint32_t reader : b.readers) end = std::max(end, step[reader]);
      return end;
    };
    for (const Buffer& b : buffers_)
      if (!b.made_here) {
        change[0] += b.bytes;
        change[end_of(b, 0) + 1] -= b.bytes;
      }
    for (std::uint32_t g = 0; g < count_; ++g)
      for (const std::uint32_t number : made_[g]) {
        const Buffer& b = buffers_[number];
        change[step[g]] += b.bytes;
        change[end_of(b, step[g]) + 1] -= b.bytes;
      }
    std::int64_t most = 0, now = 0;
    for (const std::int64_t c : change) most = std::max(most, now += c);
    return most;
  }

  /// Always the kernel that raises the peak least, then the one that leaves least memory behind.
  [[nodiscard]] Order least_memory_first() const {
    std::vector<std::size_t> waits(count_), readers(buffers_.size());
    std::vector<std::int64_t> frees(count_, 0);
    std::int64_t live = 0, results = 0;
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      readers[b] = buffers_[b].readers.size() + (buffers_[b].outlives ? 1 : 0);
      if (!buffers_[b].made_here) live += buffers_[b].bytes;
      if (buffers_[b].outlives) results += buffers_[b].bytes;
    }
    std::set<std::uint32_t> ready;
    for (std::uint32_t g = 0; g < count_; ++g) {
      waits[g] = before_[g].size();
      if (waits[g] == 0) ready.insert(g);
      for (const std::uint32_t b : read_[g])
        if (readers[b] == 1) frees[g] += buffers_[b].bytes;
      for (const std::uint32_t b : made_[g])
        if (readers[b] == 0) frees[g] += buffers_[b].bytes;
    }
    std::int64_t most = std::max(live, results);
    Order order;
    while (!ready.empty()) {
      std::uint32_t chosen = *ready.begin();
      const auto cost = [&](std::uint32_t g) {
        return std::tuple{std::max(live + made_bytes_[g], most), made_bytes_[g] - frees[g], g};
      };
      for (const std::uint32_t g : ready)
        if (cost(g) < cost(chosen)) chosen = g;
      ready.erase(chosen);
      order.push_back(chosen);
      live += made_bytes_[chosen];
      most = std::max(most, live);
      live -= frees[chosen];
      for (const std::uint32_t next : after_[chosen])
        if (--waits[next] == 0) ready.insert(next);
      for (const std::uint32_t b : read_[chosen])
        if (--readers[b] == 1)
          for (const std::uint32_t reader : buffers_[b].readers) frees[reader] += buffers_[b].bytes;
    }
    return order;
  }

  /// First whose operands were made first.
  [[nodiscard]] Order breadth_first() const {
    std::vector<std::size_t> waits(count_);
    std::vector<std::uint32_t> at(count_, 0);
    using Entry = std::pair<std::vector<std::uint32_t>, std::uint32_t>;
    std::set<Entry> ready;
    const auto add = [&](std::uint32_t g) {
      std::vector<std::uint32_t> places;
      for (const std::uint32_t other : before_[g]) places.push_back(at[other]);
      std::sort(places.begin(), places.end());
      ready.emplace(std::move(places), g);
    };
    for (std::uint32_t g = 0; g < count_; ++g)
      if ((waits[g] = before_[g].size()) == 0) add(g);
    Order order;
    while (!ready.empty()) {
      const std::uint32_t chosen = ready.begin()->second;
      ready.erase(ready.begin());
      at[chosen] = static_cast<std::uint32_t>(order.size());
      order.push_back(chosen);
      for (const std::uint32_t next : after_[chosen])
        if (--waits[next] == 0) add(next);
    }
    return order;
  }

  /// Kernels by the bytes they read and make, each behind what it needs.
  [[nodiscard]] Order depth_first() const {
    std::vector<std::pair<std::int64_t, std::uint32_t>> by_size;
    for (std::uint32_t g = 0; g < count_; ++g) {
      std::int64_t size = made_bytes_[g];
      for (const std::uint32_t b : read_[g]) size += buffers_[b].bytes;
      by_size.emplace_back(size, g);
    }
    std::vector<bool> seen(count_, false);
    Order order;
    // Without recursion: graphs are thousands of kernels deep.
    struct Visit {
      std::uint32_t group;
      Order needs;
      std::size_t next = 0;
    };
    const auto visit_of = [&](std::uint32_t g) {
      Visit visit{g, Order(before_[g].begin(), before_[g].end())};
      std::sort(visit.needs.begin(), visit.needs.end(),
                [&](std::uint32_t a, std::uint32_t b) { return by_size[a] < by_size[b]; });
      return visit;
    };
    std::vector<std::pair<std::int64_t, std::uint32_t>> sorted = by_size;
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [size, root] : sorted) {
      if (seen[root]) continue;
      seen[root] = true;
      std::vector<Visit> stack{visit_of(root)};
      while (!stack.empty()) {
        Visit& top = stack.back();
        if (top.next == top.needs.size()) {
          order.push_back(top.group);
          stack.pop_back();
          continue;
        }
        const std::uint32_t need = top.needs[top.next++];
        if (seen[need]) continue;
        seen[need] = true;
        stack.push_back(visit_of(need));
      }
    }
    return order;
  }

  const Graph& graph_;
  std::size_t count_;
  std::vector<Buffer> buffers_;
  std::unordered_map<ValueId, std::uint32_t> numbers_;
  std::vector<std::vector<std::uint32_t>> made_, read_;  ///< buffers by kernel
  std::vector<std::set<std::uint32_t>> before_, after_;  ///< kernels by kernel
  std::vector<std::int64_t> made_bytes_;
};

}  // namespace

std::vector<Group> order_kernels(const Graph& graph, std::vector<Group> groups, bool for_peak_memory) {
  std::vector<Group> result;
  result.reserve(groups.size());
  const auto append = [&](auto belongs) {
    std::vector<Group> part;
    for (Group& group : groups)
      if (belongs(group)) part.push_back(std::move(group));
    if (!for_peak_memory) return void(std::move(part.begin(), part.end(), std::back_inserter(result)));
    const Order order = Schedule(graph, part).best();
    for (const std::uint32_t g : order) result.push_back(std::move(part[g]));
  };
  append([](const Group& g) { return !g.backward && !g.after; });
  append([](const Group& g) { return g.backward && !g.after; });
  for (Group& group : groups)
    if (group.after) result.push_back(std::move(group));
  return result;
}

}  // namespace ridgeline::compile
