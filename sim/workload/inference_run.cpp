// Greedy generation and beam search as generate() of Transformers 5.17 runs them (generation/utils.py): the ids and
// masks it builds before the first pass, what it makes of the logits of the last position, and the question to the
// device, after every token, whether all sequences have ended.
#include "sim/units/user_error.h"

#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/composition.h"
#include "sim/workload/families/beam_search.h"
#include "sim/workload/families/family.h"
#include "sim/workload/families/key_value_store.h"
#include "sim/workload/families/shared_sequences.h"
#include "sim/workload/inference_run.h"
#include "sim/workload/token_loop.h"

namespace ridgeline {
namespace {

using eager::Dims;
using eager::Eager;
using eager::Tensor;
namespace aten = eager::aten;

// Microseconds of Python of generate() that belong to no operation. Two round numbers for all models, chosen by hand
// beside the generations measured on an NVIDIA H200's host (tests/answer/inference_test.cpp), not fitted: six of nine
// are met within 5 %, the others within 12, 18 and 35 %. Nothing was held out.
constexpr std::int64_t kPythonOfCall = 1420, kPythonOfToken = 568;

std::optional<DType> autocast_of(Precision precision) {
  if (precision == Precision::amp_fp16) return DType::fp16;
  if (precision == Precision::amp_bf16) return DType::bf16;
  return std::nullopt;
}

/// Of a run: about 1 GB with what is made of them.
constexpr std::int64_t kMostCalls = 2'000'000;

/// Tokens that are written out in front of those that are not: what one does depends on the one before, and the first
/// takes the whole prompt.
constexpr std::int64_t kFirstTokens = 3;
/// Fewer are written out.
constexpr std::int64_t kFewTokens = 64;
/// Tries to tell pieces of the tokens apart whose sizes grow by different terms.
constexpr int kMostTries = 24;

class InferenceLoop {
 public:
  /// `written`: tokens that are run, the first ones among them.
  InferenceLoop(OpTrace& trace, const ModelDescription& model, const TrainingDescription& how,
                AttentionChoice attention, std::vector<std::int64_t> written)
      : trace_(trace),
        model_(model),
        how_(how),
        inference_(*how.inference),
        written_(std::move(written)),
        eager_(trace) {
    eager_.gradients_enabled = false;
    trace.without_gradients = true;
    eager_.sparse_weights = model.sparse_weights;
    eager_.tf32 = how.matmuls_in_tf32();
    eager_.cudnn_tf32 = how.cudnn_tf32;
    eager_.math_attention_in_fp32 = how.math_attention_in_fp32;
    if (inference_.new_tokens == 0) batch_ = families::make_batch(eager_, model_, how_);
    else ids_ = input({inference_.sequences, how_.sequence_length});
    family_ = families::make_family(eager_, model_, how_, attention);
  }

  void step() {
    eager_.recorder.begin_step();
    eager_.recorder.phase = Phase::forward;
    with_autocast([&] {
      if (inference_.new_tokens == 0) {
        const auto whole = [&] { return family_->loss(batch_); };
        const Tensor loss = inference_.compiled == CompiledUse::none ? whole() : compiled_range(whole);
      } else {
        generate();
      }
    });
    eager_.recorder.phase = Phase::other;
    eager_.recorder.end_step();
  }
  void finish() { eager_.recorder.closed = true; }
  /// Records of entry `token` of those that are written, of every step; the one before it is written too.
  [[nodiscard]] std::vector<TokenLoop::Place> places_of(std::size_t token) const {
    std::vector<TokenLoop::Place> places;
    for (std::size_t step = 0; step < trace_.steps.size(); ++step) {
      const std::size_t at = step * written_.size() + token;
      places.push_back({trace_.steps[step].begin, tokens_[at - 1], tokens_[at]});
    }
    return places;
  }
  [[nodiscard]] std::int64_t parameter_count() const {
    std::int64_t total = family_->frozen();
    for (const auto& parameter : family_->parameters) total += parameter.value.elements();
    return total;
  }
  [[nodiscard]] std::int64_t parameter_tensors() const { return static_cast<std::int64_t>(family_->parameters.size()); }

