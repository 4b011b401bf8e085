// Elements and rows by indices, sorting, rolling, worked out by hand; what recordings leave out stands in the grids of
// their kernels.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_indices(const std::vector<WorkedCall>& calls) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call), call.expected) << text_of(call);
}

// Rows of 16 bytes and multiples go by vectors.
TEST(WorkedIndex, RowsAreGatheredByVectorsAndOthersByElements) {
  const std::string gathered = " | embedding embedding_backward";
  expect_worked_indices({
      {"index",
       {"bf16[100,8]#1"_t, TensorList{"int64[7]#2"_t}},
       {"embedding bf16 tokens=7 vocabulary=100 hidden=8: bf16[100,8]#1 int64[7] > bf16[56]" + gathered}},
      {"index",
       {"bf16[100,4,6]#1"_t, TensorList{"int64[2,3]#2"_t}},
       {"embedding bf16 tokens=6 vocabulary=100 hidden=24: bf16[100,4,6]#1 int64[6] > bf16[2,3,4,6]#3" + gathered},
       {"bf16[2,3,4,6]#3"_t}},
      {"index",
       {"bf16[100,7]#1"_t, TensorList{"int64[5]"_t}},
       {"index 5x7 bf16>bf16 contiguous: bf16[5,7]#1 > bf16[35]"}},
      {"index", {"fp32[100]"_t, TensorList{"int64[5]"_t}}, {"index 5x1 fp32>fp32 contiguous: fp32[5,1] > fp32[5]"}},
      // Two indices choose elements; how many is in the result, or in the grid.
      {"index",
       {"bf16[100,8]"_t, TensorList{"int64[5]"_t, "int64[5]"_t}},
       {"index_pairs 5x1 bf16>bf16 contiguous: bf16[5,1] > bf16[5]"},
       {"bf16[5]"_t}},
      {"index", {"bf16[100,8]"_t, TensorList{"int64[5]"_t, "int64[5]"_t}}, kNotUnderstood},
      {"index", {"bf16[100,8]"_t, TensorList{}}, kNotUnderstood},
      // How many a mask chooses is not known.
      {"index", {"bf16[100,8]"_t, TensorList{"bool[100]"_t}}, kNotUnderstood},
      {"index", {kLeftOut, TensorList{"int64[5]"_t}}, kNotUnderstood},
      {"index", {"bf16[]"_t, TensorList{"int64[5]"_t}}, kNotUnderstood},
      {"index", {"bf16[0,8]"_t, TensorList{"int64[5]"_t}}, kNotUnderstood},
      {"index", {"fp64[1,2]"_t, TensorList{"int64[1]"_t}}, {"index 1x2 fp64>fp64 contiguous: fp64[1,2] > fp64[2]"}},
  });
}

// vectorized_gather_kernel: 16 bytes a thread, at most 256 threads a block, as many blocks as a row needs.
TEST(WorkedIndex, TheGridSaysHowManyIndicesThereWere) {
  const auto by_vectors = [](const char* table, std::int64_t blocks) {
    return operations_of({"index",
                          {operator""_t(table, std::string_view(table).size()), TensorList{}},
                          {},
                          {},
                          {measured("vectorized_gather_kernel", blocks)}});
  };
  const auto rows = [](std::int64_t tokens, std::int64_t hidden, std::int64_t elements) {
    return Listing{
        fmt::format("embedding bf16 tokens={0} vocabulary=9 hidden={1}: bf16[9,{1}] int64[{0}] > bf16[{2}] | embedding "
                    "embedding_backward",
                    tokens, hidden, elements)};
  };
  EXPECT_EQ(by_vectors("bf16[9,8]", 7), rows(7, 8, 56));
  EXPECT_EQ(by_vectors("bf16[9,2048]", 7), rows(7, 2048, 14336));  // 4096 bytes: 256 threads of 16
  EXPECT_EQ(by_vectors("bf16[9,2056]", 14), rows(7, 2056, 14392));
  EXPECT_EQ(by_vectors("bf16[9,4096]", 14), rows(7, 4096, 28672));
  EXPECT_EQ(by_vectors("bf16[9,4104]", 21), rows(7, 4104, 28728));
  EXPECT_EQ(by_vectors("bf16[9,264]", 7), rows(7, 264, 1848));  // 528 bytes: two warps
  EXPECT_EQ(by_vectors("bf16[9,8]", 0), kNotUnderstood);
  EXPECT_EQ(by_vectors("bf16[9,8]", 1), rows(1, 8, 8));
  expect_worked_indices({
      // Any other kernel of indices has 512 elements a block.
      {"index",
       {"bf16[100,8]"_t, TensorList{}},
       {"index 192x8 bf16>bf16 contiguous: bf16[192,8] > bf16[1536]"},
       {},
       {measured("index_elementwise_kernel", 3)}},
      {"index",
       {"bf16[100,8]"_t, TensorList{}},
       {"index 128x8 bf16>bf16 contiguous: bf16[128,8] > bf16[1024]"},
       {},
       {measured("some_other", 9), measured("index_elementwise_kernel", 0), measured("index_elementwise_kernel", 2),
        measured("index_elementwise_kernel", 5)}},
      {"index", {"bf16[100,8]"_t, TensorList{}}, kNotUnderstood, {}, {measured("some_other", 9)}},
      // A given index says it better.
      {"index",
       {"bf16[100,8]"_t, TensorList{"int64[1]"_t}},
       {"index 1x8 bf16>bf16 contiguous: bf16[1,8] > bf16[8]"},
       {},
       {measured("vectorized_gather_kernel", 9)}},
      {"index",
       {"fp32[100]"_t, TensorList{"int64[1]"_t}},
       {"index 1x1 fp32>fp32 contiguous: fp32[1,1] > fp32[1]"},
       {},
       {measured("index_elementwise_kernel", 9)}},
  });
}

