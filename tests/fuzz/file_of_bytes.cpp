#include "tests/fuzz/file_of_bytes.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

namespace ridgeline {

const std::string& file_of_bytes(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("input", 0);
  static const std::string path = fmt::format("/proc/self/fd/{}", file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    throw std::runtime_error("the input cannot be written");
  return path;
}

}  // namespace ridgeline
