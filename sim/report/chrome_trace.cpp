#include "sim/report/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "sim/report/names.h"
#include "sim/report/pytorch_names.h"
#include "sim/report/timeline_counters.h"
#include "sim/timeline/host_slices.h"
#include "sim/trace/aten_call_of.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

constexpr int kHostProcess = 1, kDevice = 0, kStream = 7;
constexpr int kMainThread = 1, kAutogradThread = 2;
constexpr const char* kStep = "ProfilerStep#1";

/// An operation as the profiler writes it; equal ones share it.
struct WrittenOp {
  trace::AtenCall call;
  ordered_json arguments;
};

class Writer {
 public:
  explicit Writer(const ChromeTraceInput& input)
      : in_(input),
        plan_(input.cuda_graphs ? plan_graph(input.program, input.gpu, input.host)
                                : plan_issues(input.program, input.gpu, input.host)),
        slices_(host_slices(plan_, input.timeline, input.gpu)),
        events_(std::min(0.0, input.timeline.host_begin.value())) {
    for (const Action& action : in_.program.steady_step())
      if (action.kind == Action::Kind::launch) launches_.push_back(&action);
    if (in_.program.trace != nullptr) written_.resize(in_.program.trace->ops.size());
    name_kernels();
  }

  std::string write() {
    name_processes();
    annotate();
    for (const HostSlice& slice : slices_) host(slice);
    for (std::size_t i = 0; i < launches_.size(); ++i) kernel(i);
    add_counters(events_, in_, slices_, kDevice);
    ordered_json properties{{"id", kDevice},
                            {"name", in_.gpu.title},
                            {"totalGlobalMem", static_cast<std::int64_t>(in_.gpu.dram.capacity.value())},
                            {"computeMajor", in_.gpu.compute_major},
                            {"computeMinor", in_.gpu.compute_minor},
                            {"maxThreadsPerBlock", in_.gpu.sm.max_threads_per_block},
                            {"maxThreadsPerMultiprocessor", in_.gpu.sm.max_warps * kWarp},
                            {"regsPerMultiprocessor", in_.gpu.sm.registers},
                            {"warpSize", kWarp},
                            {"numSms", in_.gpu.sm.count}};
    const ordered_json out{{"schemaVersion", 1},
                           {"deviceProperties", ordered_json::array({std::move(properties)})},
                           {"distributedInfo", {{"backend", "none"}, {"rank", 0}, {"world_size", 1}}},
                           {"displayTimeUnit", "ms"},
                           {"baseTimeNanoseconds", 0},
                           {"traceName", in_.title},
                           {"step_us", in_microseconds(in_.timeline.step)},
                           {"traceEvents", events_.take()}};
    return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  }

 private:
  static constexpr int kWarp = 32;

  void name_processes() {
    events_.metadata("process_name", kHostProcess, 0, "name", "python3");
    events_.metadata("process_labels", kHostProcess, 0, "labels", "CPU");
    events_.metadata("process_sort_index", kHostProcess, 0, "sort_index", 0);
    events_.metadata("thread_name", kHostProcess, kMainThread, "name", "main thread");
    events_.metadata("thread_name", kHostProcess, kAutogradThread, "name", "autograd thread");
    events_.metadata("process_name", kDevice, 0, "name", in_.gpu.title);
    events_.metadata("process_labels", kDevice, 0, "labels", "GPU 0");
    events_.metadata("process_sort_index", kDevice, 0, "sort_index", 1);
    events_.metadata("thread_name", kDevice, kStream, "name", "stream 7 ");
  }

  /// The launches of one call stand side by side.
  void name_kernels() {
    names_.resize(launches_.size());
    for (std::size_t i = 0; i < launches_.size();) {
      std::size_t end = i + 1;
      while (end < launches_.size() && launches_[end]->call == launches_[i]->call) ++end;
      std::vector<const KernelLaunch*> kernels;
      std::vector<std::size_t> places;
      for (std::size_t j = i; j < end; ++j) {
        const KernelLaunch& launch = in_.program.launches[launches_[j]->index];
        names_[j] = launch.name;
        if (kind_of(j).name != nullptr) continue;
        kernels.push_back(&launch);
        places.push_back(j);
      }
      if (const Call* call = call_of(*launches_[i])) {
        const Op& op = in_.program.trace->ops[call->op];
        const std::vector<std::string> names = kernel_names(op, written(call->op).call, kernels);
        for (std::size_t j = 0; j < places.size(); ++j) names_[places[j]] = names[j];
      }
      i = end;
    }
  }

