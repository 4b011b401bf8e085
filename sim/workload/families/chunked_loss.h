// Losses of a language model that take scores in chunks: Liger's fused linear cross entropy and torchtune's
// CEWithChunkedOutputLoss.
#pragma once

#include "sim/workload/families/functional.h"

namespace ridgeline::families {

/// Of hidden states x [sequences, length, width] and the weight [vocabulary, width] of the output projection. Scores of
/// a chunk become their gradient in place; gradients of x and of the weight are made with them and wait for the
/// backward pass.
Tensor chunked_loss(Eager& eager, const Tensor& x, const Affine& head, const Tensor& labels);

/// Scores of eight chunks of each sequence's tokens, which autograd keeps; each chunk is cast to fp32 by itself.
/// `compiled`: torch.compile takes the loss of a chunk by itself.
Tensor chunked_output_loss(Eager& eager, const Tensor& x, const Affine& head, const Tensor& labels, bool compiled);

/// The loss that `training.loss_code`, which is not `whole`, names.
Tensor loss_in_chunks(Eager& eager, const TrainingDescription& training, const Tensor& x, const Affine& head,
                      const Tensor& labels);

/// Rows of a chunk: as many as keep its scores about as large as x.
std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t width, std::int64_t vocabulary);

}  // namespace ridgeline::families
