// The queue in front of the DRAM: requests of one moment are served together, interleaved, after those before them.
//
// Writes wait in a buffer, as memory controllers keep them, and are written when it is full; if there were reads since,
// turning from them to writes and back costs twice DramSpec::turnaround of the bytes written (as streams of mixed reads
// and writes lose on an H200 and an H100: in proportion to what is written).
#pragma once

#include <cstdint>

#include "sim/hardware/gpu.h"
#include "sim/hierarchy/event_queue.h"

namespace ridgeline {

class DramQueue {
 public:
  /// `stretch`: seconds that a kernel's pattern of access takes over those of plain streams.
  DramQueue(const DramSpec& dram, double stretch);

  /// Requests that come at `now`; answers when the last byte of them has left the queue. Times must not decrease.
  Ticks serve(Ticks now, std::int64_t read, std::int64_t written);

  /// Seconds that plain streams of so many bytes, evenly mixed, keep the DRAM busy.
  static double seconds(const DramSpec& dram, double read, double written);

  [[nodiscard]] Ticks busy() const { return busy_; }  ///< ticks with something to do
  [[nodiscard]] std::int64_t buffered() const { return buffered_; }
  [[nodiscard]] std::int64_t turns() const { return turns_; }  ///< from reading to writing and back

 private:
  static constexpr std::int64_t kBuffer = 256 << 10;  ///< bytes of writes that wait: some KiB a channel

  double read_ticks_, write_ticks_, turn_ticks_;  ///< a byte
  double rest_ = 0;                               ///< of a tick, that rounding has left over
  Ticks free_at_ = 0, busy_ = 0;
  std::int64_t buffered_ = 0, read_since_ = 0, turns_ = 0;
};

}  // namespace ridgeline
