// Products and attention on GPUs that no constant was fitted on, against times that others published
// (measurements/public/kernels.jsonl.gz). Rows under four times the launch floor they contain are left out.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/workload/kernel_case.h"
#include "tests/support/measurement_index.h"
#include "tests/support/prediction_errors.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using testing::PredictionErrors;

struct Published {
  std::string hardware, op, dtype, source;
  json params;
  double us = 0.0;
};

std::vector<json> public_rows() {
  std::vector<json> rows;
  for_each_row(testing::measurements().file("public/kernels.jsonl.gz"), [&](const json& row) { rows.push_back(row); });
  return rows;
}

std::vector<Published> published() {
  std::vector<Published> rows;
  for (const json& row : public_rows()) {
    if (row.value("small", false) || row["trust"] == "low" || row["trust"] == "medium-low") continue;
    Published item{row["hardware"], row["op"], row["dtype"], row["source"], json::object(), row["measured_us"]};
    for (const char* key : {"m", "n", "k", "b", "layout", "batch", "heads", "seq", "head_dim", "causal"})
      if (row["params"].contains(key)) item.params[key] = row["params"][key];
    rows.push_back(std::move(item));
  }
  return rows;
}

Seconds predict(const Published& row, const std::string& op, const Gpu& gpu, const TimingEngine& engine) {
  json params = row.params;
  if (op.starts_with("flash")) params["head_major"] = false;
  const KernelCase kernel = kernel_case_from(json{{"op", op}, {"dtype", row.dtype}, {"params", params}});
  return testing::predict_op(kernel.op, kernel.input_sets, gpu, engine).time;
}

PredictionErrors products(std::initializer_list<const char*> names, std::initializer_list<const char*> types) {
  static const std::vector<Published> rows = published();
  PredictionErrors errors;
  for (const char* name : names) {
    const Gpu gpu = load_gpu(name);
    const auto engine = make_timing_engine("analytic", gpu);
    for (const Published& row : rows) {
      if (row.hardware != name || (row.op != "mm" && row.op != "addmm" && row.op != "bmm")) continue;
      if (std::find(types.begin(), types.end(), row.dtype) == types.end()) continue;
      errors.add(predict(row, row.op, gpu, *engine).value() * 1e6, row.us);
    }
  }
  return errors;
}

TEST(OtherGpus, v100_products) {
  products({"nvidia-v100-pcie-32gb", "nvidia-v100-sxm2-16gb"}, {"fp32"}).expect_within("V100 fp32", 0.12, 0.16);
  products({"nvidia-v100-sxm2-16gb"}, {"fp16"}).expect_within("V100 fp16", 0.12, 0.18);
}

TEST(OtherGpus, a100_products) {
  products({"nvidia-a100-sxm4-80gb"}, {"fp16", "bf16"}).expect_within("A100 16-bit", 0.10, 0.14);
  products({"nvidia-a100-pcie-80gb"}, {"fp32"}).expect_within("A100 fp32", 0.10, 0.14);
}

TEST(OtherGpus, t4_products_at_the_70_watts_of_the_board) {
  products({"nvidia-t4"}, {"fp32"}).expect_within("T4 fp32", 0.15, 0.22);
  products({"nvidia-t4"}, {"fp16"}).expect_within("T4 fp16", 0.15, 0.22);
}

TEST(OtherGpus, a100_flash_attention) {
  const Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  const auto engine = make_timing_engine("analytic", gpu);
  PredictionErrors errors;
  for (const Published& row : published())
    if (row.hardware == gpu.name && row.op == "flash_attention_forward_backward")
      errors.add(
          (predict(row, "flash_attention", gpu, *engine) + predict(row, "flash_attention_backward", gpu, *engine))
                  .value() *
              1e6,
          row.us);
  errors.expect_within("A100 FlashAttention-2, forward and backward", 0.12, 0.14);
}

