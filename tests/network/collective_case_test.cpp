// Lines of collectives: what they mean, and what people are told of those that cannot be.
#include "sim/network/collective_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/network/load_cluster.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string mistake_in_case(const char* line, const char* cluster = "hgx-h200") {
  try {
    (void)collective_case_from(nlohmann::json::parse(line), load_cluster(cluster));
  } catch (const CollectiveCaseError& error) {
    return error.what();
  }
  return "none";
}

TEST(CollectiveCase, gpus_are_those_of_a_node_or_of_all_nodes) {
  const Cluster cluster = load_cluster("p4de");
  const auto of = [&](const char* line) { return collective_case_from(nlohmann::json::parse(line), cluster); };
  const CollectiveCase one = of(R"({"op":"all_reduce","bytes":1024,"gpus":4,"nodes":1,"dtype":"bf16"})");
  EXPECT_EQ(one.collective.ranks, 4);
  EXPECT_EQ(one.collective.type, DType::bf16);
  const CollectiveCase two = of(R"({"op":"all_gather","bytes":1024,"gpus":8,"nodes":2})");
  EXPECT_EQ(two.collective.ranks, 16);
  EXPECT_EQ(two.placement.nodes, 2);
  EXPECT_EQ(of(R"({"op":"all_gather","bytes":1024,"gpus":16,"nodes":2})").placement, two.placement);
  EXPECT_EQ(of(R"({"op":"all_gather","bytes":1024})").collective.ranks, 8);
}

TEST(CollectiveCase, mistakes_are_told_in_words) {
  EXPECT_THAT(mistake_in_case(R"({"op":"allreduce","bytes":1})"),
              AllOf(HasSubstr("allreduce"), HasSubstr("did you mean all_reduce?")));
  EXPECT_THAT(mistake_in_case(R"({"op":"all_reduce"})"), HasSubstr("bytes: missing"));
  EXPECT_THAT(mistake_in_case(R"({"op":"all_reduce","bytes":-1})"), HasSubstr("bytes: expected a whole number"));
  EXPECT_THAT(mistake_in_case(R"({"op":"all_reduce","bytes":1.5})"), HasSubstr("got 1.5"));
  EXPECT_THAT(mistake_in_case(R"({"op":"all_reduce","bytes":1e300})"), HasSubstr("bytes: expected a whole number"));
  EXPECT_THAT(mistake_in_case(R"({"op":"all_reduce","bytes":1,"gpus":9})"), HasSubstr("hgx-h200 has 8"));
  EXPECT_THAT(mistake_in_case(R"({"op":"all_reduce","bytes":1,"nodes":2})", "h200-x4"), HasSubstr("no NICs"));
  EXPECT_THAT(mistake_in_case(R"({"op":"all_reduce","bytes":1,"dtype":"fp7"})"), HasSubstr("dtype"));
  EXPECT_THAT(mistake_in_case(R"({"op":"all_reduce","bytes":1,"gpu":8})"), HasSubstr("did you mean gpus?"));
  EXPECT_THAT(mistake_in_case("[1]"), HasSubstr("JSON object"));
}

}  // namespace
}  // namespace ridgeline
