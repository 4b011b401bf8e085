// The recurrence over all ranks of a pipeline at once: each plays its schedule, and exchanges tie them together.
//
//   a batch of transfers starts on a rank when the batch before it has ended there and what the rank's default stream
//   was given before is done; a transfer runs once both its sides have started; a batch ends with its last transfer
//   a meeting starts when the default streams of all its ranks have come to it
//
// A rank goes on until it waits for a batch or a meeting whose end is not known yet. Where every rank does, the
// schedule is a deadlock: UserError with what two of them wait for. Kernels of an action are played from its
// StageScript, so that a step of many micro-batches costs some additions for each.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/timeline/pipeline_script.h"
#include "sim/timeline/recurrence.h"
#include "sim/workload/parallel/schedule.h"

namespace ridgeline {

/// One rank's part of the play. What it points to must outlive it.
struct PlayedRank {
  const StageScript* script = nullptr;
  const parallel::RankActions* actions = nullptr;  ///< of the whole step
  /// For each action of the whole step its entry of `script->actions`, less one.
  std::vector<std::uint32_t> positions;
  std::size_t streams = 1, events = 0;
};

class PipelinePlay {
 public:
  /// `transfer_times`: seconds from rank to rank, [from * ranks + to]; empty: those of the kernels.
  PipelinePlay(std::vector<PlayedRank> ranks, int queue_depth, double start_latency,
               std::vector<double> transfer_times = {});

  /// Of one rank and step.
  struct RankStep {
    double begin = 0.0, end = 0.0;        ///< when the default stream was done with the step before, and this one
    double host_begin = 0.0, host = 0.0;  ///< likewise of the host
    double starved = 0.0;                 ///< the default stream waits for the host
    double transfers = 0.0;               ///< it waits while what it waits for is on its way
    double bubble = 0.0;                  ///< it waits for another rank to begin
  };
  /// One pass of a stage on a rank's default stream.
  struct Pass {
    std::uint32_t action = 0;  ///< of the rank's whole step
    double start = 0.0, end = 0.0;
  };
  /// Of a rank's last step that was played with spans, in order.
  [[nodiscard]] const std::vector<Pass>& passes(std::size_t rank) const { return ranks_[rank].passes; }

  /// When kernels ran; one entry a launch of the script's steady step.
  using Spans = std::vector<Recurrence::Span>;

  /// One step of all ranks. With `spans`, the kernels of rank `shown` in the first run of each action of its script.
  std::vector<RankStep> step(std::size_t shown = 0, const StageScript* fine = nullptr, Spans* spans = nullptr);

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();
  struct Stream {
    double end = 0.0, ready = 0.0;
    [[nodiscard]] double done() const { return end > ready ? end : ready; }
  };
  struct Batch {
    double ready = 0.0, start = kUnknown, end = kUnknown, duration = 0.0, ended = 0.0;
    std::uint32_t action = 0, launch = 0, missing = 0;
  };
  struct Stretch {
    std::int64_t begin = 0, end = 0;
    double start = 0.0, finish = 0.0;
  };
  struct Rank {
    PlayedRank played;
    double host = 0.0;
    std::vector<Stream> streams;
    std::vector<double> events;
    std::deque<Stretch> stretches;  ///< of the default stream that the launch queue may still hold
    std::int64_t launched = 0;
    std::size_t next = 0;   ///< action
    std::size_t point = 0;  ///< of it
    bool ended = false;
    bool met = false;                         ///< waits in a meeting whose other ranks have not come
    std::array<std::uint32_t, 2> meetings{};  ///< that are over, of the whole model and of the tables
    std::vector<Batch> batches;
    std::deque<std::uint32_t> posted;  ///< batches that have not ended, in order
    double exchanged = 0.0;            ///< end of the last batch that ended
    double awaited = 0.0;              ///< duration of the transfer that the default stream waits for
    RankStep now;
    std::vector<bool> shown;
    std::vector<Pass> passes;
    double pass_start = 0.0;  ///< of the first kernel since the pass began; negative: there was none
  };
  struct Side {
    std::size_t rank = 0;
    std::uint32_t batch = 0;
  };

  void begin(Rank& rank);
  /// Until the rank waits or the step is over; whether anything happened.
  bool advance(std::size_t number);
  /// From `rank.point` on; false where a meeting has to wait.
  bool play(Rank& rank, const std::vector<StretchPoint>& points, Spans* spans);
  bool meet(Rank& rank, const StretchPoint& point, Spans* spans);
  void play_kernels(Rank& rank, const StretchPoint& point, Spans* spans);
  /// Of the default stream, for what another rank sends: as long as the transfer itself takes for that, else for the
  /// rank.
  static void count_waiting(Rank& rank, double waited);
  void pass(Rank& rank, bool waits, std::int64_t wait_for, double before, double host);
  void wait_for_room(Rank& rank);
  void post(std::size_t number, std::uint32_t action, const StretchPoint& point);
  void start_next(std::size_t number);
  void finish(std::size_t number, std::uint32_t batch);
  [[noreturn]] void deadlock() const;

  int depth_;
  double latency_;
  std::vector<double> transfer_times_;
  std::vector<Rank> ranks_;
  std::unordered_map<std::uint64_t, Side> waiting_;  ///< sides of transfers that have started alone
  struct Meeting {
    std::size_t came = 0;
    double start = 0.0, duration = 0.0;
  };
  std::array<std::vector<Meeting>, 2> meetings_;  ///< of this step, by group and number
  std::size_t shown_ = 0;
  const StageScript* fine_ = nullptr;
  Spans* spans_ = nullptr;
};

}  // namespace ridgeline
