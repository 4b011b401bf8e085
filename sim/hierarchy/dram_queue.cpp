#include "sim/hierarchy/dram_queue.h"

namespace ridgeline {

DramQueue::DramQueue(const DramSpec& dram, double stretch) {
  const double byte = stretch * kTicksASecond / dram.bandwidth.value();
  read_ticks_ = byte / dram.read_efficiency;
  write_ticks_ = byte / dram.write_efficiency;
  turn_ticks_ = 2.0 * dram.turnaround * byte;
}

Ticks DramQueue::serve(Ticks now, std::int64_t read, std::int64_t written) {
  double service = read_ticks_ * static_cast<double>(read);
  read_since_ += read;
  buffered_ += written;
  if (buffered_ >= kBuffer) {
    service += write_ticks_ * static_cast<double>(buffered_);
    if (read_since_ > 0) {
      service += turn_ticks_ * static_cast<double>(buffered_);
      ++turns_;
    }
    buffered_ = read_since_ = 0;
  }
  service += rest_;
  const Ticks ticks = std::llround(service);
  rest_ = service - static_cast<double>(ticks);
  busy_ += ticks;
  free_at_ = std::max(free_at_, now) + ticks;
  return free_at_;
}

double DramQueue::seconds(const DramSpec& dram, double read, double written) {
  const double turning = read > 0.0 ? 2.0 * dram.turnaround : 0.0;
  return (read / dram.read_efficiency + written * (1.0 / dram.write_efficiency + turning)) / dram.bandwidth.value();
}

}  // namespace ridgeline
