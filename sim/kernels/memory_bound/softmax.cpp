// Softmax and log-softmax over the last dimension: one warp a row up to 2048 columns (backward 1024), one block a row
// beyond, whose row lives in registers, in shared memory or is read again; before 2025 a row of more than 1024 columns
// was always read again. Backward of softmax multiplies grad by
// output in a kernel of its own first. Geometry: PyTorch 2.11; tested by tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/occupancy/occupancy.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kSharedLimit = 48 * 1024;  ///< shared memory of a block without opting in to more

/// Shares of the padded part in a step. Softmax divides each element it stores, its logarithm subtracts. Fitted with
/// the constants of their kernels.
constexpr double kPaddedShare = 0.15, kPaddedShareOfLog = 0.35;

struct WarpShape {
  int log2_columns;
  std::int64_t padded_columns, warp, batches, rows_per_block, threads;
  /// Dependent steps of a warp: loads and stores stop at the row's end, maximum and exponentials go on to the padded
  /// one. They are this share of a step.
  [[nodiscard]] double steps(std::int64_t columns, double padded_share) const {
    return static_cast<double>(batches) * ((1.0 - padded_share) * static_cast<double>(ceil_div(columns, warp)) +
                                           padded_share * static_cast<double>(padded_columns / warp));
  }
  /// Elements of a row with the lanes that a warp's last load leaves idle: its instructions issue for them too.
  [[nodiscard]] std::int64_t lanes(std::int64_t columns) const { return ceil_div(columns, warp) * warp; }
};
/// Rows of up to 128 padded columns come two to a warp; short rows narrow the warp.
WarpShape warp_shape(std::int64_t columns) {
  WarpShape s{};
  s.log2_columns = log2_ceil(columns);
  s.padded_columns = std::int64_t{1} << s.log2_columns;
  s.warp = std::min<std::int64_t>(s.padded_columns, 32);
  s.batches = s.padded_columns <= 128 ? 2 : 1;
  s.threads = 128;
  s.rows_per_block = s.threads / s.warp * s.batches;
  return s;
}

int warp_forward_registers(int log2_columns, bool log, bool half) {
  if (log2_columns <= 5) return 20;
  switch (log2_columns) {
    case 6: return half ? 24 : 22;
    case 7: return half ? 30 : 31;
    case 8: return half ? 29 : 30;
    case 9: return 32;
    case 10: return log ? (half ? 72 : 71) : 48;
    default: return log ? 128 : 80;
  }
}
/// A row in registers, `per_thread` elements each: past 32 registers only one block of 1024 threads fits an SM.
int block_forward_registers(std::int64_t per_thread, bool log, bool half) {
  switch (per_thread) {
    case 3: return log ? 26 : 28;
    case 4:
    case 5: return 30;
    case 6: return log ? 32 : 29;
    case 7: return log ? 32 : 34;
    case 8: return log ? 36 : 37;
    default: return !log && half ? 40 : 38;
  }
}
int warp_backward_registers(int log2_columns, bool half) {
  if (log2_columns <= 5) return 24;
  switch (log2_columns) {
    case 6: return half ? 28 : 31;
    case 7:
    case 8: return 32;
    case 9: return half ? 55 : 56;
    default: return half ? 96 : 95;
  }
}

/// Passes of a block over a row that it reads from memory: whole vectors while all threads have one, then the rest
/// element by element. A row that does not start at a vector's boundary gives up to a turn of all threads to its head.
double vector_passes(std::int64_t columns, std::int64_t threads, std::int64_t vector) {
  const auto passes = [&](std::int64_t size) {
    return static_cast<double>(size / (threads * vector) + ceil_div(size % (threads * vector), threads));
  };
  const double aligned = static_cast<double>(std::gcd(columns, vector)) / static_cast<double>(vector);  // of all rows
  const std::int64_t behind_head = std::max<std::int64_t>(0, columns - threads + vector / 2);
  return aligned * passes(columns) + (1.0 - aligned) * (1.0 + passes(behind_head));
}

