// From a probe result to the measured section of a hardware file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/config/parse_yaml.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/measured_section.h"
#include "sim/study/calibration/calibration.h"
#include "sim/study/calibration/calibration_effect.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kH200 = "nvidia-h200-sxm-141gb";

std::string contents(const std::string& name) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string& committed_probe() {
  static const std::string text = contents("hw/probe/results/nvidia-h200-sxm-141gb.json");
  return text;
}

std::string calibrated(const std::string& probe, const std::string& file, const std::string& name = kH200) {
  const Gpu gpu = gpu_from_yaml(file, name + ".yaml", {}, Numbers::datasheet);
  std::vector<std::string> order;
  for (const SheetRow& row : hardware_sheet_from_yaml(file, "file.yaml").values) order.push_back(row.key);
  const Calibration c = calibrate(probe_result_from(probe, "probe.json"), gpu,
                                  measured_rows(config::parse_yaml(file, "file.yaml")), order);
  return with_measured_section(file, c.rows, c.conditions);
}

std::string refusal(const std::string& probe, const char* hardware = kH200) {
  try {
    calibrated(probe, contents(std::string("hw/") + hardware + ".yaml"));
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

/// The committed result with a change.
template <typename Change>
std::string changed(Change change) {
  json probe = json::parse(committed_probe());
  change(probe);
  return probe.dump();
}

json& curve(json& probe, const std::string& name) {
  for (json& c : probe["curves"])
    if (c["name"] == name) return c;
  throw std::runtime_error(name);
}

TEST(Calibration, AMeasuredFileIsWhatItsProbeResultMakesOfIt) {
  for (const std::string name : {kH200, "nvidia-h100-sxm5-80gb"}) {
    const std::string file = contents("hw/" + name + ".yaml"), result = "hw/probe/results/" + name + ".json";
    EXPECT_EQ(calibrated(contents(result), file, name), file)
        << "run `build/ridgeline calibrate " << result << " --hardware " << name << "`";
  }
}

TEST(Calibration, AnotherRunOfTheSameKindOfBoardGivesNearlyTheSameNumbers) {
  // What an owner who measures twice should expect. Differences of measured times differ most.
  const std::string file = contents("hw/nvidia-h200-sxm-141gb.yaml");
  const Gpu gpu = gpu_from_yaml(file, "h200.yaml", {}, Numbers::datasheet);
  const auto numbers = [&](const char* result) {
    std::vector<std::string> order;
    for (const SheetRow& row : hardware_sheet_from_yaml(file, "file.yaml").values) order.push_back(row.key);
    const std::string text = contents(std::string("hw/probe/results/") + result);
    const Calibration made = calibrate(probe_result_from(text, result), gpu, {}, order);
    std::map<std::string, double> values;
    for (const SheetRow& row : made.rows) values[row.key] = std::stod(row.value);
    return values;
  };
  const auto first = numbers("nvidia-h200-sxm-141gb.json");
  for (const char* again : {"nvidia-h200-sxm-141gb-second.json", "nvidia-h200-sxm-141gb-third.json"})
    for (const auto& [key, value] : numbers(again)) {
      const bool difference = key == "dram.turnaround" || key.starts_with("l2.resident");
      EXPECT_NEAR(value / first.at(key), 1.0, difference ? 0.06 : 0.03) << key << " of " << again;
    }
}

TEST(Calibration, NothingTypedByHandSurvivesInWhatTheProbeMeasures) {
  std::string file = contents("hw/nvidia-h200-sxm-141gb.yaml");
  const std::string good = file;
  const std::vector<SheetRow> rows = measured_rows(config::parse_yaml(file, "file.yaml"));
  for (const CalibrationRule& rule : calibration_rules()) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const SheetRow& r) { return r.key == rule.key; });
    ASSERT_NE(row, rows.end()) << rule.key;
    EXPECT_THAT(row->source, HasSubstr("(hw/probe)")) << rule.key;
  }
  const auto begin = file.find("read_efficiency: {value: 0.96", file.find("measured:"));
  ASSERT_NE(begin, std::string::npos);
  file.replace(begin, 29, "read_efficiency: {value: 0.51");
  EXPECT_EQ(calibrated(committed_probe(), file), good);
}

TEST(Calibration, CommentsOfPeopleAndTheBaseStayToTheLetter) {
  std::string file = contents("hw/nvidia-h200-sxm-141gb.yaml");
  const auto section = file.find("\nmeasured:\n");
  ASSERT_NE(section, std::string::npos);
  const std::string base = file.substr(0, section);
  file.insert(section + 11, "  # mind the fan\n");
  const std::string once = calibrated(committed_probe(), file);
  EXPECT_EQ(once.substr(0, section), base);
  EXPECT_THAT(once, HasSubstr("  # mind the fan\n"));
  EXPECT_EQ(calibrated(committed_probe(), once), once);
}

TEST(Calibration, AFileWithoutMeasuredSectionGetsOneAndWhatFollowsStays) {
  const std::string file = contents("hw/nvidia-h200-sxm-141gb.yaml");
  const std::string base = file.substr(0, file.find("\nmeasured:\n"));
  const std::string made = calibrated(committed_probe(), base);
  EXPECT_TRUE(made.starts_with(base));
  EXPECT_NEAR(gpu_from_yaml(made, "x.yaml").dram.read_efficiency, 0.965, 0.002);
  const std::string moved = made + "\nprice_per_hour: {value: 1, source: \"x\"}\n";
  EXPECT_THAT(with_measured_section(moved, measured_rows(config::parse_yaml(made, "x")), {}),
              ::testing::EndsWith("price_per_hour: {value: 1, source: \"x\"}\n"));
}

