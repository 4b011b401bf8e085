#include "sim/workload/parallel/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/workload/parallel/looped_schedules.h"
#include "sim/workload/parallel/megatron_schedules.h"

namespace ridgeline::parallel {
namespace {

using Kind = StageAction::Kind;
using Transfers = std::vector<Transfer>;

/// The loops of GPipe and 1F1B for one rank, which has one stage.
class SingleStage {
 public:
  SingleStage(std::int32_t stages, std::int32_t stage, std::int32_t micro_batches)
      : stages_(stages), stage_(stage), micro_batches_(micro_batches) {}

  RankActions gpipe() {
    std::vector<std::int32_t> sends;
    for (std::int32_t i = 0; i < micro_batches_; ++i) {
      wait(exchange(receive_forward(i)));
      compute(Kind::forward, i);
      sends.push_back(exchange(send_forward(i)));
    }
    for (const std::int32_t batch : std::exchange(sends, {})) wait(batch);
    for (std::int32_t i = 0; i < micro_batches_; ++i) {
      wait(exchange(receive_backward(i)));
      compute(Kind::backward, i);
      sends.push_back(exchange(send_backward(i)));
    }
    for (const std::int32_t batch : sends) wait(batch);
    return finished();
  }

  RankActions one_forward_one_backward() {
    const std::int32_t warm_up = std::min(micro_batches_, stages_ - stage_);
    std::int32_t forward = 0, backward = 0, sending = kNothing;
    Transfers sends;
    for (; forward < warm_up; ++forward) {
      wait(exchange(receive_forward(forward)));
      compute(Kind::forward, forward);
      wait(std::exchange(sending, kNothing));
      sends = send_forward(forward);
      // The last one is sent with the first receive of a gradient.
      if (forward + 1 < warm_up) sending = exchange(sends);
    }
    while (true) {
      wait(exchange(both(sends, receive_backward(backward))));
      compute(Kind::backward, backward);
      sends = send_backward(backward++);
      if (forward == micro_batches_) break;
      wait(exchange(both(sends, receive_forward(forward))));
      compute(Kind::forward, forward);
      sends = send_forward(forward++);
    }
    sending = exchange(sends);
    for (; backward < micro_batches_; ++backward) {
      wait(exchange(receive_backward(backward)));
      compute(Kind::backward, backward);
      wait(sending);
      sending = exchange(send_backward(backward));
    }
    wait(sending);
    return finished();
  }

 private:
  static constexpr std::int32_t kNothing = -1;

