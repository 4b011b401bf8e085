// Backends of scaled_dot_product_attention on an H200, chosen and timed (h200/attention_backends.jsonl.gz).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/attention/attention_choice.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/l2_residency.h"
#include "tests/support/measurement_index.h"

namespace ridgeline::attention_backends_test {
namespace {

using nlohmann::json;

Attention call_of(const json& params) {
  Attention op;
  op.type = *dtype_from(params["dtype"].get<std::string>());
  op.batch = params["batch"], op.heads = params["heads"];
  op.kv_heads = params["grouped"] == "copied" ? op.heads : params["kv_heads"].get<std::int64_t>();
  op.seq_q = params["seq_q"], op.seq_k = params["seq_k"], op.head_dim = params["head_dim"];
  op.causal = params["causal"], op.dropout = params["dropout"] > 0.0, op.bias = params["mask"] != "";
  op.head_major = params["layout"] == "by_head";
  return op;
}
bool is_learned(const json& params) { return params["mask"].get<std::string>().starts_with("learned"); }
const std::vector<json>& rows() {
  static const std::vector<json> all = [] {
    std::vector<json> read;
    for (const MeasuredFile* file : testing::measurements().of_kind("attention-backends"))
      for_each_row(*file, [&](const json& row) { read.push_back(row); });
    return read;
  }();
  return all;
}
const char* word_of(AttentionBackend backend) {
  return backend == AttentionBackend::cudnn       ? "cudnn"
         : backend == AttentionBackend::flash     ? "flash"
         : backend == AttentionBackend::efficient ? "efficient"
                                                  : "math";
}

TEST(AttentionBackends, the_one_that_ran_is_chosen) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software = load_software("pytorch-2.11");
  ASSERT_GE(rows().size(), 40u);
  for (const json& row : rows()) {
    if (is_learned(row["params"])) continue;  // choose_backend is of masks without a gradient
    EXPECT_EQ(word_of(choose_backend(call_of(row["params"]), gpu, software)), row["backend"]) << row["params"];
  }
}

/// Microseconds of the kernel that multiplies.
double measured(const json& kernels) {
  for (const json& kernel : kernels) {
    const std::string name = kernel["name"];
    if (name.find("sdpa") != name.npos || name.find("fmha_cutlass") != name.npos) return kernel["us"];
  }
  return 0.0;
}
double predicted(Attention op, bool backward, const Gpu& gpu, const Software& software) {
  op.backend = choose_backend(op, gpu, software);
  op.backward = backward;
  const LoweredOp lowered = lower(op, gpu, software);
  for (const KernelLaunch& launch : lowered.launches)
    if (std::holds_alternative<AttentionWork>(launch.work))
      return 1e6 * AnalyticEngine(gpu).time(launch, {}).time.value();
  return 0.0;
}

// Held-out rows alone: cuDNN's kernels with a mask, whatever their heads' width.
TEST(AttentionBackends, masks_cost_what_they_cost_on_held_out_shapes) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software = load_software("pytorch-2.11");
  for (const char* direction : {"forward", "backward"}) {
    std::map<bool, std::vector<double>> errors;  // whether heads are wider than 64
    for (const json& row : rows()) {
      const json& params = row["params"];
      if (!row["heldout"] || row["backend"] != "cudnn" || params["mask"] == "" || params["seq_q"] != params["seq_k"] ||
          !row.contains(direction))
        continue;
      const double time = measured(row[direction]),
                   guess = predicted(call_of(params), direction == std::string("backward"), gpu, software);
      errors[params["head_dim"] > 64].push_back(std::abs(std::log(guess / time)));
    }
    for (auto& [wide, of] : errors) {
      ASSERT_GE(of.size(), 3u) << direction << wide;
      std::sort(of.begin(), of.end());
      EXPECT_LT(of[of.size() / 2], 0.14) << direction << (wide ? ", wider than 64" : ", up to 64");
    }
  }
}

// Kernels of fp32 attention were the same with the switch on and off.
TEST(AttentionBackends, tf32_makes_no_difference_to_fp32_attention) {
  std::map<std::string, std::vector<const json*>> pairs;
  for (const json& row : rows())
    if (row["params"]["kind"] == "tf32") {
      json without = row["params"];
      without.erase("tf32");
      pairs[without.dump()].push_back(&row);
    }
  ASSERT_FALSE(pairs.empty());
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software = load_software("pytorch-2.11");
  for (const auto& [params, both] : pairs) {
    ASSERT_EQ(both.size(), 2u) << params;
    for (const char* direction : {"forward", "backward"}) {
      const json &one = (*both[0])[direction], &other = (*both[1])[direction];
      ASSERT_EQ(one.size(), other.size());
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i]["name"], other[i]["name"]) << params;
      EXPECT_NEAR(measured(one), measured(other), 0.03 * measured(other)) << params;
      Attention op = call_of((*both[0])["params"]), allowed = op;
      allowed.type = DType::tf32;
      EXPECT_DOUBLE_EQ(predicted(op, direction == std::string("backward"), gpu, software),
                       predicted(allowed, direction == std::string("backward"), gpu, software));
    }
  }
}

}  // namespace
}  // namespace ridgeline::attention_backends_test
