// A chip described by a few numbers: it loads, predicts, and says where the rest comes from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "sim/answer/step_run.h"
#include "sim/answer/unread_changes.h"
#include "sim/config/config_error.h"
#include "sim/hardware/derived_defaults.h"
#include "sim/hardware/keys.h"
#include "sim/hardware/load_gpu.h"
#include "sim/report/text/hardware_text.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

/// The eleven numbers of docs/describe-a-chip.md.
constexpr const char* kEleven = R"(title: A card of a datasheet
source: "vendor datasheet, 2025"
architecture: ampere
compute_major: 8
compute_minor: 6
sm: {count: 60, rates: {tensor_fp16: 512}}
clock: {boost: 1.7 GHz}
power: {limit: 230 W}
l2: {capacity: 4 MiB}
dram: {type: GDDR6, capacity: 16 GB, bandwidth: 512 GB/s}
)";

std::string written(const std::string& name, const std::string& text) {
  const std::string path = temporary_path(name);
  std::ofstream(path) << text;
  return path;
}

Scenario step_on(const std::string& hardware, std::vector<config::Override> overrides = {}) {
  ScenarioSource source;
  source.text = "{hardware: \"" + hardware +
                "\", model: {family: gpt2, layers: 2, heads: 4, hidden: 256, vocabulary: 8000, max_positions: 256, "
                "dropout: 0.1}, training: {micro_batch: 4, sequence_length: 256, precision: amp-fp16}}";
  source.text_name = "test";
  source.overrides = std::move(overrides);
  return load_scenario(source);
}

