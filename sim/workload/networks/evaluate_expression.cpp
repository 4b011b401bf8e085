#include "sim/workload/networks/evaluate_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ridgeline::networks {
namespace {

constexpr double kExact = 9e15;  ///< whole numbers are exact up to there
constexpr std::array<std::string_view, 7> kNumberFunctions{"range", "len", "min", "max", "int", "sum", "round"};

bool is_tensor(const ProgramValue& value) { return std::holds_alternative<Tensor>(value); }
bool is_number(const ProgramValue& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}
double real_of(const ProgramValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}
std::shared_ptr<ProgramList> list_of(std::vector<ProgramValue> items) {
  return std::make_shared<ProgramList>(ProgramList{std::move(items)});
}
std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

/// Sizes alone: nothing else has a value yet.
class SizeEvaluator final : public ExpressionEvaluator {
 public:
  SizeEvaluator(const NetworkProgram& program, const std::vector<ProgramValue>& sizes)
      : ExpressionEvaluator(program), sizes_(sizes) {}

 protected:
  ProgramValue value_of(const Expression& name) override {
    if (name.scope == NameScope::local && static_cast<std::size_t>(name.slot) < variables_.size())
      return variables_[static_cast<std::size_t>(name.slot)];
    if (name.scope != NameScope::size) fail(name.place, fmt::format("'{}' has no value here", name.text));
    return sizes_[static_cast<std::size_t>(name.slot)];
  }
  void set_variable(const Expression& each, ProgramValue value) override {
    const auto slot = static_cast<std::size_t>(each.slot);
    if (variables_.size() <= slot) variables_.resize(slot + 1);
    variables_[slot] = std::move(value);
  }

 private:
  const std::vector<ProgramValue>& sizes_;
  std::vector<ProgramValue> variables_;
};

}  // namespace

bool is_number_function(const std::string& name) {
  return std::find(kNumberFunctions.begin(), kNumberFunctions.end(), name) != kNumberFunctions.end();
}

std::vector<ProgramValue> evaluate_sizes(const NetworkProgram& program, std::vector<ProgramValue> given) {
  SizeEvaluator evaluator(program, given);
  for (std::size_t i = 0; i < program.sizes.size(); ++i)
    if (std::holds_alternative<std::monostate>(given[i]) && !program.sizes[i].otherwise.empty())
      given[i] = evaluator.evaluate(program.sizes[i].otherwise.front());
  return given;
}

ProgramValue ExpressionEvaluator::evaluate(const Expression& e) {
  switch (e.kind) {
    case Expression::Kind::whole: return e.whole;
    case Expression::Kind::real: return e.real;
    case Expression::Kind::flag: return e.whole != 0;
    case Expression::Kind::none: return {};
    case Expression::Kind::text: return e.text;
    case Expression::Kind::name: return value_of(e);
    case Expression::Kind::each: return each(e);
    case Expression::Kind::index: return element(e);
    case Expression::Kind::part: return part(e);
    case Expression::Kind::member: return member(e);
    case Expression::Kind::binary: return binary(e);
    case Expression::Kind::inverse: return !is_true(evaluate(e.items[0]));
    case Expression::Kind::choice: return evaluate(e.items[is_true(evaluate(e.items[1])) ? 0 : 2]);
    case Expression::Kind::list: {
      std::vector<ProgramValue> items;
      for (const Expression& item : e.items) items.push_back(evaluate(item));
      return list_of(std::move(items));
    }
    case Expression::Kind::negative: {
      const ProgramValue value = evaluate(e.items[0]);
      if (is_tensor(value)) return tensor_operation(e, value, {});
      if (const auto* whole = std::get_if<std::int64_t>(&value)) return -*whole;
      if (!is_number(value)) fail(e.place, fmt::format("minus {}", kind_of(value)));
      return -real_of(value);
    }
    case Expression::Kind::call:
      if (e.items[0].kind == Expression::Kind::name && e.items[0].scope == NameScope::unresolved &&
          is_number_function(e.items[0].text))
        return number_function(e);
      return call(e);
  }
  return {};
}

std::int64_t ExpressionEvaluator::whole(const Expression& e) {
  const ProgramValue value = evaluate(e);
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (whole == nullptr) fail(e.place, fmt::format("{}; expected a whole number", kind_of(value)));
  return *whole;
}

