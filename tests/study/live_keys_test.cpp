// Every number of a hardware file moves an answer of each kind of question that it is said to be read by.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/answer/memory_prediction.h"
#include "sim/answer/step_run.h"
#include "sim/hardware/keys.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/study/kernel_prediction.h"
#include "sim/study/microkernels/committed_results.h"
#include "sim/study/microkernels/microkernel.h"
#include "sim/units/user_error.h"
#include "tests/support/random_kernel_cases.h"

namespace ridgeline {
namespace {

constexpr Laws kKernels = Law::choice | Law::occupancy | Law::stream | Law::code | Law::product | Law::attention |
                          Law::convolution | Law::power | Law::residency | Law::copies;

/// A number set elsewhere in its range; the same where it stands at the end already.
Gpu changed(const Gpu& gpu, const HardwareKey& key, double factor) {
  Gpu other = gpu;
  const double value = std::clamp(factor * key.get(gpu), key.range.low, key.range.high);
  key.set(other, key.kind == KeyKind::integer ? std::round(value) : value);
  return other;
}

constexpr double kFactors[] = {0.25, 4.0, 1.0 / 64.0, 64.0};

class Questions {
 public:
  /// Whether some kernel takes another time, or is refused, on some chip with another value of the number.
  bool kernels_move(const HardwareKey& key, const std::string& engine, std::size_t every = 1) {
    for (const double factor : kFactors)
      for (const char* name : {"nvidia-h200-sxm-141gb", "nvidia-a100-pcie-40gb", "nvidia-t4"}) {
        const Gpu gpu = load_gpu(name);
        const Gpu other = changed(gpu, key, factor);
        const auto now = make_engine(engine, gpu), then = make_engine(engine, other);
        if (engine == "analytic" && microkernels_move(gpu, other)) return true;
        for (std::size_t i = 0; i < cases_.size(); i += every) {
          const std::optional<double> before = time(cases_[i].kernel, gpu, *now);
          if (before && time(cases_[i].kernel, other, *then) != before) return true;
        }
      }
    return false;
  }
  bool steps_move(const HardwareKey& key) {
    for (const char* batch : {"2", "64", "256"})  // waits for the host, and lets it run ahead
      for (const bool graphs : {false, true}) {
        Scenario scenario = small_step(batch);
        scenario.cuda_graphs = graphs;
        const OpTrace trace = trace_of(scenario);
        const Seconds before = step_time(trace, scenario, "analytic");
        for (const double factor : {0.25, 4.0, 1.0 / 1024.0}) {
          Scenario other = scenario;
          other.gpu = changed(scenario.gpu, key, factor);
          if (step_time(trace, other, "analytic") != before) return true;
        }
      }
    return false;
  }
  /// Four boards whose products are held by their power.
  static bool several_boards_move(const HardwareKey& key) {
    ScenarioSource source;
    source.text =
        "{cluster: h200-x4, model: gpt2-medium, training: {micro_batch: 32, sequence_length: 1024, "
        "precision: amp-bf16, parallel: {data: 4, strategy: ddp}}}";
    source.text_name = "test";
    const Scenario scenario = load_scenario(source);
    Scenario other = scenario;
    other.gpu = changed(scenario.gpu, key, 4.0);
    return predict(other, "analytic").step.time != predict(scenario, "analytic").step.time;
  }
  bool memory_moves(const HardwareKey& key) {
    for (const char* software : {"pytorch-2.11", "pytorch-1.10"}) {
      Scenario scenario = small_step();
      scenario.software = load_software(software);
      const MemoryPrediction before = predict_memory(scenario);
      for (const double factor : kFactors) {
        Scenario other = scenario;
        other.gpu = changed(scenario.gpu, key, factor);
        const MemoryPrediction after = predict_memory(other);
        if (after.device_used != before.device_used || after.fits != before.fits || after.capacity != before.capacity)
          return true;
      }
    }
    return false;
  }
  bool peaks_move(const HardwareKey& key) {
    const Gpu gpu = load_gpu("nvidia-a100-pcie-40gb");
    const auto before = derived_rows(gpu), after = derived_rows(changed(gpu, key, 4.0));
    return !std::equal(before.begin(), before.end(), after.begin(), after.end(),
                       [](const SheetRow& a, const SheetRow& b) { return a.key == b.key && a.value == b.value; });
  }

