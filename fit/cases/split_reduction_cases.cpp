// Kernels that add up the partial sums of split products: each with the splits that the product before it shows.
#include <optional>

#include "fit/law_problem.h"
#include "fit/split_count.h"
#include "sim/kernels/products/gemm_launch.h"
#include "sim/timing/products/gemm_constants.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline::fit {
namespace {

const Law<SplitReduction> kLaw{
    {
#include "sim/timing/tables/split_reduction_fields.inc"
    },
    [](const TimedLaunch& timed, const Gpu& gpu, const SplitReduction& constants) {
      const auto& work = std::get<GemmWork>(timed.launch.work);
      return GemmLaw(work, gpu, gemm_constants(gemm_class_of(work, gpu))).split_reduction(work.split_k, constants);
    }};

}  // namespace

std::vector<Problem> split_reduction_problems(const Measurements& measurements, const Laboratory& laboratory) {
  Collected collected;
  for (const auto& row : measurements.rows) {
    const auto* op = std::get_if<Matmul>(&row.kernel.op);
    if (op == nullptr) continue;
    const ProfiledKernel *product = nullptr, *sum = nullptr;
    bool own = false;
    std::optional<NamedGemm> named;
    for (const ProfiledKernel& kernel : row.kernels) {
      if (adds_splits(kernel)) {
        sum = &kernel;
      } else if (adds_own_splits(kernel)) {
        sum = &kernel;
        own = true;
      } else if (const auto this_one = gemm_of_name(kernel.name)) {
        named = this_one;
        product = &kernel;
      }
    }
    if (!named || sum == nullptr) continue;
    const int splits = splits_of(*named, *product, *op);
    if (splits < 2) continue;
    TimedLaunch timed;
    GemmWork work = gemm_problem(*op, laboratory.gpu);
    work.family = named->family;
    work.split_k = splits;
    timed.launch.work = work;
    auto& [cases, launches] = collected[own ? "own" : "common"];
    cases.push_back({sum->seconds, row.machine, row.held_out, row.shape, row.row});
    launches.push_back(std::move(timed));
  }
  return problems_of(std::move(collected), kLaw, laboratory.gpu);
}

}  // namespace ridgeline::fit