  [[nodiscard]] Transfers send_forward(std::int32_t i) const {
    if (stage_ + 1 == stages_) return {};
    return {{true, false, stage_, i, stage_ + 1}};
  }
  [[nodiscard]] Transfers receive_forward(std::int32_t i) const {
    if (stage_ == 0) return {};
    return {{false, false, stage_ - 1, i, stage_ - 1}};
  }
  [[nodiscard]] Transfers send_backward(std::int32_t i) const {
    if (stage_ == 0) return {};
    return {{true, true, stage_, i, stage_ - 1}};
  }
  [[nodiscard]] Transfers receive_backward(std::int32_t i) const {
    if (stage_ + 1 == stages_) return {};
    return {{false, true, stage_ + 1, i, stage_ + 1}};
  }
  static Transfers both(Transfers first, const Transfers& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  void compute(Kind kind, std::int32_t i) { actions_.push_back({kind, stage_, i, 0, {}}); }
  std::int32_t exchange(Transfers transfers) {
    if (transfers.empty()) return kNothing;
    actions_.push_back({Kind::exchange, stage_, 0, batches_, std::move(transfers)});
    return batches_++;
  }
  void wait(std::int32_t batch) {
    if (batch != kNothing) actions_.push_back({Kind::wait, stage_, 0, batch, {}});
  }
  RankActions finished() {
    actions_.push_back({Kind::reduce_gradients, stage_, 0, 0, {}});
    return std::move(actions_);
  }

  std::int32_t stages_, stage_, micro_batches_, batches_ = 0;
  RankActions actions_;
};

/// Micro-batches that a looped schedule takes through all stages of a rank in one round.
std::int32_t micro_batches_a_round(const PipelineShape& shape) {
  const std::int32_t rounds = std::max(1, shape.micro_batches / shape.ranks);
  return shape.micro_batches / rounds;
}

bool loops(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::interleaved || schedule == PipelineSchedule::zb1p ||
         schedule == PipelineSchedule::interleaved_zero_bubble;
}

/// The same action, so many micro-batches and batches of transfers later.
bool same_later(const StageAction& early, const StageAction& late, std::int32_t micro_batches, std::int32_t batches) {
  StageAction moved = early;
  const bool exchanges = early.kind == Kind::exchange || early.kind == Kind::wait;
  if (early.computes()) moved.micro_batch += micro_batches;
  if (exchanges) moved.batch += batches;
  for (Transfer& transfer : moved.transfers) transfer.micro_batch += micro_batches;
  return moved == late;
}

std::int32_t batches_in(const RankActions& actions, std::size_t begin, std::size_t end) {
  std::int32_t result = 0;
  for (std::size_t i = begin; i < end; ++i) result += actions[i].kind == Kind::exchange ? 1 : 0;
  return result;
}

/// Where a round of `more` micro-batches stands that `longer` has more than `shorter`: between two like it, so that it
/// is neither the first nor the last, with which wrappers and optimizers do more.
std::optional<ShortSchedule::Rank> round_of(const RankActions& shorter, const RankActions& longer, std::int32_t more) {
  const std::size_t length = longer.size() - shorter.size();
  const std::int32_t batches = batches_in(longer, 0, longer.size()) - batches_in(shorter, 0, shorter.size());
  std::size_t alike = 0;
  while (alike < shorter.size() && shorter[alike] == longer[alike]) ++alike;
  if (alike < 3 * length) return std::nullopt;
  const ShortSchedule::Rank round{alike - 2 * length, alike - length};
  for (std::size_t i = round.begin; i < alike; ++i)
    if (!same_later(shorter[i - length], shorter[i], more, batches)) return std::nullopt;
  for (std::size_t i = round.end; i < shorter.size(); ++i)
    if (!same_later(shorter[i], longer[i + length], more, batches)) return std::nullopt;
  return round;
}

ShortSchedule whole_of(const PipelineShape& shape) {
  return {shape.micro_batches, 1, 1, std::vector<ShortSchedule::Rank>(static_cast<std::size_t>(shape.ranks))};
}

}  // namespace

std::int32_t PipelineShape::rank_of(std::int32_t stage) const {
  if (schedule == PipelineSchedule::zbv && stage >= ranks) return 2 * ranks - 1 - stage;
  return stage % ranks;
}

std::vector<std::int32_t> PipelineShape::stages_of(std::int32_t rank) const {
  std::vector<std::int32_t> result;
  for (std::int32_t stage = 0; stage < stages(); ++stage)
    if (rank_of(stage) == rank) result.push_back(stage);
  return result;
}

PipelineShape shape_of(const ParallelDescription& parallel, std::int64_t micro_batches) {
  return {parallel.schedule, static_cast<std::int32_t>(parallel.pipeline),
          static_cast<std::int32_t>(parallel.virtual_stages), static_cast<std::int32_t>(micro_batches),
          parallel.framework};
}

std::string complaint(const PipelineShape& shape) {
  const std::int32_t m = shape.micro_batches;
  if (shape.framework == Framework::megatron) {
    if (!loops(shape.schedule) || m % shape.ranks == 0) return "";
    return fmt::format("interleaved stages of {0} ranks need a multiple of {0} micro-batches; there are {1}",
                       shape.ranks, m);
  }
  if (shape.schedule == PipelineSchedule::one_forward_one_backward && m < shape.ranks)
    return fmt::format("1f1b of {} stages needs as many micro-batches at least; there are {}", shape.ranks, m);
  constexpr std::int32_t kMost = 4096;
  if (shape.schedule == PipelineSchedule::gpipe && m > kMost)
    return fmt::format("gpipe holds all micro-batches at once: {} are more than the {} that are modelled", m, kMost);
  const std::int32_t rounds = std::max(1, m / shape.ranks);
  if (loops(shape.schedule) && m % rounds != 0)
    return fmt::format("{} micro-batches cannot be taken in {} equal rounds, as {} ranks take them", m, rounds,
                       shape.ranks);
  return "";
}

bool splits_backward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb1p || schedule == PipelineSchedule::zbv ||
         schedule == PipelineSchedule::interleaved_zero_bubble;
}

namespace {

std::vector<RankActions> schedule_of(const PipelineShape& shape) {
  if (shape.framework == Framework::megatron) return make_megatron_schedule(shape);
  if (shape.schedule == PipelineSchedule::gpipe || shape.schedule == PipelineSchedule::one_forward_one_backward) {
    std::vector<RankActions> result;
    for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
      SingleStage stage(shape.ranks, rank, shape.micro_batches);
      result.push_back(shape.schedule == PipelineSchedule::gpipe ? stage.gpipe() : stage.one_forward_one_backward());
    }
    return result;
  }
  return make_looped_schedule(shape, micro_batches_a_round(shape));
}

ShortSchedule shortest_of(const PipelineShape& shape) {
  if (shape.schedule == PipelineSchedule::gpipe) return whole_of(shape);
  const std::int32_t round = loops(shape.schedule) ? micro_batches_a_round(shape) : 1;
  // All that schedules start with is over after twice as many micro-batches as there are ranks, Megatron-LM's after
  // one.
  const std::int32_t started = shape.framework == Framework::megatron ? shape.ranks : 2 * shape.ranks;
  for (std::int32_t m = shape.micro_batches % round + round; m < shape.micro_batches; m += round) {
    if (m < started + round) continue;
    PipelineShape one = shape, more = shape;
    one.micro_batches = m;
    more.micro_batches = m + round;
    if (!complaint(one).empty() || !complaint(more).empty()) continue;
    if (loops(shape.schedule) && (micro_batches_a_round(one) != round || micro_batches_a_round(more) != round))
      continue;
    const std::vector<RankActions> shorter = schedule_of(one), longer = schedule_of(more);
    ShortSchedule result{m, round, 1 + (shape.micro_batches - m) / round, {}};
    for (std::size_t rank = 0; rank < shorter.size(); ++rank)
      if (const auto found = round_of(shorter[rank], longer[rank], round)) result.ranks.push_back(*found);
    if (result.ranks.size() == shorter.size()) return result;
    if (m > 6 * shape.ranks * shape.stages_a_rank) break;
  }
  return whole_of(shape);
}

/// What was made last: the ranks of a pipeline ask for the same one after the other.
template <class Made>
class LastMade {
 public:
  template <class Make>
  const Made& get(const PipelineShape& shape, const Make& make) {
    if (!made_ || !same(shape_, shape)) {
      made_.reset();
      made_.emplace(make(shape));
      shape_ = shape;
    }
    return *made_;
  }

