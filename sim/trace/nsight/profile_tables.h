// Tables of sums that `nsys stats` and nvprof print: kernels, copies, calls of the CUDA API, NVTX ranges, by name.
//
// CSV with commas, semicolons or tabs, or columns as on a terminal; lines before, between and behind tables are passed
// over. Headings carry the unit ("Total Time (ns)", "(us)"), numbers may have thousands separators. A list of single
// events (cuda_gpu_trace, cuda_kern_exec_trace) is summed up by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::trace {

enum class TableKind : std::uint8_t { kernels, copies, api, ranges, system };
/// "kernels", "copies", "CUDA API calls", "NVTX ranges", "calls of the operating system".
std::string_view name_of(TableKind kind);

struct TableRow {
  TableKind kind = TableKind::kernels;
  std::string name;
  double seconds = 0.0, count = 0.0;
};

struct ProfileTables {
  std::vector<std::string> reports;  ///< headings' names: "cuda_gpu_kern_sum", where the file says them
  std::vector<TableRow> rows;        ///< each name of a kind once, the longest first
};

/// Tells whether the file begins as such tables do; what follows may still be broken.
bool looks_like_profile_tables(const std::string& path);

/// Throws UserError with file and line for a table whose numbers are none.
ProfileTables read_profile_tables(const std::string& path);

}  // namespace ridgeline::trace
