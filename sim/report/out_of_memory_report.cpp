#include "sim/report/out_of_memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/allocator/replay.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

constexpr std::string_view kExpandable =
    "PYTORCH_ALLOC_CONF=expandable_segments:True (before PyTorch 2.9 "
    "PYTORCH_CUDA_ALLOC_CONF)";
constexpr std::string_view kLess =
    "less memory: a smaller micro-batch with accumulation, checkpointing, 8-bit AdamW or LoRA; ridgeline fit --model "
    "MODEL --hardware GPU says the largest micro-batch, ridgeline fits MODEL GPU the ways";

std::string size(std::int64_t bytes) { return to_string(Bytes(static_cast<double>(bytes))); }

std::string line(std::string_view name, const std::string& value) { return fmt::format("  {:<16} {}\n", name, value); }

std::string line(std::string_view name, const OptionalBytes& bytes, std::string_view behind = "") {
  return bytes ? line(name, size(*bytes) + std::string(behind)) : "";
}

void put(nlohmann::ordered_json& into, const char* key, const OptionalBytes& bytes) {
  if (bytes) into[key] = *bytes;
}

struct Cause {
  std::string why;
  std::vector<std::string> helps;
};

/// `held`: bytes that the allocator holds and nobody uses.
Cause cause_of(std::int64_t requested, std::int64_t device_free, std::int64_t held) {
  const std::int64_t missing = requested - device_free - held;
  if (missing <= 0)
    return {fmt::format("fragmentation: {} free on the device and {} that the allocator holds in pieces would hold the "
                        "{}, but not in one piece",
                        size(device_free), size(held), size(requested)),
            {fmt::format("{} joins the pieces", kExpandable)}};
  return {fmt::format("{} too little, even if nothing were fragmented", size(missing)), {std::string(kLess)}};
}

std::string cause_lines(const Cause& cause) {
  std::string out = line("why", cause.why);
  for (const std::string& help : cause.helps) out += line("what helps", help);
  return out;
}

Cause cause_of(const OutOfMemoryState& state) {
  const std::int64_t free = std::max<std::int64_t>(0, state.event.device_free);
  Cause cause = cause_of(state.event.bytes, free, state.reserved - state.allocated);
  if (state.expandable_segments_would_do)
    cause.helps = {
        fmt::format("{}: the same requests replayed with it run to their end in the same memory", kExpandable)};
  else if (state.event.bytes <= free + state.reserved - state.allocated && !state.expandable_segments)
    cause.helps = {"the same requests replayed with expandable_segments:True run out as well: " + std::string(kLess)};
  else if (state.expandable_segments) cause.helps = {std::string(kLess)};
  return cause;
}

/// Bytes of this process that are none of the allocator's.
OptionalBytes outside_of(const OutOfMemoryText& one) {
  const OptionalBytes reserved = one.reserved();
  if (one.in_use && reserved) return std::max<std::int64_t>(0, *one.in_use - *reserved);
  if (one.capacity && one.free && reserved && !one.other_processes)
    return std::max<std::int64_t>(0, *one.capacity - *one.free - *reserved);
  return {};
}

Cause cause_of(const OutOfMemoryText& one) {
  Cause cause = cause_of(one.requested, one.free.value_or(0), one.unallocated.value_or(0));
  if (!one.free && !one.unallocated) cause.why = "the text does not say what was free";
  if (one.allowed && one.reserved() && *one.reserved() + one.requested > *one.allowed)
    cause.helps.push_back(fmt::format(
        "the limit of {} (set_per_process_memory_fraction) is met before the device's end", size(*one.allowed)));
  if (one.in_use && one.other_processes && *one.other_processes >= one.requested)
    cause.helps.push_back(fmt::format("other processes hold {}: nvidia-smi lists them", size(*one.other_processes)));
  constexpr std::int64_t kMuch = std::int64_t{3} << 29;
  if (const OptionalBytes outside = outside_of(one); outside && *outside > kMuch)
    cause.helps.push_back(
        fmt::format("{} lie outside PyTorch's allocator: CUDA's context, NCCL's buffers, other "
                    "libraries or processes",
                    size(*outside)));
  if (one.private_pools && *one.private_pools > 0)
    cause.helps.push_back(
        fmt::format("pools of CUDA graphs hold {}, which nothing else may use", size(*one.private_pools)));
  return cause;
}

