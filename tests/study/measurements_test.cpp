// The index of the measurements and its one loader: every file is listed, and no shape is on both sides of the split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/study/validation/measured_ops.h"
#include "tests/support/measurement_index.h"
#include "tests/support/sha256.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const MeasurementIndex& measured() { return ridgeline::testing::measurements(); }

TEST(MeasurementIndex, lists_every_file_of_its_folder_once) {
  const fs::path folder = fs::path(RIDGELINE_SOURCE_DIR) / "measurements";
  std::multiset<std::string> listed;
  for (const MeasuredFile& file : measured().files()) listed.insert(file.name);
  const std::set<std::string> of_the_folder{"index.yaml", "README.md", "DEVIATIONS.md"};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).generic_string();
    if (entry.is_regular_file() && !of_the_folder.contains(name)) {
      EXPECT_EQ(listed.count(name), 1u) << name;
    }
  }
}

TEST(MeasurementIndex, says_the_licence_of_what_others_published) {
  const config::Node index = config::load_yaml(fs::path(RIDGELINE_SOURCE_DIR) / "measurements/index.yaml");
  for (const config::Value& file : config::Value(index)["files"].list()) {
    const std::string path = file["path"].text();
    EXPECT_EQ(file["licence"].exists(), path.starts_with("public/")) << path;
    if (file["licence"].exists()) EXPECT_THAT(file["licence"].text(), ::testing::Not(::testing::IsEmpty())) << path;
  }
}

TEST(MeasurementIndex, names_gpus_software_and_hosts_that_are_described) {
  const auto gpus = hardware_names(), stacks = software_names(), hosts = host_names();
  const auto has = [](const auto& names, const std::string& name) {
    return name == "rows" || name == "none" || std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const MeasuredFile& file : measured().files()) {
    EXPECT_TRUE(has(gpus, file.machine.hardware)) << file.name << " " << file.machine.hardware;
    EXPECT_TRUE(has(stacks, file.machine.software)) << file.name << " " << file.machine.software;
    EXPECT_TRUE(has(hosts, file.machine.host)) << file.name << " " << file.machine.host;
    EXPECT_FALSE(file.machine.clocks.empty()) << file.name;
  }
}

TEST(Split, no_shape_is_on_both_sides) {
  const MeasuredOps ops = load_measured_ops(measured(), {});
  std::set<std::uint64_t> seen, unseen;
  for (const MeasuredOp& row : ops.rows) (row.held_out ? unseen : seen).insert(row.shape);
  EXPECT_GT(seen.size(), 20000u);
  EXPECT_GT(unseen.size(), 5000u);
  for (const std::uint64_t shape : unseen) EXPECT_FALSE(seen.contains(shape));
  EXPECT_GT(ops.twins, 100u) << "rows to fit whose shape is held out elsewhere were there, and were left out";
}

TEST(Split, what_of_a_file_is_loaded_does_not_depend_on_what_else_is_asked_for) {
  const std::string name = "h200/random/fit.jsonl.gz";
  const auto rows_of = [&](const WantedOps& wanted) {
    std::set<std::size_t> lines;
    for (const MeasuredOp& row : load_measured_ops(measured(), wanted).rows)
      if (row.file->name == name) lines.insert(row.line);
    return lines;
  };
  const auto alone = rows_of({.files = [&](const MeasuredFile& file) { return file.name == name; }});
  EXPECT_EQ(alone, rows_of({}));
  EXPECT_GT(alone.size(), 5000u);
  EXPECT_LT(alone.size(), 5475u) << "twins of held-out shapes are not among them";
}

TEST(Split, rows_that_say_so_are_the_third_that_the_hash_holds_out) {
  std::size_t held_out = 0, rows = 0;
  for (const MeasuredFile* file : measured().of_kind("kernels")) {
    if (file->split != Split::by_row) continue;
    for_each_row(*file, [&](const nlohmann::json& row) {
      // As Python writes it: json.dumps([op, dtype, params], sort_keys=True).
      std::string params;
      for (const auto& [key, value] : row["params"].items())
        params += (params.empty() ? "" : ", ") + ('"' + key + "\": ") + value.dump();
      const std::string text = "[" + row["op"].dump() + ", " + row["dtype"].dump() + ", {" + params + "}]";
      EXPECT_EQ(row["heldout"].get<bool>(), ridgeline::testing::sha256_modulo(text, 3) == 0)
          << file->name << " " << text;
      held_out += row["heldout"].get<bool>();
      ++rows;
    });
  }
  EXPECT_GT(rows, 2500u);
  EXPECT_NEAR(static_cast<double>(held_out) / static_cast<double>(rows), 1.0 / 3, 0.05);
}

TEST(Split, by_hash_holds_out_a_third_of_the_shapes) {
  int held_out = 0;
  for (int n = 1; n <= 9000; ++n) held_out += held_out_by_shape(hash_of("{\"n\":" + std::to_string(n) + "}"));
  EXPECT_NEAR(held_out / 9000.0, 1.0 / 3, 0.02);
}

/// A folder of measurements with one file of three rows.
struct Folder {
  fs::path place = temporary_path("measurements");
  explicit Folder(const std::string& entry, const std::string& rows = "") {
    fs::create_directories(place);
    std::ofstream(place / "index.yaml") << "machines:\n  mine: {hardware: nvidia-t4, software: pytorch-2.11, host: "
                                           "default, stack: mine, clocks: free}\n"
                                           "files:\n  - "
                                        << entry << "\n";
    std::ofstream(place / "rows.jsonl") << rows;
  }
  [[nodiscard]] std::string error() const {
    try {
      const MeasurementIndex index(place);
      (void)load_measured_ops(index, {});
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  }
};

TEST(MeasurementIndex, says_what_is_wrong_and_where) {
  const std::string good = "{path: rows.jsonl, kind: kernels, machine: mine, split: fit}";
  EXPECT_EQ(Folder(good).error(), "");
  EXPECT_THAT(Folder("{path: row.jsonl, kind: kernels, machine: mine, split: fit}").error(), HasSubstr("row.jsonl"));
  EXPECT_THAT(Folder("{path: rows.jsonl, kind: kernel, machine: mine, split: fit}").error(),
              HasSubstr("did you mean kernels"));
  EXPECT_THAT(Folder("{path: rows.jsonl, kind: kernels, machine: yours, split: fit}").error(),
              HasSubstr("index.yaml:4"));
  EXPECT_THAT(Folder("{path: rows.jsonl, kind: kernels, machine: mine, split: half}").error(), HasSubstr("held-out"));
  EXPECT_THAT(Folder("{path: rows.jsonl, kind: kernels, machine: mine, splits: fit}").error(), HasSubstr("split"));
  EXPECT_THAT(Folder(good, "{\"op\":\"mm\"").error(), HasSubstr("rows.jsonl:1"));
  EXPECT_THAT(Folder(good, "{\"op\":\"mmm\",\"dtype\":\"bf16\",\"params\":{\"m\":1,\"n\":1,\"k\":1},\"us\":1}").error(),
              HasSubstr("rows.jsonl:1"));
}

}  // namespace
}  // namespace ridgeline
