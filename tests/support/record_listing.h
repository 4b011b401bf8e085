// Records of an op trace in words, a line each, so that a test can say everything that a piece of a program does.
//
//   host optimizer_op 3                        the host works; times unless once
//   new 4: 60 optimizer_state                  a storage comes to be: its bytes, what it is for, its stream's pool
//   free 4
//   lerp 1x15 fp32: w 60, 4 60 -> 4 60         an operation: what it reads and writes, storage and bytes
//   [1] all_reduce ...                         … on stream 1
//   event 2 behind stream 1; stream 0 waits for event 2; the host waits for event 2; the host waits for the GPU
//   -- optimizer                               the phase that following operations belong to
#pragma once

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::testing_support {

class RecordListing {
 public:
  explicit RecordListing(const OpTrace& trace) : trace_(trace) {}

  /// How a storage is called from here on; others by their number, counted from the first that is listed.
  void call(StorageId storage, std::string name) { names_[storage] = std::move(name); }
  /// Operations outside of these belong to a phase that is not worth a line.
  void assume(Phase phase) { phase_ = phase; }

  /// Records from `begin` on, up to `end`.
  std::string lines(std::uint32_t begin, std::uint32_t end) {
    std::string text;
    for (std::uint32_t i = begin; i < end; ++i) text += line(trace_.records[i]) + "\n";
    return text;
  }
  std::string lines(std::uint32_t begin) { return lines(begin, static_cast<std::uint32_t>(trace_.records.size())); }

  std::string name(StorageId storage) {
    const auto [found, fresh] = names_.try_emplace(storage);
    if (fresh) found->second = std::to_string(++numbered_);
    return found->second;
  }

 private:
  std::string line(const Record& record) {
    switch (record.kind) {
      case Record::Kind::allocate: {
        const Storage& storage = trace_.storages[record.index];
        return fmt::format("new {}: {} {}{}", name(record.index), storage.bytes, category(storage.category),
                           storage.stream > 0 ? fmt::format(" of stream {}", storage.stream) : "");
      }
      case Record::Kind::free: return "free " + name(record.index);
      case Record::Kind::op: return operation(trace_.calls[record.index]);
      case Record::Kind::host:
        return fmt::format("host {}{}", name_of(record.host_class),
                           record.index == 1 ? "" : fmt::format(" {}", record.index));
      case Record::Kind::wait_for_gpu: return "the host waits for the GPU";
      case Record::Kind::record_event: return fmt::format("event {} behind stream {}", record.index, record.stream);
      case Record::Kind::wait_event: return fmt::format("stream {} waits for event {}", record.stream, record.index);
      case Record::Kind::host_waits_for_event: return fmt::format("the host waits for event {}", record.index);
    }
    return "?";
  }
  std::string operation(const Call& call) {
    const Op& op = trace_.ops[call.op];
    std::string text;
    if (call.phase != std::exchange(phase_, call.phase)) text = fmt::format("-- {}\n", phase(call.phase));
    if (call.stream > 0) text += fmt::format("[{}] ", call.stream);
    text += name_of(op) + " " + shape_of(op) + details(op) + ":";
    for (std::uint32_t i = 0; i < std::uint32_t{call.inputs} + call.outputs; ++i) {
      if (i == call.inputs) text += " ->";
      const Operand& operand = trace_.operands[call.operands_begin + i];
      text += fmt::format("{} {} {}", i == 0 || i == call.inputs ? "" : ",", name(operand.storage), operand.bytes);
    }
    return text + disagreement(op, call);
  }
  /// Of a generated kernel, whose bytes are those of its operands.
  [[nodiscard]] std::string disagreement(const Op& op, const Call& call) const {
    const auto* fused = std::get_if<FusedKernel>(&op);
    if (fused == nullptr) return "";
    std::vector<std::int64_t> said = fused->reads, given;
    said.insert(said.end(), fused->writes.begin(), fused->writes.end());
    for (std::uint32_t i = 0; i < std::uint32_t{call.inputs} + call.outputs; ++i)
      given.push_back(trace_.operands[call.operands_begin + i].bytes);
    return said == given && fused->reads.size() == call.inputs ? "" : fmt::format(" but {}", fmt::join(said, " "));
  }
  /// What the name and the shape of an operation leave out.
  static std::string details(const Op& op) {
    if (const auto* lists = std::get_if<MultiTensor>(&op)) return lists->scalar_per_tensor ? " by a scalar each" : "";
    if (const auto* copy = std::get_if<Copy>(&op)) return copy->parts > 1 ? fmt::format(" of {}", copy->parts) : "";
    if (const auto* pointwise = std::get_if<Pointwise>(&op)) {
      constexpr std::array kWalks{"", " by row", " broadcast", " strided", " transposed"};
      return kWalks[static_cast<std::size_t>(pointwise->walk)];
    }
    if (const auto* sent = std::get_if<Collective>(&op)) return fmt::format(" in {}", name_of(sent->group));
    if (const auto* fused = std::get_if<FusedKernel>(&op))
      return fmt::format(" x{}{}{}", fused->arithmetic, fused->gathers ? " gathers" : "",
                         fused->column_results > 0 ? fmt::format(" sums {}", fused->column_results) : "");
    return "";
  }
  static const char* category(Category category) {
    constexpr std::array kNames{"weights",     "gradients",  "optimizer_state", "activations",
                                "temporaries", "workspaces", "inputs"};
    return kNames[static_cast<std::size_t>(category)];
  }
  static const char* phase(Phase phase) {
    constexpr std::array kNames{"setup", "forward", "backward", "clipping", "optimizer", "other"};
    return kNames[static_cast<std::size_t>(phase)];
  }

  const OpTrace& trace_;
  std::map<StorageId, std::string> names_;
  int numbered_ = 0;
  Phase phase_ = Phase::optimizer;
};

}  // namespace ridgeline::testing_support
