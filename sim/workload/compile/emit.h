// Groups as records of a trace: buffers are allocated before the kernel that fills them and freed after their last
// reader; a kernel writes into an operand of the same size that dies with it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/workload/compile/fuse.h"
#include "sim/workload/op_trace.h"

namespace ridgeline::compile {

class Emitter {
 public:
  /// Appends to `records` and to the storages, operands, calls and ops of `trace`.
  Emitter(OpTrace& trace, std::vector<Record>& records, const Graph& graph, const std::vector<Group>& groups, int sms);

  /// `enters`: the first graph of its pass.
  void forward(std::int64_t parameters, bool enters = true);
  void backward(std::int64_t parameters, bool enters = true);
  /// Frees what the graphs held; alone where there is no backward pass.
  void finish();

 private:
  void emit(std::uint32_t number);
  void library(const Group& group);
  void generated(const Group& group);
  void column_sums(const Group& group, FusedKernel op);
  void block_sums(const Group& group, FusedKernel op);
  void call(Op op, const Group& group, const std::vector<Operand>& in, const std::vector<Operand>& out);
  void call(std::uint32_t op, const Group& group, const std::vector<Operand>& in, const std::vector<Operand>& out);
  StorageId allocate(std::int64_t bytes, Category category, std::int16_t layer, std::uint16_t module);
  StorageId temporary(std::int64_t bytes, const Group& group);
  void place_outputs(const Group& group, std::uint32_t number);
  void release_dying(const Group& group, std::uint32_t number);
  void free_value(ValueId value);
  [[nodiscard]] std::vector<Operand> operands(const std::vector<Use>& uses) const;

  OpTrace& trace_;
  std::vector<Record>& records_;
  const Graph& graph_;
  const std::vector<Group>& groups_;
  std::int64_t sms_;                        ///< of the GPU that is compiled for
  std::vector<std::uint32_t> last_reader_;  ///< of each value: entry of `groups_`, kNone where nobody reads it
  std::vector<StorageId> storage_;          ///< of each value, kNone before it is allocated
  std::vector<bool> freed_;                 ///< by value: its storage is gone or another value's
  std::vector<ValueId> becomes_;            ///< by value: what leaves the graphs and lies in its place
  std::vector<std::int64_t> dies_inside_;   ///< values from outside that die in the graphs
  std::unordered_map<std::size_t, std::vector<std::uint32_t>> ops_;
};

}  // namespace ridgeline::compile
