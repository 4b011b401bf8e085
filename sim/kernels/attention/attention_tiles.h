// Tiles and resources of the fused attention kernels, by backend, direction, head dimension and architecture.
//
// Sources: kernel names, block sizes, registers and shared memory of profiles on an H200; the launch templates of
// FlashAttention-2 and PyTorch for head dimensions and architectures that were not profiled.
#pragma once

#include <string>
#include <string_view>

#include "sim/hardware/gpu.h"
#include "sim/workload/op.h"

namespace ridgeline {

struct AttentionTile {
  int q = 128, k = 128;
  int head_dim = 64;  ///< the kernel is compiled for: the operand's, rounded up
  int threads = 128, registers = 255, shared_bytes = 49152;
};

/// Throws std::invalid_argument where the backend does not exist for this GPU, type or head dimension.
AttentionTile attention_tile(const Attention& op, const Gpu& gpu);
/// What profiles call a kernel, shortened: `what` is "fprop", "bprop" or the like.
std::string attention_kernel_name(const Attention& op, const AttentionTile& tile, std::string_view what);
/// FlashAttention-2's kernel for few queries, whose blocks split the keys.
AttentionTile flash_split_tile(const Attention& op);

/// FlashAttention-2's rule: split the keys when a row of query blocks leaves SMs idle; the fewest splits within 85 % of
/// the best wave efficiency. `sms` counts two blocks an SM.
int flash_splits(double blocks, int sms, int key_blocks);
/// The most that rule may come to; 1: it does not split.
int most_flash_splits(double blocks, int sms, int key_blocks);

}  // namespace ridgeline
