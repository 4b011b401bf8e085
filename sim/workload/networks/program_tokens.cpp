#include "sim/workload/networks/program_tokens.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

namespace ridgeline::networks {
namespace {

using Kind = ProgramToken::Kind;

constexpr std::array<std::string_view, 23> kSigns{"//", "**", "==", "!=", "<=", ">=", "(", ")", "[", "]", ":", ",",
                                                  ".",  "=",  "+",  "-",  "*",  "/",  "%", "@", "<", ">", ";"};

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class Tokens {
 public:
  Tokens(std::string_view text, const NetworkProgram& program) : text_(text), program_(program) {}

  std::vector<ProgramToken> read() {
    while (at_ < text_.size()) {
      if (column_ == 1 && depth_ == 0 && !indentation()) continue;
      token();
    }
    if (!result_.empty() && result_.back().kind != Kind::line_end) add(Kind::line_end, "");
    for (; indents_.size() > 1; indents_.pop_back()) add(Kind::dedent, "");
    add(Kind::end, "");
    return std::move(result_);
  }

 private:
  [[nodiscard]] char now() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  [[nodiscard]] ProgramPlace place() const { return {line_, column_}; }
  void add(Kind kind, std::string text) { result_.push_back({kind, std::move(text), place(), ""}); }
  void advance(std::size_t count = 1) {
    at_ += count;
    column_ += static_cast<int>(count);
  }
  void next_line() {
    ++at_;
    ++line_;
    column_ = 1;
  }

  /// Of a line that says something; false where it says nothing and was passed over.
  bool indentation() {
    while (now() == ' ' && at_ < text_.size()) advance();
    if (now() == '\t') program_.fail(place(), "a tab: indent with spaces");
    if (now() == '\r') advance();
    if (now() == '#') comment();
    if (now() == '\n') {
      if (at_ < text_.size()) next_line();
      return false;
    }
    const int depth = column_ - 1;
    if (depth > indents_.back()) {
      indents_.push_back(depth);
      add(Kind::indent, "");
    }
    for (; depth < indents_.back(); indents_.pop_back()) add(Kind::dedent, "");
    if (depth != indents_.back()) program_.fail(place(), "indented as no line above it");
    return true;
  }

  std::string comment() {
    advance();
    while (now() == ' ') advance();
    const std::size_t begin = at_;
    while (at_ < text_.size() && now() != '\n') advance();
    std::string said(text_.substr(begin, at_ - begin));
    while (!said.empty() && (said.back() == ' ' || said.back() == '\r')) said.pop_back();
    return said;
  }

  void token() {
    const char c = now();
    if (c == ' ' || c == '\r') return advance();
    if (c == '\t') program_.fail(place(), "a tab: separate with spaces");
    if (c == '#') {
      said_ = comment();
      return;
    }
    if (c == '\n') {
      if (depth_ == 0) {
        add(Kind::line_end, "");
        result_.back().comment = std::move(said_);
      }
      said_.clear();
      return next_line();
    }
    if (begins_name(c)) return name();
    if (is_digit(c)) return number();
    if (c == '"' || c == '\'') return quoted(c);
    sign();
  }

  void name() {
    std::size_t end = at_;
    while (end < text_.size() && continues_name(text_[end])) ++end;
    add(Kind::name, std::string(text_.substr(at_, end - at_)));
    advance(end - at_);
  }

  void number() {
    std::size_t end = at_;
    bool real = false;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
      real = true;
      for (++end; end < text_.size() && is_digit(text_[end]);) ++end;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t digits = end + 1;
      if (digits < text_.size() && (text_[digits] == '-' || text_[digits] == '+')) ++digits;
      if (digits < text_.size() && is_digit(text_[digits])) {
        real = true;
        for (end = digits; end < text_.size() && is_digit(text_[end]);) ++end;
      }
    }
    constexpr std::size_t kMostDigits = 15;  // a double holds them
    if (end - at_ > kMostDigits) program_.fail(place(), "a number of more than 15 digits");
    add(real ? Kind::real : Kind::whole, std::string(text_.substr(at_, end - at_)));
    advance(end - at_);
  }

  void quoted(char quote) {
    const std::size_t end = text_.find_first_of(quote == '"' ? "\"\n" : "'\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n') program_.fail(place(), "a text whose quote is not closed");
    add(Kind::text, std::string(text_.substr(at_ + 1, end - at_ - 1)));
    advance(end + 1 - at_);
  }

  void sign() {
    for (const std::string_view sign : kSigns) {
      if (text_.substr(at_, sign.size()) != sign) continue;
      if (sign == "(" || sign == "[") ++depth_;
      if ((sign == ")" || sign == "]") && depth_ > 0) --depth_;
      add(Kind::sign, std::string(sign));
      return advance(sign.size());
    }
    program_.fail(place(),
                  fmt::format("'{}' begins nothing here", now() >= ' ' && now() <= '~' ? std::string(1, now()) : "?"));
  }

  std::string_view text_;
  const NetworkProgram& program_;
  std::vector<ProgramToken> result_;
  std::string said_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1, depth_ = 0;
  std::vector<int> indents_{0};
};

}  // namespace

std::vector<ProgramToken> program_tokens(std::string_view text, const NetworkProgram& program) {
  return Tokens(text, program).read();
}

}  // namespace ridgeline::networks
