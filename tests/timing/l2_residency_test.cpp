#include "sim/timing/l2_residency.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

const L2Spec& l2() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu.l2;
}
KernelLaunch kernel(std::vector<Access> reads, std::vector<Access> writes) {
  KernelLaunch k;
  k.reads = std::move(reads);
  k.writes = std::move(writes);
  return k;
}

TEST(L2Residency, hits_fall_along_the_ramp_of_the_chip) {
  const L2Residency residency(l2());
  const double capacity = l2().capacity.value();
  EXPECT_DOUBLE_EQ(residency.hit_share(0.0), 1.0);
  EXPECT_DOUBLE_EQ(residency.hit_share(0.99 * l2().resident_full * capacity), 1.0);
  EXPECT_NEAR(residency.hit_share(0.5 * (l2().resident_full + l2().resident_none) * capacity), 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(residency.hit_share(1.01 * l2().resident_none * capacity), 0.0);
}

TEST(L2Residency, what_was_just_written_is_found_and_what_was_never_touched_is_not) {
  L2Residency residency(l2());
  std::vector<double> shares;
  const Operand x{0, 1 << 20}, y{1, 1 << 20}, z{2, 1 << 20};
  residency.visit(kernel({{0, 1 << 20}}, {{1, 1 << 20}}), std::vector{x, y}, shares);
  EXPECT_EQ(shares, (std::vector<double>{0.0, 0.0}));
  residency.visit(kernel({{0, 1 << 20}}, {{1, 1 << 20}}), std::vector{y, z}, shares);
  EXPECT_EQ(shares, (std::vector<double>{1.0, 0.0}));
}

TEST(L2Residency, a_sweep_larger_than_the_cache_leaves_nothing_of_its_predecessor) {
  L2Residency residency(l2());
  std::vector<double> shares;
  const double big = 4.0 * l2().capacity.value();
  residency.visit(kernel({}, {{0, 1 << 20}}), std::vector{Operand{0, 1 << 20}}, shares);
  residency.visit(kernel({{0, big}}, {}), std::vector{Operand{1, static_cast<std::int64_t>(big)}}, shares);
  residency.visit(kernel({{0, 1 << 20}}, {}), std::vector{Operand{0, 1 << 20}}, shares);
  EXPECT_EQ(shares, std::vector<double>{0.0});
}

/// A launch over tensors [from, to) of the lists that are read, writing the first of them.
KernelLaunch over_lists(int lists, double bytes, double from, double to) {
  KernelLaunch launch;
  for (int list = 0; list < lists; ++list)
    launch.reads.push_back(
        {.operand = Access::kUntracked, .bytes = bytes, .requested = 0.0, .list = list, .from = from, .to = to});
  launch.writes = {launch.reads.front()};
  return launch;
}
/// Operands of lists of `tensors` equal tensors, from storage `first` on.
std::vector<Operand> lists_from(StorageId first, int lists, int tensors, double list_bytes) {
  std::vector<Operand> operands;
  for (int i = 0; i < lists * tensors; ++i)
    operands.push_back({first + static_cast<StorageId>(i), static_cast<std::int64_t>(list_bytes / tensors)});
  return operands;
}

std::vector<double> shares_of_the_second_call(double list_bytes) {
  L2Residency residency(l2());
  std::vector<double> shares;
  for (int call = 0; call < 2; ++call)
    for (int pack = 0; pack < 4; ++pack)
      residency.visit(over_lists(1, list_bytes / 4, 2.0 * pack, 2.0 * pack + 2.0), lists_from(0, 1, 8, list_bytes),
                      shares);
  return shares;
}

TEST(L2Residency, short_lists_of_tensors_are_found_by_the_next_calls_and_long_ones_are_not) {
  const double capacity = l2().capacity.value();
  EXPECT_EQ(shares_of_the_second_call(0.5 * capacity), (std::vector<double>{1.0, 1.0}));
  const double between = 0.5 * (l2().resident_full + l2().resident_none);
  EXPECT_NEAR(shares_of_the_second_call(between * capacity)[0], 0.5, 1e-6);
  EXPECT_EQ(shares_of_the_second_call(2.0 * capacity), (std::vector<double>{0.0, 0.0}));
}

TEST(L2Residency, launches_that_follow_each_other_over_long_lists_find_nothing) {
  // A fused optimizer after a call over its step counts: each byte of its lists is met once.
  L2Residency residency(l2());
  std::vector<double> shares;
  const double bytes = 10.0 * l2().capacity.value();
  residency.visit(over_lists(1, 64.0, 0.0, 16.0), lists_from(1000, 1, 16, 64.0), shares);
  for (int pack = 0; pack < 20; ++pack) {
    residency.visit(over_lists(4, bytes / 20, 0.05 * pack, 0.05 * (pack + 1)), lists_from(0, 4, 1, bytes), shares);
    EXPECT_EQ(shares, (std::vector<double>{0.0, 0.0, 0.0, 0.0, 0.0})) << pack;
  }
}

TEST(L2Residency, a_tensor_that_two_launches_share_is_found_where_it_was_left) {
  L2Residency residency(l2());
  std::vector<double> shares;
  const double bytes = 0.1 * l2().capacity.value();
  residency.visit(over_lists(1, 0.5 * bytes, 0.0, 0.5), lists_from(0, 1, 1, bytes), shares);
  EXPECT_EQ(shares, (std::vector<double>{0.0, 0.0}));
  residency.visit(over_lists(1, 0.5 * bytes, 0.5, 1.0), lists_from(0, 1, 1, bytes), shares);
  EXPECT_EQ(shares, (std::vector<double>{0.0, 0.0}));
  residency.visit(kernel({{0, bytes}}, {}), lists_from(0, 1, 1, bytes), shares);
  EXPECT_EQ(shares, std::vector<double>{1.0});
}

TEST(L2Residency, what_is_touched_again_and_again_ages_the_rest_once) {
  L2Residency residency(l2());
  std::vector<double> shares;
  const double part = 0.2 * l2().capacity.value();
  const Operand x{0, static_cast<std::int64_t>(part)}, y{1, static_cast<std::int64_t>(part)};
  residency.visit(kernel({{0, part}}, {}), std::vector{x}, shares);
  for (int i = 0; i < 5000; ++i) residency.visit(kernel({{0, part}}, {}), std::vector{y}, shares);
  residency.visit(kernel({{0, part}}, {}), std::vector{x}, shares);
  EXPECT_EQ(shares, std::vector<double>{1.0});
}

TEST(L2Residency, lists_whose_tensors_are_not_known_miss) {
  L2Residency residency(l2());
  std::vector<double> shares;
  for (int call = 0; call < 2; ++call) residency.visit(over_lists(1, 64.0, 0.0, 1.0), {}, shares);
  EXPECT_EQ(shares, (std::vector<double>{0.0, 0.0}));
}

TEST(RepeatedResidency, few_small_input_sets_are_found_again_and_many_are_not) {
  const double mib = 1 << 20;
  const std::vector add{kernel({{0, mib}, {1, mib}}, {{2, mib}})};
  EXPECT_EQ(repeated_residency(add, 2, 10, l2()).front(), (std::vector<double>{1.0, 1.0, 1.0}));
  const auto many = repeated_residency(add, 2, 100, l2()).front();
  EXPECT_EQ(many[0], 0.0);
  EXPECT_EQ(many[2], 1.0) << "the output goes to one buffer, however many input sets there are";
}

TEST(RepeatedResidency, an_operand_that_all_sets_share_is_found_however_many_sets_there_are) {
  const double mib = 1 << 20;
  const std::vector product{kernel({{0, mib}, {1, mib}}, {{2, mib}})};
  EXPECT_EQ(repeated_residency(product, 2, 100, l2(), 0.0, 0).front(), (std::vector<double>{1.0, 0.0, 1.0}));
}

TEST(RepeatedResidency, without_repetition_inputs_are_cold_and_a_clean_cache_takes_writes) {
  const double mib = 1 << 20;
  const auto small = repeated_residency(std::vector{kernel({{0, mib}}, {{1, mib}})}, 1, 0, l2()).front();
  EXPECT_EQ(small, (std::vector<double>{0.0, 1.0}));
  const auto large = repeated_residency(std::vector{kernel({{0, 1000 * mib}}, {{1, 1000 * mib}})}, 1, 0, l2()).front();
  EXPECT_LT(large[1], 0.05);
}

TEST(RepeatedResidency, the_second_kernel_of_an_op_finds_what_the_first_wrote) {
  const double mib = 1 << 20;
  const std::vector two{kernel({{0, mib}}, {{Access::kTemporary, mib}}),
                        kernel({{Access::kTemporary, mib}}, {{1, mib}})};
  EXPECT_EQ(repeated_residency(two, 1, 0, l2())[1][0], 1.0);
}

/// Launches over storages of 1 KiB to twice the L2, in random order; some go over lists of tensors, in one sweep or in
/// two that part a tensor between them. A storage has one size.
struct RandomLaunches {
  std::vector<KernelLaunch> launches;
  std::vector<std::vector<Operand>> operands;

  void add(KernelLaunch launch, std::vector<Operand> used) {
    launches.push_back(std::move(launch));
    operands.push_back(std::move(used));
  }
};
RandomLaunches random_launches(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const double capacity = l2().capacity.value();
  std::vector<Operand> storages;
  for (StorageId id = 0; id < 12; ++id) {
    const double share = static_cast<double>(below(1000)) / 1000.0;
    storages.push_back({id, static_cast<std::int64_t>(1024.0 * std::pow(2.0 * capacity / 1024.0, share))});
  }
  RandomLaunches result;
  while (result.launches.size() < 40) {
    if (below(4) == 0) {
      constexpr int kTensors = 6;
      const std::uint64_t size = 1 + below(4);
      const double bytes = 0.4 * capacity * static_cast<double>(size);
      const auto used = lists_from(static_cast<StorageId>(100 * size), 2, kTensors, bytes);
      const bool parted = below(2) == 0;
      result.add(over_lists(2, parted ? 0.75 * bytes : bytes, 0.0, parted ? 4.5 : kTensors), used);
      if (parted) result.add(over_lists(2, 0.25 * bytes, 4.5, kTensors), used);
      continue;
    }
    const std::vector<Operand> used{storages[below(12)], storages[below(12)], storages[below(12)]};
    const auto access = [&](int operand) {
      return Access{.operand = operand, .bytes = static_cast<double>(used[static_cast<std::size_t>(operand)].bytes)};
    };
    result.add(kernel({access(0), access(1)}, {access(2)}), used);
  }
  return result;
}

// What a launch that empties the L2 leaves is the same whether those before it were visited or passed over.
TEST(L2Residency, launches_before_one_that_empties_it_may_be_passed_over) {
  int passed = 0, found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomLaunches drawn = random_launches(seed);
    const std::size_t all = drawn.launches.size();
    for (std::size_t first = 1; first + 1 < all; ++first) {
      L2Residency whole(l2()), from_there(l2());
      if (!whole.forgets_before(drawn.launches[first], drawn.operands[first])) continue;
      ++passed;
      std::vector<double> expected, shares;
      for (std::size_t i = 0; i <= first; ++i) whole.visit(drawn.launches[i], drawn.operands[i], expected);
      from_there.pass_over(first);
      from_there.visit(drawn.launches[first], drawn.operands[first], shares);
      for (std::size_t i = first + 1; i < all; ++i) {
        whole.visit(drawn.launches[i], drawn.operands[i], expected);
        from_there.visit(drawn.launches[i], drawn.operands[i], shares);
        ASSERT_EQ(expected.size(), shares.size());
        for (std::size_t k = 0; k < shares.size(); ++k) {
          ASSERT_NEAR(expected[k], shares[k], 1e-9) << "seed " << seed << ", launch " << i << " after " << first;
          found += shares[k] > 0.0 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(passed, 100);
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace ridgeline
