// Every field of every operation counts in its hash and in whether two are equal; names and shapes in words.
#include <gtest/gtest.h>

#include <functional>

#include "sim/workload/op.h"
#include "sim/workload/op_operands.h"

namespace ridgeline {
namespace {

/// An operation and what differs from it in one field each.
template <typename Kind>
void expect_fields_to_count(const Kind& op, std::initializer_list<std::function<void(Kind&)>> changes) {
  int number = 0;
  for (const auto& change : changes) {
    Kind other = op;
    change(other);
    EXPECT_NE(hash_of(Op(op)), hash_of(Op(other))) << name_of(Op(op)) << " change " << number;
    EXPECT_FALSE(Op(op) == Op(other)) << name_of(Op(op)) << " change " << number;
    ++number;
  }
  EXPECT_EQ(hash_of(Op(op)), hash_of(Op(Kind(op))));
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

TEST(OpFields, OfProducts) {
  expect_fields_to_count<Matmul>(
      {.batch = 2, .m = 3, .n = 5, .k = 7},
      {[](Matmul& o) { o.type = DType::bf16; }, [](Matmul& o) { ++o.batch; }, [](Matmul& o) { ++o.m; },
       [](Matmul& o) { ++o.n; }, [](Matmul& o) { ++o.k; }, [](Matmul& o) { o.layout = Layout::tt; },
       [](Matmul& o) { o.bias = true; }, [](Matmul& o) { o.sparse = SparseOperand::a; },
       [](Matmul& o) { o.ran.instructions = LibraryKernel::Instructions::wgmma; }, [](Matmul& o) { o.ran.m = 64; },
       [](Matmul& o) { o.ran.n = 64; }, [](Matmul& o) { o.ran.k = 64; }, [](Matmul& o) { o.ran.stages = 3; },
       [](Matmul& o) { o.ran.splits = 2; }, [](Matmul& o) { o.ran.summed = true; },
       [](Matmul& o) { o.scaling = Scaling::tensor; }});
}

TEST(OpFields, OfElementsAndRows) {
  expect_fields_to_count<Pointwise>(
      {.rows = 3, .cols = 5, .input_count = 2},
      {[](Pointwise& o) { o.function = PointwiseFunction::mul; }, [](Pointwise& o) { ++o.rows; },
       [](Pointwise& o) { ++o.cols; }, [](Pointwise& o) { o.inputs[0] = DType::bf16; },
       [](Pointwise& o) { o.inputs[1] = DType::bf16; }, [](Pointwise& o) { o.inputs[2] = DType::bf16; },
       [](Pointwise& o) { ++o.input_count; }, [](Pointwise& o) { o.output = DType::bf16; },
       [](Pointwise& o) { o.walk = Walk::strided; }});
  expect_fields_to_count<Copy>({.rows = 3, .cols = 5, .parts = 2},
                               {[](Copy& o) { o.kind = CopyKind::permute; }, [](Copy& o) { o.type = DType::bf16; },
                                [](Copy& o) { ++o.rows; }, [](Copy& o) { ++o.cols; }, [](Copy& o) { ++o.parts; }});
  expect_fields_to_count<Softmax>(
      {.rows = 3, .cols = 5}, {[](Softmax& o) { o.log = true; }, [](Softmax& o) { o.backward = true; },
                               [](Softmax& o) { o.input = DType::bf16; }, [](Softmax& o) { o.output = DType::bf16; },
                               [](Softmax& o) { ++o.rows; }, [](Softmax& o) { ++o.cols; }});
  expect_fields_to_count<Norm>(
      {.rows = 3, .cols = 5},
      {[](Norm& o) { o.rms = true; }, [](Norm& o) { o.backward = true; }, [](Norm& o) { o.bias = false; },
       [](Norm& o) { o.type = DType::bf16; }, [](Norm& o) { ++o.rows; }, [](Norm& o) { ++o.cols; }});
  expect_fields_to_count<Reduction>(
      {.rows = 3, .cols = 5},
      {[](Reduction& o) { o.kind = ReductionKind::scan_cols; }, [](Reduction& o) { o.type = DType::bf16; },
       [](Reduction& o) { ++o.rows; }, [](Reduction& o) { ++o.cols; }});
  expect_fields_to_count<Dropout>({.elements = 3},
                                  {[](Dropout& o) { o.type = DType::bf16; }, [](Dropout& o) { ++o.elements; }});
  expect_fields_to_count<NllLoss>({.rows = 3, .classes = 5},
                                  {[](NllLoss& o) { o.backward = true; }, [](NllLoss& o) { o.type = DType::bf16; },
                                   [](NllLoss& o) { ++o.rows; }, [](NllLoss& o) { ++o.classes; }});
  expect_fields_to_count<Sort>({.rows = 3, .cols = 5},
                               {[](Sort& o) { o.type = DType::int64; }, [](Sort& o) { ++o.rows; },
                                [](Sort& o) { ++o.cols; }, [](Sort& o) { ++o.kept; }, [](Sort& o) { ++o.key_bits; }});
}

TEST(OpFields, OfTablesAndAttention) {
  expect_fields_to_count<Embedding>(
      {.tokens = 3, .vocabulary = 5, .hidden = 7},
      {[](Embedding& o) { o.backward = true; }, [](Embedding& o) { o.type = DType::bf16; },
       [](Embedding& o) { ++o.tokens; }, [](Embedding& o) { ++o.vocabulary; }, [](Embedding& o) { ++o.hidden; },
       [](Embedding& o) { o.accumulates = true; }, [](Embedding& o) { ++o.bags; }});
  expect_fields_to_count<Attention>(
      {.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 6, .seq_k = 6, .head_dim = 8, .lengths = lengths({2, 4})},
      {[](Attention& o) { o.backend = AttentionBackend::cudnn; }, [](Attention& o) { o.backward = true; },
       [](Attention& o) { o.causal = true; }, [](Attention& o) { o.dropout = true; },
       [](Attention& o) { o.type = DType::fp16; }, [](Attention& o) { ++o.batch; }, [](Attention& o) { ++o.heads; },
       [](Attention& o) { ++o.kv_heads; }, [](Attention& o) { ++o.seq_q; }, [](Attention& o) { ++o.seq_k; },
       [](Attention& o) { ++o.head_dim; }, [](Attention& o) { o.head_major = true; },
       [](Attention& o) { o.bias = true; },
       [](Attention& o) {
         o.lengths = lengths({4, 2});
       },
       [](Attention& o) { o.lengths = {}; }});
  EXPECT_EQ(scores_of_row({.seq_q = 6, .seq_k = 7}), 42.0);
  EXPECT_EQ(scores_of_row({.seq_q = 6, .seq_k = 6, .lengths = lengths({2, 4})}), 20.0);
  EXPECT_TRUE(lengths({}) == PackedLengths{}) << "none are none";
  EXPECT_FALSE(lengths({}) == lengths({2}));
  EXPECT_FALSE(lengths({2}) == lengths({}));
  EXPECT_TRUE(lengths({2}) == lengths({2}));
}

TEST(OpFields, OfLists) {
  expect_fields_to_count<MultiTensor>(
      {.sizes = list({2, 3})},
      {[](MultiTensor& o) { o.function = MultiTensorFunction::mul; }, [](MultiTensor& o) { o.type = DType::bf16; },
       [](MultiTensor& o) {
         o.sizes = list({3, 2});
       },
       [](MultiTensor& o) { o.sizes = nullptr; }, [](MultiTensor& o) { o.scalar_per_tensor = true; }});
  EXPECT_TRUE((MultiTensor{.sizes = list({2, 3})} == MultiTensor{.sizes = list({2, 3})}));
  EXPECT_FALSE((MultiTensor{} == MultiTensor{.sizes = list({2})}));
}

TEST(OpFields, OfImages) {
  expect_fields_to_count<Convolution>(
      {.batch = 2, .in_channels = 3, .size = 5, .out_channels = 7},
      {[](Convolution& o) { o.backward = true; }, [](Convolution& o) { o.channels_last = true; },
       [](Convolution& o) { o.transposed = true; }, [](Convolution& o) { o.type = DType::bf16; },
       [](Convolution& o) { ++o.batch; }, [](Convolution& o) { ++o.in_channels; }, [](Convolution& o) { ++o.size; },
       [](Convolution& o) { ++o.out_channels; }, [](Convolution& o) { ++o.kernel; }, [](Convolution& o) { ++o.stride; },
       [](Convolution& o) { o.ran.instructions = LibraryKernel::Instructions::simt; },
       [](Convolution& o) { o.ran.transformed = true; },
       [](Convolution& o) { o.ran_weights.instructions = LibraryKernel::Instructions::simt; },
       [](Convolution& o) { o.ran_weights.transformed = true; }, [](Convolution& o) { ++o.groups; },
       [](Convolution& o) { ++o.width; }, [](Convolution& o) { ++o.kernel_width; },
       [](Convolution& o) { ++o.stride_width; }, [](Convolution& o) { ++o.out_size; },
       [](Convolution& o) { ++o.out_width; },
       [](Convolution& o) { o.gradients = ConvolutionGradients::weight; }});
  expect_fields_to_count<ImageOp>(
      {.batch = 2, .channels = 3, .size = 5},
      {[](ImageOp& o) { o.function = ImageFunction::max_pool2d; }, [](ImageOp& o) { o.backward = true; },
       [](ImageOp& o) { o.channels_last = true; }, [](ImageOp& o) { o.type = DType::bf16; },
       [](ImageOp& o) { ++o.batch; }, [](ImageOp& o) { ++o.channels; }, [](ImageOp& o) { ++o.size; },
       [](ImageOp& o) { ++o.width; }, [](ImageOp& o) { ++o.window; }, [](ImageOp& o) { ++o.stride; },
       [](ImageOp& o) { ++o.out_size; }, [](ImageOp& o) { ++o.out_width; },
       [](ImageOp& o) { o.evaluation = true; }});
  expect_fields_to_count<Resampling>(
      {.batch = 2, .channels = 3, .inputs = 5, .outputs = 7},
      {[](Resampling& o) { o.function = ResamplingFunction::fold; }, [](Resampling& o) { o.backward = true; },
       [](Resampling& o) { o.channels_last = true; }, [](Resampling& o) { o.type = DType::bf16; },
       [](Resampling& o) { ++o.batch; }, [](Resampling& o) { ++o.channels; }, [](Resampling& o) { ++o.inputs; },
       [](Resampling& o) { ++o.outputs; }, [](Resampling& o) { ++o.taps; }});
  EXPECT_FALSE(RecordedConvolution{}.known());
  EXPECT_TRUE((RecordedConvolution{.transformed = true}.known()));
  EXPECT_TRUE((RecordedConvolution{.instructions = LibraryKernel::Instructions::simt}.known()));
}

TEST(OpFields, OfTheRest) {
  expect_fields_to_count<Memset>({.bytes = 3}, {[](Memset& o) { ++o.bytes; }});
  expect_fields_to_count<Collective>(
      {.ranks = 2, .bytes = 3},
      {[](Collective& o) { o.kind = CollectiveKind::barrier; }, [](Collective& o) { o.group = GroupKind::model; },
       [](Collective& o) { o.type = DType::bf16; }, [](Collective& o) { ++o.ranks; },
       [](Collective& o) { ++o.bytes; }});
  expect_fields_to_count<UnknownOp>({.name = "a", .read_bytes = 3, .written_bytes = 5},
                                    {[](UnknownOp& o) { o.name = "b"; }, [](UnknownOp& o) { ++o.read_bytes; },
                                     [](UnknownOp& o) { ++o.written_bytes; }});
  using Shape = FusedKernel::Shape;
  expect_fields_to_count<FusedKernel>(
      {.name = "a", .rows = 3, .cols = 5, .arithmetic = 7, .reads = {2, 4}, .writes = {8}},
      {[](FusedKernel& o) { o.name = "b"; }, [](FusedKernel& o) { o.shape = Shape::columns; },
       [](FusedKernel& o) { ++o.rows; }, [](FusedKernel& o) { ++o.cols; }, [](FusedKernel& o) { o.type = DType::bf16; },
       [](FusedKernel& o) { ++o.arithmetic; }, [](FusedKernel& o) { o.gathers = true; },
       [](FusedKernel& o) { ++o.column_results; },
       [](FusedKernel& o) {
         o.reads = {4, 2};
       },
       [](FusedKernel& o) { o.writes = {9}; },
       [](FusedKernel& o) {
         o.reads = {2}, o.writes = {4, 8};
       }});
  EXPECT_NE(hash_of(Op(Memset{3})), hash_of(Op(Dropout{DType::fp32, 3})));
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
