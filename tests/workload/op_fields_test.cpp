// Every field of every operation counts in its hash and in whether two are equal; names and shapes in words.
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

#include "sim/workload/op.h"
#include "sim/workload/op_fields.h"
#include "sim/workload/op_operands.h"

namespace ridgeline {
namespace {

/// Makes the field of a number differ.
struct Change {
  int which;
  int place = 0;
  void unless(std::string_view name, auto& value, const auto&) { (*this)(name, value); }
  template <typename Value>
  void operator()(std::string_view, Value& value) {
    if (place++ != which) return;
    if constexpr (std::is_same_v<Value, bool>) value = !value;
    else if constexpr (std::is_enum_v<Value>) value = static_cast<Value>(static_cast<int>(value) == 0 ? 1 : 0);
    else if constexpr (std::is_same_v<Value, std::string>) value += "a";
    else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) value.push_back(3);
    else if constexpr (std::is_integral_v<Value>) ++value;
    else value = std::make_shared<const std::vector<std::int64_t>>(2, 3);
  }
};
/// The memory of an operation that a field lies in.
struct Cover {
  const std::byte* begin;
  std::vector<bool> bytes;
  void unless(std::string_view name, const auto& value, const auto&) { (*this)(name, value); }
  template <typename Value>
  void operator()(std::string_view, const Value& value) {
    const std::ptrdiff_t at = reinterpret_cast<const std::byte*>(&value) - begin;
    std::fill_n(bytes.begin() + at, sizeof(Value), true);
  }
};

template <typename Kind>
void expect_fields_to_count() {
  const Kind op{};
  Cover cover{reinterpret_cast<const std::byte*>(&op), std::vector<bool>(sizeof(Kind), false)};
  for_each_field_of(op, cover);
  const int fields = static_cast<int>(decltype(ridgeline::fields(op))::kNames.size());
  for (int i = 0; i < fields; ++i) {
    Kind other = op;
    for_each_field_of(other, Change{i});
    EXPECT_NE(hash_of(Op(op)), hash_of(Op(other))) << name_of(Op(op)) << " field " << i;
    EXPECT_FALSE(Op(op) == Op(other)) << name_of(Op(op)) << " field " << i;
  }
  EXPECT_EQ(hash_of(Op(op)), hash_of(Op(Kind(op))));
  // A byte that no field lies in is padding: operations that differ there are equal.
  Kind padded{};
  auto* const memory = reinterpret_cast<std::byte*>(&padded);
  for (std::size_t i = 0; i < sizeof(Kind); ++i) {
    if (cover.bytes[i]) continue;
    memory[i] ^= std::byte{1};
    EXPECT_TRUE(padded == op) << name_of(Op(op)) << " has a member that is no field, at byte " << i;
    memory[i] ^= std::byte{1};
  }
}

PackedLengths lengths(std::vector<std::int64_t> of) {
  return {std::make_shared<const std::vector<std::int64_t>>(std::move(of))};
}
std::shared_ptr<const std::vector<std::int64_t>> list(std::vector<std::int64_t> of) {
  return std::make_shared<const std::vector<std::int64_t>>(std::move(of));
}

FusedKernel fused(FusedKernel::Shape shape, std::vector<std::int64_t> reads = {},
                  std::vector<std::int64_t> writes = {}) {
  FusedKernel op;
  op.name = "a";
  op.shape = shape;
  op.rows = 3;
  op.cols = 5;
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  return op;
}

TEST(OpFields, AllMembersAreFieldsAndCountInEqualityAndHash) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (expect_fields_to_count<std::variant_alternative_t<I, Op>>(), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Op>>());
}

/// An operation that no list names.
struct NewOperation {
  bool backward = false;
  DType type = DType::fp32;
  std::int64_t rows = 3, width = 5;
};
auto fields(Like<NewOperation> auto& op) {
  return described<"new_operation", "backward type rows width">(op.backward, op.type, op.rows, op.width);
}

struct NamesOfFields {
  std::string& names;
  void unless(std::string_view name, const auto&, const auto&) { names += std::string(name) + "? "; }
  void operator()(std::string_view name, const auto&) { names += std::string(name) + " "; }
};

