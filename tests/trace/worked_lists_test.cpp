// Lists of tensors, copies, sums and kernels of serving libraries, worked out by hand.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_lists(const std::vector<WorkedCall>& calls, const MapContext& context = {}) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call, context), call.expected) << text_of(call);
}

const std::string kOptimizer = ": > | optimizer_op optimizer_op";

TEST(WorkedLists, ForeachCallsTakeTheElementsOfEachTensor) {
  const TensorList list{"bf16[3,5]"_t, "bf16[7]"_t};
  const std::string sizes = "bf16 sizes=15,7";
  expect_worked_lists({
      {"_foreach_add_", {list, list}, {"multi_tensor add " + sizes + kOptimizer}},
      {"_foreach_add_", {list, 2.0}, {"multi_tensor add_scalar " + sizes + kOptimizer}},
      {"_foreach_sub", {list, TensorList{}}, {"multi_tensor add " + sizes + kOptimizer}},
      {"_foreach_mul_", {list, list}, {"multi_tensor add " + sizes + kOptimizer}},
      {"_foreach_mul_", {list, 2.0}, {"multi_tensor mul " + sizes + kOptimizer}},
      {"_foreach_div_", {list, list}, {"multi_tensor divide " + sizes + kOptimizer}},
      {"_foreach_addcdiv_", {list, list, list}, {"multi_tensor addcdiv " + sizes + " scalar_per_tensor" + kOptimizer}},
      {"_foreach_addcmul_", {list, list, list}, {"multi_tensor addcmul " + sizes + kOptimizer}},
      {"_foreach_lerp_", {list, list}, {"multi_tensor lerp " + sizes + kOptimizer}},
      {"_foreach_norm", {TensorList{"host:bf16[3]"_t}}, kNothing},
      {"_foreach_norm", {TensorList{}}, kNotUnderstood},
      {"_foreach_norm", {kLeftOut}, kNotUnderstood},
  });
}

// 65536 elements a block: 100000 and 200000 need two and four.
TEST(WorkedLists, ListsWithoutShapesAreThoseOfTheParameters) {
  MapContext context;
  context.parameter_sizes =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{100000, 200000});
  const auto call = [&](std::vector<MeasuredKernel> kernels) {
    return operations_of({"_foreach_norm", {TensorList{}}, {}, {}, std::move(kernels)}, context);
  };
  const Listing whole{"multi_tensor norm fp32 sizes=100000,200000" + kOptimizer},
      numbers{"multi_tensor norm fp32 sizes=1,1" + kOptimizer};
  EXPECT_EQ(call({}), whole);
  // Fewer blocks than half way from a block a tensor to all: one number a tensor.
  EXPECT_EQ(call({measured("a", 4)}), whole);
  EXPECT_EQ(call({measured("a", 3)}), numbers);
  EXPECT_EQ(call({measured("a", 2), measured("b", 2)}), whole);
  EXPECT_EQ(call({measured("a", 1), measured("b", 2)}), numbers);
  EXPECT_EQ(call({measured("multi_tensor_apply_kernel<c10::BFloat16>", 9), measured("b", 1)}),
            Listing{"multi_tensor norm bf16 sizes=100000,200000" + kOptimizer});
  EXPECT_EQ(call({measured("a", 1), measured("multi_tensor_apply_kernel<c10::Half>", 9)}),
            Listing{"multi_tensor norm fp16 sizes=100000,200000" + kOptimizer});
  // Small parameters have a block each either way.
  context.parameter_sizes =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{65536, 65537, 131072});
  EXPECT_EQ(call({measured("a", 1)}), Listing{"multi_tensor norm fp32 sizes=65536,65537,131072" + kOptimizer})
      << "five blocks of three tensors are not more than twice as many";
  context.parameter_sizes =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{65537, 131073, 131072});
  EXPECT_EQ(call({measured("a", 4)}), Listing{"multi_tensor norm fp32 sizes=1,1,1" + kOptimizer}) << "seven are";
  EXPECT_EQ(call({measured("a", 5)}), Listing{"multi_tensor norm fp32 sizes=65537,131073,131072" + kOptimizer});
  context.parameter_sizes = std::make_shared<const std::vector<std::int64_t>>();
  EXPECT_EQ(call({}), kNotUnderstood);
  EXPECT_EQ(operations_of({"_foreach_norm", {TensorList{"fp16[7]"_t}}, {}, {}, {measured("BFloat16", 1)}}, context),
            Listing{"multi_tensor norm fp16 sizes=7" + kOptimizer});
}

