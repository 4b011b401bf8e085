#include "sim/report/timeline/chrome_trace.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "sim/report/text/names.h"
#include "sim/report/timeline/launch_arguments.h"
#include "sim/report/timeline/pipeline_lanes.h"
#include "sim/report/timeline/profiled_kernel.h"
#include "sim/report/timeline/pytorch_names.h"
#include "sim/report/timeline/stream_waits.h"
#include "sim/report/timeline/timeline_counters.h"
#include "sim/timeline/host_slices.h"
#include "sim/trace/aten/aten_call_of.h"
#include "sim/trace/op_trace/op_text.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

constexpr int kHostProcess = 1, kDevice = 0, kStream = 7, kPipelineProcess = 2, kRankProcess = 100, kMainThread = 1,
              kAutogradThread = 2;
constexpr const char* kWriting = "writing the timeline";
constexpr const char* kStep = "ProfilerStep#1";

/// An operation as the profiler writes it; equal ones share it.
struct WrittenOp {
  trace::AtenCall call;
  std::string arguments;                              ///< members of an object
  const std::vector<std::string>* kernels = nullptr;  ///< names of its launches; null: not known yet
};

class Writer {
 public:
  Writer(const ChromeTraceInput& input, TextBuffer& out)
      : in_(input),
        plan_(input.cuda_graphs ? plan_graph(input.program, input.gpu, input.host)
                                : plan_issues(input.program, input.gpu, input.host)),
        slices_(host_slices(plan_, input.timeline, input.gpu)),
        out_(out),
        events_(out_, std::min(0.0, input.timeline.host_begin.value())),
        waits_(plan_, input.timeline, {kHostProcess, kMainThread, kDevice, kStream}) {
    for (const Action& action : in_.program.steady_step())
      if (action.kind == Action::Kind::launch) launches_.push_back(&action);
    if (in_.program.trace != nullptr) written_.resize(in_.program.trace->ops.size());
    for (const Action* launch : launches_)
      if (const Collective* collective = collective_of(*launch)) world_ = std::max(world_, collective->ranks);
    name_kernels();
  }

  void write() {
    out_.expect(kBytesALaunch * launches_.size() + kBytesASample * in_.memory.size());
    {
      JsonObject trace(out_);
      trace.add("schemaVersion", 1);
      if (in_.cuda > 0.0) trace.add("cuda_runtime_version", runtime_version(in_.cuda));
      trace.add_with("deviceProperties", [&](TextBuffer& list) {
        list.add('[');
        add_device(list, in_.gpu, kDevice);
        list.add(']');
      });
      trace.add_with("distributedInfo", [&](TextBuffer& object) {
        JsonObject(object).add("backend", world_ > 1 ? "nccl" : "none").add("rank", 0).add("world_size", world_);
      });
      trace.add("displayTimeUnit", "ms").add("baseTimeNanoseconds", 0).add("traceName", in_.title);
      trace.add("step_us", in_microseconds(in_.timeline.step));
      trace.add_with("traceEvents", [&](TextBuffer& list) {
        list.add('[');
        add_events();
        list.add(']');
      });
    }
    out_.add('\n');
  }

 private:
  static constexpr std::size_t kBytesALaunch = 2000, kBytesASample = 130;  // of text, seldom more

  void add_events() {
    name_processes();
    annotate();
    for (const HostSlice& slice : slices_) {
      keep_budget_often(kWriting);
      host(slice);
    }
    for (std::size_t i = 0; i < launches_.size(); ++i) keep_budget_often(kWriting), kernel(i);
    waits_.write(events_);
    if (!in_.classes.empty()) copy_kernels();
    add_counters(events_, in_, slices_, kDevice);
    if (in_.pipeline != nullptr) add_lanes(events_, *in_.pipeline, kPipelineProcess);
    if (!in_.classes.empty()) add_rank_kernels(events_, *in_.pipeline, in_.classes, kRankProcess, kStream);
  }

