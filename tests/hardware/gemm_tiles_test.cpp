// Kernels of the matrix library for what-ifs (gemm.tiles): each key with its default and its limits, and what a chip
// fills in for a file that leaves keys out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>

#include "sim/config/parse_yaml.h"
#include "sim/hardware/derived_defaults.h"
#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using Keys = std::map<std::string, std::string>;

/// An H100 has 1024 threads, 65536 registers and 227 KiB of shared memory for a block.
Gpu with_tiles(const std::string& tiles, const char* gpu = "nvidia-h100-sxm5-80gb") {
  return load_gpu(gpu, {{"gemm.tiles", tiles, "t"}});
}
/// A tile of 128 x 128 x 32 in four stages, with these keys changed; "" takes one away.
std::string tile_of(const Keys& changed) {
  Keys keys{{"kernels", "mma-16bit"}, {"m", "128"}, {"n", "128"}, {"k", "32"}, {"stages", "4"}};
  for (const auto& [key, value] : changed) keys[key] = value;
  std::string text;
  for (const auto& [key, value] : keys)
    if (!value.empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  return "{" + text + "}";
}
std::string told_of(const Keys& changed, const char* gpu = "nvidia-h100-sxm5-80gb") {
  try {
    (void)with_tiles("[" + tile_of(changed) + "]", gpu);
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(GemmTiles, KeysThatAreNotGivenFollowFromTheOthers) {
  const auto tile = [](const Keys& changed) {
    const GemmTileEntry entry = with_tiles("[" + tile_of(changed) + "]").gemm.tiles.at(0);
    return fmt::format("{}x{}x{} stages {} warps {} registers {} shared {}", entry.m, entry.n, entry.k, entry.stages,
                       entry.warps, entry.registers, entry.shared_bytes);
  };
  // (128 + 128) x 32 x 4 elements of 2 bytes.
  EXPECT_EQ(tile({}), "128x128x32 stages 4 warps 8 registers 168 shared 65536");
  EXPECT_EQ(tile({{"m", "64"}}), "64x128x32 stages 4 warps 8 registers 168 shared 49152");
  EXPECT_EQ(tile({{"warps", "5"}, {"registers", "40"}, {"shared_memory", "3 KiB"}}),
            "128x128x32 stages 4 warps 5 registers 40 shared 3072");
  const std::pair<const char*, const char*> kinds[] = {{"wgmma-16bit", "warps 12 registers 168 shared 65536"},
                                                       {"wgmma-fp8-promoted", "warps 12 registers 168 shared 65536"},
                                                       {"wgmma-fp8-rows", "warps 12 registers 168 shared 65536"},
                                                       {"wgmma-tf32", "warps 12 registers 168 shared 131072"},
                                                       {"mma-16bit-staged", "warps 8 registers 168 shared 65536"},
                                                       {"mma-16bit-align4", "warps 8 registers 168 shared 65536"},
                                                       {"mma-16bit-align2", "warps 8 registers 168 shared 65536"},
                                                       {"mma-tf32", "warps 8 registers 168 shared 131072"},
                                                       {"mma-tf32-align4", "warps 8 registers 168 shared 131072"},
                                                       {"cuda-cores", "warps 8 registers 168 shared 131072"}};
  for (const auto& [kernels, rest] : kinds)
    EXPECT_EQ(tile({{"kernels", kernels}}), fmt::format("128x128x32 stages 4 {}", rest)) << kernels;
}

TEST(GemmTiles, WholeNumbersHaveLimits) {
  struct Limited {
    const char* key;
    int least, most;
  };
  for (const auto& [key, least, most] :
       {Limited{"m", 8, 1024}, Limited{"n", 8, 1024}, Limited{"k", 8, 1024}, Limited{"stages", 1, 64},
        Limited{"warps", 1, 32}, Limited{"registers", 16, 255}}) {
    // Small in everything else.
    const auto told = [&, name = std::string(key)](int value) {
      Keys keys{{"m", "8"}, {"n", "8"}, {"k", "8"}, {"stages", "1"}, {"warps", "1"}, {"registers", "16"}};
      keys[name] = std::to_string(value);
      return told_of(keys);
    };
    EXPECT_EQ(told(least), "taken") << key;
    EXPECT_EQ(told(most), "taken") << key;
    for (const int outside : {least - 1, most + 1})
      EXPECT_EQ(told(outside),
                fmt::format("t: gemm.tiles.0.{}: {} is out of range, expected {} to {}", key, outside, least, most));
  }
  for (const char* side : {"m", "n", "k"})
    EXPECT_EQ(told_of({{side, "100"}}), fmt::format("t: gemm.tiles.0.{}: 100 is not a multiple of 8", side));
  for (const char* key : {"kernels", "m", "n", "k", "stages"})
    EXPECT_EQ(told_of({{key, ""}}), fmt::format("t: gemm.tiles.0.{}: missing; this key is required", key));
}

TEST(GemmTiles, ABlockFitsItsRegistersAndItsSharedMemory) {
  EXPECT_EQ(told_of({{"warps", "16"}, {"registers", "128"}}), "taken");  // 32 x 16 x 128 = 65536
  EXPECT_EQ(told_of({{"warps", "16"}, {"registers", "129"}}),
            "t: gemm.tiles.0.registers: 16 warps of 129 registers a thread need 66048 registers, and sm.registers is "
            "65536");
  EXPECT_EQ(told_of({{"warps", "12"}}), "taken");
  EXPECT_EQ(told_of({{"warps", "13"}}),
            "t: gemm.tiles.0: 13 warps of 168 registers a thread need 69888 registers, and sm.registers is 65536");
  // 16 KiB a stage.
  EXPECT_EQ(told_of({{"stages", "14"}}), "taken");
  EXPECT_EQ(told_of({{"stages", "15"}}),
            "t: gemm.tiles.0.stages: a block needs 240 KiB of shared memory, and sm.shared_per_block is 227 KiB");
  EXPECT_EQ(told_of({{"shared_memory", "227 KiB"}}), "taken");
  EXPECT_EQ(told_of({{"shared_memory", "0 B"}}), "taken");
  EXPECT_EQ(
      told_of({{"shared_memory", "228 KiB"}}),
      "t: gemm.tiles.0.shared_memory: a block needs 228 KiB of shared memory, and sm.shared_per_block is 227 KiB");
}

TEST(GemmTiles, HoppersInstructionsTakeASideOf64AndAChipThatHasThem) {
  for (const char* kernels : {"wgmma-16bit", "wgmma-tf32", "wgmma-fp8-promoted", "wgmma-fp8-rows"}) {
    EXPECT_EQ(told_of({{"kernels", kernels}, {"m", "64"}, {"n", "72"}}), "taken") << kernels;
    EXPECT_EQ(told_of({{"kernels", kernels}, {"m", "72"}, {"n", "64"}}), "taken") << kernels;
    EXPECT_EQ(told_of({{"kernels", kernels}, {"m", "72"}, {"n", "80"}}),
              "t: gemm.tiles.0.m: neither m 72 nor n 80 is a multiple of 64, as wgmma takes one side");
    EXPECT_EQ(told_of({{"kernels", kernels}}, "nvidia-a100-sxm4-40gb"),
              "t: gemm.tiles.0.kernels: this chip has no wgmma or no TMA (sm.warpgroup_mma, "
              "sm.tensor_memory_accelerator)");
  }
  EXPECT_EQ(told_of({{"m", "72"}, {"n", "80"}}), "taken");
  EXPECT_EQ(told_of({}, "nvidia-a100-sxm4-40gb"), "taken");
}

TEST(GemmTiles, AMenuHasAtMost64AndSaysWhetherItReplaces) {
  const auto tiles = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + tile_of({});
    return "[" + text + "]";
  };
  EXPECT_EQ(with_tiles(tiles(64)).gemm.tiles.size(), 64u);
  try {
    (void)with_tiles(tiles(65));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "t: gemm.tiles.64: more than 64 tiles");
  }
  EXPECT_TRUE(with_tiles("[]").gemm.tiles.empty());
  const auto replaces = [](const char* way) { return load_gpu("nvidia-t4", {{"gemm.menu", way, ""}}).gemm.replace; };
  EXPECT_TRUE(replaces("replace"));
  EXPECT_FALSE(replaces("extend"));
  EXPECT_FALSE(load_gpu("nvidia-t4").gemm.replace);
}

// Where one key is missing, all that is known is filled in; a file that says all that must be said is left as it is.
TEST(FilledDefaults, AreThoseOfAFileThatLacksAKey) {
  const auto without = [](config::Node& tree, const char* section, const char* key) {
    std::erase_if(tree.find(section)->entries, [&](const config::Entry& entry) { return entry.key == key; });
  };
  config::Node tree = config::load_yaml(std::string(RIDGELINE_SOURCE_DIR) + "/tests/bad_inputs/hardware/complete.yaml");
  without(tree, "sm", "schedulers");
  ASSERT_EQ(tree.find("l2")->find("shared_read_bandwidth"), nullptr);
  fill_defaults(tree);
  ASSERT_NE(tree.find("sm")->find("schedulers"), nullptr);
  EXPECT_EQ(tree.find("sm")->find("schedulers")->find("value")->scalar, "4");
  EXPECT_NE(tree.find("l2")->find("shared_read_bandwidth"), nullptr) << "which need not be said";
  without(tree, "l2", "shared_read_bandwidth");
  fill_defaults(tree);
  EXPECT_EQ(tree.find("l2")->find("shared_read_bandwidth"), nullptr);
}

}  // namespace
}  // namespace ridgeline
