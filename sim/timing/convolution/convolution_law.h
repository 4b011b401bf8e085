// The law of convolutions as implicit matrix products: T = start + (compute⁴ + memory⁴)^¼.
//
// compute = rounds · (k-steps · cycles of a k-step + epilogue) / clock. What differs from a plain product is how work
// falls into tiles and steps: every tap of a filter begins a k-step of its own, however few channels it has; input
// pixels of a strided convolution fall into classes that meet different taps, each with tiles of its own; of weight
// gradients every tap has its tiles. Kernels of wgmma (one block an SM) take the slowest of tensor pipe, latency of a
// stage and loads for a step; those of cp.async and of the CUDA cores pay loads beside the math, and a block alone on
// its SM waits for the latency too. Tested by tests/timing/convolution_law_test.cpp.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/timing/products/panel_traffic.h"

namespace ridgeline {

/// Of one class of kernels. Cycles and bytes are those of an SM.
struct ConvolutionConstants {
  double fixed_cycles = 0;      ///< start of the grid, drain of the last store, tables of addresses
  double utilization = 1;       ///< most of the pipe's rate the main loop reaches
  double latency_cycles = 0;    ///< of a k-step
  double l2_share = 1;          ///< of the bytes gathered, what is asked of the L2: the rest hits the L1
  double weight_share = 1;      ///< the same of weight gradients, which gather both operands along pixels
  double misaligned_load = 0;   ///< extra time of loads of pixels whose channels are no multiple of 128 bytes
  double epilogue_cycles = 0;   ///< a tile, besides its stores
  double epilogue_bytes = 32;   ///< stored a cycle
  double misaligned_store = 0;  ///< extra time of stores of pixels whose channels are no multiple of 64 bytes
  double dram_share = 1;        ///< of the DRAM's bandwidth
  double split_cycles = 0;      ///< of sums over parts of k: start of what adds them up
  double split_share = 1;       ///< and its share of the DRAM's bandwidth
  double indexed = 1;           ///< factor on a k-step of kernels that compute each address
  double scatter = 1;           ///< factor on the epilogue where results are added atomically
  double atomics = 0;           ///< of the L2's rate of additions, for results added to images; 0: no bound
  double row_cycles = 0;        ///< a k-step, for each row of a panel that lies in a plane of its own
};
enum class ConvolutionClass : std::uint8_t {
  wgmma_half,
  wgmma_tf32_forward,  ///< wgmma takes tf32 operands K-major: gradients have theirs turned on the way
  wgmma_tf32,
  mma_half,
  mma_tf32,
  simt
};
ConvolutionClass convolution_class_of(const GemmWork& work);
const ConvolutionConstants& convolution_constants(ConvolutionClass kernel_class);

struct ConvolutionTime {
  double total = 0, compute = 0, memory = 0, fixed = 0;  ///< seconds
  double clocked = 0;                                    ///< of compute, were the L2 infinitely fast
  double math = 0;                                       ///< share of the cycles in which the pipe works
  double latency = 0, loads = 0, bound = 0;              ///< cycles of a k-step
  double tiles = 0, steps = 0;
  PanelFloor floor;  ///< what the memory takes at least; `total` is no less
};

/// `work` with its tile, split and blocks an SM; `cold_bytes` are read from DRAM, `hit_bytes` from the L2.
ConvolutionTime convolution_law(const GemmWork& work, const Gpu& gpu, double cold_bytes, double hit_bytes,
                                double written_bytes);
/// With constants other than those of the kernel's class.
ConvolutionTime convolution_law(const GemmWork& work, const Gpu& gpu, double cold_bytes, double hit_bytes,
                                double written_bytes, const ConvolutionConstants& constants);

}  // namespace ridgeline