  [[nodiscard]] const Collective* collective_of(const Action& launch) const {
    if (launch.call == Action::kNoCall || in_.program.trace == nullptr) return nullptr;
    return std::get_if<Collective>(&in_.program.trace->ops[in_.program.trace->calls[launch.call].op]);
  }

  /// Streams are numbered as PyTorch's pool gives them out.
  static int number_of(std::uint8_t stream) { return kStream + 4 * stream; }

  void name_processes() {
    events_.metadata("process_name", kHostProcess, 0, "name", "python3");
    events_.metadata("process_labels", kHostProcess, 0, "labels", "CPU");
    events_.metadata("process_sort_index", kHostProcess, 0, "sort_index", 0);
    events_.metadata("thread_name", kHostProcess, kMainThread, "name", "main thread");
    events_.metadata("thread_name", kHostProcess, kAutogradThread, "name", "autograd thread");
    events_.metadata("process_name", kDevice, 0, "name", in_.gpu.title);
    events_.metadata("process_labels", kDevice, 0, "labels", "GPU 0");
    events_.metadata("process_sort_index", kDevice, 0, "sort_index", 1);
    for (std::size_t i = 0; i < std::max<std::size_t>(1, plan_.streams); ++i) {
      const int stream = number_of(static_cast<std::uint8_t>(i));
      events_.metadata("thread_name", kDevice, stream, "name", fmt::format("stream {} ", stream));
    }
  }

  /// The launches of one call stand side by side; those of calls of one operation are the same.
  void name_kernels() {
    for (std::size_t i = 0; i < launches_.size();) {
      std::size_t end = i + 1;
      while (end < launches_.size() && launches_[end]->call == launches_[i]->call) ++end;
      const Call* call = call_of(*launches_[i]);
      const std::vector<std::string>* names = call != nullptr ? written(call->op).kernels : nullptr;
      if (names == nullptr || names->size() != end - i) {
        names = &lists_of_names_.emplace_back(names_of(call, std::span(launches_).subspan(i, end - i)));
        if (call != nullptr) written(call->op).kernels = names;
      }
      for (const std::string& name : *names) names_.push_back(&name);
      i = end;
    }
  }
  std::vector<std::string> names_of(const Call* call, std::span<const Action* const> launches) {
    std::vector<std::string> names;
    std::vector<const KernelLaunch*> kernels;
    std::vector<std::size_t> places;
    for (const Action* action : launches) {
      kernels.push_back(&in_.program.launches[action->index]);
      names.push_back(kernels.back()->name);
      if (profiled_kind(*kernels.back()).name == nullptr) places.push_back(names.size() - 1);
      else kernels.pop_back();
    }
    if (call == nullptr) return names;
    std::vector<std::string> known = kernel_names(in_.program.trace->ops[call->op], written(call->op).call, kernels);
    for (std::size_t i = 0; i < places.size(); ++i) names[places[i]] = std::move(known[i]);
    return names;
  }

  WrittenOp& written(std::uint32_t op) {
    std::optional<WrittenOp>& entry = written_[op];
    if (!entry) {
      entry = WrittenOp{trace::aten_call_of(in_.program.trace->ops[op]), {}, nullptr};
      const trace::ProfiledArguments text = trace::profiled_arguments(entry->call);
      entry->arguments = fmt::format(
          R"("Record function id":0,"Concrete Inputs":{},"Input type":{},"Input Strides":{},"Input Dims":{},"Op":{})",
          text.values, text.types, text.strides, text.dims, trace::op_text(in_.program.trace->ops[op]));
    }
    return *entry;
  }

