// Remembered kernels against simulated ones, to the bit.
#include "sim/hierarchy/memo.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/simulate_engine.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/kernel_profile.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline {
namespace {

class Memos : public ::testing::Test {
 protected:
  std::vector<KernelLaunch> launches_of(const char* text) const {
    return lower(kernel_case_from(nlohmann::json::parse(text)).op, gpu_, software_).launches;
  }
  static std::vector<Operand> on(std::initializer_list<std::uint32_t> storages) {
    std::vector<Operand> operands;
    for (const std::uint32_t storage : storages) operands.push_back({storage, 0});
    return operands;
  }
  Gpu gpu_ = load_gpu("nvidia-h200-sxm-141gb");
  Software software_ = load_software("pytorch-2.11");
};

void expect_equal(const KernelTime& a, const KernelTime& b, int layer) {
  EXPECT_EQ(a.time.value(), b.time.value()) << layer;
  EXPECT_EQ(a.dram_read_bytes, b.dram_read_bytes) << layer;
  EXPECT_EQ(a.dram_write_bytes, b.dram_write_bytes) << layer;
  EXPECT_EQ(a.l2_hit_rate, b.l2_hit_rate) << layer;
  ASSERT_EQ(a.profile->samples.size(), b.profile->samples.size());
  for (std::size_t i = 0; i < a.profile->samples.size(); ++i)
    EXPECT_EQ(a.profile->samples[i].dram_read, b.profile->samples[i].dram_read);
}

TEST_F(Memos, LayersOnTensorsOfTheirOwnGiveTheSameBitsWithAndWithoutAMemory) {
  const auto norm = launches_of(R"({"op":"layer_norm","dtype":"bf16","params":{"rows":8192,"cols":1024}})");
  const auto up = launches_of(R"({"op":"addmm","dtype":"bf16","params":{"m":8192,"n":4096,"k":1024}})");
  const auto gelu = launches_of(R"({"op":"gelu","dtype":"bf16","params":{"rows":8192,"cols":4096}})");
  const auto lists = launches_of(R"({"op":"foreach_add","dtype":"fp32","params":{"tensors":16,"elements":200000}})");
  for (const L2Replacement replacement : {L2Replacement::aged, L2Replacement::lru, L2Replacement::none}) {
    gpu_.l2.replacement = replacement;
    SimulatedRun remembering(gpu_, true), simulating(gpu_, false);
    const auto both = [&](const std::vector<KernelLaunch>& launches, const std::vector<Operand>& operands, int layer) {
      for (const KernelLaunch& launch : launches)
        expect_equal(remembering.next(launch, operands), simulating.next(launch, operands), layer);
    };
    std::uint32_t x = 0, next = 1;
    for (int layer = 0; layer < 12; ++layer) {
      const std::uint32_t at = next;
      next += 9;
      both(norm, on({x, at, at + 1, at + 2, at + 3, at + 4}), layer);
      both(up, on({at + 2, at + 5, at + 6, at + 7}), layer);
      both(gelu, on({at + 7, at + 8}), layer);
      if (layer % 5 == 4) both(lists, on({}), layer);
      x = at + 2;
    }
    EXPECT_EQ(remembering.l2().resident_bytes(), simulating.l2().resident_bytes());
    EXPECT_EQ(remembering.l2().dirty_bytes(), simulating.l2().dirty_bytes());
    EXPECT_EQ(simulating.remembered(), 0u);
    if (replacement != L2Replacement::none) {
      EXPECT_GT(remembering.remembered(), 12u);
    }
  }
}

TEST_F(Memos, WhereAnyLineIsReplacedNothingIsRemembered) {
  gpu_.l2.replacement = L2Replacement::random;
  const auto gelu = launches_of(R"({"op":"gelu","dtype":"bf16","params":{"rows":8192,"cols":4096}})");
  SimulatedRun run(gpu_, true);
  for (std::uint32_t i = 0; i < 20; ++i) run.next(gelu[0], on({2 * i, 2 * i + 1}));
  EXPECT_EQ(run.remembered(), 0u);
}

TEST_F(Memos, AStateRestoredUnderOtherNamesGoesOnAlike) {
  std::mt19937 random(5);
  L2Cache first(gpu_.l2), second(gpu_.l2);
  const auto use = [&](L2Cache& l2, std::uint32_t storage, bool writes, double bytes) {
    const L2Cache::Run run{.storage = storage, .bytes = bytes};
    return writes ? l2.write(run) : l2.read(run, l2.stream_copies());
  };
  const auto pick = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  const auto bytes_of = [](int tensor) { return 1e5 * (1 + tensor % 7) * (1 + tensor % 5); };
  for (int i = 0; i < 400; ++i) {
    const int tensor = pick(39);
    use(first, static_cast<std::uint32_t>(tensor), pick(1) == 1, bytes_of(tensor));
    if (i % 50 == 0) first.write_once(3e6);
  }
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < 40; ++i) names.push_back(i);
  const L2Cache::State state = first.state(names);
  ASSERT_EQ(names.size(), 40u);
  std::vector<std::uint32_t> others;
  for (std::uint32_t i = 0; i < 40; ++i) others.push_back(1000 - 3 * i);
  second.restore(state, others);
  EXPECT_EQ(second.state(others), state);
  for (int i = 0; i < 400; ++i) {
    const int tensor = pick(39);
    const bool writes = pick(1) == 1;
    const L2Traffic a = use(first, static_cast<std::uint32_t>(tensor), writes, bytes_of(tensor));
    const L2Traffic b = use(second, others[static_cast<std::size_t>(tensor)], writes, bytes_of(tensor));
    ASSERT_EQ(a.missed, b.missed) << i;
    ASSERT_EQ(a.written_back, b.written_back) << i;
  }
}

}  // namespace
}  // namespace ridgeline
