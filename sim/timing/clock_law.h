// At which clock a kernel runs, and how fast the board's power limit lets it be.
//
// A tensor-core kernel runs below the boost clock from its first microsecond, the more so the busier its pipes:
// f = tensor − tensor_droop·activity (hardware counters of 20 kernels on an H200: 1.83 − 0.22·u GHz, rms 0.04). Kernels
// on the CUDA cores run at the sustained clock. Where work would draw more than the limit for longer than the board
// averages over, time follows energy: T ≥ (FLOPs·e + bytes·e_dram) / (limit − idle).
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/workload/dtype.h"

namespace ridgeline {

/// Clock of a kernel on `pipe` that is busy `activity` (0 to 1) of the kernel's cycles.
Hertz kernel_clock(const Gpu& gpu, Pipe pipe, double activity);

/// Energy of a floating-point operation of this type; 0 when the board's description does not say.
JoulesPerFlop energy_per_flop(const Gpu& gpu, Pipe pipe, DType type);

/// Shortest time in which the board's limit lets a continuing load do `flops` and move `dram_bytes`; 0 when unknown.
/// The energy of a FLOP is all-in for large products: only traffic beyond a byte in 500 FLOPs costs extra.
Seconds power_floor(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes);

/// The power floor of one kernel, and the share of what its time falls short of it by that the board makes it pay: what
/// fits into its averaging window is free.
struct PowerLimit {
  Seconds floor;
  double charged = 0;
};
PowerLimit power_limit(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes);

/// `time` of a kernel of a continuing load, lengthened to the power floor as far as the board does not average it away.
Seconds power_limited(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes, Seconds time);

}  // namespace ridgeline
