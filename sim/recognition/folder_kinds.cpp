// Kinds of folders, by the names of the files in them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "sim/recognition/recognise.h"

namespace ridgeline::recognition {
namespace {

namespace fs = std::filesystem;

/// Paths below the folder, two levels deep, in order of their names.
std::vector<fs::path> paths_below(const fs::path& folder) {
  constexpr std::size_t kMost = 20000;
  std::set<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && it != end && found.size() < kMost; it.increment(error)) {
    constexpr int kDeepest = 2;
    if (it.depth() >= kDeepest) it.disable_recursion_pending();
    std::error_code ignored;
    if (it->is_regular_file(ignored)) found.insert(it->path());
  }
  return {found.begin(), found.end()};
}

bool is_trace(const std::string& name) {
  for (const std::string_view ending : {".pt.trace.json", ".pt.trace.json.gz", ".trace.json", ".trace.json.gz"})
    if (name.ends_with(ending)) return true;
  return false;
}

}  // namespace

Recognised kind_of_folder(const std::string& path) {
  const std::vector<fs::path> paths = paths_below(path);
  const auto all_of = [&](const auto& wanted) {
    std::vector<std::string> found;
    for (const fs::path& one : paths)
      if (wanted(one.filename().string())) found.push_back(one.string());
    return found;
  };
  const auto named = [&](std::string_view name) { return all_of([&](const std::string& one) { return one == name; }); };
  const auto ends = [&](std::string_view ending) {
    return all_of([&](const std::string& one) { return one.ends_with(ending); });
  };
  const auto answer = [](std::string_view kind, const std::vector<std::string>& files, std::string_view of) {
    return Recognised{&file_kind(kind), fmt::format(" ({} {}{})", files.size(), of, files.size() == 1 ? "" : "s"),
                      files.front()};
  };
  std::error_code ignored;
  if (fs::is_regular_file(fs::path(path) / "config.json", ignored)) return {&file_kind("model-folder"), "", ""};
  const std::vector<std::string> configs = named("config.json");
  if (fs::is_regular_file(fs::path(path) / "model_index.json", ignored) && !configs.empty())
    return answer("pipeline-folder", configs, "config.json file");
  if (const auto traces = all_of(is_trace); !traces.empty()) return answer("trace-folder", traces, "trace");
  if (!configs.empty()) return answer("checkpoint-folder", configs, "config.json file");
  if (const auto snapshots = ends(".pickle"); !snapshots.empty())
    return answer("snapshot-folder", snapshots, "snapshot");
  for (const std::string_view ending : {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".distcp"})
    if (const auto weights = ends(ending); !weights.empty()) return answer("weights-folder", weights, "file");
  if (const auto traces = ends(".json.gz"); !traces.empty()) return answer("trace-folder", traces, "file");
  return {&file_kind("folder"), paths.empty() ? " (nothing is in it)" : "", ""};
}

}  // namespace ridgeline::recognition
