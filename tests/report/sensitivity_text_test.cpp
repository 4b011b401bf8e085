// What a tenth more of each resource saves, largest first.
#include "sim/report/text/sensitivity_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/report/json/sensitivity_json.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using nlohmann::json;

/// Of a step of 200 ms: 2 ms are 1 %.
Sensitivity made_sensitivity() {
  Sensitivity s;
  s.time = made_ms(200);
  const std::pair<Resource, double> saved[] = {{Resource::sm_count, 8},
                                               {Resource::core_clock, 4},
                                               {Resource::tensor_throughput, 2},
                                               {Resource::fma_throughput, 1},
                                               {Resource::shared_memory_bandwidth, 0},
                                               {Resource::l2_bandwidth, 3},
                                               {Resource::l2_capacity, -0.5},
                                               {Resource::dram_bandwidth, 6},
                                               {Resource::power_limit, 5},
                                               {Resource::latency, 0.3},
                                               {Resource::host_speed, 7}};
  for (const auto& [resource, ms] : saved) s.note(resource, s.time - made_ms(ms));
  s.saved[static_cast<std::size_t>(Resource::shared_memory_bandwidth)] = {};
  s.sms = 100, s.more_sms = 110;
  s.links = {{LinkResource::link_bandwidth, made_ms(2.5)}, {LinkResource::network_latency, made_ms(0.1)}};
  s.keys = {{find_hardware_key("l2.capacity"), made_ms(-0.5)},
            {find_hardware_key("sm.count"), {}},
            {find_hardware_key("dram.bandwidth"), made_ms(6)},
            {find_hardware_key("dram.capacity"), Seconds{1e-9}}};  // less than a millionth: rounding
  return s;
}

TEST(SensitivityTable, OrdersWhatSavesMostFirst) {
  EXPECT_EQ(sensitivity_table(made_sensitivity()), R"(
  10 % more of one resource saves (less than nothing: costs)
    8.00 ms    4.00 %   SMs (100 to 110)
    7.00 ms    3.50 %   host speed
    6.00 ms    3.00 %   DRAM bandwidth
    5.00 ms    2.50 %   power limit
    4.00 ms    2.00 %   clock of the SMs
    3.00 ms    1.50 %   L2 bandwidth
    2.50 ms    1.25 %   bandwidth of links between GPUs
    2.00 ms    1.00 %   tensor-core throughput
    1.00 ms    0.50 %   CUDA-core throughput
     300 us    0.15 %   launches and latencies
     100 us    0.05 %   latency of the network
          0    0.00 %   shared-memory bandwidth
    -500 us   -0.25 %   L2 capacity

  10 % more of one number of the hardware saves (less than nothing: costs)
    6.00 ms    3.00 %   dram.bandwidth
    -500 us   -0.25 %   l2.capacity
  none of these changes the time:
    dram.capacity sm.count
)");
}

TEST(SensitivityTable, NamesThatChangeNothingFillLinesOfEightyColumns) {
  Sensitivity s = made_sensitivity();
  s.keys.assign(12, {find_hardware_key("dram.bandwidth"), {}});  // 15 columns each with its space, after 3
  const std::string row = " dram.bandwidth", five = "   " + row + row + row + row + row + "\n";
  const std::string table = sensitivity_table(s);
  const std::string all = "  none of these changes the time:\n" + five + five + "   " + row + row + "\n";
  ASSERT_GE(table.size(), all.size());
  EXPECT_EQ(table.substr(table.size() - all.size()), all);
}

TEST(SensitivityJson, HasEachResourceLinkAndKey) {
  const json out = json(sensitivity_json(made_sensitivity(), "time_saved_us", 1e6));
  EXPECT_EQ(out.size(), 14U) << "eleven resources, two links, the keys";
  const auto expect = [&](const json& entry, double us, double percent) {
    EXPECT_NEAR(entry["time_saved_us"].get<double>(), us, 1e-6) << entry;
    EXPECT_NEAR(entry["percent"].get<double>(), percent, 1e-9) << entry;
  };
  expect(out["sm_count"], 8000, 4);
  expect(out["dram_bandwidth"], 6000, 3);
  expect(out["l2_capacity"], -500, -0.25);
  expect(out["link_bandwidth"], 2500, 1.25);
  expect(out["network_latency"], 100, 0.05);
  ASSERT_EQ(out["keys"].size(), 4U);
  expect(out["keys"]["dram.bandwidth"], 6000, 3);
  expect(out["keys"]["sm.count"], 0, 0);
}

}  // namespace
}  // namespace ridgeline
