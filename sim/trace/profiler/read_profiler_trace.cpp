#include "sim/trace/profiler/read_profiler_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>

#include "sim/trace/profiler/busy_times.h"
#include "sim/trace/profiler/critical_path.h"
#include "sim/trace/profiler/host_clock.h"
#include "sim/trace/profiler/operator_stacks.h"
#include "sim/trace/profiler/profiler_arguments.h"
#include "sim/trace/profiler/profiler_steps.h"
#include "sim/trace/profiler/recorded_collectives.h"
#include "sim/trace/profiler/recorded_ops.h"
#include "sim/trace/profiler/recorded_sizes.h"
#include "sim/trace/profiler/recorded_streams.h"
#include "sim/trace/profiler/unrecorded_layouts.h"
#include "sim/trace/profiler/unseen_launches.h"
#include "sim/trace/trace_builder.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

constexpr std::size_t kNone = kNoOperator;
constexpr std::string_view kBackwardNode = "autograd::engine::evaluate_function";

/// Something the host did that concerns the GPU: one item on it, or a wait for it.
struct Entry {
  double begin = 0.0, end = 0.0;        ///< of the call on the host
  std::size_t gpu = kNone;              ///< kNone: a wait
  std::size_t innermost = kNone;        ///< operator
  std::size_t call = kNone;             ///< of a wait, entry of the runtime's calls
  std::vector<std::size_t> candidates;  ///< operators with a rule, outermost first
};

class ProfileReplay {
 public:
  ProfileReplay(const ProfilerEvents& events, const std::string& path, const DeviceLookup& device, Defects defects)
      : events_(events),
        path_(path),
        clock_(events),
        device_(device({events.gpu_name, events.gpu_memory})),
        builder_(result_, device_.bytes_per_second, device_.fixed_seconds, device_.carried_bytes, device_.link_bytes) {
    result_.format = events.source == ProfilerSource::nsight ? Format::nsight_systems : Format::pytorch_profiler;
    result_.defects = std::move(defects);
    result_.memory_known = false;
    builder_.context.same_library = device_.same_library;
  }

  Replayable run() {
    refuse_empty(events_, path_);
    parents_ = parents_of(events_.operators);
    beside_ = times_beside_others(events_.gpu);
    collect_entries();
    window_ = choose_step(events_, issued_);
    std::erase_if(entries_, [&](const Entry& e) { return !window_.contains(e.begin); });
    while (!entries_.empty() && entries_.back().gpu == kNone) entries_.pop_back();  // the end of the measurement
    if (entries_.empty()) throw UserError(fmt::format("{}: nothing was launched in the step chosen", path_));
    result_.defects.add(std::string(kLaunchesWithoutKernel), launches_without_kernel(events_, window_));
    collectives_ = collective_kernels(events_);
    streams_ = recorded_streams(events_, issued_, streams_of_items(), window_);
    builder_.name_streams(streams_.names);
    find_phases();
    find_sizes();
    result_.host_slowness = clock_.slowness();
    result_.host_measured = true;
    host_position_ = window_.begin;
    // Whoever records a whole step starts the profiler inside it: up to the first launch it is at work for a
    // millisecond.
    constexpr double kBeforeFirstLaunch = 50.0;  // microseconds, as much as the host needs for a first operator
    if (!window_.marked) host_position_ = std::max(window_.begin, entries_.front().end - kBeforeFirstLaunch);
    measure();
    builder_.begin_step();
    emit(entries_, 0);
    pass_events(std::numeric_limits<double>::infinity());
    builder_.host_time(clock_.between(host_position_, window_.end));
    builder_.end_step();
    return std::move(result_);
  }

