// Properties of every kernel on every GPU: more of a resource is never slower, and no time is below its floors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <utility>

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
/// A chip this much slower for a better number would be wrong.
constexpr double kLeastSlower = 1.005;

class EveryGpu : public ::testing::TestWithParam<std::string> {
 protected:
  const Gpu gpu_ = load_gpu(GetParam());
  const Software software_ = load_software("pytorch-2.11");
};

/// A number of a chip, and how it becomes `factor` times as good.
struct Key {
  const char* name;
  std::function<void(Gpu&, double)> improve;
  bool whole = false;
};

template <class Number>
Key more(const char* name, Number& (*of)(Gpu&)) {
  return {name, [of](Gpu& gpu, double factor) { of(gpu) = of(gpu) * factor; }};
}
template <class Number>
Key less(const char* name, Number& (*of)(Gpu&)) {
  return {name, [of](Gpu& gpu, double factor) { of(gpu) = of(gpu) * (1.0 / factor); }};
}
Key count(const char* name, int& (*of)(Gpu&)) {
  return {name,
          [of](Gpu& gpu, double factor) { of(gpu) = std::max(1, static_cast<int>(std::lround(of(gpu) * factor))); },
          true};
}

/// What a product's time depends on, one by one.
std::vector<Key> keys_of_products() {
  return {count("sm.count", [](Gpu& g) -> int& { return g.sm.count; }),
          count("sm.registers", [](Gpu& g) -> int& { return g.sm.registers; }),
          count("sm.max_warps", [](Gpu& g) -> int& { return g.sm.max_warps; }),
          count("sm.max_blocks", [](Gpu& g) -> int& { return g.sm.max_blocks; }),
          more<Bytes>("sm.shared_per_sm", [](Gpu& g) -> Bytes& { return g.sm.shared_per_sm; }),
          more<Bytes>("sm.shared_per_block", [](Gpu& g) -> Bytes& { return g.sm.shared_per_block; }),
          more<BytesPerCycle>("sm.shared_bandwidth", [](Gpu& g) -> BytesPerCycle& { return g.sm.shared_bandwidth; }),
          more<double>("sm.issue_rate", [](Gpu& g) -> double& { return g.sm.issue_rate; }),
          more<double>("sm.rates.fp32", [](Gpu& g) -> double& { return g.sm.rates.fp32; }),
          more<double>("sm.rates.tensor_fp16", [](Gpu& g) -> double& { return g.sm.rates.tensor_fp16; }),
          more<double>("sm.rates.tensor_bf16", [](Gpu& g) -> double& { return g.sm.rates.tensor_bf16; }),
          more<double>("sm.rates.tensor_tf32", [](Gpu& g) -> double& { return g.sm.rates.tensor_tf32; }),
          more<Hertz>("clock.sustained", [](Gpu& g) -> Hertz& { return g.clock.sustained; }),
          more<Hertz>("clock.tensor", [](Gpu& g) -> Hertz& { return g.clock.tensor; }),
          less<Hertz>("clock.tensor_droop", [](Gpu& g) -> Hertz& { return g.clock.tensor_droop; }),
          more<Watts>("power.limit", [](Gpu& g) -> Watts& { return g.power.limit; }),
          more<Bytes>("l2.capacity", [](Gpu& g) -> Bytes& { return g.l2.capacity; }),
          more<BytesPerSecond>("l2.read_bandwidth", [](Gpu& g) -> BytesPerSecond& { return g.l2.read_bandwidth; }),
          more<BytesPerSecond>("l2.write_bandwidth", [](Gpu& g) -> BytesPerSecond& { return g.l2.write_bandwidth; }),
          more<BytesPerSecond>("l2.shared_read_bandwidth",
                               [](Gpu& g) -> BytesPerSecond& { return g.l2.shared_read_bandwidth; }),
          less<Cycles>("l2.latency", [](Gpu& g) -> Cycles& { return g.l2.latency; }),
          more<BytesPerSecond>("dram.bandwidth", [](Gpu& g) -> BytesPerSecond& { return g.dram.bandwidth; }),
          less<Seconds>("dram.latency", [](Gpu& g) -> Seconds& { return g.dram.latency; }),
          less<Seconds>("launch.memset", [](Gpu& g) -> Seconds& { return g.launch.memset; })};
}

