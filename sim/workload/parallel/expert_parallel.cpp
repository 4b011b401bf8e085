#include "sim/workload/parallel/expert_parallel.h"

#include <memory>
#include <vector>

namespace ridgeline::parallel {

using eager::Eager;
using eager::Gradients;
using eager::Tensor;

struct ExpertParallel::ExchangeBackward final : eager::Node {
  explicit ExchangeBackward(ExpertParallel& all) : Node(HostClass::tensor_boundary_backward), ranks(all) {}
  ExpertParallel& ranks;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[0] = eager.empty(in[0].sizes, in[0].type);
    ranks.group_.run(CollectiveKind::all_to_all, in[0].type, in[0].bytes(), in[0], out[0]);
  }
};

ExpertParallel::ExpertParallel(Eager& eager, const ParallelDescription& description)
    : eager_(eager),
      group_(eager, GroupKind::expert, description.expert, "expert parallel collectives"),
      capacity_(description.expert_capacity) {
  if (description.expert_copies() > 1 && !description.shards_parameters())
    copies_.emplace(eager, GroupKind::expert_data, description.expert_copies(), "gradients of experts");
}

Tensor ExpertParallel::exchange(const Tensor& rows) {
  eager_.recorder.host(HostClass::tensor_boundary);
  Tensor result = eager_.empty(rows.sizes, rows.type);
  group_.run(CollectiveKind::all_to_all, rows.type, rows.bytes(), rows, result);
  if (eager_.needs_node({&rows})) Eager::attach(result, eager_.node<ExchangeBackward>({&rows}, *this));
  return result;
}

Tensor ExpertParallel::exchange_counts(const Tensor& counts) {
  Tensor result = eager_.empty(counts.sizes, counts.type);
  group_.run(CollectiveKind::all_to_all, counts.type, counts.bytes(), counts, result);
  return result;
}

void ExpertParallel::finish_gradients(eager::Parameters& parameters, bool reduced) {
  if (reduced) return;
  std::vector<const Tensor*> gradients;
  auto sizes = std::make_shared<std::vector<std::int64_t>>();
  for (const eager::Parameter& one : parameters) {
    if (!one.of_experts) continue;
    gradients.push_back(&one.gradient);
    sizes->push_back(one.value.elements());
  }
  if (gradients.empty()) return;
  eager_.recorder.host(HostClass::optimizer_op);
  eager_.recorder.op(MultiTensor{MultiTensorFunction::mul, gradients.front()->type, std::move(sizes)}, {}, {});
  if (!copies_) return;
  for (const Tensor* gradient : gradients)
    copies_->run(CollectiveKind::all_reduce, gradient->type, gradient->bytes(), *gradient, *gradient);
}

void ExpertParallel::add_up_norm() {
  const Tensor norm = eager_.empty({}, DType::fp32);
  group_.run(CollectiveKind::all_reduce, DType::fp32, norm.bytes(), norm, norm);
}

}  // namespace ridgeline::parallel
