// The op trace of one network at many sizes of its batch. Between two of them nothing changes but numbers: bytes of
// storages and operands, shapes of operations. A network of many equal blocks takes them from one of three, whose trace
// is made anew for each size; the order of all records is that of a trace made before.
//
// What it gives is to the byte what training_run() gives. Whatever does not show that it is so (a record more or less
// at another size, an operation of the optimizer that changes with the batch) gives nothing, and the trace is made
// whole. Tested by tests/workload/trace_pattern_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/workload/model.h"
#include "sim/workload/op_trace.h"
#include "sim/workload/training.h"

namespace ridgeline {

class TracePattern {
 public:
  /// The network has many blocks, all of which are described alike, and trains alone on one GPU.
  static bool applies(const ModelDescription& model, const TrainingDescription& training);

  /// What all traces of a network take their numbers from: training_run() of its like with three blocks.
  static OpTrace part_of(const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention);

  /// `whole`: training_run() of what applies() is true of; `part`: part_of() the same. Nothing where the whole has
  /// blocks that are not those of the part.
  static std::optional<TracePattern> of(std::shared_ptr<const OpTrace> whole, OpTrace part);

  /// training_run() of the same network, trained with another micro-batch or sequence length and else as before, from
  /// part_of() the same.
  [[nodiscard]] std::optional<OpTrace> at(const ModelDescription& model, const TrainingDescription& training,
                                          const OpTrace& part) const;

  /// In what at() makes of `part`, operations on lists of tensors are those of the whole trace, with the same operands
  /// to the byte.
  [[nodiscard]] bool keeps_lists(const OpTrace& part) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct FixedOp {
    std::uint32_t op = 0;  ///< of the whole trace
    std::size_t hash = 0;
  };

  TracePattern() = default;
  friend class PatternMaker;
  /// What must not depend on the batch does not.
  [[nodiscard]] bool keeps_what_is_fixed(const OpTrace& part) const;
  /// Gives `made` the operations of `part`, numbered in the order of their first calls; false where that is not known.
  bool take_ops(const OpTrace& part, OpTrace& made) const;

  /// Entries of the whole trace in a row whose likes in the other one stand in a row.
  struct Row {
    std::uint32_t whole = 0, part = 0, count = 0;
  };
  static std::vector<Row> rows_of(const std::vector<std::uint32_t>& likes);

  std::shared_ptr<const OpTrace> whole_;
  OpTrace part_;                          ///< at the sizes of `whole_`
  std::vector<Row> storages_, operands_;  ///< those that depend on the batch
  std::vector<std::uint32_t>
      call_;  ///< of each call of the whole trace, its like; kNone: it does not depend on the batch
  std::vector<std::uint32_t> fixed_storages_, fixed_calls_;  ///< entries of `part_` that stand for those
  std::vector<FixedOp> fixed_ops_;                           ///< of calls that have no like, each once
  std::vector<std::uint32_t> like_calls_;                    ///< entries of `call_`, each once
};

}  // namespace ridgeline
