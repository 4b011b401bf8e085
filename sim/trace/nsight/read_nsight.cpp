#include "sim/trace/nsight/read_nsight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/input/foreign_database.h"
#include "sim/trace/nsight/nsight_steps.h"
#include "sim/trace/profiler/busy_times.h"
#include "sim/units/user_error.h"
#include "sim/units/utf8.h"

namespace ridgeline::trace {
namespace {

using sqlite::Statement;

constexpr const char *kKernelTable = "CUPTI_ACTIVITY_KIND_KERNEL", *kCopyTable = "CUPTI_ACTIVITY_KIND_MEMCPY",
                     *kSetTable = "CUPTI_ACTIVITY_KIND_MEMSET", *kCallTable = "CUPTI_ACTIVITY_KIND_RUNTIME",
                     *kGraphTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                     *kSyncTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                     *kEventTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT", *kRangeTable = "NVTX_EVENTS";

/// A process's number within a global one: 24 bits above the thread's.
constexpr std::int64_t process_of(std::int64_t global) { return (global >> 24) & 0xffffff; }
constexpr std::int64_t thread_of(std::int64_t global) { return global & 0xffffff; }

std::string_view place_of_memory(std::int64_t kind) {
  static constexpr std::array<std::string_view, 8> kPlaces{"Unknown", "Pageable", "Pinned", "Device",
                                                           "Array",   "Managed",  "Device", "Managed"};
  return kind >= 0 && kind < static_cast<std::int64_t>(kPlaces.size()) ? kPlaces[static_cast<std::size_t>(kind)]
                                                                       : kPlaces.front();
}

/// Kineto's name of the copy.
std::string name_of_copy(std::int64_t kind, std::int64_t from, std::int64_t to) {
  static constexpr std::array<std::string_view, 11> kKinds{"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                           "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  if (kind <= 0 || kind >= static_cast<std::int64_t>(kKinds.size())) return "Memcpy";
  return fmt::format("Memcpy {} ({} -> {})", kKinds[static_cast<std::size_t>(kind)], place_of_memory(from),
                     place_of_memory(to));
}

/// "cudaLaunchKernel" of "cudaLaunchKernel_v7000".
std::string_view without_version(std::string_view call) {
  const std::size_t mark = call.rfind("_v");
  if (mark == call.npos || mark + 2 >= call.size()) return call;
  return call.find_first_not_of("0123456789", mark + 2) == call.npos ? call.substr(0, mark) : call;
}

/// "aten::add" of "aten::add, seq = 3, op_id = 7": how torch.autograd.profiler.emit_nvtx writes an operator.
std::string_view operator_name(std::string_view range) {
  if (const std::size_t mark = std::min(range.find(", seq = "), range.find(", op_id = ")); mark != range.npos)
    return range.substr(0, mark);
  return range.starts_with("aten::") ? range : std::string_view{};
}

class NsightReader {
 public:
  NsightReader(const std::string& path, Defects& defects) : path_(path), database_(path), defects_(defects) {}

  ProfilerEvents read() {
    if (!database_.has(kKernelTable) && !database_.has(kGraphTable) && !database_.has(kCopyTable)) refuse();
    database_.read("StringIds", {"id", "value"}, [&](const Statement& row) {
      strings_.emplace(row.integer(0), events_.names.add(as_utf8(row.text(1))));
    });
    read_gpu_work();
    if (work_.empty())
      throw UserError(
          fmt::format("{}: nothing ran on a GPU in this report: profile with nsys profile --trace=cuda,nvtx", path_));
    choose_gpu();
    read_calls();
    read_syncs();
    read_ranges();
    read_devices();
    settle();
    return std::move(events_);
  }

 private:
  /// A kernel, copy or memset of a GPU, and whose it is.
  struct Work {
    std::int64_t process = 0;
    GpuEvent event;
  };

  [[noreturn]] void refuse() const {
    std::string tables;
    for (const auto& [name, columns] : database_.tables()) {
      if (tables.size() > 120) break;
      tables += (tables.empty() ? "" : ", ") + as_utf8(name);
    }
    const bool nvprof = database_.has("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL") || database_.has("StringTable");
    const bool nsight = database_.has("StringIds") || database_.has("TARGET_INFO_SYSTEM_ENV");
    throw UserError(fmt::format(
        "{}: {}", path_,
        nvprof   ? "a database of nvprof, which ended with CUDA 12: record with nsys profile or torch.profiler"
        : nsight ? "a report of Nsight Systems in which nothing ran on a GPU: profile with nsys profile "
                   "--trace=cuda,nvtx"
                 : fmt::format("an SQLite database, but none of Nsight Systems (nsys export --type sqlite); its tables "
                               "are {}",
                               tables.empty() ? "none" : tables)));
  }

  /// A column that holds a number of StringIds, or in some exports the text itself.
  std::uint32_t name_at(const Statement& row, int column) {
    if (row.type(column) == SQLITE_INTEGER) {
      const auto known = strings_.find(row.integer(column));
      return known != strings_.end() ? known->second : events_.names.add("unnamed");
    }
    return row.type(column) == SQLITE_NULL ? events_.names.add("unnamed")
                                           : events_.names.add(as_utf8(row.text(column)));
  }

  /// Microseconds; columns 0 and 1 are begin and end in nanoseconds. False for a row without a time.
  bool take_times(const Statement& row, double& begin, double& end) {
    if (row.type(0) == SQLITE_NULL || row.type(1) == SQLITE_NULL) {
      defects_.add("rows without a begin or an end, left out");
      return false;
    }
    if (origin_ == kNoTime) origin_ = row.integer(0);
    const auto after = [&](std::int64_t at) { return (static_cast<double>(at) - static_cast<double>(origin_)) * 1e-3; };
    begin = after(row.integer(0)), end = after(row.integer(1));
    if (end < begin) defects_.add("rows that end before they begin, taken as of no duration"), end = begin;
    return true;
  }

  /// kAnyProcess where the column is not there.
  static std::int64_t process_in(const Statement& row, int column) {
    return row.type(column) == SQLITE_NULL ? kAnyProcess : process_of(row.integer(column));
  }
  [[nodiscard]] bool is_chosen(std::int64_t process) const {
    return process == process_ || process == kAnyProcess || process_ == kAnyProcess;
  }

  /// Columns 0 to 6 of every table of GPU work: start, end, deviceId, streamId, correlationId, globalPid, contextId.
  bool take_work(const Statement& row, GpuEvent::Kind kind, std::uint32_t name) {
    Work work;
    work.event.kind = kind;
    if (!take_times(row, work.event.begin, work.event.end)) return false;
    work.event.device = row.integer(2);
    work.event.stream = row.integer(3);
    work.event.correlation = row.type(4) == SQLITE_NULL ? -1 : row.integer(4);
    work.event.name = name;
    work.event.place = static_cast<EventPlace>(work_.size());
    work.process = process_in(row, 5);
    work_.push_back(std::move(work));
    return true;
  }

  void read_gpu_work() {
    const bool demangled = database_.has(kKernelTable, "demangledName"),
               brief = database_.has(kKernelTable, "shortName");
    database_.read(kKernelTable,
                   {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "contextId",
                    demangled ? "demangledName" : (brief ? "shortName" : "name"), "gridX", "gridY", "gridZ"},
                   [&](const Statement& row) {
                     if (!take_work(row, GpuEvent::Kind::kernel, name_at(row, 7))) return;
                     const double blocks = row.real(8) * row.real(9) * row.real(10);
                     GpuEvent& event = work_.back().event;
                     event.blocks = static_cast<std::int64_t>(std::clamp(blocks, 0.0, 9e15));
                     event.blocks_down = row.integer(9);
                   });
    database_.read(kCopyTable,
                   {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "contextId", "bytes",
                    "copyKind", "srcKind", "dstKind"},
                   [&](const Statement& row) {
                     const std::string name = name_of_copy(row.integer(8), row.integer(9), row.integer(10));
                     if (take_work(row, GpuEvent::Kind::copy, events_.names.add(name)))
                       work_.back().event.bytes = std::max<std::int64_t>(0, row.integer(7));
                   });
    database_.read(kSetTable,
                   {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "contextId", "bytes"},
                   [&](const Statement& row) {
                     if (take_work(row, GpuEvent::Kind::set, events_.names.add("Memset (Device)")))
                       work_.back().event.bytes = std::max<std::int64_t>(0, row.integer(7));
                   });
    database_.read(kGraphTable,
                   {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "contextId", "graphId"},
                   [&](const Statement& row) {
                     const std::string name =
                         fmt::format("CUDA graph {} (nsys --cuda-graph-trace=node shows its kernels)", row.integer(7));
                     take_work(row, GpuEvent::Kind::kernel, events_.names.add(name));
                   });
  }

  void choose_gpu() {
    struct Use {
      std::vector<std::pair<double, double>> spans;
      std::int64_t kernels = 0;
    };
    std::map<std::pair<std::int64_t, std::int64_t>, Use> uses;  // by process and device
    for (const Work& work : work_) {
      Use& use = uses[{work.process, work.event.device}];
      use.spans.emplace_back(work.event.begin, work.event.end);
      ++use.kernels;
    }
    double longest = -1.0;
    for (auto& [place, use] : uses) {
      const double busy = union_of(std::move(use.spans));
      events_.gpus.push_back({place.second, busy * 1e-6, use.kernels});
      if (busy > longest * 1.02) longest = busy, process_ = place.first, device_ = place.second;  // 2 %: as long
    }
    std::sort(events_.gpus.begin(), events_.gpus.end(),
              [](const GpuUse& a, const GpuUse& b) { return a.device < b.device; });
    std::set<std::int64_t> processes;
    for (const auto& [place, use] : uses) processes.insert(place.first);
    processes.erase(kAnyProcess);
    events_.ranks = std::max<std::size_t>(1, processes.size());
    for (Work& work : work_)
      if (is_chosen(work.process) && work.event.device == device_) events_.gpu.push_back(std::move(work.event));
      else if (is_chosen(work.process)) elsewhere_.insert(work.event.correlation);
    work_.clear();
  }

  void read_calls() {
    database_.read(kCallTable, {"start", "end", "globalTid", "correlationId", "nameId"}, [&](const Statement& row) {
      if (!is_chosen(process_in(row, 2))) return;
      RuntimeEvent call;
      if (!take_times(row, call.begin, call.end)) return;
      call.correlation = row.type(3) == SQLITE_NULL ? -1 : row.integer(3);
      if (elsewhere_.contains(call.correlation)) return;
      call.thread = thread_of(row.integer(2));
      call.process = process_;
      call.name = events_.names.add(without_version(std::string(events_.names[name_at(row, 4)])));
      events_.runtime.push_back(call);
    });
  }

  void read_syncs() {
    if (!database_.has(kSyncTable)) return;
    std::unordered_map<std::int64_t, double> called;
    for (const RuntimeEvent& call : events_.runtime) called.emplace(call.correlation, call.begin);
    struct Recorded {
      double at;
      std::int64_t stream, correlation;
    };
    std::unordered_map<std::int64_t, std::vector<Recorded>> records;  // by event
    const bool numbered = database_.has(kEventTable, "eventSyncId") && database_.has(kSyncTable, "eventSyncId");
    const char* const number = numbered ? "eventSyncId" : "eventId";
    database_.read(kEventTable, {"streamId", "correlationId", number, "globalPid"}, [&](const Statement& row) {
      if (!is_chosen(process_in(row, 3))) return;
      const auto at = called.find(row.integer(1));
      if (at != called.end()) records[row.integer(2)].push_back({at->second, row.integer(0), row.integer(1)});
    });
    for (auto& [event, all] : records)
      std::sort(all.begin(), all.end(), [](const Recorded& a, const Recorded& b) { return a.at < b.at; });
    database_.read(kSyncTable, {"start", "end", "streamId", "correlationId", "syncType", number, "globalPid"},
                   [&](const Statement& row) {
                     using Kind = SyncEvent::Kind;
                     if (!is_chosen(process_in(row, 6))) return;
                     SyncEvent sync;
                     if (!take_times(row, sync.begin, sync.end)) return;
                     sync.correlation = row.integer(3);
                     const std::int64_t type = row.integer(4);
                     sync.kind = type == 1   ? Kind::host_waits_for_event
                                 : type == 2 ? Kind::stream_waits
                                 : type == 3 ? Kind::host_waits_for_stream
                                             : Kind::host_waits_for_all;
                     sync.stream = row.type(2) == SQLITE_NULL ? -1 : row.integer(2);
                     if (type == 1 || type == 2) {
                       const auto found = records.find(row.integer(5));
                       if (found == records.end()) return;  // the event's record is not in the report
                       const auto at = called.find(sync.correlation);
                       const double by = at == called.end() ? sync.begin : at->second;
                       const auto after =
                           std::upper_bound(found->second.begin(), found->second.end(), by,
                                            [](double time, const Recorded& one) { return time < one.at; });
                       if (after == found->second.begin()) return;
                       sync.wait_on_stream = std::prev(after)->stream;
                       sync.record_correlation = std::prev(after)->correlation;
                     }
                     events_.syncs.push_back(sync);
                   });
  }

  void read_ranges() {
    constexpr std::int64_t kPushPop = 59, kStartEnd = 60;
    database_.read(kRangeTable, {"start", "end", "globalTid", "eventType", "text", "textId"},
                   [&](const Statement& row) {
                     const std::int64_t type = row.type(3) == SQLITE_NULL ? kPushPop : row.integer(3);
                     if ((type != kPushPop && type != kStartEnd) || !is_chosen(process_in(row, 2))) return;
                     if (row.type(1) == SQLITE_NULL) return;  // still open when the recording ended
                     HostEvent range;
                     if (!take_times(row, range.begin, range.end)) return;
                     range.thread = thread_of(row.integer(2));
                     range.process = process_;
                     range.name = row.type(4) == SQLITE_NULL ? name_at(row, 5) : name_at(row, 4);
                     const std::string_view name = operator_name(events_.names[range.name]);
                     if (name.empty() || type == kStartEnd) return events_.annotations.push_back(range);
                     range.name = events_.names.add(std::string(name));
                     if (name.starts_with("Optimizer.") || name.starts_with("ProfilerStep"))
                       return events_.annotations.push_back(range);
                     OperatorEvent op;
                     static_cast<HostEvent&>(op) = range;
                     op.line = static_cast<std::int64_t>(events_.operators.size()) + 1;
                     events_.operators.push_back(std::move(op));
                   });
  }

  /// Columns: number, name, memory in bytes, SMs, compute capability.
  void take_device(const Statement& row, std::int64_t number) {
    if (row.integer(0) != number || row.text(1).empty()) return;
    events_.gpu_name = as_utf8(row.text(1));
    events_.gpu_memory = std::max<std::int64_t>(0, row.integer(2));
    events_.gpu_sms = std::max<std::int64_t>(0, row.integer(3));
    events_.gpu_capability =
        std::clamp<std::int64_t>(row.integer(4), 0, 99) * 10 + std::clamp<std::int64_t>(row.integer(5), 0, 9);
  }

  void read_devices() {
    std::int64_t gpu = device_, sms = 0;
    bool led = false;
    database_.read("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid", "numMultiprocessors"},
                   [&](const Statement& row) {
                     if (row.integer(1) != device_ || (led && row.integer(2) != process_)) return;
                     gpu = row.integer(0), led = true, sms = row.integer(3);
                   });
    database_.read("TARGET_INFO_GPU", {"id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"},
                   [&](const Statement& row) { take_device(row, gpu); });
    // Until 2021.
    database_.read("TARGET_INFO_CUDA_GPU",
                   {"deviceId", "name", "globalMemorySize", "numMultiprocessors", "computeCapabilityMajor",
                    "computeCapabilityMinor"},
                   [&](const Statement& row) { take_device(row, device_); });
    if (events_.gpu_sms == 0) events_.gpu_sms = std::max<std::int64_t>(0, sms);
  }

  void settle() {
    double first = std::numeric_limits<double>::infinity();
    const auto earliest = [&](const auto& events) {
      for (const auto& event : events) first = std::min(first, event.begin);
    };
    earliest(events_.gpu), earliest(events_.runtime), earliest(events_.operators), earliest(events_.annotations);
    const auto move = [&](auto& events) {
      for (auto& event : events) event.begin -= first, event.end -= first;
      std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
      });
    };
    move(events_.gpu), move(events_.runtime), move(events_.operators), move(events_.annotations), move(events_.syncs);
    std::unordered_map<std::int64_t, double> called;
    for (const RuntimeEvent& call : events_.runtime) called.emplace(call.correlation, call.begin);
    std::vector<double> launched;
    for (const GpuEvent& item : events_.gpu) {
      const auto call = called.find(item.correlation);
      launched.push_back(call == called.end() ? item.begin : call->second);
    }
    events_.source = ProfilerSource::nsight;
    events_.steps = nsight_steps(events_, launched);
  }

