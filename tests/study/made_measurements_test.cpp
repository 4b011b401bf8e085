// Measurements made up in a folder of their own: which rows a fit may see, which are compared, what a step's row means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/answer/step_run.h"
#include "sim/hardware/load_gpu.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/study/validation/published_training.h"
#include "sim/study/validation/range_coverage.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kMachines =
    "machines:\n"
    "  one: {hardware: nvidia-h200-sxm-141gb, software: pytorch-2.11, stack: s, host: default, clocks: c}\n"
    "  graphs: {hardware: nvidia-t4, software: pytorch-2.11, stack: s, host: default, clocks: c, graph_of: 6}\n"
    "files:\n";

class MadeMeasurements : public ::testing::Test {
 protected:
  std::filesystem::path folder_ = temporary_path(::testing::UnitTest::GetInstance()->current_test_info()->name());
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "public");
    index_ = kMachines;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void add(const std::string& name, const std::string& how, const std::vector<std::string>& rows) {
    index_ += "  - {path: " + name + ", " + how + "}\n";
    std::ofstream out(folder_ / name);
    for (const std::string& row : rows) out << row << "\n";
    std::ofstream(folder_ / "index.yaml") << index_;
  }
  std::string index_;
};

std::string product_row(int m, const std::string& more = "", double us = 3.5) {
  return "{\"op\": \"mm\", \"dtype\": \"fp16\", \"params\": {\"m\": " + std::to_string(m) +
         ", \"n\": 64, \"k\": 32, \"layout\": \"nt\"}, \"us\": " + std::to_string(us) + more + "}";
}
std::vector<std::string> listed_rows(const MeasuredOps& ops) {
  std::vector<std::string> result;
  for (const MeasuredOp& row : ops.rows)
    result.push_back(row.file->name + ":" + std::to_string(row.line) + (row.held_out ? " unseen" : " seen"));
  return result;
}

// A fit sees all of a file, nothing, what its rows do not hold out, or two thirds of its shapes; a shape that is held
// out anywhere is held out everywhere.
TEST_F(MadeMeasurements, ARowIsSeenOrNot) {
  add("fit.jsonl", "kind: kernels, machine: one, split: fit", {product_row(8), product_row(16), product_row(24)});
  add("out.jsonl", "kind: kernels, machine: one, split: held-out", {product_row(16), product_row(32)});
  add("rows.jsonl", "kind: kernels, machine: graphs, split: rows",
      {product_row(40), product_row(48, ", \"heldout\": true"), product_row(56, ", \"heldout\": false"),
       "{\"op\": \"mm\", \"error\": \"it did not run\"}"});
  add("public/ops.jsonl", "kind: published-ops, machine: one, split: held-out", {product_row(24)});
  const MeasurementIndex index(folder_);
  const MeasuredOps all = load_measured_ops(index, {});
  EXPECT_THAT(listed_rows(all),
              ElementsAre("fit.jsonl:1 seen", "out.jsonl:1 unseen", "out.jsonl:2 unseen", "rows.jsonl:1 seen",
                          "rows.jsonl:2 unseen", "rows.jsonl:3 seen", "public/ops.jsonl:1 unseen"));
  EXPECT_EQ(all.twins, 2u);
  ASSERT_EQ(all.machines.size(), 2u);
  EXPECT_EQ(all.machines[0].name + " " + all.machines[1].name, "one graphs");
  EXPECT_EQ(all.rows[3].machine, 1);
  EXPECT_EQ(all.rows[6].machine, 0);
  EXPECT_EQ(all.rows[0].time, microseconds(3.5));
  EXPECT_EQ(all.rows[0].op + " " + all.rows[0].dtype, "mm fp16");
  EXPECT_EQ(all.rows[1].shape, load_measured_ops(index, {.held_out_only = true}).rows[0].shape);
  EXPECT_THAT(
      listed_rows(load_measured_ops(index, {.held_out_only = true})),
      ElementsAre("out.jsonl:1 unseen", "out.jsonl:2 unseen", "rows.jsonl:2 unseen", "public/ops.jsonl:1 unseen"));
  WantedOps of_fit;
  of_fit.files = [](const MeasuredFile& file) { return file.name == "fit.jsonl"; };
  EXPECT_THAT(listed_rows(load_measured_ops(index, of_fit)), ElementsAre("fit.jsonl:1 seen"));
  WantedOps others;
  others.ops = {"softmax", "add"};
  EXPECT_THAT(listed_rows(load_measured_ops(index, others)), IsEmpty());
  others.ops = {"softmax", "mm"};
  EXPECT_EQ(load_measured_ops(index, others).rows.size(), 7u);
}

