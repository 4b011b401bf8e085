// A comparison adds up, class by class and byte by byte, and its words follow from what changed.
#include "sim/study/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/report/text/comparison_words.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Scenario tiny(std::vector<config::Override> changes = {}) {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-h200-sxm-141gb, model: {family: gpt2, layers: 2, heads: 8, hidden: 512, vocabulary: 8000, "
      "max_positions: 1024, dropout: 0.0}, "
      "training: {micro_batch: 8, sequence_length: 1024, precision: amp-bf16, attention: eager}}";
  source.text_name = "test";
  source.overrides = std::move(changes);
  return load_scenario(source);
}

Comparison compared(std::vector<config::Override> changes) {
  const std::vector<Scenario> scenarios{tiny(), tiny(std::move(changes))};
  const std::vector<std::string> labels{"A", "B"};
  Session session;
  return compare(session, scenarios, labels, "analytic");
}

const ClassDifference& of(const Comparison& c, KernelClass kernel_class) {
  const auto& classes = c.differences.front().classes;
  const auto found =
      std::find_if(classes.begin(), classes.end(), [&](const auto& d) { return d.kernel_class == kernel_class; });
  if (found == classes.end()) throw std::out_of_range("no such class");
  return *found;
}
std::string words_for(const Comparison& c, KernelClass kernel_class) {
  return reason_for(of(c, kernel_class), c.sides[0], c.sides[1]);
}

TEST(Comparison, differences_add_up_to_the_whole_whatever_changed) {
  const std::vector<std::vector<config::Override>> all{
      {{"training.attention", "flash", ""}},
      {{"training.precision", "fp32", ""}},
      {{"hardware", "nvidia-t4", ""}, {"training.precision", "fp32", ""}},
      {{"training.cuda_graphs", "true", ""}},
      {{"training.micro_batch", "1", ""}},
      {{"host.scale", "8", ""}}};
  for (const auto& changes : all) {
    const Comparison c = compared(changes);
    const Difference& d = c.differences.front();
    const StepPrediction &a = c.sides[0].prediction.step, &b = c.sides[1].prediction.step;
    double time = 0, before = 0, last = 1e9;
    for (const ClassDifference& part : d.classes) {
      time += part.difference.value();
      before += part.before.time.value();
      EXPECT_LE(std::abs(part.difference.value()), last);
      last = std::abs(part.difference.value());
      if (part.kernel_class) {
        EXPECT_NEAR((part.from_work + part.from_rate).value(), part.difference.value(), 1e-12);
      }
    }
    EXPECT_NEAR(time, (b.time - a.time).value(), 1e-9 * a.time.value()) << changes.front().key;
    EXPECT_NEAR(before, a.time.value(), 1e-9 * a.time.value());
    std::int64_t memory = 0;
    for (const MemoryDifference& part : d.parts) memory += part.after - part.before;
    EXPECT_EQ(memory, d.memory) << changes.front().key;
    EXPECT_EQ(d.memory, c.sides[1].prediction.memory.device_used - c.sides[0].prediction.memory.device_used);
  }
}

TEST(Comparison, fused_attention_is_explained_by_the_score_matrix_and_the_rest_of_the_step_is_not) {
  const Comparison c = compared({{"training.attention", "flash", ""}});
  EXPECT_THAT(words_for(c, KernelClass::attention), HasSubstr("no longer writes the score matrix"));
  EXPECT_NEAR(of(c, KernelClass::matrix_products).difference.value(), 0.0, 1e-12);
  EXPECT_EQ(c.differences.front().classes.front().kernel_class, KernelClass::attention);
  // Scores are batch x heads x 1024 x 1024, written at least by the product, the mask and the softmax, in bf16 or fp32.
  EXPECT_GT(of(c, KernelClass::attention).before.score_bytes, 2 * 3 * 2.0 * 8 * 8 * 1024 * 1024);
  EXPECT_EQ(of(c, KernelClass::attention).after.score_bytes, 0.0);
}

TEST(Comparison, a_faster_chip_does_the_same_work_at_another_rate) {
  const Comparison c = compared({{"hardware.dram.bandwidth", "9.6 TB/s", ""}});
  const ClassDifference& optimizer = of(c, KernelClass::optimizer);
  EXPECT_EQ(optimizer.from_work.value(), 0.0);
  EXPECT_LT(optimizer.from_rate.value(), 0.0);
  EXPECT_THAT(words_for(c, KernelClass::optimizer), HasSubstr("TB/s of DRAM instead of"));
}

TEST(Comparison, twice_the_batch_is_twice_the_work) {
  const Comparison c = compared({{"training.micro_batch", "16", ""}});
  const ClassDifference& products = of(c, KernelClass::matrix_products);
  EXPECT_NEAR(products.after.flops, 2 * products.before.flops, 1e-6 * products.after.flops);
  EXPECT_THAT(words_for(c, KernelClass::matrix_products), HasSubstr("100 % more arithmetic"));
  EXPECT_THAT(words_for(c, KernelClass::optimizer), Not(HasSubstr("arithmetic")));
}

TEST(Comparison, a_side_that_does_not_fit_is_compared_as_if_it_did_and_says_so) {
  const Comparison c = compared({{"hardware.dram.capacity", "1 GiB", ""}});
  EXPECT_TRUE(c.sides[0].fits);
  EXPECT_FALSE(c.sides[1].fits);
  EXPECT_EQ(c.differences.front().memory, 0);
}

TEST(Comparison, takes_two_to_six_sides) {
  const std::vector<Scenario> scenarios(7, tiny());
  const std::vector<std::string> labels(7, "x");
  const std::span all(scenarios);
  Session session;
  EXPECT_THROW(compare(session, all.first(1), labels, "analytic"), UserError);
  EXPECT_THROW(compare(session, all, labels, "analytic"), UserError);
  EXPECT_EQ(compare(session, all.first(6), labels, "analytic").differences.size(), 5u);
  EXPECT_EQ(compare(session, all.first(2), labels, "analytic").differences.size(), 1u);
}

}  // namespace
}  // namespace ridgeline
