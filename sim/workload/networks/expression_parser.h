// Expressions of a .block file, by recursive descent over its tokens.
#pragma once

#include "sim/workload/networks/program_tokens.h"

namespace ridgeline::networks {

class ExpressionParser {
 public:
  explicit ExpressionParser(NetworkProgram& program)
      : program_(program), tokens_(program_tokens(program.text, program)) {}

 protected:
  [[noreturn]] void fail(const ProgramPlace& place, const std::string& message) const { program_.fail(place, message); }
  [[nodiscard]] const ProgramToken& now() const { return tokens_[at_]; }
  /// Whether the token behind this one is that sign.
  [[nodiscard]] bool before(std::string_view sign) const {
    return tokens_[at_ + 1].kind == ProgramToken::Kind::sign && tokens_[at_ + 1].text == sign;
  }
  void step(std::size_t tokens = 1) { at_ += tokens; }
  [[nodiscard]] bool is(std::string_view text) const;
  bool take(ProgramToken::Kind kind);
  bool take(std::string_view text);
  [[nodiscard]] std::string found() const;  ///< in words, for messages
  void expect(std::string_view text, std::string_view where);
  void end_of_line();
  std::string name(std::string_view what);
  Expression expression();
  std::vector<Expression> expressions();

  NetworkProgram& program_;

 private:
  void deeper(int& depth, int most) const;
  Expression level(std::size_t number);
  Expression unary();
  Expression postfix();
  Expression element(Expression of, const ProgramPlace& place);
  Expression primary();
  Expression list(const ProgramPlace& place);
  void arguments(Expression& call);

  std::vector<ProgramToken> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace ridgeline::networks
