// Embeddings of recommenders: rows of many tables, looked up and added up by bags in one call (fbgemm), and what moves
// indices and pooled rows between ranks. A lookup's arguments say its tables' elements, indices and offsets; the
// backward pass, which sorts the indices and updates the tables, says the gradient alone: the lookup of as many samples
// and indices is its forward call.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"
#include "sim/units/bits_below.h"

namespace ridgeline::trace {
namespace {

using P = PointwiseFunction;

constexpr std::int64_t kIndicesOfBlock = 1024;  ///< of fbgemm's search for long runs of equal indices
constexpr std::int64_t kSortedInABlock = 4096;

std::int64_t elements_at(const AtenCall& call, std::size_t i) {
  const AtenTensor* x = call.tensor(i);
  return x != nullptr ? x->elements() : 0;
}
MappedOp moved(const AtenTensor& from, AtenTensor to) { return pointwise_op(P::scale, {&from}, std::move(to)); }

std::int64_t width_of(const TableLookup& lookup, const MapContext& context) {
  if (lookup.width() > 0 || !context.lookups) return lookup.width();
  for (const TableLookup& known : *context.lookups)
    if (known.batch == lookup.batch && known.tables == lookup.tables && known.elements == lookup.elements)
      return known.width();
  return 0;
}
Embedding embedding_of(const TableLookup& lookup, std::int64_t width, bool backward) {
  Embedding op;
  op.backward = backward;
  op.type = lookup.type;
  op.tokens = lookup.indices;
  op.vocabulary = std::max<std::int64_t>(1, lookup.elements / width);
  op.hidden = width;
  op.bags = lookup.bags();
  return op;
}
MappedOp rows_added_up(const Embedding& op, const AtenTensor& table) {
  return {op, {table, fresh(DType::int64, {op.tokens})}, {fresh(DType::fp32, {op.bags, op.hidden})}};
}

MappedOps lookup(const AtenCall& call, const MapContext& context) {
  const auto found = table_lookup(call);
  if (!found) return std::nullopt;
  const std::int64_t width = width_of(*found, context);
  if (width < 1) return std::nullopt;
  if (found->indices < 1) return one(pointwise_op(P::fill, {}, fresh(DType::fp32, {found->bags(), width})));
  const Embedding op = embedding_of(*found, width, false);
  return one(rows_added_up(op, fresh(op.type, {op.vocabulary, op.hidden})));
}

/// The lookup whose gradient a backward call takes.
const TableLookup* lookup_before(const AtenCall& call, const MapContext& context) {
  const AtenTensor* gradient = call.tensor(0);
  if (gradient == nullptr || gradient->sizes.size() != 2 || !context.lookups) return nullptr;
  std::int64_t blocks = 0;
  for (const MeasuredKernel& kernel : call.kernels)
    if (kernel.name.find("find_long_segments") != kernel.name.npos) blocks = kernel.blocks;
  for (const TableLookup& lookup : *context.lookups) {
    const std::int64_t of_lookup = std::max<std::int64_t>(1, (lookup.indices + kIndicesOfBlock - 1) / kIndicesOfBlock);
    if (lookup.batch == gradient->sizes[0] && (blocks == 0 || blocks == of_lookup) && lookup.width() > 0)
      return &lookup;
  }
  return nullptr;
}
/// (gradient of the pooled rows): indices are numbered over all tables, sorted, runs of equal ones counted and placed,
/// the gradients of each run added up and the row updated. Factors of indices have gradients of their own: a second
/// pass over the rows.
MappedOps updated_tables(const AtenCall& call, const MapContext& context) {
  const TableLookup* found = lookup_before(call, context);
  if (found == nullptr) return std::nullopt;
  const std::int64_t n = found->indices;
  if (n < 1) return one(pointwise_op(P::fill, {}, fresh(DType::int32, {1})));
  const Embedding op = embedding_of(*found, found->width(), true);
  const AtenTensor indices = fresh(DType::int64, {n}), places = fresh(DType::int32, {n}),
                   table = fresh(op.type, {op.vocabulary, op.hidden});
  std::vector<MappedOp> ops;
  const bool of_factors = std::any_of(call.kernels.begin(), call.kernels.end(), [](const MeasuredKernel& kernel) {
    return kernel.name.find("grad_indice_weights") != kernel.name.npos;
  });
  if (of_factors) {
    Embedding again = op;
    again.backward = false;
    ops.push_back(rows_added_up(again, table));
  }
  const std::int64_t bits = n <= kSortedInABlock ? 0 : bits_below(op.vocabulary);
  const auto cleared = [&](std::int64_t elements) {
    ops.push_back(pointwise_op(P::fill, {}, fresh(DType::int32, {elements})));
  };
  ops.push_back(moved(indices, indices));
  ops.push_back({Sort{DType::int64, 1, n, 0, bits}, {indices}, {indices, places}});
  for (const std::int64_t elements : {n, std::int64_t{1}, std::int64_t{1}}) cleared(elements);
  ops.push_back(moved(indices, places));  // lengths of runs
  for (int times = 0; times < 2; ++times) cleared(1);
  ops.push_back(moved(places, places));  // where they begin
  for (int times = 0; times < 2; ++times) cleared(1);
  ops.push_back(moved(places, fresh(DType::int32, {1})));  // long ones among them
  ops.push_back({op,
                 {fresh(DType::fp32, {op.bags, op.hidden}), indices},
                 {table},
                 HostClass::embedding,
                 HostClass::embedding_backward_sorted});
  return ops;
}

/// embedding_bag(table, indices, offsets, …): a bag each offset.
MappedOps embedding_bag(const AtenCall& call, const MapContext&) {
  const AtenTensor *table = call.tensor(0), *indices = call.tensor(1);
  const std::int64_t bags = elements_at(call, 2);
  if (table == nullptr || indices == nullptr || table->sizes.size() != 2 || bags < 1) return std::nullopt;
  if (table->elements() < 1 || indices->elements() < 1) return nothing();
  Embedding op;
  op.type = table->type;
  op.tokens = indices->elements();
  op.vocabulary = table->sizes[0];
  op.hidden = table->sizes[1];
  op.bags = bags;
  return one(rows_added_up(op, *table));
}

/// A kernel with a warp for each bag of indices, whatever few are in it.
MappedOp warp_a_bag(const char* name, std::int64_t bags, std::int64_t indices, std::vector<AtenTensor> inputs,
                    std::vector<AtenTensor> outputs) {
  constexpr std::int64_t kOfIndex = 4;  // instructions beyond loading and storing
  FusedKernel op;
  op.name = name;
  op.shape = FusedKernel::Shape::rows;
  op.rows = bags;
  op.cols = std::max<std::int64_t>(1, indices / bags);
  op.type = inputs.front().type;
  op.arithmetic = kOfIndex;
  for (const AtenTensor& input : inputs) op.reads.push_back(input.bytes());
  for (const AtenTensor& output : outputs) op.writes.push_back(output.bytes());
  return {op, std::move(inputs), std::move(outputs)};
}

/// (…, indices, offsets, …): every index is compared with the rows of its table.
MappedOps checked_indices(const AtenCall& call, const MapContext&) {
  const AtenTensor *indices = call.tensor(1), *offsets = call.tensor(2);
  if (indices == nullptr || offsets == nullptr || offsets->elements() < 1) return std::nullopt;
  const AtenTensor warnings = fresh(DType::int64, {1});
  std::vector<MappedOp> ops{pointwise_op(P::fill, {}, warnings)};
  ops.push_back(warp_a_bag("bounds_check", offsets->elements(), indices->elements(), {*indices, *offsets}, {warnings}));
  return ops;
}

/// (order, lengths [features, samples], values, …): lengths and values by another order of the features. Where each
/// bag begins is summed up twice, before and after.
MappedOps permuted_features(const AtenCall& call, const MapContext&) {
  const AtenTensor *order = call.tensor(0), *lengths = call.tensor(1), *values = call.tensor(2);
  if (order == nullptr || lengths == nullptr || values == nullptr || lengths->sizes.size() != 2) return std::nullopt;
  if (order->elements() < 1 || lengths->elements() < 1 || values->elements() < 1) return std::nullopt;
  const AtenTensor sorted = fresh(lengths->type, {order->elements(), lengths->sizes[1]});
  // Features that are asked for twice come twice.
  const double each = static_cast<double>(values->elements()) / static_cast<double>(lengths->sizes[0]);
  const std::int64_t results = whole_number(std::max(1.0, each * static_cast<double>(order->elements())), 1);
  const AtenTensor result = fresh(values->type, {results});
  std::vector<MappedOp> ops{moved(sorted, sorted)};
  for (int times = 0; times < 2; ++times) ops.push_back(moved(sorted, sorted));
  ops.push_back(warp_a_bag("permute_data", sorted.elements(), results, {result, sorted, sorted}, {result}));
  return ops;
}

/// Columns of the first tensor by another order: whole runs are copied.
MappedOps permuted_columns(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const std::int64_t cols = std::max<std::int64_t>(1, x->last());
  return one({Copy{CopyKind::permute, x->type, x->elements() / cols, cols, 1},
              {*x},
              {result_of(call, 0, fresh(x->type, x->sizes))}});
}

/// Rows as bytes behind their scale: a first kernel looks for each row's largest, a second one writes.
MappedOps quantized_rows(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const std::int64_t cols = std::max<std::int64_t>(1, x->last());
  std::vector<MappedOp> ops;
  ops.push_back({Reduction{ReductionKind::sum_cols, x->type, x->elements() / cols, cols},
                 {*x},
                 {fresh(DType::fp32, {x->elements() / cols})}});
  ops.push_back(moved(*x, fresh(DType::uint8, x->sizes)));
  return ops;
}
MappedOps as_bytes(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  return one(moved(*x, fresh(DType::uint8, x->sizes)));
}
MappedOps rows_from_bytes(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  return one(moved(*x, fresh(DType::fp32, x->sizes)));
}

}  // namespace

std::optional<TableLookup> table_lookup(const AtenCall& call) {
  constexpr std::string_view kName = "embedding_codegen_lookup_";
  constexpr std::size_t kPlaces = 4;  // of tables: host, device, managed memory, cache
  const bool split = call.name.starts_with("fbgemm::split_embedding");
  if (call.name.find(kName) == call.name.npos) return std::nullopt;
  // Dense tables: (tables, their offsets, columns' offsets, …, indices, offsets, pooling, factors).
  const std::size_t columns = split ? 6 : 2, indices = split ? 11 : 7, factors = split ? 14 : 10, momentum = 20;
  TableLookup found;
  for (std::size_t i = 0; i < (split ? kPlaces : 1); ++i)
    if (const AtenTensor* table = call.tensor(i); table != nullptr && table->elements() > found.elements) {
      found.elements = table->elements();
      found.type = table->type;
    }
  const AtenTensor *given = call.tensor(indices), *offsets = call.tensor(indices + 1);
  found.tables = elements_at(call, columns) - 1;
  if (given == nullptr || offsets == nullptr || found.tables < 1 || found.elements < 1) return std::nullopt;
  found.batch = (offsets->elements() - 1) / found.tables;
  if (found.batch < 1) return std::nullopt;
  found.indices = given->elements();
  found.weighted = elements_at(call, factors) > 0;
  // One moment a row tells the rows; one an element does not.
  if (const std::int64_t moments = split ? elements_at(call, momentum) : 0; moments > 0 && moments < found.elements)
    found.rows = moments;
  return found;
}

void add_table_rules(RuleTable& table) {
  table.try_emplace(
      "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_pooled_embs_gpu> >",
      permuted_columns);
  add(table, "aten::_embedding_bag aten::_embedding_bag_forward_only", embedding_bag);
  add(table, "fbgemm::bounds_check_indices", checked_indices);
  add(table, "fbgemm::permute_2D_sparse_data fbgemm::permute_sparse_features", permuted_features);
  add(table,
      "fbgemm::permute_pooled_embs fbgemm::permute_pooled_embs_auto_grad "
      "fbgemm::recat_embedding_grad_output_mixed_D_batch",
      permuted_columns);
  add(table, "fbgemm::FloatToFP8RowwiseQuantized fbgemm::FloatToFused8BitRowwiseQuantized", quantized_rows);
  add(table, "fbgemm::FloatToHFP8Quantized", as_bytes);
  add(table,
      "fbgemm::HFP8QuantizedToFloat fbgemm::FP8RowwiseQuantizedToFloat "
      "fbgemm::Fused8BitRowwiseQuantizedToFloat",
      rows_from_bytes);
  add(table,
      "fbgemm::dense_embedding_codegen_lookup_function "
      "fbgemm::split_embedding_codegen_lookup_sgd_function "
      "fbgemm::split_embedding_codegen_lookup_adagrad_function "
      "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function "
      "fbgemm::split_embedding_codegen_lookup_adam_function "
      "fbgemm::split_embedding_codegen_lookup_partial_rowwise_adam_function "
      "fbgemm::split_embedding_codegen_lookup_lamb_function",
      lookup);
  add(table,
      "torch::autograd::CppNode<SplitLookupFunction_Dense_Op> "
      "torch::autograd::CppNode<SplitLookupFunction_sgd_Op> "
      "torch::autograd::CppNode<SplitLookupFunction_adagrad_Op> "
      "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op> "
      "torch::autograd::CppNode<SplitLookupFunction_adam_Op> "
      "torch::autograd::CppNode<SplitLookupFunction_partial_rowwise_adam_Op> "
      "torch::autograd::CppNode<SplitLookupFunction_lamb_Op>",
      updated_tables);
}

}  // namespace ridgeline::trace
