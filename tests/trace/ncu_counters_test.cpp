// Tables of Nsight Compute: the same counters in both forms of the file, and in every unit.
#include "sim/trace/nsight/ncu_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::trace {
namespace {

using ::testing::HasSubstr;

std::vector<CountedKernel> counted_in(const std::string& text) {
  const std::string path = temporary_path("ncu.csv");
  std::ofstream(path, std::ios::binary) << text;
  return read_ncu(path);
}

TEST(NcuCounters, BothFormsSayTheSame) {
  const std::string rows =
      "==PROF== Connected to process 7\n==PROF== Disconnected\n"
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"Section Name\",\"Metric "
      "Name\",\"Metric "
      "Unit\",\"Metric Value\"\n"
      "\"0\",\"7\",\"gemm(int, int)\",\"(128, 1, 1)\",\"(4, 8, 1)\",\"0\",\"a\",\"Duration\",\"us\",\"1,234.5\"\n"
      "\"0\",\"7\",\"gemm(int, int)\",\"(128, 1, 1)\",\"(4, 8, 1)\",\"0\",\"a\",\"L2 Hit Rate\",\"%\",\"62.5\"\n"
      "\"0\",\"7\",\"gemm(int, int)\",\"(128, 1, 1)\",\"(4, 8, 1)\",\"0\",\"a\",\"DRAM Throughput\",\"%\",\"91\"\n"
      "\"1\",\"7\",\"add\",\"(64, 1, 1)\",\"(4, 1, 1)\",\"0\",\"a\",\"Duration\",\"ns\",\"2,000\"\n";
  const std::string wide =
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"gpu__time_duration.sum\","
      "\"lts__t_sector_hit_rate.pct\",\"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\",\"dram__bytes_read."
      "sum\"\n"
      "\"\",\"\",\"\",\"\",\"\",\"\",\"ms\",\"%\",\"%\",\"Mbyte\"\n"
      "\"0\",\"7\",\"gemm(int, int)\",\"(128, 1, 1)\",\"(4, 8, 1)\",\"0\",\"1.2345\",\"62.5\",\"91\",\"3.5\"\n"
      "\"1\",\"7\",\"add\",\"(64, 1, 1)\",\"(4, 1, 1)\",\"0\",\"0.002\",\"n/a\",\"\",\"0\"\n";
  for (const std::string& text : {rows, wide}) {
    const std::vector<CountedKernel> kernels = counted_in(text);
    ASSERT_EQ(kernels.size(), 2u) << text;
    EXPECT_EQ(kernels[0].name, "gemm(int, int)");
    EXPECT_EQ(kernels[0].grid, "(4, 8, 1)");
    EXPECT_NEAR(*kernels[0].seconds, 1.2345e-3, 1e-12);
    EXPECT_NEAR(*kernels[0].l2_hit_rate, 0.625, 1e-12);
    EXPECT_NEAR(*kernels[0].dram_throughput, 0.91, 1e-12);
    EXPECT_NEAR(*kernels[1].seconds, 2e-6, 1e-15);
    EXPECT_FALSE(kernels[1].l2_hit_rate);
  }
  EXPECT_NEAR(*counted_in(wide)[0].dram_read_bytes, 3.5e6, 1e-6);
}

TEST(NcuCounters, MistakesAreToldWithTheirLine) {
  const auto refusal = [](const std::string& text) {
    try {
      (void)counted_in(text);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  EXPECT_THAT(refusal("a,b\n1,2\n"), HasSubstr("no table of Nsight Compute"));
  EXPECT_THAT(refusal("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n"), HasSubstr("without any kernel"));
  EXPECT_THAT(refusal("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"us\"\n\"0\",\"k\",\"fast\"\n"),
              HasSubstr(":3: 'fast'"));
}

}  // namespace
}  // namespace ridgeline::trace
