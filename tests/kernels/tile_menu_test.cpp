// Menus that a hardware file changes: what they hold, and that one kernel more never makes a product slower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "sim/answer/ranges/busy_range.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/products/gemm_selection.h"
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

TEST(TileMenu, a_chip_with_fewer_registers_has_its_kernels_compiled_for_them) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto entries = [&](GemmClass kernels, int registers) {
    gpu.sm.registers = registers;
    return menu_on(gpu, tile_menu(kernels, gpu.architecture), kernels).entries;
  };
  for (const GemmClass kernels : {GemmClass::wgmma_half, GemmClass::mma_half, GemmClass::simt}) {
    const auto all = entries(kernels, 65536), fewer = entries(kernels, 62000);
    ASSERT_EQ(fewer.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(fewer[i].tile.blocks_per_sm, all[i].tile.blocks_per_sm);
      EXPECT_LE(fewer[i].threads * fewer[i].registers, 62000);
    }
  }
}

TEST(TileMenu, sums_without_registers_are_spilled_the_more_the_fewer_there_are) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto largest = [&](int registers) {
    gpu.sm.registers = registers;
    for (const TileChoice& c :
         menu_on(gpu, tile_menu(GemmClass::wgmma_half, gpu.architecture), GemmClass::wgmma_half).entries)
      if (c.tile.m == 256 && c.tile.n == 160) return c.tile.spilled;
    return -1.0;
  };
  // The sums of 256 x 160 take 160 registers of a computing thread: they fit three quarters and a bit, not less.
  EXPECT_EQ(largest(51300), 0.0);
  EXPECT_GT(largest(50000), 0.0);
  EXPECT_LT(largest(50000), 16e3) << "no step";
  EXPECT_GT(largest(40000), largest(50000));
}

/// 20 steps of 5 % up from `first`, `set` on a chip: never slower by more than 0.5 %, no jump above 10 %.
template <class Set>
void expect_even(const char* name, const Matmul& op, double first, Set set) {
  const Software software = load_software("pytorch-2.11");
  double before = 0.0;
  for (int i = 0; i < 30; ++i) {
    Gpu gpu = load_gpu(name);
    set(gpu, first * std::pow(1.05, i));
    const double now = predict_kernel({.op = op}, gpu, software, *make_timing_engine("analytic", gpu)).time.value();
    if (i > 0) {
      EXPECT_LE(now, 1.005 * before) << name << " step " << i;
      EXPECT_GE(1.1 * now, before) << name << " step " << i;
    }
    before = now;
  }
}

TEST(TileMenu, no_product_jumps_where_an_sm_runs_out_of_room_for_its_kernel) {
  const auto registers = [](Gpu& gpu, double number) { gpu.sm.registers = static_cast<int>(number); };
  expect_even("nvidia-rtx-3090", {.type = DType::fp32, .batch = 1, .m = 256, .n = 512, .k = 2048}, 18400.0, registers);
  expect_even("nvidia-a100-sxm4-80gb", {.type = DType::tf32, .batch = 1, .m = 3072, .n = 1536, .k = 384}, 18400.0,
              registers);
  const Matmul large{.type = DType::bf16, .batch = 1, .m = 27904, .n = 50264, .k = 1280, .layout = Layout::nt};
  expect_even("nvidia-h100-sxm5-80gb", large, 1.0 / 1024.0, [](Gpu& gpu, double per_register) {
    gpu.sm.register_allocation_unit = static_cast<int>(1.0 / per_register);
  });
  expect_even("nvidia-h100-sxm5-80gb", large, 256.0,
              [](Gpu& gpu, double number) { gpu.sm.max_threads_per_block = static_cast<int>(number); });
  expect_even("nvidia-l4", {.type = DType::tf32, .batch = 1, .m = 9750, .n = 259, .k = 10, .layout = Layout::tn},
              30.0 * 1024.0, [](Gpu& gpu, double bytes) { gpu.sm.shared_per_block = Bytes{bytes}; });
}

TEST(TileMenu, batched_products_of_fp32_run_on_an_ampere_chip_with_too_few_registers_for_their_one_kernel) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  EXPECT_EQ(GpuMenus(gpu).of(GemmClass::simt, true).entries.size(), 1u);
  gpu.sm.registers = 39322;
  const KernelCase kernel = kernel_case_from(
      nlohmann::json::parse(R"({"op":"bmm","dtype":"fp32","params":{"b":21,"m":193,"n":3455,"k":466,"layout":"nn"}})"));
  const auto engine = make_timing_engine("analytic", gpu);
  EXPECT_GT(predict_kernel(kernel, gpu, load_software("pytorch-2.11"), *engine).time.value(), 0.0);
}

TEST(TileMenu, a_kernel_of_a_hardware_file_has_the_registers_that_it_says) {
  const std::string tile = "[{kernels: wgmma-16bit, m: 128, n: 128, k: 64, stages: 3, warps: 12, registers: 168}]";
  Gpu gpu = with_tiles("nvidia-h200-sxm-141gb", tile, "replace");
  EXPECT_EQ(GpuMenus(gpu).of(GemmClass::wgmma_half, false).entries.size(), 1U);
  gpu.sm.registers = 62000;
  EXPECT_TRUE(GpuMenus(gpu).of(GemmClass::wgmma_half, false).entries.empty());
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
  const OperationKind kind{"mm", "16-bit", "wgmma", "gemm"};
  const auto validated_on = [&](const Gpu& one) {
    return ChipRanges(residual_ranges(), one).of(kind, Seconds{1e-5}, "analytic").validated;
  };
  EXPECT_TRUE(validated_on(load_gpu("nvidia-h200-sxm-141gb")));
  EXPECT_FALSE(validated_on(gpu));
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
