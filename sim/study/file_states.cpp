#include "sim/study/file_states.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace ridgeline {
namespace {

std::filesystem::file_time_type written_at(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::last_write_time(path, ignored);
}

}  // namespace

std::string hash_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  Hash64 hash;
  std::string buffer(std::size_t{1} << 16, '\0');
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.add(std::string_view(buffer).substr(0, static_cast<std::size_t>(file.gcount())));
  }
  return fmt::format("{:016x}", hash.value());
}

const std::string& hash_of_this_program() {
  static const std::string hash = hash_of_file("/proc/self/exe");
  return hash;
}

FileStates::FileStates(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) files_.push_back({path, hash_of_file(path), written_at(path)});
}

std::string FileStates::hash_of(std::string_view path) const {
  for (const File& file : files_)
    if (file.path == path) return file.hash;
  return "";
}

std::optional<std::string> FileStates::changed() {
  for (File& file : files_) {
    const auto written = written_at(file.path);
    if (written == file.written) continue;
    if (hash_of_file(file.path) != file.hash) return file.path;
    file.written = written;
  }
  return std::nullopt;
}

}  // namespace ridgeline
