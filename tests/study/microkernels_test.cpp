// The simulator's engines against the microkernels measured on an H200, curve by curve.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/report/microkernel_text.h"
#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {
namespace {

/// Engines that are held to the measured curves.
constexpr const char* kEngines[] = {"analytic", "simulate"};

// Tolerances, relative. Where a point's own samples scatter, as much more.
constexpr double kDramStreams = 0.02;    ///< arrays of 64 MB and more
constexpr double kL2Resident = 0.08;     ///< up to half the L2 touched a repetition
constexpr double kStaircase = 0.04;      ///< grids of equal arithmetic blocks
constexpr double kLittle = 0.08;         ///< bandwidth by warps and loads in flight
constexpr double kProducts = 0.10;       ///< three GEMMs
constexpr double kLatencyLevels = 0.04;  ///< dependent loads within one level
constexpr double kBankConflicts = 0.08;
constexpr double kEmptyKernels = 0.08;

const Gpu& h200() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}
const ProbeResult& measured() {
  static const ProbeResult result =
      load_probe_result(RIDGELINE_SOURCE_DIR "/hw/probe/results/nvidia-h200-sxm-141gb.json");
  return result;
}

const Microkernel& described(std::string_view curve) {
  for (const Microkernel& kernel : microkernels())
    if (kernel.curve == curve) return kernel;
  throw std::runtime_error(std::string(curve));
}

std::string name_of(const ProbePoint& point) {
  std::string name;
  for (const auto& [key, value] : point.at) name += key + " " + std::to_string(value) + " ";
  return name;
}

class Microkernels : public testing::TestWithParam<const char*> {
 protected:
  double predicted(std::string_view curve, const ProbePoint& point) const {
    return predict_microkernel(described(curve), point, h200(), *engine_).value;
  }
  /// Checks the points that `wanted` picks; answers how many there were.
  template <typename Wanted>
  int check(std::string_view curve, double tolerance, Wanted wanted) const {
    int count = 0;
    for (const ProbePoint& point : measured().find(curve)->points) {
      if (!wanted(point)) continue;
      ++count;
      EXPECT_NEAR(predicted(curve, point) / point.value, 1.0, tolerance + point.spread)
          << curve << " at " << name_of(point);
    }
    return count;
  }

 private:
  std::unique_ptr<TimingEngine> engine_ = make_engine(GetParam(), h200());
};

INSTANTIATE_TEST_SUITE_P(Engines, Microkernels, testing::ValuesIn(kEngines));

constexpr const char* kStreams[] = {"dram_read", "dram_write", "dram_copy", "dram_triad"};
double arrays(std::string_view curve) { return curve == "dram_triad" ? 3.0 : curve == "dram_copy" ? 2.0 : 1.0; }

TEST_P(Microkernels, StreamsOf64MegabytesAndMoreRunAsFastAsMeasured) {
  for (const char* curve : kStreams)
    EXPECT_EQ(check(curve, kDramStreams, [](const ProbePoint& p) { return p["bytes"] >= 64e6; }), 9) << curve;
}

TEST_P(Microkernels, StreamsThatStayInTheL2RunAsFastAsMeasured) {
  const double half = 0.5 * h200().l2.capacity.value();
  for (const char* curve : kStreams)
    EXPECT_GE(check(curve, kL2Resident, [&](const ProbePoint& p) { return arrays(curve) * p["bytes"] <= half; }), 7);
  for (const char* curve : {"l2_reread_clean", "l2_reread_dirty"})
    EXPECT_GE(check(curve, kL2Resident, [&](const ProbePoint& p) { return p["bytes"] <= half; }), 9);
}

TEST_P(Microkernels, WavesStepWhereMeasured) {
  // Two blocks an SM and nearly four times as many blocks as SMs: some SM gets a fifth in most launches, not in all.
  const auto uneven = [](const ProbePoint& p) {
    return p["fit"] == 2.0 && (p["blocks"] == 527.0 || p["blocks"] == 528.0);
  };
  EXPECT_EQ(check("wave_staircase", kStaircase, [&](const ProbePoint& p) { return !uneven(p); }), 50);
  for (const ProbePoint& p : measured().find("wave_staircase")->points) {
    if (!uneven(p)) continue;
    const double ratio = predicted("wave_staircase", p) / p.value;
    EXPECT_LT(ratio, 0.86) << "closer than tests/validation/DEVIATIONS.md says: remove it there";
    EXPECT_GT(ratio, 0.78);
  }
}

