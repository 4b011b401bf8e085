#include "sim/workload/parallel/looped_schedules.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace ridgeline::parallel {
namespace {

using Kind = StageAction::Kind;

StageAction computation(std::int32_t stage, Kind kind, std::int32_t micro_batch) {
  return {kind, stage, micro_batch, 0, {}};
}

/// 1F1B over several stages a rank, and its variant that puts gradients of weights off.
class Interleaved {
 public:
  Interleaved(const PipelineShape& shape, std::int32_t round, std::int32_t rank, bool zero_bubble)
      : shape_(shape),
        round_(round),
        rank_(rank),
        zero_bubble_(zero_bubble),
        all_(shape.stages_a_rank * shape.micro_batches),
        warm_up_(std::min((shape.stages_a_rank - 1) * round + (zero_bubble ? 1 : 2) * (shape.ranks - 1 - rank), all_)),
        forward_(static_cast<std::size_t>(shape.stages())),
        backward_(forward_.size()),
        weight_(forward_.size()) {}

  RankActions actions() {
    for (std::int32_t i = 0; i < warm_up_; ++i) add(Kind::forward, forward_stage(i), forward_);
    for (std::int32_t i = warm_up_; i < all_; ++i) {
      add(Kind::forward, forward_stage(i), forward_);
      step_back(i);
    }
    for (std::int32_t i = all_; i < all_ + warm_up_; ++i) step_back(i);
    while (zero_bubble_ && weights_ < all_) step_weight();
    return std::move(actions_);
  }

 private:
  [[nodiscard]] std::int32_t forward_stage(std::int32_t i) const {
    return i / round_ % shape_.stages_a_rank * shape_.ranks + rank_;
  }
  [[nodiscard]] std::int32_t backward_stage(std::int32_t i) const {
    return (shape_.stages_a_rank - 1 - (i - warm_up_) / round_ % shape_.stages_a_rank) * shape_.ranks + rank_;
  }
  void add(Kind kind, std::int32_t stage, std::vector<std::int32_t>& next) {
    actions_.push_back(computation(stage, kind, next[static_cast<std::size_t>(stage)]++));
  }
  void step_back(std::int32_t i) {
    add(zero_bubble_ ? Kind::backward_input : Kind::backward, backward_stage(i), backward_);
    if (zero_bubble_ && i - warm_up_ >= rank_) step_weight();
  }
  void step_weight() { add(Kind::backward_weight, backward_stage(warm_up_ + weights_++), weight_); }

  const PipelineShape& shape_;
  std::int32_t round_, rank_;
  bool zero_bubble_;
  std::int32_t all_, warm_up_, weights_ = 0;
  std::vector<std::int32_t> forward_, backward_, weight_;  ///< next micro-batch of each stage
  RankActions actions_;
};

/// Two stages a rank, of which the last rank's follow each other. Drawn up for at least 2 ranks - 1 micro-batches;
/// those that there are not are left out.
class ZeroBubbleV {
 public:
  ZeroBubbleV(const PipelineShape& shape, std::int32_t rank)
      : all_(shape.micro_batches), ranks_(shape.ranks), rank_(rank), down_{rank}, up_{2 * shape.ranks - 1 - rank} {}

  RankActions actions() {
    const std::int32_t n = std::max(2 * ranks_ - 1, all_);
    for (std::int32_t i = 0; i < 2 * (ranks_ - rank_) - 1; ++i) forward(down_);
    for (std::int32_t i = 0; i < rank_; ++i) forward(up_), forward(down_);
    for (std::int32_t i = 0; i < ranks_ - rank_; ++i) forward(up_), input(up_), weight(up_);
    while (up_.forward < down_.forward || down_.forward < n) {
      if (down_.forward < n) forward(down_);
      input(down_), weight(down_);
      forward(up_), input(up_), weight(up_);
    }
    for (std::int32_t i = 0; i < rank_; ++i) input(down_), input(up_);
    for (std::int32_t i = 0; i < ranks_ - rank_; ++i) input(down_), weight(down_);
    while (up_.weight < up_.input) weight(up_);
    while (down_.weight < down_.input) weight(down_);
    return std::move(actions_);
  }

 private:
  struct Stage {
    std::int32_t number = 0, forward = 0, input = 0, weight = 0;
  };
  void add(const Stage& stage, Kind kind, std::int32_t micro_batch) {
    if (micro_batch < all_) actions_.push_back(computation(stage.number, kind, micro_batch));
  }
  void forward(Stage& stage) { add(stage, Kind::forward, stage.forward++); }
  void input(Stage& stage) { add(stage, Kind::backward_input, stage.input++); }
  void weight(Stage& stage) { add(stage, Kind::backward_weight, stage.weight++); }

  std::int32_t all_, ranks_, rank_;
  Stage down_, up_;
  RankActions actions_;
};

/// Puts exchanges and waits between computations: `_add_send_recv` and the runtime that plays its lists.
class Exchanges {
 public:
  Exchanges(const PipelineShape& shape, std::vector<RankActions> computations)
      : shape_(shape),
        computations_(std::move(computations)),
        next_(computations_.size()),
        done_(next_.size()),
        batches_(next_.size()),
        received_(next_.size()),
        last_sent_(next_.size(), -1),
        result_(next_.size()) {}

