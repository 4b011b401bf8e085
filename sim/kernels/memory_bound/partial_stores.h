// Stores of single elements: what the L2 takes for sectors that are written in pieces.
#pragma once

#include <cstdint>

#include "sim/hardware/chip_shape.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// Bytes of whole sectors that the L2 writes in the time of one store of a part of a sector: for each sector that an
/// instruction of a warp stores to, and besides for each that the warp leaves. 70 stores a nanosecond on an H200 where
/// each leaves its sector, 90 to 110 where the next one of the thread stays in it; runs that fill their sectors cost no
/// more than their bytes.
inline constexpr double kStoredSectorBytes = 22.0, kLeftSectorBytes = 49.0;

/// Runs of `run` elements that begin `apart` elements from one another, each thread storing `of_thread` in turn.
struct PartialStores {
  std::int64_t run = 1, apart = 1, stores = 0, of_thread = 1;
};
/// Bytes of the launch's first write, `times` as many.
void store_partly(const PartialStores& stores, DType type, double times, const L2Spec& l2, KernelLaunch& launch);

/// The same of `stores` elements at places of their own.
void store_scattered(double stores, KernelLaunch& launch);

}  // namespace ridgeline
