// The finished points of a sweep in an SQLite database, so that an interrupted one goes on where it stopped.
//
// Tables (docs/sweep.md): `question` says what was asked and of which program, `file` which descriptions were read and
// a hash of each, `point` has a row a point with a hash of its own. Points are written some at a time, each time as one
// transaction: a process that is killed loses the last fraction of a second. One process writes a file at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/study/sweep/sweep_point.h"

namespace ridgeline {

class PointsFile {
 public:
  /// Opens or makes the file and reads what it has. Throws UserError where it belongs to another sweep or another build
  /// of the program, where a file that its points came from has changed, where it is damaged, is being written by
  /// another process or cannot be opened.
  PointsFile(const std::string& path, const Sweep& sweep);
  /// Writes what is left, if it can.
  ~PointsFile();
  PointsFile(const PointsFile&) = delete;
  PointsFile& operator=(const PointsFile&) = delete;

  /// In the file when it was opened, in ascending order.
  [[nodiscard]] const std::vector<SweepPoint>& known() const { return known_; }
  /// Throws OutputError when the disk does not take them, UserError where a file that points come from has changed.
  void append(std::span<const SweepPoint> points);
  /// What was appended is on its way to the disk. Throws as append does.
  void flush();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  class Database;
  std::string path_;
  std::unique_ptr<Database> database_;
  std::vector<SweepPoint> known_;
};

}  // namespace ridgeline
