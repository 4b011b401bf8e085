// The call that an operation is written as gives the operation back when it is read.
#include "sim/trace/aten/aten_call_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <regex>
#include <set>
#include <string>

#include "sim/answer/memory_prediction.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/aten/aten_map.h"
#include "sim/trace/profiler/profiler_arguments.h"
#include "tests/support/draws.h"
#include "tests/support/random_kernel_cases.h"

namespace ridgeline::trace {
namespace {

/// Written as a profiler would, read as a profiler's trace is.
std::optional<std::vector<MappedOp>> read_back(const Op& op) {
  AtenCall call = aten_call_of(op);
  const ProfiledArguments text = profiled_arguments(call);
  const std::string json = fmt::format(R"({{"Input Dims":{},"Input type":{},"Input Strides":{},"Concrete Inputs":{}}})",
                                       text.dims, text.types, text.strides, text.values);
  const auto* list = std::get_if<MultiTensor>(&op);
  const auto* copy = std::get_if<Copy>(&op);
  Defects defects;
  call.inputs = profiler_arguments(json, list ? list->type : copy ? copy->type : DType::fp32, "test", defects);
  EXPECT_TRUE(defects.counts.empty()) << call.name;
  MapContext context;
  if (const auto* product = std::get_if<Matmul>(&op)) context.tf32 = product->type == DType::tf32;
  return map_aten(call, context);
}

void expect_same(const Op& op) {
  const auto read = read_back(op);
  ASSERT_TRUE(read.has_value()) << name_of(op) << " " << shape_of(op);
  ASSERT_EQ(read->size(), 1u) << name_of(op);
  EXPECT_EQ(name_of(read->front().op), name_of(op)) << shape_of(op);
  EXPECT_EQ(shape_of(read->front().op), shape_of(op)) << name_of(op);
}

TEST(AtenCallOf, ProductsKeepTheirLayouts) {
  for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn, Layout::tt})
    for (const DType type : {DType::fp32, DType::tf32, DType::bf16, DType::fp16})
      for (const std::int64_t batch : {1, 12}) {
        const Matmul op{.type = type, .batch = batch, .m = 96, .n = 40, .k = 24, .layout = layout};
        expect_same(op);
        if (batch > 1) continue;
        Matmul biased = op;
        biased.bias = true;
        expect_same(biased);
      }
}

// How many there are and the longest; the others share the rest.
TEST(AtenCallOf, PackedSequencesKeepTheirNumberAndTheLongest) {
  const auto packed = [](std::vector<std::int64_t> lengths) {
    return PackedLengths{std::make_shared<const std::vector<std::int64_t>>(std::move(lengths))};
  };
  for (const bool backward : {false, true}) {
    Attention op{.backward = backward, .causal = true, .batch = 1, .heads = 8, .kv_heads = 2};
    op.seq_q = op.seq_k = 1024;
    op.head_dim = 64;
    for (const std::vector<std::int64_t>& lengths :
         {std::vector<std::int64_t>{1024}, {256, 256, 256, 256}, {1000, 12, 12}}) {
      op.lengths = packed(lengths);
      expect_same(op);
      EXPECT_EQ(read_back(op)->front().op, Op{op}) << lengths.size();
    }
    op.lengths = packed({12, 1000, 8, 4});
    Attention read = op;
    read.lengths = packed({1000, 8, 8, 8});
    EXPECT_EQ(read_back(op)->front().op, Op{read});
  }
}

TEST(AtenCallOf, ListsKeepTheirSizesAndTypes) {
  const auto sizes = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{7, 4096, 1});
  using M = MultiTensorFunction;
  for (const M function : {M::add, M::mul, M::lerp, M::addcmul, M::addcdiv, M::square_root, M::divide, M::norm,
                           M::unscale, M::fused_adamw, M::fused_adam, M::fused_sgd, M::add_scalar, M::copy})
    for (const DType type : {DType::fp32, DType::bf16})
      expect_same(MultiTensor{function, type, sizes, function == M::addcdiv});
}

TEST(AtenCallOf, ImagesAndConvolutionsKeepTheirOrder) {
  for (const bool channels_last : {false, true})
    for (const bool backward : {false, true}) {
      expect_same(Convolution{.backward = backward,
                              .channels_last = channels_last,
                              .type = DType::bf16,
                              .batch = 8,
                              .in_channels = 64,
                              .size = 56,
                              .out_channels = 128,
                              .kernel = 3,
                              .stride = 2});
      expect_same(ImageOp{ImageFunction::batch_norm, backward, channels_last, DType::fp32, 8, 64, 56});
      expect_same(ImageOp{ImageFunction::max_pool2d, backward, channels_last, DType::fp32, 8, 64, 56});
    }
}

