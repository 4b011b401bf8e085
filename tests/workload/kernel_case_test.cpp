#include "sim/workload/kernel_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string mistake_in_case(const char* text) {
  try {
    kernel_case_from(json::parse(text));
  } catch (const KernelCaseError& e) {
    return e.what();
  }
  return "no mistake was found";
}

TEST(KernelCase, AMatrixProductKeepsItsShapeLayoutAndType) {
  const KernelCase c = kernel_case_from(
      json::parse(R"({"op":"mm","dtype":"bf16","params":{"m":2,"n":3,"k":4,"layout":"tn"},"input_sets":7})"));
  EXPECT_EQ(std::get<Matmul>(c.op), (Matmul{DType::bf16, 1, 2, 3, 4, Layout::tn, false}));
  EXPECT_EQ(c.input_sets, 7);
  EXPECT_EQ(c.shared_operand, -1);
}

TEST(KernelCase, CastGoesUpFromSixteenBitsAndDownFromThirtyTwo) {
  EXPECT_EQ(std::get<Pointwise>(
                kernel_case_from(json::parse(R"({"op":"cast","dtype":"bf16","params":{"rows":2,"cols":2}})")).op)
                .output,
            DType::fp32);
  EXPECT_EQ(std::get<Pointwise>(
                kernel_case_from(json::parse(R"({"op":"cast","dtype":"fp32","params":{"rows":2,"cols":2}})")).op)
                .output,
            DType::bf16);
}

TEST(KernelCase, AWholeNumberWrittenAsFloatIsTaken) {
  EXPECT_EQ(
      std::get<Copy>(kernel_case_from(json::parse(R"({"op":"copy","dtype":"fp32","params":{"elements":1e6}})")).op)
          .cols,
      1000000);
}

TEST(KernelCase, MistakesNameTheOpTheParameterAndTheNearestName) {
  EXPECT_THAT(mistake_in_case(R"({"op":"sofmax","params":{"rows":1,"cols":1}})"), HasSubstr("did you mean softmax?"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"fp32","params":{"m":1,"n":1}})"),
              HasSubstr("mm: parameter k is missing"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"fp32","m":1,"n":1,"k":1})"),
              HasSubstr("they stand in an object \"params\""));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"fp32","params":{"m":0,"n":1,"k":1}})"),
              HasSubstr("m must be at least 1, got 0"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"fp32","params":{"m":-5,"n":1,"k":1}})"), HasSubstr("got -5"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"fp32","params":{"m":1.5,"n":1,"k":1}})"),
              HasSubstr("whole number, got 1.5"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"fp32","params":{"m":1,"n":1,"k":1,"leyout":"nn"}})"),
              HasSubstr("did you mean layout?"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"fp32","params":{"m":1,"n":1,"k":1,"layout":"xx"}})"),
              HasSubstr("nn, nt or tn"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"int4","params":{"m":1,"n":1,"k":1}})"),
              HasSubstr("bf16, fp16, tf32 or fp32"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","dtype":"fp32","params":{"m":4398046511104,"n":4398046511104,"k":1}})"),
              HasSubstr("too large for any GPU"));
  EXPECT_THAT(mistake_in_case(
                  R"({"op":"flash_attention","dtype":"fp32","params":{"batch":1,"heads":1,"seq":1,"head_dim":64}})"),
              HasSubstr("fp16 and bf16 only"));
  EXPECT_THAT(mistake_in_case(R"({"op":"gelu","dtype":"fp32","params":{"rows":1,"cols":1},"input_sets":0})"),
              HasSubstr("input_sets"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","params":{"m":1,"n":2,"k":3},"input_sets":2,"shared_operand":"c"})"),
              HasSubstr("shared_operand must be a or b"));
  EXPECT_THAT(mistake_in_case(R"({"op":"mm","params":{"m":1,"n":2,"k":3},"shared_operand":"a"})"),
              HasSubstr("products with input_sets"));
  EXPECT_THAT(mistake_in_case(R"([1,2])"), HasSubstr("JSON object"));
  EXPECT_THAT(mistake_in_case(R"({"dtype":"fp32"})"), HasSubstr("op is missing"));
}

TEST(KernelCase, ConvolutionsHaveBoundsThatTheMistakeNames) {
  const auto with = [](const char* key, const char* value, const char* op = "conv2d") {
    json params{{"batch", 2}, {"in_channels", 3}, {"size", 8}, {"out_channels", 4}, {"kernel", 3}, {"stride", 1}};
    params[key] = json::parse(value);
    return mistake_in_case(json{{"op", op}, {"params", params}}.dump().c_str());
  };
  EXPECT_EQ(with("stride", "16384"), "no mistake was found");
  for (const char* op : {"conv2d", "conv2d_backward"}) {
    EXPECT_THAT(with("stride", "4294967296", op), HasSubstr("stride must be 1 to 16384, got 4294967296"));
    EXPECT_THAT(with("kernel", "16385", op), HasSubstr("kernel must be 1 to 16384"));
    EXPECT_THAT(with("size", "2097152", op), HasSubstr("size must be 1 to 1048576"));
    EXPECT_THAT(with("batch", "4000000000000", op), HasSubstr("input of"));
    EXPECT_THAT(with("out_channels", "4000000000000", op), HasSubstr("too large for any GPU"));
    EXPECT_THAT(with("stride", "-1", op), HasSubstr("stride must be at least 1"));
  }
}

}  // namespace
}  // namespace ridgeline
