#include "sim/config/files_read.h"

#include <system_error>

namespace ridgeline::config {
namespace {

thread_local FilesRead* noting = nullptr;

}  // namespace

FilesRead::FilesRead() : outer_(noting) { noting = this; }
FilesRead::~FilesRead() { noting = outer_; }

bool FilesRead::wanted() { return noting != nullptr; }

void FilesRead::note(const std::filesystem::path& file) {
  if (noting == nullptr) return;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file, error);
  if (error) return;
  for (FilesRead* one = noting; one != nullptr; one = one->outer_) one->paths_.insert(path.string());
}

}  // namespace ridgeline::config
