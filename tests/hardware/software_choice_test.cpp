#include "sim/hardware/software_choice.h"

#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"

namespace ridgeline {
namespace {

TEST(SoftwareChoice, builds_have_code_for_a_range_of_compute_capabilities) {
  const Gpu volta = load_gpu("nvidia-v100-sxm2-32gb"), turing = load_gpu("nvidia-t4"),
            consumer = load_gpu("nvidia-rtx-3090"), hopper = load_gpu("nvidia-h100-sxm5-80gb");
  const Software cuda13 = load_software("pytorch-2.11"), cuda126 = load_software("pytorch-2.11-cuda-12.6"),
                 old = load_software("pytorch-1.13");
  EXPECT_FALSE(has_code_for(cuda13, volta));
  EXPECT_TRUE(has_code_for(cuda13, turing));
  EXPECT_TRUE(has_code_for(cuda126, volta));
  EXPECT_TRUE(has_code_for(old, volta));
  EXPECT_TRUE(has_code_for(old, consumer)) << "8.6 is the last of its list";
  EXPECT_FALSE(has_code_for(old, hopper));
}

TEST(SoftwareChoice, every_shipped_chip_has_a_default_that_exists) {
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    EXPECT_TRUE(has_code_for(load_software(default_software(gpu)), gpu)) << name;
  }
}

TEST(SoftwareChoice, the_default_is_the_newest_that_has_code) {
  EXPECT_EQ(default_software(load_gpu("nvidia-h200-sxm-141gb")), "pytorch-2.11");
  EXPECT_EQ(default_software(load_gpu("nvidia-t4")), "pytorch-2.11");
  EXPECT_EQ(default_software(load_gpu("nvidia-v100-pcie-32gb")), "pytorch-2.11-cuda-12.6");
}

TEST(SoftwareChoice, a_recordings_is_the_newest_that_its_toolkit_had) {
  const Gpu hopper = load_gpu("nvidia-h100-sxm5-80gb"), volta = load_gpu("nvidia-v100-sxm2-32gb");
  EXPECT_EQ(software_of_toolkit(13.0, hopper), "pytorch-2.11");
  EXPECT_EQ(software_of_toolkit(12.8, hopper), "pytorch-2.11-cuda-12.6");
  EXPECT_EQ(software_of_toolkit(12.4, hopper), "pytorch-2.5");
  EXPECT_EQ(software_of_toolkit(12.2, hopper), "pytorch-2.1");
  EXPECT_EQ(software_of_toolkit(11.7, volta), "pytorch-1.13");
  EXPECT_EQ(software_of_toolkit(11.6, volta), "pytorch-1.12");
  EXPECT_EQ(software_of_toolkit(11.3, volta), "pytorch-1.11");
  EXPECT_EQ(software_of_toolkit(11.1, volta), "pytorch-1.10");
  EXPECT_EQ(software_of_toolkit(11.0, volta), "pytorch-1.7");
  EXPECT_EQ(software_of_toolkit(11.7, hopper), default_software(hopper)) << "1.13 has no code for it";
  EXPECT_EQ(software_of_toolkit(0.0, volta), default_software(volta));
  EXPECT_EQ(software_of_toolkit(10.2, volta), default_software(volta)) << "older than all";
}

}  // namespace
}  // namespace ridgeline
