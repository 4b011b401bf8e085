// Two predictions side by side whose every number is another one, made by hand.
//
// Before: 200 ms, after: 150 ms. Attention 60 to 20 ms, products 90 to 81 ms, waiting 20 to 18.9 ms, and copies
// 15 to 15.1 ms, which is too little for a row.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "sim/study/comparison.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {

inline ComparedScenario made_side(Session& session, const std::string& label, Scenario scenario = {}) {
  Prediction prediction = made_prediction();
  scenario.gpu.name = prediction.hardware;
  return {label,
          std::make_shared<const StepRun>(session, std::move(scenario), "analytic"),
          std::move(prediction),
          true,
          {}};
}

inline ClassWork& class_of(ComparedScenario& side, KernelClass kernel_class) {
  return side.classes[static_cast<std::size_t>(kernel_class)];
}

/// Kernels of a class, limited by one thing.
inline ClassWork made_work(double ms, std::int64_t kernels, Limiter limiter) {
  ClassWork work;
  work.time = made_ms(ms), work.kernels = kernels;
  work.limited_by[static_cast<std::size_t>(limiter)] = work.time;
  return work;
}

inline ClassDifference made_difference(std::optional<KernelClass> kernel_class, ClassWork before, ClassWork after,
                                       double from_work_ms, double from_rate_ms) {
  const Seconds difference = after.time - before.time;
  return {kernel_class, std::move(before), std::move(after), difference, made_ms(from_work_ms), made_ms(from_rate_ms)};
}

inline Comparison made_comparison(Session& session) {
  Comparison c;
  c.sides = {made_side(session, "plain"), made_side(session, "flash")};
  Prediction& after = c.sides[1].prediction;
  after.hardware = "nvidia-other";
  after.step.time = made_ms(150);
  after.step.samples_per_s = 213.33, after.step.mfu = 0.57, after.step.power = Watts{426.66};
  after.step.host_time = made_ms(125), after.step.gpu_busy = made_ms(131), after.step.kernel_count = 900;
  after.idle = made_ms(18.9);
  after.memory.device_used = made_gib(8.25);

  ClassWork attention = made_work(60, 72, Limiter::dram), fused = made_work(20, 24, Limiter::compute);
  attention.ops = {{"aten::bmm", 48}, {"aten::softmax", 24}}, fused.ops = {{"aten::flash", 24}};
  attention.score_bytes = 2.5e9;
  ClassWork products = made_work(90, 96, Limiter::compute), faster = made_work(81, 96, Limiter::compute);
  products.flops = products.tensor_flops = faster.flops = faster.tensor_flops = 9e12;
  ClassWork copies = made_work(15, 8, Limiter::dram), also = made_work(15.1, 8, Limiter::dram);
  class_of(c.sides[0], KernelClass::attention) = attention, class_of(c.sides[1], KernelClass::attention) = fused;
  class_of(c.sides[0], KernelClass::matrix_products) = products;
  class_of(c.sides[1], KernelClass::matrix_products) = faster;
  class_of(c.sides[0], KernelClass::copies) = copies, class_of(c.sides[1], KernelClass::copies) = also;
  ClassWork waited, waits;
  waited.time = made_ms(20), waits.time = made_ms(18.9);

  Difference& d = c.differences.emplace_back();
  d.time = made_ms(-50);
  d.classes = {made_difference(KernelClass::attention, attention, fused, -31, -9),
               made_difference(KernelClass::matrix_products, products, faster, 0, -9),
               made_difference({}, waited, waits, 0, 0), made_difference(KernelClass::copies, copies, also, 0, 0.1)};
  d.memory = made_gib(-4.25);
  d.parts = {{static_cast<std::size_t>(Category::activations), made_gib(2.75), made_gib(0.75)},
             {kCachedPart, made_gib(1), made_gib(3)},
             {kContextPart, made_gib(1.5), made_gib(1.5) - 4 * kMadeMiB},
             {static_cast<std::size_t>(Category::weights), made_gib(2), made_gib(2) - 6 * kMadeMiB}};
  return c;
}

}  // namespace ridgeline
