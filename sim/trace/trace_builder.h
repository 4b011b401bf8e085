// Builds an op trace from recorded calls: maps each, keeps equal operations once, and gives tensors their storages.
//
// Where a recording does not tell storages apart, an input is taken to be the last result of as many bytes: good enough
// for what the L2 still holds. Such storages are not allocations; those come from `born` and `freed`.
#pragma once

#include <functional>
#include <unordered_map>

#include "sim/trace/aten_map.h"
#include "sim/trace/replayable.h"

namespace ridgeline::trace {

class TraceBuilder {
 public:
  /// `bytes_per_second` stands for the bytes of measured calls whose shapes are not recorded.
  TraceBuilder(Replayable& into, double bytes_per_second) : into_(into), bytes_per_second_(bytes_per_second) {}

  MapContext context;

  /// An allocation and its end; ids are the recording's own and may be used again after `freed`.
  void born(std::int64_t id, std::int64_t bytes, Category category, std::int16_t layer = -1);
  void freed(std::int64_t id);
  void set_category(std::int64_t id, Category category);
  void host(HostClass host_class, std::int64_t times = 1);
  /// Host work in seconds, in steps of a microsecond whose rest is carried on, as is what is negative.
  void host_time(double seconds);
  void wait();
  void begin_step();
  void end_step();

  /// Seconds of host work up to a call; empty: the cost of its class.
  using HostWork = std::function<double()>;
  /// A recorded call. False, and nothing recorded, where it is not understood, or gives no operation though kernels of
  /// it were measured.
  bool call(const AtenCall& call, const HostWork& host = {});
  /// A call without a rule, costed by its bytes (or by what its measured time can move).
  void unknown(const AtenCall& call, std::optional<double> host_seconds = std::nullopt);

 private:
  std::uint32_t index_of(const Op& op);
  void add(const AtenCall& call, std::vector<MappedOp> ops, bool understood, std::optional<double> host_seconds);
  StorageId storage_of(const AtenTensor& tensor, bool written);
  OpTrace& trace() { return into_.recording.trace; }

  Replayable& into_;
  double bytes_per_second_;
  double host_carry_ = 0.0;
  std::unordered_multimap<std::size_t, std::uint32_t> table_;
  std::unordered_map<std::int64_t, StorageId> alive_;         ///< by the recording's id
  std::unordered_map<std::int64_t, StorageId> last_written_;  ///< by bytes
};

}  // namespace ridgeline::trace
