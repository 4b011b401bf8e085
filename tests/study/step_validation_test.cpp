// Whole training steps against those measured on an NVIDIA H200. Tolerances are named; measurements/README.md says
// how the steps were measured.
#include "sim/study/validation/step_validation.h"
#include "sim/answer/step_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/study/validation/error_statistics.h"
#include "tests/study/validated.h"
#include "tests/support/sha256.h"

namespace ridgeline {
namespace {

constexpr double kStepMedian = 12, kStepWorst = 35;                           // percent
constexpr double kAllocatedMedian = 1, kAllocatedWorst = 3;                   // percent
constexpr double kReservedMedian = 2, kReservedWorst = 6;                     // percent
constexpr double kDeviceUsedWorst = 6;                                        // percent
constexpr double kLaunches = 2;                                               // percent
constexpr double kRtx3090Time = 20, kRtx3090Memory = 6;                       // percent
constexpr double kPublishedMedian = 6, kStatedMedian = 4, kStatedWorst = 15;  // percent, of one chip
struct StepBars {
  double published, stated, worst;
};
/// Chips that miss a bar, and today's errors (measurements/DEVIATIONS.md).
const std::map<std::string, StepBars> kKnownOfChips{{"RTX 3090", {8.3, 8.3, 18.7}}, {"V100", {6.8, 5.1, kStatedWorst}}};
constexpr double kHeldOutHostMedian = 8, kHeldOutHostWorst = 30, kBusyMedian = 4;  // percent
constexpr double kLadderMedian = 5, kLadderWorst = 12;                             // percent

const std::vector<ValidatedStep>& steps_of(const std::string& hardware) {
  static std::map<std::string, std::vector<ValidatedStep>> all;
  auto found = all.find(hardware);
  if (found == all.end()) found = all.emplace(hardware, validated_steps_on(hardware)).first;
  return found->second;
}

template <typename Ratio>
ErrorStatistics errors(std::string_view source, Ratio ratio_of) {
  std::vector<double> ratios;
  for (const ValidatedStep& s : steps_of("nvidia-h200-sxm-141gb"))
    if (s.measured.source == source && !s.measured.compiled) ratios.push_back(ratio_of(s));
  return error_statistics(ratios);
}
double time_ratio(const ValidatedStep& s) { return ratio(s.predicted.step.time, *s.measured.step_time); }
double allocated_ratio(const ValidatedStep& s) {
  return static_cast<double>(s.predicted.memory.peak_allocated) / static_cast<double>(*s.measured.peak_allocated);
}

TEST(MeasuredSteps, EagerStepsOnTheH200TakeTheTimeTheyTook) {
  const ErrorStatistics e = errors("h200", time_ratio);
  EXPECT_EQ(e.n, 27u);
  EXPECT_LE(e.median, kStepMedian);
  EXPECT_LE(e.worst, kStepWorst);
}

TEST(MeasuredSteps, EagerStepsOnTheH200AllocateWhatTheyAllocated) {
  const ErrorStatistics e = errors("h200", allocated_ratio);
  EXPECT_LE(e.median, kAllocatedMedian);
  EXPECT_LE(e.worst, kAllocatedWorst);
}

TEST(MeasuredSteps, EagerStepsOnTheH200HoldWhatTheyHeld) {
  const ErrorStatistics reserved = errors("h200", [](const ValidatedStep& s) {
    return static_cast<double>(s.predicted.memory.peak_reserved) / static_cast<double>(*s.measured.peak_reserved);
  });
  const ErrorStatistics used = errors("h200", [](const ValidatedStep& s) {
    return static_cast<double>(s.predicted.memory.device_used) / static_cast<double>(*s.measured.device_used);
  });
  fmt::print("reserved: median {:.2f} %, worst {:.2f} %; device used: median {:.2f} %, worst {:.2f} %\n",
             reserved.median, reserved.worst, used.median, used.worst);
  EXPECT_LE(reserved.median, kReservedMedian);
  EXPECT_LE(reserved.worst, kReservedWorst);
  EXPECT_LE(used.worst, kDeviceUsedWorst);
}

TEST(MeasuredSteps, ConfigurationsThatNothingWasTunedOnAllocateWhatTheyAllocated) {
  const ErrorStatistics e = errors("h200/more", allocated_ratio);
  EXPECT_EQ(e.n, 25u);
  EXPECT_LE(e.median, kAllocatedMedian);
  EXPECT_LE(e.worst, kAllocatedWorst);
}

// measurements/public/runs.yaml says what the sources ran and which rows are not comparable; those count too.
TEST(MeasuredSteps, PublishedStepsOfOtherGpusTakeTheTimeTheyTook) {
  const std::map<std::string, std::vector<std::string>> chips{
      {"A100", {"nvidia-a100-pcie-80gb", "nvidia-a100-sxm4-40gb", "nvidia-a100-sxm4-80gb"}},
      {"V100", {"nvidia-v100-sxm2-16gb", "nvidia-v100-sxm2-32gb", "nvidia-v100-pcie-32gb"}},
      {"RTX 3090", {"nvidia-rtx-3090"}},
      {"H100", {"nvidia-h100-pcie-80gb", "nvidia-h100-sxm5-80gb"}},
      {"GH200", {"nvidia-gh200-96gb"}}};
  for (const auto& [chip, boards] : chips) {
    std::vector<double> all, comparable;
    for (const std::string& board : boards)
      for (const ValidatedStep& s : steps_of(board)) {
        if (!s.measured.step_time || !s.measured.source.starts_with("public"))
          continue;                                              // ours; several GPUs: parallel_steps_test.cpp
        if (s.measured.source.ends_with("elsewhere")) continue;  // elsewhere_steps_test.cpp
        all.push_back(time_ratio(s));
        // All of these ran; one is predicted to miss by a fraction of a GiB (23.7 of 23.7).
        EXPECT_EQ(s.predicted.memory.runs, s.measured.name != "lambda-rtx3090-bert-base-squad-fp16-b96-pt1.13.0a0")
            << s.measured.name;
        if (s.measured.source == "public") comparable.push_back(time_ratio(s));
      }
    const ErrorStatistics every = error_statistics(all), stated = error_statistics(comparable);
    fmt::print("{}: {} steps, median {:.1f} %, worst {:.1f} %; {} comparable ones, median {:.1f} %\n", chip, every.n,
               every.median, every.worst, stated.n, stated.median);
    EXPECT_GE(stated.n, 5u) << chip;
    const StepBars asked{kPublishedMedian, kStatedMedian, kStatedWorst};
    const auto known = kKnownOfChips.find(chip);
    const StepBars& bars = known == kKnownOfChips.end() ? asked : known->second;
    EXPECT_LE(every.median, bars.published) << chip;
    EXPECT_LE(stated.median, bars.stated) << chip;
    EXPECT_LE(stated.worst, bars.worst) << chip;
    if (known != kKnownOfChips.end()) {
      EXPECT_GT(stated.median, kStatedMedian) << "it meets its bar: take it out of measurements/DEVIATIONS.md";
    }
  }
}

TEST(MeasuredSteps, TheHostOfTheH100IsFittedOnAThirdOfItsStepsAndHoldsForTheOthers) {
  const auto fitted = steps_that_fit_the_h100_host();
  std::vector<double> held_out, busy;
  double slowest = 0.0;
  for (const ValidatedStep& s : steps_of("nvidia-h100-sxm5-80gb")) {
    if (s.measured.source != "h100") continue;
    const bool fits = ridgeline::testing::sha256_modulo(s.measured.name, 3) == 0;
    EXPECT_EQ(fits, std::find(fitted.begin(), fitted.end(), s.measured.name) != fitted.end()) << s.measured.name;
    EXPECT_EQ(fits, s.measured.host_fitted);
    busy.push_back(ratio(s.predicted.step.gpu_busy, *s.measured.gpu_busy));
    if (fits) continue;
    // Its host was three times as slow as in the other runs (measurements/DEVIATIONS.md).
    if (s.measured.name == "gpt2-large-b2-bf16-flash") slowest = std::abs(time_ratio(s) - 1.0);
    else held_out.push_back(time_ratio(s));
  }
  EXPECT_GT(100.0 * slowest, kHeldOutHostWorst) << "it meets its tolerance: take it out of measurements/DEVIATIONS.md";
  EXPECT_LE(100.0 * slowest, 31.5);
  const ErrorStatistics time = error_statistics(held_out), gpu = error_statistics(busy);
  fmt::print("H100, host held out: {} steps, median {:.1f} %, worst {:.1f} %; GPU busy median {:.1f} %\n", time.n,
             time.median, time.worst, gpu.median);
  EXPECT_EQ(time.n, 14u);
  EXPECT_LE(time.median, kHeldOutHostMedian);
  EXPECT_LE(time.worst, kHeldOutHostWorst);
  EXPECT_LE(gpu.median, kBusyMedian);
}

struct NotesError {
  double time = 0, memory = 0;  // percent
};
NotesError error_of_notes(const std::string& file) {
  ScenarioSource source;
  source.file = RIDGELINE_SOURCE_DIR "/scenarios/" + file + ".yaml";
  const Scenario scenario = load_scenario(source);
  const Prediction p = predict(scenario, "analytic");
  const double measured_s = 4.0 / scenario.measured.samples_per_s.value();
  return {100.0 * std::abs(p.step.time.value() / measured_s - 1.0),
          100.0 * std::abs(static_cast<double>(p.memory.device_used) / scenario.measured.device_used->value() - 1.0)};
}

TEST(MeasuredSteps, TheRtx3090OfTheTrainingNotesTakesTheirTimeAndMemory) {
  EXPECT_LE(error_of_notes("bert-large-fp32").time, kRtx3090Time);
  EXPECT_LE(error_of_notes("bert-large-fp32").memory, kRtx3090Memory);
  EXPECT_NEAR(error_of_notes("bert-large-fp32-accumulation").time, 20.09, 0.1);  // measurements/DEVIATIONS.md
  EXPECT_LE(error_of_notes("bert-large-fp32-accumulation").memory, kRtx3090Memory);
}

TEST(MeasuredSteps, TheLadderOfThePerformanceGuideOnAV100TakesTheMemoryItTook) {
  std::vector<double> errors;
  for (const char* step :
       {"3-accumulation-checkpointing", "4-fp16", "5-accumulation-checkpointing-fp16", "6-with-adafactor"})
    errors.push_back(error_of_notes("huggingface-v100/" + std::string(step)).memory);
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(0.5 * (errors[1] + errors[2]), kLadderMedian);
  EXPECT_LE(errors.back(), kLadderWorst);
}

// Where does the gigabyte go that a count of weights, gradients, two states and activations leaves out? Into what the
// optimizer holds for a moment: two lists as large as the parameters. Four sequences at once hide it, because their
// activations are larger than those lists and gone by then.
TEST(MeasuredSteps, AccumulationOnThatRtx3090PeaksInTheOptimizerAndFourSequencesDoNot) {
  const auto predicted = [](const std::string& file, const char* lists) {
    ScenarioSource source;
    source.file = RIDGELINE_SOURCE_DIR "/scenarios/" + file + ".yaml";
    source.overrides = {{"software.foreach_adam_lists", lists, ""}};
    return predict_memory(load_scenario(source));
  };
  const MemoryPrediction one = predicted("bert-large-fp32-accumulation", "2"), four = predicted("bert-large-fp32", "2");
  EXPECT_EQ(one.peak_phase, Phase::optimizer);
  EXPECT_NE(four.peak_phase, Phase::optimizer);
  const auto weights = static_cast<double>(one.at_peak[static_cast<std::size_t>(Category::weights)]);
  EXPECT_NEAR(static_cast<double>(one.at_peak[static_cast<std::size_t>(Category::temporaries)]), 2.0 * weights,
              0.02 * weights);
  EXPECT_LT(predicted("bert-large-fp32-accumulation", "1").peak_allocated, one.peak_allocated);
  EXPECT_EQ(predicted("bert-large-fp32", "1").peak_allocated, four.peak_allocated);
}

TEST(MeasuredSteps, ARunThatTheDeepSpeedTutorialSawFailIsNotSaidToFit) {
  ScenarioSource source;  // ran out of memory in a published run (DeepSpeed's BERT tutorial, PyTorch, 2020)
  source.file = RIDGELINE_SOURCE_DIR "/scenarios/huggingface-v100/4-fp16.yaml";
  source.overrides = {{"model",
                       "{family: bert, layers: 24, heads: 16, hidden: 1024, feed_forward: 4096, vocabulary: "
                       "30522, max_positions: 512, dropout: 0.1, head: question-answering}",
                       ""},
                      {"training.micro_batch", "8", ""},
                      {"training.sequence_length", "384", ""},
                      {"training.optimizer.implementation", "fused", ""}};
  const MemoryPrediction eight = predict_memory(load_scenario(source));
  EXPECT_FALSE(eight.fits);
  EXPECT_EQ(verdict(eight), "may not fit") << "predicted to run out: take it out of measurements/DEVIATIONS.md";
  source.overrides[1].value = "4";  // and this one ran
  EXPECT_TRUE(predict_memory(load_scenario(source)).fits);
}

TEST(MeasuredSteps, LaunchesOfAStepOnTheH200AreThoseCounted) {
  const std::vector<std::string> known_deviations{
      "bert-base-b24-fp32",         "gpt2-b16-bf16-flash",
      "gpt2-b16-bf16-flash-v50304", "gpt2-b16-bf16-flash-v50304-fused",
      "nanogpt-char-slow-fp32",     "bert-base-b24-fp32-ckpt"};  // measurements/DEVIATIONS.md
  std::vector<std::string> off;
  for (const ValidatedStep& s : steps_of("nvidia-h200-sxm-141gb")) {
    if (s.measured.source != "h200" || s.measured.compiled) continue;
    const double error = 100.0 * std::abs(static_cast<double>(s.predicted.step.kernel_count) /
                                              static_cast<double>(*s.measured.kernel_count) -
                                          1.0);
    if (error > kLaunches) {
      off.push_back(s.measured.name);
      fmt::print("{}: {} launches for {}\n", s.measured.name, s.predicted.step.kernel_count, *s.measured.kernel_count);
    }
  }
  EXPECT_EQ(off, known_deviations);
}

}  // namespace
}  // namespace ridgeline
