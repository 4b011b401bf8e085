// Multi-tensor ("foreach") calls: the tensors of a list are cut into chunks, a block each, and packed into launches
// until the tensors or the blocks that fit a launch's arguments are used up. The packing below follows PyTorch's step
// by step, because a step's launch count depends on it. Tested by tests/kernels/multi_tensor_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

struct FunctionTraits {
  MemoryBoundKernel kernel;
  std::string_view name;
  int lists;          ///< tensor lists passed to the kernel: decides how many tensors fit a launch
  int reads, writes;  ///< of each element
  double flops;       ///< an element
  int registers;
  bool scalar_list;
  bool new_output;  ///< writes a list of its own instead of its first operand
};

FunctionTraits traits_of(const MultiTensor& op) {
  using F = MultiTensorFunction;
  using K = MemoryBoundKernel;
  switch (op.function) {
    case F::add: return {K::multi_tensor_add, "foreach_add", 2, 2, 1, 2, 32, false, false};
    case F::mul: return {K::multi_tensor_mul, "foreach_mul", 1, 1, 1, 1, 27, op.scalar_per_tensor, false};
    case F::lerp: return {K::multi_tensor_lerp, "foreach_lerp", 2, 2, 1, 3, 32, false, false};
    // Adam squares its gradient with addcmul(v, g, g): three lists, two of them the same memory.
    case F::addcmul: return {K::multi_tensor_addcmul, "foreach_addcmul", 3, 2, 1, 3, 32, op.scalar_per_tensor, false};
    case F::addcdiv: return {K::multi_tensor_addcdiv, "foreach_addcdiv", 3, 3, 1, 3, 36, op.scalar_per_tensor, false};
    case F::square_root: return {K::multi_tensor_root, "foreach_sqrt", 2, 1, 1, 1, 32, false, true};
    case F::divide: return {K::multi_tensor_root, "foreach_div", 1, 1, 1, 1, 34, op.scalar_per_tensor, false};
    case F::norm: return {K::multi_tensor_norm, "foreach_norm", 1, 1, 0, 2, 32, false, false};
    case F::unscale: return {K::multi_tensor_mul, "amp_unscale", 1, 1, 1, 2, 32, false, false};
    case F::fused_adamw: return {K::multi_tensor_adam, "fused_adamw", 4, 4, 3, 16, 60, false, false};
    case F::fused_adam: return {K::multi_tensor_adam, "fused_adam", 4, 4, 3, 14, 60, false, false};
    case F::fused_sgd: return {K::multi_tensor_addcmul, "fused_sgd", 3, 3, 2, 4, 40, false, false};
    case F::add_scalar: return {K::multi_tensor_mul, "foreach_add", 1, 1, 1, 1, 27, false, false};
    case F::copy: return {K::multi_tensor_mul, "foreach_copy", 2, 1, 1, 0, 32, false, true};
  }
  throw std::invalid_argument("unknown multi-tensor function");
}

