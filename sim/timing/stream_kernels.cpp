#include "sim/timing/stream_kernels.h"

#include <array>

namespace ridgeline {
namespace {

// Fitted on the H200 kernel measurements that are not held out (tests/validation/h200/kernels*.jsonl.gz).
constexpr std::array kTable{
    // kernel, name, block, pass, miss, each pass, instructions 16/32 bit, padded 16/32 bit, per warp, tail
    StreamConstants{StreamKernel::fill, "fill", 44.75, 0, 1287, false, 4.06, 4.06, 0, 0, 20, 0},
    StreamConstants{StreamKernel::add, "add", 351.7, 0, 1505, false, 4.577, 26.53, 0, 0, 20, 0},
    StreamConstants{StreamKernel::mul, "mul", 310.9, 0, 1488, false, 3.914, 29.14, 0, 0, 20, 0},
    StreamConstants{StreamKernel::scale, "scale", 219.5, 0, 1012, false, 10, 10, 0, 0, 20, 0},
    StreamConstants{StreamKernel::unary, "unary", 219.5, 0, 1012, false, 12, 12, 0, 0, 20, 0},
    StreamConstants{StreamKernel::masked_fill, "masked_fill", 310.9, 0, 1488, false, 12, 12, 0, 0, 20, 0},
    StreamConstants{StreamKernel::dropout_backward, "dropout_backward", 310.9, 0, 1488, false, 16, 16, 0, 0, 20, 0},
    StreamConstants{StreamKernel::relu, "relu", 219.5, 0, 1012, false, 10, 10, 0, 0, 20, 0},
    StreamConstants{StreamKernel::gelu, "gelu", 733.8, 0, 957.9, false, 30.84, 19.81, 0, 0, 20, 0},
    StreamConstants{StreamKernel::gelu_backward, "gelu_backward", 1424, 0, 1368, false, 33.73, 23.42, 0, 0, 20, 0},
    StreamConstants{StreamKernel::silu, "silu", 733.8, 0, 957.9, false, 30.84, 19.81, 0, 0, 20, 0},
    StreamConstants{StreamKernel::silu_backward, "silu_backward", 1424, 0, 1368, false, 33.73, 23.42, 0, 0, 20, 0},
    StreamConstants{StreamKernel::tanh, "tanh", 733.8, 0, 957.9, false, 30.84, 19.81, 0, 0, 20, 0},
    StreamConstants{StreamKernel::cast_down, "cast_down", 383.7, 0, 1376, false, 7.858, 7.858, 0, 0, 20, 0},
    StreamConstants{StreamKernel::unrolled_cast, "unrolled_cast", 3042, 0, 2067, false, 20.23, 20.23, 0, 0, 20, 0},
    StreamConstants{StreamKernel::unrolled_mixed, "unrolled_mixed", 3042, 0, 2067, false, 20.23, 20.23, 0, 0, 20, 0},
    StreamConstants{StreamKernel::dropout, "dropout", 380.8, 191.4, 667, false, 27.36, 27.36, 149.9, 149.9, 81.05, 0},
    StreamConstants{StreamKernel::strided_copy, "strided_copy", 1441, 0, 1277, false, 65.13, 16.13, 0, 0, 20, 0},
    StreamConstants{StreamKernel::broadcast_binary, "broadcast_binary", 1441, 0, 1277, false, 65.13, 16.13, 0, 0, 20, 0},
    StreamConstants{StreamKernel::concatenate, "concatenate", 1441, 0, 1277, false, 16, 16, 0, 0, 20, 0},
    StreamConstants{StreamKernel::copy_device, "copy_device", 485.6, 0, 1177, false, 20.93, 20.93, 0, 0, 20, 0},
    StreamConstants{StreamKernel::softmax_warp, "softmax_warp", 376.3, 234.6, 1399, false, 12.83, 17.33, 29.23, 6.234, 111.3, 0},
    StreamConstants{StreamKernel::log_softmax_warp, "log_softmax_warp", 512.8, 129, 829, false, 11.21, 14.94, 27.74, 6.297, 26.33, 0},
    StreamConstants{StreamKernel::softmax_registers, "softmax_registers", 1726, 148.7, 899.5, false, 71.68, 71.68, 0, 0, 70.28, 0},
    StreamConstants{StreamKernel::log_softmax_registers, "log_softmax_registers", 702.9, 426, 1123, false, 49.02, 49.02, 0, 0, 97.88, 0},
    StreamConstants{StreamKernel::softmax_block, "softmax_block", 1274, 443, 610.8, true, 7.108, 7.108, 0, 0, 305, 0},
    StreamConstants{StreamKernel::softmax_backward_warp, "softmax_backward_warp", 269.7, 61.97, 3554, false, 5.562, 3.068, 3.201, 1.344, 115.2, 0},
    StreamConstants{StreamKernel::softmax_backward_shared, "softmax_backward_shared", 570.5, 777.7, 1401, true, 5.077, 5.077, 0, 0, 32.6, 0},
    StreamConstants{StreamKernel::softmax_backward_block, "softmax_backward_block", 228.2, 64.1, 792, true, 55.19, 55.19, 0, 0, 15.36, 0},
    StreamConstants{StreamKernel::log_softmax_backward_block, "log_softmax_backward_block", 468, 77, 465.2, true, 4.104, 4.104, 0, 0, 35.62, 0},
    StreamConstants{StreamKernel::layer_norm_vectorized, "layer_norm_vectorized", 1885, 1251, 424.7, true, 20.17, 37.86, 0, 0, 250.7, 0},
    StreamConstants{StreamKernel::layer_norm_moments, "layer_norm_moments", 1190, 419.2, 440.5, true, 51.31, 51.31, 0, 0, 309.5, 0},
    StreamConstants{StreamKernel::layer_norm_transform, "layer_norm_transform", 226.9, 631.4, 168.2, true, 38.02, 38.02, 0, 0, 40.79, 0},
    StreamConstants{StreamKernel::layer_norm_backward_vectorized, "layer_norm_backward_vectorized", 432.1, 1168, 461.1, true, 19.6, 4.052, 0, 0, 166.3, 0},
    StreamConstants{StreamKernel::layer_norm_backward, "layer_norm_backward", 1674, 283.6, 348.4, true, 23.49, 23.49, 0, 0, 211.6, 0},
    StreamConstants{StreamKernel::gamma_beta_aligned, "gamma_beta_aligned", 6564, 732.5, 1211, true, 13.93, 13.93, 0, 0, 51.06, 0},
    StreamConstants{StreamKernel::gamma_beta, "gamma_beta", 956.1, 786, 588.3, true, 19.66, 19.66, 0, 0, 258.4, 0},
    StreamConstants{StreamKernel::batch_norm_statistics, "batch_norm_statistics", 1190, 831.6, 0, true, 10, 10, 0, 0, 309.5, 0},
    StreamConstants{StreamKernel::batch_norm_transform, "batch_norm_transform", 226.9, 198, 168.2, true, 60, 60, 0, 0, 40.79, 0},
    StreamConstants{StreamKernel::batch_norm_single, "batch_norm_single", 1190, 594, 0, true, 10, 10, 0, 0, 309.5, 0},
    StreamConstants{StreamKernel::reduce_columns, "reduce_columns", 2698, 452.7, 595.6, true, 9.588, 9.588, 0, 0, 604.5, 546.1},
    StreamConstants{StreamKernel::reduce_rows, "reduce_rows", 6120, 206.3, 212.9, true, 7.335, 7.335, 0, 0, 283.2, 572.8},
    StreamConstants{StreamKernel::reduce_all, "reduce_all", 6120, 206.3, 212.9, true, 7.335, 7.335, 0, 0, 283.2, 572.8},
    StreamConstants{StreamKernel::multi_tensor, "multi_tensor", 977.5, 396, 396, true, 20, 20, 0, 0, 40.01, 0},
    StreamConstants{StreamKernel::multi_tensor_adam, "multi_tensor_adam", 977.5, 498.7, 344.3, true, 19, 19, 0, 0, 40.01, 0},
    StreamConstants{StreamKernel::multi_tensor_norm, "multi_tensor_norm", 977.5, 297, 198, true, 20, 20, 0, 0, 40.01, 0},
    StreamConstants{StreamKernel::gather, "gather", 1080, 94.63, 1161, false, 5.202, 5.202, 0, 0, 50.49, 0},
    StreamConstants{StreamKernel::embedding_feature, "embedding_feature", 3960, 91.08, 0, false, 0, 0, 0, 0, 0, 0},
    StreamConstants{StreamKernel::embedding_segments, "embedding_segments", 1080, 94.63, 1161, false, 100, 100, 0, 0, 50.49, 0},
    StreamConstants{StreamKernel::embedding_scatter, "embedding_scatter", 1080, 94.63, 1161, false, 100, 100, 0, 0, 50.49, 0},
    StreamConstants{StreamKernel::embedding_atomic, "embedding_atomic", 1080, 94.63, 1161, false, 5.202, 5.202, 0, 0, 50.49, 0},
    StreamConstants{StreamKernel::nll_loss, "nll_loss", 1080, 1584, 1161, false, 5.202, 5.202, 0, 0, 50.49, 0},
    StreamConstants{StreamKernel::max_pool, "max_pool", 219.5, 0, 1012, false, 405, 405, 0, 0, 20, 0},
    StreamConstants{StreamKernel::max_pool_backward, "max_pool_backward", 219.5, 0, 1012, false, 60, 60, 0, 0, 20, 0},
    StreamConstants{StreamKernel::upsample, "upsample", 219.5, 0, 1012, false, 80, 100, 0, 0, 20, 0},
    StreamConstants{StreamKernel::sort_histogram, "sort_histogram", 4752, 0, 0, false, 0, 0, 0, 0, 20, 0},
    StreamConstants{StreamKernel::sort_pass, "sort_pass", 9702, 0, 0, false, 0, 0, 0, 0, 20, 0},
    StreamConstants{StreamKernel::unique, "unique", 5346, 0, 1782, false, 0, 0, 0, 0, 20, 0},
    StreamConstants{StreamKernel::tiny, "tiny", 594, 0, 594, false, 0, 0, 0, 0, 20, 0},
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
