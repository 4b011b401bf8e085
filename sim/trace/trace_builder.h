// Builds an op trace from recorded calls: maps each, keeps equal operations once, and gives tensors their storages.
//
// Where a recording does not tell storages apart, an input is taken to be a late result of as many bytes: good enough
// for what the L2 still holds. In the backward pass that holds for the gradient alone; what the forward pass saved is
// taken to be long gone. Such storages are not allocations; those stand in op traces alone.
#pragma once

#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sim/trace/aten/aten_map.h"
#include "sim/trace/profiler/dispatcher_host.h"
#include "sim/trace/profiler/optimizer_lists.h"
#include "sim/trace/replayable.h"

namespace ridgeline::trace {

class TraceBuilder {
 public:
  /// `bytes_per_second`, beyond `kernel_fixed` seconds a kernel, stands for the bytes of measured calls whose shapes
  /// are not recorded.
  /// `carried_bytes` says so instead, where it is given.
  using CarriedBytes = std::function<std::int64_t(const std::vector<MeasuredKernel>&)>;
  /// `link_bytes`: of copies between host and device.
  explicit TraceBuilder(Replayable& into, double bytes_per_second = 0.0, double kernel_fixed = 0.0,
                        CarriedBytes carried_bytes = {}, CarriedBytes link_bytes = {})
      : into_(into),
        bytes_per_second_(bytes_per_second),
        kernel_fixed_(kernel_fixed),
        carried_bytes_(std::move(carried_bytes)),
        link_bytes_(std::move(link_bytes)) {}

  MapContext context;
  DispatcherHost modelled_host;  ///< where the recording does not measure the host

  /// A storage that is already in the trace, under the recording's id; until `forget`.
  void know(std::int64_t id, StorageId storage) { alive_[id] = storage; }
  void forget(std::int64_t id) { alive_.erase(id); }
  /// A storage the recording names without saying when it is allocated. Another size is another storage.
  void mention(std::int64_t id, std::int64_t bytes);
  void host(HostClass host_class, std::int64_t times = 1);
  /// Host work in seconds, in steps of a microsecond whose rest is carried on, as is what is negative.
  void host_time(double seconds);
  void wait();
  /// Names of the streams, where there are several; calls go to the default one, entry 0, until another is set.
  void name_streams(std::vector<std::string> names) { trace().streams = std::move(names); }
  void set_stream(std::uint8_t stream) { stream_ = stream; }
  /// An event that is recorded or waited for; the recording numbers events.
  void record(const Record& event);
  void begin_step();
  void end_step();

  /// Seconds of host work up to a call; empty: the cost of its class.
  using HostWork = std::function<double()>;
  /// A recorded call. False, and nothing recorded, where it is not understood, or gives no operation though kernels of
  /// it were measured.
  bool call(const AtenCall& call, const HostWork& host = {});
  /// A call that is this operation, on the storages that it reads and writes.
  void exact(const AtenCall& call, const Op& op, double host_seconds);
  /// A call without a rule, costed by its bytes (or by what its measured time can move).
  void unknown(const AtenCall& call, std::optional<double> host_seconds = std::nullopt);
  /// A kernel of NCCL; without `op` its measured time is carried over.
  void collective(const AtenCall& call, const std::optional<Collective>& op, double host_seconds);

 private:
  /// Large copies over the host's link as copies of what the link moves in their time. False: it is none.
  bool link_copy(const AtenCall& call, std::optional<double> host_seconds);
  std::uint32_t index_of(const Op& op);
  void add(const AtenCall& call, std::vector<MappedOp> ops, bool understood, std::optional<double> host_seconds);
  std::vector<Operand> operands_of(const AtenCall& call, const MappedOp& mapped);
  /// Those the recording names, where they are as many as `inputs` and the operation's outputs; else nothing.
  std::vector<Operand> named_operands(const AtenCall& call, std::size_t inputs, std::size_t outputs);
  /// The tensors of a multi-tensor call, list after list.
  std::vector<Operand> operands_of_lists(const AtenCall& call, const MultiTensor& op);
  /// The storage of an input; `recent`: it may be a late result. Those in `used` belong to other inputs of the call.
  StorageId storage_of_input(const AtenTensor& tensor, bool recent, const std::vector<Operand>& used);
  StorageId storage_of_result(const AtenTensor& tensor);
  StorageId unnamed_storage(std::int64_t bytes);
  OpTrace& trace() { return into_.recording.trace; }

  Replayable& into_;
  double bytes_per_second_, kernel_fixed_;
  CarriedBytes carried_bytes_, link_bytes_;
  double host_carry_ = 0.0;
  std::uint8_t stream_ = 0;  ///< of what is added
  std::unordered_multimap<std::size_t, std::uint32_t> table_;
  OptimizerLists optimizer_lists_;
  std::map<std::tuple<ListRole, std::size_t, std::int64_t>, StorageId> listed_;  ///< by list, place in it and bytes
  std::unordered_map<std::int64_t, StorageId> alive_;                            ///< by the recording's id
  std::unordered_map<std::int64_t, std::vector<StorageId>> late_results_;        ///< by bytes, the latest last
};

}  // namespace ridgeline::trace
