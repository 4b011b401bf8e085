// Sums, means and norms: PyTorch's one reduction kernel, whose block shape and split over blocks follow the shape.
// Partial sums of several blocks meet through a semaphore (cleared by a memset): the last block adds them serially.
// Rules read from PyTorch 2.11 profiles; tested by tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

struct Plan {
  std::int64_t outputs_per_thread = 1, width = 1, height = 1;  ///< threads of a block along x and y
  std::int64_t grid_x = 1, grid_y = 1, values_per_thread = 1;
  bool across_y = false;  ///< threads of different y add into one output
};

/// From so many values on, side by side, a thread loads several at once.
constexpr std::int64_t kFromVectors = 128;
/// Sums and means of 16-bit types have vectors of their own (ReduceSumProdKernel.cu, ReduceMomentKernel.cu).
std::int64_t input_vector(const Reduction& op) {
  return op.accumulator == Accumulator::number && bytes_of(op.type) == 2 ? 8 : 4;
}

/// `outputs` sums of `inputs` values each; `contiguous` when the values of one sum lie side by side, `scattered` when
/// they do so in pieces; else `inner` outputs lie side by side.
struct ReducedShape {
  std::int64_t outputs, inputs, inner, vector;
  bool contiguous, scattered;
};
Plan plan_of(const ReducedShape& shape, int sms) {
  const auto& [outputs, inputs, inner, vector, contiguous, scattered] = shape;
  constexpr std::int64_t kMostThreads = 512, kWarp = 32, kThreadsPerSm = 2048;
  Plan plan;
  std::int64_t across = contiguous ? inputs : outputs, along = contiguous ? outputs : inputs;
  if (contiguous) {
    if (inputs >= kFromVectors && !scattered) across /= vector;
  } else {
    plan.outputs_per_thread = inner % 4 == 0 ? 4 : inner % 2 == 0 ? 2 : 1;
    across = outputs / plan.outputs_per_thread;
  }
  const std::int64_t most = kMostThreads / plan.outputs_per_thread;
  const std::int64_t x = std::min(power_of_two_below(across), most), y = std::min(power_of_two_below(along), most);
  plan.width = std::min(x, kWarp);
  plan.height = std::min(y, most / plan.width);
  plan.width = std::min(x, most / plan.height);
  std::int64_t input_step = contiguous ? plan.width : 1, output_step = contiguous ? 1 : plan.width;
  plan.values_per_thread = ceil_div(inputs, input_step);
  if (plan.values_per_thread >= plan.height * 16 || plan.values_per_thread >= 256) {
    input_step *= plan.height;
    plan.across_y = true;
  } else {
    output_step *= plan.height;
  }
  plan.values_per_thread = ceil_div(inputs, input_step);
  plan.grid_x = ceil_div(outputs / plan.outputs_per_thread, output_step);
  const std::int64_t target = sms * (kThreadsPerSm / (plan.width * plan.height));
  if (plan.values_per_thread >= 256 && plan.grid_x <= target && (plan.across_y || contiguous)) {
    plan.grid_y = std::max(std::min(ceil_div(target, plan.grid_x), ceil_div(plan.values_per_thread, 16)),
                           ceil_div(plan.values_per_thread, 256));
    if (plan.grid_y > 1) plan.values_per_thread = ceil_div(plan.values_per_thread, plan.grid_y);
  }
  return plan;
}

/// Threads of a scan's block side by side in a row, the others work on further rows: as many as rows are longer than
/// there are rows, in logarithms.
std::int64_t scan_width(std::int64_t rows, std::int64_t cols) {
  constexpr int kMost = 9, kLeast = 4;                               // as powers of two
  if (kMost + log2_ceil(cols) < log2_ceil(rows)) return 1 << kMost;  // PyTorch's difference is of unsigned numbers
  return std::int64_t{1} << std::clamp((kMost + log2_ceil(cols) - log2_ceil(rows)) / 2, kLeast, kMost);
}

MemoryBoundKernel scan_kernel(const Reduction& op) {
  const bool down = op.kind == ReductionKind::scan_rows, places = op.accumulator != Accumulator::number;
  if (places) return down ? MemoryBoundKernel::scan_columns_places : MemoryBoundKernel::scan_places;
  return down ? MemoryBoundKernel::scan_columns : MemoryBoundKernel::scan;
}