  static constexpr std::int64_t kAnyProcess = -1;
  static constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

  const std::string& path_;
  ForeignDatabase database_;
  Defects& defects_;
  ProfilerEvents events_;
  std::unordered_map<std::int64_t, std::uint32_t> strings_;  ///< entry of the names by number of StringIds
  std::vector<Work> work_;
  std::unordered_set<std::int64_t> elsewhere_;  ///< correlations of work on other GPUs of the process
  std::int64_t process_ = 0, device_ = 0, origin_ = kNoTime;
};

}  // namespace

ProfilerEvents read_nsight(const std::string& path, Defects& defects) { return NsightReader(path, defects).read(); }

std::string how_to_export(const std::string& path) {
  for (const std::string_view ending : {".nsys-rep", ".qdrep", ".qdstrm"})
    if (path.ends_with(ending))
      return fmt::format(
          "a report that only Nsight Systems reads: nsys export --type sqlite {}, then give ridgeline replay the "
          ".sqlite "
          "file; or nsys stats --report cuda_gpu_kern_sum --format csv for sums alone",
          path);
  if (path.ends_with(".ncu-rep"))
    return fmt::format(
        "a report that only Nsight Compute reads: ncu --import {} --csv --page raw > FILE.csv, then give ridgeline "
        "kernels the .csv file",
        path);
  return {};
}

}  // namespace ridgeline::trace
