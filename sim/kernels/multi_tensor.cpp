// Multi-tensor ("foreach") calls: the tensors of a list are cut into chunks, a block each, and packed into launches
// until the tensors or the blocks that fit a launch's arguments are used up. The packing below follows PyTorch's step
// by step, because a step's launch count depends on it. Tested by tests/kernels/multi_tensor_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/stream_launch.h"

namespace ridgeline {
namespace {

struct FunctionTraits {
  StreamKernel kernel;
  std::string_view name;
  int lists;            ///< tensor lists passed to the kernel: decides how many tensors fit a launch
  int reads, writes;    ///< of each element
  double flops;         ///< an element
  double instructions;  ///< a thread executes for an element (fitted on the H200: 4 for an addition, 30 for a division)
  int registers;
  bool scalar_list;
  bool new_output;  ///< writes a list of its own instead of its first operand
};

FunctionTraits traits_of(const MultiTensor& op) {
  using F = MultiTensorFunction;
  constexpr StreamKernel plain = StreamKernel::multi_tensor;
  switch (op.function) {
    case F::add: return {plain, "foreach_add", 2, 2, 1, 2, 4, 32, false, false};
    case F::mul: return {plain, "foreach_mul", 1, 1, 1, 1, 4, 27, op.scalar_per_tensor, false};
    case F::lerp: return {plain, "foreach_lerp", 2, 2, 1, 3, 8, 32, false, false};
    // Adam squares its gradient with addcmul(v, g, g): three lists, two of them the same memory.
    case F::addcmul: return {plain, "foreach_addcmul", 3, 2, 1, 3, 11, 32, op.scalar_per_tensor, false};
    case F::addcdiv: return {plain, "foreach_addcdiv", 3, 3, 1, 3, 30, 36, op.scalar_per_tensor, false};
    case F::square_root: return {plain, "foreach_sqrt", 2, 1, 1, 1, 24, 32, false, true};
    case F::divide: return {plain, "foreach_div", 1, 1, 1, 1, 24, 34, op.scalar_per_tensor, false};
    case F::norm: return {StreamKernel::multi_tensor_norm, "foreach_norm", 1, 1, 0, 2, 1, 32, false, false};
    case F::unscale: return {plain, "amp_unscale", 1, 1, 1, 2, 10, 32, false, false};
    case F::fused_adamw: return {StreamKernel::multi_tensor_adam, "fused_adamw", 4, 4, 3, 16, 1, 60, false, false};
    case F::fused_adam: return {StreamKernel::multi_tensor_adam, "fused_adam", 4, 4, 3, 14, 1, 60, false, false};
    case F::fused_sgd: return {plain, "fused_sgd", 3, 3, 2, 4, 10, 40, false, false};
    case F::add_scalar: return {plain, "foreach_add", 1, 1, 1, 1, 4, 27, false, false};
    case F::copy: return {plain, "foreach_copy", 2, 1, 1, 0, 4, 32, false, true};
  }
  throw std::invalid_argument("unknown multi-tensor function");
}

int tensors_per_launch(const FunctionTraits& traits, const Software& software) {
  // A scalar for every tensor takes room from the lists: 96 instead of 110 tensors at one list, no difference from two
  // on.
  constexpr int kWithScalars = 96;
  const auto& table = software.foreach_tensors_per_launch;
  if (table.empty())
    throw std::invalid_argument("the software profile says nothing about tensors a multi-tensor launch");
  const int plain =
      table[static_cast<std::size_t>(std::clamp<int>(traits.lists, 1, static_cast<int>(table.size())) - 1)];
  return traits.scalar_list && traits.lists == 1 ? std::min(plain, kWithScalars) : plain;
}

/// Elements, blocks and the largest chunk of one launch.
struct Pack {
  double elements = 0.0;
  int blocks = 0;
  std::int64_t largest_chunk = 0;
};

template <typename Emit>
void pack_launches(const std::vector<std::int64_t>& sizes, std::int64_t chunk, int most_tensors, int most_blocks,
                   Emit emit) {
  Pack pack;
  int tensors = 0;
  for (const std::int64_t size : sizes) {
    if (size <= 0) continue;
    ++tensors;
    const std::int64_t chunks = ceil_div(size, chunk);
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t elements = std::min(chunk, size - c * chunk);
      pack.elements += static_cast<double>(elements);
      pack.largest_chunk = std::max(pack.largest_chunk, elements);
      ++pack.blocks;
      const bool last_chunk = c == chunks - 1;
      if ((tensors == most_tensors && last_chunk) || pack.blocks == most_blocks) {
        emit(pack);
        pack = {};
        tensors = last_chunk ? 0 : 1;  // an unfinished tensor opens the next launch
      }
    }
  }
  if (pack.blocks > 0) emit(pack);
}

}  // namespace

