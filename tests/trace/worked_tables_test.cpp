// Tables of recommenders (fbgemm), experts that are served and apex's optimizers, worked out by hand.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_tables(const std::vector<WorkedCall>& calls, const MapContext& context = {}) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call, context), call.expected) << text_of(call);
}

/// fbgemm's split tables: (host, device, managed memory, cache, two lists of places, offsets of columns, …, indices,
/// offsets, pooling, factors, …, moments). Two tables of together 50 rows of 8, three samples.
std::vector<Argument> of_split_tables(AtenTensor device, AtenTensor indices, Argument factors, Argument moments) {
  std::vector<Argument> inputs(21, kLeftOut);
  inputs[0] = "fp32[0]"_t;
  inputs[1] = std::move(device);
  inputs[6] = "int32[3]"_t;
  inputs[11] = std::move(indices);
  inputs[12] = "int64[7]"_t;
  inputs[14] = std::move(factors);
  inputs[20] = std::move(moments);
  return inputs;
}
const std::string kSplit = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function",
                  kDense = "fbgemm::dense_embedding_codegen_lookup_function",
                  kUpdate = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>";

TableLookup lookup_of(std::string name, std::vector<Argument> inputs) {
  AtenCall call;
  call.name = std::move(name);
  call.inputs = std::move(inputs);
  return table_lookup(call).value_or(TableLookup{});
}

std::string text_of(const TableLookup& found) {
  return fmt::format("{} tables={} batch={} indices={} rows={} elements={}{} width={} bags={}", name_of(found.type),
                     found.tables, found.batch, found.indices, found.rows, found.elements,
                     found.weighted ? " weighted" : "", found.width(), found.bags());
}

TEST(WorkedTables, WhatALookupSays) {
  const AtenTensor device = "bf16[400]"_t, indices = "int64[20]"_t;
  EXPECT_EQ(text_of(lookup_of(kSplit, of_split_tables(device, indices, kLeftOut, "fp32[50]"_t))),
            "bf16 tables=2 batch=3 indices=20 rows=50 elements=400 width=8 bags=6");
  EXPECT_EQ(text_of(lookup_of(kSplit, of_split_tables(device, indices, "fp32[20]"_t, "fp32[50]"_t))),
            "bf16 tables=2 batch=3 indices=20 rows=50 elements=400 weighted width=8 bags=6");
  EXPECT_EQ(text_of(lookup_of(kSplit, of_split_tables(device, indices, "fp32[1]"_t, "fp32[399]"_t))),
            "bf16 tables=2 batch=3 indices=20 rows=399 elements=400 weighted width=1 bags=6");
  // A moment an element says no rows, nor do no moments.
  EXPECT_EQ(text_of(lookup_of(kSplit, of_split_tables(device, indices, "fp32[0]"_t, "fp32[400]"_t))),
            "bf16 tables=2 batch=3 indices=20 rows=0 elements=400 width=0 bags=6");
  EXPECT_EQ(text_of(lookup_of(kSplit, of_split_tables(device, indices, kLeftOut, "fp32[0]"_t))),
            "bf16 tables=2 batch=3 indices=20 rows=0 elements=400 width=0 bags=6");
  EXPECT_EQ(text_of(lookup_of(kSplit, of_split_tables(device, indices, kLeftOut, "fp32[1]"_t))),
            "bf16 tables=2 batch=3 indices=20 rows=1 elements=400 width=400 bags=6");
  // The largest of the four places has the tables.
  std::vector<Argument> cached = of_split_tables("bf16[300]"_t, indices, kLeftOut, "fp32[50]"_t);
  cached[2] = "fp16[400]"_t;
  cached[3] = "fp32[400]"_t;
  cached[4] = "fp64[900]"_t;
  EXPECT_EQ(text_of(lookup_of(kSplit, cached)), "fp16 tables=2 batch=3 indices=20 rows=50 elements=400 width=8 bags=6");
  // Dense tables: (tables, their places, offsets of columns, …, indices, offsets, pooling, factors).
  std::vector<Argument> dense(21, kLeftOut);
  dense[0] = "bf16[400]"_t;
  dense[1] = "int64[900]"_t;
  dense[2] = "int32[3]"_t;
  dense[7] = "int64[20]"_t;
  dense[8] = "int64[7]"_t;
  dense[10] = "fp32[20]"_t;
  dense[20] = "fp32[50]"_t;
  EXPECT_EQ(text_of(lookup_of(kDense, dense)),
            "bf16 tables=2 batch=3 indices=20 rows=0 elements=400 weighted width=0 bags=6");
}

