#include "sim/config/data_folder.h"

#include <fmt/format.h>

#include <cstdlib>

#include "sim/units/user_error.h"

namespace ridgeline::config {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "hw" / "hosts", ignored);
}

fs::path root() {
  if (const char* given = std::getenv("RIDGELINE_DATA"); given && *given) {
    std::error_code ignored;
    if (!fs::is_directory(fs::path(given) / "hw", ignored)) {
      throw UserError(fmt::format("RIDGELINE_DATA={}: no folder hw in it", given));
    }
    return given;
  }
  std::error_code ignored;
  fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  // build/ridgeline, build/develop/ridgeline and build/develop/tests/test_x all lie within three levels of the root.
  for (int level = 0; level <= 3 && !ignored && folder.has_relative_path(); ++level, folder = folder.parent_path()) {
    if (holds_data(folder)) return folder;
  }
  return RIDGELINE_SOURCE_TREE;
}

}  // namespace

fs::path data_folder(std::string_view name) { return root() / name; }

}  // namespace ridgeline::config
