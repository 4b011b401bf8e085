// Collectives of a step: a stream of their own, and the events that tie it to the default one.
//
// As ProcessGroupNCCL of PyTorch 2.8 and later runs them: an asynchronous collective waits for what the caller's stream
// was given so far, and whoever waits for it makes its own stream wait. The host does with NCCL_BLOCKING_WAIT=1 alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/workload/collective.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::parallel {

/// What a wait waits for.
struct Work {
  std::uint32_t event = 0;
};

class ProcessGroup {
 public:
  /// A group of `ranks`; its asynchronous collectives run on a new stream.
  ProcessGroup(eager::Eager& eager, GroupKind kind, std::int64_t ranks, std::string_view stream)
      : eager_(&eager), kind_(kind), ranks_(ranks), stream_(eager.recorder.add_stream(stream)) {}

  /// One whose collectives run on a stream that is there.
  ProcessGroup(eager::Eager& eager, GroupKind kind, std::int64_t ranks, std::uint8_t stream)
      : eager_(&eager), kind_(kind), ranks_(ranks), stream_(stream) {}

  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint8_t stream() const { return stream_; }
  /// Of `bytes` as Collective counts them. `input` and `output` may be one tensor.
  Work start(CollectiveKind kind, DType type, std::int64_t bytes, const eager::Tensor& input,
             const eager::Tensor& output);
  /// The same, where what the host does for it was noted already.
  Work start_silently(CollectiveKind kind, DType type, std::int64_t bytes, const eager::Tensor& input,
                      const eager::Tensor& output);
  /// On the stream that is current.
  void run(CollectiveKind kind, DType type, std::int64_t bytes, const eager::Tensor& input,
           const eager::Tensor& output);
  /// The current stream waits.
  void wait(Work work);

 private:
  eager::Eager* eager_;
  GroupKind kind_;
  std::int64_t ranks_;
  std::uint8_t stream_;
};

/// Runs what follows on another stream, until its end.
class OnStream {
 public:
  OnStream(eager::Recorder& recorder, std::uint8_t stream) : recorder_(recorder), before_(recorder.stream) {
    recorder.stream = stream;
  }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;
  ~OnStream() { recorder_.stream = before_; }

 private:
  eager::Recorder& recorder_;
  std::uint8_t before_;
};

}  // namespace ridgeline::parallel
