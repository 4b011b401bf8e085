// Fused attention: the kernels each backend launches, forward and backward.
//
// Sequences as profiled with PyTorch 2.11 on an H200. flash: forward (two kernels where keys are split), backward = two
// layout copies where the operands lie head by head, delta, main, convert. cuDNN: [Philox state], memset, forward;
// memset, delta, main, convert. efficient: one kernel forward; backward = [mul, sum, copy for fp32], [fill of the
// accumulator], main.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "sim/kernels/attention/attention_helpers.h"
#include "sim/kernels/attention/attention_tiles.h"
#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/products/gemm_launch.h"
#include "sim/occupancy/occupancy.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/attention/attention_law.h"
#include "sim/timing/l2_residency.h"
#include "sim/units/ceil_div.h"
#include "sim/workload/op_operands.h"

namespace ridgeline {
namespace {

using Part = AttentionWork::Part;

/// Sizes of the operands of one call, in elements.
struct Sizes {
  double q, kv, statistics;
  double element;
};
Sizes sizes_of(const Attention& op) {
  const double batch = static_cast<double>(op.batch), d = static_cast<double>(op.head_dim);
  return {.q = batch * static_cast<double>(op.heads * op.seq_q) * d,
          .kv = batch * static_cast<double>(op.kv_heads * op.seq_k) * d,
          .statistics = batch * static_cast<double>(op.heads * op.seq_q),
          .element = static_cast<double>(bytes_of(op.type))};
}

/// Bytes of cuDNN's tile counters, cleared before each of its kernels.
constexpr std::int64_t kCudnnCounters = 256;

class AttentionLowering {
 public:
  AttentionLowering(const Attention& op, const Gpu& gpu, const Software& software)
      : op_(op), gpu_(gpu), software_(software), size_(sizes_of(op)) {}

  LoweredOp forward() {
    const AttentionTile tile = attention_tile(op_, gpu_), split = flash_split_tile(op_);
    int splits = 1, most = 1;
    if (op_.backend == AttentionBackend::flash && !op_.dropout && !op_.lengths.any()) {
      const auto blocks = static_cast<double>(op_.batch * op_.heads * ceil_div(op_.seq_q, 64));
      const int key_blocks = static_cast<int>(ceil_div(op_.seq_k, split.k)), slots = 2 * gpu_.sm.count;
      splits = flash_splits(blocks, slots, key_blocks);
      most = most_flash_splits(blocks, slots, key_blocks);
    }
    LoweredOp made = splits > 1 ? forward(split, splits) : forward(tile, 1);
    std::vector<OtherForm> others;
    if (splits > 1) others.push_back(form_of(forward(tile, 1)));
    for (const int other : kSplitsTried)
      if (other != splits && other <= most) others.push_back(form_of(forward(split, other)));
    return with_others(std::move(made), std::move(others));
  }

  LoweredOp backward() {
    const AttentionTile tile = attention_tile(op_, gpu_);
    return op_.backend == AttentionBackend::efficient ? efficient_backward(tile) : flash_like_backward(tile);
  }

