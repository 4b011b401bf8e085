// What fully_shard keeps of a module between its forward and its backward pass.
//
// With a number as reshard_after_forward (torch/distributed/fsdp/_fully_shard/_fsdp_param.py of PyTorch 2.11,
// to_sharded_post_forward): of each whole parameter the part that this rank has in a smaller group is copied out, one
// kernel a parameter, in the type that was gathered. The backward pass gathers from that group, without a cast.
#include <memory>
#include <utility>

#include "sim/workload/parallel/fully_shard.h"

namespace ridgeline::parallel {

using eager::Tensor;

void FullyShard::reshard_after_forward(Group& group) {
  if (how_.reshard_after_forward.ranks == 1 || how_.strategy == DataStrategy::zero2) return;
  if (between_ && group.among == &group_ && group.whole) {
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const std::int64_t elements = (*group.sizes)[i] * group.among->ranks() / between_->ranks();
      Tensor whole = parameters_[group.parameters[i]]->value.detached();
      whole.sizes = {elements};
      whole.type = group.type;
      eager_.recorder.host(HostClass::contiguous);
      const Tensor& part = group.between.emplace_back(eager_.empty({elements}, group.type));
      eager_.recorder.set_category(part.storage.id(), Category::weights);
      eager_.recorder.op(Copy{CopyKind::contiguous, group.type, 1, elements, 1}, {&whole}, {&part});
    }
    group.kept = eager_.recorder.record_event(0);
  }
  reshard(group);
}

void FullyShard::gather_between(Group& group) {
  eager::Recorder& recorder = eager_.recorder;
  recorder.host(HostClass::fsdp_gather);
  for (const std::uint8_t stream : {copy_in_, group_.stream()}) recorder.wait_event(stream, group.kept);
  auto sizes = std::make_shared<std::vector<std::int64_t>>();
  for (const Tensor& part : group.between) sizes->push_back(part.elements());
  Tensor mine;  // this rank's part of the buffer
  {
    const OnStream there(recorder, copy_in_);
    group.gathered = eager_.empty({elements_of(group)}, group.type);
    recorder.set_category(group.gathered.storage.id(), Category::temporaries);
    mine = group.gathered;
    mine.sizes = {elements_of(group) / between_->ranks()};
    recorder.op(MultiTensor{MultiTensorFunction::copy, group.type, std::move(sizes)}, {}, {});
  }
  recorder.wait_event(group_.stream(), recorder.record_event(copy_in_));
  const OnStream there(recorder, group_.stream());
  between_->run(CollectiveKind::all_gather, group.type, group.gathered.bytes(), mine, group.gathered);
  group.gathering = recorder.record_event(group_.stream());
}

}  // namespace ridgeline::parallel
