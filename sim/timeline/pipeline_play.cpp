#include "sim/timeline/pipeline_play.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {

using parallel::StageAction;
using parallel::Transfer;

PipelinePlay::PipelinePlay(std::vector<PlayedRank> ranks, int queue_depth, double start_latency,
                           std::vector<double> transfer_times)
    : depth_(std::max(1, queue_depth)), latency_(start_latency), transfer_times_(std::move(transfer_times)) {
  for (PlayedRank& played : ranks) {
    Rank& rank = ranks_.emplace_back();
    rank.streams.resize(std::max<std::size_t>(1, played.streams));
    rank.events.resize(played.events);
    std::int32_t batches = 0;
    for (const StageAction& action : *played.actions)
      if (action.kind == StageAction::Kind::exchange) batches = std::max(batches, action.batch + 1);
    rank.batches.resize(static_cast<std::size_t>(batches));
    rank.played = std::move(played);
  }
}

std::vector<PipelinePlay::RankStep> PipelinePlay::step(std::size_t shown, const StageScript* fine, Spans* spans) {
  shown_ = shown;
  fine_ = fine;
  spans_ = spans;
  waiting_.clear();
  for (auto& meetings : meetings_) meetings.clear();
  for (Rank& rank : ranks_) begin(rank);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t i = 0; i < ranks_.size(); ++i) progress |= advance(i);
  }
  std::vector<RankStep> result;
  for (Rank& rank : ranks_) {
    if (!rank.ended) deadlock();
    result.push_back(rank.now);
  }
  return result;
}

void PipelinePlay::begin(Rank& rank) {
  rank.next = rank.point = 0;
  rank.ended = rank.met = false;
  rank.meetings = {};
  rank.now = RankStep{};
  rank.now.begin = rank.streams.front().done();
  rank.now.host_begin = rank.host;
  std::fill(rank.batches.begin(), rank.batches.end(), Batch{});
  rank.posted.clear();
  rank.passes.clear();
  rank.shown.assign(rank.played.script->actions.size(), false);
  Spans* spans = spans_ != nullptr && &rank == &ranks_[shown_] ? spans_ : nullptr;
  play(rank, (spans != nullptr ? fine_ : rank.played.script)->actions.front(), spans);
}

bool PipelinePlay::advance(std::size_t number) {
  Rank& rank = ranks_[number];
  if (rank.ended) return false;
  const bool detailed = spans_ != nullptr && number == shown_;
  const StageScript& script = detailed ? *fine_ : *rank.played.script;
  const std::size_t before = rank.next, began = rank.point;
  for (const auto& actions = *rank.played.actions; rank.next < actions.size(); ++rank.next) {
    keep_budget_often("the timeline of the pipeline");
    const StageAction& action = actions[rank.next];
    const std::size_t entry = rank.played.positions[rank.next] + 1;
    const std::vector<StretchPoint>& points = script.actions[entry];
    if (action.kind == StageAction::Kind::exchange) {
      for (const StretchPoint& point : points)
        if (point.kind == StretchPoint::Kind::exchange) post(number, static_cast<std::uint32_t>(rank.next), point);
      continue;
    }
    if (action.kind == StageAction::Kind::wait) {
      const Batch& batch = rank.batches[static_cast<std::size_t>(action.batch)];
      if (batch.end == kUnknown) return rank.next > before;
      Stream& stream = rank.streams.front();
      if (batch.end > stream.ready) {
        stream.ready = batch.end;
        rank.awaited = batch.duration;
      }
      continue;
    }
    const bool first = detailed && !rank.shown[entry];
    if (first) rank.shown[entry] = true;
    rank.pass_start = -1.0;
    play(rank, points, first ? spans_ : nullptr);  // meetings stand behind the last action
    if (spans_ != nullptr && action.computes() && rank.pass_start >= 0.0)
      rank.passes.push_back({static_cast<std::uint32_t>(rank.next), rank.pass_start, rank.streams.front().end});
  }
  if (!play(rank, script.actions.back(), detailed ? spans_ : nullptr)) return rank.next > before || rank.point > began;
  const Issue& tail = rank.played.script->tail;
  pass(rank, tail.wait_before, tail.wait_for, tail.host_before_wait, tail.host);
  rank.now.end = rank.streams.front().done();
  rank.now.host = rank.host;
  rank.ended = true;
  if (detailed)
    for (const Batch& batch : rank.batches) {
      const std::size_t entry = rank.played.positions[batch.action] + 1;
      if (batch.end == kUnknown || rank.shown[entry]) continue;
      rank.shown[entry] = true;
      (*spans_)[batch.launch] = {batch.ready, batch.end - batch.duration, batch.end};
    }
  return true;
}

