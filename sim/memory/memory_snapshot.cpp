#include "sim/memory/memory_snapshot.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/allocator/pickle_stream.h"

namespace ridgeline {
namespace {

constexpr std::size_t kBytesAnEvent = 72;  // seldom more

class SnapshotWriter {
 public:
  SnapshotWriter(const StepProgram& program, const MemoryResult& result)
      : program_(program),
        result_(result),
        out_(kBytesAnEvent * result.history.size()),
        frames_(program.trace != nullptr ? program.trace->calls.size() : 0, kNone),
        op_names_(program.trace != nullptr ? program.trace->ops.size() : 0) {}

  std::string run(const AllocatorSettings& settings) {
    for (const MemoryEvent& e : result_.history)
      if (e.event.action == HistoryEvent::Action::alloc) made_by_[e.event.address] = e.action;
    begin_dict();
    out_.text("segments");
    segments();
    out_.text("device_traces");
    out_.open_list(), out_.mark();
    events();
    out_.close_list();
    out_.text("allocator_settings");
    settings_dict(settings);
    out_.close_dict();
    return std::move(out_).finish();
  }

 private:
  using Word = PickleStream::Word;
  static constexpr PickleStream::Place kNone = PickleStream::kNone;

  void begin_dict() { out_.open_dict(), out_.mark(); }
  void add(Word& key, std::int64_t number) { out_.word(key), out_.integer(number); }
  void add(const char* key, std::int64_t number) { out_.text(key), out_.integer(number); }
  void add(const char* key, bool truth) { out_.text(key), out_.boolean(truth); }

  /// The frames of an action, shared by all its events.
  void frames(std::uint32_t action) {
    const std::uint32_t call = program_.actions[action].call;
    // What an allocation outside the steps belongs to is set-up, whatever op comes next.
    const bool setup = !program_.steps.empty() && action < program_.steps.front().begin;
    const std::uint32_t shown = setup ? Action::kNoCall : call;
    PickleStream::Place& place = setup ? setup_frames_ : shown < frames_.size() ? frames_[shown] : step_frames_;
    if (place != kNone) return out_.recall(place);
    static constexpr std::array kPhases = {"set-up", "forward", "backward", "clipping", "optimizer", "step"};
    std::string where = setup ? "set-up" : "step", name = setup ? "set-up" : "step";
    if (shown < frames_.size()) {
      const Call& c = program_.trace->calls[shown];
      where = kPhases.at(static_cast<std::size_t>(c.phase));
      if (c.layer >= 0) where += fmt::format(", block {}", c.layer);
      std::string& known = op_names_[c.op];
      if (known.empty()) known = name_of(program_.trace->ops[c.op]);
      name = known;
    }
    out_.open_list();
    place = out_.remember();
    out_.mark();
    begin_dict();
    out_.word(filename_), out_.text(where);
    out_.word(name_), out_.text(name);
    add(line_, shown != Action::kNoCall ? static_cast<std::int64_t>(shown) : 0);
    out_.close_dict();
    out_.close_list();
  }

  Word& word_of(HistoryEvent::Action action) {
    switch (action) {
      case HistoryEvent::Action::alloc: return alloc_;
      case HistoryEvent::Action::free_requested: return free_requested_;
      case HistoryEvent::Action::free_completed: return free_completed_;
      case HistoryEvent::Action::segment_alloc: return segment_alloc_;
      case HistoryEvent::Action::segment_free: return segment_free_;
      case HistoryEvent::Action::segment_map: return segment_map_;
      case HistoryEvent::Action::segment_unmap: return segment_unmap_;
      case HistoryEvent::Action::other: break;
    }
    return snapshot_;
  }

  void event(Word& action, Word& address_key, std::int64_t address, std::int64_t bytes, std::uint32_t of_action) {
    begin_dict();
    out_.word(action_), out_.word(action);
    add(address_key, address);
    add(size_, bytes);
    add(stream_, 0);
    out_.word(frames_key_), frames(of_action);
    add(time_us_, time_++);
    out_.close_dict();
  }
  void events() {
    out_.open_list();
    if (result_.history.empty() && !result_.failure) return;
    out_.mark();
    for (const MemoryEvent& e : result_.history)
      event(word_of(e.event.action), addr_, static_cast<std::int64_t>(e.event.address), e.event.bytes, e.action);
    if (result_.failure) {
      const MemoryFailure& failure = *result_.failure;
      event(oom_, device_free_, failure.details.device_free, failure.details.requested, failure.moment.action);
    }
    out_.close_list();
  }

