// Menus that a hardware file changes: what they hold, and that one kernel more never makes a product slower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>
#include <string>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/gemm_selection.h"
#include "sim/scenario/residual_ranges.h"
#include "sim/study/kernel_prediction.h"

namespace ridgeline {
namespace {

Gpu with_tiles(const char* name, const std::string& tiles, const char* menu = "extend") {
  return load_gpu(
      name, {config::parse_override("gemm.tiles=" + tiles), config::parse_override(std::string("gemm.menu=") + menu)});
}

TEST(TileMenu, of_a_chip_as_it_is_holds_the_known_kernels_that_fit) {
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    const GpuMenus menus(gpu);
    for (const auto& [words, kernels] : kGemmClassNames) {
      const GpuMenu& menu = menus.of(kernels, false);
      EXPECT_FALSE(menu.changed) << name << words;
      EXPECT_LE(menu.entries.size(), tile_menu(kernels, gpu.architecture).size()) << name << words;
      for (const TileChoice& entry : menu.entries) EXPECT_GE(entry.tile.blocks_per_sm, 1) << name << words;
    }
  }
}

TEST(TileMenu, extended_holds_the_known_kernels_and_replaced_only_the_given) {
  const std::string tile = "[{kernels: wgmma-16bit, m: 256, n: 192, k: 64, stages: 3}]";
  const GemmClass kernels = GemmClass::wgmma_half;
  const std::size_t known = tile_menu(kernels, Architecture::hopper).size();
  const GpuMenus extended(with_tiles("nvidia-h200-sxm-141gb", tile));
  EXPECT_EQ(extended.of(kernels, false).entries.size(), known + 1);
  EXPECT_TRUE(extended.of(kernels, false).changed);
  EXPECT_FALSE(extended.of(GemmClass::simt, false).changed);
  const GpuMenus replaced(with_tiles("nvidia-h200-sxm-141gb", tile, "replace"));
  ASSERT_EQ(replaced.of(kernels, false).entries.size(), 1u);
  EXPECT_EQ(replaced.of(kernels, false).entries[0].tile.m, 256);
  EXPECT_EQ(replaced.of(kernels, false).entries[0].threads, 384);
  EXPECT_GT(replaced.of(GemmClass::simt, false).entries.size(), 1u);
}

/// Random kernels of a class that fit an SM.
std::string random_tile(std::mt19937_64& random, std::string_view kernels, bool sixty_fours, int element) {
  const int unit = sixty_fours ? 64 : 8;
  while (true) {
    const auto m = static_cast<int>(1 + random() % (320 / unit)) * unit, n = static_cast<int>(1 + random() % 40) * 8;
    const int k = 8 << (random() % 4), stages = 2 + static_cast<int>(random() % 4);
    if ((m + n) * k * stages * element > 60000) continue;
    return fmt::format("{{kernels: {}, m: {}, n: {}, k: {}, stages: {}, warps: {}, registers: {}}}", kernels, m, n, k,
                       stages, 4 << (random() % 2), 96 + 8 * (random() % 12));
  }
}

TEST(TileMenu, one_kernel_more_never_makes_a_product_slower) {
  struct Kind {
    const char *gpu, *kernels;
    DType type;
    int element;
  };
  std::mt19937_64 random(20261121);
  const auto size = [&](double low, double high) {
    return static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution<double>(low, high)(random))) / 8 * 8;
  };
  int faster = 0;
  for (const Kind& kind : {Kind{"nvidia-h200-sxm-141gb", "wgmma-16bit", DType::bf16, 2},
                           Kind{"nvidia-h200-sxm-141gb", "wgmma-tf32", DType::tf32, 4},
                           Kind{"nvidia-h200-sxm-141gb", "cuda-cores", DType::fp32, 4},
                           Kind{"nvidia-a100-sxm4-80gb", "mma-16bit", DType::fp16, 2},
                           Kind{"nvidia-v100-sxm2-16gb", "mma-16bit-staged", DType::fp16, 2}}) {
    const bool persistent = std::string_view(kind.kernels).starts_with("wgmma");
    std::vector<Matmul> products;
    for (int i = 0; i < 60; ++i)
      products.push_back({.type = kind.type,
                          .batch = i % 5 == 0 ? size(3, 6) : 1,
                          .m = size(4, 13),
                          .n = size(4, 13),
                          .k = size(4, 13),
                          .layout = static_cast<Layout>(i % 3)});
    const Gpu shipped = load_gpu(kind.gpu);
    std::vector<double> now;
    const GpuMenus known(shipped);
    for (const Matmul& op : products) now.push_back(select_gemm(gemm_problem(op, shipped), shipped, known).expected);
    std::string tiles;
    for (int more = 0; more < 6; ++more) {
      tiles += (tiles.empty() ? "" : ", ") + random_tile(random, kind.kernels, persistent, kind.element);
      const Gpu gpu = with_tiles(kind.gpu, "[" + tiles + "]");
      const GpuMenus menus(gpu);
      for (std::size_t i = 0; i < products.size(); ++i) {
        const double then = select_gemm(gemm_problem(products[i], gpu), gpu, menus).expected;
        EXPECT_LE(then, now[i] * (1.0 + 1e-12)) << kind.gpu << " " << shape_of(products[i]) << " " << tiles;
        faster += then < now[i] * 0.999;
        now[i] = std::min(now[i], then);
      }
    }
  }
  EXPECT_GT(faster, 50);  // the added kernels are used at all
}

TEST(TileMenu, products_with_kernels_that_nobody_measured_are_not_called_validated) {
  const Gpu gpu = with_tiles("nvidia-h200-sxm-141gb", "[{kernels: wgmma-16bit, m: 256, n: 192, k: 64, stages: 3}]");
  const Matmul op{.type = DType::bf16, .batch = 1, .m = 64, .n = 64, .k = 64, .layout = Layout::nt};
  EXPECT_FALSE(ResidualRanges::load().of_kernel(op, Seconds{1e-5}, gpu, "analytic").validated);
}

TEST(TileMenu, a_product_without_any_kernel_that_fits_says_so) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  gpu.sm.registers = 1024;
  const Matmul op{.type = DType::bf16, .batch = 1, .m = 64, .n = 64, .k = 64, .layout = Layout::nt};
  try {
    static_cast<void>(lower(op, gpu, Software{}));
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("no matrix-product kernel fits an SM"));
  }
}

}  // namespace
}  // namespace ridgeline
