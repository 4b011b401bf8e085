// Which attention runs: what the scenario asks for, or PyTorch's own choice of a backend for this GPU and data type.
//
// scaled_dot_product_attention tries its backends in an order and takes the first whose constraints hold:
//
// | backend   | constraints of training                                                                              |
// |-----------|------------------------------------------------------------------------------------------------------|
// | cuDNN     | first on Hopper and sm_10x where the version prefers it; 16 bits, head_dim in steps of 8 up to 256   |
// |           | (Hopper) or 128, more than one key, no gradient of the mask                                           |
// | flash     | sm_80 on, 16 bits, no mask, causal only where keys are as many as queries, head_dim up to 256; on | |
// | sm_86 to sm_89 and sm_12x up to 192, or above 224 without dropout                                     | | efficient
// | a key head for each query head, head_dim in steps of 8 (16 bits) or 4, bf16 from sm_80 on            | | math |
// matmuls and a softmax in fp32                                                                        |
//
// Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp of PyTorch 2.11 with cuDNN 9.15 and later; an H200
// agrees. Packed sequences go to FlashAttention-2 by their cumulative lengths (torch.nn.attention.varlen).
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/workload/model.h"
#include "sim/workload/op.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Throws UserError when a backend is asked for by name that this GPU, software or shape does not have.
AttentionChoice choose_attention(const TrainingDescription& training, const ModelDescription& model, const Gpu& gpu,
                                 const Software& software);

/// PyTorch's choice for one call, whose mask needs no gradient.
AttentionBackend choose_backend(const Attention& call, const Gpu& gpu, const Software& software);

}  // namespace ridgeline
