// The fused backends of scaled_dot_product_attention.
#pragma once

#include <vector>

#include "sim/workload/eager/tensor.h"
#include "sim/workload/training.h"

namespace ridgeline::eager::aten {

/// q [batch, heads, seq, head_dim]; k and v may have fewer heads. The result has q's layout in memory, so views of a
/// [batch, seq, heads, head_dim] tensor give one back. A mask is added to the scores. Saves q, k, v, the result and the
/// log-sum-exp of each row.
Tensor fused_attention(Eager& eager, AttentionBackend backend, const Tensor& q, const Tensor& k, const Tensor& v,
                       bool causal, bool dropout, const Tensor& mask = {});

/// The same of images one after the other, each in `pieces` of its tokens: a call for each, joined to [batch, seq,
/// heads, head_dim].
Tensor attention_apart(Eager& eager, AttentionBackend backend, const Tensor& q, const Tensor& k, const Tensor& v,
                       bool dropout, const std::vector<std::int64_t>& pieces);

/// Of operands as above.
Attention attention_op(AttentionBackend backend, const Tensor& q, const Tensor& k, bool causal, bool dropout);

/// What a fused kernel writes: the result, the log-sum-exp of each row, the state of its random numbers. Where nothing
/// saves them, the statistics die first, then seed, then offset: from the last member to the first.
struct FusedAttention {
  Tensor offset, seed, result, logsumexp;
};
/// `op` without autograd; `statistics` that nobody reads are left out, where the backend can.
FusedAttention run_attention(Eager& eager, const Attention& op, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Tensor& mask, bool statistics);

/// The backend of a fused choice.
AttentionBackend backend_of(AttentionChoice choice);

}  // namespace ridgeline::eager::aten
