// What kernels find in the caches and push out of the L2, against their launches, their times and the L2 played again.
#include "sim/answer/kernel_caches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/timing/l2_residency.h"
#include "sim/timing/memory_bound/rereads.h"

namespace ridgeline {
namespace {

std::shared_ptr<const StepRun> step(const char* engine) {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-t4, model: bert-base, training: {micro_batch: 2, sequence_length: 64, precision: amp-fp16, "
      "optimizer: adamw}}";
  source.text_name = "test";
  static Session session;
  return std::make_shared<const StepRun>(session, load_scenario(source), engine);
}

class Caches : public ::testing::TestWithParam<const char*> {};

TEST_P(Caches, operands_add_up_to_what_the_kernel_moves) {
  const auto run = step(GetParam());
  std::vector<const Action*> launches;
  for (const Action& action : run->program().steady_step())
    if (action.kind == Action::Kind::launch) launches.push_back(&action);
  int again = 0, warm = 0;
  for (std::size_t i = 0; i < launches.size(); i += 7) {
    const KernelCaches caches = kernel_caches(*run, i);
    const KernelLaunch& launch = run->program().launches[launches[i]->index];
    const KernelTime& time = run->times()[i];
    SCOPED_TRACE(launch.name + " " + std::to_string(i));
    ASSERT_EQ(caches.operands.size(), launch.reads.size() + launch.writes.size());
    double read = 0.0, written = 0.0, cold = 0.0, distinct = 0.0;
    for (std::size_t k = 0; k < caches.operands.size(); ++k) {
      const KernelCaches::Operand& operand = caches.operands[k];
      const bool writes = k >= launch.reads.size();
      const Access& access = writes ? launch.writes[k - launch.reads.size()] : launch.reads[k];
      EXPECT_EQ(operand.written, writes);
      EXPECT_EQ(operand.bytes, access.bytes);
      EXPECT_GE(operand.requested, std::max(access.bytes, access.requested) * (1.0 - 1e-12));
      EXPECT_GE(operand.loaded, operand.requested * (1.0 - 1e-12));
      EXPECT_GE(operand.resident, 0.0);
      EXPECT_LE(operand.resident, 1.0);
      EXPECT_GE(operand.dram, 0.0);
      (writes ? written : read) += operand.dram;
      if (!writes) cold += operand.bytes * (1.0 - operand.resident), distinct += operand.bytes;
      warm += operand.resident > 0.5 ? 1 : 0;
    }
    if (!launch.reads.empty()) {
      EXPECT_NEAR(read, time.dram_read_bytes, 1e-6 * time.dram_read_bytes + 1e-6);
    }
    if (!launch.writes.empty()) {
      EXPECT_NEAR(written, time.dram_write_bytes, 1e-6 * time.dram_write_bytes + 1e-6);
    }
    // An operand's first bytes come in proportion to what of it is not there; more than those is read again.
    for (std::size_t k = 0; k < launch.reads.size(); ++k) {
      const KernelCaches::Operand& operand = caches.operands[k];
      const double first =
          cold > 0.0 ? std::min(cold, time.dram_read_bytes) * operand.bytes * (1.0 - operand.resident) / cold : 0.0;
      EXPECT_GE(operand.dram, first * (1.0 - 1e-9) - 1e-6);
      if (time.dram_read_bytes <= cold) {
        EXPECT_NEAR(operand.dram, first, 1e-6 * first + 1e-6);
      } else {
        ++again;
      }
    }
    if (const auto* work = std::get_if<MemoryBoundWork>(&launch.work); work && work->reread_bytes > 0.0) {
      double loaded = 0.0, requested = 0.0, plain_loaded = 0.0, plain_requested = 0.0;
      for (std::size_t k = 0; k < launch.reads.size(); ++k) {
        const Access& access = launch.reads[k];
        const double asked = std::max(access.bytes, access.requested);
        loaded += caches.operands[k].loaded, requested += caches.operands[k].requested;
        plain_requested += asked, plain_loaded += std::max(asked, access.loaded);
      }
      EXPECT_NEAR(loaded - plain_loaded, work->reread_bytes, 1e-6 * work->reread_bytes);
      const double lost = l1_miss_again(launch, *work, run->scenario().gpu.sm);
      EXPECT_NEAR(requested - plain_requested, work->reread_bytes * lost, 1e-6 * work->reread_bytes);
    }
  }
  EXPECT_GT(warm, 20);
}

/// The L2 that the page's law has, played from the start to the launch and past it.
TEST(EvictedTensors, what_is_gone_is_what_the_l2_held_before_and_not_after) {
  const auto run = step("analytic");
  const StepProgram& program = run->program();
  const auto steady = program.steady_step();
  std::vector<const Action*> launches, all;
  for (const Action& action : program.actions) {
    if (action.kind == Action::Kind::launch && &action < steady.data() + steady.size()) all.push_back(&action);
    if (&action == steady.data() + steady.size()) break;
  }
  for (const Action& action : steady)
    if (action.kind == Action::Kind::launch) launches.push_back(&action);
  for (const std::size_t at : {std::size_t{40}, launches.size() / 2, launches.size() - 30}) {
    L2Residency l2(run->scenario().gpu.l2);
    std::vector<double> shares;
    std::map<StorageId, std::pair<double, double>> held;  // bytes before and after
    for (const Action* action : all) {
      const bool here = action == launches[at];
      if (here)
        for (const auto& one : l2.held()) held[one.storage].first += one.share * one.bytes;
      l2.visit(program.launches[action->index], program.operands_of(action->call), shares);
      if (!here) continue;
      for (const auto& one : l2.held()) held[one.storage].second += one.share * one.bytes;
      break;
    }
    double before = 0.0, after = 0.0, gone = 0.0, most = 0.0;
    for (const auto& [storage, bytes] : held) {
      before += bytes.first, after += bytes.second;
      gone += std::max(0.0, bytes.first - bytes.second);
      most = std::max(most, bytes.first - bytes.second);
    }
    const KernelCaches caches = kernel_caches(*run, at);
    EXPECT_NEAR(caches.held_before, before, 1e-6 * before);
    EXPECT_NEAR(caches.held_after, after, 1e-6 * after);
    EXPECT_NEAR(caches.evicted_bytes, gone, 1e-6 * gone + 1.0);
    EXPECT_LE(caches.evicted.size(), 20u);
    double listed = 0.0, last = 1e300;
    for (const KernelCaches::Evicted& one : caches.evicted) {
      EXPECT_LE(one.gone, last) << "most first";
      EXPECT_LE(one.gone, one.bytes * (1.0 + 1e-9));
      EXPECT_FALSE(one.op.empty());
      EXPECT_LE(one.kernels_to_next, static_cast<std::int64_t>(launches.size() - at));
      listed += one.gone, last = one.gone;
    }
    EXPECT_LE(listed, caches.evicted_bytes * (1.0 + 1e-9));
    if (!caches.evicted.empty()) {
      EXPECT_NEAR(caches.evicted[0].gone, most, 1e-6 * most);
    }
    if (caches.evicted.size() < 20) {
      EXPECT_NEAR(listed, caches.evicted_bytes, 1e-6 * listed + 1.0);
    }
  }
  EXPECT_TRUE(kernel_caches(*run, 1u << 30).operands.empty());
}

INSTANTIATE_TEST_SUITE_P(Engines, Caches, ::testing::Values("analytic", "simulate"));

}  // namespace
}  // namespace ridgeline