/// The smallest and the largest index are compared with a bound, which is asserted.
Listing checked(Listing listing) {
  const Listing check{"reduction sum_all int64 rows=1 cols=7: int64[7] > int64[]",
                      "equal 1x1 int64>bool contiguous: int64[] > bool[]",
                      "reduction sum_all bool rows=1 cols=1: bool[] > int64[]"};
  for (int bound = 0; bound < 2; ++bound) listing.insert(listing.begin(), check.begin(), check.end());
  return listing;
}

TEST(WorkedIndex, ValuesAreStoredOrAdded) {
  const std::string moved = "scale 1x7 int64>int64 contiguous: int64[7] > int64[7]";
  const auto added = [&](std::string_view values, std::string_view table) {
    return Listing{moved, moved, moved, "sort int64 rows=1 cols=7 kept=0 key_bits=7: int64[7] > int64[7] int64[7]",
                   fmt::format("embedding backward bf16 tokens=7 vocabulary=100 hidden=8 accumulates: {} int64[7] > {}",
                               values, table)};
  };
  const MeasuredKernel sorts = measured("DeviceRadixSortOnesweepKernel", 3), old = measured("thrust::sort_by_key", 3),
                       stores = measured("index_elementwise_kernel", 3);
  const AtenTensor table = "bf16[100,8]#1"_t, values = "bf16[7,8]#2"_t;
  const std::string alone =
      "embedding backward bf16 tokens=7 vocabulary=100 hidden=8 accumulates: bf16[7,8]#2 int64[7] > bf16[100,8]#1";
  expect_worked_indices({
      {"index_put_", {table, kLeftOut, values, 1.0}, checked(added("bf16[7,8]#2", "bf16[100,8]#1"))},
      {"index_put_",
       {table, kLeftOut, values, 0.0},
       {"index 7x8 bf16,bf16>bf16 contiguous: bf16[7,8]#2 bf16[7,8] > bf16[7,8]#1"}},
      {"index_put_",
       {table, kLeftOut, values},
       {"index 7x8 bf16,bf16>bf16 contiguous: bf16[7,8]#2 bf16[7,8] > bf16[7,8]#1"}},
      // Where the flag is left out the kernels say.
      {"index_put_", {table, kLeftOut, values}, added("bf16[7,8]#2", "bf16[100,8]#1"), {}, {stores, sorts}},
      {"index_put_", {table, kLeftOut, values}, added("bf16[7,8]#2", "bf16[100,8]#1"), {}, {old}},
      {"index_put_",
       {table, kLeftOut, values},
       {"index 7x8 bf16,bf16>bf16 contiguous: bf16[7,8]#2 bf16[7,8] > bf16[7,8]#1"},
       {},
       {stores}},
      {"index_put_", {table, kLeftOut, values, 1.0}, {alone}, {}, {measured("indexing_backward_kernel", 3)}},
      // One value for all: as many as the grid says, 512 a block.
      {"index_put_",
       {table, kLeftOut, "bf16[]#2"_t, 0.0},
       {"index 192x8 bf16,bf16>bf16 contiguous: bf16[192,8] bf16[192,8] > bf16[192,8]#1"},
       {},
       {stores}},
      {"index_put_",
       {table, kLeftOut, "bf16[]#2"_t, 0.0},
       {"index 192x8 bf16,bf16>bf16 contiguous: bf16[192,8] bf16[192,8] > bf16[192,8]#1"},
       {},
       {measured("other", 9), stores, measured("index_elementwise_kernel", 5)}},
      {"index_put_",
       {table, kLeftOut, "bf16[2]#2"_t, 0.0},
       {"index 2x1 bf16,bf16>bf16 contiguous: bf16[2]#2 bf16[2,1] > bf16[2,1]#1"},
       {},
       {stores}},
      {"index_put_",
       {table, kLeftOut, "bf16[]#2"_t, 1.0},
       {"embedding backward bf16 tokens=192 vocabulary=100 hidden=8 accumulates: bf16[1536] int64[192] > "
        "bf16[100,8]#1"},
       {},
       {stores}},
      // Fewer values than a row.
      {"index_put_",
       {table, kLeftOut, "bf16[3]#2"_t, 1.0},
       {"embedding backward bf16 tokens=1 vocabulary=100 hidden=3 accumulates: bf16[3]#2 int64[1] > bf16[100,8]#1"},
       {},
       {measured("indexing_backward_kernel", 3)}},
      {"index_put_",
       {"bf16[]#1"_t, kLeftOut, "bf16[3]#2"_t, 1.0},
       {"embedding backward bf16 tokens=3 vocabulary=1 hidden=1 accumulates: bf16[3]#2 int64[3] > bf16[]#1"},
       {},
       {measured("indexing_backward_kernel", 3)}},
      {"index_put_", {table, kLeftOut, "bf16[0]"_t}, kNothing},
      {"index_put_", {kLeftOut, kLeftOut, values}, kNotUnderstood},
      {"index_put_", {table, kLeftOut, kLeftOut}, kNotUnderstood},
      {"index_put_", {"bf16[0]"_t, kLeftOut, values}, kNotUnderstood},
      {"index_put",
       {table, kLeftOut, values, 0.0},
       {"copy contiguous bf16 rows=100 cols=8 parts=1: bf16[100,8]#1 > bf16[100,8] | contiguous view_backward_copy",
        "index 7x8 bf16,bf16>bf16 contiguous: bf16[7,8]#2 bf16[7,8] > bf16[7,8]#1"}},
      {"index_put", {kLeftOut, kLeftOut, values, 0.0}, kNotUnderstood},
  });
}