 private:
  template <typename Body>
  void with_autocast(Body body) {
    const auto type = autocast_of(how_.precision);
    if (type) eager_.autocast.enter(*type);
    body();
    if (type) eager_.autocast.leave();
  }
  Tensor input(const Dims& sizes) {
    Tensor result = eager_.empty(sizes, DType::int64);
    eager_.recorder.set_category(result.storage.id(), Category::inputs);
    return result;
  }
  Tensor small(const Dims& sizes, DType type, int count = 1) {
    return families::small_kernels(eager_, sizes, type, count);
  }
  /// One column more: concatenated with its new last one.
  void lengthen(Tensor& ids, const Tensor& last) {
    eager_.recorder.host(HostClass::concatenate);
    Dims sizes = ids.sizes;
    sizes[1] += 1;
    Tensor longer = eager_.empty(sizes, ids.type);
    eager_.recorder.op(Copy{CopyKind::concatenate, ids.type, sizes[0], (sizes[1] + 1) / 2, 2}, {&ids, &last},
                       {&longer});
    ids = std::move(longer);
  }
  /// A number the host waits for.
  void ask(const Tensor& answer) {
    eager_.recorder.op(Copy{CopyKind::device_to_host, answer.type, 1, 1, 1}, {&answer}, {});
    eager_.recorder.wait_for_gpu();
  }

  void generate() {
    eager_.recorder.host(HostClass::python_fixed, kPythonOfCall);
    const std::int64_t rows = how_.micro_batch, prompt = how_.sequence_length;
    Tensor ids, mask, positions;
    mask = small({inference_.sequences, prompt}, DType::int64);
    ask(small({}, DType::boolean, 2));  // does any sequence end with the padding token?
    positions = small({inference_.sequences, prompt}, DType::int64, 5);
    ids = inference_.beams > 1 ? small({rows, prompt}, DType::int64) : ids_;
    if (inference_.beams > 1) {  // one copy of the prompt for each candidate
      mask = small({rows, prompt}, DType::int64);
      positions = small({rows, prompt}, DType::int64);
    }
    std::optional<families::KeyValueStore> store;
    if (inference_.cache != KeyValueCache::none) {
      store.emplace(eager_, inference_.cache, model_.layers, prompt + inference_.new_tokens - 1);
      family_->store = &*store;
    }
    std::optional<families::BeamSearch> search;
    if (inference_.beams > 1)
      search.emplace(eager_, inference_.sequences, inference_.beams, prompt, prompt + inference_.new_tokens,
                     model_.vocabulary);
    Tensor next_scores;     // of the last token: a variable that lives through the next forward pass
    std::size_t calls = 0;  // up to the last token
    std::int64_t before = -1;
    for (const std::int64_t token : written_) {
      if (written_.size() > kFewTokens && token == 2) refuse_what_grows_too_long(trace_.calls.size() - calls);
      calls = trace_.calls.size();
      pass_over(token - std::exchange(before, token) - 1, mask, positions, ids, store);
      const std::uint32_t begin = eager_.recorder.position();
      take_token(token, {ids, mask, positions, next_scores, search, store});
      tokens_.push_back({begin, eager_.recorder.position()});
    }
    next_scores = Tensor{};
    if (store) store->clear();
    family_->store = nullptr;
  }

  /// Storages that live from token to token.
  struct Kept {
    Tensor &ids, &mask, &positions, &next_scores;
    std::optional<families::BeamSearch>& search;
    std::optional<families::KeyValueStore>& store;
  };
  void take_token(std::int64_t token, const Kept& kept) {
    eager_.recorder.host(HostClass::python_fixed, kPythonOfToken);
    const bool cached = kept.store.has_value(), whole = token == 0 || !cached;
    const std::int64_t rows = how_.micro_batch, length = how_.sequence_length + token;
    family_->place = {rows, whole ? length : 1, whole ? 0 : length - 1};
    const Tensor flat = kept.search ? kept.search->flat(length) : Tensor{};
    const Tensor fed = token == 0 ? kept.ids : small({rows, whole ? length : 1}, DType::int64);
    Tensor logits = pass(fed, kept.positions, token);
    kept.positions = small({rows, whole && !cached ? length + 1 : 1}, DType::int64, 2);
    if (whole && !cached) kept.positions = small({rows, length + 1}, DType::int64);
    lengthen(kept.mask, small({rows, 1}, DType::int64));
    if (!kept.search) return take_likeliest(logits, kept.next_scores, kept.ids);
    kept.search->take(logits);
    if (cached) kept.store->reorder();
    kept.search->finish_token();
  }

