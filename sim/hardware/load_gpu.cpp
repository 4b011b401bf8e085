#include "sim/hardware/load_gpu.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/hardware/describe_gpu.h"
#include "sim/hardware/hardware_file.h"

namespace ridgeline {
namespace {

/// A description as written, and with its measured section over it.
struct CheckedTrees {
  config::Node base, measured;
};

CheckedTrees checked(config::Node tree) {
  // Both are read whatever is asked for: a mistake in one should not wait for the day it is used.
  Gpu unused;
  read_gpu(config::Value(tree), unused, nullptr);
  const config::Node* measured = tree.find("measured");
  if (!measured || measured->kind == config::Node::Kind::null) return {tree, tree};
  if (measured->kind != config::Node::Kind::mapping) {
    throw config::ConfigError(measured->origin, "measured", "expected a mapping, got " + measured->describe());
  }
  config::Node whole = tree;
  lay_over(whole, *measured);
  read_gpu(config::Value(whole), unused, nullptr);
  return {std::move(tree), std::move(whole)};
}

Gpu gpu_from_trees(const CheckedTrees& trees, std::string_view name, const std::vector<config::Override>& overrides,
                   Numbers numbers, std::vector<SheetRow>* rows, std::vector<SheetRow>* assumed = nullptr) {
  config::Node tree = numbers == Numbers::measured ? trees.measured : trees.base;
  for (const config::Override& change : overrides) config::apply_override(tree, change);
  Gpu gpu;
  gpu.name = name;
  read_gpu(config::Value(tree), gpu, rows, assumed);
  return gpu;
}

/// A sweep asks for changed versions of one file by the thousand: it is read again only when it was written again.
std::shared_ptr<const CheckedTrees> trees_of(const std::string& file) {
  struct Entry {
    std::filesystem::file_time_type written;
    std::uintmax_t size = 0;
    std::shared_ptr<const CheckedTrees> trees;
  };
  static std::mutex mutex;
  static std::map<std::string, Entry> known;
  std::error_code error;
  const auto written = std::filesystem::last_write_time(file, error);
  const auto size = std::filesystem::file_size(file, error);
  const std::lock_guard lock(mutex);
  Entry& entry = known[file];
  if (error || !entry.trees || entry.written != written || entry.size != size)
    entry = {written, size, std::make_shared<const CheckedTrees>(checked(config::load_yaml(file)))};
  return entry.trees;
}

HardwareSheet sheet_from_trees(const CheckedTrees& trees, std::string_view name,
                               const std::vector<config::Override>& overrides, Numbers numbers) {
  HardwareSheet sheet;
  const Gpu gpu = gpu_from_trees(trees, name, overrides, numbers, &sheet.values, &sheet.assumed);
  sheet.name = gpu.name;
  sheet.title = gpu.title;
  sheet.derived = derived_rows(gpu);
  return sheet;
}

std::string stem(const std::string& file) { return std::filesystem::path(file).stem().string(); }

}  // namespace

Gpu load_gpu(std::string_view name_or_path, const std::vector<config::Override>& overrides, Numbers numbers) {
  const std::string file = hardware_file(name_or_path);
  return gpu_from_trees(*trees_of(file), stem(file), overrides, numbers, nullptr);
}

Gpu gpu_from_yaml(std::string_view text, std::string_view name, const std::vector<config::Override>& overrides,
                  Numbers numbers) {
  return gpu_from_trees(checked(config::parse_yaml(text, name)), stem(std::string(name)), overrides, numbers, nullptr);
}

HardwareSheet load_hardware_sheet(std::string_view name_or_path, const std::vector<config::Override>& overrides,
                                  Numbers numbers) {
  const std::string file = hardware_file(name_or_path);
  return sheet_from_trees(*trees_of(file), stem(file), overrides, numbers);
}

HardwareSheet hardware_sheet_from_yaml(std::string_view text, std::string_view name, Numbers numbers) {
  return sheet_from_trees(checked(config::parse_yaml(text, name)), stem(std::string(name)), {}, numbers);
}

std::vector<std::string> hardware_names() { return config::yaml_names(config::data_folder("hw")); }

std::string hardware_file(std::string_view name_or_path) { return described_file("hardware", "", name_or_path); }

}  // namespace ridgeline
