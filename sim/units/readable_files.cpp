#include "sim/units/readable_files.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using Folders = std::vector<std::filesystem::path>;

std::mutex guarding;
std::shared_ptr<const Folders> allowed;  // null: everything

bool lies_below(const std::filesystem::path& file, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
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

void check_readable(const std::filesystem::path& file) {
  std::shared_ptr<const Folders> folders;
  {
    const std::lock_guard lock(guarding);
    folders = allowed;
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
