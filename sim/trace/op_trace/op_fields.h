// The fields of every op by name: one list serves writing, reading and checking of op traces.
//
// `for_each_field(op, visit)` calls visit("m", op.m) and so on; visitors overload on the field's type. `kind_names` are
// the alternatives of Op in order. A new op is one line here.
#pragma once

#include <array>
#include <concepts>
#include <span>
#include <string_view>
#include <type_traits>

#include "sim/workload/op.h"

namespace ridgeline::trace {

inline constexpr std::array<std::string_view, std::variant_size_v<Op>> kKindNames{
    "matmul",    "pointwise",    "copy",     "softmax",      "norm",        "reduction", "dropout",
    "embedding", "attention",    "nll_loss", "multi_tensor", "convolution", "image",     "memset",
    "unknown",   "fused_kernel", "sort",     "collective",   "resampling"};

inline constexpr std::array<std::string_view, 4> kLayoutNames{"nn", "nt", "tn", "tt"};
inline constexpr std::array<std::string_view, 5> kWalkNames{"contiguous", "broadcast_row", "broadcast", "strided",
                                                            "transposed"};
inline constexpr std::array<std::string_view, 9> kCopyNames{
    "contiguous",     "permute",        "transpose",          "concatenate",       "concatenate_strided",
    "host_to_device", "device_to_host", "pageable_to_device", "device_to_pageable"};
inline constexpr std::array<std::string_view, 7> kReductionNames{"sum_rows", "sum_cols",  "mean_cols", "sum_all",
                                                                 "norm_all", "scan_rows", "scan_cols"};
inline constexpr std::array<std::string_view, 4> kAccumulatorNames{"number", "place", "moments", "groups"};
inline constexpr std::array<std::string_view, 10> kResamplingNames{
    "nearest",         "linear",       "bilinear",      "bicubic", "reflection_pad",
    "replication_pad", "grid_nearest", "grid_bilinear", "unfold",  "fold"};
inline constexpr std::array<std::string_view, 4> kBackendNames{"flash", "cudnn", "efficient", "math"};
inline constexpr std::array<std::string_view, 5> kImageNames{"batch_norm", "relu", "max_pool2d", "upsample_nearest2d",
                                                             "avg_pool2d"};
inline constexpr std::array<std::string_view, 3> kGradientsNames{"both", "input", "weight"};
inline constexpr std::array<std::string_view, 40> kPointwiseNames{
    "add",           "add_in_place",  "mul",           "scale",
    "gelu",          "gelu_tanh",     "gelu_backward", "gelu_tanh_backward",
    "silu",          "silu_backward", "relu",          "relu_backward",
    "tanh",          "tanh_backward", "pow2",          "square_root",
    "reciprocal",    "divide",        "equal",         "masked_fill",
    "cast",          "fill",          "arange",        "dropout_backward",
    "clamp",         "rope",          "complex_mul",   "power",
    "index",         "gather",        "roll",          "index_add",
    "scatter_add",   "special",       "random",        "index_few",
    "index_add_few", "triangle",      "nonzero",       "other"};
inline constexpr std::array<std::string_view, 14> kMultiTensorNames{
    "add",  "mul",     "lerp",        "addcmul",    "addcdiv",   "square_root", "divide",
    "norm", "unscale", "fused_adamw", "fused_adam", "fused_sgd", "add_scalar",  "copy"};
static_assert(kPointwiseNames[static_cast<std::size_t>(PointwiseFunction::cast)] == "cast");
static_assert(kPointwiseNames.size() == static_cast<std::size_t>(PointwiseFunction::other) + 1);
static_assert(kMultiTensorNames.size() == static_cast<std::size_t>(MultiTensorFunction::copy) + 1);

inline constexpr std::array<std::string_view, 4> kFusedShapeNames{"pointwise", "rows", "long_rows", "columns"};

inline std::span<const std::string_view> names_of(FusedKernel::Shape) { return kFusedShapeNames; }
inline constexpr std::array<std::string_view, 3> kSparseNames{"none", "a", "b"};
inline constexpr std::array<std::string_view, 4> kScalingNames{"none", "tensor_fast", "tensor", "rows_fast"};
inline std::span<const std::string_view> names_of(Scaling) { return kScalingNames; }
inline std::span<const std::string_view> names_of(SparseOperand) { return kSparseNames; }
inline constexpr std::array<std::string_view, 4> kInstructionsNames{"none", "wgmma", "mma_sync", "simt"};
inline std::span<const std::string_view> names_of(LibraryKernel::Instructions) { return kInstructionsNames; }
inline std::span<const std::string_view> names_of(Layout) { return kLayoutNames; }
inline std::span<const std::string_view> names_of(Walk) { return kWalkNames; }
inline std::span<const std::string_view> names_of(CopyKind) { return kCopyNames; }
inline std::span<const std::string_view> names_of(ReductionKind) { return kReductionNames; }
inline std::span<const std::string_view> names_of(Accumulator) { return kAccumulatorNames; }
inline std::span<const std::string_view> names_of(ResamplingFunction) { return kResamplingNames; }
inline std::span<const std::string_view> names_of(AttentionBackend) { return kBackendNames; }
inline std::span<const std::string_view> names_of(ImageFunction) { return kImageNames; }
inline std::span<const std::string_view> names_of(ConvolutionGradients) { return kGradientsNames; }
inline std::span<const std::string_view> names_of(PointwiseFunction) { return kPointwiseNames; }
inline constexpr std::array<std::string_view, 9> kCollectiveNames{"all_reduce", "all_gather", "reduce_scatter",
                                                                  "broadcast",  "reduce",     "all_to_all",
                                                                  "send_recv",  "barrier",    "peer_copy"};
inline constexpr std::array<std::string_view, 10> kGroupNames{
    "data", "replicate", "shard", "tensor", "pipeline", "context", "expert", "model", "embedding", "expert_data"};
inline std::span<const std::string_view> names_of(CollectiveKind) { return kCollectiveNames; }
inline std::span<const std::string_view> names_of(GroupKind) { return kGroupNames; }
inline std::span<const std::string_view> names_of(MultiTensorFunction) { return kMultiTensorNames; }

/// One overload an op; `O` is the op or the op const.
struct Fields {
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Matmul>
  static void visit(O& op, V&& v) {
    v("type", op.type), v("batch", op.batch), v("m", op.m), v("n", op.n), v("k", op.k);
    v("layout", op.layout), v("bias", op.bias), v.unless("sparse", op.sparse, SparseOperand::none);
    v.unless("scaling", op.scaling, Scaling::none);
    v.unless("instructions", op.ran.instructions, LibraryKernel::Instructions::none);
    v.unless("tile_m", op.ran.m, std::int64_t{0}), v.unless("tile_n", op.ran.n, std::int64_t{0});
    v.unless("tile_k", op.ran.k, std::int64_t{0}), v.unless("stages", op.ran.stages, std::int64_t{0});
    v.unless("splits", op.ran.splits, std::int64_t{0}), v.unless("summed", op.ran.summed, false);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Pointwise>
  static void visit(O& op, V&& v) {
    v("function", op.function), v("rows", op.rows), v("cols", op.cols), v("input_count", op.input_count);
    v("input0", op.inputs[0]), v("input1", op.inputs[1]), v("input2", op.inputs[2]);
    v("output", op.output), v("walk", op.walk);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Copy>
  static void visit(O& op, V&& v) {
    v("copy", op.kind), v("type", op.type), v("rows", op.rows), v("cols", op.cols), v("parts", op.parts);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Softmax>
  static void visit(O& op, V&& v) {
    v("log", op.log), v("backward", op.backward), v("input", op.input), v("output", op.output);
    v("rows", op.rows), v("cols", op.cols);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Norm>
  static void visit(O& op, V&& v) {
    v("rms", op.rms), v("backward", op.backward), v("bias", op.bias), v("type", op.type);
    v("rows", op.rows), v("cols", op.cols);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Reduction>
  static void visit(O& op, V&& v) {
    v("reduction", op.kind), v("type", op.type), v("rows", op.rows), v("cols", op.cols);
    v.unless("accumulator", op.accumulator, Accumulator::number);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Dropout>
  static void visit(O& op, V&& v) { v("type", op.type), v("elements", op.elements); }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Embedding>
  static void visit(O& op, V&& v) {
    v("backward", op.backward), v("type", op.type), v("tokens", op.tokens);
    v("vocabulary", op.vocabulary), v("hidden", op.hidden);
    v.unless("accumulates", op.accumulates, false);
    v.unless("bags", op.bags, std::int64_t{0});
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Attention>
  static void visit(O& op, V&& v) {
    v("backend", op.backend), v("backward", op.backward), v("causal", op.causal), v("dropout", op.dropout);
    v("type", op.type), v("batch", op.batch), v("heads", op.heads), v("kv_heads", op.kv_heads);
    v("seq_q", op.seq_q), v("seq_k", op.seq_k), v("head_dim", op.head_dim), v("head_major", op.head_major);
    v.unless("bias", op.bias, false);
    v.unless("lengths", op.lengths.list, decltype(op.lengths.list){});
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, NllLoss>
  static void visit(O& op, V&& v) {
    v("backward", op.backward), v("type", op.type), v("rows", op.rows), v("classes", op.classes);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, MultiTensor>
  static void visit(O& op, V&& v) {
    v("function", op.function), v("type", op.type), v("sizes", op.sizes);
    v("scalar_per_tensor", op.scalar_per_tensor);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Convolution>
  static void visit(O& op, V&& v) {
    v("backward", op.backward), v("channels_last", op.channels_last), v("transposed", op.transposed);
    v("type", op.type), v("batch", op.batch), v("in_channels", op.in_channels), v("size", op.size);
    v("out_channels", op.out_channels), v("kernel", op.kernel), v("stride", op.stride);
    constexpr auto kNone = LibraryKernel::Instructions::none;
    v.unless("instructions", op.ran.instructions, kNone), v.unless("transformed", op.ran.transformed, false);
    v.unless("weights_instructions", op.ran_weights.instructions, kNone);
    v.unless("weights_transformed", op.ran_weights.transformed, false);
    constexpr std::int64_t kAsHeight = 0;
    v.unless("groups", op.groups, std::int64_t{1}), v.unless("width", op.width, kAsHeight);
    v.unless("kernel_width", op.kernel_width, kAsHeight), v.unless("stride_width", op.stride_width, kAsHeight);
    v.unless("out_size", op.out_size, kAsHeight), v.unless("out_width", op.out_width, kAsHeight);
    v.unless("gradients", op.gradients, ConvolutionGradients::both);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, ImageOp>
  static void visit(O& op, V&& v) {
    v("function", op.function), v("backward", op.backward), v("channels_last", op.channels_last);
    v("type", op.type), v("batch", op.batch), v("channels", op.channels), v("size", op.size);
    constexpr std::int64_t kUsual = 0;
    v.unless("width", op.width, kUsual), v.unless("window", op.window, kUsual), v.unless("stride", op.stride, kUsual);
    v.unless("out_size", op.out_size, kUsual), v.unless("out_width", op.out_width, kUsual);
    v.unless("evaluation", op.evaluation, false);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Memset>
  static void visit(O& op, V&& v) { v("bytes", op.bytes); }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Sort>
  static void visit(O& op, V&& v) {
    v("type", op.type), v("rows", op.rows), v("cols", op.cols), v("kept", op.kept), v("key_bits", op.key_bits);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Resampling>
  static void visit(O& op, V&& v) {
    v("resampling", op.function), v("backward", op.backward), v("channels_last", op.channels_last);
    v("type", op.type), v("batch", op.batch), v("channels", op.channels), v("inputs", op.inputs);
    v("outputs", op.outputs), v("taps", op.taps);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, Collective>
  static void visit(O& op, V&& v) {
    v("collective", op.kind), v("group", op.group), v("type", op.type), v("ranks", op.ranks), v("bytes", op.bytes);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, UnknownOp>
  static void visit(O& op, V&& v) {
    v("name", op.name), v("read_bytes", op.read_bytes), v("written_bytes", op.written_bytes);
  }
  template <typename O, typename V>
  requires std::same_as<std::remove_const_t<O>, FusedKernel>
  static void visit(O& op, V&& v) {
    v("name", op.name), v("shape", op.shape), v("rows", op.rows), v("cols", op.cols), v("type", op.type);
    v("arithmetic", op.arithmetic), v("gathers", op.gathers), v("column_results", op.column_results);
    v("reads", op.reads), v("writes", op.writes);
  }
};

/// Calls `v(name, field)` for every field of the op held.
template <typename AnyOp, typename V>
void for_each_field(AnyOp& op, V&& v) {
  std::visit([&](auto& held) { Fields::visit(held, v); }, op);
}

}  // namespace ridgeline::trace