// Digits of a sort: as many bits as tell the rows apart.
TEST(WorkedIndex, KeysHaveTheBitsThatRowsDifferIn) {
  const auto bits = [](std::int64_t rows) {
    AtenCall call;
    call.name = "aten::index_put_";
    AtenTensor table = "fp32[1]"_t;
    table.sizes = {rows};
    call.inputs = {table, kLeftOut, "fp32[5]"_t, 1.0};
    call.phase = Phase::backward;  // without the checks of a call by hand
    return std::get<Sort>((*map_aten(call, {}))[3].op).key_bits;
  };
  const std::pair<std::int64_t, std::int64_t> expected[] = {{1, 1}, {2, 1},     {3, 2},    {4, 2},
                                                            {5, 3}, {1024, 10}, {1025, 11}};
  for (const auto& [rows, key_bits] : expected) EXPECT_EQ(bits(rows), key_bits) << rows;
}

TEST(WorkedIndex, AlongADimension) {
  expect_worked_indices({
      {"gather",
       {"bf16[3,5]#1"_t, 1.0, "int64[3,2]#2"_t},
       {"gather 3x2 int64,bf16>bf16 contiguous: int64[3,2]#2 bf16[3,2]#1 > bf16[3,2]#4"},
       {"bf16[3,2]#4"_t}},
      // The source is left aside where it is a number, or repeated.
      {"gather",
       {"bf16[3,5]"_t, 1.0, "int64[3,2]"_t, "bf16[3,2]"_t},
       {"gather 3x2 int64,bf16>bf16 contiguous: int64[3,2] bf16[3,2] > bf16[3,2]"}},
      {"scatter_",
       {"bf16[3,5]#1"_t, 1.0, "int64[3,2]#2"_t, "bf16[3,2]#3"_t},
       {"scatter_add 3x2 int64,bf16>bf16 contiguous: int64[3,2]#2 bf16[3,2]#3 > bf16[3,2]#1"},
       {"bf16[3,2]#4"_t}},
      {"scatter_",
       {"bf16[3,5]"_t, 1.0, "int64[3,2]"_t, "bf16[3,5]"_t},
       {"scatter_add 3x2 int64>bf16 contiguous: int64[3,2] > bf16[3,2]"}},
      {"scatter_",
       {"bf16[3,5]"_t, 1.0, "int64[3,2]"_t, 1.0},
       {"scatter_value 3x2 int64>bf16 contiguous: int64[3,2] > bf16[3,2]"}},
      {"gather", {"bf16[3,5]"_t, 1.0, "int64[0]"_t}, kNothing},
      {"gather", {kLeftOut, 1.0, "int64[3,2]"_t}, kNotUnderstood},
      {"gather", {"bf16[3,5]"_t, 1.0, kLeftOut}, kNotUnderstood},
      {"scatter_add",
       {"bf16[3,5](1,3)#1"_t, 1.0, "int64[3,2]#2"_t, "bf16[3,2]#3"_t},
       {"copy contiguous bf16 rows=3 cols=5 parts=1: bf16[3,5](1,3)#1 > bf16[3,5](1,3) | contiguous view_backward_copy",
        "scatter_add 3x2 int64,bf16>bf16 contiguous: int64[3,2]#2 bf16[3,2]#3 > bf16[3,2]#1"}},
      {"scatter", {kLeftOut, 1.0, "int64[3,2]"_t}, kNotUnderstood},
      {"scatter", {"bf16[3,5]"_t, 1.0, kLeftOut}, kNotUnderstood},
      {"index_add_",
       {"bf16[9,5]#1"_t, 0.0, "int64[3]#2"_t, "fp32[3,5]#3"_t},
       {"index_add_few 3x5 fp32>fp32 contiguous: fp32[3,5]#3 > fp32[3,5]#1"}},
      {"index_add_",
       {"bf16[9,5]"_t, 0.0, "int64[3]"_t, "fp32[1]"_t},
       {"index_add_few 3x1 fp32>fp32 contiguous: fp32[1] > fp32[3,1]"}},
      {"index_add_", {"bf16[9,5]"_t, 0.0, "int64[3]"_t, "fp32[0]"_t}, kNothing},
      {"index_add_", {"bf16[9,5]"_t, 0.0, "int64[3]"_t}, kNotUnderstood},
  });
}

