// What a fit finds is the optimum of what it minimises, and what it says of each number follows from its cases; the
// largest batch that fits is found with what it says beside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/answer/changes.h"
#include "sim/hardware/keys.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/study/calibration/refit_gpu.h"
#include "sim/study/fit.h"
#include "sim/study/kernel_prediction.h"

namespace ridgeline {
namespace {

KernelCase case_of(const std::string& text) { return kernel_case_from(nlohmann::json::parse(text)); }

/// Each tied number of `gpu` times its factor.
Gpu multiplied_by(const Gpu& gpu, const std::vector<double>& factors) {
  Gpu result = gpu;
  for (std::size_t i = 0; i < tied_numbers().size(); ++i)
    for (const std::string_view name : tied_numbers()[i].keys) {
      const HardwareKey& key = *find_hardware_key(name);
      if (key.get(gpu) != 0.0) key.set(result, key.get(gpu) * factors[i]);
    }
  return result;
}

/// Sums, softmax and products of an A100, timed on one whose numbers are others, with errors of some percent that
/// alternate.
std::vector<TimedCase> timed_on(const Gpu& owner, const Software& software) {
  const auto engine = make_timing_engine("analytic", owner);
  std::vector<TimedCase> cases;
  for (int i = 0; i < 90; ++i) {
    const std::int64_t rows = 64 << (i / 3 % 8), cols = 256 + 128 * (i % 11);
    const std::string sizes = "\"rows\": " + std::to_string(rows) + ", \"cols\": " + std::to_string(cols);
    const std::string product = "\"m\": " + std::to_string(rows) + ", \"n\": " + std::to_string(cols) + ", \"k\": 512";
    const std::string texts[] = {"{\"op\": \"softmax\", \"dtype\": \"fp32\", \"params\": {" + sizes + "}}",
                                 "{\"op\": \"add\", \"dtype\": \"fp32\", \"params\": {" + sizes + "}}",
                                 "{\"op\": \"mm\", \"dtype\": \"bf16\", \"params\": {" + product + "}}"};
    TimedCase one;
    one.kernel = case_of(texts[i % 3]);
    one.family = i % 3 == 2 ? "products" : "others";
    one.shape = static_cast<std::uint64_t>(i % 7) << 17;
    const Lowering lowering(owner, software);
    one.measured = predict_kernel(one.kernel, lowering, *engine).time * (i % 2 == 0 ? 1.03 : 0.98);
    cases.push_back(one);
  }
  return cases;
}

/// What the fit minimises: errors in the logarithm, small ones by their square over 5 %, large ones by their size, and
/// the squares of how far numbers moved over what is known of them.
double loss_of(const std::vector<TimedCase>& cases, const Gpu& gpu, const Software& software,
               const std::vector<double>& factors) {
  const Lowering lowering(gpu, software);  // kernels are those of the GPU as it was described
  const Gpu changed = multiplied_by(gpu, factors);
  const auto engine = make_timing_engine("analytic", changed);
  double sum = 0.0;
  for (const TimedCase& one : cases) {
    const Seconds time = time_launches(one.kernel, lowering.lower(one.kernel.op).launches, changed, *engine).time;
    const double error = std::log(time.value() / one.measured.value()) / 0.05;
    sum += 2.0 * (std::sqrt(1.0 + error * error) - 1.0);
  }
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double moved = std::log(factors[i]) / tied_numbers()[i].spread;
    sum += moved * moved;
  }
  return sum;
}

TEST(FitOptimum, NoSmallStepFromWhatWasFittedIsBetter) {
  const Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  const Software software = load_software("pytorch-2.11");
  std::vector<double> put_in(tied_numbers().size(), 1.0);
  put_in[0] = 1.7;  // start and end of a kernel
  put_in[2] = 0.8;  // share of the DRAM's bandwidth
  const std::vector<TimedCase> cases = timed_on(multiplied_by(gpu, put_in), software);
  const RefitResult result = refit_gpu(cases, gpu, software);
  std::vector<double> factors;
  std::size_t settled = 0;
  for (const FittedNumber& one : result.numbers) factors.push_back(one.factor), settled += one.settled;
  ASSERT_EQ(factors.size(), tied_numbers().size());
  EXPECT_GE(settled, 2u);
  const double best = loss_of(cases, gpu, software, factors);
  EXPECT_LT(best, 0.5 * loss_of(cases, gpu, software, std::vector<double>(factors.size(), 1.0)));
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!result.numbers[i].settled) {
      EXPECT_EQ(factors[i], 1.0) << "what the cases do not tell stays";
      continue;
    }
    for (const double step : {0.99, 1.01}) {
      std::vector<double> other = factors;
      other[i] *= step;
      EXPECT_GT(loss_of(cases, gpu, software, other), best - 1e-3) << tied_numbers()[i].name << " times " << step;
    }
  }
  const Gpu expected = multiplied_by(gpu, factors);
  for (const HardwareKey& key : hardware_keys())
    if (key.is_number()) {
      EXPECT_NEAR(key.get(result.gpu), key.get(expected), 1e-9 * std::abs(key.get(expected))) << key.key;
    }
  ASSERT_EQ(result.errors.size(), 3u) << "all, then each family";
  EXPECT_LT(result.errors[0].fitted.mean, 4.0);
  EXPECT_GT(result.errors[0].before.mean, result.errors[0].fitted.mean);
}

// Where nothing fits, the changes named are those that make one sequence fit, the others added up.
TEST(FitOptimum, ChangesAreThoseOfOneSequence) {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-t4, model: {family: gpt2, layers: 4, heads: 8, hidden: 512, vocabulary: 8000, "
      "max_positions: 512, dropout: 0.1}, training: {micro_batch: 4, sequence_length: 512, attention: eager, "
      "gradient_accumulation: 3}}";
  std::size_t checked = 0;
  for (const char* capacity : {"0.65 GiB", "0.7 GiB", "0.75 GiB"}) {
    source.overrides = {{"hardware.dram.capacity", capacity, ""}};
    const Scenario scenario = load_scenario(source);
    Session session;
    const FitResult found = fit_batch(session, scenario, "roofline");
    if (found.largest) continue;
    Scenario one = scenario;
    one.training.micro_batch = 1;
    one.training.gradient_accumulation = 12;
    EXPECT_EQ(found.would_fit, changes_that_make_it_fit(session, one)) << capacity;
    ++checked;
  }
  EXPECT_EQ(checked, 3u);
}

}  // namespace
}  // namespace ridgeline
