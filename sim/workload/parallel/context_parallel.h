// Ranks that share each sequence: scaled_dot_product_attention under context_parallel of PyTorch 2.11
// (torch/distributed/tensor/experimental/_context_parallel/_attention.py), with its defaults: head-tail balance under a
// causal mask, partial results merged in fp32.
//
// Of N ranks each has 1/N of every sequence; under a causal mask a slice of 1/2N of its head and one of its tail.
// Attention takes N turns: first its own keys and values, then those of the rank before it, of the one before that.
// Under a causal mask a turn needs half of it: all queries and the first half of the keys where they come from a rank
// before (turns up to its own number), else the second half of the queries and all keys. Every turn of every rank is
// the same work, but they differ in what is merged: turns of the first kind merge all queries. The last rank has only
// those and moves most bytes, so that it is the one whose step is traced; the others wait for it in the next exchange.
#pragma once

#include <span>

#include "sim/workload/aten/attention.h"
#include "sim/workload/eager/eager.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/parallel.h"

namespace ridgeline::parallel {

/// What a turn attends with.
enum class TurnPart : std::uint8_t {
  whole,        ///< all of this rank's queries, all keys that came
  first_keys,   ///< all queries, the first half of the keys
  last_queries  ///< the second half of the queries, all keys
};

class ContextParallel {
 public:
  ContextParallel(eager::Eager& eager, const ParallelDescription& description);

  [[nodiscard]] std::int64_t ranks() const { return group_.ranks(); }
  /// Whose step this is, from 0.
  [[nodiscard]] std::int64_t rank() const { return rank_; }
  [[nodiscard]] TurnPart part_of(std::int64_t turn, bool causal) const;
  [[nodiscard]] ProcessGroup& group() { return group_; }
  [[nodiscard]] ContextRotation rotation() const { return rotation_; }

  /// q [batch, heads, tokens of this rank, head_dim]; k and v may have fewer heads. Throws UserError for lengths whose
  /// statistics PyTorch cannot merge.
  eager::Tensor attention(AttentionBackend backend, const eager::Tensor& q, const eager::Tensor& k,
                          const eager::Tensor& v, bool causal, bool dropout);
  /// Entering context_parallel: `buffers` [rows, tokens of this rank] hold whole sequences before, this rank's part of
  /// them behind.
  void cut(std::span<const eager::Tensor> buffers, bool causal);

 private:
  eager::Eager& eager_;
  ProcessGroup group_;
  ContextRotation rotation_;
  std::int64_t rank_;
};

}  // namespace ridgeline::parallel
