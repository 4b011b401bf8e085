// A recorded call of scaled_dot_product_attention on GPUs whose backends differ.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/answer/replay.h"
#include "sim/scenario/scenario.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::replayed_attention_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// One call forward and backward, without a choice of kernel: 8 query heads of 64, 512 positions, a mask.
std::string recording(int key_heads, const std::string& name) {
  const auto tensor = [](int heads) { return fmt::format(R"({{"type":"bf16","sizes":[2,{},512,64]}})", heads); };
  const std::string q = tensor(8), k = tensor(key_heads),
                    mask = R"({"type":"bf16","sizes":[2,8,512,512],"strides":[262144,0,512,1]})",
                    statistics = R"({"type":"fp32","sizes":[2,8,512]})";
  const std::string path = temporary_path(name);
  std::ofstream(path)
      << R"({"ridgeline":"op-trace","version":1,"precision":"bf16","parameters":0})"
      << "\n"
      << "{\"record\":\"step\"}\n"
      << fmt::format(
             R"({{"record":"aten","name":"ridgeline::attention","phase":"forward","in":[{0},{1},{1},{2},0.0,false,)"
             R"(false],"out":[{0},{3}]}})",
             q, k, mask, statistics)
      << "\n"
      << fmt::format(
             R"({{"record":"aten","name":"ridgeline::attention_backward","phase":"backward","in":[{0},{0},{1},{1},)"
             R"({0},{3},0.0,false,{2},false],"out":[{0},{1},{1}]}})",
             q, k, mask, statistics)
      << "\n{\"record\":\"end\"}\n";
  return path;
}
Prediction on(const char* gpu, int key_heads) {
  return predict_replay(
             load_scenario({.file = {},
                            .text = fmt::format("hardware: {}\ntrace: {}\n", gpu,
                                                recording(key_heads, fmt::format("heads{}.jsonl", key_heads))),
                            .text_name = "replayed.yaml",
                            .overrides = {}}),
             "analytic")
      .prediction;
}
std::vector<std::string> names(const Prediction& prediction) {
  std::vector<std::string> names;
  for (const auto& kernel : prediction.kernels) names.push_back(kernel.name);
  return names;
}

TEST(ReplayedAttention, grouped_keys_beside_a_mask_run_where_the_gpu_has_a_backend_for_them) {
  EXPECT_THAT(names(on("nvidia-h200-sxm-141gb", 2)), Contains(HasSubstr("cudnn_sdpa")));
  const Prediction ampere = on("nvidia-a100-sxm4-80gb", 2);
  EXPECT_THAT(names(ampere), Contains(HasSubstr("gemm")));
  EXPECT_THAT(names(ampere), Not(Contains(HasSubstr("fmha"))));
  EXPECT_THAT(ampere.notes, Contains(HasSubstr("replaced by math_attention")));
  EXPECT_THAT(names(on("nvidia-a100-sxm4-80gb", 8)), Contains(HasSubstr("fmha")));
}

// The matmuls of the math path are in fp32: without tensor cores it takes several times as long as a fused kernel.
TEST(ReplayedAttention, without_a_fused_backend_a_call_takes_longer) {
  EXPECT_GT(on("nvidia-a100-sxm4-80gb", 2).step.gpu_busy.value(),
            1.5 * on("nvidia-a100-sxm4-80gb", 8).step.gpu_busy.value());
}

}  // namespace
}  // namespace ridgeline::replayed_attention_test
