#include "sim/workload/op.h"

#include <fmt/format.h>

#include <array>
#include <boost/container_hash/hash.hpp>

#include "sim/workload/op_fields.h"
#include "sim/workload/pointwise_functions.h"

namespace ridgeline {
namespace {

/// Folds the fields of an operation into one number.
struct FieldHash {
  std::size_t& seed;
  void operator()(const auto& value) const {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) boost::hash_combine(seed, value);
    else boost::hash_combine(seed, static_cast<std::size_t>(value));
  }
  void operator()(const std::vector<std::int64_t>& list) const {
    for (const std::int64_t value : list) (*this)(value);
    if (!list.empty()) (*this)(list.size());
  }
  void operator()(const std::shared_ptr<const std::vector<std::int64_t>>& list) const {
    if (list) (*this)(*list);
  }
};

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
  /// Its kind, and the direction where there are two.
  std::string operator()(const auto& op) const {
    if constexpr (requires { op.backward; }) return with_direction(decltype(fields(op))::kKind, op.backward);
    else return std::string(decltype(fields(op))::kKind);
  }
  std::string operator()(const Matmul& op) const {
    if (op.scaling != Scaling::none) return "_scaled_mm";
    if (op.grouped) return "_grouped_mm";
    return op.batch > 1 ? "bmm" : op.bias ? "addmm" : "mm";
  }
  std::string operator()(const Pointwise& op) const { return std::string(row_of(op.function).name); }
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
    return with_direction(fmt::format("{}_attention", word_of(op.backend)), op.backward);
  }
  std::string operator()(const MultiTensor& op) const { return std::string(name_of(op.function)); }
  std::string operator()(const Convolution& op) const {
    return with_direction(op.transposed ? "conv_transpose2d" : "conv2d", op.backward);
  }
  std::string operator()(const ImageOp& op) const { return with_direction(word_of(op.function), op.backward); }
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

struct Shaper {
  std::string operator()(const Matmul& op) const {
    const std::string product = fmt::format("{}x{}x{} {} {}", op.m, op.n, op.k, word_of(op.layout), name_of(op.type));
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
  /// All sizes, and the type.
  std::string operator()(const auto& op) const {
    std::string shape;
    const auto add = [&]<typename Value>(const Value& value) {
      if constexpr (std::is_same_v<Value, std::int64_t>) shape += fmt::format("{}{}", shape.empty() ? "" : "x", value);
    };
    if constexpr (requires { op.cols; }) shape = fmt::format("{}x{}", op.rows, op.cols);
    else std::apply([&](const auto&... each) { (add(each), ...); }, fields(op).values);
    return fmt::format("{} {}", shape, name_of(op.type));
  }
  std::string operator()(const Softmax& op) const {
    if (op.input == op.output) return fmt::format("{}x{} {}", op.rows, op.cols, name_of(op.input));
    return fmt::format("{}x{} {}->{}", op.rows, op.cols, name_of(op.input), name_of(op.output));
  }
  std::string operator()(const Embedding& op) const {
    const std::string bags = op.bags > 0 ? fmt::format(" in {} bags", op.bags) : "";
    return fmt::format("{} of {}x{} {}{}", op.tokens, op.vocabulary, op.hidden, name_of(op.type), bags);
  }
  std::string operator()(const Attention& op) const {
    const std::string packed = op.lengths.any() ? fmt::format("{} sequences ", op.lengths.list->size()) : "";
    return fmt::format("{}x{}x{}x{} {}{}{}{}", op.batch, op.heads, op.seq_q, op.head_dim, packed,
                       op.causal ? "causal " : "", op.bias ? "masked " : "", name_of(op.type));
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
  std::size_t seed = op.index();
  std::visit(
      [&](const auto& held) {
        std::apply([&](const auto&... each) { (FieldHash{seed}(each), ...); }, fields(held).values);
      },
      op);
  return seed;
}
std::string name_of(const Op& op) { return std::visit(Namer{}, op); }
std::string shape_of(const Op& op) { return std::visit(Shaper{}, op); }

}  // namespace ridgeline
