// Which experts a token goes to, and how much of what each gives is taken.
#include <array>

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/regroup.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

namespace {

using Function = PointwiseFunction;

/// The largest of each row, with its place.
struct Largest {
  Tensor value, place;
};
Largest largest_of(Eager& eager, const Tensor& x) {
  Largest result{eager.empty({x.sizes[0], 1}, x.type), eager.empty({x.sizes[0], 1}, DType::int64)};
  eager.recorder.op(Reduction{ReductionKind::sum_cols, x.type, x.sizes[0], x.sizes[1]}, {&x}, {&result.value});
  return result;
}

/// What PhiMoE's router multiplies with: the gradient goes to the scores themselves, all of them and the chosen.
struct MixerBackward final : eager::Node {
  MixerBackward() : Node(HostClass::pointwise_backward) {}
  eager::SavedTensor gates, places, multiplier;
  void backward(Eager& eager, eager::Gradients& in, eager::Gradients& out) override {
    const Tensor factor = multiplier.unpack(eager), all = gates.unpack(eager), index = places.unpack(eager);
    const Tensor gradient = aten::mul(eager, in[0], factor);
    const Tensor negative = aten::negate(eager, gradient);
    out[0] = aten::mul(eager, all, negative);
    aten::pointwise(eager, Function::gather, {&index, &gradient}, gradient);  // added where each was chosen
  }
  void release() override {
    gates.release();
    places.release();
    multiplier.release();
  }
};

}  // namespace

// By hand the router reads what is whole on every rank, and gradients of its shares are added up. A module of DTensors
// has gathered its input: the router's gradient is added up with those of experts, that of its weight at the end.
void StackNetwork::route_entered(const ExpertWeights& weights, const Tensor& rows, const Tensor& before, Tensor& chosen,
                                 Tensor& share) {
  SplitLayers& split = site_.split;
  if (!split.several() || split.dtensor()) return route(weights, rows, chosen, share);
  route(weights, view(eager_, before, rows.sizes), chosen, share);
  share = split.enter_whole(share);
}

void StackNetwork::route(const ExpertWeights& weights, const Tensor& rows, Tensor& chosen, Tensor& share) {
  Tensor scores;
  if (s_.router_fp32) {
    eager_.recorder.host(HostClass::cast, 2);
    eager_.recorder.host(HostClass::linear);
    const Tensor weight = aten::to(eager_, weights.router.weight->value, DType::fp32);
    scores = aten::linear(eager_, aten::to(eager_, rows, DType::fp32), weight, nullptr);
  } else {
    scores = linear(eager_, rows, weights.router);
  }
  if (s_.router == RouterKind::sparse_mixer) route_by_mixing(scores, chosen, share);
  else if (s_.router == RouterKind::sigmoid) route_by_sigmoid(scores, chosen, share);
  else route_by_softmax(scores, chosen, share);
}

void StackNetwork::route_by_softmax(const Tensor& scores, Tensor& chosen, Tensor& share) {
  const std::int64_t tokens = scores.sizes[0], kept = s_.experts_per_token;
  const Tensor probabilities = scores.type == DType::fp16 ? softmax_of_fp16(eager_, scores)
                                                          : softmax(eager_, aten::to(eager_, scores, DType::fp32));
  eager_.recorder.host(HostClass::pointwise, s_.router_correction ? 5 : 4);
  const Tensor corrected =
      s_.router_correction ? aten::plain(eager_, Function::add, scores.sizes, DType::fp32, {&probabilities}) : Tensor{};
  chosen = eager_.empty({tokens, kept}, DType::int64);
  share = aten::slice_last(eager_, probabilities, kept);
  const Tensor best = eager_.empty({tokens, kept}, DType::fp32);
  eager_.recorder.op(Sort{DType::fp32, tokens, s_.experts, kept, 0},
                     {corrected.defined() ? &corrected : &probabilities}, {&best, &chosen});
  share = aten::scale(eager_, share);
}

