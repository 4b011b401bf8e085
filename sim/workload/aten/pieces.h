// Parts of the last dimension, and tensors joined along it.
#pragma once

#include <array>
#include <initializer_list>

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// x[..., begin : begin + width]: a view; the backward fills zeros and copies in.
Tensor slice_last(Eager& eager, const Tensor& x, std::int64_t width);
/// x[:, begin:] or x[:, :length] of a dimension, as slice_last.
Tensor slice(Eager& eager, const Tensor& x, int dimension, std::int64_t size);
/// x[..., first::2], as slice_last.
Tensor every_second(Eager& eager, const Tensor& x, int first);
/// x[:, 0] of a dimension that goes.
Tensor select(Eager& eager, const Tensor& x, int dimension);
/// Two or three views of the given widths; the backward is one concatenation.
void split_last(Eager& eager, const Tensor& x, std::initializer_list<std::int64_t> widths,
                std::initializer_list<Tensor*> parts);
/// `Parts` (2 or 3) equal parts of the last dimension.
template <int Parts>
std::array<Tensor, Parts> split_last(Eager& eager, const Tensor& x);
/// x[:, 0], and one half of the last dimension, whichever, as slice_last.
Tensor select_first(Eager& eager, const Tensor& x);
Tensor half(Eager& eager, const Tensor& x);
/// Two or three tensors joined along a dimension (-1: the last); the backward hands views on.
Tensor join(Eager& eager, std::initializer_list<const Tensor*> parts, int dimension = -1);
/// Two contiguous tensors joined along the last dimension.
/// Dimensions in another order: a view.
Tensor permute(Eager& eager, const Tensor& x, const Dims& order);

/// Rows of x [rows, cols] by index, of the given sizes: a gather; the backward fills zeros and adds rows up.
Tensor rows_at(Eager& eager, const Tensor& x, const Tensor& index, const Dims& sizes);
/// Sum over the middle dimension of three; the backward is an expanded view.
Tensor sum_middle(Eager& eager, const Tensor& x);
/// Mean over the middle dimension of three.
Tensor mean_middle(Eager& eager, const Tensor& x);

}  // namespace ridgeline::eager::aten
