#include "sim/memory/memory_snapshot.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/allocator/pickle.h"

namespace ridgeline {
namespace {

using Value = PickleValue;
using Items = std::vector<std::pair<PickleValue, PickleValue>>;

class SnapshotWriter {
 public:
  SnapshotWriter(const StepProgram& program, const MemoryResult& result) : program_(program), result_(result) {}

  std::string run(const AllocatorSettings& settings) {
    Value trace = events();
    Items items;
    items.emplace_back(Value::text("segments"), segments());
    items.emplace_back(Value::text("device_traces"), Value::list({std::move(trace)}));
    items.emplace_back(Value::text("allocator_settings"), settings_dict(settings));
    return write_pickle(Value::dict(std::move(items)));
  }

 private:
  /// One text a key and word: written once, and held once.
  Value key(const std::string& text) {
    auto& value = texts_[text];
    if (value.as_text() == nullptr) value = Value::text(text);
    return value;
  }
  const Value& literal(const char* name) {
    Value& value = literals_[name];
    if (value.as_text() == nullptr) value = key(name);
    return value;
  }
  void set(Items& items, const char* name, std::int64_t number) {
    items.emplace_back(literal(name), Value::integer(number));
  }
  void set(Items& items, const char* name, Value value) { items.emplace_back(literal(name), std::move(value)); }

  /// The frames of an action, shared by all its events.
  Value frames(std::uint32_t action) {
    const std::uint32_t call = program_.actions[action].call;
    // What an allocation outside the steps belongs to is set-up, whatever op comes next.
    const bool setup = !program_.steps.empty() && action < program_.steps.front().begin;
    const std::uint32_t shown = setup ? Action::kNoCall : call;
    Value& list = setup ? setup_frames_ : frames_[shown];
    if (list.as_sequence() != nullptr) return list;
    static constexpr std::array kPhases = {"set-up", "forward", "backward", "clipping", "optimizer", "step"};
    std::string where = setup ? "set-up" : "step", name = setup ? "set-up" : "step";
    if (shown != Action::kNoCall && program_.trace != nullptr) {
      const Call& c = program_.trace->calls[shown];
      where = kPhases.at(static_cast<std::size_t>(c.phase));
      if (c.layer >= 0) where += fmt::format(", block {}", c.layer);
      name = name_of(program_.trace->ops[c.op]);
    }
    Items items;
    set(items, "filename", key(where));
    set(items, "name", key(name));
    set(items, "line", shown != Action::kNoCall ? static_cast<std::int64_t>(shown) : 0);
    list = Value::list({Value::dict(std::move(items))});
    return list;
  }

  static const char* word_of(HistoryEvent::Action action) {
    switch (action) {
      case HistoryEvent::Action::alloc: return "alloc";
      case HistoryEvent::Action::free_requested: return "free_requested";
      case HistoryEvent::Action::free_completed: return "free_completed";
      case HistoryEvent::Action::segment_alloc: return "segment_alloc";
      case HistoryEvent::Action::segment_free: return "segment_free";
      case HistoryEvent::Action::segment_map: return "segment_map";
      case HistoryEvent::Action::segment_unmap: return "segment_unmap";
      case HistoryEvent::Action::other: break;
    }
    return "snapshot";
  }

  Value event(const char* action, const char* address_key, std::int64_t address, std::int64_t bytes,
              std::uint32_t of_action) {
    Items items;
    items.reserve(6);
    set(items, "action", literal(action));
    set(items, address_key, address);
    set(items, "size", bytes);
    set(items, "stream", 0);
    set(items, "frames", frames(of_action));
    set(items, "time_us", time_++);
    return Value::dict(std::move(items));
  }
  Value events() {
    std::vector<Value> list;
    for (const MemoryEvent& e : result_.history) {
      list.push_back(
          event(word_of(e.event.action), "addr", static_cast<std::int64_t>(e.event.address), e.event.bytes, e.action));
      if (e.event.action == HistoryEvent::Action::alloc) made_by_[e.event.address] = e.action;
    }
    if (result_.failure) {
      const MemoryFailure& failure = *result_.failure;
      list.push_back(
          event("oom", "device_free", failure.details.device_free, failure.details.requested, failure.moment.action));
    }
    return Value::list(std::move(list));
  }

