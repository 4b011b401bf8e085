// Operations as a model's Python code calls them (torch.nn.functional, tensor methods): what one costs the host, the
// casts of autocast, then the operations inside.
#pragma once

#include "sim/workload/aten/attention.h"
#include "sim/workload/aten/embedding.h"
#include "sim/workload/aten/four_bit.h"
#include "sim/workload/aten/loss.h"
#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/normalization.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"
#include "sim/workload/aten/softmax.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/eager.h"
#include "sim/workload/eager/parameter.h"
#include "sim/workload/families/adapter.h"

namespace ridgeline::families {

using eager::BlockScope;
using eager::ModuleScope;

using eager::Dims;
using eager::Eager;
using eager::Parameter;
using eager::Tensor;

/// Weight and optional bias of a linear layer, a normalisation or (weight alone) an embedding.
struct Affine {
  Parameter* weight = nullptr;
  Parameter* bias = nullptr;
  bool scaled = false;                    ///< multiplies in 8 bits where the session does
  bool by_inputs = false;                 ///< the weight lies as [in, out], as in Transformers' Conv1D
  Adapter adapter{};                      ///< where it has matrices, beside a frozen layer
  eager::aten::FourBitWeight four_bit{};  ///< in the place of `weight`
};

Tensor linear(Eager& eager, const Tensor& x, const Affine& layer);
/// `inside_module`: with the Python of a HuggingFace module around it.
Tensor layer_norm(Eager& eager, const Tensor& x, const Affine& layer, bool inside_module = false);
Tensor embedding(Eager& eager, const Tensor& indices, const Affine& table);
/// Batched product of four-dimensional tensors.
Tensor matmul(Eager& eager, const Tensor& a, const Tensor& b);
/// In fp32 under autocast.
Tensor softmax(Eager& eager, const Tensor& x);
/// softmax(x, dtype=torch.float32) of fp16: one kernel reads 16 bits and writes 32, where bf16 is cast first, and one
/// does the reverse backward (softmax of aten/src/ATen/native/SoftMax.cpp: half_to_float).
Tensor softmax_of_fp16(Eager& eager, const Tensor& x);
/// Nothing happens at probability 0.
Tensor dropout(Eager& eager, const Tensor& x, double probability);
Tensor activate(Eager& eager, const Tensor& x, eager::aten::ActivationKind kind);
Tensor add(Eager& eager, const Tensor& a, const Tensor& b);
Tensor mul(Eager& eager, const Tensor& a, const Tensor& b);
Tensor scale(Eager& eager, const Tensor& x);
Tensor masked_fill(Eager& eager, const Tensor& x, const Tensor& mask);
Tensor view(Eager& eager, const Tensor& x, const Dims& sizes);
Tensor transpose(Eager& eager, const Tensor& x, int a, int b);
Tensor contiguous(Eager& eager, const Tensor& x);
/// scaled_dot_product_attention by a chosen backend (not eager).
Tensor attention(Eager& eager, AttentionChoice choice, const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                 double dropout_probability);
/// Of [rows, classes] logits; under autocast the loss itself is computed in fp32.
Tensor cross_entropy(Eager& eager, const Tensor& logits, const Tensor& target);

}  // namespace ridgeline::families