std::string error_lines(const OutOfMemoryText& one) {
  std::string out = line("requested", size(one.requested));
  out += line("capacity", one.capacity);
  out += line("free", one.free, " on the device");
  out += line("allocated", one.allocated, " in tensors");
  out += line("cached", one.unallocated, " held by the allocator, in no tensor");
  out += line("allowed", one.allowed, " by set_per_process_memory_fraction");
  out += line("outside", outside_of(one), " outside the allocator: CUDA's context, libraries");
  if (one.in_use || one.backend == "MPS") out += line("other processes", one.other_processes);
  else out += line("processes", one.other_processes, " in all, this one among them");
  return out + "\n" + cause_lines(cause_of(one));
}

std::string place_of_error(const OutOfMemoryText& one) {
  return fmt::format("{}{}", one.backend.empty() ? "" : one.backend + " ",
                     one.gpu >= 0 ? fmt::format("GPU {} ", one.gpu) : "");
}

nlohmann::ordered_json as_json(const OutOfMemoryText& one) {
  nlohmann::ordered_json out_json = {{"line", one.line}, {"requested_bytes", one.requested}};
  if (!one.backend.empty()) out_json["backend"] = one.backend;
  if (one.gpu >= 0) out_json["device"] = one.gpu;
  put(out_json, "capacity_bytes", one.capacity);
  put(out_json, "device_free_bytes", one.free);
  put(out_json, "allocated_bytes", one.allocated);
  put(out_json, "reserved_bytes", one.reserved());
  put(out_json, "process_bytes", one.in_use);
  put(out_json, "other_processes_bytes", one.other_processes);
  put(out_json, "allowed_bytes", one.allowed);
  put(out_json, "private_pools_bytes", one.private_pools);
  put(out_json, "outside_bytes", outside_of(one));
  const Cause cause = cause_of(one);
  out_json["why"] = cause.why;
  out_json["helps"] = cause.helps;
  return out_json;
}

std::int64_t largest_free(const std::vector<SegmentView>& segments) {
  std::int64_t largest = 0;
  for (const SegmentView& segment : segments)
    for (const BlockView& block : segment.blocks)
      if (block.state == BlockView::State::free) largest = std::max(largest, block.bytes);
  return largest;
}

}  // namespace

OutOfMemoryState out_of_memory_state(const MemorySnapshot& snapshot, const RecordedRun& run) {
  OutOfMemoryState state;
  state.event = snapshot.out_of_memory.back();
  state.events = snapshot.out_of_memory.size();
  state.expandable_segments = snapshot.settings.expandable_segments;
  AllocationHistory before = run.history;
  std::erase_if(before.events, [&](const HistoryEvent& event) { return event.line >= state.event.line; });
  ReplayOptions options;
  options.settings = snapshot.settings;
  options.before = run.before;
  const HistoryReplay then = replay(before, options);
  state.allocated = then.statistics.all.allocated_bytes.current;
  state.reserved = then.statistics.all.reserved_bytes.current;
  state.largest_free_block = largest_free(then.segments);
  if (!state.expandable_segments && state.event.device_free >= 0) {
    options.settings.expandable_segments = true;
    options.recorded_addresses = false;
    options.capacity = state.reserved + state.event.device_free;
    HistoryEvent request;
    request.bytes = state.event.bytes;
    request.address = ~Address{0};
    request.line = state.event.line;
    before.events.push_back(request);
    state.expandable_segments_would_do = !replay(before, options).out_of_memory;
  }
  constexpr std::size_t kMost = 5;
  state.holders = snapshot.holders;
  state.holders.resize(std::min(kMost, state.holders.size()));
  return state;
}

std::string out_of_memory_text(const OutOfMemoryState& state) {
  const OutOfMemoryEvent& event = state.event;
  std::string out = fmt::format("\n  OUT OF MEMORY at event {}{}\n", event.line,
                                state.events > 1 ? fmt::format(", the last of {} times", state.events) : "");
  out += line("requested", size(event.bytes) + (event.place.empty() ? "" : " by " + event.place));
  if (event.device_free >= 0) out += line("free", size(event.device_free) + " on the device");
  out += line("allocated", size(state.allocated));
  out += line("cached", fmt::format("{} held by the allocator, in no tensor; the largest piece {}",
                                    size(state.reserved - state.allocated), size(state.largest_free_block)));
  out += cause_lines(cause_of(state));
  if (!state.holders.empty() && !(state.holders.size() == 1 && state.holders[0].place.empty())) {
    out += "\n  in use at the snapshot\n";
    for (const Holder& holder : state.holders)
      out += fmt::format("    {:>10} in {:>5} blocks  {}\n", size(holder.bytes), holder.blocks,
                         holder.place.empty() ? "(no stack of Python)" : holder.place);
  }
  return out;
}

