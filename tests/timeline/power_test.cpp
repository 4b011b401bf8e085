#include "sim/timeline/power.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/timeline/timeline.h"
#include "sim/timing/clock_law.h"
#include "tests/support/draws.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::changing_seed;
using testing_support::Draws;
using testing_support::ProgramBuilder;
using testing_support::round_gpu;
using testing_support::round_host;

const Gpu& h200() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}

/// 1 ms: `tflops` averaged over it, done in `tensor_share` of it, `dram` bytes a second in the rest.
struct Step {
  ProgramBuilder builder;
  std::vector<KernelTime> times;
  Step(double tflops, double tensor_share, double dram = 0.0) {
    builder.begin_step().kernel(1000 * tensor_share, tflops * 1e12 * 1e-3).kernel(1000 * (1 - tensor_share)).end_step();
    times = builder.times();
    times[0].clocked = times[0].time;
    times[1].dram_read_bytes = dram * 1e-3;
  }
  struct Settled {
    Hertz clock;
    Seconds step, tensor;
    Watts power;
  };
  [[nodiscard]] Settled settle(const Gpu& gpu) const {
    const StepLoad load(builder.program(), times, gpu);
    const auto step = [&](Hertz f) { return load.duration(0, f) + load.duration(1, f); };
    const Hertz clock = load.settle(step);
    return {clock, step(clock), load.duration(0, clock), load.power(clock, step(clock))};
  }
  [[nodiscard]] double slowdown(const Gpu& gpu) const { return ratio(settle(gpu).tensor, times[0].time); }
};

TEST(Power, back_to_back_products_settle_at_the_rate_that_was_measured) {
  // 783 TFLOP/s for the first 30 ms, 656 from then on; on another board 794 and 676.
  EXPECT_NEAR(Step(783, 1.0).slowdown(h200()), 783.0 / 656.0, 0.015);
  EXPECT_NEAR(Step(794, 1.0).slowdown(h200()), 794.0 / 676.0, 0.05);
}

/// Loads of measurements/h200/power: kernels that take part of the time, gaps for the rest.
std::vector<nlohmann::json> sustained_loads() {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/measurements/h200/power/sustained_loads.jsonl");
  std::vector<nlohmann::json> loads;
  for (std::string line; std::getline(file, line);)
    if (auto load = nlohmann::json::parse(line); load["what"] == "load") loads.push_back(std::move(load));
  return loads;
}

struct LoadResult {
  std::string label;
  double duty, rate, watts;  ///< rate and watts: predicted over measured
};
/// With the time of a kernel at full clock as measured at the lowest duty of its kind.
std::vector<LoadResult> results_of(std::string_view kind, Pipe pipe, DType type) {
  std::vector<LoadResult> out;
  const auto loads = sustained_loads();
  double full = 1.0;
  for (const auto& load : loads)
    if (load["label"] == kind) full = std::min(full, load["kernel_s_mean"].get<double>());
  for (const auto& load : loads) {
    if (load["label"] != kind) continue;
    const Gpu& gpu = h200();
    const double kernel = load["kernel_s_mean"], duty = load["duty"];
    const Seconds gap{kernel * (1.0 / duty - 1.0)}, time{full};
    const bool products = load["flops"] > 0.0;
    const WorkEnergy energy = work_energy(gpu, pipe, type, load["flops"], load["bytes"]);
    // The same law as of a kernel alone, with the gap as a part that no clock changes.
    Hertz clock = top_clock(gpu);
    const auto of = [&](Hertz f) { return time_at(time, products ? time : Seconds{}, own_clock(gpu, pipe), f) + gap; };
    const auto power = [&](Hertz f) { return idle_power(gpu, f) + energy.at(voltage(gpu, f)) / of(f); };
    for (Hertz low = gpu.clock.lowest, high = clock; power(clock) > gpu.power.limit && (high - low) > Hertz{1e3};) {
      const Hertz middle = 0.5 * (low + high);
      (power(middle) > gpu.power.limit ? high : low) = middle;
      if (high - low <= Hertz{1e3}) clock = low;
    }
    out.push_back(
        {load["label"], duty, kernel / (of(clock) - gap).value(), power(clock).value() / load["w"].get<double>()});
  }
  return out;
}