ProgramValue ExpressionEvaluator::call(const Expression& call) {
  fail(call.place, fmt::format("'{}' has no value here: sizes are made of numbers", call.items[0].text));
}
ProgramValue ExpressionEvaluator::member(const Expression& e) {
  fail(e.place, fmt::format("'.{}' is of a module, and sizes have none", e.text));
}
void ExpressionEvaluator::set_variable(const Expression& each, ProgramValue) { fail(each.place, "no variables here"); }
ProgramValue ExpressionEvaluator::tensor_operation(const Expression& e, const ProgramValue&, const ProgramValue&) {
  fail(e.place, "no tensors here");
}

ProgramValue ExpressionEvaluator::each(const Expression& e) {
  const ProgramValue through = evaluate(e.items[1]);
  const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&through);
  if (list == nullptr) fail(e.items[1].place, fmt::format("{}; expected a list or range(n)", kind_of(through)));
  std::vector<ProgramValue> items;
  for (const ProgramValue& item : (*list)->items) {
    set_variable(e, item);
    items.push_back(evaluate(e.items[0]));
  }
  return list_of(std::move(items));
}

ProgramValue ExpressionEvaluator::element(const Expression& e) {
  const ProgramValue list = evaluate(e.items[0]);
  const std::int64_t given = whole(e.items[1]);
  const auto pick = [&](std::size_t count) {
    const std::int64_t at = given < 0 ? given + static_cast<std::int64_t>(count) : given;
    if (at < 0 || at >= static_cast<std::int64_t>(count))
      fail(e.place, fmt::format("number {} of a list of {}", given, count));
    return static_cast<std::size_t>(at);
  };
  if (const auto* items = std::get_if<std::shared_ptr<ProgramList>>(&list))
    return (*items)->items[pick((*items)->items.size())];
  if (const auto* module = std::get_if<ProgramModule*>(&list); module != nullptr && (*module)->block == nullptr)
    return (*module)->parts[pick((*module)->parts.size())].get();
  fail(e.place, fmt::format("{} has no elements", kind_of(list)));
}

ProgramValue ExpressionEvaluator::part(const Expression& e) {
  const ProgramValue all = evaluate(e.items[0]);
  const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&all);
  if (list == nullptr) fail(e.place, fmt::format("{} has no parts", kind_of(all)));
  const auto count = static_cast<std::int64_t>((*list)->items.size());
  const auto bound = [&](const Expression& given, std::int64_t otherwise) {
    if (given.kind == Expression::Kind::none) return otherwise;
    const std::int64_t at = whole(given);
    return std::clamp<std::int64_t>(at < 0 ? at + count : at, 0, count);
  };
  const std::int64_t first = bound(e.items[1], 0), last = std::max(first, bound(e.items[2], count));
  return list_of({(*list)->items.begin() + first, (*list)->items.begin() + last});
}

ProgramValue ExpressionEvaluator::binary(const Expression& e) {
  ProgramValue b;  // given up behind a, as Python does
  ProgramValue a = evaluate(e.items[0]);
  if (e.text == "and") return is_true(a) ? evaluate(e.items[1]) : a;
  if (e.text == "or") return is_true(a) ? a : evaluate(e.items[1]);
  b = evaluate(e.items[1]);
  if (is_tensor(a) || is_tensor(b)) return tensor_operation(e, a, b);
  if (is_number(a) && is_number(b)) return arithmetic(e, a, b);
  if (e.text == "==" || e.text == "!=") {
    const auto* first = std::get_if<std::string>(&a);
    const auto* second = std::get_if<std::string>(&b);
    const bool texts = first != nullptr && second != nullptr && *first == *second;
    const bool flags = std::holds_alternative<bool>(a) && std::holds_alternative<bool>(b) && is_true(a) == is_true(b);
    const bool nothing = std::holds_alternative<std::monostate>(a) && std::holds_alternative<std::monostate>(b);
    return (texts || flags || nothing) == (e.text == "==");
  }
  const auto* left = std::get_if<std::shared_ptr<ProgramList>>(&a);
  const auto* right = std::get_if<std::shared_ptr<ProgramList>>(&b);
  if (e.text == "+" && left != nullptr && right != nullptr) {
    std::vector<ProgramValue> all = (*left)->items;
    all.insert(all.end(), (*right)->items.begin(), (*right)->items.end());
    return list_of(std::move(all));
  }
  fail(e.place, fmt::format("{} {} {}", kind_of(a), e.text, kind_of(b)));
}

