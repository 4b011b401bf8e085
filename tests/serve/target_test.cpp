#include "sim/serve/target.h"

#include <gtest/gtest.h>

#include "sim/units/user_error.h"

namespace ridgeline::serve {
namespace {

TEST(Target, splits_path_and_parameters_and_decodes_them) {
  const Target target = parse_target("/api/predict?set=hardware.dram.bandwidth%3D4+TB%2Fs&set=a%3D1&engine=roofline#x");
  EXPECT_EQ(target.path, "/api/predict");
  EXPECT_EQ(target.all("set"), (std::vector<std::string>{"hardware.dram.bandwidth=4 TB/s", "a=1"}));
  EXPECT_EQ(target.get("engine"), "roofline");
  EXPECT_EQ(target.get("missing"), "");
}

TEST(Target, flags_and_numbers_are_read_or_refused) {
  const Target target = parse_target("/a?yes=1&no=false&odd=maybe&n=12&big=99999999999999999999&negative=-1");
  EXPECT_TRUE(target.flag("yes"));
  EXPECT_FALSE(target.flag("no"));
  EXPECT_FALSE(target.flag("missing"));
  EXPECT_THROW((void)target.flag("odd"), UserError);
  EXPECT_EQ(target.number("n"), 12u);
  EXPECT_EQ(target.number("missing"), std::nullopt);
  EXPECT_THROW((void)target.number("big"), UserError);
  EXPECT_THROW((void)target.number("negative"), UserError);
}

TEST(Target, broken_addresses_are_refused) {
  for (const char* text :
       {"", "api", "http://other/api", "/a%", "/a%2", "/a%zz", "/a%00", "/a%0d%0aHost:x", "/a?b=%0a"})
    EXPECT_THROW((void)parse_target(text), UserError) << text;
  std::string many = "/a?";
  for (std::size_t i = 0; i < kMostParameters; ++i) many += "p=1&";
  EXPECT_EQ(parse_target(many).parameters.size(), kMostParameters);
  EXPECT_THROW((void)parse_target(many + "p=1"), UserError);
}

TEST(Target, an_unknown_parameter_is_told_with_the_nearest) {
  const Target target = parse_target("/api/predict?engin=analytic");
  try {
    target.refuse_others({"engine", "set"});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean engine?"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ridgeline::serve
