// Shipped scenarios are found by name from any folder; files of one's own come first.
#include "sim/scenario/scenario_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/config/data_folder.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

TEST(ScenarioFile, IsTheShippedOneWhereThereIsNoOther) {
  const auto shipped = config::data_folder("scenarios");
  const std::filesystem::path before = std::filesystem::current_path(), place = temporary_path("elsewhere");
  std::filesystem::create_directories(place);
  std::filesystem::current_path(place);
  EXPECT_EQ(scenario_file("bert-large-fp32"), shipped / "bert-large-fp32.yaml");
  EXPECT_EQ(scenario_file("scenarios/bert-large-fp32.yaml"), shipped / "bert-large-fp32.yaml");
  EXPECT_EQ(scenario_file("sweeps/six-gpus"), shipped / "sweeps/six-gpus.yaml");
  std::ofstream("bert-large-fp32") << "title: mine\n";
  EXPECT_EQ(scenario_file("bert-large-fp32"), "bert-large-fp32");
  for (const char* none : {"", "no-such", "../scenarios/bert-large-fp32.yaml", "/bert-large-fp32.yaml", "sweeps"})
    EXPECT_EQ(scenario_file(none), none);
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace ridgeline
