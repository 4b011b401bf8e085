// A page is its template with the data in it, whatever the data says.
#include "sim/report/page/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

/// What stands before and behind the data.
std::pair<std::string, std::string> page_around() {
  const std::string text = page("@nothing else says this@"), data = "\"@nothing else says this@\"";
  const std::size_t at = text.find(data);
  EXPECT_NE(at, text.npos);
  EXPECT_EQ(text.find(data, at + 1), text.npos);
  return {text.substr(0, at), text.substr(at + data.size())};
}

bool page_was_built() {
  try {
    (void)page({});
    return true;
  } catch (const UserError&) {
    return false;
  }
}

TEST(Page, IsTheTemplateWithTheDataInOnePlace) {
  if (!page_was_built()) GTEST_SKIP() << "built without npm's packages";
  const auto [before, after] = page_around();
  EXPECT_TRUE(before.starts_with("<!doctype html>") || before.starts_with("<!DOCTYPE html>")) << before.substr(0, 40);
  EXPECT_NE(before.find("<script"), before.npos);
  EXPECT_EQ(before.find("/*DATA*/"), before.npos);
  EXPECT_NE(after.find("</script>"), after.npos);
  EXPECT_TRUE(after.ends_with("</html>\n") || after.ends_with("</html>")) << after.substr(after.size() - 40);
  const ordered_json data{{"title", "a step"}, {"parts", {1, 2.5, nullptr}}};
  EXPECT_EQ(page(data), before + R"({"title":"a step","parts":[1,2.5,null]})" + after);
  EXPECT_EQ(page(ordered_json::object()), before + "{}" + after);
}

// "</script" would end the element, and "<!--" hide its end.
TEST(Page, DataCannotEndTheElementThatItStandsIn) {
  if (!page_was_built()) GTEST_SKIP() << "built without npm's packages";
  const auto [before, after] = page_around();
  EXPECT_EQ(page({{"title", "<a></script><!--<b"}}),
            before + R"({"title":"\u003ca>\u003c/script>\u003c!--\u003cb"})" + after);
  EXPECT_EQ(page("<"), before + R"("\u003c")" + after);
  EXPECT_EQ(page("a<<"), before + R"("a\u003c\u003c")" + after);
}

TEST(Page, OtherLanguagesStayAndBytesThatAreNoTextAreReplaced) {
  if (!page_was_built()) GTEST_SKIP() << "built without npm's packages";
  const auto [before, after] = page_around();
  EXPECT_EQ(page("µs \xff"), before + "\"µs \xef\xbf\xbd\"" + after);
}

}  // namespace
}  // namespace ridgeline
