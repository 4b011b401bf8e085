// FlashAttention over packed sequences: rows measured beside an H100 that no constant was fitted on, the grid, and what
// must hold whatever the constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/lowering.h"
#include "sim/study/validation/packed_attention.h"
#include "tests/support/measurement_index.h"
#include "tests/support/prediction_errors.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kForwardMedian = 0.05, kForwardMean = 0.065;
constexpr double kBackwardMedian = 0.03, kBackwardMean = 0.035;
/// What the simulated hierarchy may be off the law: the dense kernels' is within this too.
constexpr double kBetweenEngines = 0.15;

Attention packed_op(const std::vector<std::int64_t>& lengths, bool backward = false, std::int64_t head_dim = 128,
                    std::int64_t batch = 1) {
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  Attention op{.backward = backward, .causal = true, .batch = batch, .heads = 16, .kv_heads = 16};
  op.seq_q = op.seq_k = tokens;
  op.head_dim = head_dim;
  op.lengths.list = std::make_shared<const std::vector<std::int64_t>>(lengths);
  return op;
}
Attention unpacked(Attention op) {
  op.lengths = {};
  return op;
}
double microseconds_of(const Attention& op, const Gpu& gpu, const char* engine = "analytic") {
  return testing::predict_op(op, 0, gpu, *make_engine(engine, gpu)).time.value() * 1e6;
}
const KernelLaunch& multiplying_launch(const LoweredOp& lowered) {
  for (const KernelLaunch& launch : lowered.launches)
    if (std::holds_alternative<AttentionWork>(launch.work)) return launch;
  throw std::logic_error("no kernel multiplies");
}
std::string refused(const Attention& op) {
  try {
    static_cast<void>(lower(op, load_gpu("nvidia-h100-sxm5-80gb"), Software{}));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(PackedAttention, documents_held_out_on_the_h100) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  const auto engine = make_engine("analytic", gpu);
  testing::PredictionErrors forward, backward;
  const std::vector<MeasuredOp> rows =
      load_packed_attention(testing::measurements().file("h100/packed_attention.jsonl.gz"));
  for (const MeasuredOp& row : rows) {
    if (!row.held_out) continue;
    const auto predicted = testing::predict_op(row.kernel.op, 0, gpu, *engine);
    EXPECT_EQ(predicted.launches, row.kernels.size()) << row.line;
    (row.op == "flash_attention" ? forward : backward).add(predicted.time.value(), row.time.value());
  }
  EXPECT_EQ(forward.count(), 30u);
  forward.expect_within("packed attention, held out", kForwardMedian, kForwardMean);
  backward.expect_within("packed attention backward, held out", kBackwardMedian, kBackwardMean);
}

TEST(PackedAttention, the_grid_has_blocks_for_the_longest_of_every_sequence) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  const LoweredOp forward = lower(packed_op({1000, 24, 300}, false, 128, 2), gpu, Software{});
  ASSERT_EQ(forward.launches.size(), 1u);
  EXPECT_THAT(forward.launches[0].grid, ElementsAre(8, 6, 16));
  const LoweredOp backward = lower(packed_op({1000, 24, 300}, true, 128, 2), gpu, Software{});
  ASSERT_EQ(backward.launches.size(), 3u);
  EXPECT_THAT(backward.launches[0].grid, ElementsAre(16, 6, 16));  // 64 queries a block
  EXPECT_THAT(backward.launches[1].grid, ElementsAre(8, 6, 16));
  // Row sums and the accumulator of dQ: 128 rows more for each sequence, in fp32.
  const std::int64_t rows = 2 * 1324 + 128 * 6;
  EXPECT_THAT(backward.temporaries, ElementsAre(16 * rows * 4, 16 * rows * 128 * 4));
}

TEST(PackedAttention, work_is_that_of_each_sequence) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  for (const bool backward : {false, true}) {
    const double apart = multiplying_launch(lower(packed_op({512, 512}, backward), gpu, Software{})).flops;
    Attention two = unpacked(packed_op({512}, backward));
    two.batch = 2;
    EXPECT_DOUBLE_EQ(apart, multiplying_launch(lower(two, gpu, Software{})).flops);
    const Attention one = packed_op({4096}, backward);
    EXPECT_DOUBLE_EQ(multiplying_launch(lower(one, gpu, Software{})).flops,
                     multiplying_launch(lower(unpacked(one), gpu, Software{})).flops);
    // The measured rows with one sequence are 0.98 to 1.16 of dense ones forward, 0.98 to 1.04 backward.
    const double ratio = microseconds_of(one, gpu) / microseconds_of(unpacked(one), gpu);
    EXPECT_GT(ratio, 0.95);
    EXPECT_LT(ratio, 1.16);
  }
}

TEST(PackedAttention, shorter_sequences_are_never_slower) {
  for (const char* name : {"nvidia-h100-sxm5-80gb", "nvidia-a100-sxm4-80gb"}) {
    const Gpu gpu = load_gpu(name);
    for (const std::int64_t head_dim : {64, 128, 256})
      for (const std::int64_t tokens : {2048, 8192, 32768})
        for (const bool backward : {false, true}) {
          double longer = 1e30;
          for (std::int64_t length = tokens; length >= 128; length /= 2) {
            const std::vector<std::int64_t> lengths(static_cast<std::size_t>(tokens / length), length);
            const double now = microseconds_of(packed_op(lengths, backward, head_dim), gpu);
            EXPECT_LE(now, longer * (1.0 + 1e-9)) << name << ' ' << head_dim << ' ' << tokens << " / " << length;
            longer = now;
          }
        }
  }
}

TEST(PackedAttention, blocks_that_leave_cost_less_than_those_that_work) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  // Blocks as many as 16 sequences of 4096 would have, work for one and fifteen of 64.
  std::vector<std::int64_t> uneven(15, 64), even(16, 4096);
  uneven.push_back(4096);
  const Attention sparse = packed_op(uneven), full = packed_op(even);
  EXPECT_EQ(multiplying_launch(lower(sparse, gpu, Software{})).blocks(),
            multiplying_launch(lower(full, gpu, Software{})).blocks());
  EXPECT_LT(microseconds_of(sparse, gpu), 0.2 * microseconds_of(full, gpu));
  // They are not free either.
  EXPECT_GT(microseconds_of(sparse, gpu), microseconds_of(packed_op({4096}), gpu));
}

TEST(PackedAttention, engines_agree) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  for (const bool backward : {false, true})
    for (const auto& lengths :
         std::vector<std::vector<std::int64_t>>{{4096}, std::vector<std::int64_t>(16, 512), {3000, 100, 996}}) {
      const Attention op = packed_op(lengths, backward);
      EXPECT_NEAR(microseconds_of(op, gpu, "simulate") / microseconds_of(op, gpu), 1.0, kBetweenEngines)
          << lengths.size() << (backward ? " backward" : "");
    }
}

TEST(PackedAttention, takes_no_mask_no_other_backend_and_no_other_sum) {
  Attention other = packed_op({512, 512});
  other.backend = AttentionBackend::cudnn;
  EXPECT_THAT(refused(other), HasSubstr("packed sequences need FlashAttention"));
  Attention masked = packed_op({512, 512});
  masked.bias = true;
  EXPECT_THAT(refused(masked), HasSubstr("without a mask"));
  Attention more = packed_op({512, 512});
  more.seq_q = 2048;
  EXPECT_THAT(refused(more), HasSubstr("have 1024 tokens in all, a row has 2048 queries and 1024 keys"));
  EXPECT_EQ(refused(packed_op({512, 512})), "");
}

}  // namespace
}  // namespace ridgeline
