// Operations of image networks beside convolutions: norms over channels, pooling, upsampling, and how images lie.
#pragma once

#include <vector>

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// Strides of an image [batch, channels, height, width] whose channels are neighbours.
Dims channels_last_strides(const Dims& sizes);
/// Whether PyTorch takes a tensor for such an image (suggest_memory_format).
bool lies_channels_last(const Tensor& x);
/// The same image with its channels last, copied unless it lies so.
Tensor channels_last(Eager& eager, const Tensor& x);

/// x [batch, channels, …] with the statistics of the batch, as in training; `evaluation`: with running ones. Saves x,
/// the weight and statistics of each channel.
Tensor batch_norm(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor& bias, bool evaluation);
/// Statistics of each group of channels of each image. Saves x, the weight and the statistics.
Tensor group_norm(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t groups);

/// v [out, in, width] of norm g [1, 1, width] for each tap. Saves both and the norms.
Tensor weight_norm(Eager& eager, const Tensor& v, const Tensor& g);

/// max(x, 0) in the place of x, a fresh result; saves it.
Tensor relu_in_place(Eager& eager, Tensor x);
/// Views of x[0], x[1] and, of three, x[2]; the backward stacks their gradients.
std::vector<Tensor> unbind(Eager& eager, const Tensor& x);

struct PoolingSteps {
  std::int64_t window = 2, stride = 2, padding = 0;
};
/// The largest of each window; writes and saves where each came from, in int64.
Tensor max_pool(Eager& eager, const Tensor& x, const PoolingSteps& steps);
Tensor average_pool(Eager& eager, const Tensor& x, const PoolingSteps& steps);
/// Each pixel twice as high and wide.
Tensor upsampled_nearest(Eager& eager, const Tensor& x);
/// Pixels between neighbours, to any size: interpolate(mode="bilinear").
Tensor upsampled_bilinear(Eager& eager, const Tensor& x, std::int64_t height, std::int64_t width);
/// Mean over the last `count` dimensions, which stay with size 1 where `kept`.
Tensor mean_trailing(Eager& eager, const Tensor& x, int count, bool kept);

}  // namespace ridgeline::eager::aten
