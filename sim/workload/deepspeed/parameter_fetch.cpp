#include "sim/workload/deepspeed/parameter_fetch.h"

#include <algorithm>
#include <utility>

#include "sim/workload/deepspeed/share_update.h"

namespace ridgeline::deepspeed {

using eager::Tensor;

std::vector<eager::Parameter*> pointers_to(eager::Parameters& parameters) {
  std::vector<eager::Parameter*> result;
  for (eager::Parameter& parameter : parameters) result.push_back(&parameter);
  return result;
}

ParameterFetch::ParameterFetch(eager::Eager& eager, std::vector<eager::Parameter*> parameters,
                               const ZeroOptimization& zero, parallel::ProcessGroup& group, const Tensor& shards)
    : eager_(eager),
      parameters_(std::move(parameters)),
      zero_(zero),
      group_(group),
      shards_(shards),
      gathers_(zero.overlap_comm.value_or(true) ? eager.recorder.add_stream("copies of gathered parameters")
                                                : std::uint8_t{0}),
      states_(parameters_.size()) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    shard_.push_back((elements(i) + group.ranks() - 1) / group.ranks());
    states_[i].persistent = elements(i) <= zero.param_persistence_threshold;
    parameter_of_.resize(std::max<std::size_t>(parameter_of_.size(), storage(i) + 1), kNone);
    parameter_of_[storage(i)] = i;
  }
  find_leaves();
}

/// A matrix with the vector behind it, or up to two vectors, of one part of the network: a linear layer, a table, a
/// norm.
void ParameterFetch::find_leaves() {
  int vectors = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool matrix = parameters_[i]->value.sizes.rank() > 1;
    const bool elsewhere = i == 0 || parameters_[i]->accumulate.module != parameters_[i - 1]->accumulate.module;
    if (matrix || elsewhere || vectors == 0) {
      leaves_.emplace_back();
      vectors = matrix ? 1 : 2;
    }
    if (!matrix) --vectors;
    leaves_.back().push_back(i);
    leaf_of_.push_back(leaves_.size() - 1);
  }
}

void ParameterFetch::begin_pass() {
  if (++passes_ == 2)  // the first was recorded
    for (std::size_t visit = 0; visit < order_.size(); ++visit)
      for (const std::size_t parameter : leaves_[order_[visit]]) uses_.push_back({parameter, visit});
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].registered) wait_for(i);
    states_[i].last_fetched_for = -1;
  }
  next_use_ = visits_ = 0;
  whole_elements_ = 0;
}

void ParameterFetch::before_use(StorageId storage) {
  if (storage >= parameter_of_.size() || parameter_of_[storage] == kNone) return;
  visit_of(parameter_of_[storage]);
}

void ParameterFetch::visit_of(std::size_t parameter) {
  if (leaf_of_[parameter] == current_) return;
  end_visit();
  visit(leaf_of_[parameter]);
}

void ParameterFetch::visit(std::size_t leaf) {
  current_ = leaf;
  eager::Recorder& recorder = eager_.recorder;
  recorder.host(HostClass::fsdp_hooks);
  if (passes_ == 1) order_.push_back(leaf);
  const std::vector<std::size_t>& used = leaves_[leaf];
  std::vector<std::size_t> missing;
  for (const std::size_t parameter : used)
    if (states_[parameter].status == Status::absent) missing.push_back(parameter);
  gather(std::move(missing));
  for (const std::size_t parameter : used)
    if (states_[parameter].registered) wait_for(parameter);
  recorder.wait_event(recorder.stream, recorder.record_event(gathers_));
  if (passes_ > 1) prefetch(used);
  ++visits_;
}

void ParameterFetch::gather(std::vector<std::size_t> parameters) {
  if (parameters.empty()) return;
  std::sort(parameters.begin(), parameters.end());
  eager::Recorder& recorder = eager_.recorder;
  recorder.host(HostClass::fsdp_gather);
  const parallel::OnStream there(recorder, gathers_);
  Fetch& fetch = fetches_.emplace_back();
  std::int64_t shards = 0;
  for (const std::size_t parameter : parameters) {
    shards += shard_[parameter];
    whole_elements_ += elements(parameter);
    State& state = states_[parameter];
    state.status = Status::in_flight;
    state.fetch = fetches_.size() - 1;
    state.registered = true;
  }
  const Tensor mine = part_of(shards_, shards);
  const DType type = shards_.type;
  const std::int64_t bytes = shards * group_.ranks() * bytes_of(type);
  if (parameters.size() == 1) {
    recorder.fill_storage(storage(parameters.front()));
    const Tensor whole = parameters_[parameters.front()]->value.detached();
    fetch.work = group_.start(CollectiveKind::all_gather, type, bytes, mine, whole);
  } else {
    fetch.buffer = eager_.empty({shards * group_.ranks()}, type);
    recorder.set_category(fetch.buffer.storage.id(), Category::temporaries);
    const Tensor place = part_of(fetch.buffer, shards);
    copy(eager_, mine, place);
    fetch.work = group_.start(CollectiveKind::all_gather, type, bytes, place, fetch.buffer);
  }
  fetch.left = parameters.size();
  fetch.parameters = std::move(parameters);
}

