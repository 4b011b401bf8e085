// From calls of PyTorch's dispatcher to our operations, with the tensors each reads and writes.
//
// One table of names; a name that is in it is understood as a whole, whatever it calls inside. Shapes that an operation
// needs and the recording lacks make it not understood, as an unknown name does: it is then costed by its bytes.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/trace/aten/aten_call.h"

namespace ridgeline::trace {

struct MappedOp {
  Op op;
  std::vector<AtenTensor> inputs, outputs;                            ///< in the order of workload/op_operands.h
  HostClass forward = HostClass::other, backward = HostClass::other;  ///< what a rule leaves is as the op's kind has it
};

/// A call that looks up rows of several tables and adds them up by bags (fbgemm's table-batched embeddings).
struct TableLookup {
  DType type = DType::fp32;
  std::int64_t tables = 0, batch = 0;  ///< a bag for each table and sample
  std::int64_t indices = 0, rows = 0;  ///< of all tables; rows 0: not said
  std::int64_t elements = 0;           ///< of all tables
  bool weighted = false;               ///< a factor an index
  /// Of a row, the mean over the tables; 0: not said.
  [[nodiscard]] std::int64_t width() const { return rows > 0 ? elements / rows : 0; }
  [[nodiscard]] std::int64_t bags() const { return tables * batch; }
};
/// What a forward call of fbgemm's says; nothing where it is another call, or lacks the sizes.
std::optional<TableLookup> table_lookup(const AtenCall& call);

/// The call that a kernel of apex's optimizers stands for, which launch without the dispatcher; empty: none of them.
std::string_view apex_name_of(std::string_view kernel);

/// What a recording says about all of its calls.
struct MapContext {
  bool tf32 = false;          ///< fp32 matmuls run on TF32 tensor cores
  bool cudnn_tf32 = false;    ///< fp32 convolutions do
  bool same_library = false;  ///< where the step is replayed products run the kernels that the recording names
  /// Elements of every trained parameter, for lists of tensors that were recorded without their shapes.
  std::shared_ptr<const std::vector<std::int64_t>> parameter_sizes;
  /// Lookups of tables, whose backward calls say nothing but the gradient.
  std::shared_ptr<const std::vector<TableLookup>> lookups;
};

/// The operations of a call. Nothing: not understood. Empty: understood, launches nothing (views, empty tensors).
std::optional<std::vector<MappedOp>> map_aten(const AtenCall& call, const MapContext& context);

/// Whether the table has the name; what it calls inside is then part of it.
bool is_mapped(std::string_view name);
/// Every name of the table, sorted.
std::vector<std::string_view> mapped_names();
/// Views, allocations and queries: they launch nothing.
bool launches_nothing(std::string_view name);
/// Bytes a call without a rule moves: all its tensors read, its results (or its first tensor) written.
UnknownOp unknown_op(const AtenCall& call);

/// A type as PyTorch's profilers spell it ("c10::BFloat16", "float", "long int") or as we do ("bf16").
std::optional<DType> dtype_of_aten(std::string_view name);

}  // namespace ridgeline::trace
