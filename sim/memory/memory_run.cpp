#include "sim/memory/memory_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <unordered_map>

#include "sim/units/budget.h"

namespace ridgeline {
namespace {

class Runner {
 public:
  Runner(const StepProgram& program, const MemoryOptions& options)
      : program_(program),
        options_(options),
        recording_(options.record_history),
        allocator_(options.settings, DeviceMemory(options.capacity, options.context), options.counts),
        blocks_(program.storages.size(), kNoBlock) {
    result_.context = options.context;
    reserve();
  }

  MemoryResult run() {
    if (run_all() && options_.record_samples) sample_one_more_step();
    const PoolStatistics& all = allocator_.statistics().all;
    // Without a second step the first one has to do.
    result_.peak_reserved = all.reserved_bytes.peak;
    result_.peak_allocated = all.allocated_bytes.peak;
    result_.cached_unused = result_.peak_reserved - result_.peak_allocated;
    result_.device_used = result_.peak_reserved + result_.context;
    result_.statistics = allocator_.statistics();
    if (options_.record_samples || options_.record_history) result_.segments = allocator_.segments();
    // Last, because the state of the run is not kept: the step once more, up to its peak.
    if (!result_.samples.empty()) look_at_peak();
    return std::move(result_);
  }

 private:
  /// Room for what is recorded of each action once and of the steady step up to four times more; what stays empty of
  /// it costs nothing.
  void reserve() {
    if (!options_.record_history && !options_.record_samples) return;
    const auto count = [&](std::span<const Action> actions, Action::Kind kind) {
      return static_cast<std::size_t>(
          std::count_if(actions.begin(), actions.end(), [&](const Action& action) { return action.kind == kind; }));
    };
    using Kind = Action::Kind;
    const std::size_t allocations = count(program_.steady_step(), Kind::allocate),
                      frees = count(program_.steady_step(), Kind::free);
    if (options_.record_samples) result_.samples.reserve(allocations + frees);
    if (options_.record_history)
      result_.history.reserve(count(program_.actions, Kind::allocate) + 2 * count(program_.actions, Kind::free) +
                              4 * (allocations + 2 * frees));
  }

  bool run_all() {
    const auto& steps = program_.steps;
    const auto end = static_cast<std::uint32_t>(program_.actions.size());
    if (steps.empty()) return play(0, end);
    if (!play(0, steps.front().begin)) return false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i == 1) start_steady_state();
      if (i + 1 == steps.size()) remember_alive_before_last_step();
      result_.steps_run = static_cast<int>(i) + 1;
      if (!play(steps[i].begin, steps[i].end)) return false;
    }
    if (steps.size() == 1) return true;
    match_carried_storages();
    std::uint64_t state = fingerprint();
    while (result_.steps_run < options_.most_steps) {
      ++result_.steps_run;
      if (!repeat_last_step()) return false;
      const std::uint64_t next = fingerprint();
      if (next == state) break;
      state = next;
    }
    return true;
  }

  void start_steady_state() {
    const PoolStatistics& all = allocator_.statistics().all;
    result_.first_step_peak_allocated = all.allocated_bytes.peak;
    result_.first_step_peak_reserved = all.reserved_bytes.peak;
    allocator_.reset_peaks();
    peak_ = 0;
  }

