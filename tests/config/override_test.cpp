#include "sim/config/override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"

namespace ridgeline::config {
namespace {

Node tree() { return parse_yaml("dram:\n  bandwidth: 3 TB/s\nlist: [1, 2]\nempty:\n", "f.yaml"); }

std::string error_of(const std::string& key, const std::string& value) {
  Node root = tree();
  try {
    apply_override(root, {key, value, ""});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Override, replaces_and_inserts_values_at_a_dotted_path) {
  Node root = tree();
  apply_override(root, {"dram.bandwidth", "4.0 TB/s", ""});
  apply_override(root, {"dram.new.deep", "7", ""});
  apply_override(root, {"list.1", "5", ""});
  apply_override(root, {"empty.key", "x", ""});
  apply_override(root, {"model", "{family: gpt2, sizes: [1, 2]}", ""});
  EXPECT_EQ(root.find("dram")->find("bandwidth")->scalar, "4.0 TB/s");
  EXPECT_EQ(root.find("dram")->find("new")->find("deep")->scalar, "7");
  EXPECT_EQ(root.find("list")->items[1].scalar, "5");
  EXPECT_EQ(root.find("empty")->find("key")->scalar, "x");
  EXPECT_EQ(root.find("model")->find("sizes")->items.size(), 2u);
}

// Words that need no parser are told apart by their letters.
TEST(Override, a_value_is_what_yaml_makes_of_it) {
  std::mt19937_64 random(3);
  constexpr std::string_view kLetters = "a0Z9 -+._/%~#:'nul,e";
  for (int i = 0; i < 20000; ++i) {
    std::string value =
        i < 4 ? std::vector<std::string>{"null", "Null", "NULL", "nulL"}[static_cast<std::size_t>(i)] : "";
    for (std::uint64_t left = i < 4 ? 0 : random() % 6 + 1; left > 0; --left)
      value += kLetters[random() % kLetters.size()];
    Node root = tree(), parsed;
    try {
      parsed = parse_yaml(value, "f.yaml");
    } catch (const ConfigError&) {
      EXPECT_THROW(apply_override(root, {"list", value, ""}), ConfigError) << value;
      continue;
    }
    apply_override(root, {"list", value, ""});
    EXPECT_EQ(root.find("list")->kind, parsed.kind) << value;
    EXPECT_EQ(root.find("list")->scalar, parsed.scalar) << value;
  }
}

TEST(Override, later_errors_name_the_argument_and_not_the_file) {
  Node root = tree();
  Override change = parse_override("hardware.dram.bandwidth=fast");
  change.key = "dram.bandwidth";
  apply_override(root, change);
  try {
    (void)Value(root)["dram"]["bandwidth"].quantity<BytesPerSecond>();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                ::testing::StartsWith("--set hardware.dram.bandwidth=fast: dram.bandwidth: expected a number"));
  }
}

TEST(Override, a_path_that_leads_nowhere_is_refused) {
  EXPECT_EQ(error_of("dram.bandwidth.x", "1"),
            "--set dram.bandwidth.x=1: dram.bandwidth.x: dram.bandwidth is '3 TB/s', not a mapping");
  EXPECT_THAT(error_of("list.2", "1"), ::testing::HasSubstr("'2' is not an item of this list of 2"));
  EXPECT_THAT(error_of("list.x", "1"), ::testing::HasSubstr("'x' is not an item"));
  EXPECT_THAT(error_of("dram..x", "1"), ::testing::HasSubstr("single dots"));
  EXPECT_THAT(error_of(".dram", "1"), ::testing::HasSubstr("single dots"));
  EXPECT_THAT(error_of("dram", "[1, 2"), ::testing::HasSubstr("closing bracket missing?"));
  EXPECT_EQ(error_of("list.1", "1"), "no error");
}

TEST(Override, an_argument_is_key_equals_value) {
  const Override change = parse_override("a.b=c=d");
  EXPECT_EQ(change.key, "a.b");
  EXPECT_EQ(change.value, "c=d");
  EXPECT_EQ(change.origin, "--set a.b=c=d");
  EXPECT_THROW((void)parse_override("novalue"), ConfigError);
  EXPECT_THROW((void)parse_override("=x"), ConfigError);
  EXPECT_THROW((void)parse_override("a="), ConfigError);
}

TEST(DataFolder, is_found_from_the_program) { EXPECT_TRUE(std::filesystem::is_directory(data_folder("hw"))); }

TEST(DataFolder, the_environment_wins_and_must_hold_descriptions) {
  ASSERT_EQ(setenv("RIDGELINE_DATA", RIDGELINE_SOURCE_DIR, 1), 0);
  EXPECT_EQ(data_folder("hw"), std::filesystem::path(RIDGELINE_SOURCE_DIR) / "hw");
  ASSERT_EQ(setenv("RIDGELINE_DATA", "/nonexistent", 1), 0);
  EXPECT_THROW((void)data_folder("hw"), UserError);
  unsetenv("RIDGELINE_DATA");
}

}  // namespace
}  // namespace ridgeline::config
