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

TEST(Target, every_pair_of_digits_is_its_byte) {
  const std::string digits = "0123456789abcdefABCDEF";
  const auto value = [&](std::size_t i) { return i < 16 ? i : i - 6; };
  for (std::size_t high = 0; high < digits.size(); ++high)
    for (std::size_t low = 0; low < digits.size(); ++low) {
      const std::size_t byte = 16 * value(high) + value(low);
      const std::string text = std::string("/x?k=a%") + digits[high] + digits[low] + "z";
      if (byte < 0x20 || byte == 0x7f) {
        EXPECT_THROW((void)parse_target(text), UserError) << text;
      } else {
        EXPECT_EQ(parse_target(text).get("k"), std::string("a") + static_cast<char>(byte) + "z") << text;
      }
    }
  for (const char other : std::string("/:@G`g "))
    for (const std::string& text : {std::string("/%4") + other, std::string("/%") + other + "4"})
      EXPECT_THROW((void)parse_target(text), UserError) << text;
  for (const char* cut : {"/%", "/%4", "/a?b=%4", "/a?%"}) EXPECT_THROW((void)parse_target(cut), UserError) << cut;
  EXPECT_EQ(parse_target("/%41").path, "/A");
}

TEST(Target, a_plus_is_a_blank_in_parameters_alone) {
  const Target target = parse_target("/a+b?c+d=e+f%2Bg");
  EXPECT_EQ(target.path, "/a+b");
  EXPECT_EQ(target.get("c d"), "e f+g");
}

TEST(Target, parameters_are_pairs_with_and_without_values) {
  const Target target = parse_target("/?a&&b=&c==x&a=2&=y&");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(target.parameters, (Pairs{{"a", ""}, {"b", ""}, {"c", "=x"}, {"a", "2"}, {"", "y"}}));
  EXPECT_EQ(target.get("a"), "2") << "the last counts";
  EXPECT_EQ(target.all("a"), (std::vector<std::string>{"", "2"}));
  EXPECT_TRUE(parse_target("/a").parameters.empty());
  EXPECT_TRUE(parse_target("/a?").parameters.empty());
  EXPECT_EQ(parse_target("/a#b?c=d").path, "/a");
  EXPECT_TRUE(parse_target("/a#b?c=d").parameters.empty());
}

TEST(Target, flags_and_numbers_have_few_spellings) {
  for (const char* text : {"1", "true"}) EXPECT_TRUE(parse_target(std::string("/?f=") + text).flag("f")) << text;
  for (const char* text : {"0", "false", ""}) EXPECT_FALSE(parse_target(std::string("/?f=") + text).flag("f")) << text;
  for (const char* text : {"2", "yes", "True", "01"})
    EXPECT_THROW((void)parse_target(std::string("/?f=") + text).flag("f"), UserError) << text;
  EXPECT_EQ(parse_target("/?n=0").number("n"), 0u);
  EXPECT_EQ(parse_target("/?n=").number("n"), std::nullopt);
  EXPECT_EQ(parse_target("/?n=18446744073709551615").number("n"), 18446744073709551615u);
  for (const char* text : {"18446744073709551616", "1x", "x", "1.5", "%201"})
    EXPECT_THROW((void)parse_target(std::string("/?n=") + text).number("n"), UserError) << text;
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
