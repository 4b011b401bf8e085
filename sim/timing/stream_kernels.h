// The constants of memory-bound kernels: what their machine code does, a row a kernel.
//
// Everything here describes code, not a GPU: instruction counts, and dependent latencies in cycles of the GPU they were
// measured on (an H200 at 1.98 GHz, whose L2 answers after 281 cycles and whose DRAM after 333 ns). The law
// (stream_law.cpp) converts them to a target's clock and latencies. Tested by tests/timing/stream_law_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

enum class StreamKernel : std::uint8_t {
  // point-wise
  fill,
  add,
  mul,
  scale,
  unary,
  masked_fill,
  dropout_backward,
  relu,
  gelu,
  gelu_backward,
  silu,
  silu_backward,
  tanh,
  cast_down,
  unrolled_cast,
  unrolled_mixed,
  dropout,
  // copies that are kernels
  strided_copy,
  broadcast_binary,
  concatenate,
  concatenate_unaligned,
  copy_device,
  // softmax
  softmax_warp,
  log_softmax_warp,
  softmax_registers,
  log_softmax_registers,
  softmax_block,
  softmax_backward_warp,
  log_softmax_backward_warp,
  softmax_backward_shared,
  softmax_backward_block,
  // normalisation
  layer_norm_vectorized,
  layer_norm_moments,
  layer_norm_transform,
  layer_norm_backward_vectorized,
  layer_norm_backward,
  gamma_beta_aligned,
  gamma_beta,
  batch_norm_statistics,
  batch_norm_transform,
  batch_norm_single,
  // reductions
  reduce_columns,
  reduce_rows,
  reduce_all,
  // optimizer
  multi_tensor,
  multi_tensor_adam,
  multi_tensor_norm,
  // gathers and scatters
  gather,
  embedding_feature,
  embedding_segments,
  embedding_scatter,
  embedding_atomic,
  nll_loss,
  // images
  max_pool,
  max_pool_backward,
  upsample,
  // small kernels of a sort, a scan, an index range
  sort_histogram,
  sort_pass,
  unique,
  tiny,
  count_
};

/// H200 values that the latencies below were measured with.
inline constexpr double kReferenceClockHertz = 1.98e9;
inline constexpr double kReferenceL2LatencyCycles = 281.0;
inline constexpr double kReferenceDramLatencySeconds = 3.33e-7;

struct StreamConstants {
  StreamKernel kernel;
  std::string_view name;
  double block_cycles;  ///< dependent latency of a block besides its passes: addresses, first load from L2, last store
  double pass_half, pass_full;  ///< of each dependent pass over its data, found in L2: elements of 16 bits, of 32 bits
  double miss_cycles;           ///< added where the data come from DRAM …
  bool miss_each_pass;          ///< … in every pass, or once because a block's loads are all in flight together
  double instructions_half;     ///< thread instructions an element of 16 bits …
  double instructions_full;     ///< … and of 32 bits
  double padded_half, padded_full;  ///< thread instructions a padded element (lanes switched off still issue)
  double warp_instructions;         ///< instructions of a warp whatever its data
  double
      exchange_cycles;  ///< once where blocks add into one result through memory: partial sums out, fence, semaphore …
  double
      tail_cycles;  ///< … then a serial step of the last block: a partial sum in the L2, an element without vectors …
  double tail_miss_cycles;  ///< … and this much more when the stream has pushed it out to DRAM
  double dram_efficiency;   ///< of the DRAM's achievable rate; below 1 where a block walks several streams at once
};

const StreamConstants& constants_of(StreamKernel kernel);
inline std::string_view name_of(StreamKernel kernel) { return constants_of(kernel).name; }

}  // namespace ridgeline
