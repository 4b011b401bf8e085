#include "sim/kernels/attention/attention_helpers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {

void check_attention(const Attention& op) {
  if (op.batch < 1 || op.heads < 1 || op.kv_heads < 1 || op.seq_q < 1 || op.seq_k < 1 || op.head_dim < 1)
    throw std::invalid_argument("attention over an empty operand");
  if (op.heads % op.kv_heads != 0)
    throw std::invalid_argument(fmt::format("{} query heads cannot share {} key-value heads", op.heads, op.kv_heads));
  if (!op.lengths.any()) return;
  if (op.backend != AttentionBackend::flash || op.bias || op.head_major)
    throw std::invalid_argument(
        "packed sequences need FlashAttention without a mask, operands as views of [tokens, heads, head_dim]");
  const auto& lengths = *op.lengths.list;
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (*std::min_element(lengths.begin(), lengths.end()) < 1 || tokens != op.seq_q || tokens != op.seq_k)
    throw std::invalid_argument(fmt::format("packed sequences have {} tokens in all, a row has {} queries and {} keys",
                                            tokens, op.seq_q, op.seq_k));
}

std::int64_t sequences_of(const Attention& op) {
  return op.lengths.any() ? op.batch * static_cast<std::int64_t>(op.lengths.list->size()) : op.batch;
}

std::int64_t tiles_of_rows(const Attention& op, std::int64_t rows) {
  if (!op.lengths.any()) return op.batch * ceil_div(op.seq_q, rows);
  std::int64_t tiles = 0;
  for (const std::int64_t length : *op.lengths.list) tiles += ceil_div(length, rows);
  return op.batch * tiles;
}

std::int64_t rows_of_accumulator(const Attention& op) {
  constexpr std::int64_t kApart = 128;
  if (op.lengths.any()) return op.batch * op.seq_q + kApart * sequences_of(op);
  return op.batch * ceil_div(op.seq_q, kApart) * kApart;
}

KernelLaunch row_kernel(const Attention& op, MemoryBoundKernel kernel, std::string name, const AttentionTile& tile) {
  const std::int64_t d = op.head_dim;
  std::int64_t rows = tile.q, width = tile.head_dim;
  Geometry geometry{.threads = 256, .registers = 46};
  if (kernel == MemoryBoundKernel::flash_convert) geometry.shared = std::int64_t{2} * tile.q * tile.head_dim;
  if (kernel == MemoryBoundKernel::cudnn_delta) {
    width = d <= 32 ? 32 : d <= 64 ? 64 : 128;
    rows = 1024 / width;
    geometry = {.threads = 128, .registers = 26};
  } else if (kernel == MemoryBoundKernel::cudnn_convert) {
    width = d;
    rows = std::max<std::int64_t>(1, 2048 / d);
    geometry = {.threads = 128, .registers = 30};
  }
  const std::int64_t longest =
      op.lengths.any() ? *std::max_element(op.lengths.list->begin(), op.lengths.list->end()) : op.seq_q;
  const std::int64_t blocks = ceil_div(longest, rows), working = op.heads * tiles_of_rows(op, rows);
  KernelLaunch launch =
      memory_bound_launch(kernel, std::move(name), TimeClass::tensor_contraction, op.type, geometry,
                          {.elements = static_cast<double>(working * rows * width),
                           .iterations = static_cast<double>(rows * width / geometry.threads) / 32.0});
  launch.grid = {blocks, op.heads, op.batch};
  if (op.lengths.any()) {
    launch.grid = {blocks, sequences_of(op), op.heads};
    if (launch.blocks() > static_cast<double>(working))
      std::get<MemoryBoundWork>(launch.work).active_blocks = static_cast<double>(working);
  }
  return launch;
}

KernelLaunch split_combine(const Attention& op, int head_dim, int splits) {
  const std::int64_t rows = op.batch * op.heads * op.seq_q;
  const std::int64_t together = head_dim % 128 == 0 ? 4 : head_dim % 64 == 0 ? 8 : 16;
  return memory_bound_launch(
      MemoryBoundKernel::split_combine, "flash_fwd_splitkv_combine", TimeClass::tensor_contraction, op.type,
      {.grid_x = ceil_div(rows, together), .threads = 128, .registers = 54},
      {.elements = static_cast<double>(rows * head_dim * splits), .iterations = static_cast<double>(splits)});
}

}  // namespace ridgeline
