// JSON as text reads back as what was written.
#include "sim/report/json_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace ridgeline {
namespace {

TEST(JsonText, ReadsBack) {
  std::string text;
  {
    JsonObject object(text);
    object.add("whole", std::int64_t{-7}).add("large", std::numeric_limits<std::uint64_t>::max()).add("yes", true);
    object.add("small", 1.0 / 3.0).add("huge", 1.5e300).add("none", std::numeric_limits<double>::infinity());
    object.add("name", std::string("a \"quoted\"\\ \n µ \x01")).add("null", nullptr);
    object.add_members(R"("more":[1,2])");
    object.add_with("inner", [](std::string& out) { JsonObject(out).add("a", 1).add("b", "c"); });
    object.add_with("empty", [](std::string& out) { const JsonObject inner(out); });
  }
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["whole"], -7);
  EXPECT_EQ(json["large"], std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json["yes"], true);
  EXPECT_EQ(json["small"].get<double>(), 1.0 / 3.0);
  EXPECT_EQ(json["huge"].get<double>(), 1.5e300);
  EXPECT_TRUE(json["none"].is_null() && json["null"].is_null());
  EXPECT_EQ(json["name"], "a \"quoted\"\\ \n µ \x01");
  EXPECT_EQ(json["more"], nlohmann::json::array({1, 2}));
  EXPECT_EQ(json["inner"]["b"], "c");
  EXPECT_TRUE(json["empty"].is_object());
}

TEST(JsonText, BytesThatAreNoTextAreReplaced) {
  std::string text;
  append_json(text, std::string_view("a\xff\xfez"));
  EXPECT_EQ(nlohmann::json::parse(text).get<std::string>(), "a\xef\xbf\xbd\xef\xbf\xbdz");
}

}  // namespace
}  // namespace ridgeline