TEST(OpFields, ANewOperationNeedsNoOtherListThanItsFields) {
  std::string names;
  NewOperation op;
  NamesOfFields visit{names};
  for_each_field_of(op, visit);
  EXPECT_EQ(names, "backward type rows width ");
  EXPECT_EQ(decltype(fields(op))::kKind, "new_operation");
}

TEST(OpFields, AllKindsHaveNamesShapesAndOperands) {
  std::set<std::string_view> kinds;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto check = [&](const Op& op) {
      EXPECT_TRUE(kinds.insert(kKindNames[op.index()]).second) << kKindNames[op.index()];
      if (!std::holds_alternative<UnknownOp>(op)) {
        EXPECT_FALSE(name_of(op).empty());
      }
      EXPECT_FALSE(shape_of(op).empty()) << name_of(op);
      EXPECT_GE(operand_counts(op).inputs + operand_counts(op).outputs, 0);
    };
    (check(std::variant_alternative_t<I, Op>{}), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Op>>());
  EXPECT_EQ(shape_of(Op(Dropout{DType::bf16, 7})), "7 bf16") << "sizes and type, unless a shape is said";
  EXPECT_EQ(shape_of(Op(NllLoss{.rows = 3, .classes = 5})), "3x5 fp32");
}

TEST(OpFields, ListsCountByTheirNumbers) {
  EXPECT_EQ(scores_of_row({.seq_q = 6, .seq_k = 7}), 42.0);
  EXPECT_EQ(scores_of_row({.seq_q = 6, .seq_k = 6, .lengths = lengths({2, 4})}), 20.0);
  EXPECT_TRUE(lengths({}) == PackedLengths{}) << "none are none";
  EXPECT_FALSE(lengths({}) == lengths({2}));
  EXPECT_FALSE(lengths({2}) == lengths({}));
  EXPECT_TRUE(lengths({2}) == lengths({2}));
  const Op one = Attention{.lengths = lengths({2, 4})};
  EXPECT_NE(hash_of(one), hash_of(Attention{.lengths = lengths({4, 2})}));
  EXPECT_EQ(hash_of(Attention{}), hash_of(Attention{.lengths = lengths({})})) << "equal operations have one hash";
  EXPECT_TRUE((MultiTensor{.sizes = list({2, 3})} == MultiTensor{.sizes = list({2, 3})}));
  EXPECT_FALSE((MultiTensor{.sizes = list({2, 3})} == MultiTensor{.sizes = list({3, 2})}));
  EXPECT_NE(hash_of(MultiTensor{.sizes = list({2, 3})}), hash_of(MultiTensor{.sizes = list({3, 2})}));
  EXPECT_FALSE((MultiTensor{} == MultiTensor{.sizes = list({2})}));
  EXPECT_NE(hash_of(FusedKernel{.name = "a", .reads = {2, 4}, .writes = {8}}),
            hash_of(FusedKernel{.name = "a", .reads = {2}, .writes = {4, 8}}));
  EXPECT_NE(hash_of(Op(Memset{3})), hash_of(Op(Dropout{DType::fp32, 3})));
  EXPECT_FALSE(RecordedConvolution{}.known());
  EXPECT_TRUE((RecordedConvolution{.transformed = true}.known()));
  EXPECT_TRUE((RecordedConvolution{.instructions = LibraryKernel::Instructions::simt}.known()));
}