/// RIDGELINE_TEST_SEED draws other cases; a failure names the seed.
std::uint64_t seed_of_run() {
  const char* given = std::getenv("RIDGELINE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261123;
}

Seconds time_on(const Gpu& gpu, const KernelCase& kernel, const Software& software) {
  return predict_kernel(kernel, gpu, software, *make_timing_engine("analytic", gpu)).time;
}

/// What is not monotone yet, of all that is compared, and by how much at most: measurements/DEVIATIONS.md.
constexpr double kShareSlower = 0.001, kShareOfProducts = 0.002, kShareOfJumps = 0.002, kWorstKnown = 2.1;

TEST_P(EveryGpu, more_of_a_resource_is_never_slower) {
  int compared = 0, slower = 0;
  for (const ridgeline::testing::NamedCase& c : ridgeline::testing::RandomKernelCases(20261121).of_every_op(12)) {
    Seconds now;
    try {
      now = time_on(gpu_, c.kernel, software_);
    } catch (const std::invalid_argument&) {
      continue;  // an attention kernel that this GPU does not have
    }
    for (const Resource resource : kResources)
      for (const double factor : {1.1, 2.0}) {
        const Seconds then = time_on(with_more(gpu_, resource, factor), c.kernel, software_);
        ++compared;
        if (then.value() <= now.value() * kLeastSlower) continue;
        ++slower;
        std::cout << then.value() / now.value() << ": " << factor << " x " << name_of(resource) << " " << c.text
                  << "\n";
        EXPECT_LE(then.value(), now.value() * kWorstKnown) << factor << " x " << name_of(resource) << " " << c.text;
      }
  }
  EXPECT_GT(compared, 8000);
  EXPECT_LE(slower, kShareSlower * compared);
}

TEST_P(EveryGpu, no_better_number_makes_a_product_slower) {
  const std::uint64_t seed = seed_of_run();
  std::mt19937_64 random(seed);
  ridgeline::testing::RandomKernelCases cases(seed);
  const std::vector<Key> keys = keys_of_products();
  int compared = 0, slower = 0;
  for (int i = 0; i < 60; ++i) {
    const nlohmann::json line = cases.one(std::array{"mm", "addmm", "bmm"}[i % 3]);
    const KernelCase kernel = kernel_case_from(line);
    const Seconds now = time_on(gpu_, kernel, software_);
    for (const Key& key : keys) {
      Gpu better = gpu_;
      const double factor = std::exp2(std::uniform_real_distribution<double>(0.07, 2.0)(random));
      key.improve(better, factor);
      ++compared;
      if (time_on(better, kernel, software_).value() <= now.value() * kLeastSlower) continue;
      ++slower;
      std::cout << "seed " << seed << ": " << factor << " x " << key.name << " " << line.dump() << "\n";
    }
  }
  EXPECT_LE(slower, kShareOfProducts * compared);
}

TEST_P(EveryGpu, a_product_falls_along_every_axis_without_a_jump) {
  constexpr int kSteps = 20;
  constexpr double kStep = 1.05, kMostJump = 1.1;
  const std::uint64_t seed = seed_of_run();
  ridgeline::testing::RandomKernelCases cases(seed + 1);
  const std::vector<Key> keys = keys_of_products();
  int compared = 0, slower = 0, jumps = 0;
  for (int i = 0; i < 9; ++i) {
    const nlohmann::json line = cases.one(std::array{"mm", "addmm", "bmm"}[i % 3]);
    const KernelCase kernel = kernel_case_from(line);
    for (const Key& key : keys) {
      double before = 0.0;
      for (int step = 0; step < kSteps; ++step) {
        Gpu gpu = gpu_;
        key.improve(gpu, 0.6 * std::pow(kStep, step));
        double now = 0.0;
        try {
          now = time_on(gpu, kernel, software_).value();
        } catch (const std::invalid_argument& error) {
          FAIL() << "seed " << seed << ": " << key.name << " step " << step << line.dump() << ": " << error.what();
        }
        if (before > 0.0) {
          ++compared;
          const bool is_slower = now > before * kLeastSlower, jumped = !key.whole && now * kMostJump < before;
          slower += is_slower;
          jumps += jumped;
          if (is_slower || jumped)
            std::cout << "seed " << seed << ": " << key.name << " step " << step << ": " << now / before << line.dump()
                      << "\n";
        }
        before = now;
      }
    }
  }
  EXPECT_LE(slower, kShareOfProducts * compared);
  EXPECT_LE(jumps, kShareOfJumps * compared) << "one more block on an SM";
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
  for (const ridgeline::testing::NamedCase& c : ridgeline::testing::RandomKernelCases(20261122).of_every_op(40)) {
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
