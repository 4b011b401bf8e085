// The engine as a whole: deterministic on any number of threads, in agreement with the analytic law where both see the
// same traffic, sensitive to its caches.
#include "sim/hierarchy/simulate_engine.h"

#include <gtest/gtest.h>

#include <future>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/study/kernel_prediction.h"
#include "sim/timing/kernel_profile.h"
#include "sim/units/user_error.h"

#include <nlohmann/json.hpp>

namespace ridgeline {
namespace {

const char* const kCases[] = {
    R"({"op":"mm","dtype":"bf16","params":{"m":4096,"n":4096,"k":1024,"layout":"nt"}})",
    R"({"op":"bmm","dtype":"fp16","params":{"b":64,"m":512,"n":512,"k":64,"layout":"nt"},"input_sets":3})",
    R"({"op":"softmax","dtype":"fp32","params":{"rows":32768,"cols":512},"input_sets":2})",
    R"({"op":"log_softmax","dtype":"fp32","params":{"rows":2048,"cols":50304}})",
    R"({"op":"flash_attention_backward","dtype":"bf16","params":{"batch":4,"heads":12,"seq":1024,"head_dim":64,"causal":true}})",
    R"({"op":"foreach_add","dtype":"fp32","params":{"tensors":16,"elements":65536},"input_sets":10})"};

class Simulate : public ::testing::Test {
 protected:
  KernelPrediction predict(const char* text, const Gpu& gpu, const char* engine = "simulate") const {
    return predict_kernel(kernel_case_from(nlohmann::json::parse(text)), gpu, software_, *make_engine(engine, gpu));
  }
  Gpu gpu_ = load_gpu("nvidia-h200-sxm-141gb");
  Software software_ = load_software("pytorch-2.11");
};

TEST_F(Simulate, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const char* text : kCases) {
    const KernelPrediction alone = predict(text, gpu_);
    std::vector<std::future<KernelPrediction>> together;
    for (int i = 0; i < 4; ++i) together.push_back(std::async(std::launch::async, [&] { return predict(text, gpu_); }));
    for (auto& other : together) {
      const KernelPrediction p = other.get();
      EXPECT_EQ(p.time.value(), alone.time.value());
      EXPECT_EQ(p.dram_read_bytes, alone.dram_read_bytes);
      EXPECT_EQ(p.dram_write_bytes, alone.dram_write_bytes);
      EXPECT_EQ(p.l2_hit_rate, alone.l2_hit_rate);
    }
  }
}

TEST_F(Simulate, AgreesWithTheLawWhereNothingIsReadTwice) {
  for (
      const char* text :
      {R"({"op":"add","dtype":"bf16","params":{"rows":16384,"cols":4096}})",
       R"({"op":"mm","dtype":"bf16","params":{"m":2048,"n":1024,"k":1024,"layout":"nt"}})",
       R"({"op":"flash_attention","dtype":"bf16","params":{"batch":4,"heads":16,"seq":512,"head_dim":64,"causal":false}})"}) {
    const KernelPrediction simulated = predict(text, gpu_), analytic = predict(text, gpu_, "analytic");
    EXPECT_NEAR(simulated.time.value() / analytic.time.value(), 1.0, 0.05) << text;
    EXPECT_NEAR(simulated.dram_read_bytes / analytic.dram_read_bytes, 1.0, 0.01) << text;
  }
}

TEST_F(Simulate, NoL2IsSlowerAndTwiceTheL2IsNot) {
  Gpu none = gpu_, twice = gpu_;
  none.l2.replacement = L2Replacement::none;
  twice.l2.capacity = gpu_.l2.capacity * 2.0;
  for (const char* text : {kCases[0], kCases[1]}) {
    const double base = predict(text, gpu_).time.value();
    EXPECT_GT(predict(text, none).time.value(), base) << text;
    EXPECT_LE(predict(text, twice).time.value(), 1.01 * base) << text;  // what is left to read is read earlier
  }
}

TEST_F(Simulate, MoreSharedMemoryHoldsMoreBlocks) {
  Gpu less = gpu_;
  less.sm.shared_per_sm = Bytes{100 * kKiB};
  less.sm.shared_per_block = Bytes{99 * kKiB};
  const char* const text =
      R"({"op":"flash_attention","dtype":"bf16","params":{"batch":16,"heads":12,"seq":1024,"head_dim":64,"causal":false}})";
  const auto occupancy = [](const KernelPrediction& p) { return p.times[p.longest].occupancy; };
  EXPECT_GE(occupancy(predict(text, gpu_)), occupancy(predict(text, less)));
}

TEST_F(Simulate, AWarmL2GivesTheSharesItIsFilledTo) {
  const SimulateEngine engine(gpu_);
  const KernelPrediction cold = predict(R"({"op":"add","dtype":"bf16","params":{"rows":2048,"cols":1024}})", gpu_);
  const double shares[] = {1.0, 0.5, 0.0};
  const KernelTime half_warm = engine.time(cold.launches[0], shares);
  EXPECT_NEAR(half_warm.dram_read_bytes / cold.dram_read_bytes, 0.25, 0.02);
  EXPECT_LT(half_warm.time, cold.time);
}

TEST_F(Simulate, WhatTheBoardsPowerHoldsBackIsNotSlowerAtAHigherClock) {
  const char* const product = R"({"op":"mm","dtype":"fp32","params":{"m":1024,"n":50257,"k":512,"layout":"nt"}})";
  Gpu gpu = load_gpu("nvidia-t4");
  const double now = predict(product, gpu).time.value();
  for (const double factor : {1.05, 1.5, 3.0}) {
    Gpu faster = gpu;
    faster.clock.sustained = gpu.clock.sustained * factor;
    EXPECT_LE(predict(product, faster).time.value(), 1.001 * now) << factor;
  }
}

TEST_F(Simulate, AnUnknownEngineIsNamedWithItsNearestName) {
  try {
    make_engine("simulat", gpu_);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean simulate?"), std::string::npos);
  }
}

}  // namespace
}  // namespace ridgeline