nlohmann::ordered_json out_of_memory_json(const OutOfMemoryState& state) {
  nlohmann::ordered_json out_json = {{"event", state.event.line},
                                     {"events", state.events},
                                     {"requested_bytes", state.event.bytes},
                                     {"place", state.event.place},
                                     {"allocated_bytes", state.allocated},
                                     {"reserved_bytes", state.reserved},
                                     {"largest_free_block_bytes", state.largest_free_block}};
  if (state.event.device_free >= 0) out_json["device_free_bytes"] = state.event.device_free;
  out_json["expandable_segments_would_do"] = state.expandable_segments_would_do;
  const Cause cause = cause_of(state);
  out_json["why"] = cause.why;
  out_json["helps"] = cause.helps;
  out_json["holders"] = nlohmann::ordered_json::array();
  for (const Holder& holder : state.holders)
    out_json["holders"].push_back({{"place", holder.place}, {"bytes", holder.bytes}, {"blocks", holder.blocks}});
  return out_json;
}

std::string out_of_memory_text(const std::string& file, const std::vector<OutOfMemoryText>& errors) {
  std::string out;
  for (const OutOfMemoryText& one : errors)
    out += fmt::format("{}{}:{}: {}out of memory, as PyTorch says\n\n{}", out.empty() ? "" : "\n", file, one.line,
                       place_of_error(one), error_lines(one));
  return out;
}

nlohmann::ordered_json out_of_memory_json(const std::vector<OutOfMemoryText>& errors) {
  nlohmann::ordered_json out_json = {{"source", "out_of_memory_text"}, {"errors", nlohmann::ordered_json::array()}};
  for (const OutOfMemoryText& one : errors) out_json["errors"].push_back(as_json(one));
  return out_json;
}

std::string totals_text(const std::string& file, std::string_view name, const std::vector<AllocatorTotals>& totals) {
  std::string out;
  for (const AllocatorTotals& one : totals) {
    out += fmt::format("{}{}: {} of PyTorch{}\n\n", out.empty() ? "" : "\n", file, name,
                       one.device >= 0 ? fmt::format(", device {}", one.device) : "");
    out += line("peak allocated", one.peak_allocated);
    out += line("peak reserved", one.peak_reserved);
    out += line("allocated", one.allocated);
    out += line("reserved", one.reserved);
    out +=
        line("inactive split", one.inactive_split, " free beside blocks in use, which empty_cache() cannot give back");
    if (one.peak_allocated && one.peak_requested && *one.peak_allocated > *one.peak_requested)
      out += line("rounding", size(*one.peak_allocated - *one.peak_requested) + " of the peak");
    if (one.peak_reserved && one.peak_allocated)
      out += line("fragmentation", fmt::format("{} between the peaks of reserved and allocated: {:.0f} %",
                                               size(*one.peak_reserved - *one.peak_allocated),
                                               100.0 - 100.0 * static_cast<double>(*one.peak_allocated) /
                                                           std::max(1.0, static_cast<double>(*one.peak_reserved))));
    if (one.retries > 0 || one.out_of_memory > 0)
      out += line("full", fmt::format("{} out-of-memory errors, {} times the cache was given back to go on: the device "
                                      "was full at the peak",
                                      one.out_of_memory, one.retries));
    constexpr double kMuch = 0.1;
    if (one.peak_reserved && one.peak_allocated && (one.retries > 0 || one.out_of_memory > 0))
      out += line("what helps", static_cast<double>(*one.peak_reserved - *one.peak_allocated) >
                                        kMuch * static_cast<double>(*one.peak_reserved)
                                    ? fmt::format("{} joins the pieces", kExpandable)
                                    : std::string(kLess));
  }
  return out;
}

nlohmann::ordered_json totals_json(const std::vector<AllocatorTotals>& totals) {
  nlohmann::ordered_json out_json = {{"source", "totals"}, {"devices", nlohmann::ordered_json::array()}};
  for (const AllocatorTotals& one : totals) {
    nlohmann::ordered_json device = nlohmann::ordered_json::object();
    if (one.device >= 0) device["device"] = one.device;
    put(device, "peak_allocated_bytes", one.peak_allocated);
    put(device, "peak_reserved_bytes", one.peak_reserved);
    put(device, "allocated_bytes", one.allocated);
    put(device, "reserved_bytes", one.reserved);
    put(device, "requested_bytes", one.requested);
    put(device, "inactive_split_bytes", one.inactive_split);
    device["out_of_memory"] = one.out_of_memory;
    device["retries"] = one.retries;
    out_json["devices"].push_back(device);
  }
  return out_json;
}

}  // namespace ridgeline
