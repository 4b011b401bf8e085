// aten/src/ATen/native/cuda/GroupMM.cu of PyTorch 2.11: its tiles, its kernel that writes pointers and sizes, its
// temporary memory. Measured on an H200: measurements/h200/grouped_products.jsonl.gz.
#include "sim/kernels/products/grouped_product.h"

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/memory_bound/radix_sort.h"
#include "sim/kernels/products/gemm_launch.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/kernels/products/product_ways.h"
#include "sim/kernels/recorded_kernel.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

/// A side up to which groups are small: 64 x 128 tiles, 128 of k at a time, on Hopper; on Blackwell all have them.
constexpr std::int64_t kSmallSide = 128;
constexpr LibraryKernel kSmallTile{.instructions = LibraryKernel::Instructions::wgmma, .m = 64, .n = 128, .k = 128};
constexpr LibraryKernel kLargeTile{.instructions = LibraryKernel::Instructions::wgmma, .m = 128, .n = 256, .k = 64};

/// Three pointers, an element of the problem's sizes and three strides of each group; four descriptors of tensors for
/// each block.
constexpr std::int64_t kBytesOfGroup = 3 * 8 + 3 * 4 + 3 * 8, kBytesOfBlock = 4 * 128;

/// Time of prepare_grouped_gemm_data, in round trips of the L2: 1.6 us on an H200, whatever the sizes.
constexpr double kRoundTripsToPrepare = 1.0;

}  // namespace

LoweredOp lower_grouped_mm(const Matmul& op, const Gpu& gpu, const Software& software,
                           const std::shared_ptr<const GpuMenus>& menus) {
  const bool blackwell = gpu.compute_major == 10;
  if (op.type == DType::bf16 && gpu.sm.warpgroup_mma && (gpu.compute_major == 9 || blackwell)) {
    GemmWork problem = gemm_problem(op, gpu);
    problem.grouped = true;
    const bool small = blackwell || op.m <= kSmallSide || op.n <= kSmallSide;
    if (auto menu = menu_of_recorded(small ? kSmallTile : kLargeTile, problem, gpu)) {
      LoweredOp lowered;
      lowered.launches.push_back(small_kernel(MemoryBoundKernel::tiny, "prepare_grouped_gemm_data",
                                              kRoundTripsToPrepare, 1, static_cast<int>(op.batch), 32, 0));
      const double element = static_cast<double>(bytes_of(op.type)), batch = static_cast<double>(op.batch),
                   m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
      append_fastest(
          lowered.launches, {problem, std::move(menu), {}}, gpu,
          {{.operand = 0, .bytes = batch * m * k * element}, {.operand = 1, .bytes = batch * n * k * element}},
          {{.operand = 2, .bytes = batch * m * n * element}});
      lowered.temporaries = {kBytesOfGroup * op.batch, kBytesOfBlock * gpu.sm.count};
      return lowered;
    }
  }
  Matmul single = op;
  single.grouped = false;
  single.batch = 1;
  LoweredOp lowered;
  const LoweredOp each = lower_matmul(single, gpu, software, menus);
  for (std::int64_t group = 0; group < op.batch; ++group)
    lowered.launches.insert(lowered.launches.end(), each.launches.begin(), each.launches.end());
  lowered.temporaries = each.temporaries;
  return lowered;
}

}  // namespace ridgeline
