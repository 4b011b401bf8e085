#include "sim/hardware/load_gpu.h"

#include <filesystem>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/hardware/describe_gpu.h"
#include "sim/hardware/hardware_file.h"

namespace ridgeline {
namespace {

Gpu gpu_from_tree(config::Node tree, std::string_view name, const std::vector<config::Override>& overrides,
                  Numbers numbers, std::vector<SheetRow>* rows) {
  // Both are read whatever is asked for: a mistake in one should not wait for the day it is used.
  Gpu unused;
  read_gpu(config::Value(tree), unused, nullptr);
  if (const config::Node* measured = tree.find("measured"); measured && measured->kind != config::Node::Kind::null) {
    if (measured->kind != config::Node::Kind::mapping) {
      throw config::ConfigError(measured->origin, "measured", "expected a mapping, got " + measured->describe());
    }
    config::Node whole = tree;
    lay_over(whole, *measured);
    read_gpu(config::Value(whole), unused, nullptr);
    if (numbers == Numbers::measured) tree = std::move(whole);
  }
  for (const config::Override& change : overrides) config::apply_override(tree, change);
  Gpu gpu;
  gpu.name = name;
  read_gpu(config::Value(tree), gpu, rows);
  return gpu;
}

std::string stem(const std::string& file) { return std::filesystem::path(file).stem().string(); }

}  // namespace

Gpu load_gpu(std::string_view name_or_path, const std::vector<config::Override>& overrides, Numbers numbers) {
  const std::string file = hardware_file(name_or_path);
  return gpu_from_tree(config::load_yaml(file), stem(file), overrides, numbers, nullptr);
}

Gpu gpu_from_yaml(std::string_view text, std::string_view name, const std::vector<config::Override>& overrides,
                  Numbers numbers) {
  return gpu_from_tree(config::parse_yaml(text, name), stem(std::string(name)), overrides, numbers, nullptr);
}

HardwareSheet load_hardware_sheet(std::string_view name_or_path, const std::vector<config::Override>& overrides,
                                  Numbers numbers) {
  const std::string file = hardware_file(name_or_path);
  HardwareSheet sheet;
  const Gpu gpu = gpu_from_tree(config::load_yaml(file), stem(file), overrides, numbers, &sheet.values);
  sheet.name = gpu.name;
  sheet.title = gpu.title;
  sheet.derived = derived_rows(gpu);
  return sheet;
}

std::vector<std::string> hardware_names() { return config::yaml_names(config::data_folder("hw")); }

std::string hardware_file(std::string_view name_or_path) { return described_file("hardware", "", name_or_path); }

}  // namespace ridgeline
