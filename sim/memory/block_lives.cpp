#include "sim/memory/block_lives.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace ridgeline {
namespace {

constexpr std::int64_t kSmallest = 4096;            // shares of what is reserved
constexpr std::int64_t kMostOfSmallPool = 1 << 20;  // bytes that the small pool serves

using What = HistoryEvent::Action;

/// Makes a moment of the run.
bool is_moment(const MemoryEvent& e) { return e.event.action == What::alloc || e.event.action == What::free_completed; }

/// Names who asked for a block, each once.
class Makers {
 public:
  Makers(const StepProgram& program, std::vector<BlockLives::Maker>& known) : program_(program), known_(known) {}

  std::uint32_t of(std::uint32_t action_index) {
    const Action& action = program_.actions[action_index];
    const Storage& storage = program_.storages[action.index];
    const bool setup = program_.trace == nullptr || action.call == Action::kNoCall ||
                       (!program_.steps.empty() && action_index < program_.steps.front().begin);
    const Call* call = setup ? nullptr : &program_.trace->calls[action.call];
    const std::uint16_t module = storage.module != 0 || call == nullptr ? storage.module : call->module;
    const auto [entry, fresh] = places_.try_emplace(
        {call ? call->op + std::uint64_t{1} : 0, call ? call->phase : Phase::setup, storage.layer, module},
        static_cast<std::uint32_t>(known_.size()));
    if (fresh)
      known_.push_back({call ? name_of(program_.trace->ops[call->op]) : "set-up", call ? call->phase : Phase::setup,
                        storage.layer, path_of(module)});
    return entry->second;
  }

 private:
  [[nodiscard]] std::string path_of(std::uint16_t module) const {
    if (module == 0 || program_.trace == nullptr) return "";
    const ModuleName& one = program_.trace->modules[module - 1u];
    const std::string above = path_of(one.parent);
    return above.empty() ? one.name : above + "." + one.name;
  }
  const StepProgram& program_;
  std::vector<BlockLives::Maker>& known_;
  std::map<std::tuple<std::uint64_t, Phase, std::int16_t, std::uint16_t>, std::uint32_t> places_;
};

/// Moments [first, first + count] of the run from entry `begin` of the history on.
struct Window {
  std::size_t begin = 0;
  std::uint32_t first = 0, count = 0, all = 0;
};

/// Those that are told: all from `begin` on, or the `most` around the one with most allocated.
Window window_of(std::span<const MemoryEvent> history, std::size_t begin, std::uint32_t most) {
  Window window{.begin = begin};
  std::int64_t allocated = 0, highest = -1;
  std::uint32_t peak = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (!is_moment(history[i])) continue;
    allocated += history[i].event.action == What::alloc ? history[i].held : -history[i].held;
    if (i < begin) continue;
    ++window.all;
    if (allocated > highest) highest = allocated, peak = window.all;
  }
  window.count = std::min(window.all, most);
  const std::uint32_t before = std::min(peak, most / 2);
  window.first = std::min(peak - before, window.all - window.count);
  return window;
}

class Lives {
 public:
  Lives(const StepProgram& program, const MemoryResult& result, Window window)
      : program_(program), result_(result), window_(window), makers_(program, out_.makers) {}