/// The list that a write goes to: one of its own behind what is read, or in place. Fused optimizers leave the second,
/// the gradients.
int written_list(const FunctionTraits& traits, int write) {
  if (traits.new_output) return traits.reads + write;
  return write > 0 ? write + 1 : 0;
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

/// A thread loads a vector of four elements of each list at a time, where a tensor has a multiple of four.
constexpr int kThreadsOfBlock = 512, kVector = 4;
constexpr std::size_t kMostLaunches = 4'000'000;  ///< of one call
/// A pass of single elements takes as long as this many of vectors: 1.1 to 1.5 by function on an H200.
constexpr double kPassWithoutVectors = 1.2;

/// Elements, blocks and the longest block of one launch, and the part of the lists it works on, in tensors.
struct Pack {
  double elements = 0.0;
  double without_vectors = 0.0;  ///< elements of tensors whose size is no multiple of a vector
  int blocks = 0;
  double passes = 0.0;  ///< of the longest block; its last one takes as long as the others, however few elements it has
  double from = 0.0, to = 0.0;

  /// Elements [begin, begin + count) of tensor `tensor`, which has `size`, in chunks of `chunk` or less, a block each.
  void add(std::size_t tensor, std::int64_t size, std::int64_t begin, std::int64_t count, std::int64_t chunk) {
    const bool vectors = size % kVector == 0;
    const auto at = [&](std::int64_t element) {
      return static_cast<double>(tensor) + static_cast<double>(element) / static_cast<double>(size);
    };
    if (blocks == 0) from = at(begin);
    to = at(begin + count);
    const auto turns = static_cast<double>(ceil_div(std::min(count, chunk), kThreadsOfBlock * kVector));
    elements += static_cast<double>(count);
    without_vectors += vectors ? 0.0 : static_cast<double>(count);
    passes = std::max(passes, vectors ? turns : kPassWithoutVectors * turns);
    blocks += static_cast<int>(ceil_div(count, chunk));
  }
};

template <typename Emit>
void pack_launches(const std::vector<std::int64_t>& sizes, std::int64_t chunk, int most_tensors, int most_blocks,
                   Emit emit) {
  Pack pack;
  int tensors = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t size = sizes[i];
    if (size <= 0) continue;
    ++tensors;
    const std::int64_t chunks = ceil_div(size, chunk);
    for (std::int64_t c = 0; c < chunks;) {
      const std::int64_t together = std::clamp<std::int64_t>(most_blocks - pack.blocks, 1, chunks - c);
      pack.add(i, size, c * chunk, std::min(together * chunk, size - c * chunk), chunk);
      c += together;
      const bool last_chunk = c == chunks;
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

LoweredOp lower_multi_tensor(const MultiTensor& op, const ChipShape& /*chip*/, const Software& software) {
  if (!op.sizes || op.sizes->empty()) throw std::invalid_argument("a multi-tensor op needs a list of tensors");
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
        memory_bound_launch(MemoryBoundKernel::fill, "fill", TimeClass::optimizer, DType::fp32,
                            {ceil_div(partials, 1024), 1, 128, 16}, {.elements = static_cast<double>(partials)});
    fill.writes = {{Access::kTemporary, 4.0 * static_cast<double>(partials)}};
    result.launches.push_back(std::move(fill));  // the trace allocates the partial sums, a tensor of its own
  }
  const auto each_pack = [&](auto emit) {
    pack_launches(*op.sizes, software.foreach_chunk, tensors_per_launch(traits, software),
                  software.foreach_blocks_per_launch, emit);
  };
  std::size_t packs = result.launches.size();
  each_pack([&](const Pack&) {
    if (++packs > kMostLaunches)
      throw UserError(
          "the lists of an optimizer would be worked on by more than 4,000,000 kernels: fewer parameters need fewer");
  });
  result.launches.reserve(packs);  // a list that doubles would hold itself twice
  each_pack([&](const Pack& pack) {
    keep_budget_often("choosing kernels");
    KernelLaunch launch = memory_bound_launch(traits.kernel, std::string(traits.name), TimeClass::optimizer, op.type,
                                              {pack.blocks, 1, kThreadsOfBlock, traits.registers, norm ? 2048 : 0},
                                              {.elements = pack.elements - pack.without_vectors,
                                               .padded_elements = pack.without_vectors,
                                               .iterations = pack.passes,
                                               .tail_steps = pack.without_vectors > 0.0 ? 1.0 : 0.0});
    launch.flops = traits.flops * pack.elements;
    const auto of_list = [&](int list) {
      return Access{.operand = Access::kUntracked,
                    .bytes = pack.elements * element,
                    .list = list,
                    .from = pack.from,
                    .to = pack.to};
    };
    for (int i = 0; i < traits.reads; ++i) launch.reads.push_back(of_list(i));
    for (int i = 0; i < traits.writes; ++i) launch.writes.push_back(of_list(written_list(traits, i)));
    if (norm) launch.writes.push_back({Access::kTemporary, 4.0 * pack.blocks});
    result.launches.push_back(std::move(launch));
  });
  if (norm) {
    constexpr std::int64_t kTensorsPerCleanup = 400;
    for (std::int64_t first = 0; first < tensors; first += kTensorsPerCleanup) {
      const std::int64_t count = std::min(tensors - first, kTensorsPerCleanup);
      // A block's latency grows a little with the blocks beside it and with the chunks it adds up.
      const double passes =
          1.1 + 0.063 * log2_ceil(count) + 0.0035 * static_cast<double>(count) + 0.15 * log2_ceil(most_chunks);
      KernelLaunch cleanup = memory_bound_launch(MemoryBoundKernel::tiny, "lpnorm_cleanup", TimeClass::optimizer,
                                                 DType::fp32, {count, 1, kThreadsOfBlock, 16, 2048}, {.iterations = passes});
      cleanup.reads = {{Access::kTemporary, 4.0 * static_cast<double>(count * most_chunks)}};
      result.launches.push_back(std::move(cleanup));
    }
  }
  return result;
}

}  // namespace ridgeline
