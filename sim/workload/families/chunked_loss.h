// The loss of a language model from one chunk of scores after another: what Liger's fused linear cross entropy runs.
#pragma once

#include "sim/workload/families/functional.h"

namespace ridgeline::families {

/// Of hidden states x [sequences, length, width] and the weight [vocabulary, width] of the output projection. Scores of
/// a chunk become their gradient in place; gradients of x and of the weight are made with them and wait for the
/// backward pass.
Tensor chunked_loss(Eager& eager, const Tensor& x, const Affine& head, const Tensor& labels);

/// Rows of a chunk: as many as keep its scores about as large as x.
std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t width, std::int64_t vocabulary);

}  // namespace ridgeline::families
