// Matrix products: each launch is that of the kernel which the profile names, so that the law of times is fitted apart
// from the choice of kernels.
#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "fit/kernel_name.h"
#include "fit/law_problem.h"
#include "sim/kernels/gemm_launch.h"
#include "sim/occupancy/occupancy.h"
#include "sim/timing/gemm_constants.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/laws.h"
#include "sim/units/ceil_div.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::fit {
namespace {

const Law<GemmConstants> kLaw{{
#include "sim/timing/tables/products_fields.inc"
                              },
                              [](const TimedLaunch& timed, const Gpu& gpu, const GemmConstants& constants) {
                                return gemm_time(timed.launch, std::get<GemmWork>(timed.launch.work), gpu,
                                                 timed.residency, constants)
                                    .time.value();
                              }};

const char* name_of_class(GemmClass kernel_class) {
  switch (kernel_class) {
    case GemmClass::wgmma_half: return "wgmma_half";
    case GemmClass::wgmma_tf32: return "wgmma_tf32";
    case GemmClass::mma_half: return "mma_half";
    case GemmClass::mma_half_staged: return "mma_half_staged";
    case GemmClass::mma_half_align4: return "mma_half_align4";
    case GemmClass::mma_half_align2: return "mma_half_align2";
    case GemmClass::mma_tf32: return "mma_tf32";
    case GemmClass::mma_tf32_align4: return "mma_tf32_align4";
    case GemmClass::simt: return "simt";
  }
  return "";
}

/// What a block asks of an SM.
struct Resources {
  int threads = 0, registers = 0, shared_bytes = 0;
};

/// The resources of kernels by their tile, from the profiles that recorded them.
class KnownKernels {
 public:
  explicit KnownKernels(const Measurements& measurements) {
    for (const Measurement& row : measurements.rows)
      for (const ProfiledKernel& kernel : row.kernels)
        if (kernel.registers > 0 && kernel.threads > 0 && kernel.shared_bytes >= 0)
          if (const auto named = gemm_of_name(kernel.name))
            known_.try_emplace(key(*named, kernel.name),
                               Resources{kernel.threads, kernel.registers, kernel.shared_bytes});
  }
  [[nodiscard]] const Resources* find(const NamedGemm& named, const std::string& name) const {
    const auto found = known_.find(key(named, name));
    return found == known_.end() ? nullptr : &found->second;
  }

 private:
  using Key = std::tuple<int, int, int, int, int, bool>;
  static Key key(const NamedGemm& named, const std::string& name) {
    return {static_cast<int>(named.family),           named.m, named.n, named.k, named.stages,
            name.find("cutlass") != std::string::npos};
  }
  std::map<Key, Resources> known_;
};

bool adds_splits(const ProfiledKernel& kernel) { return kernel.name.find("splitKreduce") != std::string::npos; }

/// The splits of k that the grid shows; 0 where it shows none that fit.
int splits_of(const NamedGemm& named, const ProfiledKernel& kernel, const Matmul& op) {
  const std::int64_t tiles = ceil_div(op.m, named.m) * ceil_div(op.n, named.n) * op.batch;
  if (named.family == GemmWork::Family::wgmma) {
    if (!named.split) return 1;
    const std::int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    return static_cast<int>(blocks / tiles);  // whole clusters may be a few blocks more
  }
  if (kernel.grid[0] == 0) return 0;
  return op.batch > 1 ? 1 : static_cast<int>(kernel.grid[2]);
}

class Products {
 public:
  Products(const Measurements& measurements, const Laboratory& laboratory)
      : known_(measurements), laboratory_(laboratory) {}