TEST(OpFields, NamesOfKinds) {
  const auto named = [](const Op& op) { return name_of(op); };
  EXPECT_EQ(named(Matmul{.batch = 2, .bias = true}), "bmm");
  EXPECT_EQ(named(Matmul{.batch = 1, .bias = true}), "addmm");
  EXPECT_EQ(named(Matmul{.scaling = Scaling::tensor_fast}), "_scaled_mm");
  EXPECT_EQ(named(Copy{.kind = CopyKind::concatenate_strided}), "cat");
  EXPECT_EQ(named(Copy{.kind = CopyKind::pageable_to_device}), "copy_to_device");
  EXPECT_EQ(named(Copy{.kind = CopyKind::device_to_pageable}), "copy_to_host");
  EXPECT_EQ(named(Norm{.rms = true, .backward = true}), "rms_norm_backward");
  EXPECT_EQ(named(Reduction{.kind = ReductionKind::norm_all}), "linalg_vector_norm");
  EXPECT_EQ(named(Reduction{.kind = ReductionKind::scan_rows}), "cumsum");
  EXPECT_EQ(named(Reduction{.kind = ReductionKind::mean_cols}), "mean");
  EXPECT_EQ(named(Reduction{.kind = ReductionKind::sum_cols}), "sum");
  EXPECT_EQ(named(Embedding{.backward = true, .bags = 2}), "embedding_bag_backward");
  EXPECT_EQ(named(Embedding{.bags = 2}), "embedding_bag");
  EXPECT_EQ(named(Sort{.kept = 1}), "topk");
  EXPECT_EQ(named(Sort{}), "sort");
  EXPECT_EQ(named(Convolution{.transposed = true}), "conv_transpose2d");
  EXPECT_EQ(named(fused(FusedKernel::Shape::pointwise)), "triton_poi_fused_a");
  EXPECT_EQ(named(fused(FusedKernel::Shape::rows)), "triton_per_fused_a");
  EXPECT_EQ(named(fused(FusedKernel::Shape::long_rows)), "triton_red_fused_a");
  EXPECT_EQ(named(fused(FusedKernel::Shape::columns)), "triton_red_fused_a");
  EXPECT_EQ(named(UnknownOp{.name = "a"}), "a");
}