TEST_P(Microkernels, ABlockMoreThanFitsStartsAWaveAndNoneFewer) {
  const auto at = [&](double blocks) {
    ProbePoint point;
    point.at = {{"blocks", blocks}, {"fit", 1.0}, {"shared_bytes", 232448.0}};
    return predicted("wave_staircase", point);
  };
  for (const double full : {132.0, 264.0, 396.0}) {
    EXPECT_GT(at(full + 1.0) - at(full), 30.0) << full;  // measured 33.5 us
    EXPECT_LT(at(full) - at(full - 65.0), 1.0) << full;
  }
}

TEST_P(Microkernels, BandwidthFollowsWhatIsInFlight) {
  EXPECT_EQ(check("occupancy_bandwidth", kLittle, [](const ProbePoint&) { return true; }), 28);
}

TEST_P(Microkernels, ThreeProductsTakeAsLongAsMeasured) {
  for (const char* curve : {"gemm_naive", "gemm_shared", "gemm_tensor"})
    EXPECT_EQ(check(curve, kProducts, [](const ProbePoint&) { return true; }), 4) << curve;
}

TEST_P(Microkernels, DependentLoadsTakeTheLatencyOfTheirLevel) {
  const Gpu& gpu = h200();
  const auto level = [&](double bytes) {
    if (bytes <= 0.9 * gpu.sm.l1_and_shared.value()) return 1;
    if (bytes >= 2.0 * gpu.sm.l1_and_shared.value() && bytes <= 0.4 * gpu.l2.capacity.value()) return 2;
    return bytes >= 1.05 * gpu.l2.capacity.value() ? 3 : 0;
  };
  for (const int wanted : {1, 2, 3})
    EXPECT_GE(check("global_latency", kLatencyLevels, [&](const ProbePoint& p) { return level(p["bytes"]) == wanted; }),
              4)
        << wanted;
}

TEST_P(Microkernels, LanesThatShareABankAreServedInTurns) {
  EXPECT_EQ(check("bank_conflicts", kBankConflicts, [](const ProbePoint&) { return true; }), 13);
}

TEST_P(Microkernels, EmptyKernelsFollowOneAnotherAsMeasured) {
  EXPECT_EQ(check("graph_period", kEmptyKernels, [](const ProbePoint&) { return true; }), 10);
}

TEST(MicrokernelRoofline, IsNeverSlowerThanMeasuredFromTheDramOrInProducts) {
  // Ceilings of the datasheet: measured bandwidth and arithmetic stay below them.
  const auto engine = make_engine("roofline", h200());
  for (const Microkernel& kernel : microkernels()) {
    if (!kernel.curve.starts_with("gemm_") && kernel.curve != "occupancy_bandwidth") continue;
    for (const ProbePoint& p : measured().find(kernel.curve)->points) {
      const MicrokernelRun run = kernel.describe(p, h200());
      double seconds = 0;
      for (const KernelLaunch& launch : run.launches) seconds += engine->time(launch, {}).time.value();
      EXPECT_LT(seconds, p.seconds) << kernel.curve << " at " << name_of(p);
    }
  }
}

TEST(MicrokernelLaw, MoreInFlightIsNeverSlowerAndMoreBytesNeverFaster) {
  const auto engine = make_engine("analytic", h200());
  const Microkernel& little = described("occupancy_bandwidth");
  double before = 0.0;
  for (const double warps : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0}) {
    ProbePoint p;
    p.at = {{"warps", warps}, {"loads", 2.0}, {"bytes", 536870912.0}};
    const double now = predict_microkernel(little, p, h200(), *engine).value;
    EXPECT_GT(now, before) << warps;
    EXPECT_LT(now, h200().dram.bandwidth.value());
    before = now;
  }
  for (const char* curve : kStreams) {
    double seconds = 0.0;
    for (double bytes = 1048576.0; bytes < 2e9; bytes *= 1.3) {
      ProbePoint p;
      p.at = {{"bytes", std::floor(bytes / 65536.0) * 65536.0}};
      const double now = predict_microkernel(described(curve), p, h200(), *engine).time.value();
      EXPECT_GE(now, seconds) << curve << " " << bytes;
      seconds = now;
    }
  }
}

TEST(MicrokernelReport, IsTodays) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/docs/microkernels.md");
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(committed, microkernel_markdown(measured(), h200())) << "run `build/ridgeline validate --write-docs`";
}

TEST(MicrokernelLaw, EveryDescribedCurveIsMeasuredAndKnownByName) {
  for (const Microkernel& kernel : microkernels()) EXPECT_NE(measured().find(kernel.curve), nullptr) << kernel.curve;
  for (int i = static_cast<int>(CodeKernel::empty); i < static_cast<int>(CodeKernel::end); ++i)
    EXPECT_EQ(static_cast<int>(code_constants(static_cast<CodeKernel>(i)).kernel), i);
}

}  // namespace
}  // namespace ridgeline
