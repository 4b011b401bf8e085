// The one place where files are written.
//
// A regular file, also behind a link, is written beside itself and renamed: whole or not at all, its mode and owner
// kept. What is none (a device, a pipe, this process's own standard output), has several names or stands in a folder
// that takes no new file is written through. What a killed process left unfinished in the folder is removed. Tested by
// tests/output/write_file_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace ridgeline {

/// The file that write_file(path) makes or replaces: where links lead, also those to nothing yet.
std::filesystem::path written_file(const std::filesystem::path& path);

/// A file that is written piece by piece: its text is never whole in memory. Where no file can be made beside it (a
/// device, a pipe), the text waits in an unnamed file until finish(). Throws as write_file() does.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();  ///< without finish() nothing is left of it
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void add(std::string_view text);
  /// The file is there, whole; returns how many bytes were added.
  std::uint64_t finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Removes the files that FileWriters of this process have not finished. For a signal handler that ends the process.
void remove_own_unfinished() noexcept;

/// Writes `text`, compressed where the name ends in ".gz". Throws UserError where nothing can be written under this
/// name (no such folder, no permission), OutputError where writing itself fails; nothing half-written is left then.
void write_file(const std::string& path, const std::string& text);

}  // namespace ridgeline