TEST(WorkedTables, ALookupThatLacksItsSizesSaysNothing) {
  const auto without = [](std::size_t place, Argument instead = kLeftOut) {
    std::vector<Argument> inputs = of_split_tables("bf16[400]"_t, "int64[20]"_t, kLeftOut, "fp32[50]"_t);
    inputs[place] = std::move(instead);
    AtenCall call;
    call.name = kSplit;
    call.inputs = inputs;
    return table_lookup(call).has_value();
  };
  EXPECT_TRUE(without(0));
  EXPECT_FALSE(without(1));
  EXPECT_FALSE(without(6));
  EXPECT_FALSE(without(11));
  EXPECT_FALSE(without(12));
  EXPECT_TRUE(without(11, "int64[0]"_t));
  EXPECT_FALSE(without(6, "int32[1]"_t));  // no table
  EXPECT_TRUE(without(6, "int32[2]"_t));
  EXPECT_FALSE(without(12, "int64[2]"_t));  // no sample
  EXPECT_TRUE(without(12, "int64[3]"_t));
  EXPECT_TRUE(without(1, "bf16[1]"_t));
  AtenCall other;
  other.name = "fbgemm::split_embedding_something_else";
  other.inputs = of_split_tables("bf16[400]"_t, "int64[20]"_t, kLeftOut, "fp32[50]"_t);
  EXPECT_FALSE(table_lookup(other));
}

TEST(WorkedTables, LookupsAddUpRowsOfBags) {
  const std::string expected =
      "embedding bf16 tokens=20 vocabulary=50 hidden=8 bags=6: bf16[50,8] int64[20] > fp32[6,8] | embedding "
      "embedding_backward";
  expect_worked_tables({
      {kSplit, of_split_tables("bf16[400]"_t, "int64[20]"_t, kLeftOut, "fp32[50]"_t), {expected}},
      {kSplit,
       of_split_tables("bf16[400]"_t, "int64[0]"_t, kLeftOut, "fp32[50]"_t),
       {"fill 6x8 >fp32 contiguous: > fp32[6,8]"}},
      {kSplit,
       of_split_tables("bf16[400]"_t, "int64[1]"_t, kLeftOut, "fp32[50]"_t),
       {"embedding bf16 tokens=1 vocabulary=50 hidden=8 bags=6: bf16[50,8] int64[1] > fp32[6,8] | embedding "
        "embedding_backward"}},
      {kSplit, of_split_tables("bf16[400]"_t, "int64[20]"_t, kLeftOut, kLeftOut), kNotUnderstood},
  });
  // A lookup that does not say its width has that of one of as many samples, tables and elements.
  const TableLookup known = lookup_of(kSplit, of_split_tables("bf16[400]"_t, "int64[99]"_t, kLeftOut, "fp32[50]"_t));
  const WorkedCall unsaid{kSplit, of_split_tables("bf16[400]"_t, "int64[20]"_t, kLeftOut, kLeftOut), {}};
  const auto with = [&](std::vector<TableLookup> lookups) {
    MapContext context;
    context.lookups = std::make_shared<const std::vector<TableLookup>>(std::move(lookups));
    return operations_of(unsaid, context);
  };
  TableLookup other_batch = known, other_tables = known, other_elements = known, narrow = known;
  other_batch.batch = 4;
  other_tables.tables = 3;
  other_elements.elements = 800;
  narrow.rows = 100;
  EXPECT_EQ(with({other_batch, other_tables, other_elements, known, narrow}), Listing{expected});
  EXPECT_EQ(with({other_batch, other_tables, other_elements}), kNotUnderstood);
  EXPECT_EQ(with({}), kNotUnderstood);
}

/// What a backward call of three samples becomes after lookups of `indices` each.
Listing updated(const std::vector<std::int64_t>& indices, std::int64_t rows, std::vector<MeasuredKernel> kernels,
                Argument gradient = "fp32[3,16]"_t) {
  std::vector<TableLookup> lookups;
  for (const std::int64_t n : indices)
    lookups.push_back({.type = DType::bf16, .tables = 2, .batch = 3, .indices = n, .rows = rows, .elements = rows * 8});
  MapContext context;
  context.lookups = std::make_shared<const std::vector<TableLookup>>(std::move(lookups));
  return operations_of({kUpdate, {std::move(gradient)}, {}, {}, std::move(kernels)}, context);
}

