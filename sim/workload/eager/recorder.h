// Writes an op trace: storages with counted references, whose last reference writes the free, and operations, equal
// ones of which share one entry.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::eager {

class Tensor;

/// Hears which storages an operation reads, before it is written down.
class StorageWatcher {
 public:
  virtual ~StorageWatcher() = default;
  virtual void before_use(StorageId storage) = 0;
};

class Recorder {
 public:
  explicit Recorder(OpTrace& trace);

  /// A new storage with one reference. Its category follows from the phase: what the forward pass makes are activations
  /// (temporaries if they die in it), anything later temporaries.
  StorageId allocate(std::int64_t bytes);
  StorageId allocate(std::int64_t bytes, Category category);
  void retain(StorageId storage) { ++references_[storage]; }
  void release(StorageId storage) {
    if (--references_[storage] == 0) free(storage);
  }
  [[nodiscard]] std::uint32_t references(StorageId storage) const { return references_[storage]; }
  [[nodiscard]] std::int64_t bytes(StorageId storage) const { return trace_.storages[storage].bytes; }
  void set_category(StorageId storage, Category category) { trace_.storages[now(storage)].category = category; }
  /// `storage` belongs to what `like` belongs to.
  void set_layer_like(StorageId storage, StorageId like) {
    trace_.storages[now(storage)].layer = trace_.storages[like].layer;
    trace_.storages[now(storage)].module = trace_.storages[like].module;
  }
  /// The module of that name inside the current one.
  std::uint16_t module_inside(std::string_view name);

  /// An operation on tensors in the order of op_operands.h.
  void op(const Op& op, std::initializer_list<const Tensor*> inputs, std::initializer_list<const Tensor*> outputs) {
    this->op(op, std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()));
  }
  void op(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor* const> outputs);
  void host(HostClass host_class, std::int64_t times = 1);
  /// What `on` was given so far, as an event to wait for.
  std::uint32_t record_event(std::uint8_t on) {
    trace_.records.push_back({Record::Kind::record_event, HostClass::other, on, trace_.events});
    return trace_.events++;
  }
  void wait_event(std::uint8_t waiting, std::uint32_t event) {
    trace_.records.push_back({Record::Kind::wait_event, HostClass::other, waiting, event});
  }
  void host_waits_for_event(std::uint32_t event) {
    trace_.records.push_back({Record::Kind::host_waits_for_event, HostClass::other, 0, event});
  }
  /// A further stream; the first call names the default one too.
  std::uint8_t add_stream(std::string_view purpose);
  /// Gives the memory of a storage back though tensors refer to it, and takes as much again: resize_ to 0, and back.
  void empty_storage(StorageId storage);
  void fill_storage(StorageId storage);
  /// The storage is of the pool of another stream.
  void move_to(StorageId storage, std::uint8_t where) { trace_.storages[now(storage)].stream = where; }
  /// Storages that set-up made elsewhere: their allocations are taken back.
  void never_allocated(std::span<const StorageId> storages);
  [[nodiscard]] bool is_empty(StorageId storage) const { return now_[storage] == kEmpty; }
  void wait_for_gpu() { trace_.records.push_back({Record::Kind::wait_for_gpu}); }
  /// Where the next record will stand.
  [[nodiscard]] std::uint32_t position() const { return static_cast<std::uint32_t>(trace_.records.size()); }
  void note_compiled_range(const CompiledRange& range);
  /// What the first backward pass of a step costs the host besides; nothing for others.
  void first_backward();
  void begin_step();
  void end_step();

  Phase phase = Phase::setup;
  std::int16_t layer = -1;
  std::uint16_t module = 0;  ///< of OpTrace::modules; ModuleScope sets it
  bool recomputing = false;  ///< inside the backward pass, running a checkpointed block again
  std::uint8_t stream = 0;   ///< operations run on it and storages come from its pool
  bool closed = false;       ///< the trace is complete: what dies now is no longer part of it
  StorageWatcher* watcher = nullptr;

 private:
  static constexpr StorageId kEmpty = ~StorageId{0};
  /// The entry of the trace that a storage stands for: another one after it was emptied and filled again.
  [[nodiscard]] StorageId now(StorageId storage) const { return now_[storage] == kEmpty ? storage : now_[storage]; }
  void free(StorageId storage);
  std::uint32_t index_of(const Op& op);
  void grow_table();
  struct Children {
    std::vector<std::uint16_t> modules;
    std::size_t last = 0;  ///< found last: the next one asked for mostly follows it
  };

  OpTrace& trace_;
  std::size_t backward_of_step_ = 0;  ///< number of the step whose backward pass has begun
  std::size_t calls_before_step_ = 0;
  std::vector<std::uint32_t> references_;
  std::vector<StorageId> now_;
  std::vector<std::uint32_t> table_;  ///< open addressing: entry of `ops` + 1, 0 = empty
  std::vector<std::size_t> hashes_;   ///< of each entry of `ops`
  std::vector<Children> children_;    ///< of every module
};

/// What is recorded meanwhile belongs to a module inside the current one.
class ModuleScope {
 public:
  ModuleScope(Recorder& recorder, std::string_view name) : recorder_(recorder), before_(recorder.module) {
    recorder.module = recorder.module_inside(name);
  }
  ModuleScope(Recorder& recorder, std::int64_t number) : ModuleScope(recorder, std::to_string(number)) {}
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;
  ~ModuleScope() { recorder_.module = before_; }

 private:
  Recorder& recorder_;
  std::uint16_t before_;
};

/// Block `number` of "layers".
class BlockScope {
 public:
  BlockScope(Recorder& recorder, std::int64_t number) : layers_(recorder, "layers"), block_(recorder, number) {}

 private:
  ModuleScope layers_, block_;
};

/// One counted reference to a storage.
class StorageReference {
 public:
  StorageReference() = default;
  /// Takes over the reference that `allocate` gave.
  StorageReference(Recorder& recorder, StorageId storage) : recorder_(&recorder), storage_(storage) {}
  StorageReference(const StorageReference& other) : recorder_(other.recorder_), storage_(other.storage_) {
    if (recorder_ != nullptr) recorder_->retain(storage_);
  }
  StorageReference(StorageReference&& other) noexcept
      : recorder_(std::exchange(other.recorder_, nullptr)), storage_(other.storage_) {}
  StorageReference& operator=(StorageReference other) noexcept {
    std::swap(recorder_, other.recorder_);
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StorageReference() {
    if (recorder_ != nullptr) recorder_->release(storage_);
  }

  [[nodiscard]] bool valid() const { return recorder_ != nullptr; }
  [[nodiscard]] StorageId id() const { return storage_; }
  [[nodiscard]] std::int64_t bytes() const { return recorder_->bytes(storage_); }
  [[nodiscard]] std::uint32_t count() const { return recorder_->references(storage_); }

 private:
  Recorder* recorder_ = nullptr;
  StorageId storage_ = 0;
};

}  // namespace ridgeline::eager