  void block(const BlockView& view) {
    const bool used = view.state == BlockView::State::allocated || view.state == BlockView::State::pending_free;
    begin_dict();
    add("address", static_cast<std::int64_t>(view.address));
    add(size_, view.bytes);
    add("requested_size", used ? view.requested : 0);
    out_.text("state");
    out_.text(!used                                       ? "inactive"
              : view.state == BlockView::State::allocated ? "active_allocated"
                                                          : "active_pending_free");
    out_.word(frames_key_);
    if (const auto maker = made_by_.find(view.address); used && maker != made_by_.end()) frames(maker->second);
    else out_.open_list();
    out_.close_dict();
  }
  /// Blocks that lie one behind the other and have memory: a whole segment, or a mapped stretch of a growing one.
  void segment(const SegmentView& view, std::span<const BlockView> blocks) {
    std::int64_t total = 0, allocated = 0, active = 0, requested = 0;
    for (const BlockView& b : blocks) {
      total += b.bytes;
      if (b.state == BlockView::State::allocated) allocated += b.bytes;
      if (b.state != BlockView::State::free) active += b.bytes, requested += b.requested;
    }
    begin_dict();
    add("device", std::int64_t{0});
    add("address", static_cast<std::int64_t>(blocks.front().address));
    add("total_size", total);
    add("allocated_size", allocated);
    add("active_size", active);
    add("requested_size", requested);
    add(stream_, view.stream);
    out_.text("segment_type"), out_.text(view.pool == PoolKind::small ? "small" : "large");
    out_.text("segment_pool_id");
    out_.mark(), out_.integer(0), out_.integer(0), out_.close_tuple();
    add("is_expandable", view.expandable);
    out_.word(frames_key_), out_.open_list();
    out_.text("blocks");
    out_.open_list(), out_.mark();
    for (const BlockView& b : blocks) block(b);
    out_.close_list();
    out_.close_dict();
  }
  void segments() {
    out_.open_list();
    bool any = false;
    for (const SegmentView& view : result_.segments) {
      const std::span<const BlockView> blocks(view.blocks);
      std::size_t first = 0;
      for (std::size_t i = 0; i <= blocks.size(); ++i) {
        if (i < blocks.size() && blocks[i].state != BlockView::State::unmapped) continue;
        if (i > first) {
          if (!std::exchange(any, true)) out_.mark();
          segment(view, blocks.subspan(first, i - first));
        }
        first = i + 1;
      }
    }
    if (any) out_.close_list();
  }

  void settings_dict(const AllocatorSettings& settings) {
    begin_dict();
    add("max_split_size", settings.max_split_size == AllocatorSettings::kUnlimited ? -1 : settings.max_split_size);
    out_.text("garbage_collection_threshold"), out_.real(settings.garbage_collection_threshold);
    add("expandable_segments", settings.expandable_segments);
    out_.text("roundup_power2_divisions");
    out_.open_dict();
    const auto& divisions = settings.roundup_power2_divisions;
    if (!divisions.empty()) {
      out_.mark();
      for (std::size_t i = 0; i < divisions.size(); ++i) {
        out_.text(fmt::format("{}", std::int64_t{1} << i));
        out_.integer(divisions[i]);
      }
      out_.close_dict();
    }
    out_.close_dict();
  }

  const StepProgram& program_;
  const MemoryResult& result_;
  PickleStream out_;
  std::int64_t time_ = 0;
  std::vector<PickleStream::Place> frames_;  ///< by call
  std::vector<std::string> op_names_;        ///< by op
  PickleStream::Place setup_frames_ = kNone, step_frames_ = kNone;
  std::unordered_map<Address, std::uint32_t> made_by_;  ///< action of the last allocation at an address

  Word action_{"action"}, addr_{"addr"}, device_free_{"device_free"}, size_{"size"}, stream_{"stream"},
      frames_key_{"frames"}, time_us_{"time_us"}, filename_{"filename"}, name_{"name"}, line_{"line"};
  Word alloc_{"alloc"}, free_requested_{"free_requested"}, free_completed_{"free_completed"},
      segment_alloc_{"segment_alloc"}, segment_free_{"segment_free"}, segment_map_{"segment_map"},
      segment_unmap_{"segment_unmap"}, snapshot_{"snapshot"}, oom_{"oom"};
};

}  // namespace

std::string memory_snapshot(const StepProgram& program, const MemoryResult& result, const AllocatorSettings& settings) {
  return SnapshotWriter(program, result).run(settings);
}

}  // namespace ridgeline
