#include "sim/kernels/memory_bound/strided_access.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

#include "sim/kernels/memory_bound/gathered_rows.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kLineOfL1 = 128, kSectorOfL2 = 32, kLoadsOfWarp = 32;
/// A line of which one or two sectors are asked for passes the L2 as slowly as this many bytes. Set on transposed
/// copies: 6.5 ps an element in 16 bits and in 32.
constexpr double kScatteredLineBytes = 48.0;
/// Lines that an SM's blocks have open, as multiples of its L1, until which all are found again and from which none is.
constexpr double kLinesHitAll = 0.5, kLinesHitNone = 1.2;
/// Blocks of an SM whose lines are open together, where the grid has that many: those of 128 threads that 64 warps
/// make.
constexpr double kOpenBlocks = 16.0;
/// Blocks whose addresses are looked at, evenly apart.
constexpr std::int64_t kBlocksLookedAt = 4;

std::int64_t offset_of(std::span<const std::int64_t> dimensions, std::int64_t i) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d + 1 < dimensions.size() && i > 0; d += 2) {
    offset += i % dimensions[d] * dimensions[d + 1];
    i /= dimensions[d];
  }
  return offset;
}

std::int64_t distinct(std::vector<std::int64_t>& places, std::int64_t of) {
  for (std::int64_t& place : places) place /= of;
  std::sort(places.begin(), places.end());
  return std::unique(places.begin(), places.end()) - places.begin();
}

/// Lines and sectors an element, by warps and by blocks.
struct Touched {
  double warp_lines = 0, warp_sectors = 0, block_lines = 0, block_sectors = 0;
};
Touched touched_by(std::span<const std::int64_t> dimensions, std::int64_t element, std::int64_t elements,
                   std::int64_t per_block) {
  Touched sum;
  std::int64_t count = 0;
  const std::int64_t blocks = ceil_div(elements, per_block), sampled = std::min(blocks, kBlocksLookedAt);
  const auto add = [](const std::vector<std::int64_t>& bytes, double& lines, double& sectors) {
    std::vector<std::int64_t> places = bytes;
    sectors += static_cast<double>(distinct(places, kSectorOfL2));
    places = bytes;
    lines += static_cast<double>(distinct(places, kLineOfL1));
  };
  for (std::int64_t k = 0; k < sampled; ++k) {
    const std::int64_t first = blocks * k / sampled * per_block, last = std::min(elements, first + per_block);
    std::vector<std::int64_t> block, warp;
    for (std::int64_t i = first; i < last; ++i) {
      block.push_back(offset_of(dimensions, i) * element);
      warp.push_back(block.back());
      if (static_cast<std::int64_t>(warp.size()) < kLoadsOfWarp && i + 1 < last) continue;
      add(warp, sum.warp_lines, sum.warp_sectors);
      warp.clear();
    }
    add(block, sum.block_lines, sum.block_sectors);
    count += last - first;
  }
  const auto all = static_cast<double>(std::max<std::int64_t>(1, count));
  return {sum.warp_lines / all, sum.warp_sectors / all, sum.block_lines / all, sum.block_sectors / all};
}

/// Runs over all dimensions; throws std::invalid_argument for what are none.
double walked_elements(std::span<const std::int64_t> dimensions) {
  constexpr double kFarthest = 1e15;  // counted in bytes without overflow
  double all = 1.0;
  bool possible = !dimensions.empty() && dimensions.size() % 2 == 0;
  for (std::size_t d = 0; possible && d < dimensions.size(); d += 2) {
    const auto size = static_cast<double>(dimensions[d]), stride = static_cast<double>(dimensions[d + 1]);
    possible = size >= 1.0 && size <= kFarthest && size * std::abs(stride) <= kFarthest;
    all *= static_cast<double>(dimensions[d]);
  }
  if (!possible) throw std::invalid_argument("dimensions that are walked have a size of 1 or more and a stride each");
  return all;
}

/// Bytes of all sectors that are touched at all.
double distinct_bytes(std::span<const std::int64_t> dimensions, std::int64_t element) {
  struct Dimension {
    std::int64_t stride, size;
  };
  std::vector<Dimension> by_stride;
  for (std::size_t d = 0; d + 1 < dimensions.size(); d += 2)
    if (dimensions[d] > 1 && dimensions[d + 1] != 0) by_stride.push_back({std::abs(dimensions[d + 1]), dimensions[d]});
  std::sort(by_stride.begin(), by_stride.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::int64_t run = element;
  double runs = 1.0;
  for (const Dimension& d : by_stride) {
    if (d.stride * element <= std::max(run, kSectorOfL2)) run = std::max(run, d.stride * element * (d.size - 1) + run);
    else runs *= static_cast<double>(d.size);
  }
  return runs * (runs > 1.0 && run < kSectorOfL2 ? sector_bytes(run) : static_cast<double>(run));
}

}  // namespace

double arithmetic_of(const SizeList& dimensions) {
  return kInstructionsADimension * (static_cast<double>(dimensions.list->size()) / 2.0 - 2.0);
}

StridedAccess strided_access(const SizeList& dimensions, DType type, std::int64_t elements, std::int64_t per_block,
                             const ChipShape& chip) {
  const std::int64_t element = bytes_of(type);
  const std::span<const std::int64_t> walked = *dimensions.list;
  const double all = walked_elements(walked);
  const Touched touched = touched_by(walked, element, elements, per_block);
  const auto n = static_cast<double>(elements);
  const double blocks = n / static_cast<double>(per_block);
  const double resident = std::clamp(std::ceil(blocks / chip.sm.count), 1.0, kOpenBlocks);
  const double open = resident * touched.block_lines * static_cast<double>(std::min(per_block, elements) * kLineOfL1) /
                      std::max(1.0, chip.sm.l1_and_shared.value());
  const double found = std::clamp((kLinesHitNone - open) / (kLinesHitNone - kLinesHitAll), 0.0, 1.0);
  const double lines = touched.warp_lines + found * (touched.block_lines - touched.warp_lines),
               sectors = touched.warp_sectors + found * (touched.block_sectors - touched.warp_sectors);
  StridedAccess access;
  access.lines = n * touched.warp_lines;
  const double asked = static_cast<double>(kSectorOfL2) * sectors;
  access.requested = n * (sectors > 2.0 * lines ? asked : std::max(kScatteredLineBytes * lines, 0.5 * asked));
  access.bytes = distinct_bytes(walked, element) * n / all;
  access.requested = std::max(access.requested, access.bytes);
  access.arithmetic = arithmetic_of(dimensions);
  return access;
}

}  // namespace ridgeline
