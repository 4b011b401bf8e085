#include "sim/workload/eager/recorder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/units/budget.h"
#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager {

Recorder::Recorder(OpTrace& trace) : trace_(trace), table_(1024, 0), children_(1) {
  // Two steps of a network of two dozen layers: growing to that takes a twentieth of writing it down.
  constexpr std::size_t kRecords = 24'000;
  trace_.records.reserve(kRecords);
  trace_.operands.reserve(kRecords);
  trace_.storages.reserve(kRecords / 3);
  trace_.calls.reserve(kRecords / 4);
  references_.reserve(kRecords / 3);
  now_.reserve(kRecords / 3);
}

StorageId Recorder::allocate(std::int64_t bytes) {
  const bool kept = phase == Phase::forward || recomputing;
  return allocate(bytes, kept ? Category::activations : Category::temporaries);
}

StorageId Recorder::allocate(std::int64_t bytes, Category category) {
  const auto id = static_cast<StorageId>(trace_.storages.size());
  trace_.storages.push_back({bytes, category, layer, stream, module});
  references_.push_back(1);
  now_.push_back(id);
  if (bytes > 0) trace_.records.push_back({Record::Kind::allocate, HostClass::other, 0, id});
  return id;
}

void Recorder::free(StorageId storage) {
  if (closed) return;
  if (is_empty(storage)) return;
  storage = now(storage);
  Storage& freed = trace_.storages[storage];
  if (freed.bytes == 0) return;
  if (phase == Phase::forward && freed.category == Category::activations) freed.category = Category::temporaries;
  // Destructors free: the list grows beyond a budget until the next operation is recorded.
  const Budget* budget = std::exchange(budget_detail::current, nullptr);
  trace_.records.push_back({Record::Kind::free, HostClass::other, 0, storage});
  budget_detail::current = budget;
}

std::uint8_t Recorder::add_stream(std::string_view purpose) {
  if (trace_.streams.empty()) trace_.streams.emplace_back("default");
  trace_.streams.emplace_back(purpose);
  return static_cast<std::uint8_t>(trace_.streams.size() - 1);
}

void Recorder::empty_storage(StorageId storage) {
  if (is_empty(storage)) return;
  free(storage);
  now_[storage] = kEmpty;
}

void Recorder::fill_storage(StorageId storage) {
  if (!is_empty(storage)) return;
  const Storage like = trace_.storages[storage];
  const StorageId fresh = allocate(like.bytes, like.category);
  trace_.storages[fresh].layer = like.layer;
  trace_.storages[fresh].module = like.module;
  now_[storage] = fresh;
  trace_.refills.emplace_back(storage, fresh);
}

void Recorder::never_allocated(std::span<const StorageId> storages) {
  for (const StorageId storage : storages) now_[storage] = kEmpty;
  std::erase_if(trace_.records, [&](const Record& record) {
    return record.kind == Record::Kind::allocate && now_[record.index] == kEmpty;
  });
}

void Recorder::op(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor* const> outputs) {
  if (watcher != nullptr)
    for (const Tensor* input : inputs) watcher->before_use(input->storage.id());
  Call call;
  call.op = index_of(op);
  call.operands_begin = static_cast<std::uint32_t>(trace_.operands.size());
  call.inputs = static_cast<std::uint16_t>(inputs.size());
  call.outputs = static_cast<std::uint16_t>(outputs.size());
  call.phase = phase;
  call.stream = stream;
  call.layer = layer;
  call.module = module;
  for (const auto& list : {inputs, outputs})
    for (const Tensor* tensor : list)
      trace_.operands.push_back({now(tensor->storage.id()), std::min(tensor->bytes(), tensor->storage.bytes())});
  trace_.records.push_back({Record::Kind::op, HostClass::other, 0, static_cast<std::uint32_t>(trace_.calls.size())});
  trace_.calls.push_back(call);
  keep_budget_often("the list of PyTorch's operations");
}

std::uint16_t Recorder::module_inside(std::string_view name) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max() - 1;
  Children& children = children_[module];
  const std::size_t count = children.modules.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (children.last + i) % count;
    if (trace_.modules[children.modules[at] - 1U].name != name) continue;
    children.last = (at + 1) % count;
    return children.modules[at];
  }
  if (trace_.modules.size() >= kMost) return module;
  trace_.modules.push_back({std::string(name), module});
  const auto fresh = static_cast<std::uint16_t>(trace_.modules.size());
  children.modules.push_back(fresh);
  children_.emplace_back();
  return fresh;
}

void Recorder::host(HostClass host_class, std::int64_t times) {
  if (times > 0) trace_.records.push_back({Record::Kind::host, host_class, 0, static_cast<std::uint32_t>(times)});
}

void Recorder::note_compiled_range(const CompiledRange& range) {
  CompiledRange noted = range;
  // Each node of the tape begins with its host work.
  for (int nodes = range.outer_nodes + 1; noted.backward.begin < noted.backward.end; ++noted.backward.begin)
    if (trace_.records[noted.backward.begin].kind == Record::Kind::host && --nodes == 0) break;
  trace_.compiled_ranges.push_back(noted);
}

void Recorder::first_backward() {
  if (std::exchange(backward_of_step_, trace_.steps.size()) == trace_.steps.size()) return;
  host(HostClass::backward_first,
       std::min(kColdOperations, static_cast<std::int64_t>(trace_.calls.size() - calls_before_step_)));
}
void Recorder::begin_step() {
  const auto here = static_cast<std::uint32_t>(trace_.records.size());
  trace_.steps.push_back({here, here});
  calls_before_step_ = trace_.calls.size();
}
void Recorder::end_step() { trace_.steps.back().end = static_cast<std::uint32_t>(trace_.records.size()); }

std::uint32_t Recorder::index_of(const Op& op) {
  const std::size_t hash = hash_of(op), mask = table_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const std::uint32_t entry = table_[slot];
    if (entry == 0) {
      trace_.ops.push_back(op);
      hashes_.push_back(hash);
      table_[slot] = static_cast<std::uint32_t>(trace_.ops.size());
      if (2 * trace_.ops.size() > table_.size()) grow_table();
      return static_cast<std::uint32_t>(trace_.ops.size()) - 1;
    }
    if (hashes_[entry - 1] == hash && trace_.ops[entry - 1] == op) return entry - 1;
  }
}

void Recorder::grow_table() {
  table_.assign(2 * table_.size(), 0);
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    std::size_t slot = hashes_[i] & mask;
    while (table_[slot] != 0) slot = (slot + 1) & mask;
    table_[slot] = static_cast<std::uint32_t>(i) + 1;
  }
}

}  // namespace ridgeline::eager
