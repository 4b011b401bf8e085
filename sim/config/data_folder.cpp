#include "sim/config/data_folder.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "sim/units/user_error.h"

namespace ridgeline::config {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "hw" / "hosts", ignored);
}

/// The file that holds this code: the program, or the shared library that it is in.
fs::path own_file() {
  Dl_info info{};
  std::error_code ignored;
  if (::dladdr(reinterpret_cast<const void*>(&own_file), &info) != 0 && info.dli_fname != nullptr)
    return fs::canonical(info.dli_fname, ignored);
  return {};
}

/// build/develop/tests/test_x, lib/x86_64-linux-gnu/libridgeline.so and
/// lib/python3/dist-packages/ridgeline/_ridgeline.so lie within four levels of what is looked for.
std::optional<fs::path> above(const fs::path& file) {
  fs::path folder = file.parent_path();
  for (int level = 0; level <= 4 && folder.has_relative_path(); ++level, folder = folder.parent_path())
    for (const fs::path& place : {folder, folder / "share" / "ridgeline"})
      if (holds_data(place)) return place;
  return std::nullopt;
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
  for (const fs::path& file : {fs::read_symlink("/proc/self/exe", ignored), own_file()})
    if (const auto found = above(file)) return *found;
  if (holds_data(RIDGELINE_SOURCE_TREE)) return RIDGELINE_SOURCE_TREE;
  throw UserError(
      "the descriptions of GPUs (hw/) are not found beside the program; RIDGELINE_DATA=FOLDER names theirs");
}

}  // namespace

fs::path data_folder(std::string_view name) { return root() / name; }

}  // namespace ridgeline::config
