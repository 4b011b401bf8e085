// Arguments of operators as PyTorch's profiler spells them, whole and damaged.
#include "sim/trace/profiler/profiler_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Argument> arguments_in(const std::string& json, Defects& defects) {
  return profiler_arguments(json, DType::bf16, "trace.json:1", defects);
}
std::vector<Argument> arguments_in(const std::string& json) {
  Defects defects;
  const std::vector<Argument> arguments = arguments_in(json, defects);
  EXPECT_THAT(defects.counts, IsEmpty()) << json;
  return arguments;
}
const AtenTensor& tensor_at(const std::vector<Argument>& arguments, std::size_t i) {
  return std::get<AtenTensor>(arguments.at(i));
}

TEST(ProfilerArguments, NumbersFlagsListsAndWords) {
  const std::vector<std::pair<std::string, Argument>> cases{{"3", 3.0},
                                                            {"-2.5", -2.5},
                                                            {" 7 ", 7.0},
                                                            {"True", 1.0},
                                                            {"False", 0.0},
                                                            {"true", 1.0},
                                                            {"false", 0.0},
                                                            {"", std::monostate{}},
                                                            {"None", std::monostate{}},
                                                            {"   ", std::monostate{}},
                                                            {"[1, 2]", Numbers{1, 2}},
                                                            {"[ 1,2 ,3 ]", Numbers{1, 2, 3}},
                                                            {"[]", Numbers{}},
                                                            {"[True, False]", Numbers{1, 0}},
                                                            {"[1, x]", std::monostate{}},
                                                            {"[1, ]", Numbers{1}},
                                                            {"[1", std::string("[1")},
                                                            {"1]", std::string("1]")},
                                                            {"tanh", std::string("tanh")},
                                                            {"12abc", std::string("12abc")},
                                                            {"nan", std::string("nan")},
                                                            {"inf", std::string("inf")},
                                                            {"1e999", std::string("1e999")}};
  for (const auto& [text, expected] : cases) {
    const Argument found = value_from_text(text);
    ASSERT_EQ(found.index(), expected.index()) << text;
    if (const auto* number = std::get_if<double>(&expected)) {
      EXPECT_EQ(std::get<double>(found), *number) << text;
    }
    if (const auto* list = std::get_if<Numbers>(&expected)) {
      EXPECT_EQ(std::get<Numbers>(found), *list) << text;
    }
    if (const auto* word = std::get_if<std::string>(&expected)) {
      EXPECT_EQ(std::get<std::string>(found), *word) << text;
    }
  }
}

TEST(ProfilerArguments, NoTensorIsLargerThanAnyDevice) {
  constexpr std::int64_t kMost = std::int64_t{1} << 46, kHalf = std::int64_t{1} << 23;
  for (const std::vector<std::int64_t>& sizes : std::vector<std::vector<std::int64_t>>{
           {}, {0}, {1}, {kMost}, {kHalf, kHalf}, {kMost, 1, 1}, {0, kMost}, {kMost, 0}, {4, 0, 5}})
    EXPECT_NO_THROW(check_sizes(sizes, "f")) << ::testing::PrintToString(sizes);
  for (const std::vector<std::int64_t>& sizes : std::vector<std::vector<std::int64_t>>{
           {-1}, {3, -1}, {kMost + 1}, {kHalf, kHalf + 1}, {kMost, 2}, {kMost, 0, 2}, {2, kMost}})
    EXPECT_THROW(check_sizes(sizes, "f"), UserError) << ::testing::PrintToString(sizes);
}

TEST(ProfilerArguments, TensorsNumbersAndWordsStandInTheirPlaces) {
  const auto arguments = arguments_in(
      R"({"Input Dims":[[4,8],[],[8]],"Input type":["float","Scalar","c10::Half"],"Input Strides":[[8,1],[],[2]],
          "Concrete Inputs":["","2.5",""]})");
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_THAT(tensor_at(arguments, 0).sizes, ElementsAre(4, 8));
  EXPECT_THAT(tensor_at(arguments, 0).strides, ElementsAre(8, 1));
  EXPECT_EQ(tensor_at(arguments, 0).type, DType::fp32);
  EXPECT_EQ(std::get<double>(arguments[1]), 2.5);
  EXPECT_THAT(tensor_at(arguments, 2).strides, ElementsAre(2));
  EXPECT_EQ(tensor_at(arguments, 2).type, DType::fp16);
}

TEST(ProfilerArguments, OlderSpellingsAreReadToo) {
  const auto arguments = arguments_in(
      R"({"Input dims":[[4],[]],"Input types":["float",""],"Input strides":[[3]],"Concrete inputs":["","True"]})");
  ASSERT_EQ(arguments.size(), 2u);
  EXPECT_THAT(tensor_at(arguments, 0).sizes, ElementsAre(4));
  EXPECT_THAT(tensor_at(arguments, 0).strides, ElementsAre(3));
  EXPECT_EQ(std::get<double>(arguments[1]), 1.0);
}

