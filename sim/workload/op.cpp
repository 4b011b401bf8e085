#include "sim/workload/op.h"

#include <array>

#include <fmt/format.h>

namespace ridgeline {
namespace {

/// Mixes 64-bit words: the finaliser of SplitMix64, folded over the fields of an op.
class Hash {
 public:
  template <typename T>
  Hash& operator<<(T value) {
    std::uint64_t x = state_ ^ (static_cast<std::uint64_t>(value) + 0x9e3779b97f4a7c15ULL);
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
    state_ = x ^ (x >> 29);
    return *this;
  }
  [[nodiscard]] std::size_t value() const { return static_cast<std::size_t>(state_ ^ (state_ >> 32)); }

 private:
  std::uint64_t state_ = 0x2545f4914f6cdd1dULL;
};

struct Hasher {
  Hash& hash;
  void operator()(const Matmul& op) const {
    hash << op.type << op.batch << op.m << op.n << op.k << op.layout << op.bias << op.sparse << op.ran.instructions
         << op.ran.m << op.ran.n << op.ran.k << op.ran.stages << op.ran.splits << op.ran.summed << op.scaling;
  }
  void operator()(const Pointwise& op) const {
    hash << op.function << op.rows << op.cols << op.input_count << op.output << op.walk;
    for (const DType input : op.inputs) hash << input;
  }
  void operator()(const Copy& op) const { hash << op.kind << op.type << op.rows << op.cols << op.parts; }
  void operator()(const Softmax& op) const {
    hash << op.log << op.backward << op.input << op.output << op.rows << op.cols;
  }
  void operator()(const Norm& op) const { hash << op.rms << op.backward << op.bias << op.type << op.rows << op.cols; }
  void operator()(const Reduction& op) const { hash << op.kind << op.type << op.rows << op.cols << op.accumulator; }
  void operator()(const Dropout& op) const { hash << op.type << op.elements; }
  void operator()(const Embedding& op) const {
    hash << op.backward << op.type << op.tokens << op.vocabulary << op.hidden << op.accumulates << op.bags;
  }
  void operator()(const Attention& op) const {
    hash << op.backend << op.backward << op.causal << op.dropout << op.type << op.batch << op.heads << op.kv_heads
         << op.seq_q << op.seq_k << op.head_dim << op.head_major << op.bias;
    if (op.lengths.any())
      for (const std::int64_t length : *op.lengths.list) hash << length;
  }
  void operator()(const NllLoss& op) const { hash << op.backward << op.type << op.rows << op.classes; }
  void operator()(const MultiTensor& op) const {
    hash << op.function << op.type << op.scalar_per_tensor;
    if (op.sizes)
      for (const std::int64_t size : *op.sizes) hash << size;
  }
  void operator()(const Convolution& op) const {
    hash << op.backward << op.channels_last << op.transposed << op.type << op.batch << op.in_channels << op.size
         << op.out_channels << op.kernel << op.stride << op.groups << op.width << op.kernel_width << op.stride_width
         << op.out_size << op.out_width << op.gradients;
    for (const RecordedConvolution& ran : {op.ran, op.ran_weights}) hash << ran.instructions << ran.transformed;
  }
  void operator()(const ImageOp& op) const {
    hash << op.function << op.backward << op.channels_last << op.type << op.batch << op.channels << op.size << op.width
         << op.window << op.stride << op.out_size << op.out_width << op.evaluation;
  }
  void operator()(const Memset& op) const { hash << op.bytes; }
  void operator()(const Sort& op) const { hash << op.type << op.rows << op.cols << op.kept << op.key_bits; }
  void operator()(const Resampling& op) const {
    hash << op.function << op.backward << op.channels_last << op.type << op.batch << op.channels << op.inputs
         << op.outputs << op.taps;
  }
  void operator()(const Collective& op) const { hash << op.kind << op.group << op.type << op.ranks << op.bytes; }
  void operator()(const UnknownOp& op) const {
    hash << std::hash<std::string>{}(op.name) << op.read_bytes << op.written_bytes;
  }
  void operator()(const FusedKernel& op) const {
    hash << std::hash<std::string>{}(op.name) << op.shape << op.rows << op.cols << op.type << op.arithmetic
         << op.gathers << op.column_results;
    for (const std::int64_t bytes : op.reads) hash << bytes;
    hash << op.reads.size();
    for (const std::int64_t bytes : op.writes) hash << bytes;
  }
};

std::string_view name_of(PointwiseFunction function) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(PointwiseFunction::other) + 1> kNames{
      "add",
      "add_",
      "mul",
      "scale",
      "gelu",
      "gelu_tanh",
      "gelu_backward",
      "gelu_tanh_backward",
      "silu",
      "silu_backward",
      "relu",
      "relu_backward",
      "tanh",
      "tanh_backward",
      "pow",
      "sqrt",
      "reciprocal",
      "div",
      "eq",
      "masked_fill",
      "cast",
      "fill",
      "arange",
      "native_dropout_backward",
      "clamp",
      "rope",
      "complex_mul",
      "pow",
      "index",
      "gather",
      "roll",
      "index_add",
      "scatter_add",
      "special",
      "random",
      "index_select",
      "index_add",
      "tril",
      "nonzero",
      "pointwise"};
  static_assert(kNames[static_cast<std::size_t>(PointwiseFunction::cast)] == "cast");
  static_assert(kNames.back() == "pointwise");
  return kNames[static_cast<std::size_t>(function)];
}

std::string_view name_of(MultiTensorFunction function) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(MultiTensorFunction::copy) + 1> kNames{
      "foreach_add",  "foreach_mul", "foreach_lerp",       "foreach_addcmul",     "foreach_addcdiv",
      "foreach_sqrt", "foreach_div", "foreach_norm",       "amp_foreach_unscale", "fused_adamw",
      "fused_adam",   "fused_sgd",   "foreach_add_scalar", "foreach_copy"};
  static_assert(kNames.back() == "foreach_copy");
  return kNames[static_cast<std::size_t>(function)];
}

