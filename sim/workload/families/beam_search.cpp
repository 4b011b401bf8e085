#include "sim/workload/families/beam_search.h"

#include <utility>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/softmax.h"

namespace ridgeline::families {

namespace aten = eager::aten;

namespace {

/// Candidates that are looked at, for each that goes on: with one end token or none.
constexpr std::int64_t kLookedAt = 2;

}  // namespace

BeamSearch::BeamSearch(eager::Eager& eager, std::int64_t sequences, std::int64_t beams, std::int64_t prompt,
                       std::int64_t longest, std::int64_t vocabulary)
    : eager_(eager), sequences_(sequences), beams_(beams), kept_(kLookedAt * beams), vocabulary_(vocabulary) {
  running_ = small({sequences, beams, longest}, DType::int64, 1);
  small({sequences, beams, prompt}, DType::int64);  // the prompt goes in
  finished_ = small({sequences, beams, longest}, DType::int64);
  scores_ = small({sequences, beams}, DType::fp32, 2);
  finished_scores_ = small({sequences, beams}, DType::fp32);
  is_finished_ = small({sequences, beams}, DType::boolean);
  improves_ = small({sequences, 1}, DType::boolean);
  running_places_ = small({sequences, beams, longest - prompt}, DType::int32);
  finished_places_ = small({sequences, beams, longest - prompt}, DType::int32);
}

eager::Tensor small_kernels(eager::Eager& eager, const eager::Dims& sizes, DType type, int count) {
  eager.recorder.host(HostClass::pointwise, count);
  eager::Tensor result;
  for (int i = 0; i < count; ++i) {
    eager::Tensor next = eager.empty(sizes, type);
    if (result.defined()) aten::pointwise(eager, PointwiseFunction::other, {&result}, next);
    else aten::pointwise(eager, PointwiseFunction::other, {}, next);
    result = std::move(next);
  }
  return result;
}

eager::Tensor BeamSearch::gathered(const Tensor& from, std::int64_t rows) {
  eager_.recorder.host(HostClass::pointwise);
  Dims sizes = from.sizes;
  sizes[1] = rows;
  Tensor result = eager_.empty(sizes, from.type);
  Tensor read = from;  // the rows that are chosen
  read.sizes = sizes;
  aten::pointwise(eager_, PointwiseFunction::other, {&read}, result);
  return result;
}

eager::Tensor BeamSearch::joined(const Tensor& one, const Tensor& other) {
  eager_.recorder.host(HostClass::concatenate);
  Dims sizes = one.sizes;
  sizes[1] += other.sizes[1];
  Tensor result = eager_.empty(sizes, one.type);
  eager_.recorder.op(Copy{CopyKind::concatenate, one.type, sizes[0], result.elements() / sizes[0] / 2, 2},
                     {&one, &other}, {&result});
  return result;
}

std::pair<eager::Tensor, eager::Tensor> BeamSearch::largest(const Tensor& of, std::int64_t rows, std::int64_t cols,
                                                            std::int64_t kept) {
  eager_.recorder.host(HostClass::pointwise);
  Tensor values = eager_.empty({rows, kept}, DType::fp32), places = eager_.empty({rows, kept}, DType::int64);
  eager_.recorder.op(Sort{DType::fp32, rows, cols, kept, 0}, {&of}, {&values, &places});
  return {std::move(values), std::move(places)};
}

eager::Tensor BeamSearch::flat(std::int64_t tokens) { return small({sequences_ * beams_, tokens}, DType::int64); }

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.
void BeamSearch::take(Tensor& logits) {
  const std::int64_t rows = sequences_ * beams_;
  using F = PointwiseFunction;
  Tensor best, candidates, places;
  {
    Tensor wide = eager_.empty({rows, vocabulary_}, DType::fp32);
    eager_.recorder.host(HostClass::pointwise);
    aten::pointwise(eager_, F::cast, {&logits}, wide);
    eager_.recorder.host(HostClass::pointwise, 2);
    Tensor log_probabilities = aten::log_softmax(eager_, wide);
    logits = Tensor{};
    Tensor summed = eager_.empty({sequences_, beams_, vocabulary_}, DType::fp32);
    aten::pointwise(eager_, F::add, {&log_probabilities, &scores_}, summed);
    log_probabilities = std::move(summed);
    const auto [values, at] = largest(log_probabilities, sequences_, beams_ * vocabulary_, kept_);
    best = values;
    const Tensor beam = small({sequences_, kept_}, DType::int64);  // quotient by the vocabulary
    places = gathered(running_places_, kept_);
    candidates = gathered(running_, kept_);
    const Tensor tokens = small({sequences_, kept_}, DType::int64);  // remainder
    small({sequences_, kept_}, DType::int64);                        // into the column of the new token
    const Tensor offsets = small({sequences_, 1}, DType::int64, 2), sums = small({sequences_, kept_}, DType::int64);
    small({sequences_, kept_}, DType::int32);
  }
  // Stopping criteria look at the length: a flat copy and three kernels.
  small({sequences_ * kept_, 1}, DType::int64);
  hits_ = small({sequences_ * kept_}, DType::boolean, 3);
  {
    const Tensor limited = small({sequences_, kept_}, DType::fp32, 3);
    const auto [values, next] = largest(limited, sequences_, kept_, beams_);
    running_ = gathered(candidates, beams_);
    scores_ = gathered(limited, beams_);
    running_places_ = gathered(places, beams_);
  }
  const Tensor just_finished = small({sequences_, kept_}, DType::boolean);
  best = small({sequences_, kept_}, DType::fp32);
  small({sequences_, 1}, DType::boolean, 2);
  constexpr int kPenalties = 9;  // where all have ended, where nothing improves, where a candidate runs on
  best = small({sequences_, kept_}, DType::fp32, kPenalties);
  const Tensor all = joined(finished_, candidates), all_scores = joined(finished_scores_, best),
               all_places = joined(finished_places_, places), all_ended = joined(is_finished_, just_finished);
  const auto [values, chosen] = largest(all_scores, sequences_, kept_ + beams_, beams_);
  finished_ = gathered(all, beams_);
  finished_scores_ = gathered(all_scores, beams_);
  finished_places_ = gathered(all_places, beams_);
  is_finished_ = gathered(all_ended, beams_);
  small({sequences_ * beams_}, DType::int32);  // whose keys and values go on
}

void BeamSearch::finish_token() {
  constexpr int kHeuristic = 6, kQuestion = 8;
  improves_ = small({sequences_, 1}, DType::boolean, kHeuristic);
  const Tensor answer = small({}, DType::boolean, kQuestion);
  eager_.recorder.op(Copy{CopyKind::device_to_host, answer.type, 1, 1, 1}, {&answer}, {});
  eager_.recorder.wait_for_gpu();
}

}  // namespace ridgeline::families