 private:
  void collect_entries() {
    const auto around = operators_around(events_.runtime, events_.operators);
    std::unordered_map<std::int64_t, std::size_t> by_correlation, by_external;
    for (std::size_t i = 0; i < events_.runtime.size(); ++i)
      if (events_.runtime[i].correlation >= 0) by_correlation.emplace(events_.runtime[i].correlation, i);
    for (std::size_t i = 0; i < events_.operators.size(); ++i)
      if (events_.operators[i].external_id > 0) by_external.emplace(events_.operators[i].external_id, i);
    issued_.resize(events_.gpu.size());
    std::vector<bool> unseen(events_.gpu.size());
    for (std::size_t g = 0; g < events_.gpu.size(); ++g) {
      const GpuEvent& item = events_.gpu[g];
      Entry entry{item.begin, item.begin, g, kNone, kNone, {}};
      const auto call = by_correlation.find(item.correlation);
      const auto external = by_external.find(item.external_id);
      if (call != by_correlation.end()) {
        entry.begin = events_.runtime[call->second].begin;
        entry.end = events_.runtime[call->second].end;
        entry.innermost = around[call->second];
        if (entry.innermost == kNone && external != by_external.end()) entry.innermost = external->second;
      } else if (external != by_external.end()) {
        result_.defects.add("GPU activities whose launch call is missing, placed by their operator");
        entry.innermost = external->second;
        entry.begin = entry.end = events_.operators[external->second].begin;
      } else {
        unseen[g] = true;
      }
      issued_[g] = entry.begin;
      entries_.push_back(std::move(entry));
    }
    const std::vector<std::size_t> twins = later_twins(events_.gpu, unseen);
    for (std::size_t g = 0; g < twins.size(); ++g) {
      if (unseen[g] && twins[g] == g) result_.defects.add("GPU activities without launch call and operator");
      if (twins[g] != g) result_.defects.add("GPU activities launched before the recording, taken for later ones");
      entries_[g].innermost = entries_[twins[g]].innermost;
    }
    for (std::size_t i = 0; i < events_.runtime.size(); ++i) {
      const RuntimeEvent& call = events_.runtime[i];
      if (waits_for_gpu(events_.names[call.name])) entries_.push_back({call.begin, call.end, kNone, around[i], i, {}});
    }
    // Items of one launch call (a CUDA graph) keep the order in which they ran.
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
    for (Entry& entry : entries_) {
      if (is_collective(entry)) {  // whichever operator it was launched in: gradients are exchanged within others
        entry.innermost = kNone;
        continue;
      }
      for (std::size_t op = entry.innermost; op != kNone; op = parents_[op])
        if (is_mapped(name_of_operator(op)) || ops_.of(op) != nullptr) entry.candidates.push_back(op);
      std::reverse(entry.candidates.begin(), entry.candidates.end());
    }
  }

  [[nodiscard]] static bool joins(const AtenCall& call) {
    return call.name == "aten::cat" || call.name == "aten::stack";
  }
  [[nodiscard]] bool is_collective(const Entry& entry) const {
    if (entry.gpu == kNone) return false;
    return is_collective_kernel(events_.names[events_.gpu[entry.gpu].name]);
  }
  [[nodiscard]] const std::string& name_of_operator(std::size_t op) const {
    return events_.names[events_.operators[op].name];
  }

  /// By entry of events_.gpu. Kernels that a library runs beside each other within one call are that call's.
  [[nodiscard]] std::vector<std::int64_t> streams_of_items() const {
    std::vector<std::int64_t> streams;
    for (const GpuEvent& item : events_.gpu) streams.push_back(item.stream);
    std::map<std::size_t, std::int64_t> first;  // by operator
    for (const Entry& entry : entries_)
      if (entry.gpu != kNone && !entry.candidates.empty())
        streams[entry.gpu] = first.try_emplace(entry.candidates.front(), streams[entry.gpu]).first->second;
    return streams;
  }

