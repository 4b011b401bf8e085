#include "sim/hardware/load_gpu.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "sim/config/data_folder.h"
#include "sim/config/files_read.h"
#include "sim/config/parse_yaml.h"
#include "sim/hardware/describe_gpu.h"
#include "sim/hardware/hardware_file.h"
#include "sim/hardware/resolve_file.h"

namespace ridgeline {
namespace {

/// A file's trees, and what is read of them.
struct Described {
  ResolvedFile trees;
  Gpu base, measured;  ///< without a name
};

/// Both are read whatever is asked for: a mistake in one should not wait for the day it is used.
Described checked(config::Node tree, const std::string& file) {
  Described described{resolve_file(std::move(tree), file), {}, {}};
  read_gpu(config::Value(described.trees.base), described.base, nullptr);
  read_gpu(config::Value(described.trees.measured), described.measured, nullptr);
  return described;
}

std::string stem(const std::string& file) { return std::filesystem::path(file).stem().string(); }

Gpu gpu_from_tree(config::Node tree, std::string_view name, const std::vector<config::Override>& overrides,
                  std::vector<SheetRow>* rows = nullptr, std::vector<SheetRow>* assumed = nullptr) {
  refuse_keys_of_files(overrides);
  for (const config::Override& change : overrides) config::apply_override(tree, change);
  Gpu gpu;
  gpu.name = name;
  read_gpu(config::Value(tree), gpu, rows, assumed);
  return gpu;
}

Gpu gpu_from(const Described& described, std::string_view name, const std::vector<config::Override>& overrides,
             Numbers numbers) {
  const bool measured = numbers == Numbers::measured;
  std::optional<Gpu> changed = changed_gpu(measured ? described.measured : described.base, overrides);
  if (!changed) return gpu_from_tree(measured ? described.trees.measured : described.trees.base, name, overrides);
  changed->name = name;
  return *std::move(changed);
}

/// When a file was written last, and its size: enough to know whether it is another one now.
using Stamp = std::pair<std::filesystem::file_time_type, std::uintmax_t>;
std::vector<Stamp> stamps_of(const std::vector<std::string>& files) {
  std::vector<Stamp> stamps;
  std::error_code ignored;
  for (const std::string& file : files)
    stamps.emplace_back(std::filesystem::last_write_time(file, ignored), std::filesystem::file_size(file, ignored));
  return stamps;
}

/// A sweep asks for changed versions of one file by the thousand: it is read again only when it, or what it extends,
/// was written again.
std::shared_ptr<const Described> described(const std::string& file) {
  struct Known {
    std::vector<std::string> files;  ///< all that were read, defaults of the architecture too
    std::vector<Stamp> stamps;
    std::shared_ptr<const Described> described;
  };
  static std::mutex mutex;
  static std::map<std::string, Known> known;
  const std::lock_guard lock(mutex);
  auto entry = known.find(file);
  if (entry != known.end() && stamps_of(entry->second.files) != entry->second.stamps) {
    known.erase(entry);
    entry = known.end();
  }
  if (entry == known.end()) {
    const config::FilesRead read;
    auto made = std::make_shared<const Described>(checked(config::load_yaml(file), file));
    entry = known.emplace(file, Known{read.paths(), stamps_of(read.paths()), std::move(made)}).first;
  }
  for (const std::string& part : entry->second.files) config::FilesRead::note(part);
  return entry->second.described;
}

/// Marks the rows whose value was written in another file than `own`.
void mark_inherited(std::vector<SheetRow>& rows, const config::Node& tree, const std::string& own) {
  for (SheetRow& row : rows) {
    const config::Value field = value_at(config::Value(tree), row.key);
    if (!field.exists() || !field.node().origin.name || *field.node().origin.name == own) continue;
    if (field.node().origin.line > 0) row.inherited = stem(*field.node().origin.name);
  }
}

HardwareSheet sheet_from_trees(const ResolvedFile& trees, std::string_view name,
                               const std::vector<config::Override>& overrides, Numbers numbers) {
  HardwareSheet sheet;
  const config::Node& tree = numbers == Numbers::measured ? trees.measured : trees.base;
  const Gpu gpu = gpu_from_tree(tree, name, overrides, &sheet.values, &sheet.assumed);
  sheet.name = gpu.name;
  sheet.title = gpu.title;
  sheet.derived = derived_rows(gpu);
  config::Node changed = tree;
  for (const config::Override& change : overrides) config::apply_override(changed, change);
  const config::Node* title = tree.find("title");  // stands in the file itself
  if (title && title->origin.name) mark_inherited(sheet.values, changed, *title->origin.name);
  return sheet;
}

}  // namespace

Gpu load_gpu(std::string_view name_or_path, const std::vector<config::Override>& overrides, Numbers numbers) {
  const std::string file = hardware_file(name_or_path);
  return gpu_from(*described(file), stem(file), overrides, numbers);
}

Gpu gpu_from_yaml(std::string_view text, std::string_view name, const std::vector<config::Override>& overrides,
                  Numbers numbers) {
  return gpu_from(checked(config::parse_yaml(text, name), std::string(name)), stem(std::string(name)), overrides,
                  numbers);
}

HardwareSheet load_hardware_sheet(std::string_view name_or_path, const std::vector<config::Override>& overrides,
                                  Numbers numbers) {
  const std::string file = hardware_file(name_or_path);
  return sheet_from_trees(described(file)->trees, stem(file), overrides, numbers);
}

HardwareSheet hardware_sheet_from_yaml(std::string_view text, std::string_view name, Numbers numbers) {
  return sheet_from_trees(checked(config::parse_yaml(text, name), std::string(name)).trees, stem(std::string(name)), {},
                          numbers);
}

std::vector<std::string> hardware_names() { return config::yaml_names(config::data_folder("hw")); }

std::string hardware_file(std::string_view name_or_path) { return described_file("hardware", "", name_or_path); }

}  // namespace ridgeline
