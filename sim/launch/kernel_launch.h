// One kernel as the driver sees it: grid, resources of a thread block, and the work and bytes behind it.
//
// The vocabulary between lowering (which writes it) and the engines (roofline, analytic law, simulated hierarchy),
// which all read the same facts: where they disagree is a diagnostic. A KernelLaunch knows no time and no storage: its
// accesses name operands of the op, so that equal ops share one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/workload/dtype.h"
#include "sim/workload/op.h"

namespace ridgeline {

struct Gpu;
struct KernelLaunch;

/// What the report sums time by.
enum class TimeClass : std::uint8_t { tensor_contraction, normalization, elementwise, optimizer, copy, communication };

/// Bytes of one operand a kernel reads or writes. `operand` indexes the op's inputs, then outputs (order:
/// workload/op_operands.h); kTemporary is memory internal to the op (written by an earlier kernel of it).
struct Access {
  static constexpr int kTemporary = -1;
  static constexpr int kUntracked = -2;  ///< a part of a list of tensors: `list`, `from`, `to` say which
  int operand = kTemporary;
  double bytes = 0.0;      ///< distinct bytes touched
  double requested = 0.0;  ///< bytes asked of the L2 by all thread blocks (≥ bytes where blocks re-read); 0 = bytes
  double loaded = 0.0;     ///< bytes that threads load, from the L1 too (≥ requested); 0 = requested
  /// Of an untracked access: which of the op's lists (the tensors of one, then those of the next, are its operands),
  /// and which part of it, in tensors: from 2.5 is from the middle of the third.
  int list = -1;
  double from = 0.0, to = 0.0;
};

/// Which pipe does the arithmetic.
enum class Pipe : std::uint8_t { none, fp32, tensor_wgmma, tensor_mma };

/// What makes a tiled product a convolution: operands whose panels are gathered from images tap by tap, so that every
/// tap begins a k-step (or a tile) of its own.
struct Gathering {
  enum class Role : std::uint8_t {
    none,             ///< a matrix product
    forward,          ///< m = output pixels, n = filters, k = taps · channels
    input_gradient,   ///< m = input pixels, n = channels, k = taps · filters / phases
    weight_gradient,  ///< m = filters, n = taps · channels, k = output pixels
    /// Plain products of a batch whose results are added atomically to images that were cleared, or to filters.
    scattered_images,
    scattered_filters
  };
  Role role = Role::none;
  std::int64_t taps = 1;      ///< of a filter
  std::int64_t channels = 1;  ///< of a tap, as far as k goes
  std::int64_t phases = 1;    ///< classes of input pixels that meet different taps: the stride's square
  bool dense_taps = false;    ///< k runs over taps and channels as one: too few channels to fill a step
  bool indexed = false;       ///< computes each address from tables
  double scattered_rows = 0;  ///< rows of a tile's panels that lie in a plane of pixels each
};

/// A tiled matrix product (also implicit-GEMM convolutions).
struct GemmWork {
  enum class Family : std::uint8_t {
    wgmma,     ///< Hopper and later: TMA, wgmma or tcgen05, persistent
    mma_sync,  ///< cp.async (Ampere) or register-staged (Volta, Turing, misaligned) tensor-core kernels
    simt       ///< fp32 on the CUDA cores
  };
  Family family = Family::simt;
  DType type = DType::fp32;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  int layout = 0;      ///< Layout as an integer
  int alignment = 16;  ///< bytes all contiguous dimensions are a multiple of (2, 4, 8, 16)
  int tile_m = 128, tile_n = 128, tile_k = 8, stages = 2, split_k = 1;
  int first_stages = 0;  ///< stages that the kernel was built with, where shared memory leaves it fewer (0: as stages)
  int cluster_m = 1, cluster_n = 1;
  int blocks_per_sm = 1;  ///< resident on one SM
  bool bias = false;
  double distinct_reads =
      1.0;  ///< distinct operand bytes over those of m·k + n·k (convolutions gather the same pixels again)
  Gathering gathering{};
  bool stream_k = false;  ///< blocks share out the k-steps of all tiles evenly and add up partial tiles themselves
  SparseOperand sparse = SparseOperand::none;
  bool grouped = false;         ///< PyTorch's own kernel over groups of rows, whose blocks store between two tiles
  bool always_summed = false;   ///< a second kernel stands behind the product even where k is in one piece
  bool of_convolution = false;  ///< cuDNN runs it, which chooses otherwise than cuBLAS
  /// Operands of 8 bits, two of them in the place of one of `type`: k and tile_k count pairs. Tensor cores take a pair
  /// in the time of one (Hopper: twice the peak).
  Scaling scaling = Scaling::none;
  bool reduces_splits = false;  ///< the kernel that adds up the partial sums of split_k, not a product itself
  bool tensor_memory = false;   ///< of the first family: tcgen05, whose sums are in tensor memory
  bool paired = false;          ///< a pair of SMs shares an operand's panel, each holding half of it (tcgen05)
  double product_time = 1.0;    ///< of a product, in that of the kernels that the law was fitted on
};

/// A fused attention kernel; `tile_q` × `tile_k` tiles of the score matrix. Forward blocks own a tile_q of queries and
/// walk over keys; backward blocks own a tile_k of keys and walk over queries.
struct AttentionWork {
  enum class Part : std::uint8_t {
    forward,
    backward,
    layout_copy  ///< an operand to [batch, seq, heads, head_dim]
  };
  Part part = Part::forward;
  int backend = 0;  ///< AttentionBackend as an integer
  DType type = DType::bf16;
  std::int64_t batch = 0, heads = 0, seq_q = 0, seq_k = 0, head_dim = 0;
  bool causal = false, dropout = false, bias = false;
  bool padded_head = false;  ///< the kernel's head dimension is larger than the operands'
  int tile_q = 128, tile_k = 128, splits = 1;
  int tiles_together = 1;     ///< key tiles, of those in tile_k, that a backward block walks one after the other
  std::int64_t kv_heads = 0;  ///< 0: as heads
  int blocks_per_sm = 1;
  bool persistent = false;  ///< a grid of one block an SM fetches its tiles
  double tile_time = 1.0;   ///< of a tile, in that of the kernels that the law was fitted on
  /// Of each of `batch` rows; the grid has as many blocks for each sequence as the longest needs.
  PackedLengths lengths{};
};

/// A memory-bound kernel: every thread block walks its part of the data in `iterations` dependent passes.
/// The constants describe the kernel's code (instructions, dependent steps), not a GPU.
struct MemoryBoundWork {
  int kernel_class = 0;           ///< MemoryBoundKernel as an integer: row of the table of class constants
  double elements = 0.0;          ///< useful elements
  double padded_elements = 0.0;   ///< elements including predicated lanes
  double arithmetic = 0.0;        ///< thread instructions of an element besides those of its class
  double active_blocks = 0.0;     ///< blocks that do work, the last one in part (0: all)
  double iterations = 1.0;        ///< dependent passes of one block over its data
  double tail_steps = 0.0;        ///< serial steps of the last block of a cross-block reduction
  double reread_bytes = 0.0;      ///< bytes the same block reads a second time
  double reread_row_bytes = 0.0;  ///< size of what it re-reads (decides whether L1 or L2 still holds it)
  bool reread_through_l1 = false;
  bool crowded_as_here = false;  ///< by the blocks that this chip holds, not by those of a large one (timing/rereads.h)
};

/// Work with a cost of its own (memset, copy engine, collective): `bytes` moved.
struct FixedWork {
  enum class What : std::uint8_t {
    memset,
    memcpy_device,
    memcpy_host_to_device,
    memcpy_device_to_host,
    memcpy_pageable_to_device,
    memcpy_device_to_pageable,
    helper,
    layout_change,
    collective  ///< timed by the links, not by a GPU's engine
  };
  What what = What::memset;
  double bytes = 0.0;
  double blocks = 1.0;
};

/// What may run in a launch's place. Which of it does is decided anew for every state of the L2: a choice made for
/// another state would be slower where a chip that is better in anything chooses otherwise.
class KernelChoice {
 public:
  virtual ~KernelChoice() = default;
  /// Seconds of `launch`, so that it and what runs beside it take what the choice does. `residency`: of its accesses.
  [[nodiscard]] virtual double seconds(const KernelLaunch& launch, const Gpu& gpu,
                                       std::span<const double> residency) const = 0;
};

struct OtherForm;

struct KernelLaunch {
  std::string name;  ///< as a profiler shows it, shortened
  TimeClass time_class = TimeClass::elementwise;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  int threads_per_block = 128;
  int registers_per_thread = 32;
  std::int64_t shared_bytes_per_block = 0;
  Pipe pipe = Pipe::none;
  DType type = DType::fp32;  ///< of the arithmetic, for peaks
  double flops = 0.0;
  std::vector<Access> reads, writes;
  std::variant<GemmWork, AttentionWork, MemoryBoundWork, FixedWork> work;
  bool follows_without_gap = false;              ///< programmatic dependent launch on its predecessor
  std::shared_ptr<const KernelChoice> choice{};  ///< null: this kernel and no other
  /// Other kernels that could do the same on this chip, with other tiles or splits; null: none. What a library takes
  /// goes by rules of its own; the time is that of the fastest, so that a better chip, which has all of them, is never
  /// slower for another rule.
  std::shared_ptr<const std::vector<OtherForm>> others;
  double around = 0.0;  ///< seconds of the helpers that this form has, where there are others

  [[nodiscard]] bool on_tensor_cores() const { return pipe == Pipe::tensor_wgmma || pipe == Pipe::tensor_mma; }
  [[nodiscard]] double blocks() const {
    return static_cast<double>(grid[0]) * static_cast<double>(grid[1]) * static_cast<double>(grid[2]);
  }
  /// FLOPs as the pipe does them in `type`: two on operands of 8 bits in the time and for the energy of one.
  [[nodiscard]] double flops_in_type() const {
    const auto* product = std::get_if<GemmWork>(&work);
    return product != nullptr && product->scaling != Scaling::none ? 0.5 * flops : flops;
  }
  [[nodiscard]] double read_bytes() const {
    double sum = 0;
    for (const auto& a : reads) sum += a.bytes;
    return sum;
  }
  [[nodiscard]] double written_bytes() const {
    double sum = 0;
    for (const auto& a : writes) sum += a.bytes;
    return sum;
  }
};

struct OtherForm {
  KernelLaunch launch;
  double around = 0.0;  ///< seconds of its helpers
};

}  // namespace ridgeline