std::string with_direction(std::string_view name, bool backward) {
  return fmt::format("{}{}", name, backward ? "_backward" : "");
}

struct Namer {
  std::string operator()(const Matmul& op) const {
    if (op.scaling != Scaling::none) return "_scaled_mm";
    return op.batch > 1 ? "bmm" : op.bias ? "addmm" : "mm";
  }
  std::string operator()(const Pointwise& op) const { return std::string(name_of(op.function)); }
  std::string operator()(const Copy& op) const {
    switch (op.kind) {
      case CopyKind::concatenate:
      case CopyKind::concatenate_strided: return "cat";
      case CopyKind::host_to_device:
      case CopyKind::pageable_to_device: return "copy_to_device";
      case CopyKind::device_to_host:
      case CopyKind::device_to_pageable: return "copy_to_host";
      default: return "copy";
    }
  }
  std::string operator()(const Softmax& op) const {
    return with_direction(op.log ? "log_softmax" : "softmax", op.backward);
  }
  std::string operator()(const Norm& op) const {
    return with_direction(op.rms ? "rms_norm" : "native_layer_norm", op.backward);
  }
  std::string operator()(const Reduction& op) const {
    switch (op.kind) {
      case ReductionKind::mean_cols:
        if (op.accumulator == Accumulator::number) return "mean";
        break;
      case ReductionKind::norm_all: return "linalg_vector_norm";
      case ReductionKind::scan_rows:
      case ReductionKind::scan_cols: return "cumsum";
      default: break;
    }
    constexpr std::array<std::string_view, 4> kNames{"sum", "argmax", "var", "group_norm"};
    return std::string(kNames[static_cast<std::size_t>(op.accumulator)]);
  }
  std::string operator()(const Dropout&) const { return "native_dropout"; }
  std::string operator()(const Embedding& op) const {
    if (op.bags > 0) return with_direction("embedding_bag", op.backward);
    return op.accumulates ? "index_put" : op.backward ? "embedding_dense_backward" : "embedding";
  }
  std::string operator()(const Attention& op) const {
    switch (op.backend) {
      case AttentionBackend::flash: return with_direction("flash_attention", op.backward);
      case AttentionBackend::cudnn: return with_direction("cudnn_attention", op.backward);
      case AttentionBackend::efficient: return with_direction("efficient_attention", op.backward);
      case AttentionBackend::math: return with_direction("math_attention", op.backward);
    }
    return "attention";
  }
  std::string operator()(const NllLoss& op) const { return with_direction("nll_loss", op.backward); }
  std::string operator()(const MultiTensor& op) const { return std::string(name_of(op.function)); }
  std::string operator()(const Convolution& op) const {
    return with_direction(op.transposed ? "conv_transpose2d" : "conv2d", op.backward);
  }
  std::string operator()(const ImageOp& op) const {
    constexpr std::array<std::string_view, 5> kNames{"batch_norm", "relu", "max_pool2d", "upsample_nearest2d",
                                                     "avg_pool2d"};
    return with_direction(kNames[static_cast<std::size_t>(op.function)], op.backward);
  }
  std::string operator()(const Memset&) const { return "memset"; }
  std::string operator()(const Sort& op) const { return op.kept > 0 ? "topk" : "sort"; }
  std::string operator()(const Resampling& op) const {
    constexpr std::array<std::string_view, static_cast<std::size_t>(ResamplingFunction::fold) + 1> kNames{
        "upsample_nearest", "upsample_linear", "upsample_bilinear2d", "upsample_bicubic2d",
        "reflection_pad",   "replication_pad", "grid_sampler_2d",     "grid_sampler_2d",
        "im2col",           "col2im"};
    return with_direction(kNames[static_cast<std::size_t>(op.function)], op.backward);
  }
  std::string operator()(const Collective& op) const { return std::string(name_of(op.kind)); }
  std::string operator()(const UnknownOp& op) const { return op.name; }
  std::string operator()(const FusedKernel& op) const {
    constexpr std::array<std::string_view, 4> kKinds{"poi", "per", "red", "red"};
    return fmt::format("triton_{}_fused_{}", kKinds[static_cast<std::size_t>(op.shape)], op.name);
  }
};

