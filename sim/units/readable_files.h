// Files that may be opened because somebody named them: all of them, or, in a server, those below some folders; and
// those that were.
//
// Whoever opens a file that a question names asks here first. Tested by tests/serve/readable_files_test.cpp.
#pragma once

#include <filesystem>
#include <vector>

namespace ridgeline {

/// From now on check_readable refuses what lies outside of these folders, links followed. For the whole process; to be
/// called before questions are answered, and without folders to allow everything again.
void read_only_below(const std::vector<std::filesystem::path>& folders);

/// Throws UserError for a file that may not be opened, whether there is one or not.
void check_readable(const std::filesystem::path& file);

/// From now on was_read knows the files that check_readable allows: for a program that answers once and ends.
void remember_read_files();
/// Whether `file`, under this or another name, was read since remember_read_files().
bool was_read(const std::filesystem::path& file);

}  // namespace ridgeline