  const WrittenOp& written(std::uint32_t op) {
    std::optional<WrittenOp>& entry = written_[op];
    if (!entry) {
      entry = WrittenOp{trace::aten_call_of(in_.program.trace->ops[op]), {}};
      const trace::ProfiledArguments text = trace::profiled_arguments(entry->call);
      entry->arguments = {{"Record function id", 0},
                          {"Concrete Inputs", ordered_json::parse(text.values)},
                          {"Input type", ordered_json::parse(text.types)},
                          {"Input Strides", ordered_json::parse(text.strides)},
                          {"Input Dims", ordered_json::parse(text.dims)}};
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
      const Call* call = call_of(slices_[i]);
      const std::int16_t layer = call && phase == Phase::forward ? call->layer : std::int16_t{-1};
      const bool zero_grad = zeroes(slices_[i]);
      const std::size_t last = last_of(i, [&](const HostSlice& s) {
        const Call* its = call_of(s);
        return phase_of(s) == phase && zeroes(s) == zero_grad && (layer < 0 || (its && its->layer == layer));
      });
      std::size_t end = launch;
      for (std::size_t j = i; j <= last; ++j)
        end = std::max<std::size_t>(end, slices_[j].group.first_launch + slices_[j].group.launches);
      if (zero_grad) annotation(zero, slices_[i].begin, slices_[last].end, launch, launch);
      else if (phase == Phase::optimizer) annotation(step, slices_[i].begin, slices_[last].end, launch, end);
      else if (layer >= 0 && !in_.block.empty())
        events_.slice("python_function", fmt::format("nn.Module: {}_{}", in_.block, layer), kHostProcess, kMainThread,
                      slices_[i].begin, slices_[last].end,
                      {{"Python id", ++module}, {"Python parent id", nullptr}, {"Python module id", layer}});
      launch = end;
      i = last + 1;
    }
  }

  /// The further runs of a micro-batch that is shown once.
  void annotate_repeat() {
    const RepeatedSpans& repeat = in_.timeline.repeat;
    if (repeat.launches.times <= 1 || repeat.launches.end == 0) return;
    const KernelSpan& last = in_.timeline.kernels[repeat.launches.end - 1];
    const std::string name = fmt::format("{} further micro-batches as this one", repeat.launches.times - 1);
    const ordered_json arguments{{"External id", ++external_}, {"Record function id", 0}};
    events_.slice("user_annotation", name, kHostProcess, kMainThread, last.issued.value(), repeat.host_end.value(),
                  arguments);
    events_.slice("gpu_user_annotation", name, kDevice, kStream, last.end.value(), repeat.gpu_end.value(), arguments);
  }

  /// On the host, and on the GPU over the launches [first, end).
  void annotation(std::string_view name, double begin, double stop, std::size_t first, std::size_t end) {
    ++external_;
    events_.slice("user_annotation", name, kHostProcess, kMainThread, begin, stop,
                  {{"External id", external_}, {"Record function id", 0}});
    if (first < end)
      events_.slice("gpu_user_annotation", name, kDevice, kStream, in_.timeline.kernels[first].start.value(),
                    in_.timeline.kernels[end - 1].end.value(), {{"External id", external_}});
  }

  void operator_slice(std::string_view name, int thread, double begin, double end) {
    events_.slice("cpu_op", name, kHostProcess, thread, begin, end,
                  {{"External id", ++external_}, {"Record function id", 0}});
  }

  void host(const HostSlice& s) {
    const int thread = thread_of(s);
    if (s.group.kind == HostGroup::Kind::wait)
      return events_.slice("cuda_runtime", "cudaStreamSynchronize", kHostProcess, thread, s.begin, s.end,
                           {{"cbid", 131}, {"correlation", 0}});
    if (s.group.kind == HostGroup::Kind::graph) {
      const std::size_t correlation = s.group.first_launch + 1;
      events_.slice("cuda_runtime", "cudaGraphLaunch", kHostProcess, thread, s.begin, s.end,
                    {{"External id", correlation}, {"cbid", 311}, {"correlation", correlation}});
      return events_.flow("s", correlation, kHostProcess, thread, s.begin);
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

  /// The launches [first, last] of one operation.
  void operation(const HostSlice& s, std::size_t first, std::size_t last, double begin, int thread) {
    ++external_;
    const double end = in_.timeline.kernels[last].issued.value();
    if (const Call* call = call_of(*launches_[first])) {
      const WrittenOp& op = written(call->op);
      ordered_json args{{"External id", external_}};
      args.update(op.arguments);
      if (call->layer >= 0) args["Layer"] = call->layer;
      args["Storages"] = storages_of(launches_[first]->call);
      events_.slice("cpu_op", op.call.name, kHostProcess, thread, begin, end, std::move(args));
    }
    const double call_time = in_.host.launch_call.value() * in_.host.scale;
    for (std::size_t i = first; i <= last; ++i) {
      const double issued = in_.timeline.kernels[i].issued.value();
      // A full queue makes the driver's call longer, not the work before it.
      const double from = std::min(issued, begin + std::max(0.0, s.group.share - call_time));
      const Kind kind = kind_of(i);
      events_.slice("cuda_runtime", kind.call, kHostProcess, thread, from, issued,
                    {{"External id", external_}, {"cbid", kind.cbid}, {"correlation", i + 1}});
      events_.flow("s", i + 1, kHostProcess, thread, from);
      correlations_.resize(launches_.size());
      correlations_[i] = {i + 1, external_};
      begin = issued;
    }
  }

  /// What a profiler does not record and a replay of the L2 needs: id, bytes touched and bytes of each storage.
  [[nodiscard]] ordered_json storages_of(std::uint32_t call) const {
    ordered_json reads = ordered_json::array(), writes = ordered_json::array();
    const std::span<const Operand> operands = in_.program.operands_of(call);
    const std::size_t inputs = in_.program.trace->calls[call].inputs;
    for (std::size_t i = 0; i < operands.size(); ++i)
      (i < inputs ? reads : writes)
          .push_back({operands[i].storage, operands[i].bytes, in_.program.storages[operands[i].storage].bytes});
    return {{"reads", std::move(reads)}, {"writes", std::move(writes)}};
  }

  struct Kind {
    const char *cat, *call, *name;
    int cbid;  ///< CUPTI's number of the call
  };
  [[nodiscard]] Kind kind_of(std::size_t i) const {
    const auto* fixed = std::get_if<FixedWork>(&in_.program.launches[launches_[i]->index].work);
    if (fixed) {
      switch (fixed->what) {
        case FixedWork::What::memset: return {"gpu_memset", "cudaMemsetAsync", "Memset (Device)", 51};
        case FixedWork::What::memcpy_device:
          return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)", 41};
        case FixedWork::What::memcpy_host_to_device:
          return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)", 41};
        case FixedWork::What::memcpy_device_to_host:
          return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", 41};
        case FixedWork::What::helper:
        case FixedWork::What::layout_change:
        case FixedWork::What::collective: break;
      }
    }
    return {"kernel", "cudaLaunchKernel", nullptr, 211};
  }

