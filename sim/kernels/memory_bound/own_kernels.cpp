// Kernels of PyTorch 2.11 that are no element-wise kernels of TensorIterator: index_select and index_add_ of
// Indexing.cu, TriangularOps.cu, DistributionTemplates.h and Nonzero.cu (over CUB). Grids as in
// measurements/h200/calls.
#include "sim/kernels/memory_bound/own_kernels.h"

#include <algorithm>
#include <cmath>

#include "sim/kernels/memory_bound/bits_and_bytes.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/memory_bound/radix_sort.h"
#include "sim/workload/pointwise_functions.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kThreadsOfIndex = 128, kBlocksAnSm = 8;
constexpr double kSearchedSector = 32.0;

struct OwnKernel {
  MemoryBoundKernel kernel;
  const char* name;
  Geometry geometry;
  double iterations = 1.0;
};

/// Threads walk the elements in strides of the grid, which fills the SMs once.
OwnKernel indexed(const Pointwise& op, const ChipShape& chip) {
  using F = PointwiseFunction;
  const bool few = op.function == F::index_few || op.function == F::index_add_few;
  const std::int64_t slice = few ? op.cols : op.elements(), most = kBlocksAnSm * chip.sm.count;
  const std::int64_t grid = std::min(ceil_div(slice, kThreadsOfIndex), most);
  const auto turns = static_cast<double>(ceil_div(slice, grid * kThreadsOfIndex));
  const MemoryBoundKernel kernel = op.function == F::index_few       ? MemoryBoundKernel::index_few
                                   : op.function == F::index_add_few ? MemoryBoundKernel::index_add_few
                                                                     : MemoryBoundKernel::index_add;
  const char* const name = op.function == F::index_few       ? "indexSelectSmallIndex"
                           : op.function == F::index_add_few ? "indexFuncSmallIndex"
                                                             : "indexFuncLargeIndex";
  return {kernel,
          name,
          {grid, 1, static_cast<int>(kThreadsOfIndex), 32},
          few ? static_cast<double>(op.rows) * turns : turns};
}

/// Bytes of the row that values are looked up in.
std::int64_t sorted_length(const Pointwise& op) {
  return op.walked.any() ? std::max<std::int64_t>(1, op.walked.list->front()) : 1;
}

OwnKernel own_kernel(const Pointwise& op, const ChipShape& chip) {
  using F = PointwiseFunction;
  if (op.function == F::triangle) {  // vectors of eight bytes, a row padded to whole ones
    const std::int64_t each = std::max<std::int64_t>(1, 8 / bytes_of(op.output)),
                       threads = op.rows * ceil_div(op.cols, each);
    return {MemoryBoundKernel::triangle, "triu_tril_kernel", {ceil_div(threads, 128), 1, 128, 32}};
  }
  if (op.function == F::random) {
    constexpr std::int64_t kOfRandom = 256;
    const std::int64_t n = op.elements(), grid = std::min(ceil_div(n, kOfRandom), kBlocksAnSm * chip.sm.count);
    return {MemoryBoundKernel::random,
            "distribution_elementwise_grid_stride_kernel",
            {grid, 1, static_cast<int>(kOfRandom), 40},
            static_cast<double>(ceil_div(n, grid * kOfRandom * 4))};
  }
  if (op.function == F::search) {
    constexpr std::int64_t kOfSearch = 1024, kMostBlocks = 1024;
    const std::int64_t n = op.elements(), threads = std::min(n, kOfSearch),
                       grid = std::min(ceil_div(n, threads), kMostBlocks), sorted = sorted_length(op);
    return {MemoryBoundKernel::search,
            "searchsorted_cuda_kernel",
            {grid, 1, static_cast<int>(threads), 32},
            static_cast<double>(ceil_div(n, grid * threads) * std::max(1, log2_ceil(sorted)))};
  }
  return indexed(op, chip);
}

/// Waits of a block for the sums of those before it (CUB's decoupled look-back): a warp looks at 32 of them at a time,
/// and more blocks are further behind one another.
double looked_back(std::int64_t blocks) { return 1.0 + log2_ceil(std::min<std::int64_t>(blocks, 32)); }

