#include "sim/hardware/hardware_sheet.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/hardware/load_gpu.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

const SheetRow* find(const std::vector<SheetRow>& rows, std::string_view key) {
  const auto found = std::find_if(rows.begin(), rows.end(), [key](const SheetRow& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

TEST(HardwareSheet, every_value_of_every_chip_has_a_source) {
  for (const std::string& name : hardware_names()) {
    const HardwareSheet sheet = load_hardware_sheet(name);
    EXPECT_GT(sheet.values.size(), 70u) << name;
    for (const SheetRow& row : sheet.values) EXPECT_GT(row.source.size(), 5u) << name << " " << row.key;
  }
}

TEST(HardwareSheet, an_estimate_says_why) {
  for (const std::string& name : hardware_names()) {
    for (const Numbers numbers : {Numbers::measured, Numbers::datasheet}) {
      for (const SheetRow& row : load_hardware_sheet(name, {}, numbers).values) {
        if (row.source.starts_with("estimated")) {
          EXPECT_GT(row.source.size(), 15u) << name << " " << row.key << ": " << row.source;
        }
      }
    }
  }
}

TEST(HardwareSheet, rows_hold_value_unit_source_and_spread_apart) {
  const HardwareSheet sheet = load_hardware_sheet("nvidia-h200-sxm-141gb");
  const SheetRow* bandwidth = find(sheet.values, "dram.bandwidth");
  ASSERT_TRUE(bandwidth);
  EXPECT_EQ(bandwidth->value, "4.8");
  EXPECT_EQ(bandwidth->unit, "TB/s");
  EXPECT_NE(bandwidth->source.find("datasheet"), std::string::npos);
  const SheetRow* gap = find(sheet.values, "launch.gap");
  ASSERT_TRUE(gap && gap->spread);
  EXPECT_DOUBLE_EQ(*gap->spread, 0.2);
  EXPECT_NE(find(sheet.values, "dram.type")->value.find("HBM3e"), std::string::npos);
}

TEST(HardwareSheet, an_override_is_its_own_source) {
  const HardwareSheet sheet =
      load_hardware_sheet("nvidia-t4", {{"dram.bandwidth", "640 GB/s", "--set hardware.dram.bandwidth=640 GB/s"}});
  EXPECT_EQ(find(sheet.values, "dram.bandwidth")->source, "--set hardware.dram.bandwidth=640 GB/s");
  EXPECT_EQ(find(sheet.values, "dram.bandwidth")->value, "640");
}

TEST(HardwareSheet, keys_of_the_sheet_can_be_set) {
  const HardwareSheet sheet = load_hardware_sheet("nvidia-rtx-3090");
  for (const SheetRow& row : sheet.values) {
    const std::string value = row.unit.empty() ? row.value : row.value + " " + row.unit;
    EXPECT_NO_THROW((void)load_gpu("nvidia-rtx-3090", {{row.key, value, ""}})) << row.key << "=" << value;
  }
}

TEST(HardwareSheet, what_a_file_may_say_and_does_not_is_shown_as_assumed) {
  const HardwareSheet shipped = load_hardware_sheet("nvidia-t4");
  const auto lru = load_hardware_sheet("nvidia-t4", {{"l2.replacement", "lru", ""}});
  ASSERT_TRUE(find(shipped.assumed, "l2.replacement"));
  EXPECT_EQ(find(shipped.assumed, "l2.replacement")->value, "aged");
  EXPECT_EQ(find(shipped.assumed, "launch.tile_order")->value, "automatic");
  EXPECT_EQ(find(shipped.assumed, "gemm.tiles")->value, "none");
  EXPECT_FALSE(find(lru.assumed, "l2.replacement"));
  EXPECT_EQ(find(lru.values, "l2.replacement")->value, "lru");
  for (const SheetRow& row : shipped.assumed) EXPECT_FALSE(find(shipped.values, row.key)) << row.key;
}

TEST(HardwareSheet, derived_rows_follow_from_the_values) {
  const Gpu h200 = load_gpu("nvidia-h200-sxm-141gb");
  const auto rows = derived_rows(h200);
  const auto number = [&rows](std::string_view key) {
    const SheetRow* row = find(rows, key);
    return row ? std::stod(row->value) : -1.0;
  };
  EXPECT_NEAR(number("peak.tensor_bf16"), 989.4, 0.5);
  EXPECT_NEAR(number("peak.tensor_bf16_sparse"), 2 * number("peak.tensor_bf16"), 0.2);
  EXPECT_NEAR(number("peak.fp32"), 66.9, 0.2);
  EXPECT_NEAR(number("ridge.tensor_bf16"), 989.4e12 / 4.8e12, 0.2);
  EXPECT_NEAR(number("sm.total_shared_bandwidth"), 132 * h200.sm.shared_bandwidth.value() * 1.98e9 * 1e-12, 0.1);
  EXPECT_LT(number("dram.achieved_copy"), 4.8);
  EXPECT_FALSE(find(derived_rows(load_gpu("nvidia-t4")), "peak.tensor_bf16"));
}

}  // namespace
}  // namespace ridgeline