// Prefill of Llama 3 8B under a causal mask, alone and eager (public/serving_layers_*): lengths of whole tiles and
// others. The boards differ by two in the rate of their tensor cores; shapes below 300 positions are a few tiles.
TEST(OtherGpus, flash_attention_of_ga102_boards) {
  PredictionErrors few, many;
  for (const auto& [file, name] : {std::pair{"public/serving_layers_rtx_3090.jsonl.gz", "nvidia-rtx-3090"},
                                   std::pair{"public/serving_layers_rtx_a6000.jsonl.gz", "nvidia-rtx-a6000"}}) {
    const Gpu gpu = load_gpu(name);
    const auto engine = make_timing_engine("analytic", gpu);
    for_each_row(testing::measurements().file(file), [&](const json& row) {
      if (row["op"] != "flash_attention") return;
      const KernelCase kernel =
          kernel_case_from(json{{"op", row["op"]}, {"dtype", row["dtype"]}, {"params", row["params"]}});
      PredictionErrors& errors = row["params"]["seq"].get<int>() < 300 ? few : many;
      errors.add(testing::predict_op(kernel.op, kernel.input_sets, gpu, *engine).time.value() * 1e6,
                 row["us"].get<double>());
    });
  }
  many.expect_within("GA102 FlashAttention-2 of 300 positions and more", 0.06, 0.08);
  few.expect_within("GA102 FlashAttention-2 of few positions", 0.18, 0.22);
}

/// Boards with the RTX 3090's chip, from their datasheets. Workstation and server boards accumulate in fp32 at the full
/// rate.
Gpu ga102(int sms, const char* boost, const char* bandwidth, const char* limit, bool full_rate) {
  std::vector<config::Override> changes{{"sm.count", std::to_string(sms), ""}, {"clock.boost", boost, ""},
                                        {"clock.sustained", boost, ""},        {"clock.tensor", boost, ""},
                                        {"dram.bandwidth", bandwidth, ""},     {"power.limit", limit, ""}};
  if (full_rate)
    for (const char* rate : {"sm.rates.tensor_fp16", "sm.rates.tensor_bf16"}) changes.push_back({rate, "512", ""});
  if (full_rate) changes.push_back({"sm.rates.tensor_tf32", "256", ""});
  return load_gpu("nvidia-rtx-3090", changes);
}

TEST(OtherGpus, relatives_of_the_rtx_3090) {
  const std::map<std::string, Gpu> boards{{"nvidia-rtx-3090", load_gpu("nvidia-rtx-3090")},
                                          {"nvidia-rtx-3090-ti", ga102(84, "1860 MHz", "1008 GB/s", "450 W", false)},
                                          {"nvidia-rtx-3080-ti", ga102(80, "1860 MHz", "912 GB/s", "350 W", false)},
                                          {"nvidia-rtx-3080", ga102(68, "1860 MHz", "760 GB/s", "320 W", false)},
                                          {"nvidia-rtx-a6000", ga102(84, "1800 MHz", "768 GB/s", "300 W", true)}};
  PredictionErrors errors;
  for (const json& row : public_rows()) {
    const auto board = boards.find(row["hardware"].get<std::string>());
    if (board == boards.end() || row["op"] != "mm" || row.value("small", false)) continue;
    const auto engine = make_timing_engine("analytic", board->second);
    Published item{row["hardware"], row["op"], row["dtype"], "", json::object(), row["measured_us"]};
    for (const char* key : {"m", "n", "k", "layout"})
      if (row["params"].contains(key)) item.params[key] = row["params"][key];
    errors.add(predict(item, "mm", board->second, *engine).value() * 1e6, item.us);
  }
  // Two of them, tf32 on the RTX 3080 Ti, were in view when splits in place were limited to as many tiles as SMs.
  errors.expect_within("GA102 boards", 0.15, 0.22);
}

}  // namespace
}  // namespace ridgeline
