#include "sim/workload/aten/formula.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/eager/eager.h"
#include "sim/workload/pointwise_functions.h"

namespace ridgeline::eager::aten {
namespace {

using Read = Formula::Read;
constexpr std::size_t kSaved = 3;
constexpr std::array<std::string_view, 4> kReads{"other", "self", "result", "grad"};

Formula parse_formula(std::string_view& text) {
  Formula formula;
  const std::string_view word = text.substr(0, text.find_first_of("(),;"));
  text.remove_prefix(word.size());
  if (!text.starts_with('(')) {
    const auto found = std::find(kReads.begin(), kReads.end(), word);
    if (found == kReads.end()) throw std::invalid_argument("no tensor of a gradient: " + std::string(word));
    formula.read = static_cast<Read>(found - kReads.begin());
    return formula;
  }
  formula.kind = word == "copy" ? Formula::Kind::copy : Formula::Kind::kernel;
  if (word != "copy") formula.function = pointwise_function(word);
  while (!text.starts_with(')')) {
    text.remove_prefix(text.starts_with('(') ? 1 : 2);  // "(" or ", "
    formula.arguments.push_back(parse_formula(text));
    if (text.empty()) throw std::invalid_argument("a gradient ends before its )");
  }
  text.remove_prefix(1);
  return formula;
}
const Derivative& derivative_of(PointwiseFunction function) {
  static const std::vector<Derivative> all = [] {
    std::vector<Derivative> made;
    for (const PointwiseRow& row : pointwise_rows()) made.emplace_back(row.gradient);
    return made;
  }();
  return all[static_cast<std::size_t>(function)];
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims result = a.rank() >= b.rank() ? a : b;
  const Dims& shorter = a.rank() >= b.rank() ? b : a;
  for (int i = 0; i < shorter.rank(); ++i) {
    auto& size = result[result.rank() - 1 - i];
    size = std::max(size, shorter.last(i));
  }
  return result;
}

/// One kernel into a fresh tensor. fp32 wins over 16 bits, as a mixed kernel promotes.
Tensor run_kernel(Eager& eager, PointwiseFunction function, std::span<const Tensor* const> operands) {
  const Tensor &a = *operands.front(), &b = *operands.back();
  const DType type = bytes_of(a.type) >= bytes_of(b.type) ? a.type : b.type;
  const Dims sizes = broadcast(a.sizes, b.sizes);
  const Tensor& like = a.sizes == sizes ? a : b;
  // A masked fill is of a clone, which is contiguous.
  const bool contiguous = function == PointwiseFunction::masked_fill || like.sizes != sizes;
  Tensor result = contiguous ? eager.empty(sizes, type) : eager.empty_like(like, type);
  pointwise(eager, function, operands, result);
  return result;
}

/// Temporaries of an expression in C++: arguments are evaluated from the last to the first, and all live until its end.
class Evaluation {
 public:
  Evaluation(Eager& eager, const std::array<Tensor, kSaved>& saved, const Tensor& gradient)
      : eager_(eager), saved_(saved), gradient_(gradient) {}
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;
  ~Evaluation() {
    while (!temporaries_.empty()) temporaries_.pop_back();
  }

  Tensor operator()(const Formula& formula) {
    if (formula.kind == Formula::Kind::read)
      return formula.read == Read::grad ? gradient_ : saved_[static_cast<std::size_t>(formula.read)];
    std::array<Tensor, 3> arguments;
    for (std::size_t i = formula.arguments.size(); i-- > 0;) arguments[i] = (*this)(formula.arguments[i]);
    std::array<const Tensor*, 3> operands{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < formula.arguments.size(); ++i)
      if (arguments[i].defined()) operands[count++] = &arguments[i];  // a number is no operand
    Tensor result;
    if (formula.kind == Formula::Kind::copy) {
      const Tensor& x = arguments.front();
      result = eager_.empty_like(x);
      eager_.recorder.op(Copy{CopyKind::contiguous, x.type, 1, x.elements(), 1}, {&x}, {&result});
    } else {
      result = run_kernel(eager_, formula.function, std::span(operands.data(), count));
    }
    for (std::size_t i = formula.arguments.size(); i-- > 0;)
      if (formula.arguments[i].kind != Formula::Kind::read) temporaries_.push_back(std::move(arguments[i]));
    return result;
  }

 private:
  Eager& eager_;
  const std::array<Tensor, kSaved>& saved_;
  const Tensor& gradient_;
  std::vector<Tensor> temporaries_;
};

struct FormulaBackward final : Node {
  FormulaBackward(const Derivative& of, HostClass host) : Node(host), derivative(of) {}
  const Derivative& derivative;
  std::array<SavedTensor, kSaved> saved;

  [[nodiscard]] bool reads(Read which) const {
    for (int i = 0; i < edge_count; ++i)
      if (needs(i) && derivative.formulas[static_cast<std::size_t>(i)].reads(which)) return true;
    return false;
  }
  void save(Eager& eager, Read which, const Tensor* tensor) {
    if (tensor != nullptr && reads(which)) saved[static_cast<std::size_t>(which)] = eager.save(*tensor);
  }
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    std::array<Tensor, kSaved> tensors;
    for (std::size_t i = 0; i < kSaved; ++i)
      if (saved[i].defined()) tensors[i] = saved[i].unpack(eager);
    for (std::size_t i = edge_count; i-- > 0;)
      if (needs(static_cast<int>(i))) out[i] = Evaluation(eager, tensors, in[0])(derivative.formulas[i]);
  }
  void release() override {
    for (SavedTensor& each : saved) each.release();
  }
};

}  // namespace

bool Formula::reads(Read which) const {
  if (kind == Kind::read) return read == which;
  return std::any_of(arguments.begin(), arguments.end(), [&](const Formula& one) { return one.reads(which); });
}

Derivative::Derivative(std::string_view text) {
  while (!text.empty()) {
    formulas.push_back(parse_formula(text));
    text.remove_prefix(std::min<std::size_t>(2, text.size()));  // "; "
  }
}

Tensor apply(Eager& eager, PointwiseFunction function, const Derivative& derivative, const Tensor& a, const Tensor* b) {
  FormulaBackward* node = nullptr;
  const HostClass host = row_of(function).backward;
  if (b != nullptr && derivative.formulas.size() > 1) {
    if (eager.needs_node({&a, b})) node = &eager.node<FormulaBackward>({&a, b}, derivative, host);
  } else if (!derivative.formulas.empty() && eager.needs_node({&a})) {
    node = &eager.node<FormulaBackward>({&a}, derivative, host);
  }
  if (node != nullptr) {
    node->save(eager, Read::other, b);
    node->save(eager, Read::self, &a);
  }
  const std::array<const Tensor*, 2> operands{&a, b};
  Tensor result = run_kernel(eager, function, std::span(operands.data(), b != nullptr ? 2 : 1));
  if (node != nullptr) {
    node->save(eager, Read::result, &result);
    Eager::attach(result, *node);
  }
  return result;
}

Tensor apply(Eager& eager, PointwiseFunction function, const Tensor& a, const Tensor* b) {
  return apply(eager, function, derivative_of(function), a, b);
}

}  // namespace ridgeline::eager::aten
