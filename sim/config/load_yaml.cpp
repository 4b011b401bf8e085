// Files to trees: what can go wrong before the first character is parsed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "sim/config/files_read.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/meant_name.h"
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

/// Trees of files that were read, as long as these stay as they were: a server reads the same descriptions for every
/// question. Files younger than kSettled are read anew, as another change may leave their time as it is.
class KnownTrees {
 public:
  struct State {
    fs::file_time_type written{};
    std::uintmax_t bytes = 0;
    bool operator==(const State&) const = default;
  };
  static std::optional<State> state_of(const fs::path& path) {
    std::error_code error;
    State state{fs::last_write_time(path, error), 0};
    if (error) return std::nullopt;
    state.bytes = fs::file_size(path, error);
    if (error || fs::file_time_type::clock::now() - state.written < kSettled) return std::nullopt;
    return state;
  }
  std::shared_ptr<const Node> find(const std::string& path, const State& state) {
    const std::lock_guard lock(mutex_);
    const auto found = trees_.find(path);
    return found != trees_.end() && found->second.first == state ? found->second.second : nullptr;
  }
  void keep(const std::string& path, const State& state, std::shared_ptr<const Node> tree) {
    const std::lock_guard lock(mutex_);
    if (trees_.size() >= kMostTrees) trees_.clear();
    trees_[path] = {state, std::move(tree)};
  }

 private:
  static constexpr std::chrono::seconds kSettled{3};
  static constexpr std::size_t kMostTrees = 128;
  std::mutex mutex_;
  std::unordered_map<std::string, std::pair<State, std::shared_ptr<const Node>>> trees_;
};

}  // namespace

Node load_yaml(const fs::path& path) {
  static KnownTrees known;
  check_readable(path);
  const std::string name = shown(path), whole = fs::absolute(path).string() + "\n" + name;
  const std::optional<KnownTrees::State> state = KnownTrees::state_of(path);
  if (state)
    if (const std::shared_ptr<const Node> tree = known.find(whole, *state)) {
      FilesRead::note(path);
      return *tree;
    }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(path, "no such file" + nearest_file(path));
  if (fs::is_directory(status)) fail(path, "is a folder, expected a YAML file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be opened for reading");
  // One byte more than allowed is enough to know, and /dev/zero ends too.
  constexpr std::size_t kPiece = std::size_t{16} << 10;
  std::string text;
  std::size_t read = 0;
  while (file && read <= kMaxBytes) {
    text.resize(std::min(read + kPiece, kMaxBytes + 1));
    file.read(text.data() + read, static_cast<std::streamsize>(text.size() - read));
    read += static_cast<std::size_t>(file.gcount());
  }
  text.resize(read);
  if (text.size() > kMaxBytes)
    fail(path, fmt::format("larger than {} MiB, the most a description may have", kMaxBytes >> 20));
  FilesRead::note(path);
  Node root = parse_yaml(text, name);
  if (root.kind == Node::Kind::null) throw ConfigError(root.origin, "", "the file is empty");
  // What changed while it was read is not what the state says.
  if (state && KnownTrees::state_of(path) == state) known.keep(whole, *state, std::make_shared<const Node>(root));
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
