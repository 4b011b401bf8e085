// What a page is drawn from: kernels, launches and memory of a step made by hand.
#include "sim/report/page/page_data.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using nlohmann::json;

StepDetail made_detail() {
  StepDetail detail;
  detail.step = made_ms(1);
  KernelKind products, sums;
  products.name = "gemm", products.shape = "8x8x8", products.modules = {"attention"};
  products.launch.time_class = TimeClass::tensor_contraction, products.launch.pipe = Pipe::tensor_mma;
  products.launch.type = DType::bf16, products.launch.flops = 1024;
  products.launch.reads = {{.operand = 0, .bytes = 64, .requested = 256}};
  products.launch.writes = {{.operand = 1, .bytes = 32}};
  products.each.limiter = Limiter::compute;
  products.each.dram_read_bytes = 50, products.each.dram_write_bytes = 7, products.each.l2_bytes = 120;
  products.each.l2_hit_rate = 0.75, products.each.occupancy = 0.5, products.each.waves = 3;
  sums.name = "sum", sums.launch.time_class = TimeClass::elementwise;
  detail.kinds = {products, sums};
  detail.streams = {"default", "communication"};
  const auto us = [](double t) { return microseconds(t); };
  detail.spans = {{0, Phase::forward, 3, 0, us(1), us(2), us(5)},
                  {1, Phase::forward, -1, 0, us(2), us(5), us(6)},
                  {0, Phase::backward, 3, 1, us(3), us(6), us(10)}};
  for (int i = 0; i < 5; ++i)
    detail.memory.push_back({us(i), 100 + (i == 2 ? 50 : i), 200 + i, {10 + i, 20 + i, 0, 0, 0, 0, 30 + i}});
  return detail;
}

json pieces_of(const StepDetail& detail, std::size_t most_points = 1500) {
  return json(page_pieces(detail, load_gpu("nvidia-t4"), {}, most_points));
}

// Two launches of 3 and 4 us of the first kind. What a kernel loads: 256 asked for, and 32.
TEST(PageData, AGroupAddsUpItsLaunches) {
  const json groups = pieces_of(made_detail())["groups"];
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_NEAR(groups[0]["time_s"].get<double>(), 7e-6, 1e-15);
  json rest = groups[0];
  rest.erase("time_s");
  EXPECT_EQ(rest, (json{{"name", "gemm"},
                        {"shape", "8x8x8"},
                        {"modules", {"attention"}},
                        {"class", "tensor_contraction"},
                        {"limiter", "compute"},
                        {"type", "bf16"},
                        {"on_tensor_cores", true},
                        {"count", 2},
                        {"flops", 1024.0},
                        {"dram_bytes", 57.0},
                        {"l2_bytes", 120.0},
                        {"loaded_bytes", 288.0},
                        {"l2_hit_rate", 0.75},
                        {"occupancy", 0.5},
                        {"waves", 3.0}}));
  EXPECT_EQ(groups[1]["count"], 1);
  EXPECT_EQ(groups[1]["class"], "elementwise");
  EXPECT_EQ(groups[1]["on_tensor_cores"], false);
}

TEST(PageData, ALaunchIsAnEntryOfEachColumn) {
  const json spans = pieces_of(made_detail())["spans"];
  EXPECT_EQ(spans["stream_names"], json({"default", "communication"}));
  EXPECT_EQ(spans["group"], json({0, 1, 0}));
  EXPECT_EQ(spans["phase"], json({1, 1, 2}));
  EXPECT_EQ(spans["phase_names"][2], "backward");
  EXPECT_EQ(spans["layer"], json({3, -1, 3}));
  EXPECT_EQ(spans["stream"], json({0, 0, 1}));
  EXPECT_EQ(spans["issued_us"], json({1.0, 2.0, 3.0}));
  EXPECT_EQ(spans["start_us"], json({2.0, 5.0, 6.0}));
  EXPECT_EQ(spans["duration_us"], json({3.0, 1.0, 4.0}));
}