void expect_near(const std::vector<LoadResult>& results, std::size_t count, double rate, double watts) {
  EXPECT_EQ(results.size(), count);
  for (const LoadResult& r : results) {
    EXPECT_NEAR(r.rate, 1.0, rate) << r.label << " busy " << r.duty;
    EXPECT_NEAR(r.watts, 1.0, watts) << r.label << " busy " << r.duty;
  }
}

TEST(Power, loads_of_falling_duty_run_and_draw_as_measured) {
  // The voltage curve and the energy were chosen on bf16; watts scatter by 3 % about the limit.
  expect_near(results_of("bf16 8192 random", Pipe::tensor_wgmma, DType::bf16), 10, 0.035, 0.10);
  expect_near(results_of("fp16 8192 random", Pipe::tensor_wgmma, DType::fp16), 5, 0.035, 0.10);
  expect_near(results_of("tf32 8192 random", Pipe::tensor_wgmma, DType::tf32), 5, 0.035, 0.10);
  expect_near(results_of("fp32 4096 random", Pipe::fp32, DType::fp32), 5, 0.01, 0.08);
  expect_near(results_of("copy 1024 MiB", Pipe::none, DType::fp32), 2, 0.01, 0.05);
  expect_near(results_of("sum 1024 MiB", Pipe::none, DType::fp32), 1, 0.01, 0.05);
}

TEST(Power, a_step_just_under_the_limit_is_not_slowed_and_one_just_over_it_is) {
  // 100 W idle, 1 pJ a FLOP, limit 500 W.
  EXPECT_DOUBLE_EQ(Step(399, 1.0).slowdown(round_gpu()), 1.0);
  EXPECT_GT(Step(401, 1.0).slowdown(round_gpu()), 1.0);
}

TEST(Power, a_slowed_step_draws_the_limit) {
  for (const double tflops : {500.0, 600.0, 700.0, 900.0})
    EXPECT_NEAR(Step(tflops, 0.9, 1.2e12).settle(h200()).power.value(), 700.0, 0.05) << tflops;
}

// The time alone is worked out without the spans that the timeline is made of.
TEST(Power, the_time_of_a_step_is_that_of_its_timeline_with_and_without_a_limit) {
  const Host host = round_host();
  int slowed = 0;
  for (const double tflops : {100.0, 600.0, 700.0, 800.0, 900.0})
    for (const bool graphs : {false, true}) {
      const Step step(tflops, 0.95);
      const StepProgram& program = step.builder.program();
      const StepLoad load(program, step.times, h200());
      const TimelineOptions options{.cuda_graphs = graphs};
      const Timeline line = run_timeline(program, load, h200(), host, options);
      EXPECT_EQ(time_of_step(program, load, h200(), host, options), line.step);
      slowed += line.settled < top_clock(h200());
      // The last kernel of a step ends with it.
      ASSERT_EQ(line.kernels.size(), 2u);
      EXPECT_NEAR(line.kernels.back().end.value(), line.step.value(), 1e-12);
      EXPECT_NEAR((line.kernels[0].end - line.kernels[0].start).value(), load.duration(0, line.settled).value(), 1e-12);
    }
  EXPECT_GT(slowed, 0);
  EXPECT_LT(slowed, 10);
}

TEST(Power, more_work_in_the_same_time_never_slows_less) {
  double last = 1.0;
  for (double tflops = 100; tflops < 900; tflops += 20) {
    const double slowdown = Step(tflops, 0.9).slowdown(h200());
    EXPECT_GE(slowdown, last);
    last = slowdown;
  }
}

TEST(Power, what_no_clock_can_make_good_ends_at_the_lowest) {
  const Step step(1, 0.1, 1e14);
  EXPECT_DOUBLE_EQ(step.settle(h200()).clock.value(), h200().clock.lowest.value());
  EXPECT_NEAR(step.slowdown(h200()), ratio(h200().clock.tensor, h200().clock.lowest), 1e-9);
}

