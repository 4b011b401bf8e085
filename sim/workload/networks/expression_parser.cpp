#include "sim/workload/networks/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace ridgeline::networks {
namespace {

using Kind = ProgramToken::Kind;

constexpr std::array<std::string_view, 23> kReserved{
    "part", "size",   "input", "target", "block", "network", "for",  "in",    "if",   "else", "elif", "with",
    "del",  "return", "and",   "or",     "not",   "length",  "True", "False", "None", "true", "false"};

/// Operators of two operands, from the loosest to the tightest.
constexpr std::array<std::array<std::string_view, 6>, 5> kLevels{
    {{"or"}, {"and"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "//", "%", "@"}}};

bool reserved(std::string_view word) {
  return word != "length" && word != "size" && std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end();
}

Expression made(Expression::Kind kind, ProgramPlace place, std::vector<Expression> items, std::string text = "") {
  Expression result;
  result.kind = kind;
  result.place = place;
  result.items = std::move(items);
  result.text = std::move(text);
  return result;
}

/// Evaluation goes as deep as an expression does.
constexpr int kDeepest = 60, kMostTerms = 60;

}  // namespace

bool ExpressionParser::is(std::string_view text) const {
  return (now().kind == Kind::sign || now().kind == Kind::name) && now().text == text;
}
bool ExpressionParser::take(Kind kind) {
  if (now().kind != kind) return false;
  ++at_;
  return true;
}
bool ExpressionParser::take(std::string_view text) {
  if (!is(text)) return false;
  ++at_;
  return true;
}
std::string ExpressionParser::found() const {
  switch (now().kind) {
    case Kind::line_end: return "the end of the line";
    case Kind::indent: return "an indented line";
    case Kind::dedent: return "a line indented less";
    case Kind::end: return "the end of the file";
    default: return fmt::format("'{}'", now().text);
  }
}
void ExpressionParser::expect(std::string_view text, std::string_view where) {
  if (!take(text)) fail(now().place, fmt::format("expected '{}' {}, found {}", text, where, found()));
}
void ExpressionParser::end_of_line() {
  if (!take(Kind::line_end) && now().kind != Kind::end)
    fail(now().place, fmt::format("expected the end of the line, found {}", found()));
}
std::string ExpressionParser::name(std::string_view what) {
  if (now().kind != Kind::name || reserved(now().text))
    fail(now().place, fmt::format("expected {}, found {}{}", what, found(),
                                  now().kind == Kind::name ? ", a word of the language" : ""));
  return tokens_[at_++].text;
}

std::vector<Expression> ExpressionParser::expressions() {
  std::vector<Expression> result;
  do result.push_back(expression());
  while (take(",") && !is(")") && !is("]"));
  return result;
}

void ExpressionParser::deeper(int& depth, int most) const {
  if (++depth > most) fail(now().place, "an expression of too many parts: give some of them a name");
}

Expression ExpressionParser::expression() {
  deeper(depth_, kDeepest);
  Expression first = level(0);
  if (const ProgramPlace place = now().place; take("if")) {
    Expression condition = level(0);
    expect("else", "and what it is otherwise");
    Expression other = expression();
    first = made(Expression::Kind::choice, place, {std::move(first), std::move(condition), std::move(other)});
  }
  --depth_;
  return first;
}

Expression ExpressionParser::level(std::size_t number) {
  if (number == kLevels.size()) return unary();
  if (number == 2)  // 'not' binds looser than comparisons
    if (const ProgramPlace place = now().place; take("not")) {
      deeper(depth_, kDeepest);
      Expression result = made(Expression::Kind::inverse, place, {level(number)});
      --depth_;
      return result;
    }
  Expression left = level(number + 1);
  for (int terms = 0;;) {
    const auto& signs = kLevels[number];
    const auto* found =
        std::find_if(signs.begin(), signs.end(), [&](std::string_view s) { return !s.empty() && is(s); });
    if (found == signs.end()) return left;
    const ProgramPlace place = now().place;
    deeper(terms, kMostTerms);
    ++at_;
    left = made(Expression::Kind::binary, place, {std::move(left), level(number + 1)}, std::string(*found));
  }
}