  [[nodiscard]] const Call* call_of(const Action& action) const {
    return action.call == Action::kNoCall || in_.program.trace == nullptr ? nullptr
                                                                          : &in_.program.trace->calls[action.call];
  }
  [[nodiscard]] const Call* call_of(const HostSlice& slice) const {
    return slice.group.action < in_.program.actions.size() ? call_of(in_.program.actions[slice.group.action]) : nullptr;
  }
  [[nodiscard]] Phase phase_of(const HostSlice& slice) const {
    const Call* call = call_of(slice);
    return call ? call->phase : Phase::other;
  }
  /// Whose forward pass it is a part of; -1: of none.
  [[nodiscard]] int layer_of(const HostSlice& slice) const {
    return phase_of(slice) == Phase::forward ? call_of(slice)->layer : -1;
  }
  [[nodiscard]] int thread_of(const HostSlice& slice) const {
    return phase_of(slice) == Phase::backward ? kAutogradThread : kMainThread;
  }

  /// Ends of neighbours for which `same` holds, from `first` on.
  template <typename Same>
  [[nodiscard]] std::size_t last_of(std::size_t first, const Same& same) const {
    while (first + 1 < slices_.size() && same(slices_[first + 1])) ++first;
    return first;
  }

  void annotate() {
    if (slices_.empty()) return;
    annotation(kStep, slices_.front().begin, slices_.back().end, 0, launches_.size());
    annotate_repeat();
    const std::string step = fmt::format("Optimizer.step#{}.step", in_.optimizer);
    const std::string zero = fmt::format("Optimizer.zero_grad#{}.zero_grad", in_.optimizer);
    std::size_t launch = 0, module = 0;
    const auto zeroes = [](const HostSlice& s) { return s.group.host_class == HostClass::per_parameter_zero_grad; };
    for (std::size_t i = 0; i < slices_.size();) {
      const Phase phase = phase_of(slices_[i]);
      const int layer = layer_of(slices_[i]);
      const bool zero_grad = zeroes(slices_[i]);
      const std::size_t last = last_of(i, [&](const HostSlice& s) {
        return phase_of(s) == phase && zeroes(s) == zero_grad && layer_of(s) == layer;
      });
      std::size_t end = launch;
      for (std::size_t j = i; j <= last; ++j)
        end = std::max<std::size_t>(end, slices_[j].group.first_launch + slices_[j].group.launches);
      if (zero_grad) annotation(zero, slices_[i].begin, slices_[last].end, launch, launch);
      else if (phase == Phase::optimizer) annotation(step, slices_[i].begin, slices_[last].end, launch, end);
      else if (layer >= 0 && !in_.block.empty())
        events_.slice("python_function", fmt::format("nn.Module: {}_{}", in_.block, layer), kHostProcess, kMainThread,
                      slices_[i].begin, slices_[last].end, [&](JsonObject& a) {
                        a.add("Python id", ++module).add("Python parent id", nullptr).add("Python module id", layer);
                      });
      launch = end;
      i = last + 1;
    }
  }

  /// The further runs of a micro-batch that is shown once.
  void annotate_repeat() {
    const RepeatedSpans& repeat = in_.timeline.repeat;
    if (repeat.launches.times <= 1 || repeat.launches.end == 0 || !in_.classes.empty()) return;
    const KernelSpan& last = in_.timeline.kernels[repeat.launches.end - 1];
    const std::string name = fmt::format("{} further micro-batches as this one", repeat.launches.times - 1);
    ++external_;
    const auto arguments = [&](JsonObject& a) { a.add("External id", external_).add("Record function id", 0); };
    events_.slice("user_annotation", name, kHostProcess, kMainThread, last.issued.value(), repeat.host_end.value(),
                  arguments);
    events_.slice("gpu_user_annotation", name, kDevice, kStream, last.end.value(), repeat.gpu_end.value(), arguments);
  }

