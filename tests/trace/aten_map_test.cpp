// What a rule looks at besides the name of a dispatcher call: strides, places, types, lists, what is missing.
#include "sim/trace/aten/aten_map.h"
#include "sim/trace/aten/aten_call_of.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/aten_example.h"

namespace ridgeline::trace {
namespace {

TEST(AtenMap, NothingThatLaunchesNothingHasARule) {
  for (const std::string_view name : mapped_names()) EXPECT_FALSE(launches_nothing(name)) << name;
  EXPECT_EQ(described({"view", {kX}, ""}), "nothing");
  EXPECT_EQ(described({"no_such_call", {kX}, ""}), "not understood");
}

TEST(AtenMap, ACallWithoutItsShapesIsNotUnderstoodAndNeverACrash) {
  for (const std::string_view name : mapped_names()) {
    AtenCall call;
    call.name = name;
    EXPECT_NO_THROW(map_aten(call, {})) << name;
    for (std::size_t count = 1; count <= 12; ++count) {
      call.inputs.assign(count, Argument{tensor({0})});
      EXPECT_NO_THROW(map_aten(call, {})) << name;
      call.inputs.assign(count, Argument{tensor({})});
      EXPECT_NO_THROW(map_aten(call, {})) << name;
      call.inputs.assign(count, Argument{Numbers{}});
      EXPECT_NO_THROW(map_aten(call, {})) << name;
      call.inputs.assign(count, Argument{std::string("word")});
      EXPECT_NO_THROW(map_aten(call, {})) << name;
      call.inputs.assign(count, Argument{TensorList{}});
      EXPECT_NO_THROW(map_aten(call, {})) << name;
    }
  }
}

TEST(AtenMap, ANumberThatNoSizeCanBeIsNeverACrash) {
  for (const double number : {9.1e19, -9.1e19, 1e300, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(whole_number(number, 7), 7) << number;
    for (const std::string_view name : mapped_names())
      for (std::size_t tensors = 1; tensors <= 3; ++tensors) {
        AtenCall call;
        call.name = name;
        call.inputs.assign(tensors, Argument{kImage});
        call.inputs.resize(12, Argument{number});
        EXPECT_NO_THROW(map_aten(call, {})) << name << " " << number;
        call.inputs.resize(tensors);
        call.inputs.resize(12, Argument{Numbers{number, number, number, number}});
        EXPECT_NO_THROW(map_aten(call, {})) << name << " " << number;
      }
  }
  EXPECT_EQ(whole_number(-3.0, 7), -3);
  EXPECT_EQ(whole_number(9007199254740992.0, 7), std::int64_t{1} << 53);
}

TEST(AtenMap, ProductsOverOneNumberAreProductsAndOverNoneZeros) {
  EXPECT_EQ(described({"mm", {half({4, 1}), half({1, 8})}, ""}), "mm 4x8x1 nn bf16");
  EXPECT_EQ(described({"mm", {half({4, 0}), half({0, 8})}, ""}), "fill 4x8 bf16");
  EXPECT_EQ(described({"mm", {half({0, 16}), half({16, 8})}, ""}), "nothing");
}

TEST(AtenMap, AConvolutionThatSaysNoMoreIsNeitherTransposedNorGrouped) {
  const AtenTensor gradient = tensor({2, 64, 16, 16}), filters = tensor({64, 16, 3, 3});
  const Numbers ones{1, 1}, twos{2, 2}, none{0, 0}, mask{1, 1, 0};
  const auto backward = [&](const Argument& transposed, const Argument& groups) {
    return described({"convolution_backward",
                      {gradient, kImage, filters, kLeftOut, twos, ones, ones, transposed, none, groups, mask},
                      ""});
  };
  EXPECT_NE(backward(0.0, 1.0), backward(1.0, 1.0));
  EXPECT_EQ(backward(kLeftOut, kLeftOut), backward(0.0, 1.0));
}

TEST(AtenMap, ElementsBeyondAnyDeviceStayCountable) {
  const std::int64_t side = std::int64_t{1} << 40;
  EXPECT_EQ(tensor({3, 5}).elements(), 15);
  EXPECT_EQ(tensor({side, side}).elements(), std::int64_t{1} << 53);
  EXPECT_EQ(tensor({side, side, 0}).elements(), 0);
  EXPECT_GT(tensor({side, side, side, side}).bytes(), 0);
}

TEST(AtenMap, AConvolutionBeyondAllBoundsIsNotUnderstoodAndNeverACrash) {
  const AtenTensor weight = tensor({64, 16, 3, 3});
  const auto with_stride = [&](double stride) {
    return described({"convolution", {kImage, weight, kLeftOut, Numbers{stride, stride}, Numbers{1, 1}}, ""});
  };
  EXPECT_NE(with_stride(2.0), "not understood");
  for (const double stride : {4294967296.0, 1e300, -1.0, 0.0, std::nan("")})
    EXPECT_EQ(with_stride(stride), "not understood") << stride;
  const std::int64_t wide = std::int64_t{1} << 40;
  EXPECT_EQ(described({"convolution", {kImage, tensor({64, 16, wide, wide}), kLeftOut, Numbers{1, 1}}, ""}),
            "not understood");
  EXPECT_EQ(described({"convolution", {tensor({2, 16, wide, wide}), weight, kLeftOut, Numbers{1, 1}}, ""}),
            "not understood");
}

TEST(AtenMap, APythonNumberBesideATensorIsNoTensor) {
  for (const DType python : {DType::fp64, DType::int64}) {
    const AtenTensor number = tensor({}, python);
    EXPECT_EQ(described({"mul", {tensor({1}), number}, ""}), described({"mul", {tensor({1}), 2.0}, ""}));
    EXPECT_EQ(described({"add", {number, tensor({1})}, ""}), described({"add", {tensor({1}), 2.0}, ""}));
    EXPECT_EQ(described({"mul_", {half({4, 8}), number}, ""}), described({"mul_", {half({4, 8}), 2.0}, ""}));
  }
  EXPECT_NE(described({"mul", {tensor({1}), tensor({1}, DType::int64)}, ""}),
            described({"mul", {tensor({1}), 2.0}, ""}))
      << "a tensor of one dimension is one";
}

TEST(AtenMap, AnInputGradientThatNoKernelComputedWasNotAskedFor) {
  AtenCall call = call_of(
      {"cudnn_convolution_backward", {tensor({2, 16, 32, 32}), tensor({2, 64, 32, 32}), tensor({64, 16, 3, 3})}, ""});
  const auto operations = [&](std::initializer_list<const char*> kernels) {
    call.kernels.clear();
    for (const char* name : kernels) call.kernels.push_back({name, 1e-6});
    const auto mapped = map_aten(call, {});
    EXPECT_TRUE(mapped.has_value());
    std::string all;
    for (const MappedOp& op : *mapped) all += fmt::format("{} of {} results ", name_of(op.op), op.outputs.size());
    return all;
  };
  const std::string both = operations({"dgrad_engine<float>", "Memset (Device)", "wgrad_alg0_engine<float>"});
  EXPECT_EQ(operations({"Memset (Device)", "some_kernel"}), both);
  EXPECT_NE(operations({"Memset (Device)", "wgrad_alg0_engine<float>"}), both);
}

TEST(AtenMap, FactorsThatLieTransposedAreReadTransposed) {
  const AtenTensor x = half({4, 16}), w = half({16, 8});
  const AtenTensor xt = tensor({4, 16}, DType::bf16, {1, 4}), wt = tensor({16, 8}, DType::bf16, {1, 16});
  EXPECT_EQ(described({"mm", {x, w}, ""}), "mm 4x8x16 nn bf16");
  EXPECT_EQ(described({"mm", {x, wt}, ""}), "mm 4x8x16 nt bf16");
  EXPECT_EQ(described({"mm", {xt, w}, ""}), "mm 4x8x16 tn bf16");
  EXPECT_EQ(described({"mm", {half({4, 15}), w}, ""}), "not understood");
}

TEST(AtenMap, ProductsOfFp32RunOnTensorCoresWhereTheRecordingSaysSo) {
  MapContext context;
  EXPECT_EQ(described({"mm", {kX, tensor({8, 2})}, ""}, context), "mm 4x2x8 nn fp32");
  context.tf32 = true;
  EXPECT_EQ(described({"mm", {kX, tensor({8, 2})}, ""}, context), "mm 4x2x8 nn tf32");
}

TEST(AtenMap, AFunctionOfATensorAndANumberReadsOneTensor) {
  EXPECT_EQ(described({"mul", {kX, 2.0}, ""}), "scale 4x8 fp32");
  EXPECT_EQ(described({"mul", {kX, tensor({})}, ""}), "scale 4x8 fp32");
  EXPECT_EQ(described({"mul", {kX, kX}, ""}), "mul 4x8 fp32,fp32->fp32");
}

TEST(AtenMap, ARepeatedRowIsWalkedAsOneAndARepeatedColumnIsNot) {
  const auto walk = [](const AtenTensor& x, const AtenTensor& y) {
    AtenCall call;
    call.name = "aten::add";
    call.inputs = {x, y};
    return std::get<Pointwise>((*map_aten(call, {}))[0].op).walk;
  };
  EXPECT_EQ(walk(kX, kX), Walk::contiguous);
  EXPECT_EQ(walk(kX, tensor({8})), Walk::broadcast_row);
  EXPECT_EQ(walk(kX, tensor({4, 1})), Walk::broadcast);
  EXPECT_EQ(walk(kX, tensor({4, 8}, DType::fp32, {1, 4})), Walk::transposed);
}

/// How the first operation of a call walks its operands.
Walk walk_of(const Example& example) {
  const auto ops = map_aten(call_of(example), {});
  return ops && !ops->empty() ? std::get<Pointwise>(ops->front().op).walk : Walk::contiguous;
}

TEST(AtenMap, AnOperandCrossedByTheResultIsTransposedAndAPermutedOneWithWholeRowsIsNot) {
  const AtenTensor y = tensor({8, 32, 16});
  EXPECT_EQ(walk_of({"add", {y, tensor({8, 32, 16}, DType::fp32, {512, 1, 32})}, ""}), Walk::transposed);
  EXPECT_EQ(walk_of({"add", {tensor({8, 32, 16}, DType::fp32, {512, 1, 32}), y}, ""}), Walk::transposed);
  EXPECT_EQ(walk_of({"add", {y, tensor({8, 32, 16}, DType::fp32, {16, 128, 1})}, ""}), Walk::strided);
  EXPECT_EQ(walk_of({"add", {y, y}, ""}), Walk::contiguous);
}

TEST(AtenMap, PowersThatAreProductsOrRootsAreComputedAsSuch) {
  const auto function_of = [](double exponent) {
    const auto ops = map_aten(call_of({"pow", {kX, exponent}, ""}), {});
    return std::get<Pointwise>(ops->front().op).function;
  };
  for (const double simple : {2.0, 3.0, 0.5, -0.5, -1.0}) EXPECT_EQ(function_of(simple), PointwiseFunction::pow2);
  for (const double other : {1.5, 4.0, 0.3}) EXPECT_EQ(function_of(other), PointwiseFunction::power);
  EXPECT_EQ(described({"pow", {2.0, kX}, ""}), "fill 1x1 fp32; pow 4x8 fp32");
}

TEST(AtenMap, PartsOfOneTypeAreConcatenatedByOneKernelAndOthersCopiedEach) {
  const auto kind = [](const TensorList& parts) {
    return std::get<Copy>(map_aten(call_of({"cat", {parts, 1.0}, ""}), {})->front().op).kind;
  };
  const AtenTensor view = tensor({4, 8}, DType::fp32, {16, 1});
  EXPECT_EQ(kind({kX, kX}), CopyKind::concatenate);
  EXPECT_EQ(kind({kX, view}), CopyKind::concatenate_strided);
  EXPECT_EQ(described({"cat", {TensorList{kX, half({4, 8})}, 1.0}, ""}), "copy 4x8 fp32; cast 4x8 bf16->fp32");
}

TEST(AtenMap, AConcatenationTakesAsLongAsItsLongestInput) {
  const auto copy_of = [](const TensorList& parts) {
    const auto ops = map_aten(call_of({"cat", {parts, 1.0}, ""}), {});
    EXPECT_EQ(ops->front().inputs.size(), std::get<Copy>(ops->front().op).parts);
    return std::get<Copy>(ops->front().op);
  };
  const Copy class_token = copy_of({half({8, 1, 768}), half({8, 196, 768})});
  EXPECT_EQ(class_token.parts, 1);
  EXPECT_EQ(class_token.rows * class_token.cols, 8 * 197 * 768);
  EXPECT_EQ(copy_of({half({8, 100, 768}), half({8, 96, 768})}).parts, 2);
  EXPECT_EQ(copy_of({half({8, 10, 768}), half({8, 10, 768}), half({8, 1, 768})}).parts, 2);
}

TEST(AtenMap, AConcatenationRunsInTheKernelThatWasRecorded) {
  const auto kind_with = [](const std::string& kernel) {
    AtenCall call = call_of({"cat", {TensorList{half({8, 64}), half({8, 64})}, 1.0}, ""});
    if (!kernel.empty()) call.kernels.push_back({kernel, 1e-6, 0.0, 7, 264, 0});
    return std::get<Copy>(map_aten(call, {})->front().op).kind;
  };
  const std::string begin = "void at::native::(anonymous namespace)::CatArrayBatchedCopy",
                    end = "<OpaqueType<2u>, 3>(int)";
  EXPECT_EQ(kind_with(""), CopyKind::concatenate);
  EXPECT_EQ(kind_with(begin + "_vectorized" + end), CopyKind::concatenate);
  EXPECT_EQ(kind_with(begin + "_alignedK_contig" + end), CopyKind::concatenate);
  EXPECT_EQ(kind_with(begin + "_contig" + end), CopyKind::concatenate_strided);
  EXPECT_EQ(kind_with(begin + end), CopyKind::concatenate_strided);
}

TEST(AtenMap, RunningSumsGoAlongRowsOrDownColumns) {
  const auto kind = [](double dim) {
    return std::get<Reduction>(map_aten(call_of({"cumsum", {kX, dim}, ""}), {})->front().op).kind;
  };
  EXPECT_EQ(kind(1.0), ReductionKind::scan_cols);
  EXPECT_EQ(kind(-1.0), ReductionKind::scan_cols);
  EXPECT_EQ(kind(0.0), ReductionKind::scan_rows);
}

TEST(AtenMap, HowManyRowsAreGatheredStandsInTheGridWhereTheIndicesAreNotRecorded) {
  AtenCall call = call_of({"index", {half({2048, 768}), kLeftOut}, ""});
  EXPECT_FALSE(map_aten(call, {}));
  call.kernels.push_back({.name = "void at::native::vectorized_gather_kernel<16, long>", .blocks = 4096});
  const auto ops = map_aten(call, {});
  ASSERT_TRUE(ops);
  EXPECT_EQ(std::get<Embedding>(ops->front().op).tokens, 4096);
  EXPECT_EQ(std::get<Embedding>(ops->front().op).hidden, 768);
}

TEST(AtenMap, EqualIndicesAreSortedBeforeTheyAreAddedAndNotWhereTheyAreStored) {
  const std::string stored =
      described({"_index_put_impl_", {tensor({100, 8}), kLeftOut, tensor({12, 8}), 0.0, 1.0}, ""});
  const std::string added =
      described({"_index_put_impl_", {tensor({100, 8}), kLeftOut, tensor({12, 8}), 1.0, 1.0}, ""});
  EXPECT_EQ(stored.find("sort"), stored.npos);
  EXPECT_NE(added.find("sort 1x12 int64"), added.npos);
  EXPECT_NE(added.find("index_put 12 of 100x8 fp32"), added.npos);
}

// Profilers before PyTorch 2.1 leave flags out.
TEST(AtenMap, AnIndexPutWhoseKernelsSortAdds) {
  AtenCall call = call_of({"_index_put_impl_", {tensor({100, 8}), kLeftOut, tensor({12, 8})}, ""});
  const auto sorts = [&] {
    const auto ops = map_aten(call, {});
    return ops.has_value() &&
           std::any_of(ops->begin(), ops->end(), [](const MappedOp& o) { return std::holds_alternative<Sort>(o.op); });
  };
  call.kernels = {{.name = "index_elementwise_kernel"}};
  EXPECT_FALSE(sorts());
  call.kernels = {{.name = "DeviceRadixSortSingleTileKernel"}, {.name = "indexing_backward_kernel"}};
  EXPECT_TRUE(sorts());
}

TEST(AtenMap, IndicesThatAnotherCallSortedAreNotSortedAgain) {
  AtenCall call = aten_call_of(Embedding{true, DType::bf16, 4096, 8, 768, true});
  call.kernels = {{.name = "indexing_backward_kernel"}};
  const auto ops = map_aten(call, {});
  ASSERT_TRUE(ops.has_value() && ops->size() == 1);
  EXPECT_EQ(ops->front().op, Op(Embedding{true, DType::bf16, 4096, 8, 768, true}));
  call.kernels = {{.name = "DeviceRadixSortOnesweepKernel"}, {.name = "indexing_backward_kernel"}};
  const auto all = map_aten(call, {});
  ASSERT_TRUE(all.has_value());
  EXPECT_TRUE(
      std::any_of(all->begin(), all->end(), [](const MappedOp& o) { return std::holds_alternative<Sort>(o.op); }));
}

TEST(AtenMap, ACloneIsPackedWhereItSaysContiguousAndKeepsItsOrderWhereNot) {
  const AtenTensor permuted = tensor({2, 3, 4, 8}, DType::fp32, {96, 8, 24, 1});
  const auto kind = [&](std::vector<Argument> inputs) {
    AtenCall call;
    call.name = "aten::clone";
    call.inputs = std::move(inputs);
    return std::get<Copy>((*map_aten(call, {}))[0].op).kind;
  };
  EXPECT_EQ(kind({permuted, 0.0}), CopyKind::permute);
  EXPECT_EQ(kind({permuted}), CopyKind::contiguous);
}

TEST(AtenMap, WhatMovesBetweenHostAndDeviceIsATransferAndInsideTheHostNothing) {
  EXPECT_EQ(described({"copy_", {kX, hosted(kX)}, ""}), "copy_to_device 4x8 fp32");
  EXPECT_EQ(described({"copy_", {hosted(kX), kX}, ""}), "copy_to_host 4x8 fp32");
  EXPECT_EQ(described({"copy_", {hosted(kX), hosted(kX)}, ""}), "nothing");
}

TEST(AtenMap, AListWithoutShapesIsThatOfTheParametersOrNotUnderstood) {
  Example example{"_foreach_lerp_", {TensorList{}, TensorList{}}, ""};
  EXPECT_EQ(described(example), "not understood");
  MapContext context;
  context.parameter_sizes = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{1000, 24});
  EXPECT_THAT(described(example, context), ::testing::HasSubstr("2 tensors, 1024 elements fp32"));
}

TEST(AtenMap, UnknownCallsCostTheBytesOfTheirTensors) {
  AtenCall call;
  call.name = "mine::op";
  call.inputs = {kX, half({4, 8})};
  EXPECT_EQ(unknown_op(call).read_bytes, 32 * 4 + 32 * 2);
  EXPECT_EQ(unknown_op(call).written_bytes, 32 * 4);
  call.outputs = {half({4, 8})};
  EXPECT_EQ(unknown_op(call).written_bytes, 32 * 2);
}

TEST(AtenMap, KnowsTheTypesOfProfilersAndOurs) {
  EXPECT_EQ(dtype_of_aten("c10::BFloat16"), DType::bf16);
  EXPECT_EQ(dtype_of_aten("float"), DType::fp32);
  EXPECT_EQ(dtype_of_aten("long int"), DType::int64);
  EXPECT_EQ(dtype_of_aten("fp16"), DType::fp16);
  EXPECT_FALSE(dtype_of_aten("quaternion"));
}

TEST(AtenMap, DimensionsCountFromTheFirstAndBackFromTheLast) {
  const TensorList parts{half({6, 4, 8}), half({6, 4, 8})};
  const auto rows_of_parts = [&](double dim) {
    return std::get<Copy>(map_aten(call_of({"cat", {parts, dim}, ""}), {})->front().op).rows;
  };
  const auto keys_of_row = [&](double dim) {
    return std::get<Sort>(map_aten(call_of({"sort", {half({6, 4, 8}), dim, 0.0}, ""}), {})->front().op).cols;
  };
  const std::int64_t sizes[] = {6, 4, 8}, outside[] = {1, 6, 24};
  for (const int d : {0, 1, 2}) {
    EXPECT_EQ(rows_of_parts(d), outside[d]) << d;
    EXPECT_EQ(rows_of_parts(d - 3), outside[d]) << d;
    EXPECT_EQ(keys_of_row(d), sizes[d]) << d;
    EXPECT_EQ(keys_of_row(d - 3), sizes[d]) << d;
  }
}

TEST(AtenMap, APadFillsTheWholeAndMovesWhatLiesInTheMiddle) {
  EXPECT_EQ(map_aten(call_of({"constant_pad_nd", {tensor({1}), Numbers{2, 1}}, ""}), {})->size(), 2u);
  EXPECT_EQ(map_aten(call_of({"constant_pad_nd", {tensor({1}), Numbers{2, -1}}, ""}), {})->size(), 1u)
      << "nothing of it stays";
}

// The gradient of a group norm lies as the input does.
TEST(AtenMap, AGradientOfAGroupNormHasTheSizesOfItsInput) {
  const AtenTensor x = half({2, 16, 8, 8}), of_groups = tensor({2, 4});
  const auto ops = map_aten(
      call_of({"native_group_norm_backward", {x, x, of_groups, of_groups, half({16}), 2.0, 16.0, 64.0, 4.0}, ""}), {});
  ASSERT_TRUE(ops.has_value());
  const auto third = std::find_if(ops->begin(), ops->end(), [](const MappedOp& op) { return op.inputs.size() == 3; });
  ASSERT_NE(third, ops->end());
  EXPECT_EQ(third->inputs[0].sizes, x.sizes);
  EXPECT_EQ(third->outputs[0].sizes, x.sizes);
}

}  // namespace
}  // namespace ridgeline::trace
