// Properties of every kernel on every GPU: more of a resource is never slower, and no time is below its floors.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hardware/resource.h"
#include "sim/study/kernel_prediction.h"
#include "sim/timing/l2_residency.h"
#include "sim/workload/op_operands.h"
#include "tests/support/random_kernel_cases.h"

namespace ridgeline {
namespace {

/// Rounding of sums, not a tolerance of the laws.
constexpr double kRounding = 1.0 + 1e-12;

class EveryGpu : public ::testing::TestWithParam<std::string> {
 protected:
  const Gpu gpu_ = load_gpu(GetParam());
  const Software software_ = load_software("pytorch-2.11");
};

TEST_P(EveryGpu, more_of_a_resource_is_never_slower) {
  const auto engine = make_timing_engine("analytic", gpu_);
  int compared = 0;
  for (const testing::NamedCase& c : testing::RandomKernelCases(20261121).of_every_op(12)) {
    KernelPrediction now;
    try {
      now = predict_kernel(c.kernel, gpu_, software_, *engine);
    } catch (const std::invalid_argument&) {
      continue;  // an attention kernel that this GPU does not have
    }
    for (const Resource resource : kResources)
      for (const double factor : {1.1, 2.0}) {
        const Gpu more = with_more(gpu_, resource, factor);
        const KernelPrediction then = predict_kernel_on_changed(c.kernel, more, gpu_, software_, "analytic");
        EXPECT_LE(then.time.value(), now.time.value() * kRounding)
            << factor << " x " << name_of(resource) << " " << c.text;
        // With the kernels it runs, no reservation is needed for anything but SMs, whose last wave may be uneven.
        if (resource != Resource::sm_count) {
          EXPECT_LE(time_launches(c.kernel, now.launches, more, *make_timing_engine("analytic", more)).time.value(),
                    now.time.value() * kRounding)
              << factor << " x " << name_of(resource) << ", same kernels " << c.text;
        }
        ++compared;
      }
  }
  EXPECT_GT(compared, 8000);
}

TEST_P(EveryGpu, no_kernel_is_below_the_time_of_its_arithmetic_or_of_the_bytes_it_must_read) {
  const auto engine = make_timing_engine("analytic", gpu_);
  const double clock = std::max(gpu_.clock.boost.value(), gpu_.clock.tensor.value());
  const MathRates& rates = gpu_.sm.rates;
  const auto multiply_adds = [&](const KernelLaunch& launch) {
    if (launch.pipe == Pipe::fp32) return rates.fp32;
    if (launch.pipe == Pipe::none) return 0.0;
    return launch.type == DType::bf16   ? rates.tensor_bf16
           : launch.type == DType::fp16 ? rates.tensor_fp16
                                        : rates.tensor_tf32;
  };
  int with_arithmetic = 0, with_reads = 0;
  for (const testing::NamedCase& c : testing::RandomKernelCases(20261122).of_every_op(40)) {
    KernelPrediction p;
    try {
      p = predict_kernel(c.kernel, gpu_, software_, *engine);
    } catch (const std::invalid_argument&) {
      continue;
    }
    const auto hits = repeated_residency(p.launches, rotating_operands(c.kernel.op), c.kernel.input_sets, gpu_.l2,
                                         partly_used_bytes(c.kernel.op));
    for (std::size_t i = 0; i < p.launches.size(); ++i) {
      const KernelLaunch& launch = p.launches[i];
      double missed = 0.0;  // of the op's own operands: what it wrote itself may never leave the L2
      for (std::size_t r = 0; r < launch.reads.size(); ++r)
        if (launch.reads[r].operand != Access::kTemporary) missed += launch.reads[r].bytes * (1.0 - hits[i][r]);
      EXPECT_GE(p.times[i].time.value() * kRounding, missed / gpu_.dram.bandwidth.value()) << launch.name << c.text;
      with_reads += missed > 0.0;
      if (const double rate = multiply_adds(launch); rate > 0.0) {
        EXPECT_GE(p.times[i].time.value() * kRounding, launch.flops / (2.0 * rate * gpu_.sm.count * clock))
            << launch.name << c.text;
        with_arithmetic += launch.flops > 0.0;
      }
    }
  }
  EXPECT_GT(with_arithmetic, 1000);
  EXPECT_GT(with_reads, 1000);
}

INSTANTIATE_TEST_SUITE_P(Shipped, EveryGpu, ::testing::ValuesIn(hardware_names()), [](const auto& gpu) {
  std::string name = gpu.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace ridgeline