/// Threads of a block on a row of its own: at least half of them have whole vectors, at most 1024.
std::int64_t block_threads(std::int64_t columns, std::int64_t vector) {
  std::int64_t threads = 32;
  while (threads < std::min<std::int64_t>(columns / vector, 1024) / 2) threads *= 2;
  return threads;
}

/// Maximum, sum of exponentials, result: a block reads its row three times.
KernelLaunch rereading_forward(const Softmax& op, std::int64_t threads, bool through_l1) {
  const auto elements = static_cast<double>(op.rows * op.cols);
  const double row = static_cast<double>(op.cols * bytes_of(op.input));
  return memory_bound_launch(MemoryBoundKernel::softmax_block, "SoftMaxForward", TimeClass::normalization, op.input,
                             {op.rows, 1, static_cast<int>(threads), 32, 128},
                             {.elements = elements,
                              .iterations = vector_passes(op.cols, threads, 16 / bytes_of(op.input)),
                              .reread_bytes = 2.0 * row * static_cast<double>(op.rows),
                              .reread_row_bytes = row,
                              .reread_through_l1 = through_l1,
                              .crowded_as_here = through_l1});
}

KernelLaunch forward(const Softmax& op, bool keeps_long_rows, bool fills_blocks) {
  const auto elements = static_cast<double>(op.rows * op.cols);
  const double in = elements * static_cast<double>(bytes_of(op.input)),
               out = elements * static_cast<double>(bytes_of(op.output));
  const bool half = is_half(op.input);
  KernelLaunch launch;
  if (op.cols > 1024 && !keeps_long_rows) {
    const std::int64_t vector = 16 / bytes_of(op.input);  // rows of whole vectors have smaller blocks in shared memory
    const bool full = fills_blocks && op.cols % vector != 0;
    launch = rereading_forward(op, full ? 1024 : block_threads(op.cols, vector), true);
  } else if (op.cols <= 2048) {
    const WarpShape s = warp_shape(op.cols);
    // 64 elements a thread, spelled out one after the other, are more code than an SM's instruction cache holds: a
    // kernel of its own.
    const bool wide = s.padded_columns > 1024;
    launch = memory_bound_launch(
        op.log ? (wide ? MemoryBoundKernel::log_softmax_warp_wide : MemoryBoundKernel::log_softmax_warp)
               : (wide ? MemoryBoundKernel::softmax_warp_wide : MemoryBoundKernel::softmax_warp),
        op.log ? "log_softmax_warp" : "softmax_warp", TimeClass::normalization, op.input,
        {ceil_div(op.rows, s.rows_per_block), 1, static_cast<int>(s.threads),
         warp_forward_registers(s.log2_columns, op.log, half)},
        {.elements = static_cast<double>(op.rows * s.lanes(op.cols)),
         .padded_elements = static_cast<double>(op.rows * s.padded_columns),
         .iterations = s.steps(op.cols, op.log ? kPaddedShareOfLog : kPaddedShare)});
  } else if (op.cols <= 9 * 1024) {
    const std::int64_t per_thread = ceil_div(op.cols, 1024);
    const int registers = block_forward_registers(per_thread, op.log, half);
    launch =
        memory_bound_launch(op.log ? MemoryBoundKernel::log_softmax_registers : MemoryBoundKernel::softmax_registers,
                            "SoftMaxForwardReg", TimeClass::normalization, op.input, {op.rows, 1, 1024, registers, 128},
                            {.elements = elements, .iterations = static_cast<double>(per_thread)});
  } else {
    const std::int64_t vector = 16 / bytes_of(op.input);
    const double row = static_cast<double>(op.cols * bytes_of(op.input));
    const bool in_shared = op.cols % vector == 0 && row < kSharedLimit - 128;
    if (in_shared) {  // read once, like rows in registers, but in vectors: half the steps
      launch =
          memory_bound_launch(op.log ? MemoryBoundKernel::log_softmax_registers : MemoryBoundKernel::softmax_registers,
                              "SoftMaxForwardSmem", TimeClass::normalization, op.input,
                              {op.rows, 1, 1024, half ? 32 : 30, 128 + static_cast<std::int64_t>(row)},
                              {.elements = elements, .iterations = 0.5 * static_cast<double>(ceil_div(op.cols, 1024))});
    } else {  // the rows that work at a time are more than the L1 holds
      launch = rereading_forward(op, 1024, false);
    }
  }
  launch.flops = 5.0 * elements;
  launch.reads = {{0, in}};
  launch.writes = {{1, out}};
  return launch;
}