  void kernel(std::size_t i) {
    const KernelLaunch& launch = in_.program.launches[launches_[i]->index];
    const KernelTime& time = in_.times[i];
    const KernelSpan& span = in_.timeline.kernels[i];
    const Kind kind = kind_of(i);
    const auto [correlation, external] = correlation_of(i);
    ordered_json args{{"External id", external}};
    if (kind.name == nullptr) {
      const double blocks = static_cast<double>(launch.blocks()) / std::max(1, in_.gpu.sm.count);
      args.update({{"queued", 0},
                   {"device", kDevice},
                   {"context", 1},
                   {"stream", kStream},
                   {"correlation", correlation},
                   {"registers per thread", launch.registers_per_thread},
                   {"shared memory", launch.shared_bytes_per_block},
                   {"blocks per SM", blocks},
                   {"warps per SM", blocks * (launch.threads_per_block + kWarp - 1) / kWarp},
                   {"grid", launch.grid},
                   {"block", {launch.threads_per_block, 1, 1}},
                   {"est. achieved occupancy %", std::lround(100.0 * time.occupancy)},
                   {"limited by", name_of(time.limited_by())},
                   {"DRAM read bytes", std::llround(time.dram_read_bytes)},
                   {"DRAM written bytes", std::llround(time.dram_write_bytes)}});
      if (launch.flops > 0) args["FLOPs"] = launch.flops;
    } else {
      const double bytes = std::get<FixedWork>(launch.work).bytes, seconds = (span.end - span.start).value();
      args.update({{"device", kDevice},
                   {"context", 1},
                   {"stream", kStream},
                   {"correlation", correlation},
                   {"bytes", std::llround(bytes)},
                   {"memory bandwidth (GB/s)", seconds > 0.0 ? bytes / seconds * 1e-9 : 0.0}});
    }
    events_.slice(kind.cat, kind.name ? kind.name : names_[i], kDevice, kStream, span.start.value(), span.end.value(),
                  std::move(args));
    events_.flow("f", correlation, kDevice, kStream, span.start.value());
  }
  /// Correlation and external id; those of a graph share the graph launch's.
  [[nodiscard]] std::pair<std::size_t, std::size_t> correlation_of(std::size_t i) const {
    if (!in_.cuda_graphs) return correlations_[i];
    std::size_t first = 0;
    for (const HostSlice& s : slices_)
      if (s.group.kind == HostGroup::Kind::graph && s.group.first_launch <= i) first = s.group.first_launch;
    return {first + 1, first + 1};
  }

  const ChromeTraceInput& in_;
  IssuePlan plan_;
  std::vector<HostSlice> slices_;
  TraceEvents events_;
  std::vector<const Action*> launches_;
  std::vector<std::optional<WrittenOp>> written_;  ///< by op of the trace
  std::vector<std::string> names_;                 ///< of the kernels, by launch
  std::vector<std::pair<std::size_t, std::size_t>> correlations_;
  std::size_t external_ = 0;
};

}  // namespace

std::string chrome_trace(const ChromeTraceInput& input) { return Writer(input).write(); }

}  // namespace ridgeline
