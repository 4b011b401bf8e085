// One operation of a training step: what is computed, on which shapes, with which element types.
//
// An Op knows no GPU and no storage: it is the key by which lowering and timing are memoised. Shapes follow PyTorch's
// row-major convention. FLOPs count a multiply-add as two. One struct a family; `Op` is their variant.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "sim/workload/collective.h"
#include "sim/workload/dtype.h"
#include "sim/workload/image_ops.h"
#include "sim/workload/library_kernel.h"

namespace ridgeline {

/// How the operands of a matrix product lie in memory: n = as is (row-major), t = transposed.
/// nn: A[m,k] B[k,n].  nt: A[m,k] B[n,k] (x·Wᵀ).  tn: A[k,m] B[k,n] (dYᵀ·X).
enum class Layout : std::uint8_t { nn, nt, tn, tt };

/// The operand of a product whose values are 2:4 sparse along k: of four neighbours two are zero and not stored (tf32:
/// one of two). At most one can be.
enum class SparseOperand : std::uint8_t { none, a, b };

/// Operands in 8-bit floating point with scales (torch._scaled_mm, whose first one is row-major and second
/// column-major).
enum class Scaling : std::uint8_t {
  none,
  tensor_fast,  ///< a scale each; sums stay in the tensor cores (use_fast_accum)
  tensor,       ///< a scale each; sums are added up in fp32 on the CUDA cores every few steps of k
  rows_fast     ///< a scale for each row of A and each column of B
};

/// C[batch][m,n] = A·B (+ bias): mm (batch 1), bmm, addmm (bias fused into the epilogue where the library can).
struct Matmul {
  DType type = DType::fp32;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Layout layout = Layout::nn;
  bool bias = false;
  SparseOperand sparse = SparseOperand::none;
  LibraryKernel ran{};
  Scaling scaling = Scaling::none;  ///< `type` is then that of the result
  bool grouped = false;  ///< the batch is groups of rows behind one another, as mixtures of experts have them
  bool operator==(const Matmul&) const = default;
};

enum class PointwiseFunction : std::uint8_t {
  add,
  add_in_place,
  mul,
  scale,
  gelu,
  gelu_tanh,
  gelu_backward,
  gelu_tanh_backward,
  silu,
  silu_backward,
  relu,
  relu_backward,
  tanh,
  tanh_backward,
  pow2,
  square_root,
  reciprocal,
  divide,
  equal,
  masked_fill,
  cast,
  fill,
  arange,
  dropout_backward,
  clamp,
  rope,
  complex_mul,    ///< of numbers of two parts in fp32 each; torch.compile generates no code for it
  power,          ///< with an exponent that is no small whole or half number
  index,          ///< an element by the indices of other tensors: index, index_put
  gather,         ///< an element along one dimension by an index: gather, scatter
  roll,           ///< an element a distance away, around the end
  index_add,      ///< elements of rows added atomically where an index says: index_add_
  scatter_add,    ///< elements added atomically along one dimension: scatter_add_, the backward pass of gather
  special,        ///< a function computed by series or continued fractions: lgamma, digamma, erfinv
  random,         ///< random numbers by Philox counters: uniform_, normal_, bernoulli_
  index_few,      ///< slices by up to 16 indices, which every thread walks: index_select
  index_add_few,  ///< slices added atomically by up to 16 indices
  triangle,       ///< a copy with zeros below or above a diagonal: tril, triu
  nonzero,        ///< places of what is not zero, counted on the host first; `input_count` dimensions
  update_two,     ///< a step of bitsandbytes' optimizers: value, gradient and one of two states (8 bits: in blocks)
  update_one,     ///< … and the only state
  expand_4bit,    ///< numbers of codes of four bits and their scales, by bitsandbytes
  expand_8bit,    ///< … of eight bits
  quantize_rows,  ///< rows in eight bits, each over its largest number, by bitsandbytes
  scale_sums,     ///< sums of a product of eight bits times the scales of rows and columns, by bitsandbytes
  index_pairs,    ///< as index, by several index tensors: each is loaded before the element
  index_copy,     ///< rows stored where one index says, by a kernel of its own: index_copy_
  scatter_value,  ///< one number stored along one dimension, by an index each
  flip,           ///< an element by places that count down
  search,         ///< places within a sorted row, halved until found: searchsorted, bucketize
  modulo,         ///< quotients and remainders of floats, bit by bit: remainder, fmod, floor_divide
  arctangent,     ///< two arguments of a series: atan2, logaddexp
  other
};

/// How a point-wise kernel walks its operands.
enum class Walk : std::uint8_t {
  contiguous,     ///< all operands contiguous and of one shape: vectorised kernel
  broadcast_row,  ///< one operand is a row vector repeated over rows
  broadcast,      ///< one operand is broadcast otherwise (attention mask over batch and heads)
  strided,        ///< an operand is a permuted view
  transposed      ///< … whose neighbours in the result's order lie apart: a sector an element
};

/// Integers that equal operations share; none: what the other fields say.
struct SizeList {
  std::shared_ptr<const std::vector<std::int64_t>> list{};
  [[nodiscard]] bool any() const { return list != nullptr && !list->empty(); }
  bool operator==(const SizeList& other) const { return any() ? other.any() && *list == *other.list : !other.any(); }
};

/// out[i] = f(in0[i], in1[i], ...): `input_count` tensors of `inputs` types. `cols` is the length of the contiguous
/// dimension. Mixed types (bf16 + fp32) run an unrolled, not vectorised kernel, as in PyTorch.
struct Pointwise {
  PointwiseFunction function = PointwiseFunction::add;
  std::int64_t rows = 0, cols = 1;
  DType inputs[3] = {DType::fp32, DType::fp32, DType::fp32};
  std::uint8_t input_count = 1;
  DType output = DType::fp32;
  Walk walk = Walk::contiguous;
  SizeList walked{};  ///< of a strided or repeated operand: size and stride of each dimension, the fastest first
  [[nodiscard]] std::int64_t elements() const { return rows * cols; }
  bool operator==(const Pointwise&) const = default;
};

/// Moves bytes without arithmetic.
enum class CopyKind : std::uint8_t {
  contiguous,  ///< cudaMemcpy device to device
  permute,  ///< materialises a permuted view whose innermost dimension stays contiguous (e.g. [B,T,H,D] → [B,H,T,D])
  transpose,            ///< materialises a transposed view: reads are strided by whole rows (k → kᵀ)
  concatenate,          ///< cat along the last dimension (`parts` inputs)
  concatenate_strided,  ///< the same of views that are not contiguous
  host_to_device,
  device_to_host,
  pageable_to_device,  ///< … memory of the host that is not pinned
  device_to_pageable   ///< … that was never touched before
};
constexpr bool leaves_device(CopyKind kind) { return kind >= CopyKind::host_to_device; }
constexpr bool concatenates(CopyKind kind) {
  return kind == CopyKind::concatenate || kind == CopyKind::concatenate_strided;
}
struct Copy {
  CopyKind kind = CopyKind::contiguous;
  DType type = DType::fp32;
  std::int64_t rows = 0, cols = 1;  ///< of the output; of each of the `parts` inputs where they are concatenated
  std::int64_t parts = 1;
  std::int64_t dimensions = 0;  ///< of the result of a concatenation, over which offsets are computed; 0: two
  SizeList walked{};            ///< size and stride of the source in each dimension of the result, the fastest first
  bool operator==(const Copy&) const = default;
};

/// Softmax over the last dimension, or over one with `inner` elements behind it. Forward may read `input` and write
/// `output` types that differ (fp16 in, fp32 out under autocast). Backward reads the gradient and the result as `input`
/// and writes `output` (fp32 in, fp16 out there); that of softmax multiplies grad·output first, in a kernel of its own.
struct Softmax {
  bool log = false, backward = false;
  DType input = DType::fp32, output = DType::fp32;
  std::int64_t rows = 0, cols = 0;
  std::int64_t inner = 1;
  bool operator==(const Softmax&) const = default;
};

/// Layer or RMS normalisation over the last dimension. Backward writes dx and the gradients of weight (and bias).
struct Norm {
  bool rms = false, backward = false, bias = true;
  DType type = DType::fp32;
  std::int64_t rows = 0, cols = 0;
  bool operator==(const Norm&) const = default;
};

enum class ReductionKind : std::uint8_t {
  sum_rows,   ///< [rows, cols] → [cols]: bias gradients
  sum_cols,   ///< [rows, cols] → [rows]
  mean_cols,  ///< mean over the last dimension
  sum_all,
  norm_all,
  scan_rows,  ///< running sums along the first dimension: [rows, cols] → [rows, cols]
  scan_cols   ///< … along the last
};
constexpr bool scans(ReductionKind kind) {
  return kind == ReductionKind::scan_rows || kind == ReductionKind::scan_cols;
}
/// State that a reduction carries from element to element.
enum class Accumulator : std::uint8_t {
  number,   ///< one number: sum, mean, amax, norm, any
  place,    ///< a value and its index: argmax, max along a dimension
  moments,  ///< mean, squared deviations and count by Welford's method: var, std
  groups,   ///< moments of a group of channels, a block each: group_norm
};
struct Reduction {
  ReductionKind kind = ReductionKind::sum_all;
  DType type = DType::fp32;
  std::int64_t rows = 0, cols = 1;
  Accumulator accumulator = Accumulator::number;
  std::int64_t inner = 0;  ///< kept elements side by side where the first dimension goes; 0: all that are kept
  bool scattered = false;  ///< reduced elements that lie along two dimensions, not one: no vectors of them
  bool operator==(const Reduction&) const = default;
};

/// Fused dropout forward: reads x, writes y and a one-byte mask. Its backward is Pointwise dropout_backward.
struct Dropout {
  DType type = DType::fp32;
  std::int64_t elements = 0;
  bool operator==(const Dropout&) const = default;
};

/// Gather of rows, or its backward into a dense gradient [vocabulary, hidden].
struct Embedding {
  bool backward = false;
  DType type = DType::fp32;
  std::int64_t tokens = 0, vocabulary = 0, hidden = 0;
  bool accumulates =
      false;  ///< backward: rows are added to a table that is there (index_put), which begins as no zeros
  /// Sums that the rows are added up to, in fp32 (embedding_bag, fbgemm's tables); 0: rows stay rows. Backward:
  /// `tokens` gradients, each that of a bag, are added up by row and the rows updated in place, as a fused optimizer
  /// does.
  std::int64_t bags = 0;
  bool operator==(const Embedding&) const = default;
};

/// Sequences that lie behind each other in every row of a batch, in tokens; none: a row is one sequence. The layers of
/// a network share one list.
using PackedLengths = SizeList;

/// Backends of scaled_dot_product_attention; `math` stands for the matmuls and the softmax that it runs where no fused
/// kernel takes the operands of a recorded call. Eager attention is made of Matmul, Softmax and the rest.
enum class AttentionBackend : std::uint8_t { flash, cudnn, efficient, math };
/// q [batch, heads, seq_q, head_dim], k and v [batch, kv_heads, seq_k, head_dim].
/// FLOPs forward 4·batch·heads·seq_q·seq_k·head_dim (half of it if causal), backward 2.5 times that; of packed
/// sequences the squares of their lengths stand in the place of seq_q·seq_k.
struct Attention {
  AttentionBackend backend = AttentionBackend::flash;
  bool backward = false, causal = false, dropout = false;
  DType type = DType::bf16;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, head_dim = 0;
  bool head_major =
      false;  ///< operands lie as [batch, heads, seq, head_dim] instead of views of [batch, seq, heads, head_dim]
  bool bias = false;        ///< a mask of [batch, seq_q, seq_k] is added to the scores of every head: the last input
  PackedLengths lengths{};  ///< that add up to seq_q and seq_k: FlashAttention by cumulative lengths
  bool operator==(const Attention&) const = default;
};

/// Negative log-likelihood over [rows, classes] log-probabilities: the tiny gather of cross-entropy, or its scatter.
struct NllLoss {
  bool backward = false;
  DType type = DType::fp32;
  std::int64_t rows = 0, classes = 0;
  bool operator==(const NllLoss&) const = default;
};

enum class MultiTensorFunction : std::uint8_t {
  add,
  mul,
  lerp,
  addcmul,
  addcdiv,
  square_root,
  divide,
  norm,
  unscale,
  fused_adamw,
  fused_adam,
  fused_sgd,
  add_scalar,
  copy
};
/// One foreach call (PyTorch's multi_tensor_apply) over a list of tensors. `sizes` holds the elements of each tensor,
/// shared because a step uses one list for many calls. `scalar_per_tensor`: a list of scalars instead of one.
struct MultiTensor {
  MultiTensorFunction function = MultiTensorFunction::add;
  DType type = DType::fp32;
  std::shared_ptr<const std::vector<std::int64_t>> sizes;
  bool scalar_per_tensor = false;
  bool operator==(const MultiTensor& other) const {
    return function == other.function && type == other.type && scalar_per_tensor == other.scalar_per_tensor &&
           (sizes == other.sizes || (sizes && other.sizes && *sizes == *other.sizes));
  }
};

/// Sorts each of `rows` rows of `cols` keys with the places they came from, or finds its `kept` largest.
struct Sort {
  DType type = DType::fp32;
  std::int64_t rows = 0, cols = 0;
  std::int64_t kept = 0;      ///< of each row; 0: all
  std::int64_t key_bits = 0;  ///< that differ between keys where it is known (indices into a table); 0: all of the type
  bool operator==(const Sort&) const = default;
};

/// cudaMemset of `bytes`, as an op of its own.
struct Memset {
  std::int64_t bytes = 0;
  bool operator==(const Memset&) const = default;
};

/// A kernel that torch.compile made of several operations: it reads and writes only what other kernels see.
struct FusedKernel {
  enum class Shape : std::uint8_t {
    pointwise,  ///< an element at a time
    rows,       ///< a row at a time, kept in registers: normalisation, softmax
    long_rows,  ///< rows that do not fit in registers are read once for the statistics and again for the result
    columns     ///< sums over rows, in two kernels: partial sums, then their sum
  };
  std::string name;  ///< of the operations in it, as generated code is named: "add_native_layer_norm"
  Shape shape = Shape::pointwise;
  std::int64_t rows = 0, cols = 1;          ///< of the space it runs over
  DType type = DType::fp32;                 ///< widest type it moves
  std::int64_t arithmetic = 0;              ///< instructions an element beyond loading, converting and storing
  bool gathers = false;                     ///< an operand is read or written transposed or by index
  std::int64_t column_results = 0;          ///< the last results are sums over rows
  std::vector<std::int64_t> reads, writes;  ///< bytes of each operand
  bool operator==(const FusedKernel&) const = default;
};

/// An operation the model has no rule for: costs its bytes, and is named in every report.
struct UnknownOp {
  std::string name;
  std::int64_t read_bytes = 0, written_bytes = 0;
  bool operator==(const UnknownOp&) const = default;
};

using Op =
    std::variant<Matmul, Pointwise, Copy, Softmax, Norm, Reduction, Dropout, Embedding, Attention, NllLoss, MultiTensor,
                 Convolution, ImageOp, Memset, UnknownOp, FusedKernel, Sort, Collective, Resampling>;

/// Pairs of a query and a key in a row of attention's batch, masked ones too.
double scores_of_row(const Attention& op);

/// A stable hash of the whole description (memoisation key together with operator==).
std::size_t hash_of(const Op& op);
/// Short name as PyTorch would print it: "addmm", "native_layer_norm_backward", "foreach_lerp".
std::string name_of(const Op& op);
/// Shape in one line: "2048x4096x1024 nt bf16".
std::string shape_of(const Op& op);

}  // namespace ridgeline
