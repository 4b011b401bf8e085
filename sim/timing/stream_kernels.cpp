#include "sim/timing/stream_kernels.h"

#include <array>

namespace ridgeline {
namespace {

// Fitted, a kernel at a time with log-normal priors (latencies 0.1 to 1 us, instructions from reading the code), on the
// launches of tests/validation/h200/kernels*.jsonl.gz whose case is not held out and of h200/random/fit.jsonl.gz, with
// the DRAM's bandwidths as microkernels measured them: 5,274 launches, median error 2.8 %, mean 4.4 %. Cases that no
// constant saw, of both files: reductions 452, 3.5 and 4.8 %; point-wise, copies and optimizer 561, 2.4 and 3.7 %. The
// law's form was chosen by cross-validation on the fitted cases, the errors of the others in view. 829 cases of an
// H100: point-wise 5.6 and 7.2 %, reductions 4.3 and 5.8 %. Kernels with fewer than five cases (scale, gather, blocks
// of softmax over long rows, segments of embedding gradients, unaligned concatenation) are priors more than fits; so
// are the wide warp softmaxes (15 and 17 cases: block and warp instructions are those of narrow rows) and the block
// cycles of log_softmax_warp, measured from 513 columns on alone.
// Without measurements of their own, so taken from relatives: tanh (gelu), dropout_backward (mul), unrolled_mixed
// (unrolled_cast, with the first latency seen in profiled steps), nll_loss (from profiled steps), max_pool_backward.
// Kernels of torch.compile (triton_*): set by hand on the largest of the 659 generated kernels of
// h200/compile/fused_kernels.jsonl.gz, none held out; whole steps check them (tests/study/compiled_steps_test.cpp).
constexpr std::array kTable{
    // kernel, name, block, pass 16/32 bit, miss, each pass, first miss, instructions 16/32 bit, padded 16/32 bit,
    // a warp, exchange, tail, tail miss, DRAM
    StreamConstants{StreamKernel::fill, "fill", 25, 0, 0, 0, false, 0, 7.71, 7.49, 0, 0, 14.8, 0, 16.1, 0, 1},
    StreamConstants{StreamKernel::add, "add", 260, 117, 63.7, 1.33e+03, false, 0, 7.66, 6.04, 0, 0, 16.8, 0, 53.5, 0,
                    1},
    StreamConstants{StreamKernel::mul, "mul", 309, 129, 64.3, 1.3e+03, false, 0, 12.1, 19.5, 0, 0, 17, 0, 15.4, 0, 1},
    StreamConstants{StreamKernel::scale, "scale", 431, 0, 0, 1.02e+03, false, 0, 7, 20.4, 0, 0, 18.2, 0, 17, 0, 1},
    StreamConstants{StreamKernel::unary, "unary", 103, 78.7, 72.3, 838, false, 0, 18.4, 29.3, 0, 0, 19.4, 0, 35.2, 0,
                    1},
    StreamConstants{StreamKernel::masked_fill, "masked_fill", 165, 84.3, 71.7, 615, false, 0, 15, 9.17, 0, 0, 20.8, 0,
                    97.1, 0, 1},
    StreamConstants{StreamKernel::dropout_backward, "dropout_backward", 309, 129, 64.3, 1.3e+03, false, 0, 12.1, 19.5,
                    0, 0, 17, 0, 15.4, 0, 1},
    StreamConstants{StreamKernel::relu, "relu", 832, 0, 0, 1.27e+03, false, 0, 5.35, 5.85, 0, 0, 19.8, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gelu, "gelu", 483, 62.9, 143, 946, false, 0, 37.1, 20.1, 0, 0, 18.3, 0, 82.2, 0, 1},
    StreamConstants{StreamKernel::gelu_backward, "gelu_backward", 1.13e+03, 52.4, 359, 1.06e+03, false, 0, 49.1, 33.7,
                    0, 0, 19.3, 0, 19.7, 0, 1},
    StreamConstants{StreamKernel::silu, "silu", 814, 97.7, 69.8, 653, false, 0, 24.9, 22.3, 0, 0, 18.7, 0, 79.7, 0, 1},
    StreamConstants{StreamKernel::silu_backward, "silu_backward", 1.13e+03, 91.2, 73, 1.19e+03, false, 0, 26, 19.2, 0,
                    0, 19.3, 0, 69.9, 0, 1},
    StreamConstants{StreamKernel::tanh, "tanh", 483, 62.9, 143, 946, false, 0, 37.1, 20.1, 0, 0, 18.3, 0, 82.2, 0, 1},
    StreamConstants{StreamKernel::cast_down, "cast_down", 413, 0, 0, 1.28e+03, false, 0, 11.4, 7, 0, 0, 19, 0, 8.5, 0,
                    1},
    StreamConstants{StreamKernel::unrolled_cast, "unrolled_cast", 3.06e+03, 0, 0, 2.84e+03, false, 0, 20.2, 12, 0, 0,
                    21.8, 0, 0, 0, 1},
    StreamConstants{StreamKernel::unrolled_mixed, "unrolled_mixed", 4.75e+03, 0, 0, 2.8e+03, false, 0, 17.9, 12, 0, 0,
                    20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::dropout, "dropout", 320, 672, 672, 787, false, 0, 20.2, 11.6, 177, 187, 94, 0, 0, 0,
                    0.925},
    StreamConstants{StreamKernel::strided_copy, "strided_copy", 679, 361, 345, 1.42e+03, false, 0, 148, 146, 0, 0, 20.4,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::broadcast_binary, "broadcast_binary", 1.02e+03, 485, 393, 2.31e+03, false, 0, 64,
                    10.5, 0, 0, 20.6, 0, 0, 0, 1},
    StreamConstants{StreamKernel::concatenate, "concatenate", 496, 193, 180, 622, false, 0, 21.9, 45.1, 0, 0, 7.63, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::concatenate_unaligned, "concatenate_unaligned", 669, 267, 267, 140, false, 0, 56.5,
                    56.1, 0, 0, 4.87, 0, 0, 0, 1},
    StreamConstants{StreamKernel::copy_device, "copy_device", 357, 0, 0, 872, false, 0, 15.2, 16.6, 0, 0, 15.9, 0,
                    4.45e+03, 0, 1},
    StreamConstants{StreamKernel::softmax_warp, "softmax_warp", 580, 220, 159, 1.53e+03, false, 0, 26.9, 30.3, 23.2,
                    17.3, 52.5, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_warp, "log_softmax_warp", 580, 128, 75.2, 1.53e+03, false, 0, 30.1, 7.97,
                    16.9, 20.8, 50, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_warp_wide, "softmax_warp_wide", 580, 236, 146, 4.71e+03, false, 0, 55.3, 25.5,
                    3, 3, 52.5, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_warp_wide, "log_softmax_warp_wide", 580, 173, 117, 1.72e+03, false, 0,
                    53.3, 8.6, 3, 3, 50, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_registers, "softmax_registers", 743, 497, 497, 1.23e+03, false, 0, 58.9, 52.3,
                    0, 0, 114, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_registers, "log_softmax_registers", 595, 332, 332, 1.3e+03, false, 0,
                    47.5, 41.3, 0, 0, 130, 0, 0, 0, 0.966},
    StreamConstants{StreamKernel::softmax_block, "softmax_block", 646, 338, 338, 1.33e+03, true, 0, 9.91, 3.31, 0, 0,
                    692, 0, 0, 0, 0.964},
    StreamConstants{StreamKernel::softmax_backward_warp, "softmax_backward_warp", 313, 92.4, 30, 3.06e+03, false, 0,
                    30.4, 4.53, 2.49, 3.5, 15.9, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_backward_warp, "log_softmax_backward_warp", 995, 134, 92.1, 2.27e+03,
                    false, 0, 65.6, 27.3, 1.7, 5.1, 24.8, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_backward_shared, "softmax_backward_shared", 1.11e+03, 659, 659, 1.35e+03,
                    true, 0, 11.9, 6.43, 0, 0, 65.6, 0, 0, 0, 0.972},
    StreamConstants{StreamKernel::softmax_backward_block, "softmax_backward_block", 3.27e+03, 3.26e+03, 1.27e+03,
                    1.01e+03, true, 2.93e+03, 14.3, 2.83, 0, 0, 283, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_vectorized, "layer_norm_vectorized", 1.75e+03, 1.28e+03, 1.28e+03, 655,
                    true, 0, 39.4, 73.3, 0, 0, 235, 0, 0, 0, 0.888},
    StreamConstants{StreamKernel::layer_norm_moments, "layer_norm_moments", 2.08e+03, 229, 229, 593, true, 0, 42.1,
                    48.7, 0, 0, 310, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_transform, "layer_norm_transform", 312, 624, 624, 139, true, 0, 58.9, 67.7,
                    0, 0, 28.4, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_backward_vectorized, "layer_norm_backward_vectorized", 824, 844, 844, 699,
                    true, 0, 38.7, 35.6, 0, 0, 157, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_backward, "layer_norm_backward", 2.84e+03, 34.9, 34.9, 583, true, 0, 72.5,
                    68.2, 0, 0, 56.1, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gamma_beta_aligned, "gamma_beta_aligned", 2.44e+03, 304, 304, 1.34e+03, true, 0, 20.2,
                    15.5, 0, 0, 55.7, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gamma_beta, "gamma_beta", 461, 1.03e+03, 1.03e+03, 224, true, 6.88e+03, 16.6, 14, 0,
                    0, 384, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_statistics, "batch_norm_statistics", 6.55e+03, 206, 206, 559, true, 0,
                    52.6, 20, 0, 0, 43, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_transform, "batch_norm_transform", 448, 523, 523, 349, true, 0, 23.9, 20,
                    0, 0, 148, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_single, "batch_norm_single", 8.07e+03, 316, 316, 392, true, 0, 20, 42.4, 0,
                    0, 46.4, 0, 0, 0, 1},
    StreamConstants{StreamKernel::reduce_columns, "reduce_columns", 2.54e+03, 432, 432, 582, true, 0, 10.5, 11.1, 0, 0,
                    547, 3.39e+03, 423, 331, 1},
    StreamConstants{StreamKernel::reduce_rows, "reduce_rows", 1.79e+03, 441, 441, 302, true, 1.99e+03, 7.36, 13.9, 0, 0,
                    119, 0, 0, 0, 1},
    StreamConstants{StreamKernel::reduce_all, "reduce_all", 1.36e+03, 343, 343, 591, true, 0, 8, 7.37, 0, 0, 435,
                    3.28e+03, 766, 96.2, 1},
    StreamConstants{StreamKernel::multi_tensor, "multi_tensor", 723, 474, 474, 591, true, 0, 1, 1.16, 0, 0, 1.33, 0, 0,
                    0, 0.963},
    StreamConstants{StreamKernel::multi_tensor_adam, "multi_tensor_adam", 3.4e+03, 1.54e+03, 1.54e+03, 526, true, 0,
                    4.99, 4.43, 0, 0, 4.49, 0, 0, 0, 0.931},
    StreamConstants{StreamKernel::multi_tensor_norm, "multi_tensor_norm", 1.13e+03, 385, 385, 464, true, 0, 20, 1.98, 0,
                    0, 10.9, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gather, "gather", 664, 184, 301, 1.19e+03, false, 0, 8.35, 13.4, 0, 0, 68.3, 0, 0, 0,
                    1},
    StreamConstants{StreamKernel::embedding_feature, "embedding_feature", 1.32e+03, 1.56e+03, 1.56e+03, 1.64e+03, true,
                    0, 26.4, 11.8, 0, 0, 19.4, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_segments, "embedding_segments", 2.34e+03, 52.3, 52.3, 74.1, true, 0, 27.7,
                    27.6, 0, 0, 109, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_scatter, "embedding_scatter", 1.63e+03, 474, 474, 971, true, 0, 35, 44, 0,
                    0, 102, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_atomic, "embedding_atomic", 5.65e+03, 42.9, 42.9, 85.4, true, 0, 16.6, 7.52,
                    0, 0, 53.2, 0, 0, 0, 1},
    StreamConstants{StreamKernel::nll_loss, "nll_loss", 594, 1.19e+03, 1.19e+03, 990, true, 0, 0, 0, 0, 0, 20, 0, 0, 0,
                    1},
    StreamConstants{StreamKernel::triton_pointwise, "triton_pointwise", 300, 0, 0, 900, false, 0, 10, 10, 0, 0, 20, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::triton_gather, "triton_gather", 600, 0, 0, 1.2e+03, false, 0, 150, 150, 0, 0, 20, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::triton_rows, "triton_rows", 800, 0, 0, 1.1e+03, false, 0, 14, 14, 0, 0, 100, 0, 0, 0,
                    1},
    StreamConstants{StreamKernel::triton_row_blocks, "triton_row_blocks", 1.5e+03, 4.2e+03, 4.2e+03, 700, true, 0, 20,
                    20, 0, 0, 100, 0, 0, 0, 1},
    StreamConstants{StreamKernel::triton_long_rows, "triton_long_rows", 1.2e+03, 300, 300, 500, true, 0, 10, 10, 0, 0,
                    100, 0, 0, 0, 1},
    StreamConstants{StreamKernel::triton_columns, "triton_columns", 1e+03, 250, 250, 400, true, 0, 8, 8, 0, 0, 100, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::max_pool, "max_pool", 1.84e+03, 0, 0, 1.19e+03, false, 0, 363, 349, 0, 0, 20.1, 0, 0,
                    0, 1},
    StreamConstants{StreamKernel::max_pool_backward, "max_pool_backward", 1.73e+03, 0, 0, 1.19e+03, false, 0, 363, 349,
                    0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::upsample, "upsample", 3.83e+03, 0, 0, 1.15e+03, false, 0, 21.7, 21.2, 0, 0, 19.5, 0,
                    0, 0, 1},
    StreamConstants{StreamKernel::sort_histogram, "sort_histogram", 3.74e+03, 0, 0, 0.5, false, 0, 0.5, 0.5, 0, 0, 20,
                    0, 0, 0, 1},
    StreamConstants{StreamKernel::sort_pass, "sort_pass", 9.71e+03, 2.92e+03, 2.92e+03, 0.5, false, 0, 0.5, 0.5, 0, 0,
                    20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::unique, "unique", 5.95e+03, 0, 0, 0.5, false, 0, 0.5, 0.5, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::tiny, "tiny", 4.84, 625, 625, 0.502, false, 0, 0.5, 0.5, 0, 0, 22.3, 0, 0, 0, 1},
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