TEST(WorkedLists, ConcatenationsOfLikeParts) {
  const std::string host = " | concatenate split_backward";
  const AtenTensor part = "bf16[3,5]#1"_t;
  expect_worked_lists({
      {"cat",
       {TensorList{part, part, part}, 1.0},
       {"copy concatenate bf16 rows=3 cols=5 parts=3: bf16[3,5]#1 bf16[3,5]#1 bf16[3,5]#1 > bf16[45]" + host}},
      {"cat",
       {TensorList{part, part}, -2.0},
       {"copy concatenate bf16 rows=1 cols=15 parts=2: bf16[3,5]#1 bf16[3,5]#1 > bf16[6,5]#2" + host},
       {"bf16[6,5]#2"_t}},
      {"cat",
       {TensorList{part, part}},
       {"copy concatenate bf16 rows=1 cols=15 parts=2: bf16[3,5]#1 bf16[3,5]#1 > bf16[30]" + host}},
      // Beyond the dimensions, as stack may say: all of them are rows.
      {"stack",
       {TensorList{part, part}, 2.0},
       {"copy concatenate bf16 rows=15 cols=1 parts=2 dimensions=3: bf16[3,5]#1 bf16[3,5]#1 > bf16[30]" + host}},
      // The longest decides: 6 + 2 + 2 columns are two of six.
      {"cat",
       {TensorList{"bf16[3,2]#1"_t, "bf16[3,6]#2"_t, "bf16[3,2]#3"_t}, 1.0},
       {"copy concatenate bf16 rows=3 cols=5 parts=2: bf16[3,6]#2 bf16[3,2]#1 > bf16[30]" + host}},
      {"cat",
       {TensorList{"bf16[3,1]#1"_t, "bf16[3,6]#2"_t}, 1.0},
       {"copy concatenate bf16 rows=3 cols=7 parts=1: bf16[3,6]#2 > bf16[21]" + host}},
      {"cat",
       {TensorList{"bf16[3,5](10,1)#1"_t, part}, 1.0},
       {"copy concatenate_strided bf16 rows=3 cols=5 parts=2: bf16[3,5](10,1)#1 bf16[3,5]#1 > bf16[30]" + host}},
      {"cat",
       {TensorList{part, part}, 1.0},
       {"copy concatenate_strided bf16 rows=3 cols=5 parts=2: bf16[3,5]#1 bf16[3,5]#1 > bf16[30]" + host},
       {},
       {measured("Memset"), measured("CatArrayBatchedCopy_contig<OpaqueType<2u>>")}},
      {"cat", {TensorList{"host:bf16[3]"_t}}, kNothing},
      {"cat", {TensorList{"bf16[0]"_t, "bf16[3,0]"_t}}, kNothing},
      {"cat", {TensorList{"bf16[1]"_t}}, {"copy concatenate bf16 rows=1 cols=1 parts=1: bf16[1] > bf16[1]" + host}},
      {"cat",
       {TensorList{"bf16[0]#1"_t, "bf16[4]#2"_t}},
       {"copy concatenate bf16 rows=1 cols=4 parts=1: bf16[4]#2 > bf16[4]" + host}},
  });
}

// A kernel takes at most 128 parts.
TEST(WorkedLists, ManyPartsAreSeveralKernels) {
  const auto parts = [](std::size_t count, std::size_t empty_from = 1000) {
    TensorList list(count, "bf16[3]"_t);
    for (std::size_t i = empty_from; i < count; ++i) list[i] = "bf16[0]"_t;
    AtenCall call;
    call.name = "aten::cat";
    call.inputs = {std::move(list)};
    std::vector<std::int64_t> found;
    const auto ops = map_aten(call, {});
    for (const MappedOp& mapped : *ops) {
      const auto& copy = std::get<Copy>(mapped.op);
      EXPECT_EQ(copy.rows * copy.cols, 3);
      EXPECT_EQ(copy.parts, static_cast<std::int64_t>(mapped.inputs.size()));
      EXPECT_EQ(mapped.outputs.front().elements(), static_cast<std::int64_t>(3 * std::min(count, empty_from)));
      found.push_back(copy.parts);
    }
    return found;
  };
  using Parts = std::vector<std::int64_t>;
  EXPECT_EQ(parts(128), Parts{128});
  EXPECT_EQ(parts(129), (Parts{128, 1}));
  EXPECT_EQ(parts(256), (Parts{128, 128}));
  EXPECT_EQ(parts(257), (Parts{128, 128, 1}));
  EXPECT_EQ(parts(129, 128), Parts{128});
}