TEST(PageData, MemoryIsARowACategory) {
  const json memory = pieces_of(made_detail())["memory"];
  EXPECT_EQ(memory["at_us"], json({0.0, 1.0, 2.0, 3.0, 4.0}));
  EXPECT_EQ(memory["reserved"], json({200, 201, 202, 203, 204}));
  ASSERT_EQ(memory["bytes"].size(), 7U);
  EXPECT_EQ(memory["bytes"][0], json({10, 11, 12, 13, 14}));
  EXPECT_EQ(memory["bytes"][6], json({30, 31, 32, 33, 34}));
}

// Five points in at most two stretches: of the first three the third is fullest, of the last two the second.
TEST(PageData, ThinnedMemoryKeepsTheFullestOfEachStretch) {
  EXPECT_EQ(pieces_of(made_detail(), 2)["memory"]["at_us"], json({2.0, 4.0}));
  EXPECT_EQ(pieces_of(made_detail(), 5)["memory"]["at_us"].size(), 5U);
}

// Six points: three stretches of two, two of three, two of four and two; each keeps its fullest, and the first of
// equals.
TEST(PageData, StretchesAreOfEquallyManyPoints) {
  StepDetail detail = made_detail();
  detail.memory.clear();
  for (const int allocated : {5, 9, 3, 4, 8, 8})
    detail.memory.push_back({microseconds(static_cast<double>(detail.memory.size())), allocated, 100, {}});
  const auto at = [&](std::size_t most) { return pieces_of(detail, most)["memory"]["at_us"]; };
  EXPECT_EQ(at(7), json({0.0, 1.0, 2.0, 3.0, 4.0, 5.0}));
  EXPECT_EQ(at(6), json({0.0, 1.0, 2.0, 3.0, 4.0, 5.0}));
  EXPECT_EQ(at(5), json({1.0, 3.0, 4.0}));
  EXPECT_EQ(at(3), json({1.0, 3.0, 4.0}));
  EXPECT_EQ(at(2), json({1.0, 4.0}));
  EXPECT_EQ(at(1), json({1.0}));
  detail.memory.push_back({microseconds(6), 1, 100, {}});
  EXPECT_EQ(at(2), json({1.0, 4.0})) << "four and three";
  EXPECT_EQ(at(3), json({1.0, 4.0, 6.0})) << "three, three and one";
  detail.memory.clear();
  EXPECT_EQ(at(3), json::array());
}

// A T4 at its datasheet's numbers: 40 SMs with 64 multiply-adds a clock.
TEST(PageData, ADeviceHasThePeaksItHasUnitsFor) {
  const Gpu gpu = load_gpu("nvidia-t4");
  const json device = pieces_of(made_detail())["device"];
  EXPECT_EQ(device["name"], "nvidia-t4");
  EXPECT_EQ(device["sm_count"], 40);
  EXPECT_EQ(device["dram_bytes_per_s"], gpu.dram.bandwidth.value());
  EXPECT_EQ(device["l2_bytes_per_s"], gpu.l2.read_bandwidth.value());
  EXPECT_EQ(device["shared_bytes_per_s"], 40 * gpu.sm.shared_bandwidth.value() * gpu.clock.sustained.value());
  std::map<std::string, double> peaks;
  for (const json& peak : device["peaks"]) peaks[peak["name"]] = peak["flops_per_s"];
  EXPECT_NEAR(peaks["fp32 CUDA cores"], 2.0 * 64 * 40 * gpu.clock.boost.value(), 1e6);
  EXPECT_TRUE(peaks.contains("fp16 tensor cores"));
  EXPECT_FALSE(peaks.contains("tf32 tensor cores")) << "Turing has none";
}

TEST(PageData, APartHasItsTitleAndItsPredictionAndPiecesAreThoseAskedFor) {
  const Gpu gpu = load_gpu("nvidia-t4");
  const json part = json(page_part("a title", made_prediction(), made_detail(), gpu));
  EXPECT_EQ(part["title"], "a title");
  EXPECT_EQ(part["prediction"]["scenario"], "a made step");
  for (const char* key : {"device", "classes", "categories", "groups", "spans", "memory"})
    EXPECT_TRUE(part.contains(key)) << key;
  const json one = json(page_pieces(made_detail(), gpu, {.groups = false, .spans = true, .memory = false}));
  EXPECT_TRUE(one.contains("spans"));
  EXPECT_FALSE(one.contains("groups") || one.contains("memory"));
}

}  // namespace
}  // namespace ridgeline