KernelLaunch backward(const Softmax& op, int gradient) {
  const auto elements = static_cast<double>(op.rows * op.cols);
  const double y = elements * static_cast<double>(bytes_of(op.input)),
               dx = elements * static_cast<double>(bytes_of(op.output));
  const bool half = is_half(op.input);
  const std::int64_t vector = 16 / bytes_of(op.input);
  KernelLaunch launch;
  if (op.cols <= 1024) {
    const WarpShape s = warp_shape(op.cols);
    launch = memory_bound_launch(
        op.log ? MemoryBoundKernel::log_softmax_backward_warp : MemoryBoundKernel::softmax_backward_warp,
        op.log ? "log_softmax_warp_bwd" : "softmax_warp_bwd", TimeClass::normalization, op.input,
        {ceil_div(op.rows, s.rows_per_block), 1, static_cast<int>(s.threads),
         warp_backward_registers(s.log2_columns, half)},
        {.elements = static_cast<double>(op.rows * s.lanes(op.cols)),
         .padded_elements = static_cast<double>(op.rows * s.padded_columns),
         .iterations = s.steps(op.cols, kPaddedShare)});
  } else {
    const std::int64_t threads = block_threads(op.cols, vector);
    const std::int64_t row = op.cols * bytes_of(op.input);
    const bool in_shared = op.cols % vector == 0 && row + threads / 32 * 4 < kSharedLimit;
    if (in_shared) {
      launch = memory_bound_launch(
          MemoryBoundKernel::softmax_backward_shared, "SoftMaxBackwardSmem", TimeClass::normalization, op.input,
          {op.rows, 1, static_cast<int>(threads),
           op.input == DType::fp16 ? 32
           : half                  ? 29
           : op.log                ? 27
                                   : 23,
           row + threads / 32 * 4},
          {.elements = elements, .iterations = static_cast<double>(ceil_div(op.cols, threads * vector))});
    } else {
      launch = memory_bound_launch(MemoryBoundKernel::softmax_backward_block, "SoftMaxBackward",
                                   TimeClass::normalization, op.input,
                                   {op.rows, 1, static_cast<int>(threads), op.log ? (half ? 32 : 56) : 40, threads * 4},
                                   {.elements = elements,
                                    .iterations = vector_passes(op.cols, threads, vector),
                                    .reread_bytes = y,
                                    .reread_row_bytes = static_cast<double>(row)});  // the sum reads the gradient alone
    }
  }
  launch.flops = 4.0 * elements;
  launch.reads = {{gradient, y}, {1, y}};
  launch.writes = {{2, dx}};
  return launch;
}