TEST(WorkedTables, UpdatesSortTheirIndicesAndAddUpRuns) {
  const std::string one = "fill 1x1 >int32 contiguous: > int32[1]";
  const Listing expected{"scale 1x20 int64>int64 contiguous: int64[20] > int64[20]",
                         "sort int64 rows=1 cols=20 kept=0 key_bits=0: int64[20] > int64[20] int32[20]",
                         "fill 1x20 >int32 contiguous: > int32[20]",
                         one,
                         one,
                         "scale 1x20 int64>int32 contiguous: int64[20] > int32[20]",
                         one,
                         one,
                         "scale 1x20 int32>int32 contiguous: int32[20] > int32[20]",
                         one,
                         one,
                         "scale 1x1 int32>int32 contiguous: int32[20] > int32[1]",
                         "embedding backward bf16 tokens=20 vocabulary=50 hidden=8 bags=6: fp32[6,8] int64[20] > "
                         "bf16[50,8] | embedding embedding_backward_sorted"};
  EXPECT_EQ(updated({20}, 50, {}), expected);
  // Of several lookups that whose indices fill the blocks of the search for runs, 1024 each.
  EXPECT_EQ(updated({1025, 20, 30}, 50, {measured("find_long_segments", 1)}), expected);
  EXPECT_EQ(updated({1024, 20}, 50, {measured("find_long_segments", 1)}).front(),
            "scale 1x1024 int64>int64 contiguous: int64[1024] > int64[1024]");
  EXPECT_EQ(updated({20, 1025}, 50, {measured("find_long_segments", 2), measured("other", 1)}).front(),
            "scale 1x1025 int64>int64 contiguous: int64[1025] > int64[1025]");
  EXPECT_EQ(updated({0}, 50, {measured("find_long_segments", 1)}), Listing{one});
  EXPECT_EQ(updated({1}, 50, {})[1], "sort int64 rows=1 cols=1 kept=0 key_bits=0: int64[1] > int64[1] int32[1]");
  EXPECT_EQ(updated({20}, 50, {measured("find_long_segments", 2)}), kNotUnderstood);
  EXPECT_EQ(updated({20}, 0, {}), kNotUnderstood) << "a lookup without rows has no width";
  EXPECT_EQ(updated({20}, 50, {}, "fp32[4,16]"_t), kNotUnderstood) << "another batch";
  EXPECT_EQ(updated({20}, 50, {}, "fp32[3]"_t), kNotUnderstood);
  EXPECT_EQ(updated({20}, 50, {}, kLeftOut), kNotUnderstood);
  EXPECT_EQ(operations_of({kUpdate, {"fp32[3,16]"_t}, {}}), kNotUnderstood);
  // Factors of indices have gradients: the rows are read once more, first.
  Listing with_factors = expected;
  with_factors.insert(with_factors.begin(),
                      "embedding bf16 tokens=20 vocabulary=50 hidden=8 bags=6: bf16[50,8] int64[20] > fp32[6,8] | "
                      "embedding embedding_backward");
  EXPECT_EQ(updated({20}, 50, {measured("x_grad_indice_weights_kernel", 4)}), with_factors);
}

// More than 4096 indices are sorted by several blocks, digit by digit.
TEST(WorkedTables, OfManyIndicesTheBitsThatRowsDifferInAreSorted) {
  const auto bits = [](std::int64_t indices, std::int64_t rows) {
    return updated({indices}, rows, {})[1].substr(std::string("sort int64 rows=1 cols=4096 kept=0 ").size());
  };
  EXPECT_EQ(bits(4096, 50), "key_bits=0: int64[4096] > int64[4096] int32[4096]");
  EXPECT_EQ(bits(4097, 50), "key_bits=6: int64[4097] > int64[4097] int32[4097]");
  EXPECT_EQ(bits(4097, 64), "key_bits=6: int64[4097] > int64[4097] int32[4097]");
  EXPECT_EQ(bits(4097, 65), "key_bits=7: int64[4097] > int64[4097] int32[4097]");
  EXPECT_EQ(bits(4097, 2), "key_bits=1: int64[4097] > int64[4097] int32[4097]");
}