TEST(WorkedLists, UnlikePartsAreCopiedEach) {
  const std::string host = " | contiguous view_backward_copy";
  expect_worked_lists({
      {"cat",
       {TensorList{"bf16[3,5]#1"_t, "fp32[3,5]#2"_t, "bf16[0]"_t}, 1.0},
       {"cast 3x5 bf16>fp32 strided: bf16[3,5]#1 > fp32[3,5]#7 | cast cast_backward",
        "copy permute fp32 rows=3 cols=5 parts=1: fp32[3,5]#2 > fp32[3,5]#7" + host},
       {"fp32[3,10]#7"_t}},
      // A view of more than four dimensions.
      {"cat",
       {TensorList{"bf16[1,1,2,3,5](30,30,5,10,1)#1"_t}},
       {"copy permute bf16 rows=6 cols=5 parts=1 walked=5,1,3,10,2,5: bf16[1,1,2,3,5](30,30,5,10,1)#1 > "
        "bf16[1,1,2,3,5]" +
        host}},
      {"cat",
       {TensorList{"bf16[1,1,2,3,5](30,30,1,2,6)#1"_t}},
       {"copy transpose bf16 rows=6 cols=5 parts=1 walked=5,6,3,2,2,1: bf16[1,1,2,3,5](30,30,1,2,6)#1 > "
        "bf16[1,1,2,3,5]" +
        host}},
      {"cat",
       {TensorList{"bf16[1,2,3,5](30,5,10,1)#1"_t}},
       {"copy concatenate_strided bf16 rows=1 cols=30 parts=1 dimensions=4: bf16[1,2,3,5](30,5,10,1)#1 > bf16[30] | "
        "concatenate "
        "split_backward"}},
      {"cat",
       {TensorList{"bf16[1,1,2,3,5]#1"_t}},
       {"copy concatenate bf16 rows=1 cols=30 parts=1 dimensions=5: bf16[1,1,2,3,5]#1 > bf16[30] | concatenate "
        "split_backward"}},
  });
}

TEST(WorkedLists, OfPartsThatAreNotRecordedTheResultSaysHowMuch) {
  const std::string host = " | concatenate split_backward";
  expect_worked_lists({
      {"cat", {TensorList{}}, kNotUnderstood},
      {"cat", {kLeftOut}, kNotUnderstood},
      {"cat", {TensorList{}}, kNotUnderstood, {"bf16[0]"_t}},
      {"cat",
       {TensorList{}},
       {"copy concatenate bf16 rows=1 cols=15 parts=2: bf16[15]#2 bf16[15]#2 > bf16[6,5]#2" + host},
       {"bf16[6,5]#2"_t}},
      {"cat",
       {kLeftOut},
       {"copy concatenate bf16 rows=1 cols=1 parts=2: bf16[1] bf16[1] > bf16[1]" + host},
       {"bf16[1]"_t}},
      // The kernel says that elements have two bytes, and the recording that they have four.
      {"cat",
       {TensorList{}},
       {"copy concatenate bf16 rows=1 cols=30 parts=2: bf16[30] bf16[30] > bf16[60]" + host},
       {"fp32[6,5]"_t},
       {measured("CatArrayBatchedCopy<OpaqueType<2u>, 3>")}},
      {"cat",
       {TensorList{}},
       {"copy concatenate fp32 rows=1 cols=15 parts=2: fp32[15] fp32[15] > fp32[6,5]" + host},
       {"fp32[6,5]"_t},
       {measured("CatArrayBatchedCopy<OpaqueType<4u>, 3>")}},
      {"cat",
       {TensorList{}},
       {"copy concatenate fp32 rows=1 cols=15 parts=2: fp32[15] fp32[15] > fp32[6,5]" + host},
       {"fp32[6,5]"_t},
       {measured("OpaqueType<")}},
      {"cat",
       {TensorList{}},
       {"copy concatenate fp16 rows=1 cols=15 parts=2: fp16[15] fp16[15] > fp16[6,5]" + host},
       {"fp16[6,5]"_t},
       {measured("CatArrayBatchedCopy<OpaqueType<2u>, 3>")}},
  });
}

