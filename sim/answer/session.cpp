#include "sim/answer/session.h"

#include <algorithm>
#include <utility>

#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

/// Memory of a trace, its small parts left out.
std::uint64_t bytes_of(const OpTrace& trace) {
  return trace.records.size() * sizeof(Record) + trace.calls.size() * sizeof(Call) +
         trace.operands.size() * sizeof(Operand) + trace.storages.size() * sizeof(Storage) +
         trace.ops.size() * sizeof(Op);
}

/// Traces that leave the pattern beyond those that followed it, before no further one is made.
constexpr int kMostThatLeave = 4;
/// Of layouts that are kept of the traces of one pattern.
constexpr std::size_t kMostShapes = 24;
constexpr std::uint64_t kMostOfShapes = 4 << 20;  // bytes

std::shared_ptr<SharedTrace> whole_trace(const TraceKey& key) {
  return std::make_shared<SharedTrace>(training_run(key.model, key.training, key.attention));
}

TraceKey without_sizes(TraceKey key) {
  key.training.micro_batch = key.training.sequence_length = 0;
  return key;
}

}  // namespace

KernelTimes* SharedKernels::times_of(std::string_view engine) {
  if (engine == "analytic") return &analytic;
  if (engine == "roofline") return &roofline;
  return nullptr;
}

Session::Session(const SessionLimits& limits)
    : limits_(limits),
      traces_(limits.traces, limits.trace_bytes),
      kernels_(limits.gpus),
      shapes_(limits.gpus),
      stretches_(limits.gpus) {}

std::shared_ptr<const SharedLayout> SharedTrace::layout(const LayoutKey& key) {
  const auto make = [&] {
    if (like == nullptr) return std::make_shared<const SharedLayout>(trace, key);
    const auto known =
        like->get(LayoutShape(trace, key), [&] { return std::make_shared<const SharedLayout>(trace, key); });
    return std::make_shared<const SharedLayout>(*known, trace, key);
  };
  return layouts.get(key, make, [](const SharedLayout& made) { return made.bytes(); });
}

std::shared_ptr<SharedTrace> TracesOfANetwork::first(const TraceKey& key) {
  auto whole = whole_trace(key);
  const std::lock_guard lock(mutex_);
  first_ = whole;
  first_key_ = key;
  return whole;
}

void TracesOfANetwork::learn_first() {
  std::shared_ptr<const SharedTrace> first;
  TraceKey key;
  {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) return;
    first = std::exchange(first_, nullptr);
    key = *first_key_;
  }
  learn(first, TracePattern::part_of(key.model, key.training, key.attention));
}

void TracesOfANetwork::learn(const std::shared_ptr<const SharedTrace>& whole, OpTrace part) {
  auto made = TracePattern::of({whole, &whole->trace}, std::move(part));
  if (!made) return;
  const std::lock_guard lock(mutex_);
  patterns_.insert(patterns_.begin(), {whole, std::make_shared<const TracePattern>(std::move(*made)),
                                       std::make_shared<LayoutsByShape>(kMostShapes, kMostOfShapes)});
  patterns_.resize(std::min(patterns_.size(), kMostPatterns));
}

std::shared_ptr<SharedTrace> TracesOfANetwork::in_a_pattern(const TraceKey& key, const OpTrace& part) {
  std::vector<Pattern> patterns;
  {
    const std::lock_guard lock(mutex_);
    patterns = patterns_;
  }
  for (const Pattern& known : patterns) {
    std::optional<OpTrace> made = known.pattern->at(key.model, key.training, part);
    if (!made) continue;
    auto shared = std::make_shared<SharedTrace>(std::move(*made));
    shared->like = known.layouts;
    if (known.pattern->keeps_lists(part)) shared->like_lists = known.whole;
    const std::lock_guard lock(mutex_);
    ++followed_;
    const auto here = std::find_if(patterns_.begin(), patterns_.end(),
                                   [&](const Pattern& one) { return one.pattern == known.pattern; });
    if (here != patterns_.end()) std::rotate(patterns_.begin(), here, here + 1);
    return shared;
  }
  return nullptr;
}

std::shared_ptr<SharedTrace> TracesOfANetwork::trace(const TraceKey& key) {
  bool is_first = false, gives_up = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = !std::exchange(asked_, true);
    gives_up = left_ > followed_ + kMostThatLeave;
  }
  if (is_first) return first(key);
  if (gives_up) return whole_trace(key);
  learn_first();
  OpTrace part = TracePattern::part_of(key.model, key.training, key.attention);
  if (auto made = in_a_pattern(key, part)) return made;
  auto whole = whole_trace(key);
  learn(whole, std::move(part));
  const std::lock_guard lock(mutex_);
  ++left_;
  return whole;
}

std::shared_ptr<SharedTrace> Session::trace(const Scenario& scenario, std::string_view engine) {
  const TraceKey key = trace_key_of(scenario, engine);
  return traces_.get(
      key,
      [&] {
        if (scenario.recorded || key.compiled_for_sms != 0 || !TracePattern::applies(key.model, key.training))
          return std::make_shared<SharedTrace>(trace_of(scenario, engine));
        return networks_.get(without_sizes(key), [] { return std::make_shared<TracesOfANetwork>(); })->trace(key);
      },
      [](const SharedTrace& made) { return bytes_of(made.trace); });
}

std::shared_ptr<KnownStretches> Session::stretches(const L2Spec& l2) {
  const KeyOfL2 key{l2.capacity.value(), l2.resident_full, l2.resident_none};
  return stretches_.get(key, [] { return std::make_shared<KnownStretches>(); });
}

std::shared_ptr<SharedKernels> Session::kernels(const Gpu& gpu, const Software& software) {
  const ProbeOfKernels probe{gpu, software};
  std::shared_ptr<SharedKernels> known = kernels_.get(probe, [&] {
    const KeyOfShape own{std::make_shared<const Gpu>(gpu), std::make_shared<const Software>(software)};
    std::shared_ptr<ShapedOps> shaped =
        shapes_.get(own, [&] { return std::make_shared<ShapedOps>(own.gpu, own.software); });
    shaped->forget_beyond(limits_.kernels_a_gpu);
    return std::make_shared<SharedKernels>(own.gpu, own.software, std::move(shaped), 4 * limits_.kernels_a_gpu);
  });
  known->ops.forget_beyond(limits_.kernels_a_gpu);
  return known;
}

}  // namespace ridgeline
