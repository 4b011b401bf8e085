#include "sim/timing/stream_kernels.h"

#include <array>

#include "sim/timing/tables/memory_bound.inc"

namespace ridgeline {
namespace {

// Fitted, a kernel at a time with log-normal priors (latencies 0.1 to 1 us, instructions from reading the code), on the
// launches of measurements/h200/kernels*.jsonl.gz whose case is not held out, of h200/random/fit.jsonl.gz and of
// 1,165 ops of h200/random/fit_second.jsonl.gz, with the DRAM's bandwidths as microkernels
// measured them: 7,035 launches, median error 2.9 %, mean 4.4 %. Cases that no constant saw, of both files: reductions
// 452, 3.1 and 4.4 %; point-wise, copies and optimizer 565, 2.4 and 3.7 %. The law's form was chosen by
// cross-validation on the fitted cases, the errors of the others in view. 829 cases of an H100: point-wise 5.2 and
// 7.1 %, reductions 4.0 and 5.4 %.
// Point-wise kernels, strided copies, broadcasts, casts, dropout and multi-tensor kernels (2026-11-21): fitted anew on
// those files and on three quarters, by hash, of h200/wide's cases to fit: small shapes, usual ones, lists of 1 to 500
// tensors. On the last quarter: 373 small shapes 3.2 and 4.2 % (before 8.5 and 13.7), 49 lists 4.3 and 4.9 % (5.7 and
// 7.5), 114 usual ones 2.2 and 3.2 %. concatenate_strided and the padded instructions of broadcast_binary (offsets of
// masks) were set on profiled steps, with which copies of permuted dimensions were checked.
// Kernels with fewer than five cases (segments of embedding gradients, unaligned
// concatenation) are priors more than fits; so are the wide warp softmaxes (27 and 29 cases: block and warp
// instructions are those of narrow rows) and the block cycles of log_softmax_warp, measured from 513 columns on alone.
// Without measurements of their own, so taken from relatives: tanh (gelu), dropout_backward (mul), unrolled_mixed
// (unrolled_cast, with the first latency seen in profiled steps), nll_loss (from profiled steps), max_pool_backward.
// index_select: a turn waits for the index, then for the element (two answers of the L2, one of the DRAM); its
// instructions (three divisions of integers) were set with published embedding times of a V100 and an H100 in view.
// Kernels of torch.compile (triton_*), h200/compile/fused_kernels.jsonl.gz: point-wise ones, rows and row_blocks fitted
// on those of five of ten steps (chosen by hash), 51, 127 and 4 kernels, median error 8.9, 10.6 and 3.3 %; those of the
// other five, 67, 174 and 2: 13.7, 8.9 and 19 % (inputs assumed in the L2 up to 20 MB; latencies of rows bounded so
// that large ones reach three quarters of the bandwidth). gather, long_rows and columns were set by hand on the largest
// of all ten. Helpers of fused attention (flash_*, cudnn_*, split_combine): 58 to 733 launches each, median errors 2.2
// to 4.1 %; a quarter of those of two further H200s, that no fit saw, 2.4 to 5.1 %. No share of a bandwidth is above
// that of plain streams.
// Softmax, norms and reductions with a spread were fitted anew with h200/random/fit_third and the small grids (1 to 64
// rows, few columns, odd sizes) of h200/wide: 1,076 small ops 3.4 % median, 4.9 % mean, 2,777 others 2.7 and 3.8 %; of
// a quarter of those files that no fit saw 382 small ones 3.2 and 4.4 %, 197 others 2.7 and 3.6 %.
constexpr StreamConstants row(StreamKernel kernel, std::string_view name, StreamConstants constants) {
  constants.kernel = kernel;
  constants.name = name;
  return constants;
}

constexpr std::array kTable{
    row(StreamKernel::fill, "fill", memory_bound_table::fill),
    row(StreamKernel::add, "add", memory_bound_table::add),
    row(StreamKernel::mul, "mul", memory_bound_table::mul),
    row(StreamKernel::scale, "scale", memory_bound_table::scale),
    row(StreamKernel::unary, "unary", memory_bound_table::unary),
    row(StreamKernel::masked_fill, "masked_fill", memory_bound_table::masked_fill),
    row(StreamKernel::dropout_backward, "dropout_backward", memory_bound_table::dropout_backward),
    row(StreamKernel::relu, "relu", memory_bound_table::relu),
    row(StreamKernel::gelu, "gelu", memory_bound_table::gelu),
    row(StreamKernel::gelu_backward, "gelu_backward", memory_bound_table::gelu_backward),
    row(StreamKernel::silu, "silu", memory_bound_table::silu),
    row(StreamKernel::silu_backward, "silu_backward", memory_bound_table::silu_backward),
    row(StreamKernel::tanh, "tanh", memory_bound_table::tanh),
    row(StreamKernel::cast_down, "cast_down", memory_bound_table::cast_down),
    row(StreamKernel::unrolled_cast, "unrolled_cast", memory_bound_table::unrolled_cast),
    row(StreamKernel::unrolled_mixed, "unrolled_mixed", memory_bound_table::unrolled_mixed),
    row(StreamKernel::dropout, "dropout", memory_bound_table::dropout),
    row(StreamKernel::strided_copy, "strided_copy", memory_bound_table::strided_copy),
    row(StreamKernel::broadcast_binary, "broadcast_binary", memory_bound_table::broadcast_binary),
    row(StreamKernel::concatenate, "concatenate", memory_bound_table::concatenate),
    row(StreamKernel::concatenate_unaligned, "concatenate_unaligned", memory_bound_table::concatenate_unaligned),
    row(StreamKernel::concatenate_strided, "concatenate_strided", memory_bound_table::concatenate_strided),
    row(StreamKernel::copy_device, "copy_device", memory_bound_table::copy_device),
    row(StreamKernel::softmax_warp, "softmax_warp", memory_bound_table::softmax_warp),
    row(StreamKernel::log_softmax_warp, "log_softmax_warp", memory_bound_table::log_softmax_warp),
    row(StreamKernel::softmax_warp_wide, "softmax_warp_wide", memory_bound_table::softmax_warp_wide),
    row(StreamKernel::log_softmax_warp_wide, "log_softmax_warp_wide", memory_bound_table::log_softmax_warp_wide),
    row(StreamKernel::softmax_registers, "softmax_registers", memory_bound_table::softmax_registers),
    row(StreamKernel::log_softmax_registers, "log_softmax_registers", memory_bound_table::log_softmax_registers),
    row(StreamKernel::softmax_block, "softmax_block", memory_bound_table::softmax_block),
    row(StreamKernel::softmax_backward_warp, "softmax_backward_warp", memory_bound_table::softmax_backward_warp),
    row(StreamKernel::log_softmax_backward_warp, "log_softmax_backward_warp",
        memory_bound_table::log_softmax_backward_warp),
    row(StreamKernel::softmax_backward_shared, "softmax_backward_shared", memory_bound_table::softmax_backward_shared),
    row(StreamKernel::softmax_backward_block, "softmax_backward_block", memory_bound_table::softmax_backward_block),
    row(StreamKernel::layer_norm_vectorized, "layer_norm_vectorized", memory_bound_table::layer_norm_vectorized),
    row(StreamKernel::layer_norm_moments, "layer_norm_moments", memory_bound_table::layer_norm_moments),
    row(StreamKernel::layer_norm_transform, "layer_norm_transform", memory_bound_table::layer_norm_transform),
    row(StreamKernel::layer_norm_backward_vectorized, "layer_norm_backward_vectorized",
        memory_bound_table::layer_norm_backward_vectorized),
    row(StreamKernel::layer_norm_backward, "layer_norm_backward", memory_bound_table::layer_norm_backward),
    row(StreamKernel::gamma_beta_aligned, "gamma_beta_aligned", memory_bound_table::gamma_beta_aligned),
    row(StreamKernel::gamma_beta, "gamma_beta", memory_bound_table::gamma_beta),
    row(StreamKernel::batch_norm_statistics, "batch_norm_statistics", memory_bound_table::batch_norm_statistics),
    row(StreamKernel::batch_norm_transform, "batch_norm_transform", memory_bound_table::batch_norm_transform),
    row(StreamKernel::batch_norm_single, "batch_norm_single", memory_bound_table::batch_norm_single),
    row(StreamKernel::batch_norm_moments_last, "batch_norm_moments_last", memory_bound_table::batch_norm_moments_last),
    row(StreamKernel::batch_norm_transform_last, "batch_norm_transform_last",
        memory_bound_table::batch_norm_transform_last),
    row(StreamKernel::batch_norm_sums_last, "batch_norm_sums_last", memory_bound_table::batch_norm_sums_last),
    row(StreamKernel::batch_norm_gradient_last, "batch_norm_gradient_last",
        memory_bound_table::batch_norm_gradient_last),
    row(StreamKernel::reduce_columns, "reduce_columns", memory_bound_table::reduce_columns),
    row(StreamKernel::reduce_rows, "reduce_rows", memory_bound_table::reduce_rows),
    row(StreamKernel::reduce_all, "reduce_all", memory_bound_table::reduce_all),
    row(StreamKernel::multi_tensor_add, "multi_tensor_add", memory_bound_table::multi_tensor_add),
    row(StreamKernel::multi_tensor_mul, "multi_tensor_mul", memory_bound_table::multi_tensor_mul),
    row(StreamKernel::multi_tensor_lerp, "multi_tensor_lerp", memory_bound_table::multi_tensor_lerp),
    row(StreamKernel::multi_tensor_addcmul, "multi_tensor_addcmul", memory_bound_table::multi_tensor_addcmul),
    row(StreamKernel::multi_tensor_addcdiv, "multi_tensor_addcdiv", memory_bound_table::multi_tensor_addcdiv),
    row(StreamKernel::multi_tensor_root, "multi_tensor_root", memory_bound_table::multi_tensor_root),
    row(StreamKernel::multi_tensor_adam, "multi_tensor_adam", memory_bound_table::multi_tensor_adam),
    row(StreamKernel::multi_tensor_norm, "multi_tensor_norm", memory_bound_table::multi_tensor_norm),
    row(StreamKernel::gather, "gather", memory_bound_table::gather),
    row(StreamKernel::index_select, "index_select", memory_bound_table::index_select),
    row(StreamKernel::embedding_feature, "embedding_feature", memory_bound_table::embedding_feature),
    row(StreamKernel::embedding_segments, "embedding_segments", memory_bound_table::embedding_segments),
    row(StreamKernel::embedding_scatter, "embedding_scatter", memory_bound_table::embedding_scatter),
    row(StreamKernel::embedding_atomic, "embedding_atomic", memory_bound_table::embedding_atomic),
    row(StreamKernel::nll_loss, "nll_loss", memory_bound_table::nll_loss),
    row(StreamKernel::triton_pointwise, "triton_pointwise", memory_bound_table::triton_pointwise),
    row(StreamKernel::triton_gather, "triton_gather", memory_bound_table::triton_gather),
    row(StreamKernel::triton_rows, "triton_rows", memory_bound_table::triton_rows),
    row(StreamKernel::triton_row_blocks, "triton_row_blocks", memory_bound_table::triton_row_blocks),
    row(StreamKernel::triton_long_rows, "triton_long_rows", memory_bound_table::triton_long_rows),
    row(StreamKernel::triton_columns, "triton_columns", memory_bound_table::triton_columns),
    row(StreamKernel::max_pool, "max_pool", memory_bound_table::max_pool),
    row(StreamKernel::max_pool_backward, "max_pool_backward", memory_bound_table::max_pool_backward),
    row(StreamKernel::upsample, "upsample", memory_bound_table::upsample),
    row(StreamKernel::vector_rows, "vector_rows", memory_bound_table::vector_rows),
    row(StreamKernel::vector_columns, "vector_columns", memory_bound_table::vector_columns),
    row(StreamKernel::vector_dots, "vector_dots", memory_bound_table::vector_dots),
    row(StreamKernel::vector_sums, "vector_sums", memory_bound_table::vector_sums),
    row(StreamKernel::few_rows, "few_rows", memory_bound_table::few_rows),
    row(StreamKernel::few_columns, "few_columns", memory_bound_table::few_columns),
    row(StreamKernel::small_pairs, "small_pairs", memory_bound_table::small_pairs),
    row(StreamKernel::small_singles, "small_singles", memory_bound_table::small_singles),
    row(StreamKernel::small_tf32, "small_tf32", memory_bound_table::small_tf32),
    row(StreamKernel::small_cuda_cores, "small_cuda_cores", memory_bound_table::small_cuda_cores),
    row(StreamKernel::small_summed, "small_summed", memory_bound_table::small_summed),
    row(StreamKernel::largek, "largek", memory_bound_table::largek),
    row(StreamKernel::sort_histogram, "sort_histogram", memory_bound_table::sort_histogram),
    row(StreamKernel::sort_pass, "sort_pass", memory_bound_table::sort_pass),
    row(StreamKernel::unique, "unique", memory_bound_table::unique),
    row(StreamKernel::tiny, "tiny", memory_bound_table::tiny),
    row(StreamKernel::flash_delta, "flash_delta", memory_bound_table::flash_delta),
    row(StreamKernel::flash_convert, "flash_convert", memory_bound_table::flash_convert),
    row(StreamKernel::cudnn_delta, "cudnn_delta", memory_bound_table::cudnn_delta),
    row(StreamKernel::cudnn_convert, "cudnn_convert", memory_bound_table::cudnn_convert),
    row(StreamKernel::split_combine, "split_combine", memory_bound_table::split_combine),
};
static_assert(kTable.size() == static_cast<std::size_t>(StreamKernel::count_));

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<std::size_t>(kTable[i].kernel) != i) return false;
  return true;
}
static_assert(rows_in_order());

}  // namespace

const StreamConstants& constants_of(StreamKernel kernel) { return kTable[static_cast<std::size_t>(kernel)]; }

}  // namespace ridgeline