Expression ExpressionParser::unary() {
  const ProgramPlace place = now().place;
  deeper(depth_, kDeepest);
  if (take("-")) {
    Expression result = made(Expression::Kind::negative, place, {unary()});
    --depth_;
    return result;
  }
  Expression base = postfix();
  if (const ProgramPlace at = now().place; take("**"))
    base = made(Expression::Kind::binary, at, {std::move(base), unary()}, "**");
  --depth_;
  return base;
}

Expression ExpressionParser::postfix() {
  Expression result = primary();
  for (int terms = 0;; deeper(terms, kMostTerms)) {
    const ProgramPlace place = now().place;
    if (take("(")) {
      Expression call = made(Expression::Kind::call, result.place, {std::move(result)});
      arguments(call);
      result = std::move(call);
    } else if (take("[")) {
      result = element(std::move(result), place);
    } else if (take(".")) {  // x.view(a, b) is view(x, a, b)
      Expression callee = made(Expression::Kind::name, now().place, {}, name("an operation"));
      if (!take("(")) {
        result = made(Expression::Kind::member, callee.place, {std::move(result)}, callee.text);
        continue;
      }
      Expression call = made(Expression::Kind::call, callee.place, {});
      call.items.push_back(std::move(callee));
      call.items.push_back(std::move(result));
      call.keywords.emplace_back();
      arguments(call);
      result = std::move(call);
    } else {
      return result;
    }
  }
}

Expression ExpressionParser::element(Expression of, const ProgramPlace& place) {
  const auto bound = [&] { return is(":") || is("]") ? made(Expression::Kind::none, now().place, {}) : expression(); };
  std::vector<Expression> items{std::move(of), bound()};
  const bool part = take(":");
  if (part) items.push_back(bound());
  expect("]", "behind the number");
  return made(part ? Expression::Kind::part : Expression::Kind::index, place, std::move(items));
}

void ExpressionParser::arguments(Expression& call) {
  while (!is(")")) {
    std::string keyword;
    if (now().kind == Kind::name && before("=")) {
      keyword = now().text;
      at_ += 2;
    } else if (!call.keywords.empty() && !call.keywords.back().empty()) {
      fail(now().place, "an argument without a name behind one that has one");
    }
    call.items.push_back(expression());
    call.keywords.push_back(std::move(keyword));
    if (!take(",")) break;
  }
  expect(")", "behind the arguments");
}

Expression ExpressionParser::primary() {
  const ProgramPlace place = now().place;
  const std::string text = now().text;
  if (take(Kind::whole)) {
    Expression result = made(Expression::Kind::whole, place, {});
    result.whole = std::strtoll(text.c_str(), nullptr, 10);
    return result;
  }
  if (take(Kind::real)) {
    Expression result = made(Expression::Kind::real, place, {});
    result.real = std::strtod(text.c_str(), nullptr);
    return result;
  }
  if (take(Kind::text)) return made(Expression::Kind::text, place, {}, text);
  if (take("(")) {
    Expression inner = expression();
    expect(")", "behind the expression");
    return inner;
  }
  if (take("[")) return list(place);
  if (take("None")) return made(Expression::Kind::none, place, {});
  for (const std::string_view word : {"True", "true", "False", "false"})
    if (take(word)) {
      Expression result = made(Expression::Kind::flag, place, {});
      result.whole = word == "True" || word == "true" ? 1 : 0;
      return result;
    }
  return made(Expression::Kind::name, place, {}, name("a value"));
}

Expression ExpressionParser::list(const ProgramPlace& place) {
  if (take("]")) return made(Expression::Kind::list, place, {});
  std::vector<Expression> items{expression()};
  if (take("for")) {
    std::string variable = name("the name of a variable");
    expect("in", "and what is gone through");
    items.push_back(expression());
    expect("]", "behind it");
    return made(Expression::Kind::each, place, std::move(items), std::move(variable));
  }
  while (take(",") && !is("]")) items.push_back(expression());
  expect("]", "behind the list");
  return made(Expression::Kind::list, place, std::move(items));
}

}  // namespace ridgeline::networks