TEST(WorkedTables, BagsOfPyTorch) {
  expect_worked_tables({
      {"_embedding_bag",
       {"bf16[50,8]#1"_t, "int64[20]#2"_t, "int64[6]#3"_t},
       {"embedding bf16 tokens=20 vocabulary=50 hidden=8 bags=6: bf16[50,8]#1 int64[20] > fp32[6,8] | embedding "
        "embedding_backward"}},
      {"_embedding_bag_forward_only",
       {"fp16[1,1]"_t, "int64[1]"_t, "int64[1]"_t},
       {"embedding fp16 tokens=1 vocabulary=1 hidden=1 bags=1: fp16[1,1] int64[1] > fp32[1,1] | embedding "
        "embedding_backward"}},
      {"_embedding_bag", {kLeftOut, "int64[20]"_t, "int64[6]"_t}, kNotUnderstood},
      {"_embedding_bag", {"bf16[50,8]"_t, kLeftOut, "int64[6]"_t}, kNotUnderstood},
      {"_embedding_bag", {"bf16[50,8]"_t, "int64[20]"_t, kLeftOut}, kNotUnderstood},
      {"_embedding_bag", {"bf16[50]"_t, "int64[20]"_t, "int64[6]"_t}, kNotUnderstood},
      {"_embedding_bag", {"bf16[50,8]"_t, "int64[20]"_t, "int64[0]"_t}, kNotUnderstood},
      {"_embedding_bag", {"bf16[0,8]"_t, "int64[20]"_t, "int64[6]"_t}, kNothing},
      {"_embedding_bag", {"bf16[50,8]"_t, "int64[0]"_t, "int64[6]"_t}, kNothing},
  });
}

TEST(WorkedTables, ChecksAndOrdersOfIndices) {
  expect_worked_tables({
      {"fbgemm::bounds_check_indices",
       {"int64[3]"_t, "int32[300]#1"_t, "int32[7]#2"_t},
       {"fill 1x1 >int64 contiguous: > int64[1]",
        "fused_kernel bounds_check rows rows=7 cols=42 int32 arithmetic=4 column_results=0 reads=1200,28 writes=8: "
        "int32[300]#1 int32[7]#2 > int64[1]"}},
      {"fbgemm::bounds_check_indices",
       {kLeftOut, "int64[2]"_t, "int64[7]"_t},
       {"fill 1x1 >int64 contiguous: > int64[1]",
        "fused_kernel bounds_check rows rows=7 cols=1 int64 arithmetic=4 column_results=0 reads=16,56 writes=8: "
        "int64[2] int64[7] > int64[1]"}},
      {"fbgemm::bounds_check_indices",
       {kLeftOut, "int64[2]"_t, "int64[1]"_t},
       {"fill 1x1 >int64 contiguous: > int64[1]",
        "fused_kernel bounds_check rows rows=1 cols=2 int64 arithmetic=4 column_results=0 reads=16,8 writes=8: "
        "int64[2] int64[1] > int64[1]"}},
      {"fbgemm::bounds_check_indices", {kLeftOut, kLeftOut, "int64[7]"_t}, kNotUnderstood},
      {"fbgemm::bounds_check_indices", {kLeftOut, "int64[2]"_t, kLeftOut}, kNotUnderstood},
      {"fbgemm::bounds_check_indices", {kLeftOut, "int64[2]"_t, "int64[0]"_t}, kNotUnderstood},
      // Three of five features, of ten samples; 40 values are eight a feature.
      {"fbgemm::permute_2D_sparse_data",
       {"int32[3]"_t, "int32[5,10]"_t, "int64[40]"_t},
       {"scale 3x10 int32>int32 contiguous: int32[3,10] > int32[3,10]",
        "scale 3x10 int32>int32 contiguous: int32[3,10] > int32[3,10]",
        "scale 3x10 int32>int32 contiguous: int32[3,10] > int32[3,10]",
        "fused_kernel permute_data rows rows=30 cols=1 int64 arithmetic=4 column_results=0 reads=192,120,120 "
        "writes=192: int64[24] int32[3,10] int32[3,10] > int64[24]"}},
      {"fbgemm::permute_sparse_features",
       {"int32[1]"_t, "int32[5,1]"_t, "int64[1]"_t},
       {"scale 1x1 int32>int32 contiguous: int32[1,1] > int32[1,1]",
        "scale 1x1 int32>int32 contiguous: int32[1,1] > int32[1,1]",
        "scale 1x1 int32>int32 contiguous: int32[1,1] > int32[1,1]",
        "fused_kernel permute_data rows rows=1 cols=1 int64 arithmetic=4 column_results=0 reads=8,4,4 writes=8: "
        "int64[1] int32[1,1] int32[1,1] > int64[1]"}},
      {"fbgemm::permute_2D_sparse_data", {kLeftOut, "int32[5,10]"_t, "int64[40]"_t}, kNotUnderstood},
      {"fbgemm::permute_2D_sparse_data", {"int32[3]"_t, kLeftOut, "int64[40]"_t}, kNotUnderstood},
      {"fbgemm::permute_2D_sparse_data", {"int32[3]"_t, "int32[5,10]"_t, kLeftOut}, kNotUnderstood},
      {"fbgemm::permute_2D_sparse_data", {"int32[3]"_t, "int32[50]"_t, "int64[40]"_t}, kNotUnderstood},
      {"fbgemm::permute_2D_sparse_data", {"int32[0]"_t, "int32[5,10]"_t, "int64[40]"_t}, kNotUnderstood},
      {"fbgemm::permute_2D_sparse_data", {"int32[3]"_t, "int32[5,0]"_t, "int64[40]"_t}, kNotUnderstood},
      {"fbgemm::permute_2D_sparse_data", {"int32[3]"_t, "int32[5,10]"_t, "int64[0]"_t}, kNotUnderstood},
  });
}

