#include "tests/fuzz/changed_tree.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"

namespace ridgeline {
namespace {

void leave_out(config::Node& tree, const std::string& key) {
  const std::size_t dot = key.rfind('.');
  config::Node* parent = &tree;
  for (std::size_t begin = 0; dot != std::string::npos && begin <= dot && parent;) {
    const std::size_t end = key.find('.', begin);
    parent = parent->find(key.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string last = dot == std::string::npos ? key : key.substr(dot + 1);
  if (parent) std::erase_if(parent->entries, [&](const config::Entry& entry) { return entry.key == last; });
}

}  // namespace

DescribedChange described_change(std::string_view text) {
  DescribedChange result;
  if (!text.starts_with('@')) return result;
  const auto take_line = [&] {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  result.name = take_line().substr(1);
  if (result.name.empty()) result.name = "?";
  while (!text.empty()) {
    const std::string line = take_line();
    if (line.starts_with('-')) result.left_out.push_back(line.substr(1));
    else if (!line.empty()) result.changes.push_back(config::parse_override(line));
  }
  return result;
}

std::vector<ShippedTree> shipped_trees(const std::string& folder, const std::string& except) {
  const std::filesystem::path root = config::data_folder(folder);
  std::vector<ShippedTree> trees;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".yaml" && path.extension() != ".json") continue;
    const std::string name = std::filesystem::relative(path, root).replace_extension().string();
    if (!name.starts_with(except)) trees.push_back({name, config::load_yaml(path)});
  }
  std::sort(trees.begin(), trees.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return trees;
}

std::size_t entry_of(std::string_view name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found != names.end() ? static_cast<std::size_t>(found - names.begin())
                              : std::hash<std::string_view>{}(name) % names.size();
}

config::Node changed_tree(std::string_view text, const std::vector<ShippedTree>& shipped) {
  const DescribedChange change = described_change(text);
  if (change.name.empty()) return config::parse_yaml(text, "input");
  const auto found = std::find_if(shipped.begin(), shipped.end(), [&](const auto& s) { return s.name == change.name; });
  config::Node tree =
      (found != shipped.end() ? *found : shipped[std::hash<std::string>{}(change.name) % shipped.size()]).tree;
  for (const std::string& key : change.left_out) leave_out(tree, key);
  for (const config::Override& one : change.changes) config::apply_override(tree, one);
  return tree;
}

}  // namespace ridgeline