 private:
  static constexpr std::array kSplitsTried{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

  /// The kernel that multiplies, and what helpers of the memory-bound kind take besides.
  [[nodiscard]] OtherForm form_of(LoweredOp op) const {
    // Repeated, as what is launched is: helpers find their temporaries and outputs where that finds them, whatever the
    // inputs. Taken in a clean L2 they would cost something else than they then do, and the sum move with the L2.
    const auto hits = repeated_residency(op.launches, 3, 1, gpu_.l2);
    const AnalyticEngine engine(gpu_);
    OtherForm form;
    for (std::size_t i = 0; i < op.launches.size(); ++i) {
      if (std::holds_alternative<MemoryBoundWork>(op.launches[i].work))
        form.around += engine.time(op.launches[i], hits[i]).time.value();
      else if (multiplies(op.launches[i])) form.launch = std::move(op.launches[i]);
    }
    return form;
  }
  static bool multiplies(const KernelLaunch& launch) {
    const auto* work = std::get_if<AttentionWork>(&launch.work);
    return work != nullptr && work->part != Part::layout_copy;
  }
  [[nodiscard]] LoweredOp with_others(LoweredOp made, std::vector<OtherForm> others) const {
    if (others.empty()) return made;
    const double around = form_of(made).around;
    for (KernelLaunch& launch : made.launches)
      if (multiplies(launch)) {
        launch.around = around;
        launch.others = std::make_shared<const std::vector<OtherForm>>(std::move(others));
      }
    return made;
  }

  /// The forward pass in kernels of one tile and split.
  LoweredOp forward(const AttentionTile& tile, int splits) {
    out_ = {};
    if (op_.backend == AttentionBackend::cudnn) {
      if (op_.dropout) small_kernel("philox_unpack");
      out_.launches.push_back(counter_memset());
      out_.temporaries = {kCudnnCounters};
    }
    KernelLaunch main =
        kernel(Part::forward, tile,
               attention_kernel_name(op_, tile, op_.backend == AttentionBackend::efficient ? "F" : "fprop"), splits);
    main.reads = {read(0, size_.q), read(1, size_.kv), read(2, size_.kv)};
    if (op_.bias) main.reads.push_back(read_bias(3));
    const int out = op_.bias ? 4 : 3;
    const double partial = 4.0 * static_cast<double>(op_.batch * op_.heads * op_.seq_q * tile.head_dim * splits);
    if (splits > 1) {
      main.writes = {{.operand = Access::kTemporary, .bytes = partial}};
      out_.temporaries = {static_cast<std::int64_t>(size_.statistics * 4.0) * splits,
                          static_cast<std::int64_t>(partial)};
    } else {
      main.writes = {read(out, size_.q), {.operand = out + 1, .bytes = size_.statistics * 4.0}};
    }
    out_.launches.push_back(std::move(main));
    if (splits > 1) {
      KernelLaunch combine = split_combine(op_, tile.head_dim, splits);
      combine.reads = {{.operand = Access::kTemporary, .bytes = partial}};
      combine.writes = {read(out, size_.q), {.operand = out + 1, .bytes = size_.statistics * 4.0}};
      out_.launches.push_back(std::move(combine));
    }
    return std::move(out_);
  }

  [[nodiscard]] Access read(int operand, double elements) const {
    return {.operand = operand, .bytes = elements * size_.element};
  }

  /// Every head reads the mask again, from the L2.
  [[nodiscard]] Access read_bias(int operand) const {
    Access access = read(operand, static_cast<double>(op_.batch * op_.seq_q) * static_cast<double>(op_.seq_k));
    access.requested = access.bytes * static_cast<double>(op_.heads);
    return access;
  }
  /// The first output of a backward pass.
  [[nodiscard]] int gradients() const { return op_.bias ? 7 : 6; }

  KernelLaunch kernel(Part part, const AttentionTile& tile, std::string name, int splits) {
    AttentionWork work{.part = part,
                       .backend = static_cast<int>(op_.backend),
                       .type = op_.type,
                       .batch = op_.batch,
                       .heads = op_.heads,
                       .seq_q = op_.seq_q,
                       .seq_k = op_.seq_k,
                       .head_dim = op_.backend == AttentionBackend::efficient
                                       ? std::max<std::int64_t>(ceil_div(op_.head_dim, 32) * 32, 32)
                                       : tile.head_dim,
                       .causal = op_.causal,
                       .dropout = op_.dropout,
                       .bias = op_.bias,
                       .padded_head = op_.backend == AttentionBackend::flash && op_.head_dim != tile.head_dim,
                       .tile_q = tile.q,
                       .tile_k = tile.k,
                       .splits = splits,
                       .kv_heads = op_.kv_heads,
                       .tile_time = op_.backend == AttentionBackend::flash ? software_.flash_attention_time : 1.0,
                       .lengths = op_.lengths};
    KernelLaunch launch;
    launch.name = std::move(name);
    launch.time_class = TimeClass::tensor_contraction;
    launch.threads_per_block = tile.threads;
    launch.registers_per_thread = tile.registers;
    launch.shared_bytes_per_block = tile.shared_bytes;
    launch.pipe = attention_pipe(work, gpu_);
    launch.type = launch.pipe == Pipe::fp32 ? DType::fp32 : op_.type == DType::fp32 ? DType::tf32 : op_.type;
    const double batch = static_cast<double>(op_.batch * op_.heads);
    launch.flops = (part == Part::backward ? 10.0 : 4.0) * batch * scores_of_row(op_) *
                   static_cast<double>(op_.head_dim) * (op_.causal ? 0.5 : 1.0);
    work.blocks_per_sm = std::max(1, occupancy_of(gpu_.sm, launch).blocks);
    std::int64_t blocks =
        part == Part::backward ? ceil_div(longest_of(work, true), tile.k) : ceil_div(longest_of(work, false), tile.q);
    // cuDNN's backward kernels for long heads split every 128 keys in two.
    if (op_.backend == AttentionBackend::cudnn && tile.k == 64) blocks = 2 * ceil_div(op_.seq_k, 128);
    work.persistent = op_.backend == AttentionBackend::cudnn;
    if (work.persistent) launch.grid = {std::min<std::int64_t>(blocks * op_.heads * op_.batch, gpu_.sm.count), 1, 1};
    else if (op_.lengths.any()) launch.grid = {blocks, sequences_of(op_), op_.heads};
    else launch.grid = {blocks * splits, op_.heads, op_.batch};
    launch.work = work;
    return launch;
  }

  /// Of the queries or of what is as large, in blocks of 512 values.
  [[nodiscard]] KernelLaunch layout_copy(int operand) const {
    KernelLaunch launch;
    launch.name = "elementwise_copy";
    launch.time_class = TimeClass::copy;
    launch.grid = {ceil_div(op_.batch * op_.heads * op_.seq_q * op_.head_dim, 512), 1, 1};
    launch.reads = {read(operand, size_.q)};
    launch.writes = {{.operand = Access::kTemporary, .bytes = size_.q * size_.element}};
    launch.work = AttentionWork{.part = Part::layout_copy,
                                .backend = static_cast<int>(op_.backend),
                                .type = op_.type,
                                .batch = op_.batch,
                                .heads = op_.heads,
                                .seq_q = op_.seq_q,
                                .seq_k = op_.seq_k,
                                .head_dim = op_.head_dim};
    return launch;
  }

  void small_kernel(std::string name) {
    KernelLaunch launch;
    launch.name = std::move(name);
    launch.time_class = TimeClass::tensor_contraction;
    launch.work = FixedWork{.what = FixedWork::What::helper, .bytes = 64.0};
    out_.launches.push_back(std::move(launch));
  }

  void append(LoweredOp lowered, int input, int output) {
    for (KernelLaunch& launch : lowered.launches)
      for (Access& access : launch.reads) access.operand = input;
    append(std::move(lowered), output);
  }
  /// The same where reads name their operands already.
  void append(LoweredOp lowered, int output) {
    for (KernelLaunch& launch : lowered.launches) {
      for (Access& access : launch.writes) access.operand = output;
      launch.time_class = TimeClass::tensor_contraction;
      out_.launches.push_back(std::move(launch));
    }
  }

  LoweredOp flash_like_backward(const AttentionTile& tile) {
    const bool cudnn = op_.backend == AttentionBackend::cudnn;
    if (op_.backend == AttentionBackend::flash && op_.head_major) {
      for (const int operand : {0, 4}) {
        out_.launches.push_back(layout_copy(operand));
        out_.temporaries.push_back(static_cast<std::int64_t>(size_.q * size_.element));
      }
    }
    // FlashAttention's accumulator of dQ has whole tiles of rows and of the kernel's head dimension.
    const double accumulator =
        cudnn ? size_.q * 4.0
              : 4.0 * static_cast<double>(op_.heads * tiles_of_rows(op_, tile.q) * tile.q * tile.head_dim);
    if (cudnn) {
      // One workspace for everything, the expanded gradients of grouped heads too: sizes as in the recorded histories.
      const double gradients = op_.kv_heads == op_.heads ? 0.0
                                                         : 2.0 * size_.kv * static_cast<double>(op_.heads) /
                                                               static_cast<double>(op_.kv_heads) * size_.element;
      out_.temporaries = {static_cast<std::int64_t>(size_.statistics * 4.0 + accumulator + gradients) + kCudnnCounters};
      out_.launches.push_back(counter_memset());
    } else {
      const std::int64_t whole_rows = op_.heads * rows_of_accumulator(op_);
      out_.temporaries.push_back(whole_rows * 4);
      out_.temporaries.push_back(whole_rows * tile.head_dim * 4);
    }
    KernelLaunch delta = cudnn ? row_kernel(op_, MemoryBoundKernel::cudnn_delta, "cudnn_compute_dot_do_o", tile)
                               : row_kernel(op_, MemoryBoundKernel::flash_delta, "flash_bwd_dot_do_o", tile);
    delta.reads = {read(0, size_.q), read(4, size_.q)};
    delta.writes = {{.operand = Access::kTemporary, .bytes = accumulator}};
    out_.launches.push_back(std::move(delta));

    KernelLaunch main = kernel(Part::backward, tile, attention_kernel_name(op_, tile, "bprop"), 1);
    const bool grouped = op_.kv_heads != op_.heads;
    const double expanded = size_.kv * static_cast<double>(op_.heads) / static_cast<double>(op_.kv_heads);
    main.reads = {read(1, size_.q), read(2, size_.kv), read(3, size_.kv), read(0, size_.q)};
    if (op_.bias) main.reads.push_back(read_bias(6));
    const int dq = gradients(), dk = dq + 1, dv = dq + 2;
    main.writes = {{.operand = Access::kTemporary, .bytes = accumulator},
                   read(grouped ? Access::kTemporary : dk, expanded),
                   read(grouped ? Access::kTemporary : dv, expanded)};
    out_.launches.push_back(std::move(main));
    KernelLaunch convert = cudnn ? row_kernel(op_, MemoryBoundKernel::cudnn_convert, "cudnn_convert_dq", tile)
                                 : row_kernel(op_, MemoryBoundKernel::flash_convert, "flash_bwd_convert_dq", tile);
    convert.reads = {{.operand = Access::kTemporary, .bytes = accumulator}};
    convert.writes = {read(dq, size_.q)};
    out_.launches.push_back(std::move(convert));
    if (grouped) {
      // Gradients of shared keys and values are summed over the query heads that used them.
      const std::int64_t group = op_.heads / std::max<std::int64_t>(1, op_.kv_heads);
      for (const int output : {dk, dv}) {
        if (!cudnn) out_.temporaries.push_back(static_cast<std::int64_t>(expanded * size_.element));
        append(lower_reduction(Reduction{ReductionKind::sum_rows, op_.type, group, static_cast<std::int64_t>(size_.kv)},
                               gpu_, software_),
               Access::kTemporary, output);
      }
    }
    return std::move(out_);
  }

  LoweredOp efficient_backward(const AttentionTile& tile) {
    const std::int64_t rows = op_.batch * op_.heads * op_.seq_q;
    if (!is_half(op_.type)) {
      // delta = sum(dO·O) with eager kernels: multiply, reduce, transpose.
      Pointwise multiply{
          .function = PointwiseFunction::mul, .rows = rows, .cols = op_.head_dim, .input_count = 2, .output = op_.type};
      multiply.inputs[0] = multiply.inputs[1] = op_.type;
      LoweredOp product = lower_pointwise(multiply, gpu_, software_);
      for (KernelLaunch& launch : product.launches) launch.reads.at(1).operand = 4;
      append(std::move(product), Access::kTemporary);
      append(lower_reduction(Reduction{ReductionKind::sum_cols, op_.type, rows, op_.head_dim}, gpu_, software_),
             Access::kTemporary, Access::kTemporary);
      append(lower_copy(Copy{CopyKind::permute, DType::fp32, op_.batch * op_.heads, op_.seq_q, 1}, gpu_, software_),
             Access::kTemporary, Access::kTemporary);
      out_.temporaries = {static_cast<std::int64_t>(size_.q * 4.0), static_cast<std::int64_t>(size_.statistics * 4.0),
                          static_cast<std::int64_t>(size_.statistics * 4.0)};
    }
    // Key blocks run in parallel and add into an fp32 accumulator of dQ, unless one block walks over all of them: two,
    // where heads alone fill the GPU; and where dK and dV need accumulators of their own (16-bit, long heads), no more
    // than 200 blocks.
    const std::int64_t key_blocks = ceil_div(op_.seq_k, tile.k), heads = op_.batch * op_.heads;
    std::int64_t together = key_blocks <= 2 && heads >= 256 ? key_blocks : 1;
    if (is_half(op_.type) && op_.head_dim > 128)
      together = ceil_div(key_blocks, std::clamp<std::int64_t>(200 / heads, 1, key_blocks));
    const bool one_block = together == key_blocks;
    if (!one_block) {
      // The accumulator is made of whole tiles with a lock each and cleared byte by byte: vectors of 16 bytes a thread.
      const std::int64_t tiles = op_.batch * op_.heads * ceil_div(op_.seq_q, tile.q) * ceil_div(op_.head_dim, tile.k);
      const std::int64_t accumulator = tiles * (4 * std::int64_t{tile.q} * tile.k + 16);
      KernelLaunch fill = memory_bound_launch(MemoryBoundKernel::fill, "fill", TimeClass::tensor_contraction,
                                              DType::fp32, {ceil_div(accumulator, 2048), 1, 128, 16},
                                              {.elements = static_cast<double>(accumulator) / 4.0});
      fill.writes = {{Access::kTemporary, static_cast<double>(accumulator)}};
      out_.launches.push_back(std::move(fill));
      out_.temporaries.push_back(accumulator);
    }
    AttentionTile chosen = tile;
    KernelLaunch main = kernel(Part::backward, chosen, attention_kernel_name(op_, tile, "B"), 1);
    if (together > 1) {
      auto& work = std::get<AttentionWork>(main.work);
      work.tiles_together = static_cast<int>(together);
      work.tile_k *= work.tiles_together;
      main.grid[0] = ceil_div(key_blocks, together);
    }
    main.reads = {read(0, size_.q),
                  read(1, size_.q),
                  read(2, size_.kv),
                  read(3, size_.kv),
                  {.operand = 5, .bytes = size_.statistics * 4.0}};
    // Kernels of 16 bits work delta out themselves (kKernelComputesDelta of ATen's kernel_backward.h).
    if (is_half(op_.type)) main.reads.push_back(read(4, size_.q));
    if (op_.bias) main.reads.push_back(read_bias(6));
    const int dq = gradients();
    main.writes = {read(dq, size_.q), read(dq + 1, size_.kv), read(dq + 2, size_.kv)};
    out_.launches.push_back(std::move(main));
    return std::move(out_);
  }

  const Attention& op_;
  const Gpu& gpu_;
  const Software& software_;
  Sizes size_;
  LoweredOp out_;
};

}  // namespace

LoweredOp lower_attention(const Attention& given, const Gpu& gpu, const Software& software) {
  check_attention(given);
  // Memory-efficient attention makes three TF32 products of each fp32 one, whether TF32 is allowed or not
  // (OpMultiplyAddFastF32 in mem_eff_attention/kernel_forward.h and gemm_kernel_utils.h).
  Attention op = given;
  if (op.type == DType::tf32) op.type = DType::fp32;
  AttentionLowering lowering(op, gpu, software);
  return op.backward ? lowering.backward() : lowering.forward();
}

}  // namespace ridgeline
