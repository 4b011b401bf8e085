#include "sim/timing/stream_kernels.h"

#include <array>

namespace ridgeline {
namespace {

// Fitted on the H200 kernel measurements that are not held out (tests/validation/h200/kernels*.jsonl.gz).
constexpr std::array kTable{
    // kernel, name, block, pass, miss, each pass, instructions 16/32 bit, padded 16/32 bit, a warp, exchange, tail, tail miss, DRAM
    StreamConstants{StreamKernel::fill, "fill", 11.1, 0, 0, false, 5.22, 5.22, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::add, "add", 489, 0, 1.16e+03, false, 13.6, 37.1, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::mul, "mul", 515, 0, 1.17e+03, false, 9.95, 5.54, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::scale, "scale", 259, 0, 814, false, 12, 33.8, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::unary, "unary", 330, 0, 842, false, 17.2, 34.2, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::masked_fill, "masked_fill", 568, 0, 418, false, 12.6, 22.9, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::dropout_backward, "dropout_backward", 515, 0, 1.17e+03, false, 9.95, 5.54, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::relu, "relu", 613, 0, 1.21e+03, false, 13.5, 31.6, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gelu, "gelu", 693, 0, 668, false, 37.9, 35.2, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gelu_backward, "gelu_backward", 1.4e+03, 0, 744, false, 47.1, 44.3, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::silu, "silu", 1.21e+03, 0, 626, false, 22.8, 30.5, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::silu_backward, "silu_backward", 1.48e+03, 0, 717, false, 25, 34, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::tanh, "tanh", 693, 0, 668, false, 37.9, 35.2, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::cast_down, "cast_down", 555, 0, 949, false, 16.7, 12, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::unrolled_cast, "unrolled_cast", 3.04e+03, 0, 2.8e+03, false, 18.3, 12, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::unrolled_mixed, "unrolled_mixed", 4.75e+03, 0, 2.8e+03, false, 18.3, 12, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::dropout, "dropout", 572, 170, 1.08e+03, false, 31.3, 31.3, 140, 140, 67.2, 0, 0, 0, 1},
    StreamConstants{StreamKernel::strided_copy, "strided_copy", 709, 410, 1.13e+03, false, 15.7, 12.3, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::broadcast_binary, "broadcast_binary", 1.15e+03, 441, 889, false, 65.1, 12.1, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::concatenate, "concatenate", 496, 169, 498, false, 21.6, 46.9, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::copy_device, "copy_device", 607, 0, 1.36e+03, false, 13.1, 35.2, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_warp, "softmax_warp", 454, 229, 658, false, 5.63, 5.72, 43.3, 34.3, 77.2, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_warp, "log_softmax_warp", 586, 122, 1.06e+03, false, 20.3, 16.3, 29.3, 6.16, 46.6, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_registers, "softmax_registers", 1.53e+03, 123, 888, false, 72.2, 72.2, 0, 0, 79.3, 0, 0, 0, 1},
    StreamConstants{StreamKernel::log_softmax_registers, "log_softmax_registers", 823, 311, 930, false, 55.8, 55.8, 0, 0, 92.5, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_block, "softmax_block", 1.18e+03, 361, 520, true, 11.6, 36.8, 0, 0, 989, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_backward_warp, "softmax_backward_warp", 171, 105, 2.52e+03, false, 11.6, 7.21, 18.3, 2.94, 25.2, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_backward_shared, "softmax_backward_shared", 1.11e+03, 605, 1.59e+03, true, 7.64, 20, 0, 0, 62.2, 0, 0, 0, 1},
    StreamConstants{StreamKernel::softmax_backward_block, "softmax_backward_block", 1.01e+03, 412, 1.21e+03, true, 20, 57.1, 0, 0, 79.4, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_vectorized, "layer_norm_vectorized", 1.58e+03, 1.38e+03, 516, true, 36.2, 69.4, 0, 0, 265, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_moments, "layer_norm_moments", 1.49e+03, 446, 597, true, 32.9, 40.9, 0, 0, 315, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_transform, "layer_norm_transform", 229, 787, 147, true, 43.7, 20, 0, 0, 39.9, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_backward_vectorized, "layer_norm_backward_vectorized", 775, 879, 927, true, 29.3, 15.2, 0, 0, 169, 0, 0, 0, 1},
    StreamConstants{StreamKernel::layer_norm_backward, "layer_norm_backward", 1.67e+03, 307, 380, true, 45.6, 33.9, 0, 0, 216, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gamma_beta_aligned, "gamma_beta_aligned", 2.39e+03, 375, 1.23e+03, true, 20.2, 15.8, 0, 0, 61.8, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gamma_beta, "gamma_beta", 1.68e+03, 397, 433, true, 23, 23.7, 0, 0, 191, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_statistics, "batch_norm_statistics", 6.37e+03, 214, 551, true, 52.4, 20, 0, 0, 47.4, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_transform, "batch_norm_transform", 472, 509, 357, true, 22.1, 20, 0, 0, 143, 0, 0, 0, 1},
    StreamConstants{StreamKernel::batch_norm_single, "batch_norm_single", 7.51e+03, 332, 417, true, 20, 44.9, 0, 0, 49.7, 0, 0, 0, 1},
    StreamConstants{StreamKernel::reduce_columns, "reduce_columns", 2.96e+03, 399, 630, true, 12.3, 14.7, 0, 0, 142, 2.97e+03, 438, 94.7, 1},
    StreamConstants{StreamKernel::reduce_rows, "reduce_rows", 695, 2.49e+03, 514, true, 5.93, 10.8, 0, 0, 260, 0, 0, 0, 1},
    StreamConstants{StreamKernel::reduce_all, "reduce_all", 3.51e+03, 295, 257, true, 8, 6.36, 0, 0, 250, 3.96e+03, 0, 0, 1},
    StreamConstants{StreamKernel::multi_tensor, "multi_tensor", 389, 485, 600, true, 1, 1, 0, 0, 6.24, 0, 0, 0, 0.929},
    StreamConstants{StreamKernel::multi_tensor_adam, "multi_tensor_adam", 2.21e+03, 1.27e+03, 785, true, 35.2, 35.2, 0, 0, 22.6, 0, 0, 0, 0.928},
    StreamConstants{StreamKernel::multi_tensor_norm, "multi_tensor_norm", 877, 398, 449, true, 20, 2.81, 0, 0, 10.6, 0, 0, 0, 1},
    StreamConstants{StreamKernel::gather, "gather", 1.1e+03, 265, 1.58e+03, false, 12, 11.5, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_feature, "embedding_feature", 594, 1.58e+03, 1.29e+03, true, 0, 0, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_segments, "embedding_segments", 1.6e+03, 442, 549, true, 20.5, 20, 0, 0, 95.8, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_scatter, "embedding_scatter", 2.16e+03, 466, 593, true, 20, 20, 0, 0, 80.9, 0, 0, 0, 1},
    StreamConstants{StreamKernel::embedding_atomic, "embedding_atomic", 1.04e+03, 269, 340, true, 20.7, 17.8, 0, 0, 76, 0, 0, 0, 1},
    StreamConstants{StreamKernel::nll_loss, "nll_loss", 594, 1.19e+03, 990, true, 12, 0, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::max_pool, "max_pool", 1.73e+03, 0, 1.19e+03, false, 357, 336, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::max_pool_backward, "max_pool_backward", 1.73e+03, 0, 1.19e+03, false, 60, 60, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::upsample, "upsample", 3.41e+03, 0, 1.48e+03, false, 27.1, 18.4, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::sort_histogram, "sort_histogram", 3.72e+03, 0, 0, false, 0, 0, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::sort_pass, "sort_pass", 9.71e+03, 2.98e+03, 0, false, 0, 0, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::unique, "unique", 6.27e+03, 0, 0, false, 0, 0, 0, 0, 20, 0, 0, 0, 1},
    StreamConstants{StreamKernel::tiny, "tiny", 4.85, 658, 0, false, 0, 0, 0, 0, 20, 0, 0, 0, 1},
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