/// Along a dimension with `inner` elements behind it: threads side by side along those, in blocks that also share out
/// the dimension where few lie behind it. The grid is what the chip holds at a time. Of SoftMax.cu's
/// SpatialSoftMax_getLaunchSizes.
KernelLaunch spatial(const Softmax& op, const ChipShape& chip, int gradient) {
  constexpr std::int64_t kMostThreads = 1024, kShared = 64;
  const std::int64_t across = std::min(op.inner, kMostThreads), outer = op.rows / op.inner;
  std::int64_t along = 1;
  if (across <= kShared && op.cols >= kShared)
    while (across * along * 2 <= kMostThreads && along * 2 <= op.cols) along *= 2;
  const auto threads = static_cast<int>(across * along);
  const std::int64_t shared = along > 1 ? 4 * threads : 0;
  const int registers = op.backward ? 32 : 40;
  const std::int64_t held =
      std::max<std::int64_t>(1, occupancy_of(chip.sm, threads, registers, shared).blocks) * chip.sm.count;
  const std::int64_t down = std::min(ceil_div(op.inner, across), held), most = std::min(ceil_div(held, down), outer);
  // The largest of a column, its sum of exponentials, its result; backward its sum and its result.
  const double sweeps = op.backward ? 2.0 : 3.0;
  const std::int64_t columns = ceil_div(outer, most) * ceil_div(op.inner, down * across);
  const auto elements = static_cast<double>(op.rows * op.cols);
  const double in = elements * static_cast<double>(bytes_of(op.input)) * (op.backward ? 2.0 : 1.0);
  KernelLaunch launch = memory_bound_launch(
      op.backward ? MemoryBoundKernel::softmax_backward_spatial : MemoryBoundKernel::softmax_spatial,
      op.backward ? "SpatialSoftMaxBackward" : "SpatialSoftMaxForward", TimeClass::normalization, op.input,
      {most, down, threads, registers, shared},
      {.elements = elements,
       .iterations = sweeps * static_cast<double>(columns * ceil_div(op.cols, along)),
       .reread_bytes = (sweeps - 1.0) * in,
       .reread_row_bytes = in / static_cast<double>(most * down * columns)});
  launch.flops = (op.backward ? 4.0 : 5.0) * elements;
  launch.reads = {{gradient, elements * static_cast<double>(bytes_of(op.input))}};
  if (op.backward) launch.reads.push_back({1, launch.reads.front().bytes});
  launch.writes = {{op.backward ? 2 : 1, elements * static_cast<double>(bytes_of(op.output))}};
  return launch;
}

}  // namespace

LoweredOp lower_softmax(const Softmax& op, const ChipShape& chip, const Software& software) {
  if (op.rows < 1 || op.cols < 1) throw std::invalid_argument("softmax needs at least one row and one column");
  if (op.inner < 1 || op.rows % op.inner != 0)
    throw std::invalid_argument("what lies behind softmax's dimension divides its rows");
  LoweredOp result;
  if (!op.backward && op.inner > 1) {
    result.launches.push_back(spatial(op, chip, 0));
    return result;
  }
  if (!op.backward) {
    result.launches.push_back(forward(op, software.softmax_keeps_long_rows, software.softmax_fills_blocks));
    return result;
  }
  const auto last = [&](int gradient) { return op.inner > 1 ? spatial(op, chip, gradient) : backward(op, gradient); };
  if (op.log) {
    result.launches.push_back(last(0));
    return result;
  }
  const std::int64_t n = op.rows * op.cols;
  const auto elements = static_cast<double>(n);
  const double bytes = elements * static_cast<double>(bytes_of(op.input));
  const int splits = index_splits(bytes);
  for (int split = 0; split < splits; ++split) {
    const std::int64_t part = n / splits + (split < n % splits ? 1 : 0);
    const double part_bytes = bytes * static_cast<double>(part) / elements;
    KernelLaunch product = memory_bound_launch(MemoryBoundKernel::mul, "mul", TimeClass::normalization, op.input,
                                               {ceil_div(part, 1024), 1, 128, is_half(op.input) ? 40 : 32},
                                               {.elements = static_cast<double>(part),
                                                .active_blocks = static_cast<double>(part) / 1024.0,
                                                .tail_steps = scalar_steps(part)});
    product.flops = static_cast<double>(part);
    product.reads = {{0, part_bytes}, {1, part_bytes}};
    product.writes = {{Access::kTemporary, part_bytes}};
    result.launches.push_back(std::move(product));
  }
  result.launches.push_back(last(Access::kTemporary));  // the trace allocates the product, a tensor of its own
  return result;
}

}  // namespace ridgeline
