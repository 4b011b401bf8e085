// Which attention runs: what the scenario asks for, or PyTorch's own choice of a backend for this GPU and data type.
//
// scaled_dot_product_attention tries its backends in an order and takes the first that can: cuDNN first on Hopper
// (PyTorch 2.11 with cuDNN 9.15, recorded on an H200 with and without dropout, masks and head dimensions up to 256),
// then FlashAttention-2 (sm_80 on, 16-bit, head_dim up to 256; up to 192 for training on sm_86 and sm_89), then
// memory-efficient attention (any GPU, rows aligned to 16 bytes), then plain matrix products ("math"). Packed sequences
// go to FlashAttention-2 by their cumulative lengths (torch.nn.attention.varlen). Source:
// aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Throws UserError when a backend is asked for by name that this GPU, software or shape does not have.
AttentionChoice choose_attention(const TrainingDescription& training, const ModelDescription& model, const Gpu& gpu,
                                 const Software& software);

}  // namespace ridgeline