/// What waits is the stream of copies, and the host for the gather before the last two that were waited for.
void ParameterFetch::wait_for(std::size_t parameter) {
  constexpr std::size_t kOngoing = 2;
  eager::Recorder& recorder = eager_.recorder;
  State& state = states_[parameter];
  Fetch& fetch = fetches_[state.fetch];
  const parallel::OnStream there(recorder, gathers_);
  if (waited_.size() > kOngoing) {
    recorder.host_waits_for_event(waited_.front());
    waited_.pop_front();
  }
  if (!std::exchange(fetch.done, true)) {
    group_.wait(fetch.work);
    for (const std::size_t one : fetch.parameters) {
      states_[one].status = Status::whole;
      if (!fetch.buffer.defined()) continue;
      recorder.host(HostClass::optimizer_op);
      recorder.fill_storage(storage(one));
      copy(eager_, part_of(fetch.buffer, elements(one)), parameters_[one]->value.detached());
    }
  }
  state.registered = false;
  if (--fetch.left == 0) fetch.buffer = Tensor{};
  waited_.push_back(recorder.record_event(gathers_));
}

void ParameterFetch::prefetch(const std::vector<std::size_t>& used) {
  const auto now = static_cast<std::int64_t>(visits_);
  std::size_t to_pass = 0;
  for (const std::size_t parameter : used) to_pass += states_[parameter].last_fetched_for < now ? 1 : 0;
  for (; to_pass > 0 && next_use_ < uses_.size(); --to_pass, ++next_use_)
    states_[uses_[next_use_].parameter].last_fetched_for = static_cast<std::int64_t>(uses_[next_use_].visit);
  const std::int64_t most = std::min(zero_.max_live_parameters - whole_elements_, zero_.prefetch_bucket_size);
  std::vector<std::size_t> ahead;
  std::int64_t gathered = 0;
  for (; next_use_ < uses_.size() && gathered < most; ++next_use_) {
    const Use& use = uses_[next_use_];
    State& state = states_[use.parameter];
    state.last_fetched_for = std::max(state.last_fetched_for, static_cast<std::int64_t>(use.visit));
    if (state.status != Status::absent || std::find(ahead.begin(), ahead.end(), use.parameter) != ahead.end()) continue;
    ahead.push_back(use.parameter);
    gathered += elements(use.parameter);
  }
  gather(std::move(ahead));
}

std::vector<std::size_t> ParameterFetch::released_after(std::size_t leaf) {
  if (passes_ < 2) return leaves_[leaf];
  if (visits_ < released_.size() && released_[visits_]) return *released_[visits_];
  std::vector<std::size_t> result;
  for (const std::size_t parameter : leaves_[leaf])
    if (!states_[parameter].persistent && states_[parameter].last_fetched_for <= static_cast<std::int64_t>(visits_))
      result.push_back(parameter);
  std::int64_t passed = 0;
  for (std::size_t visit = visits_; visit < order_.size() && passed < zero_.max_reuse_distance && !result.empty();
       ++visit)
    for (const std::size_t parameter : leaves_[order_[visit]]) {
      std::erase(result, parameter);
      passed += elements(parameter);
    }
  released_.resize(std::max(released_.size(), visits_ + 1));
  released_[visits_] = result;
  return result;
}

void ParameterFetch::end_visit() {
  if (current_ == kNone) return;
  for (const std::size_t parameter : released_after(std::exchange(current_, kNone))) release(parameter);
}

void ParameterFetch::release(std::size_t parameter) {
  State& state = states_[parameter];
  if (state.status != Status::whole) return;
  eager_.recorder.empty_storage(storage(parameter));
  state.status = Status::absent;
  whole_elements_ -= elements(parameter);
}

void ParameterFetch::release_all() {
  eager_.recorder.host(HostClass::per_parameter_zero_grad, static_cast<std::int64_t>(parameters_.size()));
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].registered) wait_for(i);
    release(i);
  }
  fetches_.clear();
}

void ParameterFetch::gather_persistent() {
  std::vector<parallel::Work> started;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].persistent) continue;
    eager_.recorder.fill_storage(storage(i));
    states_[i].status = Status::whole;
    const Tensor whole = parameters_[i]->value.detached();
    started.push_back(group_.start(CollectiveKind::all_gather, whole.type,
                                   shard_[i] * group_.ranks() * bytes_of(whole.type), part_of(shards_, shard_[i]),
                                   whole));
  }
  if (started.empty()) return;
  group_.wait(started.back());
  eager_.recorder.wait_for_gpu();
}

}  // namespace ridgeline::deepspeed