  void find_phases() {
    for (const OperatorEvent& op : events_.operators)
      if (window_.contains(op.begin) && events_.names[op.name].starts_with(kBackwardNode))
        last_backward_ = std::max(last_backward_, op.begin);
    for (const HostEvent& event : events_.annotations)
      if (events_.names[event.name].starts_with("Optimizer.step")) optimizer_.push_back(event);
  }
  [[nodiscard]] Phase phase_of(const Entry& entry) const {
    for (std::size_t op = entry.innermost; op != kNone; op = parents_[op])
      if (name_of_operator(op).starts_with(kBackwardNode)) return Phase::backward;
    for (const HostEvent& event : optimizer_)
      if (entry.begin >= event.begin && entry.begin < event.end) return Phase::optimizer;
    return last_backward_ >= 0 && entry.begin > last_backward_ ? Phase::clipping : Phase::forward;
  }

  void find_sizes() {
    auto sizes = parameter_sizes(recorded_, window_, result_.defects);
    for (const std::int64_t elements : sizes) result_.recording.trace.parameters += elements;
    if (!sizes.empty())
      builder_.context.parameter_sizes = std::make_shared<const std::vector<std::int64_t>>(std::move(sizes));
    builder_.context.lookups = std::make_shared<const std::vector<TableLookup>>(table_lookups(recorded_));
    joins_backward_ = joins_backward(recorded_);
  }

  void measure() {
    std::vector<std::size_t> items;
    for (const Entry& e : entries_)
      if (e.gpu != kNone) items.push_back(e.gpu);
    result_.measured = measured_step(events_, items, window_);
    result_.formats = formats_of(events_, items);
    result_.critical_path = critical_path(events_, items, issued_, {host_position_, window_.end, "", true});
    if (const std::size_t devices = devices_of(events_, items); devices > 1)
      result_.recording.trace.notes.push_back(fmt::format(
          "one process launched kernels on {} GPUs: they are predicted one behind the other on one", devices));
  }

  /// Entries of one operator become one call; where its rule does not understand it, the operators inside it do.
  void emit(std::span<const Entry> entries, std::size_t level) {
    while (!entries.empty()) {
      const Entry& first = entries.front();
      pass_events(first.begin);
      const bool has_candidate = level < first.candidates.size();
      const auto same = [&](const Entry& e) {
        if (stream_of(e) != stream_of(first)) return false;
        if (has_candidate) return level < e.candidates.size() && e.candidates[level] == first.candidates[level];
        return level >= e.candidates.size() && e.innermost == first.innermost && first.innermost != kNone;
      };
      std::size_t count = 1;
      while (count < entries.size() && same(entries[count])) ++count;
      const auto group = entries.first(count);
      entries = entries.subspan(count);
      const bool launches = std::any_of(group.begin(), group.end(), [](const Entry& e) { return e.gpu != kNone; });
      builder_.set_stream(stream_of(first));
      if (!launches) {
        builder_.host_time(host_until(group));
        wait_as(group);
      } else if (const Op* exact = has_candidate ? ops_.of(first.candidates[level]) : nullptr; exact != nullptr) {
        const AtenCall call = call_of(group, first.candidates[level]);
        builder_.exact(call, *exact, host_until(group));
        wait_as(group);
      } else if (has_candidate) {
        if (calls_itself(group, level) || !emit_without_copies(group, level)) emit(group, level + 1);
      } else {
        const AtenCall call = call_of(group, first.innermost);
        if (!is_mapped(call.name) || !builder_.call(call, [&] { return host_until(group); })) emit_unknown(group, call);
      }
    }
  }

  [[nodiscard]] std::uint8_t stream_of(const Entry& entry) const {
    return entry.gpu == kNone || streams_.names.empty() ? 0 : streams_.stream_of[entry.gpu];
  }
  /// Events that streams recorded or waited for before the host came to `now` take effect.
  void pass_events(double now) {
    const auto passed = [&](const StreamEvent& event) {
      return event.at < now || (event.at == now && event.record.kind == Record::Kind::wait_event);
    };
    for (; next_event_ < streams_.order.size() && passed(streams_.order[next_event_]); ++next_event_)
      builder_.record(streams_.order[next_event_].record);
  }
  /// The host waits as the calls among these do.
  void wait_as(std::span<const Entry> group) {
    bool all = false;
    for (const Entry& entry : group) {
      if (entry.gpu != kNone) continue;
      pass_events(entry.begin);
      const auto event = streams_.host_waits.find(entry.call);
      if (event != streams_.host_waits.end())
        builder_.record({Record::Kind::host_waits_for_event, HostClass::other, 0, event->second});
      all = all || event == streams_.host_waits.end();
    }
    if (all) builder_.wait();
  }

