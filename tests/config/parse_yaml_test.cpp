#include "sim/config/parse_yaml.h"
#include "tests/support/temporary_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace ridgeline::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(std::string_view text) {
  try {
    (void)parse_yaml(text, "f.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseYaml, keeps_order_and_place_of_every_key) {
  const Node root = parse_yaml("b: 1\na:\n  - x\n  - {c: 'd e'}\n", "f.yaml");
  ASSERT_EQ(root.kind, Node::Kind::mapping);
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_EQ(root.entries[1].key_origin.to_string(), "f.yaml:2:1");
  EXPECT_EQ(root.find("a")->items[0].scalar, "x");
  const Node& inner = root.find("a")->items[1];
  EXPECT_EQ(inner.find("c")->scalar, "d e");
  EXPECT_EQ(inner.find("c")->origin.to_string(), "f.yaml:4:9");
}

TEST(ParseYaml, aliases_repeat_their_anchor) {
  const Node root = parse_yaml("a: &x {k: 1}\nb: *x\nc: &s text\nd: *s\n", "f.yaml");
  EXPECT_EQ(root.find("b")->find("k")->scalar, "1");
  EXPECT_EQ(root.find("d")->scalar, "text");
}

TEST(ParseYaml, json_is_yaml_too) {
  const Node root = parse_yaml("{\n\t\"layers\": 12,\n\t\"names\": [\"a\", null]\n}", "config.json");
  EXPECT_EQ(root.find("layers")->scalar, "12");
  EXPECT_EQ(root.find("names")->items[1].kind, Node::Kind::null);
}

TEST(ParseYaml, duplicate_keys_name_the_first_one) {
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"), "f.yaml:3:1: a: duplicate key, first given on line 1");
}

TEST(ParseYaml, syntax_errors_have_a_place) {
  EXPECT_THAT(error_of("a: [1, 2\nb: 3\n"), StartsWith("f.yaml:2:"));
  EXPECT_THAT(error_of("a: 1\n\tb: 2\n"), HasSubstr("spaces, not tabs"));
  EXPECT_THAT(error_of("a: *nobody\n"), StartsWith("f.yaml:1:4: not valid YAML"));
  EXPECT_THAT(error_of("a: 'open\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(error_of("a: {b: 1\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(error_of("? [a]\n: 1\n"), HasSubstr("a key must be a plain word"));
  EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("a second document"));
}

TEST(ParseYaml, binary_content_is_called_that) {
  EXPECT_EQ(error_of(std::string_view("a: 1\nb: \0\n", 10)),
            "f.yaml:2:4: byte 0x00 does not belong in a YAML text; is this a binary file?");
  EXPECT_THAT(error_of("\x7f"
                       "ELF\x02\x01"),
              HasSubstr("binary file"));
  EXPECT_THAT(error_of("\x1f\x8b\x08"), HasSubstr("binary file"));
}

// What an alias repeats lies as deep as the place it stands in, and deeper.
TEST(ParseYaml, depth_counts_what_aliases_repeat) {
  const auto repeated = [](int anchored, int around) {
    const auto lists = [](int depth, const std::string& inside) {
      return std::string(static_cast<std::size_t>(depth), '[') + inside +
             std::string(static_cast<std::size_t>(depth), ']');
    };
    return error_of("a: &x " + lists(anchored, "1") + "\nb: " + lists(around, "*x") + "\n");
  };
  // A list of lists is as many levels as brackets, and one more for what is in it; the document is one.
  EXPECT_EQ(repeated(40, kMaxDepth - 42), "no error");
  EXPECT_THAT(repeated(40, kMaxDepth - 41), HasSubstr("nested more than 64 levels"));
  EXPECT_EQ(repeated(10, kMaxDepth - 12), "no error");
  EXPECT_THAT(repeated(10, kMaxDepth - 11), HasSubstr("nested more than 64 levels"));
}

TEST(ParseYaml, depth_is_limited_to_what_the_stack_holds) {
  const auto nested = [](int depth) {
    return "a: " + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_EQ(error_of(nested(kMaxDepth - 1)), "no error");
  EXPECT_THAT(error_of(nested(kMaxDepth)), HasSubstr("nested more than 64 levels"));
  EXPECT_THAT(error_of(nested(20000)), HasSubstr("nested more than 64 levels"));
  EXPECT_THAT(error_of(std::string(kMaxBytes, '[')), HasSubstr("f.yaml:"));
  EXPECT_THAT(error_of(std::string(kMaxBytes, '{')), HasSubstr("f.yaml:"));
  std::string block;
  for (int i = 0; i < 1000; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "k:\n";
  EXPECT_THAT(error_of(block), HasSubstr("nested more than 64 levels"));
}

TEST(ParseYaml, aliases_that_multiply_are_stopped) {
  std::string text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 0; j < 9; ++j) text += "," + last;
    text += "]\n";
  }
  EXPECT_THAT(error_of(text), HasSubstr("more than a million values"));
  EXPECT_THAT(error_of("a: &x [*x]\n"), HasSubstr("inside the value it repeats"));
}

TEST(ParseYaml, anchors_within_anchors_are_stopped_before_they_fill_the_memory) {
  std::string text, end;
  for (int level = 0; level < 60; ++level) {
    text += "&a" + std::to_string(level) + " [";
    end += "]";
  }
  for (int i = 0; i < 100'000; ++i) text += "1,";
  EXPECT_THAT(error_of(text + end), HasSubstr("more than a million values"));
}

TEST(ParseYaml, a_text_as_large_as_allowed_takes_a_moment_at_most) {
  std::string keys;
  for (int i = 0; keys.size() + 20 < kMaxBytes; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_GT(parse_yaml(keys, "f.yaml").entries.size(), 80000u);
}

TEST(ParseYaml, text_of_several_megabytes_is_refused_with_its_size) {
  EXPECT_THAT(error_of(std::string(kMaxBytes + 1, 'x')), HasSubstr("1.0 MiB of text"));
}

TEST(LoadYaml, a_missing_file_names_the_nearest_one) {
  const std::filesystem::path folder = temporary_path("load_yaml");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "good.yaml") << "a: 1\n";
  std::ofstream(folder / "empty.yaml") << "# nothing\n";
  EXPECT_EQ(load_yaml(folder / "good.yaml").find("a")->scalar, "1");
  EXPECT_EQ(yaml_names(folder), (std::vector<std::string>{"empty", "good"}));
  const auto error = [](const std::filesystem::path& path) -> std::string {
    try {
      (void)load_yaml(path);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(error(folder / "god.yaml"), HasSubstr("no such file; did you mean"));
  EXPECT_THAT(error(folder / "god.yaml"), HasSubstr("good.yaml?"));
  EXPECT_THAT(error(folder), HasSubstr("is a folder"));
  EXPECT_THAT(error(folder / "empty.yaml"), HasSubstr("empty.yaml:1:1: the file is empty"));
  EXPECT_THAT(error("/dev/zero"), HasSubstr("larger than 1 MiB"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ridgeline::config
