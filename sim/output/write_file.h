// The one place where files are written.
//
// A regular file, also behind a link, is written beside itself and renamed: whole or not at all, its mode and owner
// kept. What is none (a device, a pipe, this process's own standard output), has several names or stands in a folder
// that takes no new file is written through. What a killed process left unfinished in the folder is removed. Tested by
// tests/output/write_file_test.cpp.
#pragma once

#include <filesystem>
#include <string>

namespace ridgeline {

/// The file that write_file(path) makes or replaces: where links lead, also those to nothing yet.
std::filesystem::path written_file(const std::filesystem::path& path);

/// Writes `text`, compressed where the name ends in ".gz". Throws UserError where nothing can be written under this
/// name (no such folder, no permission), OutputError where writing itself fails; nothing half-written is left then.
void write_file(const std::string& path, const std::string& text);

}  // namespace ridgeline