TEST_F(MadeMeasurements, AShapeIsHeldOutByItsHash) {
  std::vector<std::string> rows;
  for (int m = 8; m <= 8 * 300; m += 8) rows.push_back(product_row(m));
  add("hash.jsonl", "kind: kernels, machine: one, split: hash", rows);
  const MeasurementIndex index(folder_);
  std::size_t unseen = 0;
  const MeasuredOps ops = load_measured_ops(index, {});
  for (const MeasuredOp& row : ops.rows) {
    EXPECT_EQ(row.held_out, held_out_by_shape(row.shape));
    unseen += row.held_out;
  }
  EXPECT_NEAR(static_cast<double>(unseen), 100.0, 30.0) << "a third";
}

// Of a row: geometry where it was profiled, how often it ran back to back, other operands; and its mistakes.
TEST_F(MadeMeasurements, ARowSaysWhatRan) {
  add("out.jsonl", "kind: kernels, machine: one, split: held-out",
      {product_row(8,
                   ", \"back_to_back\": 7, \"kernels\": [{\"name\": \"k\", \"us\": 2.5, \"grid\": [3, 4, 5], "
                   "\"block\": [32, 2, 3], \"regs\": 40, \"smem\": 1024}, {\"name\": \"bare\", \"us\": 1, \"grid\": "
                   "null}]"),
       product_row(16, ", \"back_to_back\": 0")});
  const MeasurementIndex index(folder_);
  const MeasuredOps ops = load_measured_ops(index, {});
  ASSERT_EQ(ops.rows.size(), 2u);
  EXPECT_EQ(ops.rows[0].back_to_back, 7);
  EXPECT_EQ(ops.rows[1].back_to_back, 1);
  ASSERT_EQ(ops.rows[0].kernels.size(), 2u);
  EXPECT_THAT(ops.rows[1].kernels, IsEmpty());
  const MeasuredKernel &kernel = ops.rows[0].kernels[0], &bare = ops.rows[0].kernels[1];
  EXPECT_EQ(kernel.name, "k");
  EXPECT_NEAR(kernel.seconds, 2.5e-6, 1e-15);
  EXPECT_TRUE(kernel.has_geometry);
  EXPECT_THAT(kernel.grid, ElementsAre(3, 4, 5));
  EXPECT_EQ(kernel.threads, 192);
  EXPECT_EQ(kernel.registers, 40);
  EXPECT_EQ(kernel.shared_bytes, 1024);
  EXPECT_FALSE(bare.has_geometry);
  const auto told = [&](const std::string& row) {
    add("bad.jsonl", "kind: kernels, machine: one, split: held-out", {product_row(8), row});
    try {
      (void)load_measured_ops(MeasurementIndex(folder_), {});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(told("nonsense"), HasSubstr("bad.jsonl:2: "));
  EXPECT_THAT(told("{\"op\": \"no such op\", \"dtype\": \"fp16\", \"params\": {}, \"us\": 1}"),
              HasSubstr("bad.jsonl:2: "));
}

// In a graph of six ops each kernel is followed by the gap of a graph, and a sixth of the graph's launch is its own.
TEST_F(MadeMeasurements, GraphsHaveGapsBetweenTheirKernels) {
  add("graphs.jsonl", "kind: kernels, machine: graphs, split: held-out", {product_row(8)});
  add("plain.jsonl", "kind: kernels, machine: one, split: held-out", {product_row(16)});
  const MeasurementIndex index(folder_);
  const MeasuredOps ops = load_measured_ops(index, {});
  Gpu gpu = load_gpu("nvidia-t4");
  gpu.launch.graph_gap = microseconds(1.5);
  EXPECT_NEAR(in_microseconds(between_kernels(ops.rows[0], 3, gpu)), 3 * 1.5 + 2.7 / 6, 1e-9);
  EXPECT_EQ(between_kernels(ops.rows[1], 3, gpu), Seconds{});
}

std::string step_row(const std::string& id, const std::string& more, const std::string& parallel = "data: 2",
                     const std::string& measured = "") {
  return "{\"id\": \"" + id +
         "\", \"scenario\": {\"hardware\": \"nvidia-h200-sxm-141gb\", \"cluster\": \"h200-x2\", \"model\": "
         "{\"family\": \"gpt2\", \"layers\": 4, \"heads\": 4, \"hidden\": 128, \"vocabulary\": 1000, "
         "\"max_positions\": 64}, \"training\": {\"micro_batch\": 2, \"gradient_accumulation\": 4, "
         "\"sequence_length\": 64, \"parallel\": {" +
         parallel + "}}}, \"measured\": {\"step_time_s\": 0.25" + measured + "}" + more + "}";
}

// Time and memory, of the fuller rank where both are told, of no stage of a pipeline; who saw it, and whose it is.
TEST_F(MadeMeasurements, AStepIsComparedWithWhatItsRowMeans) {
  add("ours.jsonl", "kind: published-training, machine: one, split: rows, seen_by: the host",
      {step_row("a", ", \"split\": \"fit\"", "\"data\": 2",
                ", \"peak_allocated_bytes\": 500, \"allocated_of_other_rank\": 700, \"peak_reserved_bytes\": 900"),
       step_row("b", ", \"split\": \"test\", \"host_scale\": 2.5, \"overrides\": {\"training.micro_batch\": \"3\"}",
                "\"pipeline\": 2", ", \"peak_allocated_bytes\": 500, \"peak_reserved_bytes\": 900")});
  add("public/theirs.jsonl", "kind: published-training, machine: one, split: held-out, seen_by: nobody",
      {step_row("c", ", \"split\": \"fit\"", "\"data\": 2",
                ", \"peak_allocated_bytes\": 800, "
                "\"allocated_of_other_rank\": 700")});
  const MeasurementIndex index(folder_);
  const std::vector<PublishedTraining> rows = load_published_training(index.file("ours.jsonl"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, "a");
  EXPECT_EQ(rows[0].step_time, Seconds{0.25});
  EXPECT_EQ(rows[0].peak_allocated, 700);
  EXPECT_EQ(rows[0].peak_reserved, 900);
  EXPECT_FALSE(rows[0].held_out);
  EXPECT_TRUE(rows[1].held_out);
  EXPECT_EQ(rows[1].peak_allocated, 500);
  EXPECT_EQ(rows[1].scenario.host.scale, 2.5);
  EXPECT_EQ(rows[1].scenario.training.micro_batch, 3);
  EXPECT_EQ(rows[0].scenario.training.micro_batch, 2);
  const std::vector<ValidatedStep> steps = validate_published_training(folder_.string(), "", "roofline");
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].measured.name + steps[1].measured.name + steps[2].measured.name, "abc");
  EXPECT_EQ(steps[0].measured.source, "several GPUs, ours, one");
  EXPECT_EQ(steps[2].measured.source, "several GPUs, public, one");
  EXPECT_EQ(steps[0].measured.seen_by, "the host");
  EXPECT_EQ(steps[1].measured.seen_by, "");
  EXPECT_EQ(steps[2].measured.seen_by, "nobody");
  for (const ValidatedStep& step : steps) {
    EXPECT_EQ(step.measured.step_time, Seconds{0.25});
    EXPECT_EQ(step.predicted.step.time, predict(step.scenario, "roofline").step.time);
  }
  EXPECT_EQ(steps[0].measured.peak_allocated, 700);
  EXPECT_EQ(steps[0].measured.peak_reserved, 900);
  EXPECT_FALSE(steps[1].measured.peak_allocated) << "of one stage";
  EXPECT_FALSE(steps[1].measured.peak_reserved);
  EXPECT_EQ(steps[2].measured.peak_allocated, 800);
  EXPECT_FALSE(steps[2].measured.peak_reserved);
  EXPECT_EQ(validate_published_training(folder_.string(), "nvidia-h200-sxm-141gb", "roofline").size(), 3u);
  EXPECT_THAT(validate_published_training(folder_.string(), "nvidia-t4", "roofline"), IsEmpty());
}

TEST(RangeEdges, BelongToTheRange) {
  ValidatedStep step;
  step.predicted.step.low = Seconds{2.0};
  step.predicted.step.high = Seconds{5.0};
  EXPECT_FALSE(inside_range(step)) << "nobody measured it";
  const std::vector<std::pair<double, bool>> times{{1.9, false}, {2.0, true}, {3.0, true}, {5.0, true}, {5.1, false}};
  for (const auto& [time, inside] : times) {
    step.measured.step_time = Seconds{time};
    EXPECT_EQ(inside_range(step), inside) << time;
  }
  RangeCoverage coverage;
  EXPECT_EQ(coverage.share(), 1.0);
  coverage.add(true);
  coverage.add(false);
  coverage.add(true);
  coverage.add(true);
  EXPECT_EQ(coverage.cases, 4u);
  EXPECT_EQ(coverage.share(), 0.75);
}

// Two hundred cases that take exactly as long as predicted: their range is that ratio alone, and holds each of them.
// Each half is held against the other: where even ones take twice as long and odd ones half, none is inside.
TEST(RangeEdges, EachHalfIsHeldAgainstTheOther) {
  std::vector<ValidatedCase> cases;
  for (int i = 0; i < 200; ++i) {
    ValidatedCase c;
    c.hardware = "nvidia-h200-sxm-141gb";
    c.kind = {"mm", "16-bit", "wgmma", "gemm"};
    c.source = "ours";
    c.predicted["analytic"] = microseconds(100.0);
    c.measured = microseconds(100.0);
    cases.push_back(c);
  }
  const auto share = [&] {
    const std::vector<bool> inside = inside_ranges_of_the_other_half(cases);
    return std::count(inside.begin(), inside.end(), true);
  };
  EXPECT_EQ(share(), 200);
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].measured = microseconds(i % 2 == 0 ? 200.0 : 50.0);
  EXPECT_EQ(share(), 0);
}

}  // namespace
}  // namespace ridgeline
