// The analytic law of each kind of work, one file a law. The analytic engine dispatches to them.
//
// Each returns the kernel's own duration (from its first block starting to its last one ending, as a profiler reports
// it), without launch gap. `residency` is the hit share of each access, reads then writes; empty = cold and clean.
#pragma once

#include "sim/timing/kernel_time.h"

namespace ridgeline {

struct AttentionConstants;
struct ConvolutionConstants;
struct GemmConstants;
struct MemoryBoundConstants;

KernelTime gemm_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency);
/// With constants other than those of the kernel's class.
KernelTime gemm_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency,
                     const GemmConstants& constants);
/// Of a gathering product.
KernelTime convolution_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency);
/// With constants other than those of the kernel's class.
KernelTime convolution_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency,
                            const ConvolutionConstants& constants);
KernelTime attention_time(const KernelLaunch& launch, const AttentionWork& work, const Gpu& gpu, Residency residency);
/// With constants other than those of the kernel's class.
KernelTime attention_time(const KernelLaunch& launch, const AttentionWork& work, const Gpu& gpu, Residency residency,
                          const AttentionConstants& constants);
KernelTime memory_bound_time(const KernelLaunch& launch, const MemoryBoundWork& work, const Gpu& gpu,
                             Residency residency);
/// With constants other than those of the kernel's class.
KernelTime memory_bound_time(const KernelLaunch& launch, const MemoryBoundWork& work, const Gpu& gpu,
                             Residency residency, const MemoryBoundConstants& constants);
KernelTime fixed_time(const KernelLaunch& launch, const FixedWork& work, const Gpu& gpu, Residency residency);

}  // namespace ridgeline
