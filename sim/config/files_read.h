// Which files descriptions were read from.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace ridgeline::config {

/// While one lives, it notes the files that its thread reads.
class FilesRead {
 public:
  FilesRead();
  ~FilesRead();
  FilesRead(const FilesRead&) = delete;
  FilesRead& operator=(const FilesRead&) = delete;

  /// Absolute, in ascending order, each once.
  [[nodiscard]] std::vector<std::string> paths() const { return {paths_.begin(), paths_.end()}; }
  /// Whether one lives on this thread.
  static bool wanted();
  /// For who reads a file, or knows what it holds from an earlier time. Files that are not there count for none.
  static void note(const std::filesystem::path& file);

 private:
  FilesRead* outer_;
  std::set<std::string> paths_;
};

}  // namespace ridgeline::config
