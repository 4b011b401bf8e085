// Matrix products, in two ways: as the kernel that the profile names, so that the law of times does not make good for a
// wrong choice; and as the program reports them, by the choice among the menu's kernels, which settles what the library
// weighs beside time. A class is fitted on both together, or on the second alone where profiles name no kernels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "fit/kernel_name.h"
#include "fit/law_problem.h"
#include "fit/other_boards.h"
#include "fit/split_count.h"
#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/kernels/products/gemm_launch.h"
#include "sim/occupancy/occupancy.h"
#include "sim/study/validation/scaled_products.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/laws.h"
#include "sim/timing/products/gemm_constants.h"
#include "sim/timing/products/gemm_law.h"
#include "sim/units/ceil_div.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::fit {
namespace {

const std::vector<Place<GemmConstants>> kPlaces{
#include "sim/timing/tables/products_fields.inc"
};

const char* name_of_class(GemmClass kernel_class) {
  switch (kernel_class) {
    case GemmClass::tcgen05_half: return "tcgen05_half";
    case GemmClass::wgmma_half: return "wgmma_half";
    case GemmClass::wgmma_tf32: return "wgmma_tf32";
    case GemmClass::wgmma_promoted: return "wgmma_promoted";
    case GemmClass::wgmma_row_scaled: return "wgmma_row_scaled";
    case GemmClass::mma_half: return "mma_half";
    case GemmClass::mma_half_narrow: return "mma_half_narrow";
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

/// A product: of the kernel that ran, or of whichever the program takes.
struct Product {
  TimedLaunch timed{};
  GemmMisses missed{};
  bool chosen = false;
  const Gpu* gpu = nullptr;
  double between = 0;  ///< seconds that its time holds beside the kernels
};

/// Seconds with `constants` for one class.
class Predictor {
 public:
  Predictor(const GemmConstants& constants) : constants_(constants) {}

  double operator()(const Product& product) {
    const auto& work = std::get<GemmWork>(product.timed.launch.work);
    if (!product.chosen)
      return gemm_time(product.timed.launch, work, *product.gpu, product.timed.residency, constants_).time.value();
    return product.between + select_gemm(work, *product.gpu, constants_, menu_of(*product.gpu, work),
                                         std::numeric_limits<double>::infinity(), product.missed)
                                 .expected;
  }

 private:
  const GpuMenu& menu_of(const Gpu& gpu, const GemmWork& work) {
    const bool batched = work.batch > 1;
    auto& menu = menus_[{&gpu, batched}];
    if (!menu) {
      const GemmClass kernel_class = gemm_class_of(work, gpu);
      menu = menu_on(gpu, tile_menu(kernel_class, gpu.architecture, batched), kernel_class, constants_);
    }
    return *menu;
  }

  const GemmConstants& constants_;
  std::map<std::pair<const Gpu*, bool>, std::optional<GpuMenu>> menus_;
};

struct ClassProducts {
  std::vector<Observation> cases;
  std::vector<Product> products;
};

/// A launch by the choice: what ran beside it counts.
void add_chosen(ClassProducts& to, const Measurement& row, const TimedLaunch& timed, const Gpu& gpu, int machine,
                Seconds between = Seconds{0}) {
  Product product{.timed = timed, .chosen = true, .gpu = &gpu, .between = between.value()};
  product.missed = gemm_misses(timed.launch, timed.residency);
  const auto& work = std::get<GemmWork>(timed.launch.work);
  const GemmClass kernel_class = gemm_class_of(work, gpu);
  const GpuMenu menu = menu_on(gpu, tile_menu(kernel_class, gpu.architecture, work.batch > 1), kernel_class);
  if (!std::isfinite(select_gemm(work, gpu, gemm_constants(kernel_class), menu).expected)) return;
  to.cases.push_back({row.time.value(), machine, row.held_out, row.shape, row.row});
  to.products.push_back(std::move(product));
}

/// Products of fp8 beside another GPU, by the choice. Those that run the 16-bit kernels' code are left to its fit.
void add_scaled(std::map<std::string, ClassProducts>& collected, const MeasuredFile& file, const Gpu& gpu,
                const Software& software) {
  const Lowering lowering(gpu, software);
  for (const MeasuredOp& row : load_scaled_products(file)) {
    if (std::get<Matmul>(row.kernel.op).scaling == Scaling::tensor_fast) continue;
    const LoweredOp lowered = lowering.lower(row.kernel.op);
    const auto product = std::find_if(lowered.launches.begin(), lowered.launches.end(), [](const KernelLaunch& one) {
      return std::holds_alternative<GemmWork>(one.work);
    });
    if (product == lowered.launches.end()) continue;
    const GemmClass kernel_class = gemm_class_of(std::get<GemmWork>(product->work), gpu);
    add_chosen(collected[name_of_class(kernel_class)], row, {*product, {}}, gpu, 0);
  }
}

/// Whether a class is fitted on a file's rows: kernels that an H200 does not run on what others timed on other boards
/// (an A100's as serving libraries run them), all others on what was profiled on an H200.
bool is_fitted_on(GemmClass kernel_class, const MeasuredFile& file) {
  switch (kernel_class) {
    case GemmClass::mma_half: return file.machine.name == "serving-a100";
    case GemmClass::mma_half_narrow:
    case GemmClass::tcgen05_half: return is_published_product(file);
    default: return !is_published_product(file);
  }
}

}  // namespace

std::vector<Problem> product_problems(const Measurements& measurements, const Laboratory& laboratory) {
  const Products products(measurements, laboratory);
  std::map<std::string, ClassProducts> collected;
  for (const Measurement& row : measurements.rows) {
    if (!std::holds_alternative<Matmul>(row.kernel.op)) continue;
    const OtherBoard* board =
        is_published_product(*row.file) ? &other_board(row.file->machine.hardware, laboratory.software) : nullptr;
    const Gpu& gpu = board != nullptr ? board->gpu : laboratory.gpu;
    const ProfiledKernel* ran = nullptr;
    std::vector<KernelLaunch> launches =
        board != nullptr ? board->lowering.lower(row.kernel.op).launches : products.launches(row, ran);
    const auto product = std::find_if(launches.begin(), launches.end(), [](const KernelLaunch& one) {
      return std::holds_alternative<GemmWork>(one.work);
    });
    if (product == launches.end()) continue;
    const auto residency = repeated_residency(launches, rotating_operands(row.kernel.op), row.kernel.input_sets, gpu.l2,
                                              0.0, row.kernel.shared_operand);
    const TimedLaunch timed{*product, residency.empty()
                                          ? std::vector<double>{}
                                          : residency[static_cast<std::size_t>(product - launches.begin())]};
    const auto& work = std::get<GemmWork>(product->work);
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    if (!is_fitted_on(kernel_class, *row.file)) continue;  // or a name that was cut off
    ClassProducts& to = collected[name_of_class(kernel_class)];
    // Its own hardware file describes it.
    add_chosen(to, row, timed, gpu, board != nullptr ? 0 : row.machine, between_kernels(row, launches.size(), gpu));
    if (board != nullptr) continue;
    to.cases.push_back({ran->seconds, row.machine, row.held_out, row.shape, row.row});
    to.products.push_back({.timed = timed, .gpu = &gpu});
  }
  for (const MeasuredFile* file : measurements.index.of_kind("fp8-products"))
    add_scaled(collected, *file, laboratory.other_gpu, laboratory.software);
  std::vector<Problem> result;
  for (auto& [name, both] : collected) {
    auto of_class = std::make_shared<const std::vector<Product>>(std::move(both.products));
    result.push_back({name, std::move(both.cases),
                      [of_class](const Values& values, std::span<const std::size_t> which, std::span<double> seconds) {
                        const GemmConstants constants = constants_from(kPlaces, values);
                        Predictor predict(constants);
                        for (std::size_t i = 0; i < which.size(); ++i) seconds[i] = predict((*of_class)[which[i]]);
                      }});
  }
  return result;
}

}  // namespace ridgeline::fit