 private:
  static bool same(const PipelineShape& a, const PipelineShape& b) {
    return a.schedule == b.schedule && a.ranks == b.ranks && a.stages_a_rank == b.stages_a_rank &&
           a.micro_batches == b.micro_batches && a.framework == b.framework;
  }
  PipelineShape shape_;
  std::optional<Made> made_;
};

}  // namespace

std::vector<RankActions> make_schedule(const PipelineShape& shape) {
  thread_local LastMade<std::vector<RankActions>> last;
  return last.get(shape, schedule_of);
}

ShortSchedule shorten(const PipelineShape& shape) {
  thread_local LastMade<ShortSchedule> last;
  return last.get(shape, shortest_of);
}

std::int32_t most_in_flight(const RankActions& actions) {
  std::int32_t now = 0, most = 0;
  for (const StageAction& action : actions) {
    if (action.kind == Kind::forward) most = std::max(most, ++now);
    if (action.kind == Kind::backward || action.kind == Kind::backward_weight) --now;
  }
  return most;
}

std::string to_string(const StageAction& action) {
  constexpr std::array<std::string_view, 4> kLetters{"F", "B", "I", "W"};
  switch (action.kind) {
    case Kind::exchange: {
      std::string text;
      for (const Transfer& t : action.transfers)
        text += fmt::format("{}{}_{} {} of {} with rank {}", text.empty() ? "" : " + ", t.send ? "SEND" : "RECV",
                            t.gradient ? "B" : "F", t.micro_batch, t.stage, t.peer);
      return text;
    }
    case Kind::wait: return fmt::format("wait for exchange {}", action.batch);
    case Kind::reduce_gradients: return fmt::format("{}REDUCE_GRAD", action.stage);
    default:
      return fmt::format("{}{}{}", action.stage, kLetters[static_cast<std::size_t>(action.kind)], action.micro_batch);
  }
}

}  // namespace ridgeline::parallel
