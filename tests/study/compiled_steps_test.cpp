// Whole steps under torch.compile against those measured on an NVIDIA H200.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/study/validation/error_statistics.h"
#include "sim/study/validation/step_validation.h"
#include "tests/study/validated.h"

namespace ridgeline {
namespace {

constexpr std::string_view kHardware = "nvidia-h200-sxm-141gb";

constexpr std::string_view kHeldOut = "h200/compile/heldout";

/// Compiled steps: those of `kHeldOut`, or the others.
std::vector<ValidatedStep> compiled(bool held_out) {
  static const std::vector<ValidatedStep> all = validated_steps_on(kHardware);
  std::vector<ValidatedStep> steps;
  for (const ValidatedStep& s : all)
    if (s.measured.compiled && (s.measured.source == kHeldOut) == held_out) steps.push_back(s);
  return steps;
}
const std::vector<ValidatedStep>& compiled_steps() {
  static const std::vector<ValidatedStep> steps = compiled(false);
  return steps;
}
/// Ten configurations measured after the model of compiled steps was made, which nothing was fitted on.
const std::vector<ValidatedStep>& held_out_steps() {
  static const std::vector<ValidatedStep> steps = compiled(true);
  return steps;
}

using Steps = std::vector<ValidatedStep>;
double step_ratio(const ValidatedStep& s) { return ratio(s.predicted.step.time, *s.measured.step_time); }
double busy_ratio(const ValidatedStep& s) { return ratio(s.predicted.step.gpu_busy, *s.measured.gpu_busy); }
double kernels_ratio(const ValidatedStep& s) {
  return static_cast<double>(s.predicted.step.kernel_count) / static_cast<double>(*s.measured.kernel_count);
}
double allocated_ratio(const ValidatedStep& s) {
  return static_cast<double>(s.predicted.memory.peak_allocated) / static_cast<double>(*s.measured.peak_allocated);
}
/// The GPU had work for nine tenths of the step.
bool waits_for_the_gpu(const ValidatedStep& s) { return ratio(*s.measured.gpu_busy, *s.measured.step_time) > 0.9; }
bool all_of_them(const ValidatedStep&) { return true; }

template <typename Ratio, typename Which>
ErrorStatistics errors(const Steps& steps, Ratio ratio_of, Which which) {
  std::vector<double> ratios;
  for (const ValidatedStep& s : steps)
    if (which(s)) ratios.push_back(ratio_of(s));
  return error_statistics(ratios);
}
void print(const Steps& steps) {
  for (const ValidatedStep& s : steps)
    fmt::print("{:50} step {:+.1f} % busy {:+.1f} % kernels {:+.1f} % allocated {:+.1f} %\n", s.measured.name,
               100 * (step_ratio(s) - 1), 100 * (busy_ratio(s) - 1), 100 * (kernels_ratio(s) - 1),
               100 * (allocated_ratio(s) - 1));
}

TEST(CompiledSteps, take_the_time_they_took) {
  print(compiled_steps());
  const ErrorStatistics all = errors(compiled_steps(), step_ratio, all_of_them);
  EXPECT_GE(all.n, 13u);
  EXPECT_LE(all.median, 4.0);
  EXPECT_LE(all.worst, 15.0);
  const ErrorStatistics on_the_gpu = errors(compiled_steps(), step_ratio, waits_for_the_gpu);
  EXPECT_GE(on_the_gpu.n, 11u);
  EXPECT_LE(on_the_gpu.worst, 8.0);
}

TEST(CompiledSteps, keep_the_gpu_as_busy_as_they_did) {
  const ErrorStatistics e = errors(compiled_steps(), busy_ratio, all_of_them);
  EXPECT_LE(e.median, 4.0);
  EXPECT_LE(e.worst, 10.0);
}

TEST(CompiledSteps, launch_as_many_kernels_as_they_did) {
  const ErrorStatistics e = errors(compiled_steps(), kernels_ratio, all_of_them);
  EXPECT_LE(e.median, 6.0);
  EXPECT_LE(e.worst, 15.0);
}

// One configuration was measured twice: PyTorch's benchmark padded an operand of 1.6 GB once and once not.
bool padded_by_chance(const ValidatedStep& s) { return s.measured.name == "gpt2-b16-bf16-flash-compile"; }

TEST(CompiledSteps, allocate_what_they_allocated) {
  const ErrorStatistics e =
      errors(compiled_steps(), allocated_ratio, [](const ValidatedStep& s) { return !padded_by_chance(s); });
  EXPECT_GE(e.n, 12u);
  EXPECT_LE(e.median, 1.0);
  EXPECT_LE(e.worst, 6.0);
  // Known deviation (measurements/DEVIATIONS.md).
  const ErrorStatistics other = errors(compiled_steps(), allocated_ratio, padded_by_chance);
  EXPECT_EQ(other.n, 1u);
  EXPECT_GT(other.worst, 6.0);
  EXPECT_LE(other.worst, 17.0);
}

TEST(CompiledSteps, that_nothing_was_fitted_on_come_as_close) {
  print(held_out_steps());
  EXPECT_EQ(held_out_steps().size(), 10u);
  const ErrorStatistics busy = errors(held_out_steps(), busy_ratio, all_of_them);
  EXPECT_LE(busy.median, 4.0);
  EXPECT_LE(busy.worst, 6.0);
  const ErrorStatistics on_the_gpu = errors(held_out_steps(), step_ratio, waits_for_the_gpu);
  EXPECT_GE(on_the_gpu.n, 5u);
  EXPECT_LE(on_the_gpu.median, 4.0);
  EXPECT_LE(on_the_gpu.worst, 8.0);
  // The host of that machine was slower; its clipping and optimizer say how much.
  const ErrorStatistics step = errors(held_out_steps(), step_ratio, all_of_them);
  EXPECT_LE(step.median, 6.0);
  EXPECT_LE(step.worst, 15.0);
  EXPECT_LE(errors(held_out_steps(), kernels_ratio, all_of_them).worst, 15.0);
}

TEST(CompiledSteps, that_nothing_was_fitted_on_allocate_what_they_allocated) {
  const ErrorStatistics e = errors(held_out_steps(), allocated_ratio, all_of_them);
  EXPECT_LE(e.median, 1.0);
  // Known deviation: one keeps 16-bit scores where the model keeps probabilities (measurements/DEVIATIONS.md).
  EXPECT_GT(e.worst, 6.0);
  EXPECT_LE(e.worst, 9.0);
}

TEST(CompiledSteps, list_generated_kernels_by_name) {
  for (const ValidatedStep& s : compiled_steps()) {
    const auto& kernels = s.predicted.kernels;
    EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [](const KernelGroup& k) {
      return k.name.starts_with("triton_per_fused_");
    })) << s.measured.name;
  }
}

}  // namespace
}  // namespace ridgeline
