// Files of points with bytes changed: refused, or the points that were written.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "sim/config/parse_yaml.h"
#include "sim/study/sweep/points_file.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {
namespace {

/// A sweep, its points and the bytes of their file.
class WrittenPoints {
 public:
  WrittenPoints() {
    sweep_.scenario.entries.clear();  // nothing is predicted: no description is read for each input
    for (std::uint64_t i = 0; i < sweep_.grid_size(); ++i) {
      SweepPoint point;
      point.index = i;
      point.fits = i % 3 != 0;
      for (std::size_t k = 0; k < point.metrics.size(); ++k)
        point.metrics[k] = static_cast<double>(i + 1) / static_cast<double>(k + 1);
      if (i % 5 == 4) point.error = "a mistake";
      points_.push_back(std::move(point));
    }
    std::filesystem::remove(path_);
    { PointsFile(path_, sweep_).append(points_); }
    std::ifstream in(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  ~WrittenPoints() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  WrittenPoints(const WrittenPoints&) = delete;
  WrittenPoints& operator=(const WrittenPoints&) = delete;

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::string wrong_after(const std::string& changed) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << changed;
    const PointsFile file(path_, sweep_);
    for (const SweepPoint& point : file.known())
      if (point.index >= points_.size() || !(point == points_[point.index])) return "a point that nobody wrote";
    return {};
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / ("ridgeline-fuzz-" + std::to_string(::getpid()));
  Sweep sweep_ =
      read_sweep(config::parse_yaml(
                     "scenario: {hardware: nvidia-t4, model: gpt2, training: {micro_batch: 1, sequence_length: 64}}\n"
                     "axes: {training.micro_batch: {range: [1, 20], step: 1}}\n",
                     "points"),
                 "scenarios/sweeps/points.yaml");
  std::vector<SweepPoint> points_;
  std::string bytes_;
};

}  // namespace

std::string fuzz_points(const std::uint8_t* data, std::size_t size) {
  static const WrittenPoints written;
  std::string changed = written.bytes();
  for (std::size_t at = 0; at + 4 <= size && !changed.empty(); at += 4) {
    const std::size_t place = (std::size_t{data[at + 1]} << 8 | data[at + 2]) % changed.size();
    const std::uint8_t value = data[at + 3];
    const std::size_t length = std::min<std::size_t>(value, changed.size() - place);
    switch (data[at] % 8) {
      case 0:
      case 1:
      case 2: changed[place] = static_cast<char>(value); break;
      case 3:
      case 4: changed[place] = static_cast<char>(changed[place] ^ (1 << value % 8)); break;
      case 5: changed.resize(place); break;
      case 6: changed.replace(place, length, changed.substr(std::size_t{value} * 61 % changed.size(), length)); break;
      default: changed.replace(place, length, length, '\0'); break;
    }
  }
  try {
    return written.wrong_after(changed);
  } catch (const UserError& error) {
    if (std::string_view(error.what()).find("ridgeline-fuzz-") == std::string_view::npos)
      return std::string("a message that names no file: ") + error.what();
  }
  return {};
}

}  // namespace ridgeline
