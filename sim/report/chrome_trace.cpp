#include "sim/report/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sim/report/names.h"
#include "sim/timeline/host_slices.h"
#include "sim/timeline/utilization.h"
#include "sim/timing/kernel_profile.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

constexpr int kHostProcess = 1, kDevice = 0, kStream = 7;
constexpr int kMainThread = 1, kAutogradThread = 2;
constexpr int kBins = 200;  // of the utilisation counters

class Writer {
 public:
  explicit Writer(const ChromeTraceInput& input)
      : in_(input),
        plan_(input.cuda_graphs ? plan_graph(input.program, input.gpu, input.host)
                                : plan_issues(input.program, input.gpu, input.host)),
        slices_(host_slices(plan_, input.timeline, input.gpu)),
        origin_(std::min(0.0, input.timeline.host_begin.value())) {
    for (const Action& action : in_.program.steady_step())
      if (action.kind == Action::Kind::launch) launches_.push_back(&action);
  }

  std::string write() {
    name_processes();
    annotate();
    for (const HostSlice& slice : slices_) host(slice);
    for (std::size_t i = 0; i < launches_.size(); ++i) kernel(i);
    count_memory();
    count_utilization();
    count_hierarchy();
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
                           {"traceEvents", std::move(events_)}};
    return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  }

 private:
  static constexpr int kWarp = 32;

  // Whole nanoseconds, so that slices nest after rounding as they did before.
  [[nodiscard]] std::int64_t nanoseconds(double seconds) const { return std::llround((seconds - origin_) * 1e9); }
  [[nodiscard]] double at(double seconds) const { return static_cast<double>(nanoseconds(seconds)) / 1e3; }

  void slice(std::string_view cat, std::string_view name, int pid, int tid, double begin, double end,
             ordered_json args) {
    const std::int64_t from = nanoseconds(begin), to = nanoseconds(end);
    events_.push_back({{"ph", "X"},
                       {"cat", cat},
                       {"name", name},
                       {"pid", pid},
                       {"tid", tid},
                       {"ts", static_cast<double>(from) / 1e3},
                       {"dur", static_cast<double>(to - from) / 1e3},
                       {"args", std::move(args)}});
  }
  void flow(const char* ph, std::size_t id, int pid, int tid, double time) {
    events_.push_back(
        {{"ph", ph}, {"id", id}, {"pid", pid}, {"tid", tid}, {"ts", at(time)}, {"cat", "ac2g"}, {"name", "ac2g"}});
    if (*ph == 'f') events_.back()["bp"] = "e";
  }
  void metadata(const char* what, int pid, int tid, const char* key, ordered_json value) {
    events_.push_back(
        {{"ph", "M"}, {"ts", 0}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{key, std::move(value)}}}});
  }
  void counter(const char* name, double time, ordered_json args) {
    events_.push_back(
        {{"ph", "C"}, {"name", name}, {"pid", kDevice}, {"tid", 0}, {"ts", at(time)}, {"args", std::move(args)}});
  }

  void name_processes() {
    metadata("process_name", kHostProcess, 0, "name", "python");
    metadata("process_labels", kHostProcess, 0, "labels", "CPU");
    metadata("process_sort_index", kHostProcess, 0, "sort_index", 0);
    metadata("thread_name", kHostProcess, kMainThread, "name", "main thread");
    metadata("thread_name", kHostProcess, kAutogradThread, "name", "autograd thread");
    metadata("process_name", kDevice, 0, "name", in_.gpu.title);
    metadata("process_labels", kDevice, 0, "labels", "GPU 0");
    metadata("process_sort_index", kDevice, 0, "sort_index", 1);
    metadata("thread_name", kDevice, kStream, "name", "stream 7");
  }

  [[nodiscard]] const Call* call_of(const Action& action) const {
    return action.call == Action::kNoCall || in_.program.trace == nullptr ? nullptr
                                                                          : &in_.program.trace->calls[action.call];
  }
  [[nodiscard]] Phase phase_of(const HostSlice& slice) const {
    const Call* call =
        slice.group.action < in_.program.actions.size() ? call_of(in_.program.actions[slice.group.action]) : nullptr;
    return call ? call->phase : Phase::other;
  }
  [[nodiscard]] int thread_of(const HostSlice& slice) const {
    return phase_of(slice) == Phase::backward ? kAutogradThread : kMainThread;
  }

  void annotate() {
    if (slices_.empty()) return;
    slice("user_annotation", "ProfilerStep#1", kHostProcess, kMainThread, slices_.front().begin, slices_.back().end,
          ordered_json::object());
    for (std::size_t i = 0; i < slices_.size();) {
      const Phase phase = phase_of(slices_[i]);
      std::size_t j = i;
      while (j + 1 < slices_.size() && phase_of(slices_[j + 1]) == phase) ++j;
      const std::string_view name = phase == Phase::optimizer ? "Optimizer.step" : phase_name(phase);
      slice("user_annotation", name, kHostProcess, kMainThread, slices_[i].begin, slices_[j].end,
            ordered_json::object());
      i = j + 1;
    }
  }

  void host(const HostSlice& s) {
    const int thread = thread_of(s);
    if (s.group.kind == HostGroup::Kind::wait)
      return slice("cuda_runtime", "cudaStreamSynchronize", kHostProcess, thread, s.begin, s.end,
                   {{"correlation", 0}, {"cbid", 131}});
    if (s.group.kind == HostGroup::Kind::graph) {
      const std::size_t correlation = s.group.first_launch + 1;
      slice("cuda_runtime", "cudaGraphLaunch", kHostProcess, thread, s.begin, s.end,
            {{"External id", correlation}, {"correlation", correlation}});
      return flow("s", correlation, kHostProcess, thread, s.begin);
    }
    slice("cpu_op", name_of(s.group.host_class), kHostProcess, thread, s.begin, s.end, {{"External id", ++external_}});
    double now = s.begin;
    for (std::size_t i = s.group.first_launch, end = i + s.group.launches; i < end;) {
      const std::uint32_t call = launches_[i]->call;
      std::size_t last = i;
      while (last + 1 < end && launches_[last + 1]->call == call) ++last;
      operation(s, i, last, std::exchange(now, in_.timeline.kernels[last].issued.value()), thread);
      i = last + 1;
    }
  }

  /// The launches [first, last] of one operation.
  void operation(const HostSlice& s, std::size_t first, std::size_t last, double begin, int thread) {
    ++external_;
    const double end = in_.timeline.kernels[last].issued.value();
    if (const Call* call = call_of(*launches_[first])) {
      const Op& op = in_.program.trace->ops[call->op];
      slice("cpu_op", "aten::" + name_of(op), kHostProcess, thread, begin, end,
            {{"External id", external_}, {"Shape", shape_of(op)}, {"Layer", call->layer}});
    }
    const double call_time = in_.host.launch_call.value() * in_.host.scale;
    for (std::size_t i = first; i <= last; ++i) {
      const double issued = in_.timeline.kernels[i].issued.value();
      // A full queue makes the driver's call longer, not the work before it.
      const double from = std::min(issued, begin + std::max(0.0, s.group.share - call_time));
      slice("cuda_runtime", kind_of(i).call, kHostProcess, thread, from, issued,
            {{"External id", external_}, {"correlation", i + 1}});
      flow("s", i + 1, kHostProcess, thread, from);
      correlations_.resize(launches_.size());
      correlations_[i] = {i + 1, external_};
      begin = issued;
    }
  }

  struct Kind {
    const char *cat, *call, *name;
  };
  [[nodiscard]] Kind kind_of(std::size_t i) const {
    const auto* fixed = std::get_if<FixedWork>(&in_.program.launches[launches_[i]->index].work);
    if (fixed) {
      switch (fixed->what) {
        case FixedWork::What::memset: return {"gpu_memset", "cudaMemsetAsync", "Memset (Device)"};
        case FixedWork::What::memcpy_device: return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"};
        case FixedWork::What::memcpy_host_to_device:
          return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)"};
        case FixedWork::What::memcpy_device_to_host:
          return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)"};
        case FixedWork::What::helper:
        case FixedWork::What::layout_change: break;
      }
    }
    return {"kernel", "cudaLaunchKernel", nullptr};
  }

  void kernel(std::size_t i) {
    const KernelLaunch& launch = in_.program.launches[launches_[i]->index];
    const KernelTime& time = in_.times[i];
    const KernelSpan& span = in_.timeline.kernels[i];
    const Kind kind = kind_of(i);
    const auto [correlation, external] = correlation_of(i);
    ordered_json args{{"External id", external},
                      {"device", kDevice},
                      {"context", 1},
                      {"stream", kStream},
                      {"correlation", correlation}};
    if (kind.name == nullptr) {
      args["registers per thread"] = launch.registers_per_thread;
      args["shared memory"] = launch.shared_bytes_per_block;
      args["blocks per SM"] = launch.blocks() / std::max(1, in_.gpu.sm.count);
      args["grid"] = launch.grid;
      args["block"] = {launch.threads_per_block, 1, 1};
      args["est. achieved occupancy %"] = std::lround(100.0 * time.occupancy);
      args["limited by"] = name_of(time.limited_by());
      args["DRAM read bytes"] = std::llround(time.dram_read_bytes);
      args["DRAM written bytes"] = std::llround(time.dram_write_bytes);
      if (launch.flops > 0) args["FLOPs"] = launch.flops;
    } else {
      args["bytes"] = std::llround(std::get<FixedWork>(launch.work).bytes);
    }
    slice(kind.cat, kind.name ? kind.name : launch.name, kDevice, kStream, span.start.value(), span.end.value(),
          std::move(args));
    flow("f", correlation, kDevice, kStream, span.start.value());
  }
  /// Correlation and external id; those of a graph share the graph launch's.
  [[nodiscard]] std::pair<std::size_t, std::size_t> correlation_of(std::size_t i) const {
    if (!in_.cuda_graphs) return correlations_[i];
    std::size_t first = 0;
    for (const HostSlice& s : slices_)
      if (s.group.kind == HostGroup::Kind::graph && s.group.first_launch <= i) first = s.group.first_launch;
    return {first + 1, first + 1};
  }

  void count_memory() {
    const auto steady = in_.program.steady_step();
    if (steady.empty()) return;
    const auto first = static_cast<std::uint32_t>(steady.data() - in_.program.actions.data());
    std::size_t next_slice = 0, next_launch = 0, sample = 0;
    double now = in_.timeline.host_begin.value();
    for (std::uint32_t a = first; a < first + steady.size(); ++a) {
      while (next_slice < slices_.size() && slices_[next_slice].group.action <= a) {
        now = std::max(now, slices_[next_slice].begin);
        ++next_slice;
      }
      if (in_.program.actions[a].kind == Action::Kind::launch && !in_.cuda_graphs)
        now = std::max(now, in_.timeline.kernels[next_launch++].issued.value());
      for (; sample < in_.memory.size() && in_.memory[sample].action <= a; ++sample)
        counter("memory (MiB)", now,
                {{"allocated", static_cast<double>(in_.memory[sample].allocated) / kMiB},
                 {"reserved", static_cast<double>(in_.memory[sample].reserved) / kMiB}});
    }
  }

  void count_utilization() {
    const auto bins = utilization_over_time(in_.program, in_.times, in_.timeline, in_.gpu, kBins);
    const double width = in_.timeline.step.value() / kBins;
    const auto percent = [](double share) { return std::round(1e4 * share) / 1e2; };
    for (std::size_t i = 0; i < bins.size(); ++i)
      counter("utilisation (%)", static_cast<double>(i) * width,
              {{"kernel active", percent(bins[i].kernel_active)},
               {"SM", percent(bins[i].sm)},
               {"tensor", percent(bins[i].tensor)},
               {"DRAM", percent(bins[i].dram)}});
    counter("utilisation (%)", in_.timeline.step.value(),
            {{"kernel active", 0}, {"SM", 0}, {"tensor", 0}, {"DRAM", 0}});
  }

  /// What a simulation saw: over each kernel long enough to see anything in it, means of the others, nothing between
  /// kernels.
  void count_hierarchy() {
    constexpr const char* kName = "simulated hierarchy (%)";
    constexpr double kFinest = 2e-4;  // of the step
    const double finest = kFinest * in_.timeline.step.value();
    const auto percent = [](double share) { return std::round(1e4 * share) / 1e2; };
    const auto count = [&](double at, double occupancy, double hits, double dram) {
      counter(kName, at,
              {{"occupancy", percent(occupancy)}, {"L2 hit rate", percent(hits)}, {"DRAM bandwidth", percent(dram)}});
    };
    for (std::size_t i = 0; i < in_.times.size(); ++i) {
      const auto& profile = in_.times[i].profile;
      if (!profile) continue;
      const double start = in_.timeline.kernels[i].start.value(), end = in_.timeline.kernels[i].end.value();
      if (profile->samples.size() < 2 || end - start < 4.0 * finest) {
        count(start, profile->achieved_occupancy, profile->l2_hit_rate, profile->dram_share);
      } else {
        const double scale = (end - start) / profile->samples.back().end_s;  // the step's clock
        double at = start, begin = 0.0, length = 0.0, occupied = 0.0, hits = 0.0, moved = 0.0;
        for (const ProfileSample& sample : profile->samples) {
          const double seconds = sample.end_s - begin;
          begin = sample.end_s;
          length += seconds;
          occupied += seconds * sample.occupancy;
          hits += seconds * sample.l2_hit_rate;
          moved += seconds * (sample.dram_read + sample.dram_write);
          if (length * scale < finest && &sample != &profile->samples.back()) continue;
          if (length > 0.0)
            count(at, occupied / length, hits / length, moved / length / in_.gpu.dram.bandwidth.value());
          at = start + scale * sample.end_s;
          length = occupied = hits = moved = 0.0;
        }
      }
      count(end, 0.0, 0.0, 0.0);
    }
  }

  const ChromeTraceInput& in_;
  IssuePlan plan_;
  std::vector<HostSlice> slices_;
  double origin_;
  std::vector<const Action*> launches_;
  std::vector<std::pair<std::size_t, std::size_t>> correlations_;
  std::size_t external_ = 0;
  ordered_json events_ = ordered_json::array();
};

}  // namespace

std::string chrome_trace(const ChromeTraceInput& input) { return Writer(input).write(); }

}  // namespace ridgeline
