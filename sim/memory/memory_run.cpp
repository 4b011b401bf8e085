#include "sim/memory/memory_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "sim/memory/held_memory.h"
#include "sim/memory/play_tokens.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

class Runner {
 public:
  Runner(const StepProgram& program, const MemoryOptions& options)
      : program_(program),
        options_(options),
        recording_(options.record_history),
        tokens_(program.token_kernels != nullptr ? std::optional<TokenMemory>(program) : std::nullopt),
        held_(program, options, tokens_ ? tokens_->storages().size() : program.storages.size()) {
    result_.context = options.context;
    reserve();
  }
  MemoryResult run() {
    if (run_all() && options_.record_samples) sample_one_more_step();
    const PoolStatistics& all = allocator_.statistics().all;
    // Without a second step the first one has to do.
    result_.peak_reserved = all.reserved_bytes.peak;
    result_.peak_allocated = std::max(allocated_at_begin_, peak_);
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
      if (i + 1 == steps.size()) {
        remember_alive_before_last_step();
        before_last_step_ = fingerprint();
      }
      result_.steps_run = static_cast<int>(i) + 1;
      if (!play(steps[i].begin, steps[i].end)) return false;
    }
    if (steps.size() == 1) return true;
    match_carried_storages();
    std::uint64_t state = fingerprint();
    while (result_.steps_run < options_.most_steps) {
      ++result_.steps_run;
      if (state == before_last_step_ && only_held()) break;  // it leaves the state as it finds it
      if (!repeat_last_step()) return false;
      const std::uint64_t next = fingerprint();
      if (next == state) break;
      state = next;
    }
    return true;
  }

  void start_steady_state() {
    const PoolStatistics& all = allocator_.statistics().all;
    result_.first_step_peak_allocated = peak_;
    result_.first_step_peak_reserved = all.reserved_bytes.peak;
    allocator_.reset_peaks();
    allocated_at_begin_ = all.allocated_bytes.current;
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
    for (std::size_t step = 0; step < program_.tokens.size(); ++step) {
      const StepRange body = program_.tokens[step].body;
      if (body.begin < begin || body.end > end) continue;
      if (!play_once(begin, body.end)) return false;
      if (!play_tokens_of(step)) return false;
      begin = body.end;
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
    return play({std::span<const Action>(program_.actions).subspan(begin, end - begin), program_.storages, begin});
  }
  bool play(const HeldMemory::Part& part) {
    if (only_held()) return held_.play(part);
    for (std::size_t k = 0; k < part.actions.size() && events_left_ != 0; ++k) {
      keep_budget_often("the run of the allocations");
      const Action& action = part.actions[k];
      const std::uint32_t i = part.number_of(k);
      if (action.kind != Action::Kind::allocate && action.kind != Action::Kind::free) continue;
      const Storage& storage = part.storages[action.index];
      if (program_.device && storage.stream != *program_.device) continue;
      if (action.kind == Action::Kind::free) release(action, storage, i);
      else if (storage.bytes > 0 && !allocate(action, storage, i)) return false;
      --events_left_;
      if (sampling_) {
        const PoolStatistics& all = allocator_.statistics().all;
        result_.samples.push_back({i, all.allocated_bytes.current, all.reserved_bytes.current, by_category_});
      }
    }
    return true;
  }

  [[nodiscard]] bool only_held() const {
    return !recording_ && !sampling_ && !program_.device && events_left_ == kAllEvents;
  }

  /// Requests for small blocks and for large ones know nothing of each other while the device has room.
  [[nodiscard]] bool pools_are_apart() const {
    const AllocatorSettings& settings = options_.settings;
    return settings.memory_fraction <= 0 && settings.garbage_collection_threshold <= 0 &&
           std::all_of(settings.roundup_power2_divisions.begin(), settings.roundup_power2_divisions.end(),
                       [](int divisions) { return divisions <= 1; });
  }
  bool play_tokens_of(std::size_t step) {
    if (only_held() && pools_are_apart()) return play_tokens(held_, *tokens_, step);
    for (std::int64_t token = 0; token < tokens_->tokens(); ++token) {
      tokens_->begin(token, step);
      for (const auto& [before, own] : tokens_->births(step)) blocks_[before] = std::exchange(blocks_[own], kNoBlock);
      if (!play({tokens_->actions(step), tokens_->storages(), program_.tokens[step].body.begin, true})) return false;
    }
    return true;
  }

  bool allocate(const Action& action, const Storage& storage, std::uint32_t index) {
    const BlockId block = allocator_.allocate(storage.bytes, storage.stream);
    if (recording_) record_segments(index);
    if (block == kNoBlock) {
      held_.fail(action, storage, index);
      return false;
    }
    if (recording_) record(HistoryEvent::Action::alloc, block, storage.bytes, index);
    blocks_[action.index] = block;
    by_category_[static_cast<std::size_t>(storage.category)] += allocator_.bytes_of(block);
    if (const std::int64_t now = allocator_.statistics().all.allocated_bytes.current; now > peak_) {
      peak_ = now;
      result_.breakdown = by_category_;
      result_.peak = held_.moment(action, index);
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

  void release(const Action& action, const Storage& storage, std::uint32_t index) {
    const BlockId block = blocks_[action.index];
    if (block == kNoBlock) return;  // a step run again may free what only its first run had
    by_category_[static_cast<std::size_t>(storage.category)] -= allocator_.bytes_of(block);
    if (recording_) {
      record(HistoryEvent::Action::free_requested, block, storage.bytes, index);
      record(HistoryEvent::Action::free_completed, block, storage.bytes, index);
    }
    allocator_.free(block);
    blocks_[action.index] = kNoBlock;
  }

  const StepProgram& program_;
  const MemoryOptions& options_;
  std::uint64_t before_last_step_ = 0;   ///< fingerprint()
  std::int64_t allocated_at_begin_ = 0;  ///< of the steady state
  bool sampling_ = false, recording_ = false;
  std::optional<TokenMemory> tokens_;
  HeldMemory held_;
  CachingAllocator& allocator_ = held_.allocator;
  std::vector<BlockId>& blocks_ = held_.blocks;
  BytesByCategory& by_category_ = held_.by_category;
  std::int64_t& peak_ = held_.peak;
  MemoryResult& result_ = held_.result;
  std::vector<std::uint32_t> alive_before_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> carried_;
  std::size_t segments_seen_ = 0;
  static constexpr std::int64_t kAllEvents = std::numeric_limits<std::int64_t>::max();
  std::int64_t events_left_ = kAllEvents;  ///< allocations and frees to run
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
