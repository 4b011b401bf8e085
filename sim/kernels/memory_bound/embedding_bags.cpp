// Rows of tables added up by bags (fbgemm's table-batched embeddings, torch's embedding_bag), and the update of the
// rows from the gradients of the bags. A warp a bag and a warp a row; sorting the indices is an operation of its own.
// Tested by tests/kernels/embedding_bags_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/gathered_rows.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kWarpsOfBlock = 16;
constexpr double kIndexBytes = 8.0;

LoweredOp summed_rows(const Embedding& op, const ChipShape& chip) {
  const auto tokens = static_cast<double>(op.tokens), bags = static_cast<double>(op.bags),
             hidden = static_cast<double>(op.hidden), row = hidden * static_cast<double>(bytes_of(op.type));
  KernelLaunch launch =
      memory_bound_launch(MemoryBoundKernel::gather, "embedding_bag_forward", TimeClass::elementwise, op.type,
                          {ceil_div(op.bags, kWarpsOfBlock), 1, 32 * kWarpsOfBlock, 48}, {.elements = tokens * hidden});
  const double written = bags * hidden * 4.0,
               fetched = row * fetched_rows(op.tokens, op.vocabulary, row + written / tokens, chip.l2);
  launch.reads = {{.operand = 0, .bytes = fetched, .requested = tokens * row, .loaded = tokens * row},
                  {1, kIndexBytes * (tokens + bags)}};  // where each bag begins is said too
  launch.writes = {{2, written}};
  return {{std::move(launch)}, {}, false};
}

LoweredOp updated_rows(const Embedding& op, const ChipShape& chip) {
  constexpr std::int64_t kLongestRun = 32;  // longer ones are dealt out
  constexpr double kPlaceBytes = 4.0;       // which bag an index belongs to
  const double tokens = static_cast<double>(op.tokens), hidden = static_cast<double>(op.hidden),
               rows = std::max(1.0, distinct_rows(op.tokens, op.vocabulary)),
               row = hidden * static_cast<double>(bytes_of(op.type)), gradient = 4.0 * hidden;
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::embedding_segments, "embedding_bag_backward", TimeClass::elementwise, op.type,
      {ceil_div(static_cast<std::int64_t>(rows), kWarpsOfBlock), 1, 32 * kWarpsOfBlock, 64},
      {.elements = tokens * hidden, .iterations = std::clamp(tokens / rows, 1.0, static_cast<double>(kLongestRun))});
  launch.reads = {{.operand = 0,
                   .bytes = gradient * fetched_rows(op.tokens, op.bags, gradient + 2.0 * row * rows / tokens, chip.l2),
                   .requested = tokens * gradient,
                   .loaded = tokens * gradient},
                  {1, (kIndexBytes + kPlaceBytes) * tokens},
                  {2, rows * row}};
  launch.writes = {{2, rows * row}};
  // Runs that a warp would walk for too long are those of another kernel; its work is counted above.
  KernelLaunch longer = memory_bound_launch(MemoryBoundKernel::tiny, "embedding_bag_backward_long",
                                            TimeClass::elementwise, op.type, {1, 1, 1024, 64}, {.iterations = 1.0});
  longer.pipe = Pipe::none;
  LoweredOp result;
  result.launches.push_back(std::move(longer));
  result.launches.push_back(std::move(launch));
  return result;
}

}  // namespace

LoweredOp lower_embedding_bags(const Embedding& op, const ChipShape& chip) {
  if (op.bags < 1 || op.accumulates) throw std::invalid_argument("rows are either added up by bags or to a table");
  return op.backward ? updated_rows(op, chip) : summed_rows(op, chip);
}

}  // namespace ridgeline
