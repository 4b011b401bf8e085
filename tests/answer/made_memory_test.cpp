// What a made-up run needs of a made-up device: its range, whether it runs and whether it surely fits; which programs
// allocate alike.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/answer/memory_prediction.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;

constexpr std::int64_t kMebibyte = 1 << 20;

/// 100 MiB that stay, 60 MiB that come and go: 160 MiB are reserved.
StepProgram with_two_tensors(const OpTrace& trace) {
  ProgramBuilder builder;
  builder.allocate(100 * kMebibyte, Category::weights);
  builder.begin_step();
  const std::uint32_t passing = builder.allocate(60 * kMebibyte);
  builder.kernel(1).free(passing).end_step();
  StepProgram program = builder.program();
  program.trace = &trace;
  return program;
}

TEST(MadeMemory, RunsWhereItFindsRoomAndFitsWhereItsRangeDoes) {
  const OpTrace trace;
  const StepProgram program = with_two_tensors(trace);
  Software software;
  software.memory_spread = 0.1;
  for (const std::int64_t capacity : {300, 188, 187, 170, 169}) {
    SCOPED_TRACE(capacity);
    MemoryOptions options;
    options.context = 10 * kMebibyte;
    options.capacity = capacity * kMebibyte;
    const MemoryPrediction memory = predict_memory(program, options, software);
    EXPECT_EQ(memory.capacity, capacity * kMebibyte);
    EXPECT_EQ(memory.needed, 170 * kMebibyte) << "with room without end";
    EXPECT_EQ(memory.needed_low, 153 * kMebibyte);
    EXPECT_EQ(memory.needed_high, 187 * kMebibyte);
    EXPECT_EQ(memory.runs, capacity >= 170);
    EXPECT_EQ(memory.fits, capacity >= 187);
    EXPECT_EQ(verdict(memory), capacity >= 187 ? "fits" : capacity >= 170 ? "may not fit" : "does not fit");
    EXPECT_EQ(memory.out_of_memory.has_value(), capacity < 170);
    if (capacity < 170) continue;
    EXPECT_EQ(memory.context, 10 * kMebibyte);
    EXPECT_EQ(memory.peak_allocated, 160 * kMebibyte);
    EXPECT_EQ(memory.peak_reserved, 160 * kMebibyte);
    EXPECT_EQ(memory.device_used, 170 * kMebibyte);
    EXPECT_EQ(memory.at_peak[static_cast<std::size_t>(Category::weights)], 100 * kMebibyte);
    EXPECT_EQ(memory.at_peak[static_cast<std::size_t>(Category::activations)], 60 * kMebibyte);
    EXPECT_EQ(memory.cached_unused, 0);
  }
}

// Programs are taken for alike where storages, devices, allocations and their order are.
TEST(MadeMemory, ProgramsThatAllocateOtherwiseHaveOtherHashes) {
  const OpTrace trace;
  const StepProgram program = with_two_tensors(trace);
  const std::uint64_t hash = hash_of_allocations(program);
  EXPECT_EQ(hash_of_allocations(with_two_tensors(trace)), hash);
  StepProgram other = program;
  other.actions.push_back({Action::Kind::host, HostClass::linear, 0, 1});
  EXPECT_EQ(hash_of_allocations(other), hash) << "the host allocates nothing";
  for (const std::uint8_t device : {std::uint8_t{0}, std::uint8_t{1}}) {
    other = program;
    other.device = device;
    EXPECT_NE(hash_of_allocations(other), hash) << "of one of several devices";
    StepProgram second = program;
    second.device = static_cast<std::uint8_t>(1 - device);
    EXPECT_NE(hash_of_allocations(other), hash_of_allocations(second));
  }
  const auto with_storage = [&](const Storage& storage) {
    StepProgram changed = program;
    changed.storages = {};
    changed.storages.push_back(storage);
    changed.storages.push_back(program.storages[1]);
    return hash_of_allocations(changed);
  };
  const Storage first = program.storages[0];
  EXPECT_EQ(with_storage(first), hash);
  Storage changed = first;
  changed.bytes += 512;
  EXPECT_NE(with_storage(changed), hash);
  changed = first;
  changed.stream = 1;
  EXPECT_NE(with_storage(changed), hash);
  changed = first;
  changed.category = Category::gradients;
  EXPECT_NE(with_storage(changed), hash);
  other = program;
  other.actions.push_back({Action::Kind::allocate, HostClass::other, 0, 1});
  EXPECT_NE(hash_of_allocations(other), hash);
  StepProgram freed = program;
  freed.actions.push_back({Action::Kind::free, HostClass::other, 0, 1});
  EXPECT_NE(hash_of_allocations(freed), hash);
  EXPECT_NE(hash_of_allocations(freed), hash_of_allocations(other));
  other = program;
  other.repeats.push_back({{1, 4}, 3});
  EXPECT_NE(hash_of_allocations(other), hash);
  StepProgram more = other;
  more.repeats.back().times = 4;
  EXPECT_NE(hash_of_allocations(more), hash_of_allocations(other));
  // Storages that are never allocated count too: what lies behind them is named by numbers.
  other = program;
  other.storages.push_back({0, Category::weights});
  EXPECT_NE(hash_of_allocations(other), hash);
}

}  // namespace
}  // namespace ridgeline