  void emit_unknown(std::span<const Entry> group, const AtenCall& call) {
    const auto collective = group.front().gpu == kNone ? collectives_.end() : collectives_.find(group.front().gpu);
    if (collective != collectives_.end())
      return builder_.collective(call, device_.knows_links ? collective->second : std::nullopt, host_until(group));
    builder_.unknown(call, host_until(group));
    wait_as(group);
  }

  /// Autocast casts the operands inside an operator and then calls it anew, with the types it runs with.
  [[nodiscard]] bool calls_itself(std::span<const Entry> group, std::size_t level) const {
    const std::string& name = name_of_operator(group.front().candidates[level]);
    return std::any_of(group.begin(), group.end(), [&](const Entry& e) {
      return std::any_of(e.candidates.begin() + static_cast<std::ptrdiff_t>(level) + 1, e.candidates.end(),
                         [&](std::size_t inner) { return name_of_operator(inner) == name; });
    });
  }

  /// Operators copy and cast operands that do not suit them before their own kernels run: a call each, unless the rule
  /// has copies among its operations.
  bool emit_without_copies(std::span<const Entry> group, std::size_t level) {
    const std::size_t op = group.front().candidates[level];
    const auto copy_in = [&](const Entry& entry) {  // place of the copy among the operators around; 0: it is none
      for (std::size_t i = level + 1; i < entry.candidates.size(); ++i)
        if (name_of_operator(entry.candidates[i]) == "aten::copy_") return i;
      return std::size_t{0};
    };
    std::vector<Entry> own;
    std::copy_if(group.begin(), group.end(), std::back_inserter(own), [&](const Entry& e) { return copy_in(e) == 0; });
    const bool only_copies = own.empty();
    if (own.size() == group.size() || (only_copies && name_of_operator(op) != "aten::cat") ||
        (!only_copies && rule_copies(group, op)))
      return emit_call(group, op);
    for (const Entry& entry : group)
      if (const std::size_t copy = copy_in(entry); copy > 0) emit({&entry, 1}, copy);
    return only_copies || emit_call(own, op);
  }
  [[nodiscard]] bool rule_copies(std::span<const Entry> group, std::size_t op) {
    const auto ops = map_aten(call_of(group, op), builder_.context);
    return !ops || std::any_of(ops->begin(), ops->end(), [](const MappedOp& mapped) {
      if (std::holds_alternative<Copy>(mapped.op) || std::holds_alternative<Sort>(mapped.op)) return true;
      const auto* pointwise = std::get_if<Pointwise>(&mapped.op);
      return pointwise != nullptr &&
             (pointwise->function == PointwiseFunction::cast || pointwise->function == PointwiseFunction::masked_fill);
    });
  }

  bool emit_call(std::span<const Entry> group, std::size_t op) {
    const AtenCall call = call_of(group, op);
    if (goes_over_host_link(call)) {
      emit_unknown(group, call);
      return true;
    }
    const bool tf32 = std::any_of(call.kernels.begin(), call.kernels.end(), [](const MeasuredKernel& k) {
      return k.name.find("tf32") != k.name.npos || k.name.find("s1688gemm") != k.name.npos;
    });
    builder_.context.tf32 = tf32;
    builder_.context.cudnn_tf32 = tf32 || call.kernels.empty();
    if (!builder_.call(call, [&] { return host_until(group); })) return false;
    wait_as(group);
    return true;
  }

