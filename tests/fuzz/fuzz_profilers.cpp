// Files of Nsight Systems and Nsight Compute: tables as they are, and a database with bytes changed.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "sim/trace/nsight/ncu_counters.h"
#include "sim/trace/nsight/profile_tables.h"
#include "sim/trace/nsight/read_nsight.h"
#include "sim/trace/profiler/read_profiler_trace.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/file_of_bytes.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/nsight_database.h"

namespace ridgeline {
namespace {

/// A report of two steps, and its bytes.
class WrittenReport {
 public:
  WrittenReport() {
    NsightDatabase database("fuzz-report.sqlite");
    database.gpu("NVIDIA L4", 24'000'000'000, 58, 8, 9);
    for (int step = 0; step < 2; ++step) {
      const double at = 1000.0 * step;
      database.copy(database.call("cudaMemcpyAsync_v3020", at, 5.0), at + 10.0, 40.0, 1 << 20);
      database.set(database.call("cudaMemsetAsync", at + 6.0, 3.0), at + 51.0, 2.0, 4096);
      for (int k = 0; k < 4; ++k)
        database.kernel(database.call("cudaLaunchKernel_v7000", at + 10.0 * (k + 1), 4.0), at + 60.0 + 100.0 * k, 90.0,
                        "gemm");
      database.call("cudaDeviceSynchronize", at + 60.0, 500.0);
      database.range("step", at, at + 600.0);
    }
    path_ = database.path();
    std::ifstream in(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_, bytes_;
};

}  // namespace

std::string fuzz_nsight(const std::uint8_t* data, std::size_t size) {
  static const WrittenReport written;
  std::string changed = written.bytes();
  for (std::size_t at = 0; at + 4 <= size && !changed.empty(); at += 4) {
    const std::size_t place = (std::size_t{data[at + 1]} << 8 | data[at + 2]) % changed.size();
    const std::uint8_t value = data[at + 3];
    const std::size_t length = std::min<std::size_t>(value, changed.size() - place);
    switch (data[at] % 6) {
      case 0:
      case 1: changed[place] = static_cast<char>(value); break;
      case 2: changed[place] = static_cast<char>(changed[place] ^ (1 << value % 8)); break;
      case 3: changed.resize(place); break;
      case 4: changed.replace(place, length, changed.substr(std::size_t{value} * 61 % changed.size(), length)); break;
      default: changed.replace(place, length, length, '\0'); break;
    }
  }
  std::ofstream(written.path(), std::ios::binary | std::ios::trunc) << changed;
  trace::Defects defects;
  try {
    const trace::ProfilerEvents events = trace::read_nsight(written.path(), defects);
    (void)trace::replay_of_profile(
        events, written.path(),
        [](const trace::RecordedGpu&) {
          return trace::RecordedDevice{2e12, 2e-6, {}};
        },
        defects);
  } catch (const UserError& error) {
    if (std::string_view(error.what()).find("fuzz-report") == std::string_view::npos)
      return std::string("a message that names no file: ") + error.what();
  }
  return {};
}

std::string fuzz_profile_table(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return {};
  const std::string& path = file_of_bytes(data, size);
  try {
    if (trace::looks_like_ncu(path))
      for (const trace::CountedKernel& kernel : trace::read_ncu(path)) {
        bool finite = true;
        for_each_counter(kernel, [&](const char*, const std::optional<double>& value) {
          finite = finite && (!value || std::isfinite(*value));
        });
        if (!finite) return "a counter that is no number";
      }
    if (trace::looks_like_profile_tables(path))
      for (const trace::TableRow& row : trace::read_profile_tables(path).rows)
        if (!(row.seconds >= 0.0) || std::isnan(row.count)) return "a time that is none";
  } catch (const UserError& error) {
    if (std::string_view(error.what()).find("/proc/self/fd") == std::string_view::npos)
      return std::string("a message that names no place: ") + error.what();
  }
  return {};
}

}  // namespace ridgeline
