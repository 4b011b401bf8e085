// Twice as much of one dimension is never less work of any kind and never more than twice as much: bytes, requests,
// FLOPs, elements of every kernel of every operation.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline {
namespace {

using nlohmann::json;

/// Parameters of an operation around which one at a time is doubled; of attention, what its sequence doubles is up to
/// four times.
std::vector<json> parameters_of(const std::string& op) {
  if (op == "mm" || op == "addmm") return {{{"m", 512}, {"n", 1024}, {"k", 2048}}, {{"m", 4}, {"n", 64}, {"k", 128}}};
  if (op == "bmm") return {{{"b", 8}, {"m", 256}, {"n", 128}, {"k", 64}}};
  if (op.find("attention") != std::string::npos)
    return {{{"batch", 4}, {"heads", 8}, {"seq", 512}, {"head_dim", 64}, {"causal", false}},
            {{"batch", 2}, {"heads", 4}, {"seq", 1024}, {"head_dim", 64}, {"causal", true}}};
  if (op.starts_with("conv2d"))
    return {{{"batch", 16},
             {"in_channels", 64},
             {"out_channels", 128},
             {"size", 32},
             {"kernel", 3},
             {"stride", 1},
             {"channels_last", true}},
            {{"batch", 16},
             {"in_channels", 64},
             {"out_channels", 64},
             {"size", 32},
             {"kernel", 1},
             {"stride", 1},
             {"channels_last", false}}};
  if (op == "batch_norm" || op == "batch_norm_backward" || op == "relu" || op == "max_pool2d" ||
      op == "upsample_nearest2d")
    return {{{"batch", 16}, {"channels", 64}, {"size", 32}, {"channels_last", true}},
            {{"batch", 16}, {"channels", 64}, {"size", 32}, {"channels_last", false}}};
  if (op.starts_with("embedding") || op.starts_with("index_"))
    return {{{"tokens", 4096}, {"vocab", 32768}, {"hidden", 1024}}};
  if (op == "copy" || op == "fill" || op == "scale" || op == "sum_all")
    return {{{"elements", 1 << 22}}, {{"elements", 1 << 12}}};
  if (op.starts_with("foreach") || op == "fused_adamw") return {{{"tensors", 16}, {"elements", 1 << 16}}};
  return {{{"rows", 4096}, {"cols", 1024}}, {{"rows", 64}, {"cols", 32768}}, {{"rows", 65536}, {"cols", 32}}};
}

/// What a kernel does, each by its name.
std::map<std::string, double> amounts_of(const KernelLaunch& launch) {
  std::map<std::string, double> amounts{{"flops", launch.flops}};
  const auto add = [&](const std::string& what, const std::vector<Access>& accesses) {
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const std::string name = what + std::to_string(i);
      amounts[name + " bytes"] = accesses[i].bytes;
      amounts[name + " requested"] = std::max(accesses[i].bytes, accesses[i].requested);
      amounts[name + " loaded"] = std::max({accesses[i].bytes, accesses[i].requested, accesses[i].loaded});
    }
  };
  add("read ", launch.reads);
  add("write ", launch.writes);
  if (const auto* work = std::get_if<MemoryBoundWork>(&launch.work))
    amounts["elements"] = work->elements + work->padded_elements;
  return amounts;
}

std::vector<std::string> names_of(const LoweredOp& lowered) {
  std::vector<std::string> names;
  for (const KernelLaunch& launch : lowered.launches) names.push_back(launch.name);
  return names;
}

class Doubling : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] LoweredOp lowered(const std::string& op, const std::string& type, const json& parameters) const {
    return lower(kernel_case_from({{"op", op}, {"dtype", type}, {"params", parameters}}).op, gpu_, Software{});
  }
  const Gpu gpu_ = load_gpu(GetParam());
};

TEST_P(Doubling, one_dimension_never_shrinks_work_and_never_more_than_doubles_it) {
  int compared = 0;
  for (const std::string& op : kernel_op_names()) {
    if (op == "scaled_mm") continue;  // of Hopper alone: tests/kernels/scaled_products_test.cpp
    const double most_of_sequence = op.find("attention") != std::string::npos ? 4.0 : 2.0;
    for (const char* type : {"bf16", "fp32"})
      for (const json& parameters : parameters_of(op)) {
        LoweredOp before;
        try {
          before = lowered(op, type, parameters);
        } catch (const std::exception&) {
          continue;  // not of this type, or not on this GPU
        }
        for (const auto& [dimension, value] : parameters.items()) {
          if (!value.is_number_integer() || dimension == "kernel" || dimension == "stride") continue;
          json twice = parameters;
          twice[dimension] = 2 * value.get<std::int64_t>();
          const LoweredOp after = lowered(op, type, twice);
          if (names_of(after) != names_of(before)) continue;  // other kernels
          const double most = dimension == "seq" || dimension == "size" ? std::max(4.0, most_of_sequence) : 2.0;
          for (std::size_t i = 0; i < before.launches.size(); ++i) {
            const auto was = amounts_of(before.launches[i]), is = amounts_of(after.launches[i]);
            for (const auto& [what, amount] : was) {
              if (!is.contains(what)) continue;
              const std::string told = op + " " + type + " " + parameters.dump() + " x2 " + dimension + ": " +
                                       before.launches[i].name + " " + what;
              EXPECT_GE(is.at(what), amount * 0.9) << told;
              // Sectors that lines of a matrix share are asked for again as soon as the L1 loses them.
              if (before.launches[i].name == "copy_transposed") continue;
              EXPECT_LE(is.at(what), amount * most * 1.15) << told;
              ++compared;
            }
          }
        }
      }
  }
  EXPECT_GT(compared, 2000);
}

TEST_P(Doubling, operations_that_compute_have_flops_and_kernels_have_elements_for_all_they_write) {
  for (const std::string& op : kernel_op_names()) {
    if (op == "scaled_mm") continue;
    for (const json& parameters : parameters_of(op)) {
      LoweredOp made;
      try {
        made = lowered(op, "bf16", parameters);
      } catch (const std::exception&) {
        continue;
      }
      double flops = 0.0;
      for (const KernelLaunch& launch : made.launches) flops += launch.flops;
      const bool moves_only = op == "cast" || op == "masked_fill" || op.find("copy") != std::string::npos ||
                              op == "fill" || op.starts_with("embedding") || op.starts_with("index_") ||
                              op.find("upsample") != std::string::npos || op.find("sort") != std::string::npos ||
                              op.find("cat") != std::string::npos || op.find("transpose") != std::string::npos;
      if (!moves_only) {
        EXPECT_GT(flops, 0.0) << op << " " << parameters.dump();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, Doubling,
                         ::testing::Values("nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb", "nvidia-v100-sxm2-32gb"),
                         [](const auto& param) { return std::string(param.param).substr(7, 4); });

}  // namespace
}  // namespace ridgeline