  /// A pass of the network; of one token over a static cache torch.compile may have made one graph.
  Tensor pass(const Tensor& fed, const Tensor& positions, std::int64_t token) {
    if (inference_.compiled == CompiledUse::none || token == 0) return family_->next_logits(fed, positions);
    return compiled_range([&] { return family_->next_logits(fed, positions); });
  }
  template <typename Body>
  Tensor compiled_range(Body body) {
    CompiledRange range;
    range.forward.begin = eager_.recorder.position();
    Tensor result = body();
    range.forward.end = eager_.recorder.position();
    range.backward = {range.forward.end, range.forward.end};
    range.enters_backward = false;
    range.tuned = inference_.compiled == CompiledUse::tuned;
    eager_.recorder.note_compiled_range(range);
    return result;
  }

  /// Makes what is kept as long as it is after so many tokens more.
  void pass_over(std::int64_t tokens, Tensor& mask, Tensor& positions, Tensor& ids,
                 std::optional<families::KeyValueStore>& store) const {
    if (tokens == 0) return;
    mask.lengthen(1, tokens);
    ids.lengthen(1, tokens);
    if (store) store->lengthen(tokens);
    else positions.lengthen(1, tokens);
  }

  /// Told after the second token, not when the memory is full.
  void refuse_what_grows_too_long(std::size_t calls_of_token) const {
    if (static_cast<std::int64_t>(calls_of_token) * inference_.new_tokens <= kMostCalls) return;
    throw UserError(fmt::format(
        "inference.new_tokens: {} tokens of {} operations each are more than the {},000,000 operations that a "
        "prediction holds; at most {} tokens of this network",
        inference_.new_tokens, calls_of_token, kMostCalls / 1'000'000,
        kMostCalls / static_cast<std::int64_t>(calls_of_token)));
  }

  void take_likeliest(const Tensor& logits, Tensor& next_scores, Tensor& ids) {
    const std::int64_t rows = how_.micro_batch;
    eager_.recorder.host(HostClass::pointwise);
    Tensor wide = eager_.empty({rows, model_.vocabulary}, DType::fp32);
    aten::pointwise(eager_, PointwiseFunction::cast, {&logits}, wide);
    next_scores = std::move(wide);
    eager_.recorder.host(HostClass::pointwise);
    const Tensor likeliest = eager_.empty({rows}, DType::int64);
    eager_.recorder.op(Reduction{ReductionKind::sum_cols, DType::fp32, rows, model_.vocabulary}, {&next_scores},
                       {&likeliest});
    lengthen(ids, likeliest);
    ask(small({rows}, DType::boolean, 6));  // has every sequence ended?
  }

  const OpTrace& trace_;
  const ModelDescription& model_;
  const TrainingDescription& how_;
  const InferenceDescription& inference_;
  std::vector<std::int64_t> written_;
  std::vector<StepRange> tokens_;  ///< records of each that is written, step by step
  Eager eager_;
  families::Batch batch_;
  Tensor ids_;
  std::unique_ptr<families::Family> family_;
};

void check_inference(const ModelDescription& model, const TrainingDescription& how) {
  check_model(model);
  if (model.family == ModelFamily::gpt2 && model.key_value_count() != model.heads)
    throw UserError("model.key_value_heads: family gpt2 has keys for each head, but under Megatron-LM");
  const std::int64_t new_tokens = how.inference->new_tokens;
  if (new_tokens > 0 && !families::sees_backwards(model))
    throw UserError("inference.new_tokens: the network generates no text; leave it out for one forward pass");
  if (new_tokens > 0 && model.plain.value_or(false))
    throw UserError(
        "inference.new_tokens: generate() is Transformers', and a network written out in PyTorch (model.code: plain) "
        "has none; leave it out for one forward pass");
  const std::int64_t longest = how.sequence_length + new_tokens;
  check_window(model, longest);
  if (model.has_position_table() && longest > model.max_positions)
    throw UserError(
        fmt::format("inference: {} tokens of prompt and {} new ones are more than the {} positions of the model "
                    "(model.max_positions)",
                    how.sequence_length, new_tokens, model.max_positions));
}

std::vector<std::int64_t> tokens_up_to(std::int64_t end) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(end));
  std::iota(tokens.begin(), tokens.end(), std::int64_t{0});
  return tokens;
}

