// The programs behind counters_chain.jsonl, run on a simulated memory hierarchy: kernels one after the other on named
// tensors, after 512 MiB of something else were written.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/kernel_time.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline::testing {

class SimulatedChain {
 public:
  SimulatedChain(const TimingEngine& engine, const Gpu& gpu) : gpu_(gpu), run_(engine.start_run()) {
    launch(R"({"op":"fill","dtype":"bf16","params":{"elements":268435456}})", {1000});
    times.clear();
  }
  /// Runs an op on storages: its inputs, then its outputs. Memsets are not among the counted kernels.
  void launch(const std::string& kernel_case, const std::vector<std::uint32_t>& storages) {
    const KernelCase kernel = kernel_case_from(nlohmann::json::parse(kernel_case));
    const LoweredOp lowered = lower(kernel.op, gpu_, software_);
    std::vector<Operand> operands;
    for (const std::uint32_t storage : storages) operands.push_back({storage, 0});
    for (const KernelLaunch& launch : lowered.launches) {
      const KernelTime time = run_->next(launch, operands);
      if (!std::holds_alternative<FixedWork>(launch.work)) times.push_back(time);
    }
  }
  std::vector<KernelTime> times;

 private:
  const Gpu& gpu_;
  Software software_ = load_software("pytorch-2.11");
  std::unique_ptr<TimingRun> run_;
};

/// A row of counters_chain.jsonl as its kernels' simulated times; empty for a program that is not known.
inline std::vector<KernelTime> simulated_chain(const nlohmann::json& row, const TimingEngine& engine, const Gpu& gpu) {
  SimulatedChain chain(engine, gpu);
  const std::string op = row["op"];
  const auto& p = row["params"];
  const auto sized = [](const char* name, std::int64_t rows, std::int64_t cols) {
    return nlohmann::json{{"op", name}, {"dtype", "bf16"}, {"params", {{"rows", rows}, {"cols", cols}}}}.dump();
  };
  if (op == "mlp_block") {
    const std::int64_t t = p["tokens"], h = p["hidden"];
    const auto product = [&](std::int64_t n, std::int64_t k) {
      return nlohmann::json{{"op", "addmm"}, {"dtype", "bf16"}, {"params", {{"m", t}, {"n", n}, {"k", k}}}}.dump();
    };
    enum : std::uint32_t { x, gamma, beta, normed, mean, rstd, w1, b1, y, w2, b2, z, g, out };
    chain.launch(sized("layer_norm", t, h), {x, gamma, beta, normed, mean, rstd});
    chain.launch(product(4 * h, h), {normed, w1, b1, y});
    chain.launch(sized("gelu", t, 4 * h), {y, z});
    chain.launch(product(h, 4 * h), {z, w2, b2, g});
    chain.launch(sized("add", t, h), {g, x, out});
    return chain.times;
  }
  const std::int64_t elements = p["mib"].get<std::int64_t>() << 19;
  if (op == "reread") {
    const std::string sum =
        nlohmann::json{{"op", "sum_all"}, {"dtype", "bf16"}, {"params", {{"elements", elements}}}}.dump();
    for (std::uint32_t i = 0; i < 3; ++i) chain.launch(sum, {0, 1 + i});
    return chain.times;
  }
  if (op != "chain_add_gelu_scale") return {};
  // The result of the addition is free again when the last kernel asks for as much memory.
  chain.launch(sized("add", elements >> 10, 1024), {0, 1, 2});
  chain.launch(sized("gelu", elements >> 10, 1024), {2, 3});
  chain.launch(nlohmann::json{{"op", "scale"}, {"dtype", "bf16"}, {"params", {{"elements", elements}}}}.dump(), {3, 2});
  return chain.times;
}

/// |simulated / counted - 1| of the bytes from and to the DRAM, a kernel of all chains each; a chain whose launches are
/// not the recorded ones fails the test.
inline std::vector<double> chain_traffic_errors(const std::vector<nlohmann::json>& rows, const TimingEngine& engine,
                                                const Gpu& gpu) {
  std::vector<double> errors;
  for (const auto& row : rows) {
    const std::vector<KernelTime> times = simulated_chain(row, engine, gpu);
    EXPECT_EQ(times.size(), row["kernels"].size()) << row["op"] << row["params"];
    for (std::size_t i = 0; i < std::min(times.size(), row["kernels"].size()); ++i) {
      const auto& kernel = row["kernels"][i];
      const double counted =
          kernel["dram__bytes_read.sum"].get<double>() + kernel["dram__bytes_write.sum"].get<double>();
      errors.push_back(std::abs((times[i].dram_read_bytes + times[i].dram_write_bytes) / counted - 1.0));
    }
  }
  return errors;
}

}  // namespace ridgeline::testing