  BlockLives run() {
    const std::uint32_t last = window_.first + window_.count;
    for (std::size_t i = 0; i < result_.history.size(); ++i) {
      const MemoryEvent& e = result_.history[i];
      if (i >= window_.begin && passed_ == last && last < window_.all) break;
      const bool counts = i >= window_.begin;
      if (is_moment(e)) {
        if (counts) ++passed_;
        note(e, counts);
        // A window that begins later begins with what is there then.
      } else if (e.event.action != What::free_requested) {
        segment(e, counts && passed_ >= window_.first ? now() + 1 : 0);
      }
    }
    if (result_.failure && window_.first + window_.count == window_.all) fail();
    forget_earlier();
    find_peak();
    sort_and_join();
    out_.cut_before = window_.first;
    out_.cut_after = window_.all - window_.first - window_.count;
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::uint32_t now() const { return passed_ > window_.first ? passed_ - window_.first : 0; }

  void note(const MemoryEvent& e, bool counts) {
    const bool told = counts && passed_ > window_.first;
    if (told) out_.actions.push_back(e.action);
    if (e.event.action == What::alloc) {
      const Storage& storage = program_.storages[program_.actions[e.action].index];
      live_[e.event.address] = out_.blocks.size();
      out_.blocks.push_back({e.event.address, e.held, e.event.bytes, told ? now() : 0, BlockLives::kStays,
                             storage.category, makers_.of(e.action), 1});
    } else if (const auto found = live_.find(e.event.address); found != live_.end()) {
      out_.blocks[found->second].to = told ? now() : 0;
      live_.erase(found);
    }
  }

  void segment(const MemoryEvent& e, std::uint32_t moment) {
    const bool grows = e.event.action == What::segment_alloc || e.event.action == What::segment_map;
    const bool expandable = e.event.action == What::segment_map || e.event.action == What::segment_unmap;
    if (grows) {
      const Storage& storage = program_.storages[program_.actions[e.action].index];
      const PoolKind pool = storage.bytes <= kMostOfSmallPool ? PoolKind::small : PoolKind::large;
      held_[e.event.address] = out_.segments.size();
      out_.segments.push_back(
          {e.event.address, e.event.bytes, moment, BlockLives::kStays, pool, storage.stream, expandable});
      return;
    }
    // What goes may be parts of several that came: the rest of each stays.
    const Address begin = e.event.address, end = begin + static_cast<Address>(e.event.bytes);
    auto at = held_.upper_bound(begin);
    if (at != held_.begin()) --at;
    while (at != held_.end() && at->first < end) {
      const BlockLives::Segment whole = out_.segments[at->second];
      const Address last = whole.address + static_cast<Address>(whole.bytes);
      if (last <= begin) {
        ++at;
        continue;
      }
      out_.segments[at->second].to = moment;
      at = held_.erase(at);
      if (whole.address < begin) keep(whole, whole.address, begin, moment);
      if (last > end) keep(whole, end, last, moment);
    }
  }
  void keep(BlockLives::Segment part, Address begin, Address end, std::uint32_t moment) {
    part.address = begin;
    part.bytes = static_cast<std::int64_t>(end - begin);
    part.from = moment;
    held_[begin] = out_.segments.size();
    out_.segments.push_back(part);
  }

  /// The request that found no room is the last moment: what the allocator gave back for it is gone then.
  void fail() { out_.actions.push_back(result_.failure->moment.action); }

  void forget_earlier() {
    const auto gone = [](const auto& one) { return one.to <= one.from; };
    std::erase_if(out_.blocks, gone);
    std::erase_if(out_.segments, gone);
  }

  void find_peak() {
    std::vector<std::int64_t> allocated(out_.moments() + 1, 0), reserved = allocated;
    const auto add = [](std::vector<std::int64_t>& changes, const auto& one) {
      changes[one.from] += one.bytes;
      if (one.to < changes.size()) changes[one.to] -= one.bytes;
    };
    for (const auto& block : out_.blocks) add(allocated, block);
    for (const auto& segment : out_.segments) add(reserved, segment);
    std::int64_t sum = 0, held = 0;
    out_.allocated = -1;
    for (std::uint32_t m = 0; m < out_.moments(); ++m) {
      sum += allocated[m];
      held += reserved[m];
      if (sum <= out_.allocated) continue;
      out_.allocated = sum;
      out_.reserved = held;
      out_.peak = m;
    }
  }

  void sort_and_join() {
    const auto order = [](const auto& a, const auto& b) {
      return std::pair(a.address, a.from) < std::pair(b.address, b.from);
    };
    std::sort(out_.segments.begin(), out_.segments.end(), order);
    std::sort(out_.blocks.begin(), out_.blocks.end(), order);
    std::vector<Address> starts;  // of segments: what ends there is not joined with what begins
    for (const auto& segment : out_.segments) starts.push_back(segment.address);
    const std::int64_t small = out_.reserved / kSmallest;
    // The last entry of each kind of life, by where it ends.
    using Kind = std::tuple<Address, std::uint32_t, std::uint32_t, Category, std::uint32_t>;
    std::map<Kind, std::size_t> ends;
    std::vector<BlockLives::Block> joined;
    for (const BlockLives::Block& block : out_.blocks) {
      const Address end = block.address + static_cast<Address>(block.bytes);
      std::size_t place = joined.size();
      const auto before = ends.find({block.address, block.from, block.to, block.category, block.maker});
      if (block.bytes < small && before != ends.end() &&
          !std::binary_search(starts.begin(), starts.end(), block.address)) {
        place = before->second;
        ends.erase(before);
        joined[place].bytes += block.bytes;
        joined[place].requested += block.requested;
        ++joined[place].count;
      } else {
        joined.push_back(block);
      }
      if (block.bytes < small) ends[{end, block.from, block.to, block.category, block.maker}] = place;
    }
    out_.blocks = std::move(joined);
  }

  const StepProgram& program_;
  const MemoryResult& result_;
  const Window window_;
  BlockLives out_;
  Makers makers_;
  std::uint32_t passed_ = 0;  ///< moments since the begin
  std::unordered_map<Address, std::size_t> live_;
  std::map<Address, std::size_t> held_;
};

}  // namespace

BlockLives block_lives(const StepProgram& program, const MemoryResult& result, std::uint32_t most_moments) {
  const std::size_t begin = result.failure || result.samples.empty() ? 0 : result.sampled_from;
  return Lives(program, result, window_of(result.history, begin, most_moments)).run();
}

}  // namespace ridgeline
