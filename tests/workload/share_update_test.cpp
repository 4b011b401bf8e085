// How ZeRO cuts parameters over ranks, and what it does to a share's gradients.
#include "sim/workload/deepspeed/share_update.h"

#include <gtest/gtest.h>

#include "sim/workload/deepspeed/partition.h"
#include "tests/support/optimizer_session.h"

namespace ridgeline {
namespace {

using Slices = std::vector<deepspeed::Slice>;

// 43 numbers in shares of 12, 48 in all: [0, 5) [5, 12) [12, 40) [40, 41) [41, 43).
TEST(ShareUpdate, ATensorMayLieOnSeveralRanksAndEndWhereAShareDoes) {
  const deepspeed::Partition cut({5, 7, 28, 1, 2}, 4);
  EXPECT_EQ(cut.share(), 12);
  EXPECT_EQ(cut.elements(), 48);
  EXPECT_EQ(cut.slices(0), (Slices{{0, 5}}));
  EXPECT_EQ(cut.slices(1), (Slices{{0, 7}}));
  EXPECT_EQ(cut.slices(2), (Slices{{1, 12}, {2, 12}, {3, 4}}));
  EXPECT_EQ(cut.slices(3), (Slices{{3, 1}}));
  EXPECT_EQ(cut.slices(4), (Slices{{3, 2}}));
  for (std::size_t tensor = 0; tensor < 5; ++tensor)
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      std::int64_t expected = 0;
      for (const deepspeed::Slice& slice : cut.slices(tensor)) expected += slice.rank == rank ? slice.elements : 0;
      EXPECT_EQ(cut.part(tensor, rank), expected) << tensor << ' ' << rank;
    }
  EXPECT_EQ(cut.kept(0), 12);
  EXPECT_EQ(cut.kept(1), 28);
  EXPECT_EQ(cut.kept(2), 28);
  EXPECT_EQ(cut.kept(3), 31);
  EXPECT_EQ(cut.fullest_rank(), 3);
  EXPECT_EQ(deepspeed::Partition({28}, 4).fullest_rank(), 0);  // of equal ones the first
}

// A multiple of twice the ranks: shares are even.
TEST(ShareUpdate, SharesAreEven) {
  for (const auto& [elements, share] : {std::pair(1, 2), {6, 2}, {7, 4}, {12, 4}, {13, 6}})
    EXPECT_EQ(deepspeed::Partition({elements}, 3).share(), share) << elements;
}

// torch.stack of single numbers takes 128 a kernel.
TEST(ShareUpdate, NormsAreStackedByHundredTwentyEight) {
  for (const auto& [count, expected] :
       {std::pair(128, std::vector<std::int64_t>{128}), std::pair(129, std::vector<std::int64_t>{128, 1}),
        std::pair(300, std::vector<std::int64_t>{128, 128, 44})}) {
    testing_support::OptimizerSession session(DType::fp32, {});
    std::vector<eager::Tensor> gradients;
    for (int i = 0; i < count; ++i) gradients.push_back(session.eager.empty({3}, DType::fp32));
    deepspeed::norm_of({session.eager, nullptr}, gradients);
    std::vector<std::int64_t> parts;
    for (const Call& call : session.trace.calls)
      if (const auto* copy = std::get_if<Copy>(&session.trace.ops[call.op])) {
        EXPECT_EQ(copy->kind, CopyKind::concatenate);
        EXPECT_EQ(copy->type, DType::fp64);
        EXPECT_EQ(call.inputs, copy->parts);
        EXPECT_EQ(session.trace.operands[call.operands_begin + call.inputs].bytes, 8 * count);
        parts.push_back(copy->parts);
      }
    EXPECT_EQ(parts, expected);
  }
}

// The 16-bit numbers of a share follow the update, but where the share is in fp32 already.
TEST(ShareUpdate, StoredNumbersFollowUnlessTheyAreTheShareItself) {
  for (const bool own : {false, true}) {
    testing_support::OptimizerSession session(DType::fp32, {{6}});
    const eager::Tensor stored = session.eager.empty({6}, DType::bf16);
    session.listing.call(stored.storage.id(), "stored");
    TrainingDescription t;
    t.optimizer = {OptimizerKind::sgd, OptimizerImplementation::fused};
    const auto optimizer = optimizers::make_optimizer(t);
    eager::Tensor gradient = std::move(session.parameters[0].gradient);
    const std::string text = session.listed([&] {
      deepspeed::update(session.eager, *optimizer, session.parameters, std::move(gradient), false,
                        own ? session.parameters[0].value : stored);
    });
    const std::string common =
        "host optimizer_op\nscale 1x6 fp32: dw 24 -> dw 24\nhost fused_fixed\nhost per_parameter_fused\n"
        "fused_sgd 1 tensors, 6 elements fp32: w 24, dw 24, dw 24\nfree dw\n";
    EXPECT_EQ(text, common + (own ? "" : "host optimizer_op\ncast 1x6 fp32->bf16: w 24 -> stored 12\n"));
  }
}

}  // namespace
}  // namespace ridgeline