void PipelinePlay::pass(Rank& rank, bool waits, std::int64_t wait_for, double before, double host) {
  if (waits) {
    double until = 0.0;
    if (wait_for >= 0) until = rank.events[static_cast<std::size_t>(wait_for)];
    else {
      for (const Stream& stream : rank.streams) until = std::max(until, stream.done());
      // Megatron-LM's host waits for what another rank sends, and with it the default stream.
      count_waiting(rank, rank.streams.front().ready - std::max(rank.streams.front().end, rank.host + before));
    }
    rank.host = std::max(rank.host + before, until + latency_);
  }
  rank.host += host;
}

void PipelinePlay::count_waiting(Rank& rank, double waited) {
  if (waited <= 0.0) return;
  const double moving = std::min(waited, rank.awaited);
  rank.now.transfers += moving;
  rank.now.bubble += waited - moving;
}

bool PipelinePlay::play(Rank& rank, const std::vector<StretchPoint>& points, Spans* spans) {
  for (; rank.point < points.size(); ++rank.point) {
    const StretchPoint& point = points[rank.point];
    Stream& stream = rank.streams[point.stream];
    switch (point.kind) {
      case StretchPoint::Kind::record_event: rank.events[point.index] = stream.done(); break;
      case StretchPoint::Kind::wait_event: stream.ready = std::max(stream.ready, rank.events[point.index]); break;
      case StretchPoint::Kind::kernels: play_kernels(rank, point, spans); break;
      case StretchPoint::Kind::exchange: break;  // of post()
      case StretchPoint::Kind::meeting:
        if (!meet(rank, point, spans)) return false;
    }
  }
  rank.point = 0;
  return true;
}

bool PipelinePlay::meet(Rank& rank, const StretchPoint& point, Spans* spans) {
  const std::size_t of_tables = point.group == GroupKind::embedding ? 1 : 0, number = rank.meetings[of_tables];
  std::vector<Meeting>& meetings = meetings_[of_tables];
  if (meetings.size() == number) meetings.emplace_back();
  Meeting& meeting = meetings[number];
  Stream& stream = rank.streams.front();
  if (!std::exchange(rank.met, true)) {
    pass(rank, point.host_waits, point.wait_for, point.before_wait, point.host);
    meeting.start = std::max({meeting.start, rank.host + latency_, stream.end + point.gap, stream.ready});
    meeting.duration = std::max(meeting.duration, point.busy);
    ++meeting.came;
  }
  if (meeting.came < (of_tables != 0 ? 2 : ranks_.size())) return false;
  const double own = std::max({rank.host + latency_, stream.end + point.gap, stream.ready});
  rank.now.bubble += meeting.start - own;
  stream.end = meeting.start + meeting.duration;
  if (spans != nullptr) (*spans)[point.index] = {rank.host, meeting.start, stream.end};
  ++rank.meetings[of_tables];
  rank.met = false;
  return true;
}

void PipelinePlay::play_kernels(Rank& rank, const StretchPoint& point, Spans* spans) {
  pass(rank, point.host_waits, point.wait_for, point.before_wait, 0.0);
  Stream& stream = rank.streams[point.stream];
  const double host = rank.host, free = std::max(stream.end + point.gap, stream.ready);
  rank.host += point.host;
  const bool default_stream = point.stream == 0;
  const double first = std::max(host + point.first + latency_, free);
  const double end = std::max(free + point.busy, host + point.late);
  if (default_stream) {
    rank.now.starved += std::max(0.0, end - (free + point.busy));
    const double waited = stream.ready - std::max(stream.end + point.gap, host + point.first + latency_);
    count_waiting(rank, waited);
    if (rank.pass_start < 0.0) rank.pass_start = first;
    rank.launched += point.launches;
    rank.stretches.push_back({rank.launched - point.launches, rank.launched, first, end});
    wait_for_room(rank);
  }
  if (spans != nullptr) (*spans)[point.index] = {rank.host, end - point.busy, end};
  stream.end = end;
}

