// What a program's signs do with tensors, and its attention by the backend of the training.
#include <fmt/format.h>

#include "sim/workload/aten/formula.h"
#include "sim/workload/aten/safe_attention.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/transformers_code.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {

namespace aten = eager::aten;
namespace f = families;

ProgramValue ProgramNetwork::tensor_operation(const Expression& e, const ProgramValue& a, const ProgramValue& b) {
  const auto* x = std::get_if<Tensor>(&a);
  const auto* y = std::get_if<Tensor>(&b);
  eager_.recorder.host(HostClass::pointwise);
  if (e.kind == Expression::Kind::negative) return aten::negate(eager_, *x);
  const bool number = x == nullptr ? a.index() == 1 || a.index() == 2 : b.index() == 1 || b.index() == 2;
  if (x == nullptr && number && (e.text == "+" || e.text == "*"))
    return e.text == "+" ? aten::add_number(eager_, *y) : aten::scale(eager_, *y);
  if (x != nullptr && number && y == nullptr) {
    if (e.text == "+" || e.text == "-") return aten::add_number(eager_, *x);
    if (e.text == "*") return aten::scale(eager_, *x);
    if (e.text == "/") return aten::divide(eager_, *x);
    const auto* power = std::get_if<std::int64_t>(&b);
    if (e.text == "**" && power != nullptr && *power == 2) return aten::square(eager_, *x);
    if (e.text == "**" && power != nullptr && *power == 3) return aten::cube(eager_, *x);
  }
  if (x != nullptr && y != nullptr) {
    const int shorter = std::min(x->sizes.rank(), y->sizes.rank());
    for (int i = 0; i < shorter; ++i)
      if (e.text != "@" && x->sizes.last(i) != y->sizes.last(i) && x->sizes.last(i) != 1 && y->sizes.last(i) != 1)
        fail(e.place, fmt::format("tensors {} and {} do not fit", text_of(x->sizes), text_of(y->sizes)));
    if (e.text == "+") return aten::add(eager_, *x, *y);
    if (e.text == "-" && !y->requires_gradient()) return aten::add(eager_, *x, *y);
    if (e.text == "*") return aten::mul(eager_, *x, *y);
    if (e.text == "/" && !y->requires_gradient()) return aten::divide_by(eager_, *x, *y);
    static const aten::Derivative kOfQuotient("divide(grad, other); scale(mul(grad, divide(result, other)))");
    if (e.text == "/") return aten::apply(eager_, PointwiseFunction::divide, kOfQuotient, *x, y);
  }
  fail(e.place, fmt::format("{} {} {} is not modelled; there are tensor + tensor, tensor * tensor, tensor * number, "
                            "tensor ** 2, matmul(x, y)",
                            kind_of(a), e.text, kind_of(b)));
}

Tensor ProgramNetwork::attended(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double dropped,
                                const Tensor& mask) {
  const std::int64_t times = q.sizes[1] / k.sizes[1];
  if (attention_ == AttentionChoice::eager) {
    const Tensor every_k = f::repeated(eager_, k, times), every_v = f::repeated(eager_, v, times);
    Tensor scores = f::scale(eager_, f::matmul(eager_, q, f::transpose(eager_, every_k, 2, 3)));
    if (causal) {
      const Tensor hidden = f::causal_mask(eager_, scores.type, 1, q.sizes[2], k.sizes[2]);
      scores = f::add(eager_, scores, hidden);
    }
    if (mask.defined()) scores = f::add(eager_, scores, mask);
    scores = f::dropout(eager_, f::softmax(eager_, scores), dropped);
    return f::matmul(eager_, scores, every_v);
  }
  AttentionChoice choice = attention_;
  if (mask.defined() && choice == AttentionChoice::flash) choice = AttentionChoice::efficient;
  // No fused backend gives a mask's gradient, and memory-efficient attention takes no grouped keys.
  if ((mask.defined() && mask.requires_gradient()) ||
      (choice == AttentionChoice::efficient && times > 1 && !mask.defined()))
    choice = AttentionChoice::math;
  const bool repeats = times > 1 && (mask.defined() || choice == AttentionChoice::math);
  const Tensor every_k = repeats ? f::repeated(eager_, k, times) : k,
               every_v = repeats ? f::repeated(eager_, v, times) : v;
  eager_.recorder.host(choice == AttentionChoice::cudnn ? HostClass::attention_cudnn : HostClass::attention_fused);
  const Tensor lowered = mask.defined() ? eager_.autocast.lowered(eager_, mask) : Tensor{};
  const Tensor value = eager_.autocast.lowered(eager_, every_v), key = eager_.autocast.lowered(eager_, every_k),
               query = eager_.autocast.lowered(eager_, q);
  if (choice == AttentionChoice::math)
    return aten::safe_attention(eager_, query, key, value, lowered, causal, dropped > 0.0);
  return aten::fused_attention(eager_, aten::backend_of(choice), query, key, value, causal, dropped > 0.0, lowered);
}

}  // namespace ridgeline::networks
