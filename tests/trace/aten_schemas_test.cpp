// Where PyTorch's signatures (native_functions.yaml) have what an operation is made of: flags of attention, the
// dimension along which rows lie, types by number.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/aten_example.h"

namespace ridgeline::trace {
namespace {

/// Places in the signature of a call of attention.
struct Signature {
  std::string name;
  std::size_t arguments, query, dropout, causal;
  bool heads_second = true, backward = false;
  std::size_t output = 0, statistics = 0;  ///< of a backward call
};

const std::vector<Signature>& signatures() {
  static const std::vector<Signature> all{
      {"_scaled_dot_product_flash_attention", 6, 0, 3, 4},
      {"_scaled_dot_product_efficient_attention", 7, 0, 5, 6},
      {"_scaled_dot_product_cudnn_attention", 8, 0, 5, 6},
      {"_flash_attention_forward", 10, 0, 7, 8, false},
      {"_efficient_attention_forward", 11, 0, 8, 9, false},
      {"_cudnn_attention_forward", 12, 0, 9, 10},
      {"_scaled_dot_product_flash_attention_backward", 14, 1, 10, 11, true, true, 4, 5},
      {"_scaled_dot_product_efficient_attention_backward", 12, 1, 9, 11, true, true, 5, 6},
      {"_scaled_dot_product_cudnn_attention_backward", 15, 1, 13, 14, true, true, 4, 5},
      {"_flash_attention_backward", 14, 1, 10, 11, false, true, 4, 5},
      {"_cudnn_attention_backward", 15, 1, 13, 14, true, true, 4, 5}};
  return all;
}

constexpr std::int64_t kBatch = 2, kHeadCount = 6, kKeyHeads = 3, kQueries = 40, kKeys = 56, kWidth = 64;

/// Queries and keys of different lengths and numbers of heads; each tensor in a storage of its own place.
AtenCall attention_call(const Signature& of) {
  AtenCall call;
  call.name = "aten::" + of.name;
  call.inputs.resize(of.arguments);
  const auto put = [&](std::size_t place, AtenTensor tensor) {
    tensor.storage = static_cast<std::int64_t>(place);
    call.inputs[place] = tensor;
  };
  const auto shaped = [&](std::int64_t heads, std::int64_t length) {
    return half(of.heads_second ? Sizes{kBatch, heads, length, kWidth} : Sizes{kBatch, length, heads, kWidth});
  };
  if (of.backward) put(0, shaped(kHeadCount, kQueries));
  put(of.query, shaped(kHeadCount, kQueries));
  put(of.query + 1, shaped(kKeyHeads, kKeys));
  put(of.query + 2, shaped(kKeyHeads, kKeys));
  if (of.backward) {
    put(of.output, shaped(kHeadCount, kQueries));
    put(of.statistics, tensor({kBatch, kHeadCount, kQueries}));
  }
  return call;
}

Attention mapped(const AtenCall& call) {
  const auto ops = map_aten(call, {});
  EXPECT_TRUE(ops && ops->size() == 1 && std::holds_alternative<Attention>(ops->front().op)) << call.name;
  return std::get<Attention>(ops->front().op);
}

TEST(AtenSchemas, FlagsOfAttentionStandWhereItsSignatureHasThem) {
  for (const Signature& of : signatures()) {
    const AtenCall plain = attention_call(of);
    for (std::size_t place = 0; place < plain.inputs.size(); ++place) {
      if (!std::holds_alternative<std::monostate>(plain.inputs[place])) continue;
      AtenCall call = plain;
      call.inputs[place] = 1.0;
      const Attention op = mapped(call);
      EXPECT_EQ(op.causal, place == of.causal) << of.name << ' ' << place;
      EXPECT_EQ(op.dropout, place == of.dropout) << of.name << ' ' << place;
      call.inputs[place] = 0.0;
      EXPECT_EQ(mapped(call), mapped(plain)) << of.name << ' ' << place;
    }
  }
}

TEST(AtenSchemas, SidesOfAttentionAreThoseOfItsTensors) {
  for (const Signature& of : signatures()) {
    const AtenCall call = attention_call(of);
    const Attention op = mapped(call);
    EXPECT_EQ(op.batch, kBatch) << of.name;
    EXPECT_EQ(op.heads, kHeadCount) << of.name;
    EXPECT_EQ(op.kv_heads, kKeyHeads) << of.name;
    EXPECT_EQ(op.seq_q, kQueries) << of.name;
    EXPECT_EQ(op.seq_k, kKeys) << of.name;
    EXPECT_EQ(op.head_dim, kWidth) << of.name;
    EXPECT_EQ(op.backward, of.backward) << of.name;
    std::set<std::int64_t> read, given;
    const auto ops = map_aten(call, {});
    for (const AtenTensor& tensor : ops->front().inputs) read.insert(tensor.storage);
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      if (call.tensor(i) != nullptr) given.insert(static_cast<std::int64_t>(i));
    EXPECT_EQ(read, given) << of.name;
  }
}

TEST(AtenSchemas, AttentionOfNothingIsNotUnderstood) {
  for (const Signature& of : signatures())
    for (std::size_t side = 0; side < 3; ++side)
      for (std::size_t which = 0; which < 2; ++which) {
        AtenCall call = attention_call(of);
        std::get<AtenTensor>(call.inputs[of.query + which]).sizes[side] = 0;
        const auto ops = map_aten(call, {});
        if (side == 0 && which == 1) continue;  // the batch is that of the queries
        const std::size_t heads = of.heads_second ? 1 : 2;
        if (side == heads && which == 1) continue;  // keys of no head are queries' own
        EXPECT_FALSE(ops.has_value()) << of.name << ' ' << side << ' ' << which;
      }
}

/// Rows and columns of an operation along one dimension.
std::pair<std::int64_t, std::int64_t> sides(const MappedOp& mapped) {
  if (const auto* op = std::get_if<Softmax>(&mapped.op)) return {op->rows, op->cols};
  if (const auto* op = std::get_if<Sort>(&mapped.op)) return {op->rows, op->cols};
  return {0, 0};
}

TEST(AtenSchemas, RowsLieAlongTheDimensionThatIsNamed) {
  const Sizes sizes{3, 5, 7, 11};
  const AtenTensor x = tensor(sizes);
  for (std::int64_t dimension = -4; dimension < 4; ++dimension) {
    const std::int64_t cols = sizes[static_cast<std::size_t>(dimension < 0 ? dimension + 4 : dimension)];
    const std::pair expected(x.elements() / cols, cols);
    const auto d = static_cast<double>(dimension);
    const std::vector<std::pair<std::string, std::vector<Argument>>> calls{
        {"_softmax", {x, d, 0.0}},
        {"_log_softmax", {x, d, 0.0}},
        {"_safe_softmax", {x, d}},
        {"_softmax_backward_data", {x, x, d, 6.0}},
        {"_log_softmax_backward_data", {x, x, d, 6.0}},
        {"sort", {x, d, 0.0}},
        {"sort", {x, 1.0, d, 0.0}},
        {"topk", {x, 2.0, d, 1.0, 1.0}}};
    for (const auto& [name, inputs] : calls) {
      const auto ops = map_aten(call_of({name, inputs, ""}), {});
      ASSERT_TRUE(ops.has_value()) << name;
      EXPECT_EQ(sides(ops->front()), expected) << name << ' ' << dimension;
    }
  }
}

TEST(AtenSchemas, NoMoreIsKeptThanALineHas) {
  for (const std::int64_t kept : {1, 4, 8, 9, 100}) {
    const auto ops = map_aten(call_of({"topk", {tensor({4, 8}), static_cast<double>(kept), -1.0}, ""}), {});
    ASSERT_TRUE(ops.has_value());
    EXPECT_EQ(ops->front().outputs.front().elements(), 4 * std::min<std::int64_t>(kept, 8)) << kept;
  }
}

TEST(AtenSchemas, TypesOfGradientsAreNumberedAsScalarTypesAre) {
  const AtenTensor y = tensor({4, 8}, DType::fp32);
  for (const auto& [number, type] : std::vector<std::pair<double, DType>>{{5, DType::fp16},
                                                                          {6, DType::fp32},
                                                                          {7, DType::fp64},
                                                                          {15, DType::bf16},
                                                                          {0, DType::fp32},
                                                                          {16, DType::fp32}})
    for (const char* name : {"_softmax_backward_data", "_log_softmax_backward_data"}) {
      const auto ops = map_aten(call_of({name, {y, y, -1.0, number}, ""}), {});
      ASSERT_TRUE(ops.has_value());
      EXPECT_EQ(ops->front().outputs.front().type, type) << name << ' ' << number;
    }
}

/// All of the dimensions that are normalised over are columns of one row.
TEST(AtenSchemas, NormalisedDimensionsAreColumns) {
  const Sizes sizes{3, 5, 7, 11};
  const AtenTensor x = tensor(sizes);
  for (std::size_t over = 1; over <= 3; ++over) {
    Numbers shape(sizes.end() - static_cast<std::ptrdiff_t>(over), sizes.end());
    std::int64_t cols = 1;
    Sizes last;
    for (const double size : shape) cols *= last.emplace_back(static_cast<std::int64_t>(size));
    const std::int64_t rows = x.elements() / cols;
    const AtenTensor weight = tensor(last), moments = tensor({rows});
    const std::vector<std::pair<std::string, std::vector<Argument>>> calls{
        {"native_layer_norm", {x, shape, weight, weight, 1e-5}},
        {"native_layer_norm", {x, shape, kLeftOut, kLeftOut, 1e-5}},
        {"native_layer_norm_backward", {x, x, shape, moments, moments, weight, weight}},
        {"native_layer_norm_backward", {x, x, shape, moments, moments, kLeftOut, kLeftOut}},
        {"_fused_rms_norm", {x, shape, weight}},
        {"_fused_rms_norm_backward", {x, x, shape, moments, weight}}};
    for (const auto& [name, inputs] : calls) {
      const auto ops = map_aten(call_of({name, inputs, ""}), {});
      ASSERT_TRUE(ops.has_value()) << name;
      const auto* op = std::get_if<Norm>(&ops->front().op);
      ASSERT_NE(op, nullptr) << name;
      EXPECT_EQ(op->rows, rows) << name << ' ' << over;
      EXPECT_EQ(op->cols, cols) << name << ' ' << over;
    }
  }
}

}  // namespace
}  // namespace ridgeline::trace
