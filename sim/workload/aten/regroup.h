// Elements in another order or taken by an index: rolls, repeats, gathers, neighbours of an image joined.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// Padding by nothing: a copy, forward and backward.
Tensor copied(Eager& eager, const Tensor& x);
/// Two dimensions moved around the end: a kernel for each, forward and backward.
Tensor rolled(Eager& eager, const Tensor& x);
/// x [rows, length, width] as often as `times` along the first dimension, copied; the backward is a sum.
Tensor repeated_first(Eager& eager, const Tensor& x, std::int64_t times);
/// An element of each row of x by an index that is repeated over the first dimension; the backward fills zeros and adds
/// elements where they came from.
Tensor gathered_last(Eager& eager, const Tensor& x, const Tensor& index, const Dims& sizes);
/// Rows padded to a multiple of `count` elements and cut again, so that they begin where a kernel can load them.
Tensor aligned_rows(Eager& eager, const Tensor& x, std::int64_t count);
/// x [batch, side x side, width]: of each square of four neighbours their joined numbers, [batch, patches / 4, 4 x
/// width].
Tensor neighbours_joined(Eager& eager, const Tensor& x, std::int64_t side);

}  // namespace ridgeline::eager::aten