  Value block(const BlockView& view) {
    Items items;
    set(items, "address", static_cast<std::int64_t>(view.address));
    set(items, "size", view.bytes);
    const bool used = view.state == BlockView::State::allocated || view.state == BlockView::State::pending_free;
    set(items, "requested_size", used ? view.requested : 0);
    set(items, "state",
        key(!used                                       ? "inactive"
            : view.state == BlockView::State::allocated ? "active_allocated"
                                                        : "active_pending_free"));
    const auto maker = made_by_.find(view.address);
    set(items, "frames", used && maker != made_by_.end() ? frames(maker->second) : Value::list());
    return Value::dict(std::move(items));
  }
  /// Blocks that lie one behind the other and have memory: a whole segment, or a mapped stretch of a growing one.
  Value segment(const SegmentView& view, std::size_t first, std::size_t last) {
    std::int64_t total = 0, allocated = 0, active = 0, requested = 0;
    std::vector<Value> blocks;
    for (std::size_t i = first; i < last; ++i) {
      const BlockView& b = view.blocks[i];
      total += b.bytes;
      if (b.state == BlockView::State::allocated) allocated += b.bytes;
      if (b.state != BlockView::State::free) active += b.bytes, requested += b.requested;
      blocks.push_back(block(b));
    }
    Items items;
    set(items, "device", 0);
    set(items, "address", static_cast<std::int64_t>(view.blocks[first].address));
    set(items, "total_size", total);
    set(items, "allocated_size", allocated);
    set(items, "active_size", active);
    set(items, "requested_size", requested);
    set(items, "stream", view.stream);
    set(items, "segment_type", key(view.pool == PoolKind::small ? "small" : "large"));
    set(items, "segment_pool_id", Value::tuple({Value::integer(0), Value::integer(0)}));
    set(items, "is_expandable", Value::boolean(view.expandable));
    set(items, "frames", Value::list());
    set(items, "blocks", Value::list(std::move(blocks)));
    return Value::dict(std::move(items));
  }
  Value segments() {
    std::vector<Value> list;
    for (const SegmentView& view : result_.segments) {
      std::size_t first = 0;
      for (std::size_t i = 0; i <= view.blocks.size(); ++i) {
        if (i < view.blocks.size() && view.blocks[i].state != BlockView::State::unmapped) continue;
        if (i > first) list.push_back(segment(view, first, i));
        first = i + 1;
      }
    }
    return Value::list(std::move(list));
  }

  Value settings_dict(const AllocatorSettings& settings) {
    Items divisions;
    for (std::size_t i = 0; i < settings.roundup_power2_divisions.size(); ++i) {
      divisions.emplace_back(Value::text(fmt::format("{}", std::int64_t{1} << i)),
                             Value::integer(settings.roundup_power2_divisions[i]));
    }
    Items items;
    set(items, "max_split_size",
        settings.max_split_size == AllocatorSettings::kUnlimited ? -1 : settings.max_split_size);
    set(items, "garbage_collection_threshold", Value{settings.garbage_collection_threshold});
    set(items, "expandable_segments", Value::boolean(settings.expandable_segments));
    set(items, "roundup_power2_divisions", Value::dict(std::move(divisions)));
    return Value::dict(std::move(items));
  }

  const StepProgram& program_;
  const MemoryResult& result_;
  std::int64_t time_ = 0;
  std::unordered_map<std::string, Value> texts_;
  std::unordered_map<const char*, Value> literals_;  ///< the same by where a key of this file stands
  std::unordered_map<std::uint32_t, Value> frames_;  ///< by call
  Value setup_frames_;
  std::unordered_map<Address, std::uint32_t> made_by_;  ///< action of the last allocation at an address
};

}  // namespace

std::string memory_snapshot(const StepProgram& program, const MemoryResult& result, const AllocatorSettings& settings) {
  return SnapshotWriter(program, result).run(settings);
}

}  // namespace ridgeline
