// Ranks that exchange different things wait for each other for good: the message names both sequences.
#include "sim/trace/matching_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A step of collectives alone.
OpTrace step_of(const std::vector<Collective>& collectives) {
  OpTrace trace;
  for (const Collective& collective : collectives) {
    Call call;
    call.op = static_cast<std::uint32_t>(trace.ops.size());
    trace.records.push_back({Record::Kind::op, HostClass::other, 0, static_cast<std::uint32_t>(trace.calls.size())});
    trace.calls.push_back(call);
    trace.ops.emplace_back(collective);
  }
  trace.steps.push_back({0, static_cast<std::uint32_t>(trace.records.size())});
  return trace;
}

Collective of_data(CollectiveKind kind, std::int64_t bytes) { return {kind, GroupKind::data, DType::bf16, 4, bytes}; }

std::string complaint_about(const std::vector<Collective>& one, const std::vector<Collective>& other) {
  try {
    check_collectives_match(step_of(one), "rank0", step_of(other), "rank1");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

const Collective kReduce = of_data(CollectiveKind::all_reduce, 1024), kGather = of_data(CollectiveKind::all_gather, 64);

TEST(MatchingCollectives, equal_ones_are_no_mistake) {
  EXPECT_EQ(complaint_about({kReduce, kGather}, {kReduce, kGather}), "");
  EXPECT_EQ(complaint_about({}, {}), "");
}

TEST(MatchingCollectives, both_sequences_are_named_where_they_part) {
  EXPECT_THAT(complaint_about({kReduce, kReduce, kGather}, {kReduce, kGather, kReduce}),
              AllOf(HasSubstr("group data differ at number 2"),
                    HasSubstr("rank0: all_reduce of 1024 bytes bf16 over 4 ranks, > all_reduce of 1024 bytes"),
                    HasSubstr("rank1: all_reduce of 1024 bytes bf16 over 4 ranks, > all_gather of 64 bytes")));
}

TEST(MatchingCollectives, sizes_types_and_ends_count) {
  EXPECT_THAT(complaint_about({kReduce}, {of_data(CollectiveKind::all_reduce, 1026)}), HasSubstr("1026 bytes"));
  Collective wide = kReduce;
  wide.type = DType::fp32;
  EXPECT_THAT(complaint_about({kReduce}, {wide}), HasSubstr("fp32"));
  EXPECT_THAT(complaint_about({kReduce, kGather}, {kReduce}), HasSubstr("> nothing more"));
  EXPECT_THAT(complaint_about({}, {kReduce}), HasSubstr("> nothing more"));
}

// Groups wait for themselves alone: their orders among each other may differ.
TEST(MatchingCollectives, groups_are_compared_by_themselves) {
  Collective of_tensor = kGather;
  of_tensor.group = GroupKind::tensor;
  EXPECT_EQ(complaint_about({kReduce, of_tensor}, {of_tensor, kReduce}), "");
  EXPECT_THAT(complaint_about({kReduce, of_tensor}, {kReduce}), HasSubstr("group tensor"));
  Collective of_stages = kGather;
  of_stages.group = GroupKind::pipeline;
  EXPECT_EQ(complaint_about({kReduce, of_stages}, {kReduce}), "");
}

}  // namespace
}  // namespace ridgeline::trace
