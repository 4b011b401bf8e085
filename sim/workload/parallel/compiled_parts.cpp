#include "sim/workload/parallel/compiled_parts.h"

#include <algorithm>
#include <numeric>

#include "sim/workload/parallel/buckets.h"

namespace ridgeline::parallel {

CompiledParts::CompiledParts(eager::Eager& eager, const OpTrace& trace, const eager::Parameters& parameters,
                             DistributedDataParallel& replicated, const ParallelDescription& how)
    : eager_(eager), trace_(trace), parameters_(parameters), replicated_(replicated), how_(how) {
  replicated.hold();
}

void CompiledParts::cut(const CompiledRange& whole) {
  cuts_ = split_graph(trace_, whole.forward, parameters_, how_.bucket_cap.value_or(kBucket));
  ranges_.assign(cuts_.size(), {});
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    CompiledRange& part = ranges_[i];
    part.forward = {cuts_[i].begin, i + 1 < cuts_.size() ? cuts_[i + 1].begin : whole.forward.end};
    part.parameters = std::max<std::int64_t>(1, static_cast<std::int64_t>(order_of_arrival(cuts_[i]).size()));
    part.enters_forward = i == 0;
    part.enters_backward = i + 1 == cuts_.size();
  }
  ranges_.back().returns_scores = whole.returns_scores;
  running_ = cuts_.size();
  eager_.tape.before_node = [this](const eager::Node& node) {
    while (running_ > 1 && node.position < cuts_[running_ - 1].begin) end_part();
  };
}

void CompiledParts::end_part() {
  --running_;
  ranges_[running_].backward.end = eager_.recorder.position();
  replicated_.release(order_of_arrival(cuts_[running_]));
  if (running_ > 0) ranges_[running_ - 1].backward.begin = eager_.recorder.position();
}

void CompiledParts::finish(const CompiledRange& whole) {
  while (running_ > 0) end_part();
  // Of parameters in one storage a part may be taken to use another's, whose gradient then came behind it.
  std::vector<std::size_t> rest(parameters_.size());
  std::iota(rest.rbegin(), rest.rend(), std::size_t{0});
  replicated_.release(rest);
  eager_.tape.before_node = nullptr;
  ranges_.back().backward.begin = whole.backward.begin;
  ranges_.back().outer_nodes = whole.outer_nodes;
}

}  // namespace ridgeline::parallel