 private:
  /// Kernels described by their code: those of hw/probe, a few points of each curve.
  static bool microkernels_move(const Gpu& gpu, const Gpu& other) {
    static const CommittedResults committed(RIDGELINE_SOURCE_DIR "/hw/probe/results");
    const auto now = make_engine("analytic", gpu), then = make_engine("analytic", other);
    for (const Microkernel& kernel : microkernels()) {
      if (kernel.curve.starts_with("wgmma")) continue;  // not of every chip
      const ProbeCurve* curve = committed.second.find(kernel.curve);
      for (std::size_t i = 0; curve && i < curve->points.size(); i += 7) {
        const ProbePoint& point = curve->points[i];
        if (covers(kernel, point, gpu) && covers(kernel, point, other) &&
            predict_microkernel(kernel, point, gpu, *now).time != predict_microkernel(kernel, point, other, *then).time)
          return true;
      }
    }
    return false;
  }
  static Scenario small_step(const std::string& batch = "2") {
    ScenarioSource source;
    source.text =
        "{hardware: nvidia-h200-sxm-141gb, model: {family: gpt2, layers: 2, heads: 4, hidden: 256, vocabulary: 8000, "
        "max_positions: 256, dropout: 0.1}, training: {micro_batch: " +
        batch + ", sequence_length: 256, precision: amp-bf16}}";
    source.text_name = "test";
    return load_scenario(source);
  }
  std::optional<double> time(const KernelCase& kernel, const Gpu& gpu, const TimingEngine& engine) const {
    try {
      return predict_kernel(kernel, gpu, software_, engine).time.value();
    } catch (const UserError&) {
      return std::nullopt;
    } catch (const std::invalid_argument&) {
      return std::nullopt;
    }
  }
  Software software_ = load_software("pytorch-2.11");
  std::vector<ridgeline::testing::NamedCase> cases_ = [] {
    auto cases = ridgeline::testing::RandomKernelCases(20261122).of_every_op(12);
    const char* sparse =
        R"({"op":"mm","dtype":"bf16","params":{"m":4096,"n":4096,"k":4096,"layout":"nt","sparsity":"2:4"}})";
    cases.push_back({sparse, kernel_case_from(nlohmann::json::parse(sparse))});
    return cases;
  }();
};

TEST(LiveKeys, every_number_moves_the_answers_of_the_laws_that_read_it) {
  Questions questions;
  for (const HardwareKey& key : hardware_keys()) {
    EXPECT_NE(key.laws, 0u) << key.key;
    if (!key.is_number()) continue;
    bool asked = holds(key.laws, Law::price) || key.laws == static_cast<Laws>(Law::choice);  // below
    if ((key.laws & kKernels) != 0 && key.laws != static_cast<Laws>(Law::choice)) {
      asked = true;
      EXPECT_TRUE(questions.kernels_move(key, "analytic")) << key.key << " moves no kernel";
    }
    if (holds(key.laws, Law::roofline)) {
      EXPECT_TRUE(questions.kernels_move(key, "roofline")) << key.key << " moves no kernel of the roofline engine";
    }
    if (holds(key.laws, Law::hierarchy)) {
      asked = true;
      EXPECT_TRUE(questions.kernels_move(key, "simulate", 7)) << key.key << " moves no simulated kernel";
    }
    if (holds(key.laws, Law::timeline)) {
      asked = true;
      EXPECT_TRUE(questions.steps_move(key)) << key.key << " moves no step";
    }
    if (holds(key.laws, Law::boards)) {
      asked = true;
      EXPECT_TRUE(Questions::several_boards_move(key)) << key.key << " moves no step of several boards";
    }
    if (holds(key.laws, Law::memory)) {
      asked = true;
      EXPECT_TRUE(questions.memory_moves(key)) << key.key << " moves no memory";
    }
    if (holds(key.laws, Law::peak)) {
      asked = true;
      EXPECT_TRUE(questions.peaks_move(key)) << key.key << " moves no peak";
    }
    EXPECT_TRUE(asked) << key.key << ": no question is asked of " << names_of(key.laws);
  }
}

TEST(LiveKeys, a_number_is_read_back_as_it_is_set) {
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.is_number()) continue;
    Gpu gpu = load_gpu("nvidia-a100-pcie-40gb");
    key.set(gpu, key.range.high);
    EXPECT_EQ(key.get(gpu), key.range.high) << key.key;
    EXPECT_TRUE(key.allows(key.range.low)) << key.key;
    EXPECT_EQ(find_hardware_key(key.key), &key);
  }
}

}  // namespace
}  // namespace ridgeline
