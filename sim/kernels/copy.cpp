// Copies: device-to-device by the copy kernel of the driver, permuted views by TensorIterator's offset-computing
// kernel, concatenation by a kernel of its own, and transfers over the host link. Tested by
// tests/kernels/copy_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/stream_launch.h"

namespace ridgeline {
namespace {

/// A read that strides over rows fetches a 32-byte sector for every element, and scattered sectors pass the L2 more
/// slowly than whole lines: as if each were this many bytes. Fitted on transposed copies, 6.5 ps an element in 16 bits
/// and in 32.
constexpr double kScatteredSectorBytes = 46.0;

/// Sectors a block asks the L2 for, an element, when a matrix is transposed. Its elements lie one row of the source
/// apart; once they reach the last row they go on in the next column, whose elements sit in the sectors already read.
double sectors_an_element(const Copy& op, std::int64_t per_block) {
  const double columns = std::max(1.0, static_cast<double>(per_block) / static_cast<double>(op.rows));
  const double sectors = 1.0 + (columns - 1.0) * static_cast<double>(bytes_of(op.type)) / 32.0;  // a row of columns
  return std::min(1.0, sectors / columns);
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
  const std::int64_t element = bytes_of(op.type);
  const std::int64_t n = op.rows * op.cols;
  const bool vectorized = op.cols * element % 16 == 0;
  const std::int64_t per_block = 128 * (vectorized ? 16 / element : 4);
  LoweredOp result;
  for (std::int64_t first = 0; first < op.parts; first += kMostInputs) {
    const std::int64_t parts = std::min<std::int64_t>(op.parts - first, kMostInputs);
    const double elements = static_cast<double>(n) * static_cast<double>(parts);
    const std::int64_t grid = std::min<std::int64_t>(ceil_div(n, per_block), 32 * gpu.sm.count);
    KernelLaunch launch = stream_launch(vectorized ? StreamKernel::concatenate : StreamKernel::concatenate_unaligned,
                                        vectorized ? "CatArray_vec" : "CatArray", TimeClass::copy, op.type,
                                        {grid, parts, 128, vectorized ? 18 : 32}, {.elements = elements});
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
    case CopyKind::concatenate: return concatenate(op, gpu);
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
    KernelLaunch launch = stream_launch(StreamKernel::strided_copy, strided ? "copy_transposed" : "copy_permuted",
                                        TimeClass::copy, op.type, {ceil_div(elements, per_block), 1, 128, 18},
                                        {.elements = count, .iterations = static_cast<double>(per_block / 128)});
    launch.pipe = Pipe::none;
    launch.reads = {
        {0, count * element, strided ? count * sectors_an_element(op, per_block) * kScatteredSectorBytes : 0.0}};
    launch.writes = {{1, count * element}};
    result.launches.push_back(std::move(launch));
  }
  return result;
}

}  // namespace ridgeline