TEST(ProfilerArguments, ListsThatAreShorterLeaveTheRestEmpty) {
  const auto more_types = arguments_in(R"({"Input Dims":[[4]],"Input type":["float","float","Scalar"]})");
  ASSERT_EQ(more_types.size(), 3u);
  EXPECT_THAT(tensor_at(more_types, 0).sizes, ElementsAre(4));
  EXPECT_THAT(tensor_at(more_types, 1).sizes, IsEmpty());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(more_types[2]));
  const auto more_dims = arguments_in(R"({"Input Dims":[[4],[5]],"Input type":["float"]})");
  ASSERT_EQ(more_dims.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(more_dims[1]));
  EXPECT_THAT(arguments_in(""), IsEmpty());
  EXPECT_THAT(arguments_in("{}"), IsEmpty());
}

TEST(ProfilerArguments, StridesOfAnotherNumberThanSizesAreNone) {
  const auto arguments =
      arguments_in(R"({"Input Dims":[[4,8],[3]],"Input type":["float","float"],"Input Strides":[[1],[2,1]]})");
  EXPECT_THAT(tensor_at(arguments, 0).strides, IsEmpty());
  EXPECT_THAT(tensor_at(arguments, 1).strides, IsEmpty());
  EXPECT_THAT(tensor_at(arguments, 1).sizes, ElementsAre(3));
}

TEST(ProfilerArguments, ListsOfTensorsHaveTheTypeOfLists) {
  for (const char* type : {"TensorList", "GenericList[Tensor]"}) {
    const auto arguments = arguments_in(std::string(R"({"Input type":[")") + type +
                                        R"("],"Input Dims":[[[4,8],[3]]],"Input Strides":[[[16,1],[2]]]})");
    const auto& list = std::get<TensorList>(arguments.at(0));
    ASSERT_EQ(list.size(), 2u);
    EXPECT_THAT(list[0].sizes, ElementsAre(4, 8));
    EXPECT_THAT(list[0].strides, ElementsAre(16, 1));
    EXPECT_THAT(list[1].sizes, ElementsAre(3));
    EXPECT_THAT(list[1].strides, ElementsAre(2));
    EXPECT_EQ(list[1].type, DType::bf16);
  }
  // Strides of fewer tensors say nothing of any; what is no list of sizes is no list of tensors.
  const auto fewer =
      arguments_in(R"({"Input type":["TensorList"],"Input Dims":[[[4,8],[3]]],"Input Strides":[[[16,1]]]})");
  EXPECT_THAT(std::get<TensorList>(fewer.at(0)).at(0).strides, IsEmpty());
  const auto none = arguments_in(R"({"Input type":["TensorList"],"Input Dims":[[4,8]]})");
  EXPECT_THAT(std::get<TensorList>(none.at(0)), IsEmpty());
  EXPECT_THAT(std::get<TensorList>(arguments_in(R"({"Input type":["TensorList"]})").at(0)), IsEmpty());
}

TEST(ProfilerArguments, DamageIsCounted) {
  Defects defects;
  EXPECT_THAT(arguments_in("{\"Input Dims\":", defects), IsEmpty());
  EXPECT_EQ(defects.counts.size(), 1u);
  const auto arguments = arguments_in(R"({"Input Dims":[[4],[5]],"Input type":["quaternion","float"]})", defects);
  EXPECT_EQ(defects.counts.size(), 2u);
  ASSERT_EQ(arguments.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(arguments[0]));
  EXPECT_THAT(tensor_at(arguments, 1).sizes, ElementsAre(5));
}

TEST(ProfilerArguments, StoragesAreReadWhereTheyAreWhole) {
  AtenCall call;
  read_storages(R"({"Storages":{"reads":[[0,8,16],[3,0,70368744177664],[1,2],[1,2,3,4],[-1,2,3],[1,-2,3],
                                        [1,2,70368744177665]],"writes":[[5,6,7]]}})",
                call);
  ASSERT_EQ(call.reads.size(), 2u);
  EXPECT_EQ(call.reads[0].storage, 0);
  EXPECT_EQ(call.reads[0].bytes, 8);
  EXPECT_EQ(call.reads[0].whole, 16);
  EXPECT_EQ(call.reads[1].storage, 3);
  EXPECT_EQ(call.reads[1].whole, std::int64_t{1} << 46);
  ASSERT_EQ(call.writes.size(), 1u);
  EXPECT_EQ(call.writes[0].storage, 5);
  AtenCall without;
  for (const char* json : {"{}", R"({"Storages":3})", R"({"Storages":{}})", "{\"Storages\":"})
    read_storages(json, without);
  EXPECT_TRUE(without.reads.empty() && without.writes.empty());
}

}  // namespace
}  // namespace ridgeline::trace
