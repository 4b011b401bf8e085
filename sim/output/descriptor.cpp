#include "sim/output/descriptor.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ridgeline {

int write_all(int descriptor, std::string_view text) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // one call takes less than 2 GiB
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), std::min(text.size(), kMost));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;  // a device that takes nothing would be asked for ever
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace ridgeline
