#include "sim/workload/parallel/communication.h"

namespace ridgeline::parallel {

Work ProcessGroup::start(CollectiveKind kind, DType type, std::int64_t bytes, const eager::Tensor& input,
                         const eager::Tensor& output) {
  eager_->recorder.host(HostClass::collective);
  return start_silently(kind, type, bytes, input, output);
}

Work ProcessGroup::start_silently(CollectiveKind kind, DType type, std::int64_t bytes, const eager::Tensor& input,
                                  const eager::Tensor& output) {
  eager::Recorder& recorder = eager_->recorder;
  recorder.wait_event(stream_, recorder.record_event(recorder.stream));
  const OnStream there(recorder, stream_);
  recorder.op(Collective{kind, kind_, type, ranks_, bytes}, {&input}, {&output});
  return {recorder.record_event(stream_)};
}

void ProcessGroup::run(CollectiveKind kind, DType type, std::int64_t bytes, const eager::Tensor& input,
                       const eager::Tensor& output) {
  eager_->recorder.host(HostClass::collective);
  eager_->recorder.op(Collective{kind, kind_, type, ranks_, bytes}, {&input}, {&output});
  if (eager_->blocking_wait) eager_->recorder.wait_for_gpu();
}

void ProcessGroup::wait(Work work) {
  eager_->recorder.wait_event(eager_->recorder.stream, work.event);
  if (eager_->blocking_wait) eager_->recorder.wait_for_gpu();
}

}  // namespace ridgeline::parallel
