// The finished points of a sweep in a file (JSON Lines), so that an interrupted one goes on where it stopped.
//
// The first line names the sweep; each other one is a point. Lines are appended whole and flushed; a last line cut off
// by a crash is dropped and its point predicted again. One process writes a file at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/study/sweep_point.h"

namespace ridgeline {

class PointsFile {
 public:
  /// Opens or makes the file and reads what it has. Throws UserError where it belongs to another sweep, is damaged
  /// elsewhere than at its end, is written by another process or cannot be opened.
  PointsFile(const std::string& path, const Sweep& sweep);
  ~PointsFile();
  PointsFile(const PointsFile&) = delete;
  PointsFile& operator=(const PointsFile&) = delete;

  /// In the file when it was opened: each point once, in ascending order.
  [[nodiscard]] const std::vector<SweepPoint>& known() const { return known_; }
  /// Throws OutputError when the disk does not take it.
  void append(std::span<const SweepPoint> points);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void read(const Sweep& sweep);
  void write(const std::string& text);

  std::string path_;
  int descriptor_ = -1;
  std::vector<SweepPoint> known_;
};

}  // namespace ridgeline
