// Why a class of kernels takes longer or shorter: at most three phrases, what weighs most first.
#include "sim/report/text/comparison_words.h"

#include <gtest/gtest.h>

#include "tests/support/made_comparison.h"

namespace ridgeline {
namespace {

struct ComparisonWords : ::testing::Test {
  Session session;
  ComparedScenario before = made_side(session, "A"), after = made_side(session, "B");

  [[nodiscard]] std::string reason(const ClassWork& a, const ClassWork& b, bool work_first = true) const {
    return reason_for(made_difference(KernelClass::elementwise, a, b, work_first ? 2 : 1, work_first ? 1 : 2), before,
                      after);
  }
  [[nodiscard]] std::string waiting() const { return reason_for(made_difference({}, {}, {}, 0, 0), before, after); }
};

TEST_F(ComparisonWords, WorkThatCameOrWent) {
  const ClassWork none, some = [] {
    ClassWork work = made_work(1, 9, Limiter::dram);
    work.ops = {{"", 2}, {"aten::add", 2}, {"aten::mul", 3}, {"aten::sub", 1}, {"aten::div", 1}};
    return work;
  }();
  EXPECT_EQ(reason(some, none), "none any more");
  EXPECT_EQ(reason(none, some), "9 kernels: aten::mul, aten::add, aten::div …") << "most kernels first, then by name";
  ClassWork one = made_work(1, 1, Limiter::dram);
  one.ops = {{"aten::add", 1}};
  EXPECT_EQ(reason(none, one), "1 kernel: aten::add");
}

TEST_F(ComparisonWords, OperationsThatOnlyOneSideRuns) {
  ClassWork a = made_work(1, 5, Limiter::dram), b = a;
  a.ops = {{"aten::add", 5}}, b.ops = {{"aten::add", 4}, {"aten::mul", 1}};
  EXPECT_EQ(reason(a, b), "runs aten::mul besides");
  EXPECT_EQ(reason(b, a), "no more aten::mul");
  a.ops = {{"aten::sub", 5}};
  EXPECT_EQ(reason(a, b), "aten::add, aten::mul in place of aten::sub");
}

TEST_F(ComparisonWords, TheScoreMatrix) {
  ClassWork a = made_work(1, 5, Limiter::dram), b = a;
  b.score_bytes = 750e6;
  EXPECT_EQ(reason(a, b), "writes the score matrix (750 MB a step)");
  EXPECT_EQ(reason(b, a), "no longer writes the score matrix (750 MB a step)");
}

// 8 to 10 TFLOP are 25 % more, 10 to 8 are 20 % less, 2 to 5 are 2.5 times as much.
TEST_F(ComparisonWords, AmountsOfArithmeticAndBytes) {
  ClassWork a = made_work(10, 5, Limiter::latency), b = a;
  a.flops = 8e12, b.flops = 10e12;
  EXPECT_EQ(reason(a, b), "25 % more arithmetic");
  EXPECT_EQ(reason(b, a), "20 % less arithmetic");
  a.flops = 2e12, b.flops = 5e12;
  EXPECT_EQ(reason(a, b), "2.5 times as much arithmetic");
  a.flops = 100e12, b.flops = 101.9e12;
  EXPECT_EQ(reason(a, b), "") << "under 2 % is not worth a word";
  a.flops = b.flops = 0;
  a.bytes = 4e9, b.bytes = 5e9;
  EXPECT_EQ(reason(a, b), "moves 1 GB more (25 % more)");
  EXPECT_EQ(reason(b, a), "moves 1 GB less (20 % less)");
  b.bytes = 14e9;
  EXPECT_EQ(reason(a, b), "moves 3.5 times as much (14 GB)");
}

// 2 % of the larger: 100 and 102 differ by less, 100 and 102.1 by more.
TEST_F(ComparisonWords, ADifferenceCountsAgainstTheLargerOfTheTwo) {
  ClassWork a = made_work(10, 5, Limiter::latency), b = a;
  a.flops = 100e12;
  for (const double more : {102.01e12, 102.04e12}) {
    b.flops = more;
    EXPECT_EQ(reason(a, b), "") << more;
    EXPECT_EQ(reason(b, a), "") << more;
  }
  b.flops = 102.1e12;
  EXPECT_EQ(reason(a, b), "2 % more arithmetic");
  EXPECT_EQ(reason(b, a), "2 % less arithmetic");
}

// However little there is, it is more than nothing; and nothing cannot become a share more.
TEST_F(ComparisonWords, OneIsMoreThanNothing) {
  ClassWork a = made_work(10, 5, Limiter::latency), b = a;
  a.flops = 1, b.flops = 10;
  EXPECT_EQ(reason(a, b), "10.0 times as much arithmetic");
  a.flops = 0;
  EXPECT_EQ(reason(a, b), "");
  b.flops = 0;
  a.bytes = 1, b.bytes = 100e6;
  EXPECT_EQ(reason(b, a), "moves 100 MB less (100 % less)");
  EXPECT_EQ(reason(a, b), "moves 100000000.0 times as much (100 MB)");
  a.bytes = 0;
  EXPECT_EQ(reason(a, b), "");
  b.bytes = 0;
  a.score_bytes = 1;
  EXPECT_EQ(reason(a, b), "no longer writes the score matrix (1e-06 MB a step)");
  EXPECT_EQ(reason(b, a), "writes the score matrix (1e-06 MB a step)");
  b.score_bytes = 750e6;
  EXPECT_EQ(reason(a, b), "") << "both write one";
}

TEST_F(ComparisonWords, KernelsMoreOrFewer) {
  ClassWork a = made_work(10, 5, Limiter::dram), b = made_work(10, 6, Limiter::dram);
  EXPECT_EQ(reason(a, b), "1 kernel more");
  EXPECT_EQ(reason(b, a), "1 kernel fewer");
  b.kernels = 12;
  EXPECT_EQ(reason(a, b), "7 kernels more");
}

// What limited the longer of the two says which rate matters: 4 TFLOP in 2 and in 1 s, 6 GB in 3 and in 2 s.
TEST_F(ComparisonWords, TheRateIsThatOfWhatLimits) {
  ClassWork a = made_work(2000, 5, Limiter::compute), b = made_work(1000, 5, Limiter::compute);
  a.flops = b.flops = 4e12;
  EXPECT_EQ(reason(a, b), "4.00 TFLOP/s instead of 2.00 TFLOP/s");
  a = made_work(3000, 5, Limiter::dram), b = made_work(2000, 5, Limiter::dram);
  a.dram_bytes = b.dram_bytes = 6e9, a.bytes = b.bytes = 12e9;
  EXPECT_EQ(reason(a, b), "3.00 GB/s of DRAM instead of 2.00 GB/s");
  a = made_work(3000, 5, Limiter::l2), b = made_work(2000, 5, Limiter::l2);
  a.dram_bytes = b.dram_bytes = 6e9, a.bytes = b.bytes = 12e9;
  EXPECT_EQ(reason(a, b), "6.00 GB/s of memory instead of 4.00 GB/s");
  a = made_work(5, 5, Limiter::latency), b = made_work(10, 5, Limiter::latency);
  EXPECT_EQ(reason(a, b), "2.00 ms a kernel instead of 1.00 ms");
}

TEST_F(ComparisonWords, SharedMemoryAndPowerLimitArithmeticToo) {
  for (const Limiter limiter : {Limiter::compute, Limiter::shared_memory, Limiter::power}) {
    ClassWork a = made_work(2000, 5, limiter), b = made_work(1000, 5, limiter);
    a.flops = b.flops = 4e12, a.bytes = b.bytes = 8e9, a.dram_bytes = b.dram_bytes = 2e9;
    EXPECT_EQ(reason(a, b), "4.00 TFLOP/s instead of 2.00 TFLOP/s");
  }
  for (const Limiter limiter : {Limiter::latency, Limiter::launch, Limiter::link}) {
    ClassWork a = made_work(2000, 1, limiter), b = made_work(1000, 1, limiter);
    a.flops = b.flops = 4e12, a.bytes = b.bytes = 8e9, a.dram_bytes = b.dram_bytes = 2e9;
    EXPECT_EQ(reason(a, b), "1.00 s a kernel instead of 2.00 s");
  }
}

TEST_F(ComparisonWords, OfEqualTimesTheLimitOfTheFirstCounts) {
  ClassWork a = made_work(2000, 5, Limiter::dram), b = made_work(2000, 5, Limiter::latency);
  a.dram_bytes = 4e9, b.dram_bytes = 8e9;
  EXPECT_EQ(reason(a, b), "4.00 GB/s of DRAM instead of 2.00 GB/s; limited by latency, no longer by dram");
}

TEST_F(ComparisonWords, ARateThatWasNoneIsNotCompared) {
  ClassWork a = made_work(2000, 5, Limiter::dram), b = made_work(1000, 5, Limiter::dram);
  b.dram_bytes = 6e9;
  EXPECT_EQ(reason(a, b), "");
  a.dram_bytes = 2, b.dram_bytes = 2;
  EXPECT_EQ(reason(a, b), "2.00 B/s of DRAM instead of 1.00 B/s");
  a = made_work(2000, 5, Limiter::compute), b = made_work(1000, 5, Limiter::compute);
  b.flops = 4e12;
  EXPECT_EQ(reason(a, b), "");
}

// Without arithmetic nothing runs on either kind of cores; half of it is not most of it.
TEST_F(ComparisonWords, TensorCoresAreThoseThatDoMost) {
  ClassWork a = made_work(20, 5, Limiter::latency), b = a;
  a.flops = 10e12;
  EXPECT_EQ(reason(a, b), "100 % less arithmetic");
  EXPECT_EQ(reason(b, a), "");
  b.flops = 10e12, b.tensor_flops = 5e12;
  EXPECT_EQ(reason(a, b), "");
  b.tensor_flops = 5.1e12;
  EXPECT_EQ(reason(a, b), "on tensor cores");
  EXPECT_EQ(reason(b, a), "on CUDA cores, no longer on tensor cores");
  a.tensor_flops = 5e12;
  EXPECT_EQ(reason(a, b), "");
  EXPECT_EQ(reason(b, a), "");
}

TEST_F(ComparisonWords, TensorCoresAndAnotherLimit) {
  ClassWork a = made_work(20, 5, Limiter::compute), b = made_work(20, 5, Limiter::l2);
  a.flops = b.flops = 10e12, a.tensor_flops = 1e12, b.tensor_flops = 9e12;
  EXPECT_EQ(reason(a, b), "on tensor cores; limited by l2, no longer by compute");
  EXPECT_EQ(reason(b, a), "on CUDA cores, no longer on tensor cores; limited by compute, no longer by l2");
}

// Three phrases of five: those of the work first where it moves more time than the rate.
TEST_F(ComparisonWords, WhatWeighsMostComesFirst) {
  ClassWork a = made_work(2000, 5, Limiter::compute), b = made_work(1000, 6, Limiter::compute);
  a.flops = 4e12, b.flops = 5e12, a.bytes = 4e9, b.bytes = 5e9;
  b.tensor_flops = 5e12;
  EXPECT_EQ(reason(a, b), "25 % more arithmetic; moves 1 GB more (25 % more); 1 kernel more");
  EXPECT_EQ(reason(a, b, false), "on tensor cores; 5.00 TFLOP/s instead of 2.00 TFLOP/s; 25 % more arithmetic");
  for (const double both : {3.0, -3.0})
    EXPECT_EQ(reason_for(made_difference(KernelClass::elementwise, a, b, 3, both), before, after),
              "25 % more arithmetic; moves 1 GB more (25 % more); 1 kernel more")
        << "of equal weight the work comes first";
}

TEST_F(ComparisonWords, WhyTheGpuWaits) {
  StepPrediction &a = before.prediction.step, &b = after.prediction.step;
  EXPECT_EQ(waiting(), "") << "120 ms of host for 180 ms of kernels on both sides";
  b.host_time = made_ms(300), b.gpu_busy = made_ms(170), b.kernel_count = 1001;
  EXPECT_EQ(waiting(), "the host needs 300 ms for 170 ms of kernels; 1001 kernels to launch instead of 1000");
  std::swap(a, b);
  b.kernel_count = 1001;
  EXPECT_EQ(waiting(), "the host keeps ahead: 120 ms for 180 ms of kernels");
  Scenario graphed;
  graphed.cuda_graphs = true;
  after.run = made_side(session, "", graphed).run;
  a.host_time = made_ms(100);
  EXPECT_EQ(waiting(), "the step is one CUDA graph");
  std::swap(before.run, after.run);
  EXPECT_EQ(waiting(), "no CUDA graph: every kernel is launched");
}

TEST(ClassWords, AreThoseOfATable) {
  const auto words_of = [](std::optional<KernelClass> kernel_class) {
    return class_words(made_difference(kernel_class, {}, {}, 0, 0));
  };
  EXPECT_EQ(words_of({}), "GPU waits");
  EXPECT_EQ(words_of(KernelClass::elementwise), "element-wise, sums");
  EXPECT_EQ(words_of(KernelClass::optimizer), "optimizer, clipping");
  EXPECT_EQ(words_of(KernelClass::matrix_products), "matrix products");
}

}  // namespace
}  // namespace ridgeline