/// The kernels of torch.nonzero: a count, which the host reads, then places, then places by dimension.
LoweredOp lower_nonzero(const Pointwise& op) {
  constexpr std::int64_t kOfReduction = 4096, kOfSelection = 384 * 11, kOfPlaces = 256;
  const std::int64_t n = op.elements(), marked = op.inputs[0] == DType::boolean ? std::max<std::int64_t>(1, n / 2) : n;
  const auto marks = static_cast<double>(n * bytes_of(op.inputs[0]));
  const double places = 8.0 * static_cast<double>(marked);
  LoweredOp result;
  auto& launches = result.launches;
  const std::int64_t blocks = ceil_div(n, kOfReduction);
  // Sixteen marks a thread, in loads one behind the other where they are no whole vectors.
  constexpr double kLoadsOfMarks = 2.0;
  KernelLaunch counted =
      memory_bound_launch(MemoryBoundKernel::reduce_all, blocks > 1 ? "DeviceReduceKernel" : "DeviceReduceSingleTile",
                          TimeClass::elementwise, op.inputs[0], {blocks, 1, 256, 32},
                          {.elements = static_cast<double>(n), .iterations = kLoadsOfMarks});
  counted.pipe = Pipe::none;
  counted.reads = {{0, marks}};
  launches.push_back(std::move(counted));
  if (blocks > 1)
    launches.push_back(small_kernel(MemoryBoundKernel::tiny, "DeviceReduceSingleTile", 1.2, 1, 256, 32, 0));
  KernelLaunch count;
  count.name = "Memcpy DtoH";
  count.time_class = TimeClass::copy;
  count.work = FixedWork{FixedWork::What::memcpy_device_to_host, 8.0, 1.0};
  count.reads = {{Access::kTemporary, 8.0}};
  launches.push_back(std::move(count));
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "DeviceCompactInit", 0.0, 1, 128, 16, 0));
  KernelLaunch select =
      memory_bound_launch(MemoryBoundKernel::select_marked, "DeviceSelectSweep", TimeClass::elementwise, DType::int64,
                          {ceil_div(n, kOfSelection), 1, 384, 40, 16384},
                          {.elements = static_cast<double>(n), .iterations = looked_back(ceil_div(n, kOfSelection))});
  select.reads = {{0, marks}};
  select.writes = {{1, places}};
  launches.push_back(std::move(select));
  if (op.input_count < 2) return result;  // of one dimension
  KernelLaunch write =
      memory_bound_launch(MemoryBoundKernel::write_places, "write_indices", TimeClass::elementwise, DType::int64,
                          {ceil_div(marked, kOfPlaces), 1, static_cast<int>(kOfPlaces), 32},
                          {.elements = static_cast<double>(marked * op.input_count)});
  write.reads = {{1, places}};
  write.writes = {{1, places * op.input_count}};
  launches.push_back(std::move(write));
  return result;
}

}  // namespace

bool has_own_kernel(PointwiseFunction function) { return row_of(function).kernel.law.empty(); }

LoweredOp lower_own_kernel(const Pointwise& op, const ChipShape& chip) {
  if (op.function == PointwiseFunction::nonzero) return lower_nonzero(op);
  if (of_bits_and_bytes(op.function)) return lower_bits_and_bytes(op);
  const OwnKernel own = own_kernel(op, chip);
  const auto count = static_cast<double>(op.elements()), written = count * static_cast<double>(bytes_of(op.output));
  KernelLaunch launch = memory_bound_launch(own.kernel, own.name, TimeClass::elementwise, op.output, own.geometry,
                                            {.elements = count, .iterations = own.iterations});
  for (int i = 0; i < op.input_count; ++i)
    launch.reads.push_back({i, count * static_cast<double>(bytes_of(op.inputs[i]))});
  // The sorted row: no more of it than what is looked at.
  if (op.function == PointwiseFunction::search && op.input_count > 1) {
    const double row = static_cast<double>(sorted_length(op) * bytes_of(op.inputs[0]));
    launch.reads.front() = {0, std::min(row, count * kSearchedSector), count * kSearchedSector};
  }
  const bool adds = op.function == PointwiseFunction::index_add || op.function == PointwiseFunction::index_add_few;
  if (adds) launch.reads.push_back({op.input_count, written});
  // A triangle in place writes its zeros alone, which are half of a square.
  const bool zeros = op.function == PointwiseFunction::triangle && op.input_count == 0;
  launch.writes = {{op.input_count, zeros ? 0.5 * written : written}};
  launch.flops = adds ? count : 0.0;
  return {{std::move(launch)}, {}, false};
}

}  // namespace ridgeline