LoweredOp lower_multi_tensor(const MultiTensor& op, const Gpu& /*gpu*/, const Software& software) {
  if (!op.sizes || op.sizes->empty()) throw std::invalid_argument("a multi-tensor op needs a list of tensors");
  constexpr int kThreads = 512, kElementsPerPass = 4 * kThreads;
  const FunctionTraits traits = traits_of(op);
  const auto element = static_cast<double>(bytes_of(op.type));
  const bool norm = op.function == MultiTensorFunction::norm;
  LoweredOp result;
  const auto tensors = static_cast<std::int64_t>(op.sizes->size());
  std::int64_t most_chunks = 0;
  for (const std::int64_t size : *op.sizes) most_chunks = std::max(most_chunks, ceil_div(size, software.foreach_chunk));
  if (norm) {
    // Partial sums of every chunk, cleared first, added up by a last kernel with a block a tensor.
    const std::int64_t partials = tensors * most_chunks;
    KernelLaunch fill =
        stream_launch(StreamKernel::fill, "fill", TimeClass::optimizer, DType::fp32,
                      {ceil_div(partials, 1024), 1, 128, 16}, {.elements = static_cast<double>(partials)});
    fill.writes = {{Access::kTemporary, 4.0 * static_cast<double>(partials)}};
    result.launches.push_back(std::move(fill));  // the trace allocates the partial sums, a tensor of its own
  }
  pack_launches(*op.sizes, software.foreach_chunk, tensors_per_launch(traits, software),
                software.foreach_blocks_per_launch, [&](const Pack& pack) {
                  KernelLaunch launch =
                      stream_launch(traits.kernel, std::string(traits.name), TimeClass::optimizer, op.type,
                                    {pack.blocks, 1, kThreads, traits.registers, norm ? 2048 : 0},
                                    {.elements = pack.elements * traits.instructions,
                                     .iterations = static_cast<double>(pack.largest_chunk) / kElementsPerPass});
                  launch.flops = traits.flops * pack.elements;
                  for (int i = 0; i < traits.reads; ++i)
                    launch.reads.push_back({Access::kUntracked, pack.elements * element});
                  for (int i = 0; i < traits.writes; ++i)
                    launch.writes.push_back(
                        {traits.new_output ? Access::kTemporary : Access::kUntracked, pack.elements * element});
                  if (norm) launch.writes.push_back({Access::kTemporary, 4.0 * pack.blocks});
                  result.launches.push_back(std::move(launch));
                });
  if (norm) {
    constexpr std::int64_t kTensorsPerCleanup = 400;
    for (std::int64_t first = 0; first < tensors; first += kTensorsPerCleanup) {
      const std::int64_t count = std::min(tensors - first, kTensorsPerCleanup);
      KernelLaunch cleanup =
          stream_launch(StreamKernel::tiny, "lpnorm_cleanup", TimeClass::optimizer, DType::fp32,
                        {count, 1, kThreads, 16, 2048}, {.iterations = 1.0 + 0.2 * log2_ceil(count)});
      cleanup.reads = {{Access::kTemporary, 4.0 * static_cast<double>(count * most_chunks)}};
      result.launches.push_back(std::move(cleanup));
    }
  }
  return result;
}

}  // namespace ridgeline