TEST(WorkedLists, OptimizersOfApex) {
  const auto adam = [](std::vector<MeasuredKernel> kernels, const MapContext& context = {}) {
    return operations_of({"apex::multi_tensor_adam", {}, {}, {}, std::move(kernels)}, context);
  };
  const auto of = [](const char* type, std::int64_t elements) {
    return Listing{fmt::format("multi_tensor fused_adam {} sizes={}{}", type, elements, kOptimizer)};
  };
  EXPECT_EQ(adam({measured("AdamFunctor<float>", 3)}), of("fp32", 196608));  // of 65536 elements each
  EXPECT_EQ(adam({measured("AdamFunctor<c10::BFloat16>", 3), measured("AdamFunctor<float>", 2)}), of("bf16", 327680));
  EXPECT_EQ(adam({measured("AdamFunctor<c10::Half>", 1)}), of("fp16", 65536));
  EXPECT_EQ(adam({measured("AdamFunctor<float>", 0)}), kNotUnderstood);
  EXPECT_EQ(adam({measured("AdamFunctor<float>", 1 << 24)}), of("fp32", std::int64_t{1} << 40));
  EXPECT_EQ(adam({measured("AdamFunctor<float>", (1 << 24) + 1)}), kNotUnderstood);
  EXPECT_EQ(adam({}), kNotUnderstood);
  MapContext context;
  // 98304 of two chunks, 32768 of one: two thirds full.
  context.parameter_sizes = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{98304, 32768});
  EXPECT_EQ(adam({measured("AdamFunctor<float>", 6)}, context), of("fp32", 262144));
  context.parameter_sizes = std::make_shared<const std::vector<std::int64_t>>();
  EXPECT_EQ(adam({measured("AdamFunctor<float>", 2)}, context), of("fp32", 131072));
  const std::pair<const char*, const char*> functions[] = {
      {"adam", "fused_adam"}, {"adagrad", "fused_sgd"}, {"sgd", "fused_sgd"}, {"lamb_stage1", "fused_adam"},
      {"lamb_stage2", "add"}, {"axpby", "add"},         {"scale", "copy"},    {"l2norm", "norm"}};
  for (const auto& [name, function] : functions)
    EXPECT_EQ(operations_of({fmt::format("apex::multi_tensor_{}", name), {}, {}, {}, {measured("x", 1)}}),
              Listing{fmt::format("multi_tensor {} fp32 sizes=65536{}", function, kOptimizer)});
}

TEST(WorkedLists, KernelsOfApexAreKnownByTheirFunctors) {
  const std::pair<const char*, const char*> names[] = {
      {"AdamFunctor", "adam"},     {"AdagradFunctor", "adagrad"},
      {"SGDFunctor", "sgd"},       {"LAMBStage1Functor", "lamb_stage1"},
      {"ScaleFunctor", "scale"},   {"AxpbyFunctor", "axpby"},
      {"L2NormFunctor", "l2norm"}, {"LAMBStage2Functor", "lamb_stage2"}};
  for (const auto& [functor, name] : names) {
    EXPECT_EQ(apex_name_of(fmt::format("void multi_tensor_apply_kernel<{}>", functor)),
              fmt::format("apex::multi_tensor_{}", name));
    EXPECT_EQ(apex_name_of(fmt::format("void at::native::multi_tensor_apply_kernel<{}>", functor)), "");
    EXPECT_EQ(apex_name_of(fmt::format("void other_kernel<{}>", functor)), "");
  }
  EXPECT_EQ(apex_name_of("multi_tensor_apply_kernel<OtherFunctor>"), "");
}

}  // namespace
}  // namespace ridgeline::trace