/// One row: CUB's scan over the whole device, whose blocks of 128 threads look back at the sums of those before.
LoweredOp whole_scan(const Reduction& op) {
  constexpr std::int64_t kTileBytes = 128 * 60;
  const auto bytes = static_cast<double>(op.cols * bytes_of(op.type));
  const std::int64_t tiles = ceil_div(op.cols * bytes_of(op.type), kTileBytes);
  KernelLaunch init = memory_bound_launch(MemoryBoundKernel::tiny, "DeviceScanInit", TimeClass::elementwise,
                                          DType::int64, {ceil_div(tiles, 128), 1, 128, 16}, {.iterations = 0.0});
  init.pipe = Pipe::none;
  KernelLaunch scan =
      memory_bound_launch(MemoryBoundKernel::select_marked, "DeviceScanKernel", TimeClass::elementwise, op.type,
                          {tiles, 1, 128, 47, 7184}, {.elements = static_cast<double>(op.cols)});
  scan.flops = static_cast<double>(op.cols);
  scan.reads = {{0, bytes}};
  scan.writes = {{1, bytes}};
  return {{std::move(init), std::move(scan)}, {}, false};
}

/// Running sums: along rows, two elements a thread at a time; down columns a thread a column, one element after the
/// other.
LoweredOp lower_scan(const Reduction& op) {
  constexpr std::int64_t kScanThreads = 512;
  if (op.kind == ReductionKind::scan_cols && op.rows == 1 && op.accumulator == Accumulator::number)
    return whole_scan(op);
  const bool down = op.kind == ReductionKind::scan_rows;
  const double n = static_cast<double>(op.rows * op.cols), bytes = n * static_cast<double>(bytes_of(op.type));
  const std::int64_t width = scan_width(op.rows, op.cols), tiles = ceil_div(op.cols, 2 * width);
  // Down columns a block has those behind one another of one matrix, however few.
  const bool apart = op.inner > 0 && op.cols % op.inner == 0;
  const std::int64_t inner = apart ? op.inner : op.cols, matrices = op.cols / inner;
  // Up and down a tree of sums: of values with places the barriers of every level are what takes time.
  constexpr double kLevelsOfWidest = 10.0;
  const double levels = op.accumulator == Accumulator::number ? 1.0 : log2_ceil(2 * width) / kLevelsOfWidest;
  Geometry geometry;
  geometry.threads = static_cast<int>(down ? std::min(inner, kScanThreads) : kScanThreads);
  geometry.grid_x = down ? matrices : ceil_div(op.rows, kScanThreads / width);
  if (down) geometry.grid_y = ceil_div(inner, geometry.threads);
  KernelLaunch launch =
      memory_bound_launch(scan_kernel(op), "tensor_kernel_scan", TimeClass::elementwise, op.type, geometry,
                          {.elements = down ? n : static_cast<double>(op.rows * tiles * 2 * width),
                           .iterations = down ? static_cast<double>(op.rows) : levels * static_cast<double>(tiles)});
  launch.flops = n;
  launch.reads = {{0, bytes}};
  launch.writes = {{1, bytes}};
  return {{std::move(launch)}, {}, false};
}

/// Moments of each row by a block of its own: 512 threads, or a warp for rows shorter than that.
LoweredOp lower_groups(const Reduction& op) {
  constexpr std::int64_t kThreads = 512, kWarp = 32;
  const std::int64_t threads = op.cols < kThreads ? kWarp : kThreads;
  const auto n = static_cast<double>(op.rows * op.cols), element = static_cast<double>(bytes_of(op.type));
  KernelLaunch launch =
      memory_bound_launch(MemoryBoundKernel::reduce_groups, "RowwiseMoments", TimeClass::normalization, op.type,
                          {op.rows, 1, static_cast<int>(threads), 32},
                          {.elements = n, .iterations = static_cast<double>(ceil_div(op.cols, threads))});
  launch.flops = 4.0 * n;
  launch.reads = {{0, n * element}};
  launch.writes = {{1, 8.0 * static_cast<double>(op.rows)}};
  return {{std::move(launch)}, {}, false};
}