  std::vector<RankActions> actions() {
    for (bool more = true; more;) {
      more = false;
      bool progress = false;
      for (std::size_t rank = 0; rank < next_.size(); ++rank) {
        if (next_[rank] == computations_[rank].size()) continue;
        more = true;
        const StageAction& action = computations_[rank][next_[rank]];
        if (!ready(rank, action)) continue;
        place(rank, action);
        ++next_[rank];
        progress = true;
      }
      if (more && !progress) throw std::logic_error("a schedule whose computations wait for each other");
    }
    // The last one first: it ends behind all others, so that these are over.
    for (std::size_t rank = 0; rank < next_.size(); ++rank)
      if (last_sent_[rank] >= 0) result_[rank].push_back({Kind::wait, 0, 0, last_sent_[rank], {}});
    return std::move(result_);
  }

 private:
  /// Stage, whether of a gradient, micro-batch.
  using Made = std::tuple<std::int32_t, bool, std::int32_t>;

  static bool goes_back(Kind kind) { return kind == Kind::backward || kind == Kind::backward_input; }
  [[nodiscard]] bool is_end(std::int32_t stage, bool back) const {
    return back ? stage == 0 : stage + 1 == shape_.stages();
  }
  [[nodiscard]] bool needs_input(const StageAction& action) const {
    if (action.kind == Kind::forward) return action.stage > 0;
    return goes_back(action.kind) && action.stage + 1 < shape_.stages();
  }
  /// What the computation works on.
  static Made input_of(const StageAction& action) {
    const bool back = action.kind != Kind::forward;
    return {action.stage + (back ? 1 : -1), back, action.micro_batch};
  }
  [[nodiscard]] bool ready(std::size_t rank, const StageAction& action) const {
    return !needs_input(action) || done_[rank].contains(input_of(action));
  }

  void place(std::size_t rank, const StageAction& action) {
    if (needs_input(action))
      if (const auto batch = received_[rank].find(input_of(action)); batch != received_[rank].end())
        result_[rank].push_back({Kind::wait, action.stage, 0, batch->second, {}});
    result_[rank].push_back(action);
    const bool back = goes_back(action.kind);
    if (back || action.kind == Kind::forward) {
      done_[rank].insert({action.stage, back, action.micro_batch});
      if (!is_end(action.stage, back)) send(rank, action, back);
    }
  }

  void send(std::size_t rank, const StageAction& action, bool back) {
    const auto to = static_cast<std::size_t>(shape_.rank_of(action.stage + (back ? -1 : 1)));
    if (to == rank) return;
    Transfer transfer{true, back, action.stage, action.micro_batch, static_cast<std::int32_t>(to)};
    last_sent_[rank] = exchange(rank, transfer);
    transfer.send = false;
    transfer.peer = static_cast<std::int32_t>(rank);
    const Made made{action.stage, back, action.micro_batch};
    received_[to].emplace(made, exchange(to, transfer));
    done_[to].insert(made);
  }
  std::int32_t exchange(std::size_t rank, const Transfer& transfer) {
    result_[rank].push_back({Kind::exchange, transfer.stage, 0, batches_[rank], {transfer}});
    return batches_[rank]++;
  }

  const PipelineShape& shape_;
  std::vector<RankActions> computations_;
  std::vector<std::size_t> next_;
  std::vector<std::set<Made>> done_;  ///< made on a rank, or on its way to it
  std::vector<std::int32_t> batches_;
  std::vector<std::map<Made, std::int32_t>> received_;
  std::vector<std::int32_t> last_sent_;  ///< batch; -1: none
  std::vector<RankActions> result_;
};

}  // namespace

namespace {

/// Behind the last backward pass of each stage its gradients are reduced.
RankActions with_reductions(const RankActions& computations, const PipelineShape& shape) {
  std::vector<std::int32_t> left(static_cast<std::size_t>(shape.stages()), shape.micro_batches);
  RankActions result;
  for (const StageAction& action : computations) {
    result.push_back(action);
    if (action.kind != Kind::backward && action.kind != Kind::backward_weight) continue;
    if (--left[static_cast<std::size_t>(action.stage)] == 0)
      result.push_back({Kind::reduce_gradients, action.stage, 0, 0, {}});
  }
  return result;
}

}  // namespace

std::vector<RankActions> make_looped_schedule(const PipelineShape& shape, std::int32_t round) {
  std::vector<RankActions> computations;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    computations.push_back(with_reductions(
        shape.schedule == PipelineSchedule::zbv
            ? ZeroBubbleV(shape, rank).actions()
            : Interleaved(shape, round, rank, shape.schedule != PipelineSchedule::interleaved).actions(),
        shape));
  return Exchanges(shape, std::move(computations)).actions();
}

}  // namespace ridgeline::parallel
