// The recurrence over several streams: one host thread gives them work, events make one wait for another.
//
//   launch(s):        start = max(end of s + gap, events s waits for, return of the launch call + start latency)
//   record_event(s):  happens when all that s was given is done
//   wait_event(s, e): what s is given next starts no sooner than e happened
//
// A stream that waits for an event waits for the host as long as the host had not yet given what the event rests on: a
// copy that is issued late starves the default stream behind it.
//
// With one stream it is the recurrence of recurrence.h. Tested by tests/timeline/stream_recurrence_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/timeline/issue_plan.h"
#include "sim/timeline/recurrence.h"

namespace ridgeline {

class StreamRecurrence {
 public:
  StreamRecurrence(std::size_t streams, std::size_t events, int queue_depth, double start_latency);

  /// As Recurrence::step, but that repeated launches are run once.
  Recurrence::Step step(const IssuePlan& plan, std::span<const double> durations, std::span<Recurrence::Span> spans);

  [[nodiscard]] double host() const { return host_; }
  /// When the default stream is done with all it was given and waits for.
  [[nodiscard]] double gpu() const { return streams_.front().done().at; }

 private:
  struct Moment {
    double at = 0.0;
    double given = 0.0;  ///< when work began that it rests on and that had waited for the host
  };
  struct Stream {
    Moment end;                  ///< of the last kernel
    Moment ready;                ///< the last event it waits for
    std::vector<double> starts;  ///< of the last `queue_depth` launches, a ring
    std::size_t next = 0;
    [[nodiscard]] const Moment& done() const { return end.at > ready.at ? end : ready; }
  };
  void pass(const Issue& issue);

  double latency_, host_ = 0.0;
  std::vector<Stream> streams_;
  std::vector<Moment> events_;
};

}  // namespace ridgeline
