// A file name of this process's own, gone with the process: ctest runs tests of one program side by side.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace ridgeline {

/// A folder that lives as long as the process.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : owner_(::getpid()),
        path_(std::filesystem::temp_directory_path() / ("ridgeline-test-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (owner_ == ::getpid()) std::filesystem::remove_all(path_, ignored);  // not when a child ends
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  pid_t owner_;
  std::filesystem::path path_;
};

inline std::string temporary_path(const std::string& name) {
  static const TemporaryFolder folder;
  return (folder.path() / name).string();
}

}  // namespace ridgeline
