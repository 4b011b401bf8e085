// State-space scans and delta rules as their packages' kernels compute them: mamba-ssm, causal-conv1d and
// flash-linear-attention. Kernels are costed by the laws of generated kernels and of matmuls; scans of Mamba and Mamba-2
// have measured instruction counts, and the others were not measured.
#pragma once

#include <initializer_list>

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// causal_conv1d_fn: x [batch, channels, length] by one filter [channels, width] each, then silu; saves x.
Tensor causal_convolution(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor* bias);

/// selective_scan_fn of Mamba, of contiguous u, delta and z [batch, channels, length], `inputs` B and C [batch, 2 x
/// states, length]. Saves all of them, its result before the gate, and a state for each channel and 2,048 tokens.
Tensor selective_scan(Eager& eager, const Tensor& u, const Tensor& delta, const Tensor& inputs, const Tensor& z);

struct Mamba1Weights {
  Tensor convolution, convolution_bias, inputs, steps, output;
};
/// mamba_inner_fn: convolution, projections of B, C and the steps, scan and output projection of xz
/// [batch, 2 x channels, length]. Convolution and steps are computed again in the backward pass.
Tensor mamba_inner(Eager& eager, const Tensor& xz, const Mamba1Weights& weights, std::int64_t rank,
                   std::int64_t states);

struct ScanSizes {
  std::int64_t heads = 0, head_width = 0, groups = 1, states = 0, chunk = 256;
};
struct Mamba2Weights {
  Tensor convolution, convolution_bias, norm, output;
};
/// mamba_split_conv1d_scan_combined of Mamba-2: [batch, length, 2 x inner + 2 x groups x states + heads] to
/// [batch, length, hidden]. Saves its input and the scan's result.
Tensor mamba2_inner(Eager& eager, const Tensor& projected, const Mamba2Weights& weights, const ScanSizes& sizes);

/// chunk_gated_delta_rule: q and k [batch, length, heads, width], v [batch, length, heads, value width], `gates` of a
/// decay and a strength [batch, length, heads] each; chunks of 64 tokens. Saves them and a matrix of each chunk.
Tensor gated_delta_rule(Eager& eager, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                        const Tensor& strength);

/// x, whose kernel read these parameters too; their gradients are filled with zeros and added to by its backward
/// kernel.
Tensor with_parameters(Eager& eager, const Tensor& x, std::initializer_list<Tensor> parameters);

}  // namespace ridgeline::eager::aten
