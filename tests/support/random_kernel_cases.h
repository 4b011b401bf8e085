// Random kernel cases of every op, for properties that hold whatever the shape.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "sim/workload/kernel_case.h"

namespace ridgeline::testing {

struct NamedCase {
  std::string text;  ///< the case as JSON, for messages
  KernelCase kernel;
};

class RandomKernelCases {
 public:
  explicit RandomKernelCases(std::uint64_t seed) : random_(seed) {}

  /// `each` cases of every op that all GPUs have: sizes over four to seven powers of ten, odd and even ones, cold and
  /// with inputs in turn.
  std::vector<NamedCase> of_every_op(int each) {
    std::vector<NamedCase> cases;
    for (const std::string& op : kernel_op_names()) {
      if (op == "scaled_mm") continue;  // Hopper's: tests/kernels/scaled_products_test.cpp
      for (int i = 0; i < each; ++i) {
        const nlohmann::json line = one(op);
        cases.push_back({line.dump(), kernel_case_from(line)});
      }
    }
    return cases;
  }

  nlohmann::json one(const std::string& op) {
    using nlohmann::json;
    json p;
    const bool fused = op.find("attention") != std::string::npos;
    const bool half_only = fused && !op.starts_with("efficient");
    const char* const types[] = {"bf16", "fp16", "fp32", "tf32"};
    std::string type = types[random_() % (half_only ? 2 : op.find("mm") != std::string::npos ? 4 : 3)];
    const bool batched = op == "bmm" || op == "grouped_mm";
    if (op == "mm" || op == "addmm" || batched) {
      if (batched) p["b"] = size(1, 8);
      const double most = batched ? 11 : 14;
      p["m"] = dimension(0, most);
      p["n"] = dimension(3, most);
      p["k"] = dimension(3, 13);
      if (op != "addmm") p["layout"] = std::array{"nn", "nt", "tn"}[random_() % 3];
    } else if (fused) {
      p["batch"] = size(0, 6);
      p["heads"] = size(0, 5);
      p["seq"] = random_() % 3 == 0 ? size(4, 12) : std::int64_t{1} << (6 + random_() % 7);
      p["head_dim"] = std::array{32, 64, 64, 80, 128, 128}[random_() % 6];
      p["causal"] = random_() % 2 == 0;
    } else if (op.starts_with("conv2d")) {
      p["batch"] = size(0, 6);
      p["in_channels"] = dimension(2, 9);
      p["out_channels"] = dimension(2, 9);
      p["size"] = size(2, 7);
      p["kernel"] = std::array{1, 3, 3, 5, 7}[random_() % 5];
      p["stride"] = std::array{1, 1, 2}[random_() % 3];
      p["channels_last"] = random_() % 2 == 0;
      if (random_() % 4 == 0) p["width"] = size(2, 7);
      if (random_() % 4 == 0) p["groups"] = p["out_channels"] = p["in_channels"];
    } else if (op == "batch_norm" || op == "batch_norm_backward" || op == "relu" || op.find("_pool2d") != op.npos ||
               op == "upsample_nearest2d") {
      p["batch"] = size(0, 7);
      p["channels"] = dimension(1, 10);
      p["size"] = 2 * size(1, 7);
      p["channels_last"] = random_() % 2 == 0;
    } else if (op.starts_with("embedding") || op.starts_with("index_")) {
      p["tokens"] = size(4, 16);
      p["vocab"] = size(6, 17);
      p["hidden"] = dimension(4, 13);
    } else if (op == "copy" || op == "fill" || op == "scale" || op == "sum_all") {
      p["elements"] = size(2, 29);
    } else if (op.starts_with("foreach") || op == "fused_adamw") {
      p["tensors"] = size(0, 9);
      p["elements"] = size(2, 21);
    } else {
      p["rows"] = size(0, 17);
      p["cols"] = dimension(1, 13);
    }
    json line{{"op", op}, {"dtype", type}, {"params", p}};
    if (random_() % 2 == 0) line["input_sets"] = 1 + random_() % 8;
    return line;
  }

 private:
  /// Two to the power of a uniform number.
  std::int64_t size(double low, double high) {
    return static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution<double>(low, high)(random_)));
  }
  /// The same, in two of three cases a multiple of 8.
  std::int64_t dimension(double low, double high) {
    const std::int64_t value = size(low, high);
    return random_() % 3 == 0 ? value : (value + 7) / 8 * 8;
  }
  std::mt19937_64 random_;
};

}  // namespace ridgeline::testing