/// Share of a step's operations of which name and shape come back; those that have no one call in PyTorch do not.
double share_that_comes_back(const std::string& scenario) {
  ScenarioSource source;
  source.text = scenario;
  source.text_name = "test";
  const OpTrace trace = trace_of(load_scenario(source));
  std::size_t same = 0;
  for (const Op& op : trace.ops) {
    const auto read = read_back(op);
    EXPECT_TRUE(read.has_value()) << name_of(op) << " " << shape_of(op);
    if (read && read->size() == 1 && shape_of(read->front().op) == shape_of(op)) ++same;
  }
  return static_cast<double>(same) / static_cast<double>(trace.ops.size());
}

TEST(AtenCallOf, ZerosOfTheDriverAreNoFill) {
  AtenCall call = aten_call_of(Memset{4096});
  EXPECT_EQ(call.name, "aten::zero_");
  call.kernels = {{.name = "Memset (Device)"}};
  const auto set = map_aten(call, {});
  ASSERT_TRUE(set.has_value() && set->size() == 1);
  EXPECT_EQ(set->front().op, Op(Memset{4096}));
  call.kernels.front().name = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>";
  const auto filled = map_aten(call, {});
  ASSERT_TRUE(filled.has_value() && filled->size() == 1);
  EXPECT_TRUE(std::holds_alternative<Pointwise>(filled->front().op));
}

TEST(AtenCallOf, OperationsOfEveryFamilyComeBack) {
  for (const char* model : {"gpt2", "bert-large", "llama-7b"})
    for (const char* precision : {"fp32", "amp-bf16"})
      EXPECT_GE(share_that_comes_back(fmt::format("{{hardware: nvidia-h200-sxm-141gb, model: {}, training: "
                                                  "{{micro_batch: 2, sequence_length: 128, precision: {}}}}}",
                                                  model, precision)),
                0.9)
          << model << " " << precision;
}

TEST(AtenCallOf, AnImageWithChannelsLastFillsItsStorage) {
  const AtenCall call = aten_call_of(Op{ImageOp{ImageFunction::batch_norm, false, true, DType::fp32, 8, 64, 56}});
  const AtenTensor& x = *call.tensor(0);
  ASSERT_EQ(x.sizes.size(), 4u);
  EXPECT_THAT(x.strides, ::testing::ElementsAre(64 * 56 * 56, 1, 56 * 64, 64));
}

TEST(AtenCallOf, FlagsOfAttentionComeBack) {
  for (const AttentionBackend backend : {AttentionBackend::flash, AttentionBackend::cudnn, AttentionBackend::efficient})
    for (int flags = 0; flags < 16; ++flags) {
      Attention op{.backend = backend, .backward = (flags & 1) != 0, .causal = (flags & 2) != 0};
      op.dropout = (flags & 4) != 0;
      op.head_major = (flags & 8) != 0;
      op.batch = 2, op.heads = 6, op.kv_heads = 3, op.seq_q = 40, op.seq_k = 56, op.head_dim = 64;
      const auto read = read_back(op);
      ASSERT_TRUE(read.has_value() && read->size() == 1);
      EXPECT_EQ(read->front().op, Op{op}) << static_cast<int>(backend) << ' ' << flags;
    }
}

/// Rows, columns or heads of one look like none of them; a matrix with a side of one lies as its transpose does.
bool has_a_side_of_one(const std::string& text) {
  return std::regex_search(text, std::regex(R"re("(rows|cols|heads|batch|channels|hidden|m|n|k)":1[,}])re"));
}

TEST(AtenCallOf, RandomOperationsOfEveryKindComeBackWhole) {
  const std::uint64_t seed = testing_support::changing_seed();
  // No call says what a cast reads, where a list's scalars lie and how images lie; a quotient of tensors is read as the
  // product that takes as long.
  const std::set<std::string> known{"cast", "div", "foreach_addcdiv", "index_put", "relu", "upsample_nearest2d"};
  std::map<std::string, std::string> lost;
  std::size_t whole = 0;
  for (const auto& one : testing::RandomKernelCases(seed).of_every_op(20)) {
    const Op& op = one.kernel.op;
    if (aten_call_of(op).inputs.empty() || known.contains(name_of(op)) || has_a_side_of_one(one.text)) continue;
    const auto read = read_back(op);
    if (!read || read->size() != 1 || read->front().op != op) lost[name_of(op)] = one.text;
    else ++whole;
  }
  EXPECT_THAT(lost, ::testing::IsEmpty()) << "RIDGELINE_TEST_SEED=" << seed;
  EXPECT_GT(whole, 300u);
}

}  // namespace
}  // namespace ridgeline::trace