/// The kernel's class by what is reduced and what a thread carries.
MemoryBoundKernel reduction_kernel(Accumulator accumulator, bool columns, bool all) {
  using K = MemoryBoundKernel;
  switch (accumulator) {
    case Accumulator::place:
      return columns ? K::reduce_columns_places : all ? K::reduce_all_places : K::reduce_rows_places;
    case Accumulator::moments:
      return columns ? K::reduce_columns_moments : all ? K::reduce_all_moments : K::reduce_rows_moments;
    default: return columns ? K::reduce_columns : all ? K::reduce_all : K::reduce_rows;
  }
}

}  // namespace

LoweredOp lower_reduction(const Reduction& op, const ChipShape& chip, const Software& /*software*/) {
  if (op.rows < 1 || op.cols < 1) throw std::invalid_argument("a reduction needs at least one element");
  if (scans(op.kind)) return lower_scan(op);
  if (op.accumulator == Accumulator::groups) return lower_groups(op);
  const std::int64_t n = op.rows * op.cols, element = bytes_of(op.type);
  const bool all = op.kind == ReductionKind::sum_all || op.kind == ReductionKind::norm_all;
  const bool single = !all && (op.kind == ReductionKind::sum_rows ? op.rows : op.cols) == 1;  // nothing is added up
  const bool columns = op.kind == ReductionKind::sum_rows || single;                          // [rows, cols] → [cols]
  const std::int64_t outputs = all ? 1 : op.kind == ReductionKind::sum_rows ? op.cols : op.rows;
  const std::int64_t inputs = n / outputs;
  const std::int64_t inner = op.inner > 0 ? op.inner : outputs;
  const Plan plan = plan_of({outputs, inputs, inner, input_vector(op), !columns, op.scattered}, chip.sm.count);
  const std::int64_t threads = plan.width * plan.height;
  LoweredOp result;
  if (plan.grid_y > 1) {
    result.launches.push_back(memset_launch(4.0 * static_cast<double>(plan.grid_x), Access::kTemporary));
    // Partial sums (a place for every thread of a block's row where columns are summed) and a counter a column of
    // blocks, as ReduceConfig::global_memory_size has it; sizes as in the recorded histories of an H200.
    result.temporaries.push_back(4 * outputs * plan.grid_y * (columns ? plan.width * plan.outputs_per_thread : 1));
    result.temporaries.push_back(plan.grid_x * 4);
  }
  const bool fp16 = op.type == DType::fp16;
  const int registers = plan.outputs_per_thread == 4   ? (fp16 ? 48 : 54)
                        : plan.outputs_per_thread == 2 ? (fp16 ? 36 : 40)
                                                       : 32;
  const bool exchanges = plan.across_y || (!columns && plan.width > 32);
  const std::int64_t shared = 16 + (exchanges || plan.grid_y > 1 ? threads * plan.outputs_per_thread * 4 : 0);
  const MemoryBoundKernel kernel = reduction_kernel(op.accumulator, columns, all || outputs == 1);
  // Along a row a thread loads one vector after the other; elsewhere four loads are in flight together. Rows that do
  // not start at a vector's boundary have a head and a tail of single elements.
  constexpr double kLoadsInFlight = 4.0, kHeadAndTail = 2.0;
  const std::int64_t vector = !columns && inputs >= kFromVectors && !op.scattered ? 16 / element : 1;
  const auto values = static_cast<double>(plan.values_per_thread);
  double passes = columns ? std::ceil(values / kLoadsInFlight) : values / kLoadsInFlight;
  if (!columns && !all && outputs > 1)
    passes = vector > 1 ? std::ceil(values / static_cast<double>(vector)) + (inputs % vector != 0 ? kHeadAndTail : 0.0)
                        : std::ceil(values / kLoadsInFlight);
  MemoryBoundWork work{.elements = static_cast<double>(n), .iterations = passes};
  if (plan.grid_y > 1) work.tail_steps = static_cast<double>(ceil_div(plan.grid_y, columns ? plan.height : threads));
  KernelLaunch launch =
      memory_bound_launch(kernel, "reduce_kernel", TimeClass::normalization, op.type,
                          {plan.grid_x, plan.grid_y, static_cast<int>(threads), registers, shared}, work);
  launch.flops = static_cast<double>(n) * (op.kind == ReductionKind::norm_all ? 2.0 : 1.0);
  launch.reads = {{0, static_cast<double>(n * element)}};
  launch.writes = {{1, static_cast<double>(outputs * element)}};
  result.launches.push_back(std::move(launch));
  return result;
}

}  // namespace ridgeline