TEST(Calibration, ValuesAgreeWithTheIndependentMeasurementsOfTheSameChip) {
  // Slopes and copies of measurements/h200 (CUPTI durations of PyTorch's kernels) and its host.json.
  const ProbeResult probe = probe_result_from(committed_probe(), "probe.json");
  const auto at_size = [&](const char* name, double bytes) {
    for (const ProbePoint& p : probe.find(name)->points)
      if (p["bytes"] == bytes) return p.value;
    return 0.0;
  };
  EXPECT_NEAR(at_size("dram_copy", 1073741824.0) / 4.26e12, 1.0, 0.03);
  EXPECT_NEAR(at_size("dram_write", 1073741824.0) / 4.73e12, 1.0, 0.03);
  EXPECT_NEAR(probe.context.at("total_less_free_bytes") / 552.4e6, 1.0, 0.03);
}

TEST(Calibration, AnotherGpuIsRefusedWithEveryDifference) {
  const std::string said = refusal(committed_probe(), "nvidia-rtx-3090");
  EXPECT_THAT(said, HasSubstr("measured on a 'NVIDIA H200', the file describes a 'NVIDIA GeForce RTX 3090'"));
  EXPECT_THAT(said, HasSubstr("device.sm_count: measured 132, the file says 82 (sm.count)"));
  EXPECT_THAT(said, HasSubstr("nothing was written"));
  EXPECT_THAT(refusal(committed_probe(), "nvidia-h100-sxm5-80gb"), HasSubstr("device.memory_bytes"));
  EXPECT_THAT(refusal(changed([](json& p) { p["device"]["memory_bytes"] = 80e9; })), HasSubstr("device.memory_bytes"));
}

TEST(Calibration, MissingMicrokernelsAreNamed) {
  const std::string said = refusal(changed([](json& p) {
    auto& curves = p["curves"];
    curves.erase(std::remove_if(curves.begin(), curves.end(),
                                [](const json& c) { return c["name"] == "dram_copy" || c["name"] == "host_copy"; }),
                 curves.end());
  }));
  EXPECT_THAT(said, HasSubstr("dram.turnaround: needs the curve \"dram_copy\", which is missing"));
  EXPECT_THAT(said, HasSubstr("host_link.bandwidth: needs the curve \"host_copy\", which is missing"));
}

TEST(Calibration, ScatterIsRefusedAboveTheRulesLimitAndAcceptedBelow) {
  const auto with_spread = [](double spread) {
    return changed([&](json& p) { curve(p, "dram_read")["points"].back()["spread"] = spread; });
  };
  EXPECT_THAT(refusal(with_spread(0.051)), HasSubstr("dram.read_efficiency: its points scatter by 5.1 %"));
  EXPECT_EQ(refusal(with_spread(0.049)), "accepted");
}

TEST(Calibration, WrongResultsAndBrokenNumbersAreRefused) {
  EXPECT_THAT(refusal(changed([](json& p) { curve(p, "dram_read")["correct"] = false; })),
              HasSubstr("curve dram_read: the microkernel's result was wrong"));
  EXPECT_THAT(refusal(changed([](json& p) { curve(p, "dram_read")["points"][3]["seconds"] = nullptr; })),
              HasSubstr("curve dram_read, point 4: \"seconds\" is null"));
  EXPECT_THAT(refusal(changed([](json& p) { curve(p, "dram_read")["points"][0]["value"] = -1.0; })),
              HasSubstr("point 1: \"value\" is -1.0"));
  EXPECT_THAT(refusal(changed([](json& p) { p["format"] = "other"; })), HasSubstr("not a probe result"));
  EXPECT_THAT(refusal(changed([](json& p) { p["version"] = 2; })), HasSubstr("version 2"));
  EXPECT_THAT(refusal("{\"value\": NaN}"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(committed_probe().substr(0, 5000)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(changed([](json& p) { curve(p, "dram_read")["points"] = json::array(); })),
              HasSubstr("dram.read_efficiency"));
}

TEST(Calibration, ASlopeThatFallsIsRefused) {
  EXPECT_THAT(refusal(changed([](json& p) {
                auto& points = curve(p, "dram_write")["points"];
                points.back()["seconds"] = 1e-6;
              })),
              HasSubstr("dram.write_efficiency: time does not grow with size"));
}

TEST(Calibration, ItsEffectIsToldOfEveryScenarioAndKernelAndIsNoneWithoutAChange) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  Gpu slower = gpu;
  slower.dram.bandwidth = slower.dram.bandwidth * 0.5;
  const std::vector<MovedPrediction> same = calibration_effect(gpu, gpu), moved = calibration_effect(gpu, slower);
  ASSERT_EQ(same.size(), 4u + 7u);  // steps, then kernels
  ASSERT_EQ(moved.size(), same.size());
  double copies = 0.0;
  for (std::size_t i = 0; i < same.size(); ++i) {
    EXPECT_GT(same[i].before.value(), 0.0) << same[i].what;
    EXPECT_EQ(same[i].before, same[i].after) << same[i].what;
    EXPECT_EQ(moved[i].before, same[i].before) << same[i].what;
    EXPECT_GE(moved[i].after, moved[i].before) << same[i].what;
    if (same[i].what.starts_with("copy")) copies = ratio(moved[i].after, moved[i].before);
  }
  EXPECT_NEAR(copies, 2.0, 0.1) << "half the bandwidth doubles what only moves bytes";
}

}  // namespace
}  // namespace ridgeline
