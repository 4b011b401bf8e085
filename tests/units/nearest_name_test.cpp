#include "sim/units/nearest_name.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

TEST(NearestName, a_misspelt_name_finds_the_one_meant) {
  const std::vector<std::string> names{"bandwidth", "capacity", "latency"};
  EXPECT_EQ(nearest_name("bandwith", names), "bandwidth");
  EXPECT_EQ(nearest_name("latancy", names), "latency");
  EXPECT_EQ(nearest_name("x", std::vector<std::string>{}), "");
}

TEST(NearestName, an_abbreviation_finds_the_name_that_contains_it) {
  const std::vector<std::string> names{"nvidia-t4", "nvidia-h100-sxm5-80gb", "nvidia-h200-sxm-141gb"};
  EXPECT_EQ(nearest_name("nvidia-h200", names), "nvidia-h200-sxm-141gb");
  EXPECT_EQ(nearest_name("h100", names), "nvidia-h100-sxm5-80gb");
  EXPECT_EQ(nearest_name("nvidia-t5", names), "nvidia-t4");
  EXPECT_EQ(nearest_name("H200", names), "nvidia-h200-sxm-141gb");
  EXPECT_EQ(nearest_name("NVIDIA-T4", names), "nvidia-t4");
  EXPECT_TRUE(abbreviates("A100", "nvidia-a100-sxm4-80gb"));
  EXPECT_FALSE(abbreviates("t4", "nvidia-t4"));  // two letters are in anything
}

TEST(NearestName, the_distance_counts_inserted_removed_and_changed_letters) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

}  // namespace
}  // namespace ridgeline
