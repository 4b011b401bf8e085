// Peak memory, and every allocation in order, against what PyTorch's allocator recorded on an H200.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include "sim/allocator/history.h"
#include "sim/memory/memory_run.h"
#include "tests/support/measured_steps.h"

namespace ridgeline {
namespace {

using testing_support::measured_cases;
using testing_support::MeasuredCase;
using testing_support::quantile;

struct Row {
  const MeasuredCase* measured = nullptr;
  MemoryResult memory;
  static double error(std::int64_t predicted, const nlohmann::json& measured) {
    return static_cast<double>(predicted) / measured.get<double>() - 1;
  }
  [[nodiscard]] double allocated() const { return error(memory.peak_allocated, measured->row["peak"]["allocated"]); }
  [[nodiscard]] double reserved() const { return error(memory.peak_reserved, measured->row["peak"]["reserved"]); }
  [[nodiscard]] double used() const { return error(memory.device_used, measured->row["stage"]["end"]["device_used"]); }
  [[nodiscard]] double first_allocated() const {
    return error(memory.first_step_peak_allocated, measured->row["peak_first_step"]["allocated"]);
  }
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> result;
    for (const MeasuredCase& c : measured_cases()) {
      MemoryOptions options;
      options.capacity = static_cast<std::int64_t>(c.scenario.gpu.dram.capacity.value());
      options.context = context_bytes(c.scenario.gpu, c.scenario.software);
      result.push_back({&c, run_memory(c.program, options)});
    }
    return result;
  }();
  return all;
}

std::vector<double> errors(double (Row::*error)() const) {
  std::vector<double> result;
  for (const Row& row : rows()) result.push_back(std::abs((row.*error)()));
  return result;
}

TEST(MeasuredMemory, is_listed_with_its_errors) {
  ASSERT_GE(rows().size(), 52u);
  fmt::print("{:42} {:>12} {:>7} {:>12} {:>7} {:>12} {:>7}\n", "", "allocated MB", "%", "reserved MB", "%", "used MB",
             "%");
  for (const Row& row : rows()) {
    fmt::print("{:42} {:12.1f} {:+7.2f} {:12.1f} {:+7.2f} {:12.1f} {:+7.2f}\n", row.measured->name,
               static_cast<double>(row.memory.peak_allocated) / 1e6, 100 * row.allocated(),
               static_cast<double>(row.memory.peak_reserved) / 1e6, 100 * row.reserved(),
               static_cast<double>(row.memory.device_used) / 1e6, 100 * row.used());
  }
}

// The bounds are today's errors with a little room, so that a change for the worse is seen.
TEST(MeasuredMemory, the_allocated_peak_is_exact_in_most_steps_and_within_half_a_percent_in_all) {
  EXPECT_LE(quantile(errors(&Row::allocated), 0.6), 1e-4);
  EXPECT_LE(quantile(errors(&Row::allocated), 1.0), 0.005);
}

TEST(MeasuredMemory, the_peak_of_the_first_step_has_no_optimizer_states_yet) {
  EXPECT_LE(quantile(errors(&Row::first_allocated), 0.9), 0.01);
}

TEST(MeasuredMemory, reserved_memory_is_exact_in_most_steps_and_within_5_percent_in_nine_of_ten) {
  EXPECT_LE(quantile(errors(&Row::reserved), 0.6), 0.002);
  EXPECT_LE(quantile(errors(&Row::reserved), 0.9), 0.05);
  EXPECT_LE(quantile(errors(&Row::reserved), 1.0), 0.13);
}

TEST(MeasuredMemory, device_memory_in_use_is_within_1_percent_in_the_median) {
  EXPECT_LE(quantile(errors(&Row::used), 0.5), 0.01);
}

TEST(MeasuredMemory, everything_that_ran_fits) {
  for (const Row& row : rows()) EXPECT_TRUE(row.memory.fits) << row.measured->name;
}

/// Requests and frees of the recorded two steps, a free as a negative number.
std::vector<std::int64_t> recorded(const std::filesystem::path& path) {
  std::vector<std::int64_t> events;
  for (const HistoryEvent& event : read_history(path.string()).events) {
    if (event.action == HistoryEvent::Action::alloc) events.push_back(event.bytes);
    if (event.action == HistoryEvent::Action::free_requested) events.push_back(-event.bytes);
  }
  return events;
}
std::vector<std::int64_t> predicted(const StepProgram& program) {
  std::vector<std::int64_t> events;
  for (const Action& action : program.actions) {
    if (action.kind == Action::Kind::allocate) events.push_back(program.storages[action.index].bytes);
    if (action.kind == Action::Kind::free) events.push_back(-program.storages[action.index].bytes);
  }
  return events;
}

TEST(MeasuredMemory, every_allocation_and_free_of_two_fp32_bert_steps_comes_in_the_recorded_order) {
  const std::filesystem::path h200 = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "measurements/h200";
  int compared = 0;
  for (const MeasuredCase& c : measured_cases()) {
    const auto path = h200 / (c.folder == "h200" ? "allocations" : "more") / (c.name + ".csv.gz");
    if (c.name != "bert-large-b4-fp32" && c.name != "bert-large-b1x4-fp32" && c.name != "bert-base-b8-t128-fp32-sgd")
      continue;
    EXPECT_EQ(predicted(c.program), recorded(path)) << c.name;
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST(MeasuredMemory, other_runs_allocate_within_5_percent_as_often_as_recorded) {
  const std::filesystem::path h200 = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "measurements/h200";
  for (const MeasuredCase& c : measured_cases()) {
    const auto path = h200 / (c.folder == "h200" ? "allocations" : "more") / (c.name + ".csv.gz");
    if (!std::filesystem::exists(path) || c.name.find("adafactor") != std::string::npos) continue;
    const auto events = static_cast<double>(recorded(path).size());
    EXPECT_NEAR(static_cast<double>(predicted(c.program).size()), events, 0.05 * events) << c.name;
  }
}

}  // namespace
}  // namespace ridgeline