  /// On the host, and on the GPU over the launches [first, end).
  void annotation(std::string_view name, double begin, double stop, std::size_t first, std::size_t end) {
    ++external_;
    events_.slice("user_annotation", name, kHostProcess, kMainThread, begin, stop,
                  [&](JsonObject& a) { a.add("External id", external_).add("Record function id", 0); });
    if (first < end)
      events_.slice("gpu_user_annotation", name, kDevice, kStream, in_.timeline.kernels[first].start.value(),
                    in_.timeline.kernels[end - 1].end.value(), [&](JsonObject& a) { a.add("External id", external_); });
  }

  void operator_slice(std::string_view name, int thread, double begin, double end) {
    ++external_;
    events_.slice("cpu_op", name, kHostProcess, thread, begin, end,
                  [&](JsonObject& a) { a.add("External id", external_).add("Record function id", 0); });
  }

  void host(const HostSlice& s) {
    const int thread = thread_of(s);
    if (s.group.kind == HostGroup::Kind::wait)
      return waits_.write_host_wait(events_, s, in_.program.actions[s.group.action]);
    if (s.group.kind == HostGroup::Kind::graph) {
      const std::size_t correlation = s.group.first_launch + 1;
      events_.slice("cuda_runtime", "cudaGraphLaunch", kHostProcess, thread, s.begin, s.end, [&](JsonObject& a) {
        a.add("External id", correlation).add("cbid", 311).add("correlation", correlation);
      });
      events_.flow("s", correlation, kHostProcess, thread, s.begin);
      return captured(s, thread);
    }
    const std::size_t first = s.group.first_launch, end = first + s.group.launches;
    const Call* call = first < end ? call_of(*launches_[first]) : nullptr;
    if (thread == kAutogradThread) {
      const Op* op = call ? &in_.program.trace->ops[call->op] : nullptr;
      const std::string node = autograd_node(s.group.host_class, op);
      if (!node.empty()) {
        operator_slice("autograd::engine::evaluate_function: " + node, thread, s.begin, s.end);
        operator_slice(node, thread, s.begin, s.end);
      }
    } else if (const std::string_view around = operator_around(s.group.host_class); !around.empty()) {
      operator_slice(around, thread, s.begin, s.end);
    }
    double now = s.begin;
    for (std::size_t i = first; i < end;) {
      const std::uint32_t its = launches_[i]->call;
      std::size_t last = i;
      while (last + 1 < end && launches_[last + 1]->call == its) ++last;
      operation(s, i, last, std::exchange(now, in_.timeline.kernels[last].issued.value()), thread);
      i = last + 1;
    }
  }

  /// The operators that a graph was captured from, inside its launch: kernels lead to theirs by the external id.
  void captured(const HostSlice& s, int thread) {
    const std::size_t first = s.group.first_launch, end = first + s.group.launches;
    correlations_.resize(launches_.size());
    constexpr double kLeast = 4e-9;  // seconds: a trace's numbers end at nanoseconds
    double now = 0.5 * (s.begin + s.end);
    const double each = std::max(kLeast, (s.end - now) / static_cast<double>(std::max<std::size_t>(1, end - first)));
    for (std::size_t i = first; i < end; ++i) {
      const bool is_new = i == first || launches_[i]->call != launches_[i - 1]->call;
      if (is_new) ++external_;
      correlations_[i] = {first + 1, external_};
      if (const Call* call = is_new ? call_of(*launches_[i]) : nullptr)
        write_operator(*call, i, thread, now, now + 0.25 * each);
      now += each;
    }
  }

  void write_operator(const Call& call, std::size_t launch, int thread, double begin, double end) {
    const WrittenOp& op = written(call.op);
    events_.slice("cpu_op", op.call.name, kHostProcess, thread, begin, end, [&](JsonObject& a) {
      a.add("External id", external_).add_members(op.arguments);
      if (call.layer >= 0) a.add("Layer", call.layer);
      a.add_with("Storages", [&](TextBuffer& out) { add_storages(out, in_.program, launches_[launch]->call); });
    });
  }

