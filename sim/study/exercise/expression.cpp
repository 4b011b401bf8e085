#include "sim/study/exercise/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::function<double(const std::string&)>& value_of)
      : text_(text), value_of_(value_of) {}

  double whole() {
    const double value = sum();
    skip_spaces();
    if (at_ < text_.size()) fail("the expression goes on after its end");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw UserError(fmt::format("'{}', character {}: {}", text_, at_ + 1, what));
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  double sum() {
    double value = product();
    while (true) {
      if (take('+')) value += product();
      else if (take('-')) value -= product();
      else return value;
    }
  }
  double product() {
    double value = factor();
    while (true) {
      if (take('*')) value *= factor();
      else if (take('/')) value /= factor();
      else return value;
    }
  }
  double factor() {
    if (++depth_ > 100) fail("nested too deep");
    const double value = take('-') ? -factor() : take('(') ? closed(sum()) : atom();
    --depth_;
    return value;
  }
  double closed(double value) {
    if (!take(')')) fail("expected ')'");
    return value;
  }
  double atom() {
    skip_spaces();
    double number = 0;
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    if (const auto [stop, error] = std::from_chars(begin, end, number);
        error == std::errc{} && stop != begin && (std::isdigit(static_cast<unsigned char>(*begin)) || *begin == '.')) {
      at_ += static_cast<std::size_t>(stop - begin);
      return number;
    }
    std::string name;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      name += text_[at_++];
    if (name.empty()) fail("expected a number, a name or '('");
    return take('(') ? call(name) : value_of_(name);
  }
  double call(const std::string& name) {
    std::vector<double> values{sum()};
    while (take(',')) values.push_back(sum());
    closed(0);
    if (name == "min") return *std::min_element(values.begin(), values.end());
    if (name == "max") return *std::max_element(values.begin(), values.end());
    if (values.size() != 1) fail(fmt::format("{} takes one number", name));
    if (name == "floor") return std::floor(values[0]);
    if (name == "ceil") return std::ceil(values[0]);
    if (name == "round") return std::round(values[0]);
    if (name == "log2") return std::log2(values[0]);
    fail(fmt::format("unknown function '{}'; known are min, max, floor, ceil, round, log2", name));
  }

  std::string_view text_;
  const std::function<double(const std::string&)>& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

double evaluate(std::string_view expression, const std::function<double(const std::string&)>& value_of) {
  return Parser(expression, value_of).whole();
}

}  // namespace ridgeline