/// The host goes on once the launch that stands as many before has started.
void PipelinePlay::wait_for_room(Rank& rank) {
  const std::int64_t oldest = rank.launched - depth_;
  while (!rank.stretches.empty() && rank.stretches.front().end <= oldest) rank.stretches.pop_front();
  if (rank.stretches.empty() || rank.stretches.front().begin > oldest) return;
  const Stretch& stretch = rank.stretches.front();
  const double share = static_cast<double>(oldest - stretch.begin) / static_cast<double>(stretch.end - stretch.begin);
  rank.host = std::max(rank.host, stretch.start + share * (stretch.finish - stretch.start));
}

void PipelinePlay::post(std::size_t number, std::uint32_t action, const StretchPoint& point) {
  Rank& rank = ranks_[number];
  pass(rank, point.host_waits, point.wait_for, point.before_wait, point.host);
  const StageAction& exchange = (*rank.played.actions)[action];
  Batch& batch = rank.batches[static_cast<std::size_t>(exchange.batch)];
  batch.ready = std::max(rank.streams.front().done(), rank.host + latency_);
  batch.duration = point.busy;
  batch.action = action;
  batch.launch = point.index;
  batch.missing = static_cast<std::uint32_t>(exchange.transfers.size());
  rank.posted.push_back(static_cast<std::uint32_t>(exchange.batch));
  if (rank.posted.size() == 1) start_next(number);
}

/// The oldest batch that has not ended starts; transfers whose other side has started run.
void PipelinePlay::start_next(std::size_t number) {
  Rank& rank = ranks_[number];
  if (rank.posted.empty()) return;
  const std::uint32_t index = rank.posted.front();
  Batch& batch = rank.batches[index];
  batch.start = std::max(batch.ready, rank.exchanged);
  for (const Transfer& transfer : (*rank.played.actions)[batch.action].transfers) {
    const auto [entry, alone] = waiting_.try_emplace(transfer.key(), Side{number, index});
    if (alone) continue;
    const Side other = entry->second;
    waiting_.erase(entry);
    Batch& theirs = ranks_[other.rank].batches[other.batch];
    double duration = std::max(batch.duration, theirs.duration);
    if (!transfer_times_.empty()) {
      const std::size_t from = transfer.send ? number : other.rank, to = transfer.send ? other.rank : number;
      duration = transfer_times_[from * ranks_.size() + to];
    }
    const double end = std::max(batch.start, theirs.start) + duration;
    for (Batch* one : {&batch, &theirs}) {
      if (!transfer_times_.empty() && end > one->ended) one->duration = duration;  // that of the last to end
      one->ended = std::max(one->ended, end);
    }
    --batch.missing;
    if (--theirs.missing == 0) finish(other.rank, other.batch);
  }
  if (batch.missing == 0) finish(number, index);
}

void PipelinePlay::finish(std::size_t number, std::uint32_t index) {
  Rank& rank = ranks_[number];
  Batch& batch = rank.batches[index];
  if (batch.end != kUnknown) return;
  batch.end = rank.exchanged = batch.ended;
  rank.posted.pop_front();
  start_next(number);
}

void PipelinePlay::deadlock() const {
  std::string text;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    if (rank.ended) continue;
    const std::string first =
        rank.posted.empty() ? "nothing" : to_string((*rank.played.actions)[rank.batches[rank.posted.front()].action]);
    const parallel::RankActions& actions = *rank.played.actions;
    text += fmt::format("{}rank {} is at {} behind {}", text.empty() ? "" : "; ", i,
                        rank.next < actions.size() ? to_string(actions[rank.next]) : "a meeting", first);
  }
  throw UserError(fmt::format("the ranks of this pipeline wait for each other: {}", text));
}

}  // namespace ridgeline
