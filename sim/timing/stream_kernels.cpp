#include "sim/timing/stream_kernels.h"

#include <array>

namespace ridgeline {
namespace {

// Fitted, a kernel at a time with log-normal priors (latencies 0.1 to 1 us, instructions from reading the code), on the
// launches of tests/validation/h200/kernels*.jsonl.gz whose case is not held out, of h200/random/fit.jsonl.gz and of
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
constexpr std::array kTable{
    // kernel, name, block, pass 16/32 bit, miss, each pass, first miss, instructions 16/32 bit, padded 16/32 bit,
    // a warp, exchange, tail, tail miss, DRAM, [spread], [overlap of few]
    StreamConstants{StreamKernel::fill, "fill", 25, 0, 0, 0, false, 0, 7.71, 7.49, 0, 0, 14.8, 0, 16.1, 0, 1},
    StreamConstants{StreamKernel::add, "add", 252, 216, 52.7, 1.3e+03, false, 0, 2.26, 3.25, 0, 0, 8.55, 244, 56.8, 0,
                    1, 0.2},
    StreamConstants{StreamKernel::mul, "mul", 324, 122, 67.4, 1.2e+03, false, 0, 3.19, 1.9, 0, 0, 7.1, 137, 45, 0, 1,
                    0.2},
    StreamConstants{StreamKernel::scale, "scale", 152, 0, 0, 1.13e+03, false, 0, 7, 11.6, 0, 0, 16.6, 551, 13.5, 0, 1,
                    0.2},
    StreamConstants{StreamKernel::unary, "unary", 111, 214, 61.3, 1.06e+03, false, 0, 12, 15, 0, 0, 16.7, 184, 32.1, 0,
                    1, 0.2},
    StreamConstants{StreamKernel::masked_fill, "masked_fill", 139, 110, 59.8, 269, false, 0, 16.7, 12.8, 0, 0, 22.9, 87,
                    86.8, 0, 1, 0.2},
    StreamConstants{StreamKernel::dropout_backward, "dropout_backward", 309, 129, 64.3, 1.3e+03, false, 0, 12.1, 19.5,
                    0, 0, 17, 137, 45, 0, 1, 0.2},
    StreamConstants{StreamKernel::relu, "relu", 832, 0, 0, 1.27e+03, false, 0, 5.35, 5.85, 0, 0, 19.8, 150, 50, 0, 1,
                    0.2},
    StreamConstants{StreamKernel::gelu, "gelu", 513, 73.7, 139, 809, false, 0, 36.8, 22.6, 0, 0, 17.9, 238, 142, 0, 1,
                    0.2},
    StreamConstants{StreamKernel::gelu_backward, "gelu_backward", 1.06e+03, 50.2, 604, 1.01e+03, false, 0, 49, 16.8, 0,
                    0, 17.8, 263, 19, 0, 1, 0.2},
    StreamConstants{StreamKernel::silu, "silu", 848, 258, 59.5, 577, false, 0, 24.1, 10.8, 0, 0, 16.6, 89.8, 132, 0, 1,
                    0.2},
    StreamConstants{StreamKernel::silu_backward, "silu_backward", 1.12e+03, 131, 61.9, 1.16e+03, false, 0, 24.2, 3.57,
                    0, 0, 12.7, 88.4, 151, 0, 1, 0.2},
    StreamConstants{StreamKernel::tanh, "tanh", 483, 62.9, 143, 946, false, 0, 37.1, 20.1, 0, 0, 18.3, 238, 142, 0, 1,
                    0.2},
    StreamConstants{StreamKernel::cast_down, "cast_down", 433, 0, 0, 1.2e+03, false, 0, 3.26, 7, 0, 0, 12.8, 97.5, 40.2,
                    0, 1, 0.2},
    StreamConstants{StreamKernel::unrolled_cast, "unrolled_cast", 15.6, 860, 860, 1.67e+03, false, 0, 69.2, 30, 0, 0,
                    21.3, 0, 0, 0, 1, 0.45},
    StreamConstants{StreamKernel::unrolled_mixed, "unrolled_mixed", 4.75e+03, 0, 0, 2.8e+03, false, 0, 17.9, 12, 0, 0,
                    20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::dropout, "dropout", 472, 573, 443, 1.09e+03, false, 0, 21.8, 1.88, 145, 209, 97.6, 0,
                    155, 0, 0.874, 0.45},
    StreamConstants{StreamKernel::strided_copy, "strided_copy", 326, 554, 553, 126, false, 0, 85.8, 98.6, 65.5, 56.9,
                    6.64, 0, 0, 0, 1, 0.5},
    StreamConstants{StreamKernel::broadcast_binary, "broadcast_binary", 516, 631, 445, 1.1e+03, false, 0, 70.3, 80.2, 7,
                    0, 17.5, 0, 0, 0, 1, 0.5},
    StreamConstants{StreamKernel::concatenate, "concatenate", 546, 154, 166, 675, false, 0, 22.6, 45.3, 0, 0, 2.02, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::concatenate_unaligned, "concatenate_unaligned", 669, 267, 267, 140, false, 0, 56.5,
                    56.1, 0, 0, 4.87, 0, 0, 0, 1},
    StreamConstants{StreamKernel::concatenate_strided, "concatenate_strided", 669, 60, 60, 140, false, 0, 122, 122, 0,
                    0, 4.87, 0, 0, 0, 1},
    StreamConstants{StreamKernel::copy_device, "copy_device", 428, 0, 0, 779, false, 0, 15.1, 2.72, 0, 0, 9.15, 0,
                    4.6e+03, 0, 1},
    StreamConstants{StreamKernel::softmax_warp, "softmax_warp", 436, 237, 182, 1.31e+03, false, 0, 23.9, 30.6, 24.2,
                    15.1, 79.7, 0, 0, 0, 1, 0.189},
    StreamConstants{StreamKernel::log_softmax_warp, "log_softmax_warp", 580, 131, 79.4, 1.52e+03, false, 0, 19.7, 7.72,
                    21.6, 15.6, 23.6, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_warp_wide, "softmax_warp_wide", 1.19e+03, 222, 163, 3.25e+03, false, 0, 51.1,
                    27.3, 11.5, 2.01, 54.1, 0, 0, 0, 1, 0.0878},
    StreamConstants{StreamKernel::log_softmax_warp_wide, "log_softmax_warp_wide", 580, 124, 88.2, 2.44e+03, false, 0,
                    59.6, 9.89, 3, 3, 23.6, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_registers, "softmax_registers", 307, 538, 535, 1.15e+03, false, 0, 55, 50.4,
                    0, 0, 150, 0, 0, 0, 1, 0.394},
    StreamConstants{StreamKernel::log_softmax_registers, "log_softmax_registers", 446, 374, 374, 1.27e+03, false, 0, 43,
                    36.7, 0, 0, 149, 0, 0, 0, 0.962},
    StreamConstants{StreamKernel::softmax_block, "softmax_block", 2.08e+03, 1.5e+03, 1.75e+03, 578, true, 0, 27.4,
                    0.755, 0, 0, 320, 0, 0, 0, 0.966, 0.149, 2.6},
    StreamConstants{StreamKernel::softmax_backward_warp, "softmax_backward_warp", 256, 105, 36.6, 2.53e+03, false, 0,
                    16.5, 7.25, 8.9, 5.8, 85.5, 0, 0, 0, 1, 0.388},
    StreamConstants{StreamKernel::log_softmax_backward_warp, "log_softmax_backward_warp", 541, 158, 110, 2.36e+03,
                    false, 0, 52.4, 29.1, 6.41, 3.35, 11, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_backward_shared, "softmax_backward_shared", 1.36e+03, 576, 576, 1.44e+03,
                    true, 0, 12.7, 3.01, 0, 0, 24.3, 0, 0, 0, 0.975},
    StreamConstants{StreamKernel::softmax_backward_block, "softmax_backward_block", 879, 1.13e+03, 1.32e+03, 1e+03,
                    true, 0, 31.3, 15.2, 0, 0, 121, 0, 0, 0, 1, 0.41},
    StreamConstants{StreamKernel::layer_norm_vectorized, "layer_norm_vectorized", 1.8e+03, 1.24e+03, 1.36e+03, 479,
                    true, 591, 42.6, 74.3, 0, 0, 223, 0, 0, 0, 1, 0.105},
    StreamConstants{StreamKernel::layer_norm_moments, "layer_norm_moments", 1.76e+03, 496, 506, 283, true, 0, 49.9,
                    55.9, 0, 0, 297, 0, 0, 0, 1, 0.13},
    StreamConstants{StreamKernel::layer_norm_transform, "layer_norm_transform", 11.2, 559, 527, 39.2, true, 0, 66.3,
                    76.7, 0, 0, 26.2, 0, 0, 0, 1, 0.5},
    StreamConstants{StreamKernel::layer_norm_backward_vectorized, "layer_norm_backward_vectorized", 805, 830, 888, 656,
                    true, 0, 39.7, 31.9, 0, 0, 156, 0, 0, 0, 1, 0.302},
    StreamConstants{StreamKernel::layer_norm_backward, "layer_norm_backward", 1.67e+03, 297, 307, 370, true, 0, 57.1,
                    54.5, 0, 0, 179, 0, 0, 0, 1, 0.265},
    StreamConstants{StreamKernel::gamma_beta_aligned, "gamma_beta_aligned", 2.05e+03, 1.08e+03, 1.08e+03, 910, true, 0,
                    12.4, 8.74, 0, 0, 49.1, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gamma_beta, "gamma_beta", 415, 1.01e+03, 857, 273, true, 5.47e+03, 19, 18.2, 0, 0,
                    409, 0, 0, 0, 1, 0.339},
    StreamConstants{StreamKernel::batch_norm_statistics, "batch_norm_statistics", 6.55e+03, 206, 206, 559, true, 0,
                    52.6, 20, 0, 0, 43, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_transform, "batch_norm_transform", 448, 523, 523, 349, true, 0, 23.9, 20,
                    0, 0, 148, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_single, "batch_norm_single", 4.33e+03, 319, 319, 224, true, 0, 87.5, 87.5,
                    0, 0, 0, 0, 0, 0, 1},
    StreamConstants{StreamKernel::reduce_columns, "reduce_columns", 2.35e+03, 545, 529, 511, true, 0, 15.7, 18.1, 0, 0,
                    5.24, 3.6e+03, 439, 318, 1, 0.305},
    StreamConstants{StreamKernel::reduce_rows, "reduce_rows", 1.76e+03, 508, 479, 287, true, 1.72e+03, 7.96, 15.5, 0, 0,
                    122, 0, 0, 0, 1, 0.197},
    StreamConstants{StreamKernel::reduce_all, "reduce_all", 1.66e+03, 350, 386, 517, true, 0, 7.39, 7.77, 0, 0, 398,
                    2.4e+03, 1.25e+03, 101, 1, 0.11},
    StreamConstants{StreamKernel::multi_tensor_add, "multi_tensor_add", 272, 707, 707, 495, true, 0, 4.74, 4.74, 6.16,
                    6.16, 1, 0, 173, 0, 0.94, 0.3, 2.1},
    StreamConstants{StreamKernel::multi_tensor_mul, "multi_tensor_mul", 291, 563, 563, 563, true, 0, 4.24, 4.24, 5.51,
                    5.51, 1, 0, 152, 0, 0.94, 0.3, 2.1},
    StreamConstants{StreamKernel::multi_tensor_lerp, "multi_tensor_lerp", 333, 596, 596, 587, true, 0, 19.1, 19.1, 24.8,
                    24.8, 1, 0, 278, 0, 0.94, 0.3, 2.1},
    StreamConstants{StreamKernel::multi_tensor_addcmul, "multi_tensor_addcmul", 483, 565, 565, 585, true, 0, 24.5, 24.5,
                    31.8, 31.8, 1, 0, 554, 0, 0.94, 0.3, 2.1},
    StreamConstants{StreamKernel::multi_tensor_addcdiv, "multi_tensor_addcdiv", 500, 879, 879, 516, true, 0, 29.8, 29.8,
                    38.7, 38.7, 1, 0, 1.18e+03, 0, 0.94, 0.3, 2.1},
    StreamConstants{StreamKernel::multi_tensor_root, "multi_tensor_root", 306, 787, 787, 417, true, 0, 26.8, 26.8, 34.9,
                    34.9, 1, 0, 226, 0, 0.94, 0.3, 2.1},
    StreamConstants{StreamKernel::multi_tensor_adam, "multi_tensor_adam", 2.47e+03, 1.46e+03, 1.46e+03, 816, true, 0,
                    72.6, 72.6, 94.4, 94.4, 1, 0, 2.11e+03, 0, 0.91, 0.3, 2.6},
    StreamConstants{StreamKernel::multi_tensor_norm, "multi_tensor_norm", 1.02e+03, 520, 520, 380, true, 0, 2.05, 2.05,
                    2.66, 2.66, 1, 0, 379, 0, 0.984, 0.3, 2.1},
    StreamConstants{StreamKernel::gather, "gather", 760, 205, 274, 1.18e+03, false, 0, 3.64, 3.71, 0, 0, 88, 0, 0, 0,
                    1},
    StreamConstants{StreamKernel::index_select, "index_select", 600, 700, 700, 660, true, 0, 160, 160, 0, 0, 20, 0, 0,
                    0, 1},
    StreamConstants{StreamKernel::embedding_feature, "embedding_feature", 1.82e+03, 1.51e+03, 1.51e+03, 1.56e+03, true,
                    0, 32.1, 10.7, 0, 0, 14.2, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_segments, "embedding_segments", 2.56e+03, 14.7, 14.7, 16.6, true, 0, 32.3,
                    33.3, 0, 0, 93, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_scatter, "embedding_scatter", 1.86e+03, 490, 490, 885, true, 0, 37.2, 44.9,
                    0, 0, 74.9, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_atomic, "embedding_atomic", 5.65e+03, 42.9, 42.9, 85.4, true, 0, 16.6, 7.52,
                    0, 0, 53.2, 0, 0, 0, 1},
    StreamConstants{StreamKernel::nll_loss, "nll_loss", 594, 1.19e+03, 1.19e+03, 990, true, 0, 0, 0, 0, 0, 20, 0, 0, 0,
                    1},
    StreamConstants{StreamKernel::triton_pointwise, "triton_pointwise", 795, 9.85, 9.85, 944, false, 0, 5.5, 5.5, 0, 0,
                    30, 0, 0, 0, 0.96},
    StreamConstants{StreamKernel::triton_gather, "triton_gather", 600, 0, 0, 1.2e+03, false, 0, 150, 150, 0, 0, 20, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::triton_rows, "triton_rows", 3e+03, 11, 11, 865, false, 0, 5.5, 5.5, 0, 0, 30, 0, 0, 0,
                    0.96},
    StreamConstants{StreamKernel::triton_row_blocks, "triton_row_blocks", 493, 50, 50, 540, true, 0, 11.4, 11.4, 0, 0,
                    48, 0, 0, 0, 0.99},
    StreamConstants{StreamKernel::triton_long_rows, "triton_long_rows", 1.2e+03, 300, 300, 500, true, 0, 10, 10, 0, 0,
                    100, 0, 0, 0, 1},
    StreamConstants{StreamKernel::triton_columns, "triton_columns", 1e+03, 250, 250, 400, true, 0, 8, 8, 0, 0, 100, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::max_pool, "max_pool", 1.84e+03, 0, 0, 1.19e+03, false, 0, 363, 349, 0, 0, 20.1, 0, 0,
                    0, 1},
    StreamConstants{StreamKernel::max_pool_backward, "max_pool_backward", 1.73e+03, 0, 0, 1.19e+03, false, 0, 363, 349,
                    0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::upsample, "upsample", 706, 0, 0, 151, false, 0, 18.5, 24.9, 54.3, 57, 0, 0, 0, 0, 1},
    // Vectors and small products: fitted on three quarters, by hash, of h200/wide/products_fit.jsonl.gz, a kernel at a
    // time with the profiled shape given (median 3 to 10 %); largek and vector_sums by hand on 11 and 29 of them. The
    // quarter that no constant saw, with the shapes that the rules choose: 631 products, 8.8 and 16.4 %.
    StreamConstants{StreamKernel::vector_rows, "vector_rows", 1.61e+03, 198, 123, 0, false, 1.62e+03, 21.5, 21.5, 87,
                    87, 457, 0, 0, 0, 0.86},
    StreamConstants{StreamKernel::vector_columns, "vector_columns", 859, 229, 273, 0, false, 1.48e+03, 15.8, 15.8, 119,
                    119, 385, 0, 290, 0, 1},
    StreamConstants{StreamKernel::vector_dots, "vector_dots", 1.11e+03, 198, 123, 0, false, 1.62e+03, 6.7, 6.7, 0, 0,
                    17.7, 0, 0, 0, 1},
    StreamConstants{StreamKernel::vector_sums, "vector_sums", 1.2e+03, 193, 193, 0, false, 0, 0, 0, 0, 0, 17.7, 0, 0, 0,
                    1},
    StreamConstants{StreamKernel::few_rows, "few_rows", 1370, 149, 149, 0, false, 1520, 13.8, 13.8, 8.84, 8.84, 508, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::few_columns, "few_columns", 2110, 123, 123, 0, false, 1670, 26.5, 26.5, 1.32, 1.32,
                    37, 0, 0, 0, 1},
    StreamConstants{StreamKernel::small_pairs, "small_pairs", 1530, 206, 206, 0, false, 3130, 8.99, 8.99, 8.2, 8.2, 305,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::small_singles, "small_singles", 943, 517, 517, 0, false, 112, 19.9, 19.9, 6.96, 6.96,
                    783, 0, 0, 0, 1},
    StreamConstants{StreamKernel::small_tf32, "small_tf32", 1150, 81.8, 81.8, 0, false, 1000, 14.7, 14.7, 6.73, 6.73,
                    2220, 0, 0, 0, 1},
    StreamConstants{StreamKernel::small_cuda_cores, "small_cuda_cores", 1190, 19.3, 19.3, 0, false, 1910, 18.4, 18.4,
                    2.02, 2.02, 1330, 0, 0, 0, 1},
    StreamConstants{StreamKernel::small_summed, "small_summed", 2460, 117, 117, 0, false, 2500, 37.3, 37.3, 1.47, 1.47,
                    76.4, 0, 0, 0, 1},
    StreamConstants{StreamKernel::largek, "largek", 2400, 139, 139, 0, false, 1500, 1, 1, 1, 1, 100, 0, 1780, 0, 1},
    StreamConstants{StreamKernel::sort_histogram, "sort_histogram", 3.74e+03, 0, 0, 0.5, false, 0, 0.5, 0.5, 0, 0, 20,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::sort_pass, "sort_pass", 9.71e+03, 2.92e+03, 2.92e+03, 0.5, false, 0, 0.5, 0.5, 0, 0,
                    20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::unique, "unique", 5.95e+03, 0, 0, 0.5, false, 0, 0.5, 0.5, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::tiny, "tiny", 4.84, 625, 625, 0.502, false, 0, 0.5, 0.5, 0, 0, 22.3, 0, 0, 0, 1},
    StreamConstants{StreamKernel::flash_delta, "flash_delta", 308, 1460, 1460, 507, false, 0, 7.67, 7.67, 0, 0, 460, 0,
                    0, 0, 0.941},
    StreamConstants{StreamKernel::flash_convert, "flash_convert", 638, 3340, 3340, 744, false, 0, 11.9, 11.9, 0, 0, 163,
                    0, 0, 0, 0.855},
    StreamConstants{StreamKernel::cudnn_delta, "cudnn_delta", 1200, 303, 303, 1660, false, 0, 12.1, 12.1, 0, 0, 55.7, 0,
                    0, 0, 0.911},
    StreamConstants{StreamKernel::cudnn_convert, "cudnn_convert", 824, 293, 293, 2740, false, 0, 15.1, 15.1, 0, 0, 498,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::split_combine, "split_combine", 2440, 914, 914, 946, false, 0, 3.98, 3.98, 0, 0, 616,
                    0, 0, 0, 1},
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
