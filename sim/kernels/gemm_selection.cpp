#include "sim/kernels/gemm_selection.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/occupancy/occupancy.h"

namespace ridgeline {
namespace {

constexpr std::array kPersistentSplits{1, 2, 3, 4, 6, 8, 10, 12, 16};
/// Share of its predicted time that a split product is ranked by; see where it is used. Of 0.87 to 0.99 these agree
/// best with the launches of 1,500 profiled products (91 in 100 have the same number of kernels).
constexpr double kSplitAllowance = 0.97, kSplitAllowanceMmaSync = 0.94;
constexpr std::array kTiledSplits{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 44, 64};

/// Largest of 16, 8, 4, 2 bytes that all contiguous dimensions are multiples of.
int alignment_of(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t element) {
  for (const int unit : {16, 8, 4})
    if (a * element % unit == 0 && b * element % unit == 0 && c * element % unit == 0) return unit;
  return 2;
}

/// The library turns on sharing of k-steps for few tiles of long products: at most two an SM in three, 80 k-steps or
/// more (37 of 230 profiled kernels; no exception among those with fewer tiles than SMs).
bool suits_stream_k(const GemmLaw& law, const GemmWork& problem, const GemmTile& tile, const Gpu& gpu) {
  return law.tiles(tile) * 1.5 <= gpu.sm.count && problem.k >= 80 * tile.k;
}

/// The libraries run small tf32 products with the kernels of the generation before, the more so where an operand has to
/// be transposed on its way (wgmma takes tf32 K-major only). Right in nine of ten of 446 profiled products.
bool keeps_older_tf32_kernel(const GemmWork& problem) {
  constexpr double kFromNt = 6.5e8, kFromNn = 1.1e9, kFromTn = 2.6e9;  // multiply-adds
  const double work = static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
                      static_cast<double>(problem.n) * static_cast<double>(problem.k);
  const double from = problem.layout == static_cast<int>(Layout::nt)   ? kFromNt
                      : problem.layout == static_cast<int>(Layout::tn) ? kFromTn
                                                                       : kFromNn;
  return work < from;
}

/// Blocks of each entry of a menu that fit an SM, remembered for the SM asked for last.
class ResidentBlocks {
 public:
  const std::vector<int>& of(std::span<const TileChoice> menu, const SmSpec& sm) {
    const std::array<double, 8> key{static_cast<double>(sm.registers),
                                    static_cast<double>(sm.max_warps),
                                    static_cast<double>(sm.max_blocks),
                                    static_cast<double>(sm.schedulers),
                                    static_cast<double>(sm.register_allocation_unit),
                                    sm.shared_per_sm.value(),
                                    sm.shared_reserved_per_block.value(),
                                    sm.shared_allocation_unit.value()};
    if (menu.data() == menu_ && key == key_) return blocks_;
    blocks_.clear();
    for (const TileChoice& choice : menu)
      blocks_.push_back(occupancy_of(sm, choice.threads, choice.registers, choice.shared_bytes).blocks);
    menu_ = menu.data();
    key_ = key;
    return blocks_;
  }

 private:
  const TileChoice* menu_ = nullptr;
  std::array<double, 8> key_{};
  std::vector<int> blocks_;
};

double tensor_rate(const MathRates& rates, DType type) {
  switch (type) {
    case DType::bf16: return rates.tensor_bf16;
    case DType::fp16: return rates.tensor_fp16;
    case DType::tf32: return rates.tensor_tf32;
    default: return 0.0;
  }
}

}  // namespace

GemmWork gemm_problem(const Matmul& op, const Gpu& gpu) {
  GemmWork work{.type = op.type,
                .batch = op.batch,
                .m = op.m,
                .n = op.n,
                .k = op.k,
                .layout = static_cast<int>(op.layout),
                .bias = op.bias};
  const bool a_transposed = op.layout == Layout::tn || op.layout == Layout::tt,
             b_transposed = op.layout == Layout::nt || op.layout == Layout::tt;
  // A single column is contiguous along its rows.
  work.alignment = alignment_of(a_transposed ? op.m : op.k, b_transposed || op.n == 1 ? op.k : op.n,
                                op.n == 1 ? op.m : op.n, bytes_of(op.type));
  if (tensor_rate(gpu.sm.rates, op.type) <= 0.0) {
    work.family = GemmWork::Family::simt;
  } else {
    const bool wgmma = gpu.sm.warpgroup_mma && gpu.sm.tensor_memory_accelerator && work.alignment >= 16;
    work.family = wgmma ? GemmWork::Family::wgmma : GemmWork::Family::mma_sync;
  }
  return work;
}

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants,
                          std::span<const TileChoice> menu) {
  const GemmLaw law(problem, gpu, constants);
  const bool persistent = problem.family == GemmWork::Family::wgmma;
  const std::span<const int> all_splits =
      persistent ? std::span<const int>(kPersistentSplits) : std::span<const int>(kTiledSplits);
  const double split_allowance =
      problem.family == GemmWork::Family::mma_sync ? kSplitAllowanceMmaSync : kSplitAllowance;
  GemmSelection best;
  best.seconds = std::numeric_limits<double>::infinity();
  static thread_local ResidentBlocks resident;
  const std::vector<int>* blocks = persistent ? nullptr : &resident.of(menu, gpu.sm);
  for (std::size_t i = 0; i < menu.size(); ++i) {
    const TileChoice& choice = menu[i];
    GemmTile tile = choice.tile;
    if (tile.stream_k && !suits_stream_k(law, problem, tile, gpu)) continue;
    if (!persistent) {
      tile.blocks_per_sm = (*blocks)[i];
      if (tile.blocks_per_sm == 0) continue;
    }
    for (const int splits : all_splits) {
      if (!law.may_split(tile, splits)) break;
      // The libraries split a little before it pays: of the profiled products that the law alone chose otherwise, four
      // in five were split. With this allowance as many are wrongly split as wrongly left whole (cases fitted on).
      const double allowance = splits > 1 ? split_allowance : 1.0;
      const double ranked = best.splits > 1 ? best.seconds * split_allowance : best.seconds;
      const double seconds = law.seconds(tile, splits, ranked / allowance);
      if (seconds * allowance < ranked)
        best = {tile, problem.family, &choice, splits, seconds, law.needs_counter(tile, splits)};
    }
  }
  return best;
}

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu) {
  const auto from_class = [&gpu](const GemmWork& work) {
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    return select_gemm(work, gpu, gemm_constants(kernel_class),
                       tile_menu(kernel_class, gpu.architecture, work.batch > 1));
  };
  if (problem.family == GemmWork::Family::wgmma && problem.type == DType::tf32 && keeps_older_tf32_kernel(problem)) {
    GemmWork older = problem;
    older.family = GemmWork::Family::mma_sync;
    return from_class(older);
  }
  return from_class(problem);
}

}  // namespace ridgeline
