#include <gtest/gtest.h>

#include <numeric>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/families.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

const Gpu& h200() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}
LoweredOp foreach_op(MultiTensorFunction function, std::vector<std::int64_t> sizes) {
  MultiTensor op{.function = function, .sizes = std::make_shared<std::vector<std::int64_t>>(std::move(sizes))};
  return lower_multi_tensor(op, h200(), Software{});
}
constexpr std::int64_t kChunk = 65536;

TEST(MultiTensor, launches_end_when_their_blocks_are_used_up) {
  EXPECT_EQ(foreach_op(MultiTensorFunction::mul, {320 * kChunk}).launches.size(), 1u);
  EXPECT_EQ(foreach_op(MultiTensorFunction::mul, {320 * kChunk + 1}).launches.size(), 2u);
}

TEST(MultiTensor, launches_end_when_their_tensors_are_used_up) {
  EXPECT_EQ(foreach_op(MultiTensorFunction::mul, std::vector<std::int64_t>(110, 8)).launches.size(), 1u);
  EXPECT_EQ(foreach_op(MultiTensorFunction::mul, std::vector<std::int64_t>(111, 8)).launches.size(), 2u);
  EXPECT_EQ(foreach_op(MultiTensorFunction::fused_adamw, std::vector<std::int64_t>(36, 8)).launches.size(), 1u);
  EXPECT_EQ(foreach_op(MultiTensorFunction::fused_adamw, std::vector<std::int64_t>(37, 8)).launches.size(), 2u);
}

TEST(MultiTensor, a_tensor_cut_by_a_full_launch_opens_the_next_one) {
  // 321 chunks then 109 small tensors: the rest of the first tensor and 109 others make 110.
  std::vector<std::int64_t> sizes(110, 8);
  sizes[0] = 321 * kChunk;
  const LoweredOp lowered = foreach_op(MultiTensorFunction::mul, sizes);
  ASSERT_EQ(lowered.launches.size(), 2u);
  EXPECT_EQ(lowered.launches[1].grid[0], 110);
  sizes.push_back(8);
  EXPECT_EQ(foreach_op(MultiTensorFunction::mul, sizes).launches.size(), 3u);
}

TEST(MultiTensor, more_launches_than_a_prediction_holds_are_refused_before_they_are_listed) {
  const std::int64_t too_many = 320 * kChunk * 5'000'000;
  EXPECT_THROW(foreach_op(MultiTensorFunction::mul, {too_many}), UserError);
  EXPECT_THROW(foreach_op(MultiTensorFunction::norm, std::vector<std::int64_t>(30, too_many)), UserError);
}

TEST(MultiTensor, empty_tensors_take_no_place) {
  std::vector<std::int64_t> sizes(200, 0);
  sizes[7] = 5;
  const LoweredOp lowered = foreach_op(MultiTensorFunction::mul, sizes);
  ASSERT_EQ(lowered.launches.size(), 1u);
  EXPECT_EQ(lowered.launches[0].grid[0], 1);
}

TEST(MultiTensor, every_element_is_swept_once) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 1; i < 400; ++i) sizes.push_back(i * i * 37 % 900000 + 1);
  const double elements = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  double read = 0.0;
  for (const auto& launch : foreach_op(MultiTensorFunction::mul, sizes).launches) read += launch.read_bytes();
  EXPECT_DOUBLE_EQ(read, 4.0 * elements);
}

TEST(MultiTensor, norms_clear_their_partial_sums_first_and_add_them_up_last) {
  const LoweredOp lowered = foreach_op(MultiTensorFunction::norm, std::vector<std::int64_t>(150, 1 << 20));
  ASSERT_EQ(lowered.launches.size(), 10u);
  EXPECT_EQ(lowered.launches.front().name, "fill");
  EXPECT_EQ(lowered.launches.back().name, "lpnorm_cleanup");
  EXPECT_EQ(lowered.launches.back().grid[0], 150);
}

/// Parameter tensors of a GPT-2 of 12 layers (width 768, vocabulary 50257) in the order of its optimizer groups.
TEST(MultiTensor, gpt2_takes_six_and_two_launches_a_foreach_op_and_bert_large_seventeen) {
  std::vector<std::int64_t> decayed{50257 * 768, 1024 * 768};
  for (int layer = 0; layer < 12; ++layer)
    decayed.insert(decayed.end(), {768 * 2304, 768 * 768, 768 * 3072, 3072 * 768});
  EXPECT_EQ(foreach_op(MultiTensorFunction::mul, decayed).launches.size(), 6u);

  std::vector<std::int64_t> bert{30522 * 1024, 512 * 1024, 2 * 1024, 1024, 1024};
  for (int layer = 0; layer < 24; ++layer) {
    for (int i = 0; i < 4; ++i) bert.insert(bert.end(), {1024 * 1024, 1024});
    bert.insert(bert.end(), {1024, 1024, 4096 * 1024, 4096, 4096 * 1024, 1024, 1024, 1024});
  }
  bert.insert(bert.end(), {1024 * 1024, 1024, 2 * 1024, 2});
  EXPECT_EQ(bert.size(), 393u);
  EXPECT_EQ(foreach_op(MultiTensorFunction::mul, bert).launches.size(), 17u);
  EXPECT_EQ(foreach_op(MultiTensorFunction::norm, bert).launches.size(), 19u);
}

TEST(MultiTensor, tensors_whose_size_is_no_multiple_of_a_vector_go_without_and_take_longer) {
  const auto work = [](std::vector<std::int64_t> sizes) {
    return std::get<MemoryBoundWork>(foreach_op(MultiTensorFunction::add, std::move(sizes)).launches.at(0).work);
  };
  const MemoryBoundWork vectors = work({4096, 4096}), without = work({4096, 4095});
  EXPECT_EQ(vectors.padded_elements, 0.0);
  EXPECT_EQ(without.padded_elements, 4095.0);
  EXPECT_EQ(without.elements, 4096.0);
  EXPECT_EQ(vectors.iterations, 2.0);
  EXPECT_GT(without.iterations, vectors.iterations);
  // The last chunk of a large tensor, and the chunks before it, have vectors or not by the tensor's whole size.
  EXPECT_EQ(work({kChunk + 2}).padded_elements, static_cast<double>(kChunk + 2));
}

TEST(MultiTensor, a_pass_begun_is_a_pass) {
  const auto passes = [](std::int64_t size) {
    return std::get<MemoryBoundWork>(foreach_op(MultiTensorFunction::mul, {size}).launches.at(0).work).iterations;
  };
  EXPECT_EQ(passes(4), 1.0);
  EXPECT_EQ(passes(2048), 1.0);
  EXPECT_EQ(passes(2052), 2.0);
  EXPECT_EQ(passes(kChunk), 32.0);
}

}  // namespace
}  // namespace ridgeline
