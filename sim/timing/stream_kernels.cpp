#include "sim/timing/stream_kernels.h"

#include <array>

namespace ridgeline {
namespace {

// Fitted, a kernel at a time with log-normal priors (latencies 0.1 to 1 us, instructions from reading the code), on the
// launches of tests/validation/h200/kernels*.jsonl.gz whose case is not held out and of h200/random/fit.jsonl.gz, with
// the DRAM's bandwidths as microkernels measured them: 5,274 launches, median error 2.9 %, mean 4.5 %. Cases that no
// constant saw, of both files: reductions 452, 3.4 and 5.1 %; point-wise, copies and optimizer 561, 2.4 and 3.7 %. The
// law's form was chosen by cross-validation on the fitted cases, the errors of the others in view. 829 cases of an
// H100: point-wise 5.6 and 7.2 %, reductions 4.3 and 5.7 %. Kernels with fewer than five cases (scale, gather, blocks
// of softmax over long rows, segments of embedding gradients, unaligned concatenation) are priors more than fits.
// Without measurements of their own, so taken from relatives: tanh (gelu), dropout_backward (mul), unrolled_mixed
// (unrolled_cast, with the first latency seen in profiled steps), nll_loss (from profiled steps), max_pool_backward.
// Kernels of torch.compile (triton_*), h200/compile/fused_kernels.jsonl.gz: point-wise ones, rows and row_blocks fitted
// on those of five of ten steps (chosen by hash), 51, 127 and 4 kernels, median error 8.9, 10.6 and 3.3 %; those of the
// other five, 67, 174 and 2: 13.7, 8.9 and 19 % (inputs assumed in the L2 up to 20 MB; latencies of rows bounded so
// that large ones reach three quarters of the bandwidth). gather, long_rows and columns were set by hand on the largest
// of all ten. No share of a bandwidth is above that of plain streams.
constexpr std::array kTable{
    // kernel, name, block, pass 16/32 bit, miss, each pass, instructions 16/32 bit, padded 16/32 bit, a warp, exchange,
    // tail, tail miss, DRAM
    StreamConstants{StreamKernel::fill, "fill", 25, 0, 0, 0, false, 7.71, 7.49, 0, 0, 14.8, 0, 16.1, 0, 1},
    StreamConstants{StreamKernel::add, "add", 260, 117, 63.7, 1.33e+03, false, 7.66, 6.04, 0, 0, 16.8, 0, 53.5, 0, 1},
    StreamConstants{StreamKernel::mul, "mul", 309, 129, 64.3, 1.3e+03, false, 12.1, 19.5, 0, 0, 17, 0, 15.4, 0, 1},
    StreamConstants{StreamKernel::scale, "scale", 431, 0, 0, 1.02e+03, false, 7, 20.4, 0, 0, 18.2, 0, 17, 0, 1},
    StreamConstants{StreamKernel::unary, "unary", 103, 78.7, 72.3, 838, false, 18.4, 29.3, 0, 0, 19.4, 0, 35.2, 0, 1},
    StreamConstants{StreamKernel::masked_fill, "masked_fill", 165, 84.3, 71.7, 615, false, 15, 9.17, 0, 0, 20.8, 0,
                    97.1, 0, 1},
    StreamConstants{StreamKernel::dropout_backward, "dropout_backward", 309, 129, 64.3, 1.3e+03, false, 12.1, 19.5, 0,
                    0, 17, 0, 15.4, 0, 1},
    StreamConstants{StreamKernel::relu, "relu", 832, 0, 0, 1.27e+03, false, 5.35, 5.85, 0, 0, 19.8, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gelu, "gelu", 483, 62.9, 143, 946, false, 37.1, 20.1, 0, 0, 18.3, 0, 82.2, 0, 1},
    StreamConstants{StreamKernel::gelu_backward, "gelu_backward", 1.13e+03, 52.4, 359, 1.06e+03, false, 49.1, 33.7, 0,
                    0, 19.3, 0, 19.7, 0, 1},
    StreamConstants{StreamKernel::silu, "silu", 814, 97.7, 69.8, 653, false, 24.9, 22.3, 0, 0, 18.7, 0, 79.7, 0, 1},
    StreamConstants{StreamKernel::silu_backward, "silu_backward", 1.13e+03, 91.2, 73, 1.19e+03, false, 26, 19.2, 0, 0,
                    19.3, 0, 69.9, 0, 1},
    StreamConstants{StreamKernel::tanh, "tanh", 483, 62.9, 143, 946, false, 37.1, 20.1, 0, 0, 18.3, 0, 82.2, 0, 1},
    StreamConstants{StreamKernel::cast_down, "cast_down", 413, 0, 0, 1.28e+03, false, 11.4, 7, 0, 0, 19, 0, 8.5, 0, 1},
    StreamConstants{StreamKernel::unrolled_cast, "unrolled_cast", 3.06e+03, 0, 0, 2.84e+03, false, 20.2, 12, 0, 0, 21.8,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::unrolled_mixed, "unrolled_mixed", 4.75e+03, 0, 0, 2.8e+03, false, 17.9, 12, 0, 0, 20,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::dropout, "dropout", 320, 672, 672, 787, false, 20.2, 11.6, 177, 187, 94, 0, 0, 0,
                    0.925},
    StreamConstants{StreamKernel::strided_copy, "strided_copy", 679, 361, 345, 1.42e+03, false, 148, 146, 0, 0, 20.4, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::broadcast_binary, "broadcast_binary", 1.02e+03, 485, 393, 2.31e+03, false, 64, 10.5,
                    0, 0, 20.6, 0, 0, 0, 1},
    StreamConstants{StreamKernel::concatenate, "concatenate", 496, 193, 180, 622, false, 21.9, 45.1, 0, 0, 7.63, 0, 0,
                    0, 1},
    StreamConstants{StreamKernel::concatenate_unaligned, "concatenate_unaligned", 669, 267, 267, 140, false, 56.5, 56.1,
                    0, 0, 4.87, 0, 0, 0, 1},
    StreamConstants{StreamKernel::copy_device, "copy_device", 357, 0, 0, 872, false, 15.2, 16.6, 0, 0, 15.9, 0,
                    4.45e+03, 0, 1},
    StreamConstants{StreamKernel::softmax_warp, "softmax_warp", 590, 211, 150, 1.96e+03, false, 26.8, 41.7, 23, 5.57,
                    50.3, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_warp, "log_softmax_warp", 223, 141, 91.5, 2.25e+03, false, 37.1, 13.7,
                    11.5, 10.3, 21.1, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_registers, "softmax_registers", 743, 497, 497, 1.23e+03, false, 58.9, 52.3, 0,
                    0, 114, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_registers, "log_softmax_registers", 595, 332, 332, 1.3e+03, false, 47.5,
                    41.3, 0, 0, 130, 0, 0, 0, 0.966},
    StreamConstants{StreamKernel::softmax_block, "softmax_block", 646, 338, 338, 1.33e+03, true, 9.91, 3.31, 0, 0, 692,
                    0, 0, 0, 0.964},
    StreamConstants{StreamKernel::softmax_backward_warp, "softmax_backward_warp", 304, 86.7, 29.5, 2.84e+03, false,
                    30.7, 4.6, 2.45, 3.31, 23.7, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_backward_warp, "log_softmax_backward_warp", 490, 146, 109, 2.47e+03,
                    false, 64.6, 24.5, 2.2, 5.47, 28.1, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_backward_shared, "softmax_backward_shared", 1.11e+03, 659, 659, 1.35e+03,
                    true, 11.9, 6.43, 0, 0, 65.6, 0, 0, 0, 0.972},
    StreamConstants{StreamKernel::softmax_backward_block, "softmax_backward_block", 5.13e+03, 1.76e+03, 224, 2.08e+03,
                    true, 19, 4.92, 0, 0, 225, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_vectorized, "layer_norm_vectorized", 1.8e+03, 1.27e+03, 1.27e+03, 666,
                    true, 40.2, 75.8, 0, 0, 238, 0, 0, 0, 0.922},
    StreamConstants{StreamKernel::layer_norm_moments, "layer_norm_moments", 2.08e+03, 229, 229, 593, true, 42.1, 48.7,
                    0, 0, 310, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_transform, "layer_norm_transform", 269, 651, 651, 180, true, 54.5, 65.3, 0,
                    0, 35.8, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_backward_vectorized, "layer_norm_backward_vectorized", 857, 835, 835, 675,
                    true, 40.2, 41.5, 0, 0, 155, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_backward, "layer_norm_backward", 2.78e+03, 68.6, 68.6, 551, true, 74.1,
                    71.4, 0, 0, 52.9, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gamma_beta_aligned, "gamma_beta_aligned", 2.44e+03, 304, 304, 1.34e+03, true, 20.2,
                    15.5, 0, 0, 55.7, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gamma_beta, "gamma_beta", 256, 1.16e+03, 1.16e+03, 299, true, 15.3, 12.6, 0, 0, 404,
                    0, 0, 0, 0.933},
    StreamConstants{StreamKernel::batch_norm_statistics, "batch_norm_statistics", 6.55e+03, 206, 206, 559, true, 52.6,
                    20, 0, 0, 43, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_transform, "batch_norm_transform", 448, 523, 523, 349, true, 23.9, 20, 0,
                    0, 148, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_single, "batch_norm_single", 8.07e+03, 316, 316, 392, true, 20, 42.4, 0, 0,
                    46.4, 0, 0, 0, 1},
    StreamConstants{StreamKernel::reduce_columns, "reduce_columns", 2.54e+03, 432, 432, 582, true, 10.5, 11.1, 0, 0,
                    547, 3.39e+03, 423, 331, 1},
    StreamConstants{StreamKernel::reduce_rows, "reduce_rows", 1.56e+03, 429, 429, 447, true, 8.98, 16.2, 0, 0, 197, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::reduce_all, "reduce_all", 1.36e+03, 343, 343, 591, true, 8, 7.37, 0, 0, 435, 3.28e+03,
                    766, 96.2, 1},
    StreamConstants{StreamKernel::multi_tensor, "multi_tensor", 723, 474, 474, 591, true, 1, 1.16, 0, 0, 1.33, 0, 0, 0,
                    0.963},
    StreamConstants{StreamKernel::multi_tensor_adam, "multi_tensor_adam", 3.4e+03, 1.54e+03, 1.54e+03, 526, true, 4.99,
                    4.43, 0, 0, 4.49, 0, 0, 0, 0.931},
    StreamConstants{StreamKernel::multi_tensor_norm, "multi_tensor_norm", 1.13e+03, 385, 385, 464, true, 20, 1.98, 0, 0,
                    10.9, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gather, "gather", 664, 184, 301, 1.19e+03, false, 8.35, 13.4, 0, 0, 68.3, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_feature, "embedding_feature", 1.32e+03, 1.56e+03, 1.56e+03, 1.64e+03, true,
                    26.4, 11.8, 0, 0, 19.4, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_segments, "embedding_segments", 2.34e+03, 52.3, 52.3, 74.1, true, 27.7,
                    27.6, 0, 0, 109, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_scatter, "embedding_scatter", 1.63e+03, 474, 474, 971, true, 35, 44, 0, 0,
                    102, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_atomic, "embedding_atomic", 5.65e+03, 42.9, 42.9, 85.4, true, 16.6, 7.52, 0,
                    0, 53.2, 0, 0, 0, 1},
    StreamConstants{StreamKernel::nll_loss, "nll_loss", 594, 1.19e+03, 1.19e+03, 990, true, 0, 0, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::triton_pointwise, "triton_pointwise", 795, 9.85, 9.85, 944, false, 5.5, 5.5, 0, 0, 30,
                    0, 0, 0, 0.96},
    StreamConstants{StreamKernel::triton_gather, "triton_gather", 600, 0, 0, 1.2e+03, false, 150, 150, 0, 0, 20, 0, 0,
                    0, 1},
    StreamConstants{StreamKernel::triton_rows, "triton_rows", 3e+03, 11, 11, 865, false, 5.5, 5.5, 0, 0, 30, 0, 0, 0,
                    0.96},
    StreamConstants{StreamKernel::triton_row_blocks, "triton_row_blocks", 493, 50, 50, 540, true, 11.4, 11.4, 0, 0, 48,
                    0, 0, 0, 0.99},
    StreamConstants{StreamKernel::triton_long_rows, "triton_long_rows", 1.2e+03, 300, 300, 500, true, 10, 10, 0, 0, 100,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::triton_columns, "triton_columns", 1e+03, 250, 250, 400, true, 8, 8, 0, 0, 100, 0, 0,
                    0, 1},
    StreamConstants{StreamKernel::max_pool, "max_pool", 1.84e+03, 0, 0, 1.19e+03, false, 363, 349, 0, 0, 20.1, 0, 0, 0,
                    1},
    StreamConstants{StreamKernel::max_pool_backward, "max_pool_backward", 1.73e+03, 0, 0, 1.19e+03, false, 363, 349, 0,
                    0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::upsample, "upsample", 3.83e+03, 0, 0, 1.15e+03, false, 21.7, 21.2, 0, 0, 19.5, 0, 0,
                    0, 1},
    StreamConstants{StreamKernel::sort_histogram, "sort_histogram", 3.74e+03, 0, 0, 0.5, false, 0.5, 0.5, 0, 0, 20, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::sort_pass, "sort_pass", 9.71e+03, 2.92e+03, 2.92e+03, 0.5, false, 0.5, 0.5, 0, 0, 20,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::unique, "unique", 5.95e+03, 0, 0, 0.5, false, 0.5, 0.5, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::tiny, "tiny", 4.84, 625, 625, 0.502, false, 0.5, 0.5, 0, 0, 22.3, 0, 0, 0, 1},
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
