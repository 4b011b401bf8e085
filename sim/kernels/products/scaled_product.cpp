#include "sim/kernels/products/scaled_product.h"

#include <algorithm>

#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/products/gemm_launch.h"

namespace ridgeline {

bool is_scaled_first(const Matmul& op, const Gpu& gpu) {
  constexpr std::int64_t kFewestRows = 17, kMostRows = 2400, kMostColumns = 90, kLeastK = 4, kMostK = 4000;
  return op.type == DType::fp32 && op.bias && op.layout == Layout::nt && op.batch == 1 && op.m >= kFewestRows &&
         op.m <= kMostRows && op.n > 1 && op.n <= kMostColumns && op.k >= kLeastK && op.k <= kMostK &&
         op.sparse == SparseOperand::none && gpu.gemm.tiles.empty();
}

void append_scaled_first(std::vector<KernelLaunch>& launches, const Matmul& op, const std::vector<Access>& reads,
                         const std::vector<Access>& writes) {
  constexpr std::int64_t kTile = 32, kPiece = 8, kMostPieces = 5;
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  const std::int64_t pieces = std::min(kMostPieces, ceil_div(op.k, kPiece));
  const auto pointwise = [&](MemoryBoundKernel kernel, const char* name) {
    KernelLaunch launch = memory_bound_launch(kernel, name, TimeClass::tensor_contraction, op.type,
                                              {ceil_div(op.m * op.n, 512)}, {.elements = m * n});
    launch.reads = launch.writes = writes;
    return launch;
  };
  launches.push_back(counter_memset());
  launches.push_back(pointwise(MemoryBoundKernel::scale, "scal_kernel"));
  const std::int64_t rows = ceil_div(op.m, kTile), columns = ceil_div(op.n, kTile);
  KernelLaunch product =
      memory_bound_launch(MemoryBoundKernel::largek, "sgemm_largek", TimeClass::tensor_contraction, op.type,
                          {rows * columns, pieces, 256, 32, 4356},
                          {.elements = k * (static_cast<double>(columns) * m + static_cast<double>(rows) * n),
                           .padded_elements = k * static_cast<double>(rows * columns * kTile * kTile),
                           .iterations = k / static_cast<double>(pieces),
                           .tail_steps = static_cast<double>(pieces - 1)});
  product.flops = 2.0 * m * n * k;
  product.reads = {reads[0], reads[1]};
  product.reads[0].requested = static_cast<double>(columns) * reads[0].bytes;
  product.reads[1].requested = static_cast<double>(rows) * reads[1].bytes;
  product.writes = writes;
  launches.push_back(std::move(product));
  launches.push_back(pointwise(MemoryBoundKernel::add, "epilogue"));
  if (reads.size() > 2) launches.back().reads.push_back(reads[2]);
}

}  // namespace ridgeline
