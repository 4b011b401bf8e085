// The kernel of a library as a recording names it.
#pragma once

#include <cstdint>

namespace ridgeline {

/// The library's kernel that a recording names for a product: its instructions and its tile, rows by columns of the
/// result. `m` = 0: not recorded; the library's choice is predicted then.
struct LibraryKernel {
  enum class Instructions : std::uint8_t { none, wgmma, mma_sync, simt };
  Instructions instructions = Instructions::none;
  std::int64_t m = 0, n = 0;
  std::int64_t k = 0, stages = 0;  ///< 0: the name does not say
  std::int64_t splits = 0;         ///< of k, by the launch's blocks; 0: not known
  bool summed = false;             ///< splits of k, which a second kernel adds up
  bool operator==(const LibraryKernel&) const = default;
};

}  // namespace ridgeline