TEST(WorkedIndex, RollsGoOneDimensionAtATimeAndFlipsAtOnce) {
  expect_worked_indices({
      {"roll", {"bf16[3,5]#1"_t, Numbers{2}}, {"roll 3x5 bf16>bf16 contiguous: bf16[3,5]#1 > bf16[3,5]"}},
      {"roll",
       {"bf16[3,5]#1"_t, Numbers{2}, Numbers{}},
       {"roll 3x5 bf16>bf16 contiguous: bf16[3,5]#1 > bf16[3,5]#2"},
       {"bf16[3,5]#2"_t}},
      {"roll",
       {"bf16[3,5](1,3)#1"_t, Numbers{1, 2}, Numbers{0, 1}},
       {"roll 3x5 bf16>bf16 transposed: bf16[3,5](1,3)#1 > bf16[3,5]",
        "roll 3x5 bf16>bf16 contiguous: bf16[3,5] > bf16[3,5]#2"},
       {"bf16[3,5]#2"_t}},
      {"roll", {kLeftOut}, kNotUnderstood},
      {"roll", {"bf16[0]"_t}, kNothing},
      {"flip", {"bf16[2,3,5]#1"_t, Numbers{1}}, {"flip 6x5 bf16>bf16 contiguous: bf16[2,3,5]#1 > bf16[2,3,5]"}},
      {"flip", {"bf16[]#1"_t}, {"flip 1x1 bf16>bf16 contiguous: bf16[]#1 > bf16[]#2"}, {"bf16[]#2"_t}},
      {"flip", {kLeftOut}, kNotUnderstood},
      {"flip", {"bf16[0]"_t}, kNothing},
  });
}

