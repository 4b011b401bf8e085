#include "sim/study/sweep/sweep_ranks.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// Ranks that a launcher says there are; 1 without one.
int announced_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* value = std::getenv(name)) return std::max(1, std::atoi(value));
  return 1;
}

/// Beside the program, in the build folder above a test, or where the installed one lies.
void* load_mpi_library() {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const std::filesystem::path& place : {folder, folder.parent_path(), folder / ".." / RIDGELINE_LIBRARY_FOLDER})
    if (void* library = ::dlopen((place / "libridgeline_mpi.so").c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  return nullptr;
}

}  // namespace

std::unique_ptr<Ranks> join_ranks(int& argc, char**& argv) {
  const int ranks = announced_ranks();
  if (ranks < 2) return std::make_unique<Ranks>();
  void* library = load_mpi_library();
  using Join = Ranks* (*)(int&, char**&);
  const auto join = library == nullptr ? nullptr : reinterpret_cast<Join>(::dlsym(library, "ridgeline_join_mpi"));
  if (join == nullptr) {
    const char* why = ::dlerror();
    throw UserError(fmt::format("started as {} processes, but this program was built without Boost.MPI ({})", ranks,
                                why != nullptr ? why : "libridgeline_mpi.so lacks its entry"));
  }
  return std::unique_ptr<Ranks>(join(argc, argv));
}

}  // namespace ridgeline
