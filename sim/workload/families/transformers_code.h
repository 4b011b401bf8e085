// Operations that many of Transformers' models write out in Python, as version 5.17 runs them: RMS norms, rotary
// positions, masks, grouped keys.
#pragma once

#include "sim/workload/families/functional.h"

namespace ridgeline::families {

/// Cosines and sines of every position.
struct Rotation {
  Tensor cosine, sine;
};

/// [length], of int64.
Tensor position_ids(Eager& eager, std::int64_t length);
/// Positions [1 or rows, length] that do not rise by one would mean several documents in a row: the host asks and
/// waits.
void look_for_packed_sequences(Eager& eager, const Tensor& positions, std::int64_t rows, std::int64_t length);
/// [rows, 1, length, keys_seen] numbers to add to scores: 0 where a token may look, the lowest number elsewhere.
Tensor causal_mask(Eager& eager, DType type, std::int64_t rows, std::int64_t length, std::int64_t keys_seen);
/// In fp32 inside, in the type of `x` outside; the product with the weight comes last.
Tensor rms_norm(Eager& eager, const Tensor& x, const Affine& weights);
/// Of `width` numbers of a head at `length` positions, from the inverse frequencies in `buffer`.
Rotation rotation(Eager& eager, const Tensor& positions, const Tensor& buffer, std::int64_t length, std::int64_t width,
                  DType type);
/// x turned: x · cosine + (-second half, first half) · sine.
Tensor rotated(Eager& eager, const Tensor& x, const Rotation& by);
/// Keys or values [batch, heads, length, width] `times` for each head.
Tensor repeated(Eager& eager, const Tensor& x, std::int64_t times);

}  // namespace ridgeline::families