TEST(WorkedTables, PooledRowsAreReorderedAndMadeBytes) {
  expect_worked_tables({
      {"fbgemm::permute_pooled_embs",
       {"bf16[3,5]#1"_t},
       {"copy permute bf16 rows=3 cols=5 parts=1: bf16[3,5]#1 > bf16[3,5] | contiguous view_backward_copy"}},
      {"fbgemm::permute_pooled_embs",
       {"bf16[1]#1"_t},
       {"copy permute bf16 rows=1 cols=1 parts=1: bf16[1]#1 > bf16[1]#2 | contiguous view_backward_copy"},
       {"bf16[1]#2"_t}},
      {"fbgemm::permute_pooled_embs", {"bf16[0]"_t}, kNotUnderstood},
      {"fbgemm::permute_pooled_embs", {kLeftOut}, kNotUnderstood},
      {"fbgemm::FloatToFP8RowwiseQuantized",
       {"bf16[2,3,5]#1"_t},
       {"reduction sum_cols bf16 rows=6 cols=5: bf16[2,3,5]#1 > fp32[6]",
        "scale 6x5 bf16>uint8 contiguous: bf16[2,3,5]#1 > uint8[2,3,5]"}},
      {"fbgemm::FloatToFP8RowwiseQuantized",
       {"bf16[1]"_t},
       {"reduction sum_cols bf16 rows=1 cols=1: bf16[1] > fp32[1]",
        "scale 1x1 bf16>uint8 contiguous: bf16[1] > "
        "uint8[1]"}},
      {"fbgemm::FloatToFP8RowwiseQuantized", {"bf16[0]"_t}, kNotUnderstood},
      {"fbgemm::FloatToFP8RowwiseQuantized", {kLeftOut}, kNotUnderstood},
      {"fbgemm::FloatToHFP8Quantized",
       {"fp32[3,5]#1"_t},
       {"scale 3x5 fp32>uint8 contiguous: fp32[3,5]#1 > uint8[3,5]"}},
      {"fbgemm::FloatToHFP8Quantized", {"fp32[1]"_t}, {"scale 1x1 fp32>uint8 contiguous: fp32[1] > uint8[1]"}},
      {"fbgemm::FloatToHFP8Quantized", {"fp32[0]"_t}, kNotUnderstood},
      {"fbgemm::FloatToHFP8Quantized", {kLeftOut}, kNotUnderstood},
      {"fbgemm::FP8RowwiseQuantizedToFloat",
       {"uint8[3,5]#1"_t},
       {"scale 3x5 uint8>fp32 contiguous: uint8[3,5]#1 > fp32[3,5]"}},
      {"fbgemm::FP8RowwiseQuantizedToFloat", {"uint8[1]"_t}, {"scale 1x1 uint8>fp32 contiguous: uint8[1] > fp32[1]"}},
      {"fbgemm::FP8RowwiseQuantizedToFloat", {"uint8[0]"_t}, kNotUnderstood},
      {"fbgemm::FP8RowwiseQuantizedToFloat", {kLeftOut}, kNotUnderstood},
  });
}

}  // namespace
}  // namespace ridgeline::trace
