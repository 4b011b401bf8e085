// The measured kernels that constants are fitted on and tested on: fit/measurements.yaml says which file is of which
// machine, and what of it no fit may see.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/workload/kernel_case.h"

namespace ridgeline::fit {

struct ProfiledKernel {
  std::string name{};
  double seconds = 0;
  std::array<std::int64_t, 3> grid{};                 ///< zeros: not recorded
  int threads = 0, registers = 0, shared_bytes = -1;  ///< of a block, of a thread, of a block; as above
};

/// One op as it was timed.
struct Measurement {
  std::string op{};
  KernelCase kernel{};
  std::vector<ProfiledKernel> kernels{};
  int machine = 0;  ///< index into Measurements::machines
  bool held_out = false;
  std::uint64_t shape = 0;  ///< hash of op, type and parameters: equal shapes are on one side and in one fold
  std::uint64_t row = 0;    ///< hash of the line as it stands in its file
};

struct Measurements {
  std::vector<std::string> machines;  ///< the first is the one that the hardware file describes
  std::vector<Measurement> rows;
  std::size_t twins = 0;  ///< rows to fit that were left out because their shape is held out elsewhere
};

/// The rows with profiled kernels whose op is one of `ops`. Throws UserError when a file cannot be read.
Measurements load_measurements(const std::filesystem::path& root, const std::vector<std::string>& ops);

/// FNV-1a of 64 bits; `seed` continues a hash.
std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ull);

}  // namespace ridgeline::fit
