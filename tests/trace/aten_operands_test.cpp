// What an operation of a dispatcher call reads and writes: bytes of its operands, which the L2 and the DRAM then hold.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/support/aten_example.h"

namespace ridgeline::trace {
namespace {

/// "128 16 > 64; …" of each operation.
std::string moved(const std::string& name, std::vector<Argument> inputs) {
  const auto ops = map_aten(call_of({name, std::move(inputs), ""}), {});
  if (!ops) return "not understood";
  const auto bytes = [](const std::vector<AtenTensor>& tensors) {
    std::vector<std::int64_t> all;
    for (const AtenTensor& one : tensors) all.push_back(one.bytes());
    return fmt::format("{}", fmt::join(all, " "));
  };
  std::string text;
  for (const MappedOp& one : *ops)
    text += fmt::format("{}{} > {}", text.empty() ? "" : "; ", bytes(one.inputs), bytes(one.outputs));
  return text;
}

// kX has 4 x 8 numbers of 4 bytes.
TEST(AtenOperands, OfReductionsAreTheWholeAndWhatIsKept) {
  EXPECT_EQ(moved("sum", {kX}), "128 > 4");
  EXPECT_EQ(moved("sum", {kX, Numbers{1}}), "128 > 16");
  EXPECT_EQ(moved("sum", {kX, Numbers{0}}), "128 > 32");
  EXPECT_EQ(moved("mean", {half({4, 8}), Numbers{-1}}), "64 > 8");
  EXPECT_EQ(moved("argmax", {kX, 1.0}), "128 > 16");
  EXPECT_EQ(moved("cumsum", {mask({4, 8}), 1.0}), "32 > 256") << "counted in whole numbers of 8 bytes";
  EXPECT_EQ(moved("linalg_vector_norm", {kX, 2.0}), "128 > 4");
}

TEST(AtenOperands, OfLossesAreScoresClassesAndOneNumber) {
  EXPECT_EQ(moved("nll_loss_forward", {kX, indices({4})}), "128 32 > 4");
  EXPECT_EQ(moved("nll_loss_backward", {tensor({}), kX, indices({4})}), "4 32 > 128");
  EXPECT_EQ(moved("mse_loss", {kX, kX, 1.0}), "128 128 > 128; 128 > 4");
  EXPECT_EQ(moved("mse_loss", {kX, kX, 0.0}), "128 128 > 128");
}

// Rows of 8 numbers of 2 bytes, four tokens.
TEST(AtenOperands, OfServingKernelsAreInTheOrderOfTheirArguments) {
  const AtenTensor x = half({4, 8}), weight = half({8}), wide = half({4, 16});
  EXPECT_EQ(moved("_C::rms_norm", {x, wide, weight}), "128 16 > 64") << "the result comes first";
  EXPECT_EQ(moved("_C::fused_add_rms_norm", {x, wide, weight}), "64 128 16 > 64 128");
  EXPECT_EQ(moved("_C::silu_and_mul", {x, wide}), "128 > 64");
  EXPECT_EQ(moved("_C::silu_and_mul", {x, x}), "not understood");
  EXPECT_EQ(moved("_C::static_scaled_fp8_quant", {tensor({4, 8}), x, tensor({1})}), "64 > 128");
  EXPECT_EQ(moved("_C::static_scaled_fp8_quant", {wide, x, tensor({1})}), "not understood");
  EXPECT_EQ(moved("_C::rotary_embedding", {indices({4}), wide, x, 8.0, half({100, 8})}), "128 64 64 > 128 64");
  EXPECT_EQ(moved("_C::rotary_embedding", {indices({4}), wide, kLeftOut, 8.0, half({100, 8})}), "128 64 > 128");
  EXPECT_EQ(moved("_C_cache_ops::reshape_and_cache", {x, wide, tensor({9}), tensor({9}), indices({4})}),
            "64 128 > 128 256");
}

// A row a token, as wide as what is done to it.
TEST(AtenOperands, RowsOfServingKernelsAreTokens) {
  EXPECT_EQ(described({"_C::rotary_embedding", {indices({4}), half({4, 16}), half({4, 8}), 8.0, half({100, 8})}, ""}),
            "triton_per_fused_rotary_embedding 4x24 bf16, 3 in, 2 out");
  EXPECT_EQ(described({"_C::rotary_embedding", {indices({4}), half({4, 16}), kLeftOut, 8.0, half({100, 8})}, ""}),
            "triton_per_fused_rotary_embedding 4x16 bf16, 2 in, 1 out");
  EXPECT_EQ(described({"_C_cache_ops::reshape_and_cache", {half({4, 8}), half({4, 16}), tensor({9})}, ""}),
            "triton_per_fused_reshape_and_cache 4x24 bf16, 2 in, 2 out");
}

TEST(AtenOperands, OfRowsThatAreLookedUpAreTheTableAndTheIndices) {
  EXPECT_EQ(moved("embedding", {tensor({100, 8}), indices({2, 6})}), "3200 96 > 384");
  EXPECT_EQ(moved("index_select", {tensor({100, 8}), 0.0, indices({12})}), "384 > 384");
  EXPECT_EQ(moved("native_layer_norm", {kX, Numbers{8}, tensor({8}), tensor({8}), 1e-5}), "128 32 32 > 128 16 16");
  EXPECT_EQ(moved("_softmax", {half({4, 8}), 1.0, 0.0}), "64 > 64");
  EXPECT_EQ(moved("_log_softmax", {half({4, 8}), 1.0, 1.0}), "64 > 128") << "in fp32, as it was asked";
}

TEST(AtenOperands, OfProductsAreBothFactorsAndTheResult) {
  EXPECT_EQ(moved("mm", {tensor({4, 8}), tensor({8, 3})}), "128 96 > 48");
  EXPECT_EQ(moved("bmm", {half({2, 4, 8}), half({2, 8, 3})}), "128 96 > 48");
  EXPECT_EQ(moved("addmm", {tensor({3}), tensor({4, 8}), tensor({8, 3}), 1.0, 1.0}), "128 96 12 > 48");
  EXPECT_EQ(moved("mm", {tensor({4, 8}), tensor({7, 3})}), "not understood") << "inner sides differ";
}

}  // namespace
}  // namespace ridgeline::trace
