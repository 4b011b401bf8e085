// Tables of recommenders (fbgemm) and kernels of apex: what their calls and kernels say.
#include <gtest/gtest.h>

#include "sim/trace/aten/aten_map.h"
#include "tests/support/aten_example.h"
#include "tests/support/rules_shown_elsewhere.h"

namespace ridgeline::trace {
namespace {

const std::string kForward = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function",
                  kBackward = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>";

/// Two tables of together `rows` rows of 16, `samples` samples, `n` indices.
Example forward(std::int64_t samples, std::int64_t n, std::int64_t rows = 1000, std::int64_t moments = 1000) {
  const AtenTensor empty = tensor({0}), places = indices({2});
  std::vector<Argument> inputs{empty, half({rows * 16}), empty, empty, places, places, indices({3})};
  inputs.insert(inputs.end(), {kLeftOut, kLeftOut, indices({3}), kLeftOut, indices({n}), indices({2 * samples + 1})});
  inputs.insert(inputs.end(), {kLeftOut, kLeftOut, kLeftOut, empty, kLeftOut, kLeftOut, kLeftOut, tensor({moments})});
  return {kForward, inputs, ""};
}
MapContext context_of(const std::vector<Example>& calls) {
  std::vector<TableLookup> lookups;
  for (const Example& call : calls) lookups.push_back(*table_lookup(call_of(call)));
  MapContext context;
  context.lookups = std::make_shared<const std::vector<TableLookup>>(std::move(lookups));
  return context;
}
MeasuredKernel kernel(std::string name, std::int64_t blocks) {
  MeasuredKernel made;
  made.name = std::move(name);
  made.blocks = blocks;
  return made;
}

TEST(AtenTables, ALookupAddsUpABagForEachTableAndSample) {
  EXPECT_EQ(described(forward(64, 5000)), "embedding_bag 5000 of 1000x16 bf16 in 128 bags");
  EXPECT_EQ(described(forward(64, 0)), "fill 128x16 fp32");  // only zeros are written
}

TEST(AtenTables, WithoutRowsTheGradientOfAnotherCallSaysTheWidth) {
  const Example unsaid = forward(64, 5000, 1000, 16000);  // a moment an element
  EXPECT_EQ(described(unsaid), "not understood");
  std::vector<TableLookup> lookups{*table_lookup(call_of(unsaid))};
  lookups.front().rows = 1000;
  MapContext context;
  context.lookups = std::make_shared<const std::vector<TableLookup>>(lookups);
  EXPECT_EQ(described(unsaid, context), "embedding_bag 5000 of 1000x16 bf16 in 128 bags");
}

TEST(AtenTables, TheBackwardPassSortsTheIndicesOfItsLookupAndUpdatesRows) {
  const MapContext context = context_of({forward(64, 5000), forward(32, 7000), forward(32, 9000)});
  AtenCall call;
  call.name = kBackward;
  call.inputs = {tensor({32, 32})};
  call.kernels = {kernel("backward_find_long_segments", 9)};
  const auto ops = map_aten(call, context);
  ASSERT_TRUE(ops);
  ASSERT_EQ(ops->size(), 13u);  // a launch each, but for the sort and the two updates
  const auto& sort = std::get<Sort>((*ops)[1].op);
  EXPECT_EQ(sort.cols, 9000);
  EXPECT_EQ(sort.key_bits, 10);
  const auto& update = std::get<Embedding>(ops->back().op);
  EXPECT_TRUE(update.backward);
  EXPECT_EQ(update.tokens, 9000);
  EXPECT_EQ(update.bags, 64);
  call.kernels = {kernel("backward_find_long_segments", 8)};  // no lookup had as many
  EXPECT_FALSE(map_aten(call, context));
  EXPECT_FALSE(map_aten(call, {}));
}

TEST(AtenTables, GradientsOfFactorsReadTheRowsOnceMore) {
  const MapContext context = context_of({forward(32, 9000)});
  AtenCall call;
  call.name = kBackward;
  call.inputs = {tensor({32, 32})};
  call.kernels = {kernel("split_embedding_codegen_grad_indice_weights_kernel", 4)};
  const auto ops = map_aten(call, context);
  ASSERT_TRUE(ops);
  EXPECT_EQ(ops->size(), 14u);
  EXPECT_FALSE(std::get<Embedding>(ops->front().op).backward);
}

TEST(AtenTables, BagsOfTorchHaveAnOffsetEach) {
  EXPECT_EQ(described({"_embedding_bag", {tensor({1000, 16}), indices({300}), indices({20}), kLeftOut, 0.0}, ""}),
            "embedding_bag 300 of 1000x16 fp32 in 20 bags");
}

TEST(AtenTables, EveryOptimizerLooksUpAndUpdatesAlike) {
  const MapContext context = context_of({forward(32, 9000)});
  for (const std::string_view name : kLookups) {
    Example call = forward(64, 5000);
    call.name = name;
    const bool split = name.starts_with("fbgemm::split");  // arguments of dense tables stand elsewhere
    EXPECT_EQ(described(call), split ? described(forward(64, 5000)) : "not understood") << name;
  }
  for (const std::string_view name : kUpdates) {
    AtenCall call;
    call.name = name;
    call.inputs = {tensor({32, 32})};
    EXPECT_EQ(map_aten(call, context)->size(), 13u) << name;
  }
}

TEST(AtenTables, WhatMovesItsFirstTensorIsOneKernelAndQuantizingRowsTwo) {
  const auto kernels = [](const char* name) { return map_aten(call_of({name, {tensor({64, 32})}, ""}), {})->size(); };
  for (const char* name : kMoves) EXPECT_EQ(kernels(name), 1u) << name;
  for (const char* name : kQuantizations) EXPECT_EQ(kernels(name), 2u) << name;
}

TEST(AtenTables, CheckingReadsIndicesAndOffsetsAWarpABag) {
  const auto ops =
      map_aten(call_of({"fbgemm::bounds_check_indices", {indices({1}), indices({300}), indices({21})}, ""}), {});
  ASSERT_TRUE(ops);
  const auto& op = std::get<FusedKernel>(ops->back().op);
  EXPECT_EQ(op.rows, 21);
  EXPECT_EQ(op.reads, (std::vector<std::int64_t>{2400, 168}));
}

TEST(AtenTables, FeaturesAskedForTwiceComeTwice) {
  const Example call{"fbgemm::permute_2D_sparse_data",
                     {tensor({4}, DType::int32), tensor({2, 8}, DType::int32), tensor({100}, DType::int32)},
                     ""};
  const auto ops = map_aten(call_of(call), {});
  ASSERT_TRUE(ops);
  EXPECT_EQ(ops->back().outputs.front().elements(), 200);
  EXPECT_EQ(ops->front().outputs.front().elements(), 32);
}

TEST(AtenApex, BlocksSayTheElementsAndParametersHowFullTheyAre) {
  const std::string name = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>";
  EXPECT_EQ(apex_name_of(name), "apex::multi_tensor_adam");
  EXPECT_EQ(apex_name_of("void at::native::multi_tensor_apply_kernel<AdamFunctor>"), "");
  EXPECT_EQ(apex_name_of("gemm"), "");
  AtenCall call;
  call.name = "apex::multi_tensor_adam";
  call.kernels = {kernel(name, 10)};
  const auto elements = [&](const MapContext& context) {
    return std::get<MultiTensor>(map_aten(call, context)->front().op).sizes->front();
  };
  EXPECT_EQ(elements({}), 655360);
  MapContext context;
  context.parameter_sizes = std::make_shared<const std::vector<std::int64_t>>(2, 32768);  // half of a chunk
  EXPECT_EQ(elements(context), 327680);
  for (const char* known : kOfApex) {
    call.name = known;
    EXPECT_EQ(elements({}), 655360) << known;
  }
  call.kernels.front().blocks = 0;
  EXPECT_FALSE(map_aten(call, {}));
}

}  // namespace
}  // namespace ridgeline::trace
