#include "sim/units/readable_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using Folders = std::vector<std::filesystem::path>;
using FileNumber = std::pair<dev_t, ino_t>;  // of a device and within it: one file whatever its names

std::mutex guarding;
std::shared_ptr<const Folders> allowed;  // null: everything
bool remembering = false;
std::vector<FileNumber> remembered;

bool lies_below(const std::filesystem::path& file, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

std::optional<FileNumber> regular_file(const std::filesystem::path& file) {
  struct stat state {};
  if (::stat(file.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return std::nullopt;
  return FileNumber{state.st_dev, state.st_ino};
}

}  // namespace

void read_only_below(const std::vector<std::filesystem::path>& folders) {
  std::shared_ptr<Folders> made;
  if (!folders.empty()) {
    made = std::make_shared<Folders>();
    for (const std::filesystem::path& folder : folders) {
      std::filesystem::path whole = std::filesystem::canonical(folder);
      if (!whole.has_filename()) whole = whole.parent_path();
      made->push_back(std::move(whole));
    }
  }
  const std::lock_guard lock(guarding);
  allowed = std::move(made);
}

void remember_read_files() {
  const std::lock_guard lock(guarding);
  remembering = true;
}

bool was_read(const std::filesystem::path& file) {
  const std::optional<FileNumber> number = regular_file(file);
  const std::lock_guard lock(guarding);
  return number && std::find(remembered.begin(), remembered.end(), *number) != remembered.end();
}

void check_readable(const std::filesystem::path& file) {
  std::shared_ptr<const Folders> folders;
  {
    const std::lock_guard lock(guarding);
    folders = allowed;
    if (remembering)
      if (const std::optional<FileNumber> number = regular_file(file)) remembered.push_back(*number);
  }
  if (!folders) return;
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(std::filesystem::absolute(file, error), error);
  if (!error && std::any_of(folders->begin(), folders->end(),
                            [&](const std::filesystem::path& folder) { return lies_below(whole, folder); }))
    return;
  throw UserError(file.string() + ": lies outside of the folders that questions may name files of (--folder)");
}

}  // namespace ridgeline
