#include "sim/hardware/load_gpu.h"

#include <gtest/gtest.h>

#include "sim/hardware/load_host.h"

namespace ridgeline {
namespace {

TEST(LoadGpu, every_shipped_description_loads_with_and_without_its_measured_section) {
  ASSERT_FALSE(hardware_names().empty());
  for (const std::string& name : hardware_names()) {
    EXPECT_NO_THROW(load_gpu(name)) << name;
    EXPECT_NO_THROW(load_gpu(name, {}, Numbers::datasheet)) << name;
    EXPECT_EQ(load_gpu(name).name, name);
  }
}

TEST(LoadGpu, the_measured_section_wins_unless_only_the_datasheet_is_asked_for) {
  EXPECT_NEAR(load_gpu("nvidia-h200-sxm-141gb").clock.tensor_droop.value(), 250e6, 1);
  EXPECT_EQ(load_gpu("nvidia-h200-sxm-141gb", {}, Numbers::datasheet).clock.tensor_droop.value(), 0.0);
}

}  // namespace
}  // namespace ridgeline