ProgramValue ExpressionEvaluator::arithmetic(const Expression& e, const ProgramValue& a, const ProgramValue& b) {
  const double x = real_of(a), y = real_of(b);
  if (e.text == "==") return x == y;
  if (e.text == "!=") return x != y;
  if (e.text == "<") return x < y;
  if (e.text == "<=") return x <= y;
  if (e.text == ">") return x > y;
  if (e.text == ">=") return x >= y;
  if ((e.text == "/" || e.text == "//" || e.text == "%") && y == 0.0) fail(e.place, "division by zero");
  const auto* m = std::get_if<std::int64_t>(&a);
  const auto* n = std::get_if<std::int64_t>(&b);
  double result = 0.0;
  if (e.text == "+") result = x + y;
  if (e.text == "-") result = x - y;
  if (e.text == "*") result = x * y;
  if (e.text == "/") result = x / y;
  if (e.text == "//") result = std::floor(x / y);
  if (e.text == "%") result = x - std::floor(x / y) * y;
  if (e.text == "**") result = std::pow(x, y);
  if (!(std::abs(result) <= kExact)) fail(e.place, fmt::format("{:g} {} {:g} is too large a number", x, e.text, y));
  if (m == nullptr || n == nullptr || e.text == "/" || (e.text == "**" && *n < 0)) return result;
  if (e.text == "//") return floor_of(*m, *n);
  if (e.text == "%") return *m - floor_of(*m, *n) * *n;
  return static_cast<std::int64_t>(std::llround(result));
}

ProgramValue ExpressionEvaluator::number_function(const Expression& e) {
  const std::string& name = e.items[0].text;
  std::vector<ProgramValue> values;
  for (std::size_t i = 1; i < e.items.size(); ++i) values.push_back(evaluate(e.items[i]));
  const auto wrong = [&](std::string_view expected) { fail(e.place, fmt::format("{}: expected {}", name, expected)); };
  if (values.empty()) wrong("an argument");
  if (name == "range") {
    std::vector<std::int64_t> bounds;
    for (const ProgramValue& value : values) {
      if (!std::holds_alternative<std::int64_t>(value)) wrong("whole numbers");
      bounds.push_back(std::get<std::int64_t>(value));
    }
    const std::int64_t first = bounds.size() > 1 ? bounds[0] : 0, last = bounds.size() > 1 ? bounds[1] : bounds[0];
    constexpr std::int64_t kMost = 100000;
    if (bounds.size() > 2 || last - first > kMost)
      wrong(fmt::format("range(n) or range(first, n) of up to {} numbers", kMost));
    std::vector<ProgramValue> items;
    for (std::int64_t i = first; i < last; ++i) items.emplace_back(i);
    return list_of(std::move(items));
  }
  const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&values.front());
  if (name == "len") {
    const auto* module = std::get_if<ProgramModule*>(&values.front());
    if (module != nullptr && (*module)->block == nullptr) return static_cast<std::int64_t>((*module)->parts.size());
    if (list == nullptr) wrong("a list");
    return static_cast<std::int64_t>((*list)->items.size());
  }
  const std::vector<ProgramValue> items = list != nullptr ? (*list)->items : values;
  for (const ProgramValue& item : items)
    if (!is_number(item)) wrong("numbers");
  if (name == "int" || name == "round") {
    if (items.size() != 1 || !(std::abs(real_of(items[0])) < kExact)) wrong("one number below 9e15");
    return static_cast<std::int64_t>(name == "int" ? std::trunc(real_of(items[0])) : std::nearbyint(real_of(items[0])));
  }
  if (items.empty()) {
    if (name != "sum") wrong("numbers");
    return std::int64_t{0};
  }
  if (name == "sum") {
    const bool whole = std::all_of(items.begin(), items.end(), [](const auto& i) { return i.index() == 1; });
    double total = 0.0;
    for (const ProgramValue& item : items) total += real_of(item);
    if (whole) return static_cast<std::int64_t>(total);
    return total;
  }
  const auto less = [](const ProgramValue& a, const ProgramValue& b) { return real_of(a) < real_of(b); };
  return name == "min" ? *std::min_element(items.begin(), items.end(), less)
                       : *std::max_element(items.begin(), items.end(), less);
}

}  // namespace ridgeline::networks