std::string error_of(const std::string& file) {
  try {
    (void)load_gpu(file);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(DescribedChip, eleven_numbers_make_a_file_that_predicts) {
  const std::string file = written("eleven.yaml", kEleven);
  const Prediction p = predict(step_on(file), "analytic");
  EXPECT_GT(p.step.time.value(), 0.0);
  EXPECT_LT(p.step.low, p.step.high);
  EXPECT_TRUE(std::isfinite(p.step.high.value()));
  std::size_t own = 0;
  const HardwareSheet sheet = load_hardware_sheet(file);
  for (const SheetRow& row : sheet.values) {
    own += row.inherited.empty() ? 1 : 0;
    EXPECT_FALSE(row.source.empty()) << row.key;
    if (row.inherited.empty()) EXPECT_EQ(row.source, "vendor datasheet, 2025") << row.key;
    else EXPECT_EQ(row.inherited, "ampere-8.6") << row.key;
  }
  EXPECT_EQ(own, 11u);
  EXPECT_THAT(hardware_text(sheet), HasSubstr("inherited from ampere-8.6: estimated: 17 B/cycle of an SM"));
}

TEST(DescribedChip, every_architecture_brings_all_that_eleven_numbers_lack) {
  for (const std::string& name : architecture_names()) {
    std::string text = kEleven;
    const std::size_t dash = name.find('-');
    text.replace(text.find("ampere"), 6, name.substr(0, dash));
    text.replace(text.find("compute_major: 8"), 16,
                 "compute_major: " + name.substr(dash + 1, name.find('.') - dash - 1));
    text.replace(text.find("compute_minor: 6"), 16, "compute_minor: " + name.substr(name.find('.') + 1));
    const Gpu gpu = gpu_from_yaml(text, name + ".yaml");
    EXPECT_EQ(gpu.sm.count, 60) << name;
    for (const HardwareKey& key : hardware_keys())
      EXPECT_TRUE(!key.is_number() || key.allows(key.get(gpu))) << name << " " << key.key;
  }
}

TEST(DescribedChip, a_file_may_extend_another_and_its_keys_win) {
  const std::string file = written(
      "extends.yaml",
      "title: An A100 with more memory\nsource: a what-if\nextends: nvidia-a100-sxm4-80gb\ndram: {capacity: 160 GB}\n");
  const Gpu base = load_gpu("nvidia-a100-sxm4-80gb"), gpu = load_gpu(file);
  EXPECT_DOUBLE_EQ(gpu.dram.capacity.value(), 160e9);
  for (const HardwareKey& key : hardware_keys())
    EXPECT_TRUE(!key.is_number() || key.key == "dram.capacity" || key.get(gpu) == key.get(base)) << key.key;
  const std::string chain = written("chain.yaml", "title: T\nsource: s\nextends: " + file + "\nsm: {count: 200}\n");
  EXPECT_EQ(load_gpu(chain).sm.count, 200);
  EXPECT_DOUBLE_EQ(load_gpu(chain).dram.capacity.value(), 160e9);
  for (const SheetRow& row : load_hardware_sheet(file).values)
    EXPECT_EQ(row.inherited, row.key == "dram.capacity" ? "" : "nvidia-a100-sxm4-80gb") << row.key;
}

TEST(DescribedChip, set_and_a_file_that_extends_give_the_same_bits) {
  for (const std::string name : {"nvidia-l40s", "nvidia-b200", "nvidia-a100-sxm4-80gb"}) {
    for (const auto& [section, key, value] :
         {std::tuple{"power", "limit", "300 W"}, {"sm", "count", "40"}, {"dram", "bandwidth", "700 GB/s"}}) {
      const std::string file = written(
          "same.yaml", "title: T\nsource: s\nextends: " + name + "\n" + section + ": {" + key + ": " + value + "}\n");
      const Gpu by_file = load_gpu(file), by_set = load_gpu(name, {{std::string(section) + "." + key, value, ""}});
      for (const HardwareKey& k : hardware_keys())
        EXPECT_TRUE(!k.is_number() || k.get(by_file) == k.get(by_set)) << name << " " << key << ": " << k.key;
    }
  }
}

TEST(DescribedChip, a_circle_or_a_name_that_leads_nowhere_is_told_at_its_place) {
  const std::string one = temporary_path("one.yaml"), two = temporary_path("two.yaml");
  std::ofstream(one) << "title: T\nextends: " << two << "\n";
  std::ofstream(two) << "title: T\nextends: " << one << "\n";
  EXPECT_THAT(error_of(one), HasSubstr(":2:10: extends: leads in a circle: "));
  const std::string nowhere = written("nowhere.yaml", "title: T\nextends: nvidia-a100-smx4-80gb\n");
  EXPECT_THAT(error_of(nowhere), HasSubstr("nowhere.yaml:2:10: extends: unknown name 'nvidia-a100-smx4-80gb'; did you "
                                           "mean nvidia-a100-sxm4-80gb?"));
}

TEST(DescribedChip, all_that_is_missing_or_wrong_is_told_at_once) {
  const std::string file = written("wrong.yaml",
                                   "title: T\nsource: s\narchitecture: ada\nsm: {cuont: 60}\nclock: {boost: -1 GHz}\n"
                                   "power: {limit: 230 GB}\ndram: {type: GDDR6, bandwidth: nan}\n");
  const std::string error = error_of(file);
  for (const char* told :
       {"wrong.yaml:4:6: sm.cuont: unknown key", "did you mean count?",
        "wrong.yaml:5:16: clock.boost: -1 GHz is out of",
        "wrong.yaml:6:16: power.limit: unit 'GB' measures something else",
        "dram.bandwidth: expected a number with a unit", "dram.capacity: missing", "l2.capacity: missing"})
    EXPECT_THAT(error, HasSubstr(told));
}

TEST(DescribedChip, an_architecture_of_two_capabilities_asks_which) {
  std::string text = kEleven;
  text.erase(text.find("compute_major"), std::string("compute_major: 8\ncompute_minor: 6\n").size());
  EXPECT_THAT(error_of(written("which.yaml", text)),
              HasSubstr("architecture: ampere has several compute capabilities (ampere-8.0, ampere-8.6)"));
}

TEST(UnreadChanges, a_number_that_cannot_matter_is_named_and_one_that_matters_is_not) {
  const auto notes = [](const char* key, const char* value) {
    Session session;
    return unread_changes(
        StepRun(session, step_on("nvidia-a100-sxm4-80gb", {{std::string("hardware.") + key, value, ""}}), "analytic"));
  };
  EXPECT_THAT(notes("sm.rates.tensor_tf32", "1024"),
              ::testing::ElementsAre(HasSubstr("no kernel of this step reads hardware.sm.rates.tensor_tf32")));
  EXPECT_THAT(notes("context.driver", "1 GB"),
              ::testing::ElementsAre("no kernel of this step reads hardware.context.driver (memory would)"));
  EXPECT_TRUE(notes("dram.bandwidth", "1 TB/s").empty());
  Session session;
  EXPECT_TRUE(unread_changes(StepRun(session, step_on("nvidia-a100-sxm4-80gb"), "analytic")).empty());
}

TEST(HardwareKeys, the_page_of_docs_is_the_table) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/docs/hardware-keys.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(page, hardware_keys_markdown()) << "run `build/ridgeline hardware --keys > docs/hardware-keys.md`";
}

}  // namespace
}  // namespace ridgeline