  /// The launches [first, last] of one operation.
  void operation(const HostSlice& s, std::size_t first, std::size_t last, double begin, int thread) {
    ++external_;
    const double end = in_.timeline.kernels[last].issued.value();
    if (const Call* call = call_of(*launches_[first])) write_operator(*call, first, thread, begin, end);
    const double call_time = in_.host.launch_call.value() * in_.host.scale;
    for (std::size_t i = first; i <= last; ++i) {
      const double issued = in_.timeline.kernels[i].issued.value();
      // A full queue makes the driver's call longer, not the work before it.
      const double from = std::min(issued, begin + std::max(0.0, s.group.share - call_time));
      const ProfiledKind kind = kind_of(i);
      events_.slice("cuda_runtime", kind.call, kHostProcess, thread, from, issued, [&](JsonObject& a) {
        a.add("External id", external_).add("cbid", kind.cbid).add("correlation", i + 1);
      });
      events_.flow("s", i + 1, kHostProcess, thread, from);
      correlations_.resize(launches_.size());
      correlations_[i] = {i + 1, external_};
      begin = issued;
    }
  }

  [[nodiscard]] ProfiledKind kind_of(std::size_t i) const {
    return profiled_kind(in_.program.launches[launches_[i]->index]);
  }

  /// Kernels of further rounds of a pipeline's schedule, whose launches are not written.
  void copy_kernels() {
    std::size_t correlation = launches_.size();
    for (const LaunchRun& run : in_.pipeline->further)
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        correlations_[i] = {++correlation, 0};
        kernel(i, run.shift, false);
      }
  }

  void kernel(std::size_t i, Seconds shift = {}, bool launched = true) {
    const KernelLaunch& launch = in_.program.launches[launches_[i]->index];
    const KernelSpan& span = in_.timeline.kernels[i];
    const ProfiledKind kind = kind_of(i);
    const int stream = number_of(span.stream);
    const auto [correlation, external] = correlations_[i];
    const auto add_arguments = [&, correlation = correlation, external = external](JsonObject& a) {
      if (launched) a.add("External id", external);
      const auto place = [&] { a.add("stream", stream).add("correlation", correlation); };
      if (kind.name != nullptr) {
        a.add("device", kDevice).add("context", 1);
        place();
        return add_copy(a, std::get<FixedWork>(launch.work), (span.end - span.start).value());
      }
      if (const Collective* collective = collective_of(*launches_[i])) add_collective(a, *collective, world_);
      a.add_members(R"("queued":0,"device":0,"context":1)");
      place();
      add_launch(a, launch, in_.times[i], in_.gpu);
    };
    events_.slice(kind.category, kind.name ? kind.name : std::string_view(*names_[i]), kDevice, stream,
                  (span.start + shift).value(), (span.end + shift).value(), add_arguments);
    if (launched) events_.flow("f", correlation, kDevice, stream, span.start.value());
  }

  const ChromeTraceInput& in_;
  IssuePlan plan_;
  std::vector<HostSlice> slices_;
  TextBuffer& out_;
  TraceEvents events_;
  StreamWaits waits_;
  std::int64_t world_ = 1;  ///< ranks of the largest group of the step
  std::vector<const Action*> launches_;
  std::vector<std::optional<WrittenOp>> written_;  ///< by op of the trace
  std::deque<std::vector<std::string>> lists_of_names_;
  std::vector<const std::string*> names_;  ///< of the kernels, by launch
  /// With external ids; a graph's kernels share its launch's.
  std::vector<std::pair<std::size_t, std::size_t>> correlations_;
  std::size_t external_ = 0;
};

}  // namespace

void write_chrome_trace(const ChromeTraceInput& input, TextBuffer& out) { Writer(input, out).write(); }

std::string chrome_trace(const ChromeTraceInput& input) {
  TextBuffer text;
  write_chrome_trace(input, text);
  return std::move(text).take();
}

}  // namespace ridgeline
