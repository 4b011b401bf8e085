// Formats of tools' configurations: what is read, and where a mistake is said to be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/config_error.h"
#include "sim/training_files/parse_script.h"
#include "sim/training_files/parse_toml.h"
#include "sim/training_files/tool_table.h"

namespace ridgeline::training_files {
namespace {

using config::Node;
using ::testing::HasSubstr;

std::string text_at(const Node& root, std::initializer_list<const char*> path) {
  const Node* node = &root;
  for (const char* step : path) {
    node = node == nullptr ? nullptr : node->find(step);
    if (node == nullptr) return "(not there)";
  }
  return node->scalar;
}

TEST(Toml, reads_tables_and_dotted_keys_alike) {
  const Node as_table = parse_toml("[a.b]\nc = 1_000 # words\n", "x.toml");
  const Node as_dots = parse_toml("a.b.c = 1_000\n", "x.toml");
  const Node in_line = parse_toml("a = { b = { c = 1_000 } }", "x.toml");
  for (const Node& root : {as_table, as_dots, in_line}) EXPECT_EQ(text_at(root, {"a", "b", "c"}), "1000");
}

TEST(Toml, reads_texts_lists_and_arrays_of_tables) {
  const Node root = parse_toml(
      "name = \"a # b\"\nraw = 'c\\d'\nlong = \"\"\"\ntwo\nlines\"\"\"\nlist = [\n 1, # one\n \"two\",\n]\n[[t]]\nx = "
      "1\n[[t]]\nx = "
      "2\n",
      "x.toml");
  EXPECT_EQ(text_at(root, {"name"}), "a # b");
  EXPECT_EQ(text_at(root, {"raw"}), "c\\d");
  EXPECT_EQ(text_at(root, {"long"}), "two\nlines");
  ASSERT_EQ(root.find("list")->items.size(), 2u);
  EXPECT_EQ(root.find("list")->items[1].scalar, "two");
  ASSERT_EQ(root.find("t")->items.size(), 2u);
  EXPECT_EQ(root.find("t")->items[1].find("x")->scalar, "2");
}

TEST(Toml, says_where_a_mistake_stands) {
  for (const auto& [text, place] : {std::pair{"a = 1\nb 2\n", "x.toml:2:3"},
                                    {"a = \"open\n", "x.toml:1"},
                                    {"a = 1\na = 2\n", "x.toml:2:1"},
                                    {"a = [1, 2\n", "x.toml:2"},
                                    {"[a\n", "x.toml:1"},
                                    {"a = 1\n[a]\nb = 2\n", "x.toml:2"},
                                    {"a = \n", "x.toml:1"}})
    try {
      parse_toml(text, "x.toml");
      ADD_FAILURE() << text;
    } catch (const config::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(place)) << text;
    }
}

TEST(Toml, nesting_has_an_end) {
  EXPECT_THROW(parse_toml("a = " + std::string(100'000, '['), "x.toml"), config::ConfigError);
  std::string deep = "a = ";
  for (int i = 0; i < 5000; ++i) deep += "{b = ";
  EXPECT_THROW(parse_toml(deep, "x.toml"), config::ConfigError);
}

TEST(Arguments, variables_arrays_and_both_spellings_are_one) {
  const Node root = parse_arguments(
      "#!/bin/bash\n# --not-read 1\nLAYERS=24\nGPUS=8\nNODES=${NODES:-2}\nWORLD=$(($GPUS*$NODES))\n"
      "ARGS=(\n    --num-layers $LAYERS\n    --hidden_size=2048 \n    --bf16\n)\nMORE=\"--seq-length 4096 \\\n --lr "
      "1e-4\"\n"
      "torchrun --nproc_per_node $GPUS --world $WORLD train.py ${ARGS[@]} $MORE --tokenizer \"$4\" > log.txt\n",
      "x.sh");
  EXPECT_EQ(text_at(root, {"num-layers"}), "24");
  EXPECT_EQ(text_at(root, {"hidden-size"}), "2048");
  EXPECT_EQ(text_at(root, {"bf16"}), "true");
  EXPECT_EQ(text_at(root, {"seq-length"}), "4096");
  EXPECT_EQ(text_at(root, {"nproc-per-node"}), "8");
  EXPECT_EQ(text_at(root, {"world"}), "16");
  EXPECT_EQ(text_at(root, {"tokenizer"}), "") << "a variable that the script does not set";
  EXPECT_EQ(text_at(root, {"not-read"}), "(not there)");
}

TEST(Assignments, literals_and_products_are_read_and_code_is_not) {
  const Node root = parse_assignments(
      "n_layer = 12\nbatch_size: int = 12\nsteps = 5 * 8 # a product\nblock_size = 2**10\ncompile = True\nname = 'a'  "
      "# b\n"
      "if n_layer == 12:\n    n_head = 3\nother = f(1)\nnothing = None\n",
      "x.py");
  EXPECT_EQ(text_at(root, {"n_layer"}), "12");
  EXPECT_EQ(text_at(root, {"batch_size"}), "12");
  EXPECT_EQ(text_at(root, {"steps"}), "40");
  EXPECT_EQ(text_at(root, {"compile"}), "true");
  EXPECT_EQ(text_at(root, {"name"}), "a");
  EXPECT_EQ(text_at(root, {"nothing"}), "none");
  for (const char* left_out : {"n_head", "other", "block_size"}) EXPECT_EQ(text_at(root, {left_out}), "(not there)");
}

TEST(Patterns, match_whatever_the_spelling) {
  EXPECT_TRUE(matches("*learning_rate*", "optimizer.Learning-Rate.start"));
  EXPECT_TRUE(matches("a*b*c", "axxbc"));
  EXPECT_FALSE(matches("a*b*c", "axxb"));
  EXPECT_FALSE(matches("seed", "seeds"));
  EXPECT_TRUE(matches("*", ""));
}

}  // namespace
}  // namespace ridgeline::training_files
