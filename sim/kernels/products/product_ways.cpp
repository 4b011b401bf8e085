#include "sim/kernels/products/product_ways.h"

#include <algorithm>
#include <limits>

#include "sim/kernels/products/gemm_launch.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline {
namespace {

double seconds_beside(const ProductWay& way, std::size_t first, const AnalyticEngine& engine) {
  double sum = 0.0;
  for (std::size_t i = 0; i < way.size(); ++i)
    if (i != first) sum += engine.time(way[i], {}).time.value();
  return sum;
}

class FastestWay final : public KernelChoice {
 public:
  /// `beside`: what runs beside the launch that this is the choice of; `cold`: seconds of all with cold operands.
  FastestWay(ProductWays ways, ProductWay beside, double cold)
      : ways_(std::move(ways)), beside_(std::move(beside)), cold_(cold) {}

  [[nodiscard]] double seconds(const KernelLaunch& launch, const Gpu& gpu,
                               std::span<const double> residency) const override {
    const AnalyticEngine engine(gpu);
    const bool cold = std::all_of(residency.begin(), residency.end(), [](double share) { return share == 0.0; });
    return (cold ? cold_ : least_with(launch, gpu, engine, residency)) -
           seconds_beside(beside_, beside_.size(), engine);
  }

 private:
  [[nodiscard]] double least_with(const KernelLaunch& launch, const Gpu& gpu, const AnalyticEngine& engine,
                                  std::span<const double> residency) const {
    double least = std::numeric_limits<double>::infinity();
    if (ways_.problem) least = select_gemm(*ways_.problem, gpu, *ways_.menus, gemm_misses(launch, residency)).expected;
    // All ways read the same operands, then write something.
    for (const ProductWay& way : ways_.others)
      least = std::min(least, engine.time(way.front(), residency).time.value() + seconds_beside(way, 0, engine));
    return least;
  }

  ProductWays ways_;
  ProductWay beside_;
  double cold_;
};

}  // namespace

void append_fastest(std::vector<KernelLaunch>& launches, ProductWays ways, const Gpu& gpu, std::vector<Access> reads,
                    const std::vector<Access>& writes) {
  const AnalyticEngine engine(gpu);
  double least = std::numeric_limits<double>::infinity();
  const ProductWay* fastest = nullptr;
  GemmSelection tiled;
  if (ways.problem) {
    tiled = select_gemm(*ways.problem, gpu, *ways.menus);
    least = tiled.expected;
  }
  for (const ProductWay& way : ways.others) {
    const double seconds = engine.time(way.front(), {}).time.value() + seconds_beside(way, 0, engine);
    if (seconds >= least) continue;
    least = seconds;
    fastest = &way;
  }
  ProductWay shown;
  if (fastest != nullptr) {
    shown = *fastest;
  } else if (tiled.splits == 1 && ways.problem->always_summed) {
    const KernelLaunch sum = split_reduction(*ways.problem, writes);
    append_gemm(shown, *ways.problem, gpu, tiled, std::move(reads), sum.reads);
    shown.push_back(sum);
  } else {
    append_gemm(shown, *ways.problem, gpu, tiled, std::move(reads), writes);
  }
  if (ways.problem || ways.others.size() > 1) {
    const auto product = std::find_if(shown.begin(), shown.end(), [](const KernelLaunch& launch) {
      return !std::holds_alternative<FixedWork>(launch.work);
    });
    ProductWay beside;
    for (auto launch = shown.begin(); launch != shown.end(); ++launch)
      if (launch != product) beside.push_back(*launch);
    product->choice = std::make_shared<const FastestWay>(std::move(ways), std::move(beside), least);
  }
  for (KernelLaunch& launch : shown) launches.push_back(std::move(launch));
}

}  // namespace ridgeline
