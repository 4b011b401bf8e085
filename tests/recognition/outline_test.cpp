#include "sim/recognition/outline.h"

#include <gtest/gtest.h>

#include "sim/recognition/file_kinds.h"

namespace ridgeline::recognition {
namespace {

TEST(Outline, OfJsonHasKeysAndTheirText) {
  const Outline keys = json_outline(R"({"a": {"b": [1, {"c": "x\"y"}]}, "d": null, "e": [{"f": 2}, {"g": 3}]})");
  EXPECT_EQ(keys.at("a"), "");
  EXPECT_EQ(keys.at("d"), "null");
  EXPECT_EQ(keys.at("e.[].f"), "2");
  EXPECT_FALSE(keys.contains("e.[].g")) << "elements behind the first are not looked at";
}

TEST(Outline, OfJsonThatIsCutOffAnywhereHasTheKeysBeforeTheCut) {
  const std::string whole = R"({"first": {"x": 1.5e3, "y": [true, "z"]}, "second": "text"})";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Outline keys = json_outline(std::string_view(whole).substr(0, length));
    EXPECT_EQ(keys.contains("first"), length > whole.find('{', 1)) << length;
  }
}

TEST(Outline, OfYamlFollowsIndentation) {
  const Outline keys =
      yaml_outline("# note\na:\n  b: 1  # one\n  c:\n    - d: 2\ne: {f: 3, g: [4, 5]}\nh: [ 1 ]\nno key\n");
  EXPECT_EQ(keys.at("a.b"), "1");
  EXPECT_EQ(keys.at("a.c.[].d"), "2");
  EXPECT_EQ(keys.at("e.f"), "3");
  EXPECT_TRUE(keys.contains("h"));
  EXPECT_FALSE(keys.contains("no key"));
}

TEST(FileKinds, HaveOneRowEachAndSayWhatToDo) {
  for (const FileKind& kind : file_kinds()) {
    EXPECT_EQ(&file_kind(kind.name), &kind) << kind.name;
    EXPECT_FALSE(kind.what.empty()) << kind.name;
    EXPECT_TRUE(kind.taken.empty() || kind.type.starts_with("ridgeline ")) << kind.name;
  }
}

}  // namespace
}  // namespace ridgeline::recognition