void StackNetwork::route_by_sigmoid(const Tensor& scores, Tensor& chosen, Tensor& share) {
  const std::int64_t tokens = scores.sizes[0], kept = s_.experts_per_token;
  eager_.recorder.host(HostClass::pointwise, 7);
  const Tensor each = aten::sigmoid(eager_, aten::to(eager_, scores, DType::fp32));
  const Tensor corrected = aten::plain(eager_, Function::add, scores.sizes, DType::fp32, {&each});
  chosen = eager_.empty({tokens, kept}, DType::int64);
  const Tensor best = eager_.empty({tokens, kept}, DType::fp32);
  eager_.recorder.op(Sort{DType::fp32, tokens, s_.experts, kept, 0}, {&corrected}, {&best, &chosen});
  // A gather: its gradient fills zeros and writes what was chosen, as that of a slice.
  aten::plain(eager_, Function::gather, {tokens, kept}, DType::fp32, {&chosen});
  const Tensor picked = aten::slice_last(eager_, each, kept);
  const Tensor sum = eager_.empty({tokens, 1}, DType::fp32);
  eager_.recorder.op(Reduction{ReductionKind::sum_cols, DType::fp32, tokens, kept}, {&picked}, {&sum});
  share = aten::divide_by(eager_, picked, sum);
}

// One expert after another is drawn by chance among those whose score is near the largest (sparsemixer of
// Transformers' modeling_phimoe.py, in training).
void StackNetwork::route_by_mixing(const Tensor& scores, Tensor& chosen, Tensor& share) {
  const Dims all = scores.sizes, one{all[0], 1};
  const DType type = scores.type;
  const Tensor seen = scores.detached();
  std::array<Tensor, 2> factors, places;
  const auto plain = [&](Function function, const Dims& sizes, DType of, std::initializer_list<const Tensor*> from) {
    return aten::plain(eager_, function, sizes, of, from);
  };
  const auto draw = [&](const Tensor& among, std::size_t turn) {
    eager_.recorder.host(HostClass::pointwise, 22);
    Tensor far;
    {
      const Tensor best = largest_of(eager_, among).value, size = plain(Function::other, all, type, {&seen}),
                   factor = plain(Function::clamp, all, type, {&size, &best}),
                   below = plain(Function::add, all, type, {&best, &seen}),
                   distance = plain(Function::divide, all, type, {&below, &factor});
      far = plain(Function::equal, all, DType::boolean, {&distance});
    }
    Tensor gates = aten::masked_fill(eager_, among, far);
    {
      const Tensor random = plain(Function::other, all, type, {}), noise = plain(Function::other, all, type, {&random}),
                   sum = plain(Function::add, all, type, {&gates, &noise});
      places[turn] = largest_of(eager_, sum).place;
    }
    gates = aten::softmax(eager_, gates, eager_.autocast.on() ? DType::fp32 : type);
    const Tensor picked = plain(Function::gather, one, gates.type, {&places[turn]});
    Tensor mask;
    {
      const Largest best = largest_of(eager_, gates);
      const Tensor same = plain(Function::equal, one, DType::boolean, {&places[turn], &best.place});
      Tensor random = plain(Function::other, one, gates.type, {});
      if (turn == 1) random = plain(Function::other, one, gates.type, {});  // drawn twice
      const Tensor above = plain(Function::equal, one, DType::boolean, {&random}),
                   either = plain(Function::other, one, DType::boolean, {&same, &above}),
                   weight = plain(Function::add, one, DType::fp32, {&either});
      mask = aten::to(eager_, weight, gates.type);
    }
    auto* node = eager_.needs_node({&scores}) ? &eager_.node<MixerBackward>({&scores}) : nullptr;
    if (node != nullptr) {
      node->multiplier = eager_.save(picked);
      node->places = eager_.save(places[turn]);
      node->gates = eager_.save(gates);
    }
    factors[turn] = plain(Function::mul, one, gates.type, {&picked, &mask});
    if (node != nullptr) Eager::attach(factors[turn], *node);
  };
  draw(seen, 0);
  {
    // The first expert is taken out, in a copy.
    eager_.recorder.host(HostClass::pointwise, 2);
    const Tensor others = aten::copied(eager_, seen);
    const Tensor hidden = plain(Function::gather, one, type, {&places[0]});  // a number written where it was chosen
    draw(others, 1);
  }
  eager_.recorder.host(HostClass::concatenate, 2);
  share = aten::join(eager_, {&factors[0], &factors[1]});
  chosen = aten::join(eager_, {&places[0], &places[1]});
}

}  // namespace ridgeline::families