TEST(OpFields, ShapesInWords) {
  EXPECT_EQ(shape_of(Op(Pointwise{.rows = 3, .cols = 5, .input_count = 0})), "3x5 fp32");
  EXPECT_EQ(shape_of(Op(Embedding{.tokens = 3, .vocabulary = 5, .hidden = 7, .bags = 2})), "3 of 5x7 fp32 in 2 bags");
  EXPECT_EQ(shape_of(Op(MultiTensor{.sizes = list({999'999})})), "1 tensors, 999999 elements fp32");
  EXPECT_EQ(shape_of(Op(MultiTensor{.sizes = list({999'999, 1})})), "2 tensors, 1 M fp32");
  EXPECT_EQ(shape_of(Op(MultiTensor{})), "0 tensors, 0 elements fp32");
  EXPECT_EQ(shape_of(Op(Sort{.rows = 3, .cols = 5, .kept = 2})), "2 of 3x5 fp32");
  EXPECT_EQ(shape_of(Op(Sort{.rows = 3, .cols = 5})), "3x5 fp32");
  EXPECT_EQ(shape_of(Op(UnknownOp{.name = "a", .read_bytes = 3, .written_bytes = 5})), "8 bytes");
  EXPECT_EQ(shape_of(Op(fused(FusedKernel::Shape::rows, {1, 2}, {4}))), "3x5 fp32, 2 in, 1 out");
  EXPECT_EQ(shape_of(Op(Collective{.ranks = 2, .bytes = 3})), "3 bytes fp32, 2 ranks");
  EXPECT_EQ(shape_of(Op(Matmul{.batch = 2, .m = 3, .n = 5, .k = 7, .sparse = SparseOperand::a})),
            "2x 3x5x7 nn fp32 2:4 a");
  EXPECT_EQ(shape_of(Op(Convolution{.batch = 2, .in_channels = 3, .size = 5, .out_channels = 7, .kernel = 4})),
            "2x3x5x5 to 7, 4x4 fp32");
}

/// Inputs and outputs, and those that a repeated case takes anew.
std::string operands(const Op& op) {
  const OperandCounts counts = operand_counts(op);
  return std::to_string(counts.inputs) + " " + std::to_string(counts.outputs) + " " +
         std::to_string(rotating_operands(op));
}

TEST(OpFields, OperandsByTheTable) {
  EXPECT_EQ(operands(Matmul{}).substr(0, 3), "2 1");
  EXPECT_EQ(operands(Matmul{.bias = true}).substr(0, 3), "3 1");
  EXPECT_EQ(operands(Pointwise{.input_count = 3}).substr(0, 3), "3 1");
  EXPECT_EQ(operands(Copy{.kind = CopyKind::concatenate, .parts = 3}).substr(0, 3), "3 1");
  EXPECT_EQ(operands(Copy{.kind = CopyKind::concatenate_strided, .parts = 2}).substr(0, 3), "2 1");
  EXPECT_EQ(operands(Copy{.kind = CopyKind::permute}).substr(0, 3), "1 1");
  EXPECT_EQ(operands(Collective{.kind = CollectiveKind::barrier}).substr(0, 3), "0 1");
  EXPECT_EQ(operands(UnknownOp{}).substr(0, 3), "1 1");
  EXPECT_EQ(operands(Softmax{}).substr(0, 3), "1 1");
  EXPECT_EQ(operands(Softmax{.backward = true}).substr(0, 3), "2 1");
  EXPECT_EQ(operands(Norm{}).substr(0, 3), "3 3");
  EXPECT_EQ(operands(Norm{.bias = false}).substr(0, 3), "2 3");
  EXPECT_EQ(operands(Norm{.rms = true, .bias = false}).substr(0, 3), "2 2");
  EXPECT_EQ(operands(Norm{.backward = true}).substr(0, 3), "5 3");
  EXPECT_EQ(operands(Norm{.backward = true, .bias = false}).substr(0, 3), "5 2");
  EXPECT_EQ(operands(Norm{.rms = true, .backward = true, .bias = false}).substr(0, 3), "4 2");
  EXPECT_EQ(operands(Reduction{}).substr(0, 3), "1 1");
  EXPECT_EQ(operands(Dropout{}).substr(0, 3), "1 2");
  EXPECT_EQ(operands(Embedding{}).substr(0, 3), "2 1");
  EXPECT_EQ(operands(Attention{}).substr(0, 3), "3 2");
  EXPECT_EQ(operands(Attention{.bias = true}).substr(0, 3), "4 2");
  EXPECT_EQ(operands(Attention{.backward = true}).substr(0, 3), "6 3");
  EXPECT_EQ(operands(Attention{.backward = true, .bias = true}).substr(0, 3), "7 3");
  EXPECT_EQ(operands(NllLoss{}).substr(0, 3), "2 1");
  EXPECT_EQ(operands(MultiTensor{}).substr(0, 3), "0 0");
  EXPECT_EQ(operands(Convolution{}).substr(0, 3), "2 1");
  EXPECT_EQ(operands(Convolution{.backward = true}).substr(0, 3), "3 2");
  EXPECT_EQ(operands(Memset{}).substr(0, 3), "0 1");
  EXPECT_EQ(operands(Collective{}).substr(0, 3), "1 1");
  EXPECT_EQ(operands(Sort{}).substr(0, 3), "1 2");
  EXPECT_EQ(operands(fused(FusedKernel::Shape::rows, {1, 2}, {3, 4, 5})).substr(0, 3), "2 3");
  EXPECT_EQ(operands(ImageOp{}).substr(0, 3), "1 1");
  EXPECT_EQ(operands(ImageOp{.function = ImageFunction::relu, .backward = true}).substr(0, 3), "2 1");
  EXPECT_EQ(operands(ImageOp{.function = ImageFunction::upsample_nearest2d, .backward = true}).substr(0, 3), "1 1");
}

// Inputs, and the destination too where an operation writes into memory that it was given.
TEST(OpFields, OperandsThatARepeatedCaseTakesAnew) {
  EXPECT_EQ(rotating_operands(Matmul{.bias = true}), 3);
  EXPECT_EQ(rotating_operands(Copy{}), 2);
  EXPECT_EQ(rotating_operands(Copy{.kind = CopyKind::transpose}), 1);
  EXPECT_EQ(rotating_operands(Pointwise{.function = PointwiseFunction::fill, .input_count = 0}), 1);
  EXPECT_EQ(rotating_operands(Pointwise{.function = PointwiseFunction::mul, .input_count = 2}), 2);
  EXPECT_EQ(partly_used_bytes(Embedding{.type = DType::bf16, .tokens = 3, .vocabulary = 5, .hidden = 7}),
            5 * 7 * 2 + 3 * 8);
  EXPECT_EQ(partly_used_bytes(Embedding{.backward = true, .tokens = 3, .vocabulary = 5, .hidden = 7}), 0.0);
  EXPECT_EQ(partly_used_bytes(Matmul{}), 0.0);
}

}  // namespace
}  // namespace ridgeline
