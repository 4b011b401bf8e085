// Sweeps of a small model in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/study/sweep/run_sweep.h"
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {

inline const std::string kScenario =
    "scenario: {hardware: nvidia-h200-sxm-141gb, model: {family: gpt2, layers: 2, heads: 4, hidden: 256, vocabulary: "
    "4000, max_positions: 512, dropout: 0.1}, training: {micro_batch: 2, sequence_length: 128, precision: fp32, "
    "attention: eager}}\n";

class SweepFixture : public ::testing::Test {
 protected:
  std::filesystem::path folder_ = temporary_path(::testing::UnitTest::GetInstance()->current_test_info()->name());
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Sweep sweep(const std::string& text) {
    std::ofstream(path("sweep.yaml")) << kScenario << text;
    return load_sweep(path("sweep.yaml"));
  }
  std::string mistake(const std::string& text) {
    try {
      const Sweep s = sweep(text);
      check_axes(s);
      return "no mistake";
    } catch (const UserError& error) {
      return error.what();
    }
  }
};

inline std::vector<SweepPoint> run(const Sweep& sweep, int threads = 2) {
  return run_sweep(sweep, sweep.points(), {threads, nullptr, {}});
}

}  // namespace ridgeline