  // A storage that the last step frees without having allocated it (a loss kept from the step before) stands, when the
  // step is run again, for the one of the same size that the step itself left behind.
  void remember_alive_before_last_step() {
    for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i] != kNoBlock) alive_before_.push_back(i);
    }
  }
  void match_carried_storages() {
    const auto is_alive = [&](std::uint32_t storage) { return blocks_[storage] != kNoBlock; };
    if (std::all_of(alive_before_.begin(), alive_before_.end(), is_alive)) return;
    std::vector<bool> before(blocks_.size());
    for (const std::uint32_t storage : alive_before_) before[storage] = true;
    std::unordered_map<std::int64_t, std::vector<std::uint32_t>> left;  // by bytes
    for (auto i = static_cast<std::uint32_t>(blocks_.size()); i-- > 0;) {
      if (blocks_[i] != kNoBlock && !before[i]) left[program_.storages[i].bytes].push_back(i);
    }
    for (const std::uint32_t storage : alive_before_) {
      if (blocks_[storage] != kNoBlock) continue;
      auto& same_size = left[program_.storages[storage].bytes];
      if (same_size.empty()) continue;
      carried_.emplace_back(storage, same_size.back());
      same_size.pop_back();
    }
  }
  bool repeat_last_step() {
    for (const auto& [old, now] : carried_) std::swap(blocks_[old], blocks_[now]);
    return play(program_.steps.back().begin, program_.steps.back().end);
  }
  void sample_one_more_step() {
    sampling_ = true;
    result_.sampled_from = result_.history.size();
    if (program_.steps.size() > 1) repeat_last_step();
    sampling_ = false;
  }
  void look_at_peak() {
    const auto highest =
        std::max_element(result_.samples.begin(), result_.samples.end(),
                         [](const MemorySample& a, const MemorySample& b) { return a.allocated < b.allocated; });
    recording_ = false;
    events_left_ = highest - result_.samples.begin() + 1;
    for (const auto& [old, now] : carried_) std::swap(blocks_[old], blocks_[now]);
    if (!play(program_.steps.back().begin, program_.steps.back().end)) return;
    for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i] != kNoBlock) result_.at_peak.push_back({i, allocator_.bytes_of(blocks_[i])});
    }
    result_.segments_at_peak = allocator_.segments();
  }

  /// Hash of where every block lies: equal after two steps means that all further ones are equal.
  [[nodiscard]] std::uint64_t fingerprint() const { return allocator_.fingerprint(); }

  /// What repeats is run until the allocator is as after an earlier run: then all between were to come again.
  bool play(std::uint32_t begin, std::uint32_t end) {
    for (const RepeatedActions& repeat : program_.repeats) {
      if (repeat.actions.begin < begin || repeat.actions.end > end) continue;
      // A round of a pipeline frees what a round before it allocated: memory does not grow with their number.
      if (!program_.stage_actions.empty()) continue;
      if (!play_once(begin, repeat.actions.begin)) return false;
      if (!play_repeated(repeat)) return false;
      begin = repeat.actions.end;
    }
    return play_once(begin, end);
  }
  bool play_repeated(const RepeatedActions& repeat) {
    struct After {
      std::int64_t runs = 0;
      AllocatorStatistics statistics;
    };
    std::unordered_map<std::uint64_t, After> seen;
    seen[fingerprint()] = {0, allocator_.statistics()};
    for (std::int64_t runs = 1; runs <= repeat.times; ++runs) {
      if (!play_once(repeat.actions.begin, repeat.actions.end)) return false;
      const auto [entry, is_new] = seen.try_emplace(fingerprint(), After{runs, allocator_.statistics()});
      if (is_new || collects_garbage()) continue;
      const std::int64_t period = runs - entry->second.runs, rounds = (repeat.times - runs) / period;
      allocator_.count_again(entry->second.statistics, rounds);
      runs += rounds * period;
    }
    return true;
  }
  /// By age, which no state but the whole history tells.
  [[nodiscard]] bool collects_garbage() const {
    return options_.settings.memory_fraction > 0 && options_.settings.garbage_collection_threshold > 0;
  }
  bool play_once(std::uint32_t begin, std::uint32_t end) {
    if (!recording_ && !sampling_ && !program_.device && events_left_ == kAllEvents) return play_held(begin, end);
    for (std::uint32_t i = begin; i < end && events_left_ != 0; ++i) {
      keep_budget_often("the run of the allocations");
      const Action& action = program_.actions[i];
      if (action.kind != Action::Kind::allocate && action.kind != Action::Kind::free) continue;
      if (program_.device && program_.storages[action.index].stream != *program_.device) continue;
      if (action.kind == Action::Kind::free) release(action, i);
      else if (!allocate(action, i)) return false;
      --events_left_;
      if (sampling_) {
        const PoolStatistics& all = allocator_.statistics().all;
        result_.samples.push_back({i, all.allocated_bytes.current, all.reserved_bytes.current, by_category_});
      }
    }
    return true;
  }

  /// As play_once() where nothing is asked but what is held.
  bool play_held(std::uint32_t begin, std::uint32_t end) {
    const Action* const actions = program_.actions.data();
    const Storage* const storages = program_.storages.data();
    const Counter& allocated = allocator_.statistics().all.allocated_bytes;
    std::uint32_t highest = Action::kNoCall;  // action of a peak whose breakdown is not written down yet
    const auto write_down = [&] {
      if (highest == Action::kNoCall) return;
      result_.breakdown = by_category_;
      result_.peak = moment(actions[highest], highest);
      highest = Action::kNoCall;
    };
    for (std::uint32_t i = begin; i < end; ++i) {
      keep_budget_often("the run of the allocations");
      const Action& action = actions[i];
      if (action.kind > Action::Kind::free) continue;
      const Storage& storage = storages[action.index];
      std::int64_t& held = by_category_[static_cast<std::size_t>(storage.category)];
      BlockId& block = blocks_[action.index];
      if (action.kind == Action::Kind::free) {
        if (block == kNoBlock) continue;  // a step run again may free what only its first run had
        write_down();
        held -= allocator_.bytes_of(block);
        allocator_.free(block);
        block = kNoBlock;
        continue;
      }
      block = allocator_.allocate(storage.bytes, storage.stream);
      if (block == kNoBlock) {
        write_down();
        fail(action, i);
        return false;
      }
      held += allocator_.bytes_of(block);
      if (allocated.current > peak_) {
        peak_ = allocated.current;
        highest = i;
      }
    }
    write_down();
    return true;
  }

  void fail(const Action& action, std::uint32_t index) {
    result_.fits = false;
    result_.failure = MemoryFailure{moment(action, index), allocator_.last_failure(),
                                    program_.storages[action.index].category, by_category_};
  }

  bool allocate(const Action& action, std::uint32_t index) {
    const Storage& storage = program_.storages[action.index];
    const BlockId block = allocator_.allocate(storage.bytes, storage.stream);
    if (recording_) record_segments(index);
    if (block == kNoBlock) {
      fail(action, index);
      return false;
    }
    if (recording_) record(HistoryEvent::Action::alloc, block, storage.bytes, index);
    blocks_[action.index] = block;
    by_category_[static_cast<std::size_t>(storage.category)] += allocator_.bytes_of(block);
    if (const std::int64_t now = allocator_.statistics().all.allocated_bytes.current; now > peak_) {
      peak_ = now;
      result_.breakdown = by_category_;
      result_.peak = moment(action, index);
    }
    return true;
  }

  void record(HistoryEvent::Action what, BlockId block, std::int64_t bytes, std::uint32_t action) {
    result_.history.push_back({{what, allocator_.address_of(block), bytes, 0, 0}, action, allocator_.bytes_of(block)});
  }
  void record_segments(std::uint32_t action) {
    using Kind = HistoryEvent::Action;
    constexpr Kind kNames[] = {Kind::segment_alloc, Kind::segment_free, Kind::segment_map, Kind::segment_unmap};
    const auto& events = allocator_.segment_events();
    for (; segments_seen_ < events.size(); ++segments_seen_) {
      const SegmentEvent& event = events[segments_seen_];
      const Kind kind = kNames[static_cast<std::size_t>(event.kind)];
      result_.history.push_back({{kind, event.address, event.bytes, 0, 0}, action, 0});
    }
  }

  void release(const Action& action, std::uint32_t index) {
    const BlockId block = blocks_[action.index];
    if (block == kNoBlock) return;  // a step run again may free what only its first run had
    by_category_[static_cast<std::size_t>(program_.storages[action.index].category)] -= allocator_.bytes_of(block);
    if (recording_) {
      record(HistoryEvent::Action::free_requested, block, program_.storages[action.index].bytes, index);
      record(HistoryEvent::Action::free_completed, block, program_.storages[action.index].bytes, index);
    }
    allocator_.free(block);
    blocks_[action.index] = kNoBlock;
  }

  [[nodiscard]] Moment moment(const Action& action, std::uint32_t index) const {
    Moment moment;
    moment.action = index;
    moment.call = action.call;
    moment.step = result_.steps_run;
    if (action.call != Action::kNoCall && result_.steps_run > 0) {
      moment.phase = program_.trace->calls[action.call].phase;
      moment.layer = program_.trace->calls[action.call].layer;
    }
    return moment;
  }

  const StepProgram& program_;
  const MemoryOptions& options_;
  bool sampling_ = false, recording_ = false;
  CachingAllocator allocator_;
  std::vector<BlockId> blocks_;  ///< by storage
  std::vector<std::uint32_t> alive_before_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> carried_;
  BytesByCategory by_category_{};
  std::int64_t peak_ = 0;
  std::size_t segments_seen_ = 0;
  static constexpr std::int64_t kAllEvents = std::numeric_limits<std::int64_t>::max();
  std::int64_t events_left_ = kAllEvents;  ///< allocations and frees to run
  MemoryResult result_;
};

}  // namespace

MemoryResult run_memory(const StepProgram& program, const MemoryOptions& options) {
  return Runner(program, options).run();
}

std::int64_t context_bytes(const Gpu& gpu, const Software& software) {
  const Bytes lazy = gpu.context.driver + gpu.context.libraries;
  return std::llround((software.lazy_module_loading ? lazy : lazy + gpu.context.eager_loading).value());
}

}  // namespace ridgeline
