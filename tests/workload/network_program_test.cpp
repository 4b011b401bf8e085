// The language of programs: what it accepts, how mistakes are told, and what docs/networks.md says of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"
#include "sim/workload/networks/network_program.h"
#include "sim/workload/networks/program_functions.h"
#include "sim/workload/networks/program_model.h"
#include "sim/workload/networks/program_modules.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kHead = R"(size hidden = 8
size rows = 10
input tokens: int64[batch, length]
block layer(x, *, width = 1):
  up: linear(hidden, width * hidden)
  down: linear(width * hidden, hidden)
  return x + down(gelu(up(x)))
network tiny(tokens):
)";
constexpr const char* kBody = R"(  table: embedding(rows, hidden)
  layers: [layer(i + 1) for i in range(3)]
  head: linear(hidden, rows)
  x = table(tokens)
  for layer in layers: x = layer(x)
  return cross_entropy(head(x), tokens)
)";

ModelDescription described(const std::string& program, const std::string& keys = "") {
  const std::string file = temporary_path("program.block");
  std::ofstream(file) << program;
  const config::Node tree = config::parse_yaml(fmt::format("{{family: program, program: {}{}}}", file, keys), "m.yaml");
  return load_model(config::Value(tree));
}

/// What is said of a program, from its line on.
std::string mistake(const std::string& program, const std::string& keys = "") {
  try {
    described(program, keys);
  } catch (const UserError& error) {
    const std::string text = error.what();
    const std::size_t at = text.find("program.block:");
    return at == std::string::npos ? text : text.substr(at + std::string("program.block:").size());
  }
  return "none";
}

std::string network(const std::string& lines) { return kHead + lines; }

TEST(NetworkProgram, CountsEachParameterOnce) {
  const std::int64_t blocks = 2 * 8 * 8 * (1 + 2 + 3) + 8 * (1 + 2 + 3) + 3 * 8;
  EXPECT_EQ(parameter_count(described(network(kBody))), 10 * 8 + blocks + 8 * 10 + 10);
}

TEST(NetworkProgram, TakesSizesFromTheDescription) {
  const std::int64_t blocks = 2 * 4 * 4 * 6 + 4 * 6 + 3 * 4;
  EXPECT_EQ(parameter_count(described(network(kBody), ", hidden: 4, rows: 20")), 20 * 4 + blocks + 4 * 20 + 20);
}

TEST(NetworkProgram, NumbersBlocksAndTellsTheirKinds) {
  const ModelDescription model = described(network(kBody));
  EXPECT_EQ(model.layers, 3);
  const std::vector<std::int64_t>& kinds = model.program->kinds;
  EXPECT_NE(kinds[0], kinds[1]);
  const ModelDescription alike = described(
      network("  table: embedding(rows, hidden)\n  layers: [layer(2) for i in range(2)]\n  x = table(tokens)\n"
              "  for layer in layers: x = layer(x)\n  return mean_all(x)\n"));
  EXPECT_EQ(alike.program->kinds[0], alike.program->kinds[1]);
}

struct Mistake {
  std::string lines, place, says;
};

