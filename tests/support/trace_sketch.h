// Op traces written by hand, record after record.
#pragma once

#include <utility>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::testing_support {

class TraceSketch {
 public:
  StorageId allocate(std::int64_t bytes, Category category = Category::activations) {
    const auto id = static_cast<StorageId>(trace.storages.size());
    trace.storages.push_back({bytes, category, layer, 0, module});
    trace.records.push_back({Record::Kind::allocate, HostClass::other, 0, id});
    return id;
  }
  void free(StorageId storage) { trace.records.push_back({Record::Kind::free, HostClass::other, 0, storage}); }
  void host(HostClass host_class, std::uint32_t times = 1) {
    trace.records.push_back({Record::Kind::host, host_class, 0, times});
  }
  /// On whole storages.
  void op(const Op& op, const std::vector<StorageId>& in, const std::vector<StorageId>& out) {
    Call call;
    call.op = static_cast<std::uint32_t>(trace.ops.size());
    trace.ops.push_back(op);
    call.operands_begin = static_cast<std::uint32_t>(trace.operands.size());
    call.inputs = static_cast<std::uint16_t>(in.size());
    call.outputs = static_cast<std::uint16_t>(out.size());
    call.phase = phase;
    call.layer = layer;
    call.module = module;
    for (const auto& list : {in, out})
      for (const StorageId storage : list) trace.operands.push_back({storage, trace.storages[storage].bytes});
    trace.records.push_back({Record::Kind::op, HostClass::other, 0, static_cast<std::uint32_t>(trace.calls.size())});
    trace.calls.push_back(call);
  }
  /// The result of an operation, in a fresh storage.
  StorageId made(const Op& one, const std::vector<StorageId>& in, std::int64_t bytes,
                 Category category = Category::activations) {
    const StorageId id = allocate(bytes, category);
    op(one, in, {id});
    return id;
  }
  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(trace.records.size()); }

  OpTrace trace;
  Phase phase = Phase::setup;
  std::int16_t layer = -1;
  std::uint16_t module = 0;
};

}  // namespace ridgeline::testing_support
