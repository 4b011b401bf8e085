// Each file of tests/bad_inputs/hardware has one mistake; expected.txt says what a person is told about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "sim/config/config_error.h"
#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/bad_inputs/hardware";

TEST(BadHardware, the_file_without_a_mistake_loads) {
  EXPECT_EQ(load_gpu((kFolder / "complete.yaml").string()).sm.count, 100);
}

TEST(BadHardware, every_mistake_is_told_with_file_line_column_key_and_expectation) {
  std::ifstream expected(kFolder / "expected.txt");
  std::map<std::string, std::vector<std::string>> tested{{"complete.yaml", {}}};
  for (std::string line; std::getline(expected, line);)
    if (!line.starts_with('#')) tested[line.substr(0, line.find(':'))].push_back(line);
  for (const auto& [file, lines] : tested) {
    if (lines.empty()) continue;
    try {
      (void)load_gpu((kFolder / file).string());
      ADD_FAILURE() << file << " loads";
    } catch (const config::ConfigError& error) {
      std::stringstream told(error.what());
      std::string one;
      for (const std::string& line : lines) {
        std::getline(told, one);
        EXPECT_THAT(one, ::testing::EndsWith("bad_inputs/hardware/" + line));
      }
      EXPECT_EQ(static_cast<bool>(std::getline(told, one)), lines.size() > 1) << file << ": " << one;
      EXPECT_GT(error.origin().line, 0) << file;
      EXPECT_GT(error.origin().column, 0) << file;
    }
  }
  EXPECT_GE(tested.size(), 30u);
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".yaml") {
      EXPECT_TRUE(tested.contains(name)) << name << " is not in expected.txt";
    }
  }
}

TEST(BadHardware, a_mistake_on_the_command_line_names_the_argument) {
  const auto error = [](const std::string& key, const std::string& value) -> std::string {
    try {
      (void)load_gpu("nvidia-h200-sxm-141gb", {{key, value, "--set hardware." + key + "=" + value}});
    } catch (const config::ConfigError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(error("dram.bandwith", "4 TB/s"),
              ::testing::StartsWith("--set hardware.dram.bandwith=4 TB/s: dram.bandwith: unknown key; did you mean "
                                    "bandwidth? Allowed: type, capacity"));
  EXPECT_THAT(error("dram.bandwidth", "4"),
              ::testing::StartsWith("--set hardware.dram.bandwidth=4: dram.bandwidth: '4' has no unit"));
  EXPECT_THAT(error("sm.count", "0"), ::testing::HasSubstr("--set hardware.sm.count=0: sm.count: 0 is out of range"));
  EXPECT_THAT(error("sm", "3"), ::testing::HasSubstr("--set hardware.sm=3: sm: expected a mapping, got '3'"));
  EXPECT_THAT(error("power.idle", "900 W"),
              ::testing::HasSubstr("--set hardware.power.idle=900 W: power.idle: not below power.limit"));
}

TEST(BadHardware, numbers_that_no_chip_could_have_are_refused_with_what_is_allowed) {
  const auto error = [](const std::string& key, const std::string& value) -> std::string {
    try {
      (void)load_gpu("nvidia-h200-sxm-141gb", {{key, value, "--set hardware." + key + "=" + value}});
    } catch (const config::ConfigError& e) {
      return e.what();
    }
    return "no error";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(error("dram.bandwidth", "1e30 TB/s"), HasSubstr("expected at least 1.00 GB/s and at most 1000 TB/s"));
  EXPECT_THAT(error("dram.bandwidth", "1 MB/s"), HasSubstr("out of range"));
  EXPECT_THAT(error("dram.bandwidth", "-4.8 TB/s"), HasSubstr("out of range"));
  EXPECT_THAT(error("dram.bandwidth", "nan TB/s"), HasSubstr("expected a number with a unit"));
  EXPECT_THAT(error("sm.count", "1e9"), HasSubstr("expected a whole number (1 to 100000), got '1e9'"));
  EXPECT_THAT(error("sm.count", "1000000000"), HasSubstr("expected 1 to 100000"));
  EXPECT_THAT(error("sm.count", "99999999999999999999"), HasSubstr("expected 1 to 100000"));
  EXPECT_THAT(error("sm.count", "-1"), HasSubstr("expected 1 to 100000"));
  EXPECT_THAT(error("clock.boost", "1e12 GHz"), HasSubstr("out of range"));
  EXPECT_THAT(error("clock.tensor", "1 Hz"), HasSubstr("out of range"));
  EXPECT_THAT(error("l2.capacity", "1e30 MiB"), HasSubstr("out of range"));
  EXPECT_THAT(error("dram.latency", "1 s"), HasSubstr("out of range"));
  EXPECT_THAT(error("sm.shared_per_sm", "1 TiB"), HasSubstr("out of range"));
  EXPECT_THAT(error("sm.rates.tensor_bf16", "1e-300"),
              HasSubstr("expected 0 (there is no such unit) or at least 0.01"));
  EXPECT_THAT(error("sm.rates.tensor_bf16", "1e7"), HasSubstr("out of range"));
  EXPECT_THAT(error("sm.rates.fp32", "0"), HasSubstr("out of range"));
  EXPECT_THAT(error("power.limit", "1e9 W"), HasSubstr("out of range"));
  EXPECT_THAT(error("launch.gap", "1e9 s"), HasSubstr("out of range"));
  // A hundred times what exists is a what-if.
  for (const auto& [key, value] : {std::pair{"dram.bandwidth", "800 TB/s"},
                                   {"sm.count", "16000"},
                                   {"l2.capacity", "20 GiB"},
                                   {"dram.capacity", "28 TB"},
                                   {"dram.latency", "4 ns"},
                                   {"sm.rates.tensor_bf16", "800000"},
                                   {"power.limit", "100000 W"}})
    EXPECT_EQ(error(key, value), "no error") << key;
}

TEST(BadHardware, an_unknown_name_finds_the_nearest_one) {
  try {
    (void)load_gpu("nvidia-l40s-48bg");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                ::testing::StartsWith("hardware: unknown name 'nvidia-l40s-48bg'; did you mean nvidia-l40s?"));
  }
  EXPECT_THROW((void)load_gpu("./no/such/file.yaml"), config::ConfigError);
  EXPECT_THROW((void)load_gpu(""), config::ConfigError);
}

}  // namespace
}  // namespace ridgeline
