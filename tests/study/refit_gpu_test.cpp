// A GPU's description fitted to timed operations: factors that were put in are found again, and rows that no fit saw
// are predicted better.
#include "sim/study/calibration/refit_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "sim/hardware/keys.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/study/kernel_prediction.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<json> drawn_cases(int count) {
  std::mt19937_64 random(11);
  const auto size = [&](double low, double high) {
    const double value = std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random));
    return 8 * std::max<std::int64_t>(1, std::llround(value / 8.0));
  };
  const char* types[] = {"fp32", "tf32", "bf16"};
  const char* rows[] = {"softmax", "layer_norm", "gelu", "add"};
  std::vector<json> cases;
  for (int i = 0; i < count; ++i) {
    if (i % 2 == 0)
      cases.push_back({{"op", "mm"},
                       {"dtype", types[i / 2 % 3]},
                       {"params", {{"m", size(64, 4096)}, {"n", size(64, 4096)}, {"k", size(64, 4096)}}}});
    else
      cases.push_back({{"op", rows[i / 2 % 4]},
                       {"dtype", i % 4 == 1 ? "fp32" : "bf16"},
                       {"params", {{"rows", size(64, 32768)}, {"cols", size(128, 8192)}}}});
  }
  return cases;
}

Gpu changed(const Gpu& gpu, const std::map<std::string, double>& factors) {
  Gpu result = gpu;
  for (const auto& [name, factor] : factors) {
    const HardwareKey& key = *find_hardware_key(name);
    key.set(result, key.get(gpu) * factor);
  }
  return result;
}

/// A file of cases as they take on `gpu`, three percent scattered.
std::string timed_file(const std::string& name, const Gpu& gpu, const std::vector<json>& cases) {
  const std::string path = temporary_path(name);
  std::ofstream out(path);
  std::mt19937_64 random(5);
  std::normal_distribution<double> scatter(0.0, 0.03);
  const Software software = load_software("pytorch-2.11");
  const auto engine = make_timing_engine("analytic", gpu);
  for (json row : cases) {
    const Seconds time = predict_kernel(kernel_case_from(row), gpu, software, *engine).time;
    row["us"] = in_microseconds(time) * std::exp(scatter(random));
    out << row.dump() << "\n";
  }
  return path;
}

TEST(RefitGpu, finds_the_factors_that_were_put_in_and_predicts_rows_that_it_did_not_see) {
  const Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  const Software software = load_software("pytorch-2.11");
  const Gpu owner = changed(gpu, {{"launch.kernel_fixed", 1.5},
                                  {"dram.read_efficiency", 0.88},
                                  {"dram.write_efficiency", 0.88},
                                  {"sm.rates.tensor_tf32", 0.85}});
  const auto cases = read_timed_cases(timed_file("refit.jsonl", owner, drawn_cases(240)), gpu, software);
  ASSERT_EQ(cases.size(), 240u);
  const RefitResult result = refit_gpu(cases, gpu, software);
  const auto number = [&](std::string_view name) {
    for (const FittedNumber& one : result.numbers)
      if (one.tied->name == name) return one;
    throw std::logic_error("no such number");
  };
  EXPECT_TRUE(number("fixed").settled);
  EXPECT_NEAR(number("fixed").factor, 1.5, 0.2);
  EXPECT_TRUE(number("dram").settled);
  EXPECT_NEAR(number("dram").factor, 0.88, 0.03);
  EXPECT_NEAR(number("tensor-tf32").factor, 0.85, 0.08);
  const RefitErrors& all = result.errors.front();
  EXPECT_TRUE(result.better());
  EXPECT_GT(all.before.mean, 6.0);
  EXPECT_LT(all.unseen.mean, 4.0);
  EXPECT_LE(all.fitted.mean, 1.1 * all.unseen.mean);
}

TEST(RefitGpu, leaves_a_description_alone_that_is_right) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software = load_software("pytorch-2.11");
  const auto cases = read_timed_cases(timed_file("right.jsonl", gpu, drawn_cases(120)), gpu, software);
  for (const FittedNumber& number : refit_gpu(cases, gpu, software).numbers)
    EXPECT_NEAR(number.factor, 1.0, 0.08) << number.tied->name;
}

TEST(RefitGpu, writes_a_file_that_reads_as_what_was_fitted) {
  const Gpu gpu = load_gpu("nvidia-t4");  // no bf16, no tf32
  const Software software = load_software("pytorch-2.11");
  std::vector<json> cases = drawn_cases(180);
  std::erase_if(cases, [](const json& row) { return row["dtype"] != "fp32"; });
  const Gpu owner = changed(gpu, {{"launch.kernel_fixed", 1.4}, {"sm.rates.fp32", 0.9}});
  const RefitResult result =
      refit_gpu(read_timed_cases(timed_file("t4.jsonl", owner, cases), gpu, software), gpu, software);
  const std::string path = temporary_path("mine.yaml");
  std::ofstream(path) << refit_yaml(result, gpu, "nvidia-t4", "t4.jsonl");
  const Gpu read = load_gpu(path);
  for (const HardwareKey& key : hardware_keys())
    if (key.is_number()) {
      EXPECT_NEAR(key.get(read), key.get(result.gpu), 1e-5 * std::abs(key.get(result.gpu))) << key.key;
    }
}

TEST(RefitGpu, names_every_bad_line) {
  const Gpu gpu = load_gpu("nvidia-t4");
  const Software software = load_software("pytorch-2.11");
  const auto error_of = [&](const std::string& text) -> std::string {
    const std::string path = temporary_path("bad.jsonl");
    std::ofstream(path) << text;
    try {
      (void)read_timed_cases(path, gpu, software);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("{\"op\":\"mm\",\"params\":{\"m\":8,\"n\":8,\"k\":8}}\n"), HasSubstr("bad.jsonl:1: us"));
  EXPECT_THAT(error_of("{\"op\":\"mmm\",\"params\":{},\"us\":1}\nnonsense\n"), HasSubstr("bad.jsonl:2: not a JSON"));
  EXPECT_THAT(error_of("{\"op\":\"mmm\",\"params\":{},\"us\":1}\n"), HasSubstr("bad.jsonl:1: "));
  EXPECT_THAT(error_of("{\"op\":\"add\",\"params\":{\"rows\":8,\"cols\":8},\"us\":3}\n"), HasSubstr("needs 50"));
}

}  // namespace
}  // namespace ridgeline