TEST(WorkedIndex, SortsAndTheLargest) {
  const auto sort = [](double dim, std::string_view shape) {
    return WorkedCall{"sort",
                      {"fp32[3,4,5]#1"_t, dim, 0.0},
                      {fmt::format("sort fp32 {} kept=0 key_bits=0: fp32[3,4,5]#1 > fp32[60] int64[60]", shape)}};
  };
  expect_worked_indices({
      sort(-1, "rows=12 cols=5"),
      sort(2, "rows=12 cols=5"),
      sort(1, "rows=15 cols=4"),
      sort(0, "rows=20 cols=3"),
      sort(-3, "rows=20 cols=3"),
      // Beyond the dimensions: all of them.
      sort(3, "rows=1 cols=60"),
      sort(-4, "rows=1 cols=60"),
      {"sort", {"fp32[3,4,5]"_t}, {"sort fp32 rows=12 cols=5 kept=0 key_bits=0: fp32[3,4,5] > fp32[60] int64[60]"}},
      // (x, stable, dim, descending).
      {"sort",
       {"fp32[3,4,5]#1"_t, 1.0, 0.0, 1.0},
       {"sort fp32 rows=20 cols=3 kept=0 key_bits=0: fp32[3,4,5]#1 > fp32[3,4,5]#2 int64[60]"},
       {"fp32[3,4,5]#2"_t}},
      {"sort", {"fp32[0,5]"_t}, kNotUnderstood},
      {"sort", {kLeftOut}, kNotUnderstood},
      {"sort", {"fp32[]"_t}, {"sort fp32 rows=1 cols=1 kept=0 key_bits=0: fp32[] > fp32[1] int64[1]"}},
      {"topk",
       {"fp32[3,4,5]#1"_t, 2.0, -1.0},
       {"sort fp32 rows=12 cols=5 kept=2 key_bits=0: fp32[3,4,5]#1 > fp32[24] int64[24]"}},
      {"topk",
       {"fp32[3,4,5]#1"_t, 2.0},
       {"sort fp32 rows=12 cols=5 kept=2 key_bits=0: fp32[3,4,5]#1 > fp32[3,4,2]#4 int64[24]"},
       {"fp32[3,4,2]#4"_t}},
      {"topk",
       {"fp32[3,4,5]"_t, 9.0, 0.0},
       {"sort fp32 rows=20 cols=3 kept=3 key_bits=0: fp32[3,4,5] > fp32[60] int64[60]"}},
      {"topk", {"fp32[3,4]"_t, kLeftOut}, {"sort fp32 rows=3 cols=4 kept=1 key_bits=0: fp32[3,4] > fp32[3] int64[3]"}},
      {"topk", {"fp32[3,4]"_t, 0.0}, kNothing},
      {"topk", {"fp32[3,4]"_t, 1.0}, {"sort fp32 rows=3 cols=4 kept=1 key_bits=0: fp32[3,4] > fp32[3] int64[3]"}},
      {"topk", {"fp32[0]"_t, 2.0}, kNotUnderstood},
      {"topk", {kLeftOut, 2.0}, kNotUnderstood},
      {"topk", {"fp32[1]"_t, 1.0}, {"sort fp32 rows=1 cols=1 kept=1 key_bits=0: fp32[1] > fp32[1] int64[1]"}},
  });
}

TEST(WorkedIndex, CountsAndPlaces) {
  expect_worked_indices({
      {"histc",
       {"fp32[3,5]#1"_t, 16.0},
       {"fill 1x16 >fp32 contiguous: > fp32[16]", "other 3x5 fp32>fp32 contiguous: fp32[3,5]#1 > fp32[3,5]"}},
      {"bincount",
       {"int64[15]#1"_t, kLeftOut, 0.0},
       {"reduction sum_all int64 rows=1 cols=15: int64[15]#1 > int64[]",
        "copy device_to_host int64 rows=1 cols=1 parts=1: int64[] > | python_fixed python_fixed",
        "reduction sum_all int64 rows=1 cols=15: int64[15]#1 > int64[]",
        "copy device_to_host int64 rows=1 cols=1 parts=1: int64[] > | python_fixed python_fixed",
        "fill 1x1 >int64 contiguous: > int64[1]", "other 1x15 int64>int64 contiguous: int64[15]#1 > int64[15]"},
       {"int64[100]#2"_t}},
      {"histc",
       {"fp32[3]"_t, 0.0},
       {"fill 1x1 >fp32 contiguous: > fp32[1]", "other 1x3 fp32>fp32 contiguous: fp32[3] > fp32[3]"}},
      {"histc", {kLeftOut}, kNotUnderstood},
      {"histc", {"fp32[0]"_t}, kNothing},
      {"nonzero", {"bool[3,5]#1"_t}, {"nonzero 3x5 bool,int64>int64 contiguous: bool[3,5]#1 int64[7] > int64[7]"}},
      {"nonzero", {kLeftOut}, kNotUnderstood},
      {"nonzero", {"bool[0]"_t}, kNothing},
  });
}

}  // namespace
}  // namespace ridgeline::trace