  /// Host seconds since the group before, up to the return of this group's last call.
  double host_until(std::span<const Entry> group) {
    double end = host_position_;
    for (const Entry& entry : group) end = std::max(end, entry.end);
    const double seconds = clock_.between(host_position_, end);
    host_position_ = end;
    return seconds;
  }

  AtenCall call_of(std::span<const Entry> group, std::size_t op) {
    AtenCall call;
    call.phase = phase_of(group.front());
    DType in_lists = DType::fp32;
    bool to_device = false, to_host = false;
    for (const Entry& entry : group) {
      if (entry.gpu == kNone) continue;
      const GpuEvent& item = events_.gpu[entry.gpu];
      const std::string& name = events_.names[item.name];
      call.kernels.push_back({name, (item.end - item.begin) * 1e-6, item.begin * 1e-6, item.stream, item.blocks,
                              item.bytes, beside_[entry.gpu] * 1e-6, item.blocks_down});
      if (name.find("BFloat16") != name.npos || name.find("OpaqueType<2") != name.npos) in_lists = DType::bf16;
      else if (name.find("Half") != name.npos) in_lists = DType::fp16;
      to_device = to_device || name.find("HtoD") != name.npos;
      to_host = to_host || name.find("DtoH") != name.npos;
    }
    if (op == kNone) {
      std::string_view kernel = call.kernels.empty() ? "no operator" : std::string_view(call.kernels.front().name);
      if (kernel.starts_with("void nccl")) kernel.remove_prefix(5);
      const std::string_view apex = apex_name_of(kernel);
      call.name = apex.empty() ? kernel.substr(0, 60) : apex;
      return call;
    }
    const OperatorEvent& event = events_.operators[op];
    call.name = events_.names[event.name];
    call.inputs = profiler_arguments(event.arguments, in_lists, place_of(event), result_.defects);
    read_storages(event.arguments, call);
    call.laid_out_apart = lies_apart(event.arguments, call);
    if (auto image = image_after(events_.operators, op, call, place_of(event))) call.outputs = {std::move(*image)};
    if (const TensorList* list = call.list(0); list != nullptr && list->empty() && call.outputs.empty())
      if (auto parts = joins(call) ? joined_parts(recorded_, joins_backward_, op, call) : std::nullopt) {
        for (AtenTensor& part : *parts) part.type = in_lists;
        call.inputs[0] = std::move(*parts);
      }
    if (call.name == "aten::copy_" && (to_device || to_host)) {
      const std::size_t host_side = to_device ? 1 : 0;
      if (host_side < call.inputs.size())
        if (auto* tensor = std::get_if<AtenTensor>(&call.inputs[host_side])) tensor->on_host = true;
    }
    return call;
  }

  [[nodiscard]] std::string place_of(const OperatorEvent& op) const { return fmt::format("{}:{}", path_, op.line); }

  const ProfilerEvents& events_;
  const std::string& path_;
  Replayable result_;
  HostClock clock_;
  RecordedDevice device_;
  TraceBuilder builder_;
  std::vector<std::size_t> parents_;
  const RecordedOperators recorded_{events_, parents_, path_};
  RecordedOps ops_{events_};
  std::vector<Entry> entries_;
  std::vector<double> issued_, beside_;  ///< by entry of events_.gpu
  std::vector<HostEvent> optimizer_;
  std::map<std::size_t, std::optional<Collective>> collectives_;
  RecordedStreams streams_;
  std::size_t next_event_ = 0;  ///< of the streams' order
  StepWindow window_;
  JoinsBackward joins_backward_;
  double last_backward_ = -1.0, host_position_ = 0.0;
};

}  // namespace

Replayable replay_of_profile(const ProfilerEvents& events, const std::string& path, const DeviceLookup& device,
                             Defects defects) {
  return ProfileReplay(events, path, device, std::move(defects)).run();
}

}  // namespace ridgeline::trace
