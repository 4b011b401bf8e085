// Tables of what a simulation saw: their width, their names, sums over launches.
#include "sim/report/text/profile_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/answer/profile_sum.h"

namespace ridgeline {
namespace {

KernelProfile large() {
  KernelProfile p;
  p.dram_read_bytes = p.dram_write_bytes = 123456e6;
  p.dram_bandwidth = 4800e9;
  p.dram_share = p.l2_share = p.l2_hit_rate = p.l1_hit_rate = 1.0;
  p.l1_read_bytes = p.l2_read_bytes = 1e12;
  p.theoretical_occupancy = p.achieved_occupancy = p.tail_share = p.pipe_active = 1.0;
  p.waves = 123456.0;
  p.stalls.fill(1.0);
  return p;
}

TEST(ProfileTables, AreAtMost100ColumnsWideUnderNamesOfNsightCompute) {
  const ProfiledKernel kernel{std::string(80, 'k'), 1234, Seconds{1.234}, large()};
  const std::string text = profile_tables({&kernel, 1});
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  for (const char* name : {"Throughput", "Hit Rate", "Achieved", "Occupancy", "Waves", "Scoreboard", "Stall MIO"})
    EXPECT_NE(text.find(name), std::string::npos) << name;
}

TEST(ProfileTables, AreEmptyWhereNothingWasSimulated) { EXPECT_TRUE(profile_tables({}).empty()); }

TEST(ProfileSums, AddBytesAndWeighTheRestByTimeOrBytes) {
  KernelProfile a, b;
  a.dram_read_bytes = 100;
  b.dram_read_bytes = 300;
  a.achieved_occupancy = 0.2;
  b.achieved_occupancy = 0.8;
  a.l2_read_bytes = 100;
  b.l2_read_bytes = 300;
  a.l2_hit_rate = 1.0;
  b.l2_hit_rate = 0.0;
  a.stalls[0] = 1.0;
  b.stalls[1] = 1.0;
  ProfileSum sum;
  EXPECT_TRUE(sum.empty());
  sum.add(a, Seconds{3.0});
  sum.add(b, Seconds{1.0});
  const KernelProfile mean = sum.mean();
  EXPECT_DOUBLE_EQ(mean.dram_read_bytes, 400.0);
  EXPECT_DOUBLE_EQ(mean.achieved_occupancy, 0.35);
  EXPECT_DOUBLE_EQ(mean.l2_hit_rate, 0.25);
  EXPECT_DOUBLE_EQ(mean.stalls[0], 0.75);
  EXPECT_DOUBLE_EQ(mean.stalls[1], 0.25);
}

}  // namespace
}  // namespace ridgeline