TEST(NetworkProgram, TellsMistakesWithTheirPlaceAndWhatIsAllowed) {
  const std::string table = "  table: embedding(rows, hidden)\n";
  const std::vector<Mistake> mistakes{
      {"  return gelo(tokens)\n", "9:10:", "no module or operation 'gelo'; did you mean 'gelu'?"},
      {"  x: liner(hidden, rows)\n", "9:6:", "no module or block 'liner'; did you mean 'linear'?"},
      {"  return mean_all(y)\n", "9:19:", "no name 'y'"},
      {table + "  return mean_all(table(tokens) @ 2)\n", "10:33:", "is not modelled"},
      {table + "  x = table(tokens)\n  del x\n  return mean_all(x)\n", "12:19:", "'x' has no value here"},
      {table + "  return mean_all(table(tokens).view(3, 3))\n", "10:37:", "elements"},
      {"  up: linear(hidden)\n", "9:7:", "'out' is missing; it takes (in, out, bias=True"},
      {"  up: linear(hidden, rows, bais=False)\n", "9:7:", "no argument 'bais'; it takes (in, out"},
      {table + "  up: linear(rows, hidden)\n  return mean_all(up(table(tokens)))\n",
       "11:19:", "for a layer of 10 inputs"},
      {table + "  return table(tokens)\n", "8:9:", "expected a loss of one number"},
      {"  x = (1 + 2\n  return x\n", "10:3:", "expected ')'"},
      {"  x = 1 +\n", "9:10:", "expected a value, found the end of the line"},
      {"\tx = 1\n", "9:1:", "a tab"},
      {"  x = 1\n    y = 2\n", "10:5:", "found an indented line"},
      {"  for i in 3: y = i\n", "9:12:", "expected a list of modules, a list or range(n)"},
      {"  for i in range(2):\n    up: linear(hidden, rows)\n", "9:3:", "declare a list"},
      {"  x = 1 // (rows - 10)\n  return mean_all(zeros(x))\n", "9:9:", "division by zero"},
      {"  again: looped()\n", "9:10:", "no module or block 'looped'"},
  };
  for (const Mistake& one : mistakes) {
    const std::string said = mistake(network(one.lines));
    EXPECT_THAT(said, StartsWith(one.place)) << one.lines;
    EXPECT_THAT(said, HasSubstr(one.says)) << one.lines;
  }
}

TEST(NetworkProgram, NamesAtMostEightOfWhatIsAllowed) {
  const std::string said = mistake(network("  return gelo(tokens)\n"));
  EXPECT_LE(std::count(said.begin(), said.end(), ','), 8) << said;
}

TEST(NetworkProgram, TellsWhatIsWrongWithSizes) {
  EXPECT_THAT(mistake(network(kBody), ", hiden: 4"), HasSubstr("hidden"));
  EXPECT_THAT(mistake(network(kBody), ", hidden: wide"), HasSubstr("hidden"));
  EXPECT_THAT(mistake("size layers  # of the network\n" + network(kBody)), HasSubstr("layers is missing, which"));
  EXPECT_THAT(mistake("size name\n" + network(kBody)), StartsWith("1:6: 'name' has a meaning of its own"));
  EXPECT_THAT(mistake("size a = b\nsize b = 2\n" + network(kBody)), StartsWith("1:10: 'b' is said further below"));
}

TEST(NetworkProgram, RefusesExpressionsAndLinesOfTooManyLevels) {
  const std::string deep(5000, '('), minus(5000, '-');
  for (const std::string& value : {deep + "1", minus + "1"})
    EXPECT_THAT(mistake(network("  x = " + value + "\n")), HasSubstr("an expression of too many parts"));
  std::string sum = "1", lines;
  for (int i = 0; i < 5000; ++i) sum += " + 1";
  EXPECT_THAT(mistake(network("  x = " + sum + "\n")), HasSubstr("an expression of too many parts"));
  for (std::size_t i = 1; i < 100; ++i) lines += std::string(2 * i, ' ') + "if True:\n";
  EXPECT_THAT(mistake(network(lines + std::string(200, ' ') + "x = 1\n")), HasSubstr("lines nested too deep"));
}

TEST(NetworkProgram, RefusesBlocksInsideThemselves) {
  const std::string text =
      "input tokens: int64[batch]\nblock a(x):\n  inner: a()\n  return x\n"
      "network n(tokens):\n  first: a()\n  return mean_all(zeros(2))\n";
  EXPECT_THAT(mistake(text), HasSubstr("block a has itself in it"));
}