  /// The launches of the row with the kernel that ran, and which of them it is; empty where the name is not understood.
  std::vector<KernelLaunch> launches(const Measurement& row, const ProfiledKernel*& ran) const {
    const auto& op = std::get<Matmul>(row.kernel.op);
    std::optional<NamedGemm> named;
    bool summed = false;
    for (const ProfiledKernel& kernel : row.kernels) {
      summed = summed || adds_splits(kernel);
      const auto this_one = gemm_of_name(kernel.name);
      if (!this_one) continue;
      if (named) return {};  // several products
      named = this_one;
      ran = &kernel;
    }
    // Without a fused bias a copy of it comes first, and the output is read.
    const bool fused = op.bias && laboratory_.software.addmm_fuses_bias && op.n > 1 && op.k > 1;
    if (!named || (op.bias && !fused)) return {};
    GemmWork problem = gemm_problem(op, laboratory_.gpu);
    problem.family = named->family;
    problem.bias = fused;
    const int splits = splits_of(*named, *ran, op);
    if (splits < 1) return {};
    GemmWork tile = problem;
    tile.tile_m = named->m;
    tile.tile_n = named->n;
    tile.tile_k = named->k;
    tile.stages = named->stages;
    TileChoice choice;
    if (const Resources* known = known_.find(*named, ran->name)) {
      choice.threads = known->threads;
      choice.registers = known->registers;
      choice.shared_bytes = known->shared_bytes;
    } else if (named->family != GemmWork::Family::wgmma) {
      return {};
    }
    if (tile.stages == 0) tile.stages = stages_that_fit(tile);
    tile.stream_k = named->shares_steps || (named->family != GemmWork::Family::wgmma && splits > 1 && !summed);
    tile.blocks_per_sm =
        named->family == GemmWork::Family::wgmma
            ? 1
            : occupancy_of(laboratory_.gpu.sm, choice.threads, choice.registers, choice.shared_bytes).blocks;
    if (tile.blocks_per_sm < 1) return {};
    choice.tile = tile_of(tile);
    const GemmSelection selection{.tile = choice.tile,
                                  .family = named->family,
                                  .choice = &choice,
                                  .splits = splits,
                                  .seconds = 1.0,
                                  .expected = 1.0};
    const double element = static_cast<double>(bytes_of(op.type)), batch = static_cast<double>(op.batch),
                 m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
    std::vector<Access> reads{{.operand = 0, .bytes = batch * m * k * element},
                              {.operand = 1, .bytes = batch * n * k * element}};
    if (fused) reads.push_back({.operand = 2, .bytes = n * element});
    std::vector<KernelLaunch> result;
    append_gemm(result, problem, laboratory_.gpu, selection, std::move(reads),
                {{.operand = operand_counts(row.kernel.op).inputs, .bytes = batch * m * n * element}});
    return result;
  }

 private:
  /// As the menus of kernels whose names do not say it have it (kernels/tile_menu.cpp).
  static int stages_that_fit(const GemmWork& work) {
    constexpr int kSharedForStages = 215000, kMost = 8;
    return std::min(
        kMost, kSharedForStages / ((work.tile_m + work.tile_n) * work.tile_k * static_cast<int>(bytes_of(work.type))));
  }

  KnownKernels known_;
  const Laboratory& laboratory_;
};

}  // namespace

std::vector<Problem> product_problems(const Measurements& measurements, const Laboratory& laboratory) {
  const Products products(measurements, laboratory);
  Collected collected;
  for (const Measurement& row : measurements.rows) {
    if (!std::holds_alternative<Matmul>(row.kernel.op)) continue;
    const ProfiledKernel* ran = nullptr;
    std::vector<KernelLaunch> launches = products.launches(row, ran);
    if (launches.empty()) continue;
    const auto residency =
        repeated_residency(launches, rotating_operands(row.kernel.op), row.kernel.input_sets, laboratory.gpu.l2);
    const std::size_t product = launches.size() > 1 && std::get_if<GemmWork>(&launches.front().work) == nullptr ? 1 : 0;
    const auto& work = std::get<GemmWork>(launches[product].work);
    auto& [cases, timed] = collected[name_of_class(gemm_class_of(work, laboratory.gpu))];
    cases.push_back({ran->seconds, row.machine, row.held_out, row.shape, row.row});
    timed.push_back({launches[product], residency.empty() ? std::vector<double>{} : residency[product]});
  }
  return problems_of(std::move(collected), kLaw, laboratory.gpu);
}

}  // namespace ridgeline::fit
