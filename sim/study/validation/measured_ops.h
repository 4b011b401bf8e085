// Single operations as they were timed, with the kernels that the profiler saw (files of kind "kernels"; of kind
// "published-ops" without kernels), and which of them no fit may see.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/study/validation/measured_files.h"
#include "sim/units/quantity.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline {

struct MeasuredKernel {
  std::string name{};
  double seconds = 0;
  bool has_geometry = false;                          ///< memsets and copies have none
  std::array<std::int64_t, 3> grid{};                 ///< zeros: not recorded
  int threads = 0, registers = 0, shared_bytes = -1;  ///< of a block, of a thread, of a block; as above
};

/// One operation as it was timed.
struct MeasuredOp {
  std::string op{}, dtype{};
  KernelCase kernel{};
  Seconds time;                           ///< sum of the kernels, median of repetitions
  std::vector<MeasuredKernel> kernels{};  ///< none: not profiled
  int back_to_back = 1;                   ///< repetitions of a continuing load until then, in the mean over those timed
  int machine = 0;                        ///< index into MeasuredOps::machines
  const MeasuredFile* file = nullptr;
  std::size_t line = 0;     ///< in its file, from 1
  bool held_out = false;    ///< no fit sees it
  std::uint64_t shape = 0;  ///< hash of op, type and parameters: equal shapes are on one side and in one fold
  std::uint64_t row = 0;    ///< hash of the line as it stands in its file
};

struct MeasuredOps {
  std::vector<MeasuringMachine> machines;  ///< in the order of the index
  std::vector<MeasuredOp> rows;
  std::size_t twins = 0;  ///< rows to fit that were left out because their shape is held out in this or another file
};

/// Which rows of the files of kind "kernels" are asked for.
struct WantedOps {
  std::function<bool(const MeasuredFile&)> files = [](const MeasuredFile&) { return true; };
  std::vector<std::string> ops{};  ///< none: all
  bool held_out_only = false;
};

/// The rows asked for, in the order of the index. A row to fit whose shape is held out in any file of the index is left
/// out, so that no shape is on both sides. The index must outlive the result. Throws UserError for a file that cannot
/// be read or a row that is no kernel case.
MeasuredOps load_measured_ops(const MeasurementIndex& index, const WantedOps& wanted);

/// From the last kernel of a CUDA graph to the first of the next, beyond launch.graph_gap: graphs of six ops against
/// graphs of 60 on an H200, median of the ops below 30 us (measurements/h200/graphs.jsonl).
inline constexpr Seconds kGraphLaunch{2.7e-6};

/// What a row's time holds beside its kernels, `launches` of them: nothing where the kernels alone were timed; where a
/// CUDA graph was, the gap after each and the op's share of the graph's own launch.
Seconds between_kernels(const MeasuredOp& row, std::size_t launches, const Gpu& gpu);

/// Whether an operation is held out by the split "hash": a third of the shapes.
bool held_out_by_shape(std::uint64_t shape);

/// FNV-1a of 64 bits; `seed` continues a hash.
std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ull);

}  // namespace ridgeline