/// The loop of the tokens behind the first of `trace`; null where that is not what the last of those does.
std::shared_ptr<const TokenLoop> token_loop(const OpTrace& trace, const InferenceLoop& loop,
                                            const ModelDescription& model, const TrainingDescription& training,
                                            AttentionChoice attention) {
  std::vector<std::int64_t> ends{training.inference->new_tokens};
  for (int i = 0; i < kMostTries; ++i) {
    std::vector<std::int64_t> written = tokens_up_to(kFirstTokens);
    for (const std::int64_t token : tokens_to_read(kFirstTokens, ends)) written.push_back(token);
    OpTrace samples;
    std::vector<SampledToken> sampled;
    {
      InferenceLoop run(samples, model, training, attention, written);
      run.step();
      run.finish();
      for (std::size_t k = kFirstTokens; k < written.size(); ++k)
        sampled.push_back({written[k], run.places_of(k).front()});
    }
    std::vector<std::size_t> wrong;
    std::optional<TokenLoop> made =
        read_token_loop(trace, loop.places_of(kFirstTokens - 1), samples, sampled, kFirstTokens, ends, wrong);
    if (!made) return nullptr;
    if (wrong.empty()) return std::make_shared<const TokenLoop>(std::move(*made));
    for (auto piece = wrong.rbegin(); piece != wrong.rend(); ++piece) {
      const std::int64_t begin = *piece == 0 ? kFirstTokens : ends[*piece - 1];
      const std::int64_t middle = begin + (ends[*piece] - begin) / 2;
      if (middle > begin) ends.insert(ends.begin() + static_cast<std::ptrdiff_t>(*piece), middle);
    }
  }
  return nullptr;
}

}  // namespace

OpTrace inference_run(const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention,
                      int steps, Tokens tokens) {
  check_inference(model, training);
  ModelDescription evaluated = model;  // nothing is dropped outside training
  evaluated.dropout = evaluated.attention_dropout = 0.0;
  evaluated.composition = without_dropout(model.composition);
  const InferenceDescription& inference = *training.inference;
  // Zeros of a static cache stay in the L2 until a token long after them: what a loop does not see.
  const bool looped =
      tokens == Tokens::looped && inference.new_tokens > kFewTokens && inference.cache != KeyValueCache::fixed;
  OpTrace trace;
  {
    InferenceLoop loop(trace, evaluated, training, attention,
                       tokens_up_to(looped ? kFirstTokens : inference.new_tokens));
    for (int i = 0; i < steps; ++i) loop.step();
    loop.finish();
    trace.parameters = loop.parameter_count();
    trace.parameter_tensors = loop.parameter_tensors();
    trace.generates = inference.new_tokens > 0;
    if (looped) trace.tokens = token_loop(trace, loop, evaluated, training, attention);
  }
  if (looped && trace.tokens == nullptr) return inference_run(model, training, attention, steps, Tokens::written_out);
  constexpr double kForwardShare = 1.0 / 3.0;  // of a training step's FLOPs
  trace.model_flops =
      kForwardShare * model_flops(model, training.micro_batch,
                                  training.sequence_length + std::max<std::int64_t>(inference.new_tokens - 1, 0));
  // Generation needs logits of the last token of each pass only: of no other token of the prompt.
  if (inference.new_tokens > 0)
    trace.model_flops -= 2.0 * static_cast<double>(training.micro_batch) *
                         static_cast<double>(training.sequence_length - 1) * static_cast<double>(model.hidden) *
                         static_cast<double>(model.vocabulary);
  if (inference.weights != FrozenWeights::as_stored)
    trace.notes.push_back(
        "weights in few bits: their kernels take as long as their bytes; head and embeddings stay in 16 bits");
  if (model.sparse_weights) trace.notes.push_back(kSparseWeightsNote);
  if (inference.cache == KeyValueCache::fixed && inference.new_tokens > 0 && inference.compiled == CompiledUse::none)
    trace.notes.push_back(
        "static cache: run eagerly, without the compilation that Transformers adds to it (inference.compile)");
  return trace;
}

}  // namespace ridgeline