TEST(NetworkProgram, ShippedOnesHaveThePublishedParameters) {
  const std::vector<std::pair<std::string, std::int64_t>> published{{"convnext-tiny", 28'589'128},
                                                                    {"dinov2-giant", 1'134'909'485 - 43 * 3073},
                                                                    {"dit-xl-2", 675'129'632},
                                                                    {"resnet-50", 25'557'032},
                                                                    {"stable-diffusion-1.5-unet", 859'520'964},
                                                                    {"wav2vec2-base", 94'570'378 - 8 * 257}};
  for (const auto& [name, count] : published) EXPECT_EQ(parameter_count(load_model(name)), count) << name;
  EXPECT_EQ(program_names().size(), published.size());
}

struct Configured {
  std::string config;
  std::int64_t parameters;
};

// Counts of Transformers' and diffusers' own classes, and as their authors publish them.
TEST(NetworkProgram, IsNamedByConfigurations) {
  const std::vector<Configured> all{
      {"{model_type: convnext, architectures: [ConvNextForImageClassification], num_labels: 1000}", 28'589'128},
      {"{model_type: dinov2, architectures: [Dinov2ForImageClassification], use_swiglu_ffn: true, hidden_size: 1536, "
       "num_hidden_layers: 40, num_attention_heads: 24, mlp_ratio: 4, num_labels: 45}",
       1'134'909'485},
      {"{_class_name: DiTTransformer2DModel, num_layers: 28, num_attention_heads: 16, attention_head_dim: 72, "
       "patch_size: 2, "
       "sample_size: 32, in_channels: 4, out_channels: 8, num_embeds_ada_norm: 1000}",
       675'129'632},
      {"{_class_name: UNet2DConditionModel, block_out_channels: [320, 640, 1280, 1280], down_block_types: "
       "[CrossAttnDownBlock2D, CrossAttnDownBlock2D, CrossAttnDownBlock2D, DownBlock2D], layers_per_block: 2, "
       "cross_attention_dim: 768, in_channels: 4, out_channels: 4, norm_num_groups: 32, sample_size: 64, "
       "attention_head_dim: 8}",
       859'520'964}};
  for (const Configured& one : all) {
    const config::Node tree = config::parse_yaml(one.config, "config.json");
    EXPECT_EQ(parameter_count(load_model(config::Value(tree))), one.parameters) << one.config;
  }
}

TEST(NetworkProgram, RefusesConfigurationsThatItsProgramDoesNotHave) {
  const config::Node tree = config::parse_yaml(
      "{model_type: convnext, architectures: [ConvNextForImageClassification], hidden_act: relu}", "config.json");
  EXPECT_THROW((void)load_model(config::Value(tree)), UserError);
}

std::string page() {
  std::ifstream file(std::string(RIDGELINE_SOURCE_DIR) + "/docs/networks.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NetworkProgram, IsTaughtByANetworkThatRuns) {
  const std::string text = page();
  const std::size_t begin = text.find("size layers = 12"), end = text.find("```", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string program = text.substr(begin, end - begin);
  EXPECT_EQ(parameter_count(described(program)), 15'515'138);
  EXPECT_THAT(text, HasSubstr("15,515,138 parameters"));
  std::string wrong = program;
  wrong.replace(wrong.find("chunk(x"), 5, "chunks");
  EXPECT_THAT(text, HasSubstr("gmlp.block:" + mistake(wrong)));
  // By hand: a table, twelve layers of two norms, three products and their biases, a norm and a classifier.
  const std::int64_t layer = 2 * 256 + 256 * 1536 + 1536 + 2 * 768 + 128 * 128 + 128 + 768 * 256 + 256;
  EXPECT_EQ(32000 * 256 + 12 * layer + 2 * 256 + 256 * 2 + 2, 15'515'138);
}

TEST(NetworkProgram, HasNoModuleOrOperationThatThePageLeavesOut) {
  const std::string text = page();
  for (const std::vector<std::string>& names : {networks::module_kind_names(), networks::program_function_names()})
    for (const std::string& name : names)
      EXPECT_TRUE(text.find("`" + name + "`") != std::string::npos || text.find("`" + name + "(") != std::string::npos)
          << name;
}

}  // namespace
}  // namespace ridgeline
