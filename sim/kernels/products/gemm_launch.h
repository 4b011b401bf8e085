// The launches of one tiled matrix product, shared by matmul, convolution and their backward passes.
#pragma once

#include <string_view>
#include <vector>

#include "sim/kernels/products/gemm_selection.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// Appends [memset] product [split reduction] in the tile that was selected for `problem`. `reads` and `writes` are the
/// product's accesses; the writes go to the reduction where there is one.
void append_gemm(std::vector<KernelLaunch>& launches, const GemmWork& problem, const Gpu& gpu,
                 const GemmSelection& selection, std::vector<Access> reads, const std::vector<Access>& writes,
                 std::string_view kind = "gemm");

/// Stages of tiles whose splits a second kernel adds up: fp32 kernels of fewer add up their own.
inline constexpr int kSummedStages = 4;

/// The kernel that adds up the partial sums of `work`, which says into how many k is split.
KernelLaunch split_reduction(GemmWork work, const std::vector<Access>& writes);

/// A small cudaMemset in front of a kernel that counts its tiles.
KernelLaunch counter_memset();

}  // namespace ridgeline