std::string_view name_of(Layout layout) {
  constexpr std::array<std::string_view, 4> kNames{"nn", "nt", "tn", "tt"};
  return kNames[static_cast<std::size_t>(layout)];
}

struct Shaper {
  std::string operator()(const Matmul& op) const {
    const std::string product = fmt::format("{}x{}x{} {} {}", op.m, op.n, op.k, name_of(op.layout), name_of(op.type));
    const char* const sparse = op.sparse == SparseOperand::none ? ""
                               : op.sparse == SparseOperand::a  ? " 2:4 a"
                                                                : " 2:4 b";
    constexpr std::array<const char*, 4> kScales{"", " of fp8", " of fp8, sums in fp32", " of fp8, scales of rows"};
    const char* const scales = kScales[static_cast<std::size_t>(op.scaling)];
    return op.batch > 1 ? fmt::format("{}x {}{}", op.batch, product, sparse) : product + sparse + scales;
  }
  std::string operator()(const Pointwise& op) const {
    std::string types;
    for (int i = 0; i < op.input_count; ++i) types += fmt::format("{}{}", i > 0 ? "," : "", name_of(op.inputs[i]));
    if (op.input_count == 0 || op.inputs[0] != op.output || op.input_count > 1)
      types += fmt::format("{}{}", types.empty() ? "" : "->", name_of(op.output));
    return fmt::format("{}x{} {}", op.rows, op.cols, types);
  }
  std::string operator()(const Copy& op) const { return fmt::format("{}x{} {}", op.rows, op.cols, name_of(op.type)); }
  std::string operator()(const Softmax& op) const {
    if (op.input == op.output) return fmt::format("{}x{} {}", op.rows, op.cols, name_of(op.input));
    return fmt::format("{}x{} {}->{}", op.rows, op.cols, name_of(op.input), name_of(op.output));
  }
  std::string operator()(const Norm& op) const { return fmt::format("{}x{} {}", op.rows, op.cols, name_of(op.type)); }
  std::string operator()(const Reduction& op) const {
    return fmt::format("{}x{} {}", op.rows, op.cols, name_of(op.type));
  }
  std::string operator()(const Dropout& op) const { return fmt::format("{} {}", op.elements, name_of(op.type)); }
  std::string operator()(const Embedding& op) const {
    const std::string bags = op.bags > 0 ? fmt::format(" in {} bags", op.bags) : "";
    return fmt::format("{} of {}x{} {}{}", op.tokens, op.vocabulary, op.hidden, name_of(op.type), bags);
  }
  std::string operator()(const Attention& op) const {
    const std::string packed = op.lengths.any() ? fmt::format("{} sequences ", op.lengths.list->size()) : "";
    return fmt::format("{}x{}x{}x{} {}{}{}{}", op.batch, op.heads, op.seq_q, op.head_dim, packed,
                       op.causal ? "causal " : "", op.bias ? "masked " : "", name_of(op.type));
  }
  std::string operator()(const NllLoss& op) const {
    return fmt::format("{}x{} {}", op.rows, op.classes, name_of(op.type));
  }
  std::string operator()(const MultiTensor& op) const {
    std::int64_t elements = 0;
    if (op.sizes)
      for (const std::int64_t size : *op.sizes) elements += size;
    const std::size_t tensors = op.sizes ? op.sizes->size() : 0;
    if (elements < 1'000'000) return fmt::format("{} tensors, {} elements {}", tensors, elements, name_of(op.type));
    return fmt::format("{} tensors, {:.4g} M {}", tensors, static_cast<double>(elements) / 1e6, name_of(op.type));
  }
  std::string operator()(const Convolution& op) const {
    const std::string groups = op.groups > 1 ? fmt::format(" in {} groups", op.groups) : "";
    return fmt::format("{}x{}x{}x{} to {}{}, {}x{} {}", op.batch, op.in_channels, op.size, op.columns(),
                       op.out_channels, groups, op.kernel, op.kernel_columns(), name_of(op.type));
  }
  std::string operator()(const ImageOp& op) const {
    return fmt::format("{}x{}x{}x{} {}", op.batch, op.channels, op.size, op.columns(), name_of(op.type));
  }
  std::string operator()(const Memset& op) const { return fmt::format("{} bytes", op.bytes); }
  std::string operator()(const Sort& op) const {
    const std::string shape = fmt::format("{}x{} {}", op.rows, op.cols, name_of(op.type));
    return op.kept > 0 ? fmt::format("{} of {}", op.kept, shape) : shape;
  }
  std::string operator()(const Resampling& op) const {
    return fmt::format("{}x{} of {} to {} {}", op.batch, op.channels, op.inputs, op.outputs, name_of(op.type));
  }
  std::string operator()(const Collective& op) const {
    return fmt::format("{} bytes {}, {} ranks", op.bytes, name_of(op.type), op.ranks);
  }
  std::string operator()(const UnknownOp& op) const {
    return fmt::format("{} bytes", op.read_bytes + op.written_bytes);
  }
  std::string operator()(const FusedKernel& op) const {
    return fmt::format("{}x{} {}, {} in, {} out", op.rows, op.cols, name_of(op.type), op.reads.size(),
                       op.writes.size());
  }
};

}  // namespace

double scores_of_row(const Attention& op) {
  if (!op.lengths.any()) return static_cast<double>(op.seq_q) * static_cast<double>(op.seq_k);
  double sum = 0.0;
  for (const std::int64_t length : *op.lengths.list) sum += static_cast<double>(length) * static_cast<double>(length);
  return sum;
}

std::size_t hash_of(const Op& op) {
  Hash hash;
  hash << op.index();
  std::visit(Hasher{hash}, op);
  return hash.value();
}
std::string name_of(const Op& op) { return std::visit(Namer{}, op); }
std::string shape_of(const Op& op) { return std::visit(Shaper{}, op); }

}  // namespace ridgeline
