// Networks in use whose weights have few bits: what lies on the device, and which kernels a token of one row runs.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "sim/workload/compile/compile_trace.h"
#include "sim/workload/inference_run.h"
#include "sim/workload/load_model.h"

namespace ridgeline::few_bits {
namespace {

OpTrace run_in_bits(FrozenWeights weights, std::int64_t sequences = 1, CompiledUse compiled = CompiledUse::none,
                    std::int64_t tokens = 4) {
  TrainingDescription how;
  how.precision = Precision::bf16;
  how.sequence_length = 16;
  how.micro_batch = sequences;
  InferenceDescription& use = how.inference.emplace();
  use.sequences = sequences;
  use.new_tokens = tokens;
  use.weights = weights;
  use.compiled = compiled;
  if (compiled != CompiledUse::none) use.cache = KeyValueCache::fixed;
  constexpr int kSms = 132;
  OpTrace trace = inference_run(load_model("tinyllama-1.1b"), how, AttentionChoice::flash);
  return compiled == CompiledUse::none ? std::move(trace) : compile::compile_trace(std::move(trace), kSms);
}

std::int64_t weights_of(const OpTrace& trace) {
  std::int64_t bytes = 0;
  for (const Storage& storage : trace.storages)
    if (storage.category == Category::weights) bytes += storage.bytes;
  return bytes;
}

/// Runs of kernels without operations of their own in the last step, by name.
std::map<std::string, int> names_of(const OpTrace& trace) {
  std::map<std::string, int> names;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
    if (trace.records[i].kind == Record::Kind::op) {
      const Op& op = trace.ops[trace.calls[trace.records[i].index].op];
      if (const auto* unknown = std::get_if<UnknownOp>(&op)) ++names[unknown->name];
      if (const auto* fused = std::get_if<FusedKernel>(&op)) ++names[fused->name];
      const auto* pointwise = std::get_if<Pointwise>(&op);
      if (pointwise != nullptr && pointwise->function == PointwiseFunction::expand_4bit) ++names["expand_4bit"];
    }
  return names;
}

// 22 blocks of 2 x 2048², 2 x 2048 x 256 and 3 x 2048 x 5632 numbers.
constexpr std::int64_t kLayers = 22, kLinears = 7;
constexpr double kInBlocks = 22.0 * (2.0 * 2048 * 2048 + 2.0 * 2048 * 256 + 3.0 * 2048 * 5632);

TEST(WeightsInFewBits, TakeTheirBytesAndTheirScales) {
  const auto whole = static_cast<double>(weights_of(run_in_bits(FrozenWeights::as_stored)));
  const std::map<FrozenWeights, double> bytes_a_number{{FrozenWeights::nf4, 0.5 + 4.0 / 64},
                                                       {FrozenWeights::nf4_double, 0.5 + 1.0 / 64 + 4.0 / 64 / 256},
                                                       {FrozenWeights::awq, 0.5 + 2.0 / 128 + 0.5 / 128},
                                                       {FrozenWeights::hqq, 0.5 + 4.0 / 64},
                                                       {FrozenWeights::int4_only, 0.5 + 4.0 / 128},
                                                       {FrozenWeights::int8_only, 1.0},
                                                       {FrozenWeights::int8, 1.0},
                                                       {FrozenWeights::fp8, 1.0}};
  for (const auto& [kind, bytes] : bytes_a_number) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto saved = whole - static_cast<double>(weights_of(run_in_bits(kind)));
    EXPECT_NEAR(saved / kInBlocks, 2.0 - bytes, 0.005);
  }
}

TEST(WeightsInFewBits, FewRowsAreMultipliedByTheCodesAndMoreByTheExpandedWeight) {
  const auto linears = static_cast<int>(kLayers * kLinears);
  const auto one = names_of(run_in_bits(FrozenWeights::nf4)), more = names_of(run_in_bits(FrozenWeights::nf4, 5));
  EXPECT_EQ(one.at("gemm_4bit_simt"), 3 * linears) << "each token after the first";
  EXPECT_EQ(one.at("expand_4bit"), linears) << "the prompt";
  EXPECT_EQ(more.at("expand_4bit"), 4 * linears);
  EXPECT_EQ(more.count("gemm_4bit_simt"), 0u);
  EXPECT_EQ(names_of(run_in_bits(FrozenWeights::gptq, 3)).at("gptq::gemm_half_q_half"), 4 * linears)
      << "48 rows of prompts too";
  EXPECT_EQ(names_of(run_in_bits(FrozenWeights::gptq, 4)).at("gptq::dequantize"), linears);
}

/// Bytes that generated kernels of the last token read.
std::int64_t read_by_generated(const OpTrace& trace) {
  std::int64_t bytes = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
    if (trace.records[i].kind == Record::Kind::op)
      if (const auto* op = std::get_if<FusedKernel>(&trace.ops[trace.calls[trace.records[i].index].op]))
        for (const std::int64_t read : op->reads) bytes += read;
  return bytes;
}

int products_of_one_row(const OpTrace& trace) {
  int products = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
    if (trace.records[i].kind == Record::Kind::op)
      if (const auto* op = std::get_if<Matmul>(&trace.ops[trace.calls[trace.records[i].index].op]))
        products += op->m == 1 && op->batch == 1 ? 1 : 0;
  return products;
}

// gpt-fast's int8: the sum of a row reads the codes, and no cast weight is ever written.
TEST(WeightsInFewBits, TunedProductsOfOneRowReadTheCodes) {
  const OpTrace usual = run_in_bits(FrozenWeights::int8_only, 1, CompiledUse::usual, 2),
                tuned = run_in_bits(FrozenWeights::int8_only, 1, CompiledUse::tuned, 2);
  const auto read = static_cast<double>(read_by_generated(tuned));
  EXPECT_GT(read, kInBlocks);
  EXPECT_LT(read, 1.3 * kInBlocks + 2.0 * 2048 * 32000);
  EXPECT_LT(products_of_one_row(tuned), products_of_one_row(usual));
}

}  // namespace
}  // namespace ridgeline::few_bits
