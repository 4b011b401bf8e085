// Copies: device-to-device by the copy kernel of the driver, permuted views by TensorIterator's offset-computing
// kernel, concatenation by a kernel of its own, and transfers over the host link. Tested by
// tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/stream_launch.h"

namespace ridgeline {
namespace {

/// A read that strides over rows fetches a 32-byte sector for every element, and scattered sectors pass the L2 more
/// slowly than whole lines: as if each were this many bytes. Fitted on transposed copies, 6.5 ps an element in 16 bits
/// and in 32.
constexpr double kScatteredSectorBytes = 46.0;

/// Lines that an SM's blocks have open, as multiples of its L1, until which all are found again and from which none is.
constexpr double kLinesHitAll = 0.5, kLinesHitNone = 1.2;

/// Blocks of an SM whose lines are open together, where the grid has that many: those of 128 threads that 64 warps
/// make.
constexpr double kOpenBlocks = 16.0;

/// Sectors a block asks the L2 for, an element, when a matrix is transposed. Its elements lie one row of the source
/// apart; once they reach the last row they go on in the next column, whose elements sit in the sectors already read,
/// as long as the L1 can hold a line for each row of each of the SM's blocks.
double sectors_an_element(const Copy& op, const Gpu& gpu, std::int64_t per_block) {
  constexpr double kLine = 128.0, kSector = 32.0;
  const auto elements = static_cast<double>(std::min(per_block, op.rows * op.cols));
  const auto rows = static_cast<double>(op.rows);
  const double columns = std::max(1.0, elements / rows);
  const double blocks = static_cast<double>(op.rows * op.cols) / static_cast<double>(per_block);
  const double resident = std::clamp(std::ceil(blocks / gpu.sm.count), 1.0, kOpenBlocks);
  const double open = resident * std::min(rows, elements) * kLine / std::max(1.0, gpu.sm.l1_and_shared.value());
  const double found = std::clamp((kLinesHitNone - open) / (kLinesHitNone - kLinesHitAll), 0.0, 1.0);
  const double again = 1.0 - found + found * static_cast<double>(bytes_of(op.type)) / kSector;
  return std::min(1.0, (1.0 + (columns - 1.0) * again) / columns);
}

LoweredOp host_transfer(const Copy& op, double bytes) {
  KernelLaunch launch;
  const bool upload = op.kind == CopyKind::host_to_device;
  launch.name = upload ? "Memcpy HtoD" : "Memcpy DtoH";
  launch.time_class = TimeClass::copy;
  launch.work =
      FixedWork{upload ? FixedWork::What::memcpy_host_to_device : FixedWork::What::memcpy_device_to_host, bytes, 1.0};
  if (upload) launch.writes = {{1, bytes}};
  else launch.reads = {{0, bytes}};
  return {{std::move(launch)}, {}, false};
}

LoweredOp concatenate(const Copy& op, const Gpu& gpu) {
  // Columns of `parts` equal inputs side by side; grid.y counts the inputs.
  constexpr int kMostInputs = 128;
  const bool strided = op.kind == CopyKind::concatenate_strided;
  const std::int64_t element = bytes_of(op.type);
  const std::int64_t n = op.rows * op.cols;
  const bool vectorized = !strided && op.cols * element % 16 == 0;
  const std::int64_t threads = strided ? 512 : 128, per_block = threads * (vectorized ? 16 / element : strided ? 1 : 4);
  LoweredOp result;
  for (std::int64_t first = 0; first < op.parts; first += kMostInputs) {
    const std::int64_t parts = std::min<std::int64_t>(op.parts - first, kMostInputs);
    const double elements = static_cast<double>(n) * static_cast<double>(parts);
    const std::int64_t grid =
        std::min<std::int64_t>(ceil_div(n, per_block), std::int64_t{strided ? 2 : 32} * gpu.sm.count);
    KernelLaunch launch = stream_launch(vectorized ? StreamKernel::concatenate
                                        : strided  ? StreamKernel::concatenate_strided
                                                   : StreamKernel::concatenate_unaligned,
                                        vectorized ? "CatArray_vec" : "CatArray", TimeClass::copy, op.type,
                                        {grid, parts, static_cast<int>(threads),
                                         vectorized ? 18
                                         : strided  ? 29
                                                    : 32},
                                        {.elements = elements});
    launch.pipe = Pipe::none;
    std::get<StreamWork>(launch.work).iterations = static_cast<double>(ceil_div(n, per_block * grid));
    for (std::int64_t part = 0; part < parts; ++part)
      launch.reads.push_back({static_cast<int>(first + part), static_cast<double>(n * element)});
    launch.writes = {{static_cast<int>(op.parts), elements * static_cast<double>(element)}};
    result.launches.push_back(std::move(launch));
  }
  return result;
}

}  // namespace

LoweredOp lower_copy(const Copy& op, const Gpu& gpu, const Software& /*software*/) {
  const std::int64_t n = op.rows * op.cols;
  if (n < 1 || op.parts < 1) throw std::invalid_argument("a copy needs at least one element");
  const auto element = static_cast<double>(bytes_of(op.type));
  const double bytes = static_cast<double>(n) * element;
  switch (op.kind) {
    case CopyKind::host_to_device:
    case CopyKind::device_to_host: return host_transfer(op, bytes);
    case CopyKind::concatenate:
    case CopyKind::concatenate_strided: return concatenate(op, gpu);
    case CopyKind::contiguous: return {{device_copy_launch(op.type, n, 0, 1)}, {}, false};
    case CopyKind::permute:
    case CopyKind::transpose: break;
  }
  const bool strided = op.kind == CopyKind::transpose;
  const int splits = index_splits(bytes);
  const std::int64_t per_block = 128 * (bytes_of(op.type) >= 4 ? 2 : 4);
  LoweredOp result;
  for (int split = 0; split < splits; ++split) {
    const std::int64_t elements = n / splits + (split < n % splits ? 1 : 0);
    const auto count = static_cast<double>(elements);
    const double sectors = count * sectors_an_element(op, gpu, per_block);
    // An access of a warp takes a turn of the L1 for each sector it touches.
    KernelLaunch launch =
        stream_launch(StreamKernel::strided_copy, strided ? "copy_transposed" : "copy_permuted", TimeClass::copy,
                      op.type, {ceil_div(elements, per_block), 1, 128, 18},
                      {.elements = count,
                       .padded_elements = strided ? sectors : count * sectors_in_rows(op.type),
                       .iterations = static_cast<double>(ceil_div(std::min(elements, per_block), 128))});
    launch.pipe = Pipe::none;
    launch.reads = {{0, count * element, strided ? sectors * kScatteredSectorBytes : 0.0}};
    launch.writes = {{1, count * element}};
    result.launches.push_back(std::move(launch));
  }
  return result;
}

}  // namespace ridgeline
