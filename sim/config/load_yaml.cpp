// Files to trees: what can go wrong before the first character is parsed.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "sim/config/files_read.h"
#include "sim/config/meant_name.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/readable_files.h"

namespace ridgeline::config {
namespace {

namespace fs = std::filesystem;

/// A path as the user would type it: relative when it lies below the working directory.
std::string shown(const fs::path& path) {
  std::error_code ignored;
  if (path.is_relative()) return path.string();
  const fs::path relative = fs::relative(path, ignored);
  if (ignored || relative.empty() || *relative.begin() == "..") return path.string();
  return relative.string();
}

[[noreturn]] void fail(const fs::path& path, std::string_view message) {
  throw ConfigError({std::make_shared<const std::string>(shown(path)), 0, 0}, "", message);
}

std::string nearest_file(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string nearest = meant_name(path.filename().string(), names);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", shown(folder / nearest));
}

}  // namespace

Node load_yaml(const fs::path& path) {
  check_readable(path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(path, "no such file" + nearest_file(path));
  if (fs::is_directory(status)) fail(path, "is a folder, expected a YAML file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be opened for reading");
  // One byte more than allowed is enough to know, and /dev/zero ends too.
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxBytes)
    fail(path, fmt::format("larger than {} MiB, the most a description may have", kMaxBytes >> 20));
  FilesRead::note(path);
  Node root = parse_yaml(text, shown(path));
  if (root.kind == Node::Kind::null) throw ConfigError(root.origin, "", "the file is empty");
  return root;
}

std::vector<std::string> yaml_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ridgeline::config