TEST(Power, a_limit_that_falls_lengthens_the_step_steadily_down_to_the_lowest_clock) {
  Gpu gpu = h200();
  const Step step(500, 0.8, 1e12);
  double last = 0.0;
  for (double watts = 1200; watts > 125; watts *= 0.98) {
    gpu.power.limit = Watts(watts);
    const double time = step.settle(gpu).step.value();
    if (last > 0.0 && watts > 200) {
      EXPECT_GE(time, last * (1.0 - 1e-5)) << watts;
      EXPECT_LE(time, last * 1.10) << watts;
    }
    last = time;
  }
}

/// A step of random kernels on a chip that is faster by `rate` and moves bytes faster by `dram`.
struct RandomStep {
  Gpu gpu;
  ProgramBuilder builder;
  std::vector<double> flops, math, bytes, memory;

  explicit RandomStep(Draws& draw) {
    static const std::vector<Gpu> gpus = [] {
      std::vector<Gpu> all;
      for (const std::string& name : hardware_names()) all.push_back(load_gpu(name));
      return all;
    }();
    gpu = gpus[draw.index(gpus.size())];
    gpu.power.limit = gpu.power.idle * draw.between(1.05, 8.0);
    builder.begin_step();
    for (std::size_t i = 0, n = 2 + draw.index(12); i < n; ++i) {
      const bool tensor = draw.share() < 0.6;
      const double seconds = draw.between(2e-6, 3e-3);
      math.push_back(seconds * (tensor ? 1.0 : 0.3));
      memory.push_back(seconds * draw.between(0.1, 3.0));
      flops.push_back(tensor ? seconds * draw.between(0.1, 1.0) * 2.0 * gpu.sm.count * gpu.sm.rates.tensor_fp16 *
                                   gpu.clock.tensor.value()
                             : 0.0);
      bytes.push_back(memory.back() * gpu.dram.bandwidth.value() * draw.share());
      builder.host(HostClass::pointwise).kernel(seconds * 1e6, flops.back());
    }
    builder.end_step();
  }
  [[nodiscard]] Seconds step(const Gpu& chip, double rate, double dram, double host_speed) const {
    std::vector<KernelTime> times = builder.times();
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double m = math[i] / rate, d = memory[i] / dram;
      times[i].clocked = Seconds{m};
      times[i].time = Seconds{std::sqrt(std::sqrt(m * m * m * m + d * d * d * d))};
      times[i].dram_read_bytes = bytes[i];
      limit_power(times[i], builder.program().launches[i], chip);
    }
    Host host = round_host();
    host.scale = 1.0 / host_speed;
    return run_timeline(builder.program(), times, chip, host, {}).step;
  }
};

TEST(Power, a_better_chip_never_makes_a_step_slower) {
  const std::uint64_t seed = changing_seed();
  RecordProperty("seed", std::to_string(seed));
  Draws draw(seed);
  int slowed = 0;
  for (int i = 0; i < 1500; ++i) {
    const RandomStep s(draw);
    const double now = s.step(s.gpu, 1.0, 1.0, 1.0).value();
    Gpu unlimited = s.gpu;
    unlimited.power.limit = 100.0 * s.gpu.power.limit;
    slowed += now > 1.001 * s.step(unlimited, 1.0, 1.0, 1.0).value();
    Gpu more = s.gpu;
    const double factor = draw.between(1.01, 4.0);
    more.power.limit = factor * s.gpu.power.limit;
    const auto expect = [&](const char* what, Seconds then) {
      ASSERT_LE(then.value(), now * (1.0 + 1e-4))
          << what << " by " << factor << ", step " << i << " of RIDGELINE_TEST_SEED=" << seed << " on " << s.gpu.name;
    };
    expect("limit", s.step(more, 1.0, 1.0, 1.0));
    expect("units", s.step(s.gpu, factor, 1.0, 1.0));
    expect("DRAM", s.step(s.gpu, 1.0, factor, 1.0));
    expect("host", s.step(s.gpu, 1.0, 1.0, factor));
    expect("all", s.step(more, factor, factor, factor));
  }
  EXPECT_GT(slowed, 150);
}

}  // namespace
}  // namespace ridgeline
