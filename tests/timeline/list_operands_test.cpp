// What operations on lists of tensors read, against adding up their operands one by one; what hashes of a step tell
// apart.
#include "sim/timeline/list_operands.h"

#include <gtest/gtest.h>

#include "sim/timeline/step_residency.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;

/// Two lists of three tensors that are read, of 100, 200, 400 and of 1000, 2000, 4000 bytes, and one that is written;
/// between them an operation on no lists.
OpTrace with_lists(StorageId second_first = 3) {
  OpTrace trace;
  trace.storages.resize(9);
  trace.ops = {MultiTensor{}, Collective{}};
  Call lists;
  lists.inputs = 6;
  lists.outputs = 3;
  trace.operands = {{0, 100}, {1, 200}, {2, 400}, {second_first, 1000}, {4, 2000}, {5, 4000}, {6, 7}, {7, 8}, {8, 9}};
  Call none;
  none.op = 1;
  trace.calls = {none, lists};
  return trace;
}

/// Of list `list` what lies between two places, counted in tensors.
Access part_of(int list, double from, double to) {
  Access access;
  access.operand = Access::kUntracked;
  access.list = list;
  access.from = from;
  access.to = to;
  return access;
}

/// The third list is written from its begin to its end.
double read_once(const ListOperands& operands, std::vector<Access> reads) {
  KernelLaunch launch;
  launch.reads = std::move(reads);
  launch.writes = {part_of(2, 0, 3)};
  return bytes_read_once(*operands.of(1), launch);
}

TEST(ListOperands, KnowTheOperandsOfCallsOnLists) {
  const OpTrace trace = with_lists();
  const ListOperands operands(trace);
  EXPECT_EQ(operands.of(0), nullptr) << "works on no lists";
  EXPECT_EQ(operands.of(2), nullptr) << "there is none";
  ASSERT_NE(operands.of(1), nullptr);
  EXPECT_EQ(operands.of(1)->inputs, 6u);
  EXPECT_TRUE(operands.of(1)->reads_once);
  EXPECT_EQ(operands.of(1)->before, (std::vector<double>{0, 100, 300, 700, 1700, 3700, 7700, 7707, 7715, 7724}));
}

TEST(ListOperands, PartsOfListsAreTheirTensorsAndPartsOfTensors) {
  const OpTrace trace = with_lists();
  const ListOperands operands(trace);
  EXPECT_EQ(read_once(operands, {part_of(0, 0, 3)}), 700);
  EXPECT_EQ(read_once(operands, {part_of(0, 1, 2)}), 200);
  EXPECT_EQ(read_once(operands, {part_of(0, 0.5, 2.25)}), 50 + 200 + 100);
  EXPECT_EQ(read_once(operands, {part_of(1, 0.25, 0.75)}), 500);
  EXPECT_EQ(read_once(operands, {part_of(0, 2, 3), part_of(1, 1.5, 3)}), 400 + 1000 + 4000);
  EXPECT_EQ(read_once(operands, {part_of(1, 2.5, 9)}), 2000) << "a list ends with its last tensor";
}

TEST(ListOperands, SayNothingWhereSomethingElseOrSomethingTwiceIsRead) {
  const OpTrace trace = with_lists();
  const ListOperands operands(trace);
  EXPECT_EQ(read_once(operands, {part_of(0, 0, 3), part_of(0, 0, 3)}), 0) << "one list twice";
  EXPECT_EQ(read_once(operands, {part_of(1, 0, 3), part_of(0, 0, 3)}), 0) << "lists out of order";
  EXPECT_EQ(read_once(operands, {part_of(0, 0, 3), Access{}}), 0) << "something that is no list";
  EXPECT_EQ(read_once(operands, {part_of(0, 0, 3), part_of(2, 0, 3)}), 0) << "what the operation writes";
  KernelLaunch none;
  none.reads = {Access{}};
  EXPECT_EQ(bytes_read_once(*operands.of(1), none), 0) << "no lists at all";
  const OpTrace twice = with_lists(1);
  const ListOperands repeated(twice);
  EXPECT_FALSE(repeated.of(1)->reads_once);
  EXPECT_EQ(read_once(repeated, {part_of(0, 0, 3)}), 0) << "a tensor that is in two of them";
  EXPECT_NE(repeated.of(1)->hash, operands.of(1)->hash);
}

/// Two launches around an allocation; the first or the last two things run again and again.
StepProgram around_an_allocation(bool first_two, std::int64_t times, std::int64_t bytes) {
  ProgramBuilder builder;
  builder.begin_step().kernel(1);
  builder.allocate(bytes);
  builder.kernel(2).end_step();
  StepProgram program = builder.program();
  if (first_two) program.repeats.push_back({{0, 2}, times});
  else program.repeats.push_back({{1, 3}, times});
  return program;
}

TEST(SequenceOfLaunches, TellsApartWhichLaunchesRunAgainHowOftenOnHowMuchMemory) {
  const std::uint64_t one = sequence_of_launches(around_an_allocation(true, 3, 512));
  EXPECT_EQ(sequence_of_launches(around_an_allocation(true, 3, 512)), one);
  EXPECT_NE(sequence_of_launches(around_an_allocation(false, 3, 512)), one);
  EXPECT_NE(sequence_of_launches(around_an_allocation(true, 4, 512)), one);
  EXPECT_NE(sequence_of_launches(around_an_allocation(true, 3, 1024)), one);
  EXPECT_NE(sequence_of_launches(around_an_allocation(true, 1, 512)), one);
  EXPECT_EQ(sequence_of_launches(around_an_allocation(true, 1, 512)),
            sequence_of_launches(around_an_allocation(false, 1, 1024)))
      << "what runs once is the same whatever memory it takes";
}

}  // namespace
}  // namespace ridgeline
