// A cache line by line: set-associative, write-back or write-through, LRU or random. Slow and obvious.
//
// What L2Cache is checked against on small cases; nothing predicts with it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/gpu.h"

namespace ridgeline {

class LineCache {
 public:
  static constexpr std::uint64_t kLine = 128;  ///< bytes

  /// `capacity` is rounded down to whole sets of `ways` lines.
  LineCache(std::uint64_t capacity, int ways, L2Replacement replacement, L2Writes writes);

  /// Every line of [address, address + bytes). Written lines are not fetched: whole lines are written.
  void access(std::uint64_t address, std::uint64_t bytes, bool write);

  [[nodiscard]] std::uint64_t missed_bytes() const { return missed_ * kLine; }
  [[nodiscard]] std::uint64_t read_misses() const { return read_missed_ * kLine; }
  [[nodiscard]] std::uint64_t written_back() const { return written_back_ * kLine; }
  [[nodiscard]] std::uint64_t dirty_bytes() const;

 private:
  struct Way {
    std::uint64_t line = 0, touched = 0;
    bool valid = false, dirty = false;
  };
  void touch(std::uint64_t line, bool write);

  int ways_;
  L2Replacement replacement_;
  L2Writes writes_;
  std::vector<Way> lines_;  ///< set after set
  std::uint64_t sets_, clock_ = 0, random_ = 1;
  std::uint64_t missed_ = 0, read_missed_ = 0, written_back_ = 0;
};

}  // namespace ridgeline
