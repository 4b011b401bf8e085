// Files as they were: a hash of each, and whether they still are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

/// FNV-1a of 64 bits, which tells an edited file from what it was; it does not withstand intent.
class Hash64 {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  void add(std::uint64_t number) {
    for (int i = 0; i < 64; i += 8) value_ = (value_ ^ (number >> i & 0xffu)) * 0x100000001b3u;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

/// Of the file's bytes, as hexadecimal digits; empty where it cannot be read.
std::string hash_of_file(const std::filesystem::path& path);
/// Of the program that runs.
const std::string& hash_of_this_program();

/// A set of files, looked at again without reading those that were not written since.
class FileStates {
 public:
  struct File {
    std::string path, hash;
    std::filesystem::file_time_type written;
  };
  explicit FileStates(const std::vector<std::string>& paths);
  [[nodiscard]] const std::vector<File>& files() const { return files_; }
  /// Hash of one of them; empty for any other.
  [[nodiscard]] std::string hash_of(std::string_view path) const;
  /// Path of the first that has another hash now.
  [[nodiscard]] std::optional<std::string> changed();

 private:
  std::vector<File> files_;
};

}  // namespace ridgeline
