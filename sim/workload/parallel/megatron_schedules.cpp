#include "sim/workload/parallel/megatron_schedules.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ridgeline::parallel {
namespace {

using Kind = StageAction::Kind;
using Transfers = std::vector<Transfer>;

/// Actions of one rank. What it exchanges is described by the pass that made it or will take it.
class MegatronRank {
 public:
  MegatronRank(const PipelineShape& shape, std::int32_t rank) : shape_(shape), rank_(rank) {}

  RankActions one_forward_one_backward() {
    const std::int32_t all = shape_.micro_batches, warm_up = std::min(shape_.ranks - 1 - rank_, all);
    for (std::int32_t i = 0; i < warm_up; ++i) {
      exchange(receive_forward(rank_, i));
      compute(Kind::forward, rank_, i);
      exchange(send_forward(rank_, i));
    }
    if (warm_up < all) exchange(receive_forward(rank_, warm_up));
    for (std::int32_t i = 0; i + warm_up < all; ++i) {
      const bool last = i + warm_up + 1 == all;
      compute(Kind::forward, rank_, i + warm_up);
      exchange(both(send_forward(rank_, i + warm_up), receive_backward(rank_, i)));
      compute(Kind::backward, rank_, i);
      exchange(both(send_backward(rank_, i), last ? Transfers{} : receive_forward(rank_, i + warm_up + 1)));
    }
    for (std::int32_t i = all - warm_up; i < all; ++i) {
      exchange(receive_backward(rank_, i));
      compute(Kind::backward, rank_, i);
      exchange(send_backward(rank_, i));
    }
    return std::move(actions_);
  }

  RankActions interleaved() {
    const std::int32_t all = shape_.micro_batches * shape_.stages_a_rank;
    const std::int32_t most = 2 * (shape_.ranks - 1 - rank_) + (shape_.stages_a_rank - 1) * shape_.ranks;
    const std::int32_t warm_up = std::min(most, all);
    const bool all_warm_up = warm_up == all;
    exchange(receive_forward(0));
    for (std::int32_t k = 0; k < warm_up; ++k) {
      forward(k);
      const bool turns = k + 1 == warm_up && !all_warm_up;
      exchange(both(both(forward_sent(k), receive_forward(k + 1)), turns ? receive_backward(0) : Transfers{}));
    }
    for (std::int32_t k = 0; k + warm_up < all; ++k) {
      forward(k + warm_up);
      backward(k);
      exchange(both(both(forward_sent(k + warm_up), receive_forward(k + warm_up + 1)),
                    both(backward_sent(k), receive_backward(k + 1))));
    }
    if (all_warm_up) exchange(receive_backward(0));
    for (std::int32_t k = all - warm_up; k < all; ++k) {
      backward(k);
      exchange(both(backward_sent(k), receive_backward(k + 1)));
    }
    return std::move(actions_);
  }

 private:
  struct Pass {
    std::int32_t stage = 0, micro_batch = 0;
  };
  /// Number `k` of the rank's forward or backward passes; nothing behind the last.
  [[nodiscard]] std::optional<Pass> pass(std::int32_t k, bool gradient) const {
    if (k >= shape_.micro_batches * shape_.stages_a_rank) return std::nullopt;
    const std::int32_t round = shape_.ranks * shape_.stages_a_rank;
    std::int32_t part = k % round / shape_.ranks;
    if (gradient) part = shape_.stages_a_rank - 1 - part;
    return Pass{part * shape_.ranks + rank_, k / round * shape_.ranks + k % shape_.ranks};
  }
  void forward(std::int32_t k) { compute(Kind::forward, pass(k, false)->stage, pass(k, false)->micro_batch); }
  void backward(std::int32_t k) { compute(Kind::backward, pass(k, true)->stage, pass(k, true)->micro_batch); }
  [[nodiscard]] Transfers forward_sent(std::int32_t k) const {
    const auto of = pass(k, false);
    return send_forward(of->stage, of->micro_batch);
  }
  [[nodiscard]] Transfers backward_sent(std::int32_t k) const {
    const auto of = pass(k, true);
    return send_backward(of->stage, of->micro_batch);
  }
  [[nodiscard]] Transfers receive_forward(std::int32_t k) const {
    const auto of = pass(k, false);
    return of ? receive_forward(of->stage, of->micro_batch) : Transfers{};
  }
  [[nodiscard]] Transfers receive_backward(std::int32_t k) const {
    const auto of = pass(k, true);
    return of ? receive_backward(of->stage, of->micro_batch) : Transfers{};
  }

  [[nodiscard]] std::int32_t next() const { return (rank_ + 1) % shape_.ranks; }
  [[nodiscard]] std::int32_t before() const { return (rank_ + shape_.ranks - 1) % shape_.ranks; }
  [[nodiscard]] Transfers send_forward(std::int32_t stage, std::int32_t i) const {
    if (stage + 1 == shape_.stages()) return {};
    return {{true, false, stage, i, next()}};
  }
  [[nodiscard]] Transfers receive_forward(std::int32_t stage, std::int32_t i) const {
    if (stage == 0) return {};
    return {{false, false, stage - 1, i, before()}};
  }
  [[nodiscard]] Transfers send_backward(std::int32_t stage, std::int32_t i) const {
    if (stage == 0) return {};
    return {{true, true, stage, i, before()}};
  }
  [[nodiscard]] Transfers receive_backward(std::int32_t stage, std::int32_t i) const {
    if (stage + 1 == shape_.stages()) return {};
    return {{false, true, stage + 1, i, next()}};
  }
  static Transfers both(Transfers first, const Transfers& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  void compute(Kind kind, std::int32_t stage, std::int32_t i) { actions_.push_back({kind, stage, i, 0, {}}); }
  void exchange(Transfers transfers) {
    if (transfers.empty()) return;
    actions_.push_back({Kind::exchange, rank_, 0, batches_, std::move(transfers)});
    actions_.push_back({Kind::wait, rank_, 0, batches_++, {}});
  }

  const PipelineShape& shape_;
  std::int32_t rank_, batches_ = 0;
  RankActions actions_;
};

}  // namespace

std::vector<RankActions> make_megatron_schedule(const PipelineShape& shape) {
  std::vector<RankActions> result;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    MegatronRank one(shape, rank);
    result.push_back(shape.stages_a_rank > 1 ? one.interleaved() : one.one_forward_one_backward());
  }
  return result;
}

}  // namespace ridgeline::parallel
