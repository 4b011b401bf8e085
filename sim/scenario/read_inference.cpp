#include "sim/scenario/read_inference.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "sim/scenario/precision_choices.h"
#include "sim/scenario/read_parallel.h"
#include "sim/scenario/read_tf32.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

constexpr std::array<std::pair<std::string_view, KeyValueCache>, 3> kCaches{
    {{"none", KeyValueCache::none}, {"dynamic", KeyValueCache::dynamic}, {"static", KeyValueCache::fixed}}};
constexpr std::array<std::pair<std::string_view, CompiledUse>, 3> kCompiled{
    {{"false", CompiledUse::none}, {"true", CompiledUse::usual}, {"tuned", CompiledUse::tuned}}};
constexpr std::array<std::pair<std::string_view, FrozenWeights>, 10> kWeights{
    {{"as stored", FrozenWeights::as_stored},
     {"nf4", FrozenWeights::nf4},
     {"nf4-double", FrozenWeights::nf4_double},
     {"int8", FrozenWeights::int8},
     {"gptq", FrozenWeights::gptq},
     {"awq", FrozenWeights::awq},
     {"hqq", FrozenWeights::hqq},
     {"int8-only", FrozenWeights::int8_only},
     {"int4-only", FrozenWeights::int4_only},
     {"fp8", FrozenWeights::fp8}}};

/// Ranks share layers by hand (Transformers' tp_plan, gpt-fast); copies of the network share nothing.
ParallelDescription read_ranks(const Mapping& mapping, const Cluster& cluster, const TrainingDescription& t) {
  const Value key = mapping["parallel"];
  if (!key.exists())
    mapping["parallel"].fail(
        "GPUs of a cluster share the layers of a network in use: expected tensor, as many as GPUs");
  const Mapping ranks(key, {"tensor", "tensor_style"});
  ParallelDescription how = read_parallel(key, cluster);
  how.data = 1;
  if (!ranks.has("tensor_style")) how.tensor_style = TensorStyle::by_hand;
  if (how.tensor == 1) ranks["tensor"].fail("one rank needs no cluster: leave cluster out, or give more");
  if (t.inference->beams > 1) mapping["beams"].fail("over tensor parallel ranks are not modelled: expected 1");
  return how;
}

}  // namespace

TrainingSection read_inference(const Value& section, const Software& software, const Cluster* cluster,
                               Precision assumed) {
  const Mapping mapping(section, {"sequences", "prompt_length", "new_tokens", "beams", "cache", "precision", "tf32",
                                  "cudnn_tf32", "attention", "weights", "compile", "cuda_graphs", "parallel"});
  TrainingSection result;
  TrainingDescription& t = result.training;
  InferenceDescription& use = t.inference.emplace();
  use.sequences = mapping["sequences"].integer({1, 1 << 20}, 1);
  use.new_tokens = mapping["new_tokens"].integer({0, 1 << 17}, 0);
  use.beams = mapping["beams"].integer({1, 1024}, 1);
  if (use.beams > 1 && use.new_tokens == 0)
    mapping["beams"].fail("beams are of a search for new tokens: give new_tokens");
  use.cache = mapping["cache"].choice<KeyValueCache>(kCaches, KeyValueCache::dynamic);
  t.micro_batch = use.sequences * use.beams;
  t.sequence_length = mapping["prompt_length"].integer({1, 1 << 24});
  t.gradient_accumulation = 1;
  result.assumes_precision = !mapping.has("precision");
  t.precision = mapping["precision"].choice<Precision>(kPrecisions, implied_precision(section, assumed));
  if (t.precision == Precision::apex_o2)
    mapping["precision"].fail("apex-o2 is of training: it keeps fp32 copies for an optimizer");
  read_tf32(mapping, software, t);
  t.attention = mapping["attention"].choice<AttentionRequest>(kAttention, AttentionRequest::sdpa);
  t.softmax_saves_input = software.softmax_saves_input;
  t.mask_always_added = software.mask_always_added;
  t.math_attention_in_fp32 = software.math_attention_in_fp32;
  use.weights = mapping["weights"].choice<FrozenWeights>(kWeights, FrozenWeights::as_stored);
  if (use.weights != FrozenWeights::as_stored && (t.precision == Precision::fp32 || t.precision == Precision::tf32))
    mapping["weights"].fail("in few bits go with arithmetic in 16 bits: expected precision: bf16 beside them");
  use.compiled = mapping["compile"].choice<CompiledUse>(kCompiled, CompiledUse::none);
  result.compile = use.compiled != CompiledUse::none;
  if (result.compile && use.new_tokens > 0 && use.cache != KeyValueCache::fixed)
    mapping["compile"].fail("of a generation goes with cache: static: sizes of others grow with every token");
  result.cuda_graphs = mapping["cuda_graphs"].boolean(false);
  if (cluster == nullptr) {
    if (mapping.has("parallel")) mapping["parallel"].fail("needs several GPUs: name a cluster (cluster: hgx-h200)");
    return result;
  }
  t.parallel = read_ranks(mapping, *cluster, t);
  if (result.compile) mapping["compile"].fail("over tensor parallel ranks is not modelled: expected false");
  if (result.cuda_graphs) mapping["cuda_graphs"].fail("over several GPUs is not modelled: expected false");
  return result;
}

void check_weights(const InferenceDescription& use, const ModelDescription& model, const Gpu& gpu,
                   const Value& section) {
  if (use.weights == FrozenWeights::as_stored) return;
  if (model.program.given()) section["weights"].fail("of a program are not modelled in few bits: expected as stored");
  constexpr int kHopper = 9;
  if (use.weights == FrozenWeights::fp8 && gpu.compute_major != kHopper)
    section["weights"].fail(fmt::format("products of fp8 are modelled on Hopper (compute capability 9.0); {} has {}.{}",
                                        gpu.name, gpu.compute_major, gpu.compute_minor));
}

}  // namespace ridgeline
