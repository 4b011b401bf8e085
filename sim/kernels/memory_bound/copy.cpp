// Copies: device-to-device by the copy kernel of the driver, permuted views by TensorIterator's offset-computing
// kernel, concatenation by a kernel of its own, and transfers over the host link. Tested by
// tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/gathered_rows.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/memory_bound/partial_stores.h"
#include "sim/kernels/memory_bound/strided_access.h"
#include "sim/workload/walked_dimensions.h"

namespace ridgeline {
namespace {

LoweredOp host_transfer(const Copy& op, double bytes) {
  KernelLaunch launch;
  const bool upload = op.kind == CopyKind::host_to_device || op.kind == CopyKind::pageable_to_device;
  launch.name = upload ? "Memcpy HtoD" : "Memcpy DtoH";
  launch.time_class = TimeClass::copy;
  using What = FixedWork::What;
  const bool pageable = op.kind == CopyKind::pageable_to_device || op.kind == CopyKind::device_to_pageable;
  const What what = pageable ? upload ? What::memcpy_pageable_to_device : What::memcpy_device_to_pageable
                    : upload ? What::memcpy_host_to_device
                             : What::memcpy_device_to_host;
  launch.work = FixedWork{what, bytes, 1.0};
  if (upload) launch.writes = {{1, bytes}};
  else launch.reads = {{0, bytes}};
  return {{std::move(launch)}, {}, false};
}

LoweredOp concatenate(const Copy& op, const ChipShape& chip) {
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
    // Of views that are not contiguous as many blocks start whatever there is to copy.
    const std::int64_t of_strided = std::int64_t{2} * chip.sm.count, filled = ceil_div(n, per_block);
    const std::int64_t grid = strided ? of_strided : std::min(filled, std::int64_t{32} * chip.sm.count);
    KernelLaunch launch = memory_bound_launch(vectorized ? MemoryBoundKernel::concatenate
                                              : strided  ? MemoryBoundKernel::concatenate_strided
                                                         : MemoryBoundKernel::concatenate_unaligned,
                                              vectorized ? "CatArray_vec" : "CatArray", TimeClass::copy, op.type,
                                              {grid, parts, static_cast<int>(threads),
                                               vectorized ? 18
                                               : strided  ? 29
                                                          : 32},
                                              {.elements = elements});
    launch.pipe = Pipe::none;
    auto& work = std::get<MemoryBoundWork>(launch.work);
    work.iterations = static_cast<double>(ceil_div(n, per_block * grid));
    if (strided) work.active_blocks = static_cast<double>(std::min(grid, filled) * parts);
    for (std::int64_t part = 0; part < parts; ++part)
      launch.reads.push_back({static_cast<int>(first + part), static_cast<double>(n * element)});
    const double bytes = elements * static_cast<double>(element);
    launch.writes = {{static_cast<int>(op.parts), bytes}};
    if (!vectorized && !strided) {
      constexpr std::int64_t kStoresOfThread = 4, kUsualDimensions = 2;
      work.arithmetic =
          kInstructionsADimension * static_cast<double>((op.dimensions > 0 ? op.dimensions : kUsualDimensions) - 2);
      store_partly({.run = op.cols, .apart = op.parts * op.cols, .stores = n, .of_thread = kStoresOfThread}, op.type,
                   static_cast<double>(parts), chip.l2, launch);
    } else if (strided) {
      // Short rows of the parts share sectors of the result, which each part writes by itself: of a warp's rows side by
      // side, with gaps for the other parts.
      constexpr std::int64_t kSector = 32;
      const std::int64_t row = op.cols * element;
      const double touched =
          row >= kSector ? 1.0 : std::min(static_cast<double>(parts), sector_bytes(row) / static_cast<double>(row));
      launch.writes = {{static_cast<int>(op.parts), bytes * (1.0 + (touched - 1.0) * beyond_l2(bytes, chip.l2)),
                        touched > 1.0 ? bytes * touched : 0.0}};
    }
    result.launches.push_back(std::move(launch));
  }
  return result;
}

}  // namespace

LoweredOp lower_copy(const Copy& op, const ChipShape& chip, const Software& /*software*/) {
  const std::int64_t n = op.rows * op.cols;
  if (n < 1 || op.parts < 1) throw std::invalid_argument("a copy needs at least one element");
  const auto element = static_cast<double>(bytes_of(op.type));
  const double bytes = static_cast<double>(n) * element;
  switch (op.kind) {
    case CopyKind::host_to_device:
    case CopyKind::device_to_host:
    case CopyKind::pageable_to_device:
    case CopyKind::device_to_pageable: return host_transfer(op, bytes);
    case CopyKind::concatenate:
    case CopyKind::concatenate_strided: return concatenate(op, chip);
    case CopyKind::contiguous: return {{device_copy_launch(op.type, n, 0, 1)}, {}, false};
    case CopyKind::permute:
    case CopyKind::transpose: break;
  }
  const SizeList walked = op.walked.any()                  ? op.walked
                          : op.kind == CopyKind::transpose ? transposed_matrix(op.rows, op.cols)
                                                           : whole_rows(op.rows, op.cols);
  const int splits = index_splits(bytes);
  const std::int64_t per_block = 128 * (bytes_of(op.type) >= 4 ? 2 : 4);
  LoweredOp result;
  for (int split = 0; split < splits; ++split) {
    const std::int64_t elements = n / splits + (split < n % splits ? 1 : 0);
    const auto count = static_cast<double>(elements);
    const StridedAccess access = strided_access(walked, op.type, elements, per_block, chip);
    KernelLaunch launch = memory_bound_launch(
        MemoryBoundKernel::strided_copy, op.kind == CopyKind::transpose ? "copy_transposed" : "copy_permuted",
        TimeClass::copy, op.type, {ceil_div(elements, per_block), 1, 128, 18},
        {.elements = count,
         .padded_elements = access.lines,
         .arithmetic = access.arithmetic,
         .iterations = static_cast<double>(ceil_div(std::min(elements, per_block), 128))});
    launch.pipe = Pipe::none;
    launch.reads = {{0, access.bytes, access.requested}};
    launch.writes = {{1, count * element}};
    result.launches.push_back(std::move(launch));
  }
  return result;
}

}  // namespace ridgeline
