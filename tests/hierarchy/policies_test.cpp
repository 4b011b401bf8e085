// What-ifs on caches, policies and rasters, set as `--set` sets them: each moves the answer where it must.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/line_cache.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/lowering.h"
#include "sim/study/kernel_prediction.h"

namespace ridgeline {
namespace {

const char* const kProduct = R"({"op":"mm","dtype":"bf16","params":{"m":8192,"n":8192,"k":4096,"layout":"nt"}})";
/// Two operands of 17 MB over and over: too much for half an L2, little for two.
const char* const kAgain = R"({"op":"add","dtype":"bf16","params":{"rows":4096,"cols":2048},"input_sets":1})";

class Policies : public ::testing::Test {
 protected:
  KernelPrediction with(const char* text, std::initializer_list<const char*> sets) const {
    std::vector<config::Override> overrides;
    for (const char* set : sets) overrides.push_back(config::parse_override(set));
    const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb", overrides);
    const KernelCase kernel = kernel_case_from(nlohmann::json::parse(text));
    // The kernels of the chip as shipped, so that only the hierarchy differs.
    return time_launches(kernel, lower(kernel.op, shipped_, software_).launches, gpu, *make_engine("simulate", gpu));
  }
  Gpu shipped_ = load_gpu("nvidia-h200-sxm-141gb");
  Software software_ = load_software("pytorch-2.11");
};

TEST_F(Policies, WithoutAnL2EveryRequestGoesToTheDram) {
  const KernelPrediction base = with(kProduct, {}), none = with(kProduct, {"l2.replacement=none"});
  EXPECT_EQ(none.l2_hit_rate, 0.0);
  EXPECT_GT(none.dram_read_bytes, 4.0 * base.dram_read_bytes);
  EXPECT_GT(none.time, base.time);
}

TEST_F(Policies, TwiceTheL2HoldsWhatIsUsedAgainAndHalfOfItDoesNot) {
  const KernelPrediction half = with(kAgain, {"l2.capacity=30 MiB"}), base = with(kAgain, {}),
                         twice = with(kAgain, {"l2.capacity=120 MiB"});
  EXPECT_NEAR(half.dram_read_bytes, 33.6e6, 1e6);
  EXPECT_GT(half.time, base.time);
  EXPECT_LT(twice.dram_read_bytes, 1e6);
  EXPECT_LT(twice.time, base.time);
  EXPECT_LT(with(kProduct, {"l2.capacity=120 MiB"}).dram_read_bytes, 0.8 * with(kProduct, {}).dram_read_bytes);
}

TEST_F(Policies, RandomReplacementKeepsAPartOfWhatASweepEvicts) {
  const KernelPrediction lru = with(kAgain, {"l2.replacement=lru"}), random = with(kAgain, {"l2.replacement=random"});
  EXPECT_LT(random.dram_read_bytes, 0.8 * lru.dram_read_bytes);
  EXPECT_LT(random.time, lru.time);
  EXPECT_EQ(random.dram_read_bytes, with(kAgain, {"l2.replacement=random"}).dram_read_bytes);  // and always the same
}

TEST_F(Policies, WritingThroughWritesEverythingAtOnce) {
  const KernelPrediction back = with(kAgain, {}), through = with(kAgain, {"l2.writes=through"});
  EXPECT_GE(through.dram_write_bytes, 16.7e6);
  EXPECT_LT(back.dram_write_bytes, 0.5 * through.dram_write_bytes);
}

TEST_F(Policies, OnePartitionKeepsNoSecondCopies) {
  EXPECT_LT(with(kAgain, {"l2.partitions=1"}).dram_read_bytes, with(kAgain, {}).dram_read_bytes);
}

TEST_F(Policies, OtherRastersReadPanelsAgain) {
  const KernelPrediction groups = with(kProduct, {"launch.tile_order=groups"});
  EXPECT_EQ(groups.dram_read_bytes, with(kProduct, {}).dram_read_bytes);
  for (const char* order : {"launch.tile_order=rows", "launch.tile_order=columns"})
    EXPECT_GT(with(kProduct, {order}).dram_read_bytes, 1.3 * groups.dram_read_bytes) << order;
}

TEST_F(Policies, MoreSharedMemoryHoldsMoreBlocksOfAKernelItLimits) {
  const char* const attention =
      R"({"op":"flash_attention","dtype":"bf16","params":{"batch":16,"heads":12,"seq":1024,"head_dim":64,"causal":false}})";
  const auto blocks = [&](std::initializer_list<const char*> sets) {
    std::vector<config::Override> overrides;
    for (const char* set : sets) overrides.push_back(config::parse_override(set));
    const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb", overrides);
    const KernelCase kernel = kernel_case_from(nlohmann::json::parse(attention));
    const KernelPrediction p = predict_kernel(kernel, gpu, software_, *make_engine("simulate", gpu));
    return p.times[p.longest].occupancy;
  };
  const double base = blocks({});
  EXPECT_LE(blocks({"sm.shared_per_block=60 KiB", "sm.shared_per_sm=60 KiB"}), base);
  EXPECT_GE(blocks({"sm.l1_and_shared=512 KiB", "sm.shared_per_sm=456 KiB"}), base);
}

TEST(LineCacheConflicts, AddressesThatShareASetPushEachOtherOut) {
  // 1 MiB of 8 ways: lines 128 KiB apart share a set.
  constexpr std::uint64_t kStride = 128 << 10;
  const auto missed = [&](int lines, std::uint64_t stride) {
    LineCache cache(1 << 20, 8, L2Replacement::lru, L2Writes::back);
    for (int turn = 0; turn < 10; ++turn)
      for (int i = 0; i < lines; ++i) cache.access(static_cast<std::uint64_t>(i) * stride, LineCache::kLine, false);
    return cache.read_misses() / LineCache::kLine;
  };
  EXPECT_EQ(missed(8, kStride), 8u);
  EXPECT_EQ(missed(9, kStride), 90u);                    // one more than ways: never found again
  EXPECT_EQ(missed(9, kStride + LineCache::kLine), 9u);  // spread over sets
}

}  // namespace
}  // namespace ridgeline
