// Text of a .block file into a program, by recursive descent.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "sim/workload/networks/expression_parser.h"
#include "sim/workload/networks/resolve_program.h"

namespace ridgeline::networks {
namespace {

using Kind = ProgramToken::Kind;

class Parser final : private ExpressionParser {
 public:
  explicit Parser(NetworkProgram& program) : ExpressionParser(program) {}

  void parse() {
    bool whole = false;
    for (;;) {
      while (take(Kind::line_end)) continue;
      if (now().kind == Kind::end) break;
      const ProgramPlace place = now().place;
      const std::string word = now().kind == Kind::name ? now().text : "";
      if (word == "size") sizes();
      else if (word == "input" || word == "target") input(word == "target");
      else if (word == "length") fixed_length();
      else if (word == "block" || word == "part") {
        program_.blocks.push_back(definition(word));
        program_.blocks.back().wrapped = word == "block";
      } else if (word == "network") {
        if (std::exchange(whole, true)) fail(place, "a second network: a file has one");
        program_.network = definition(word);
      } else {
        fail(place, "expected size, input, target, length, block, part or network at the beginning of a line");
      }
    }
    if (!whole) fail({1, 1}, "no network: write 'network NAME(inputs):'");
  }

 private:
  void sizes() {
    step();
    const std::size_t first = program_.sizes.size();
    do {
      ProgramSize size;
      size.place = now().place;
      size.name = name("the name of a size");
      if (take("=")) size.otherwise.push_back(expression());
      program_.sizes.push_back(std::move(size));
    } while (take(","));
    for (std::size_t i = first; i < program_.sizes.size(); ++i) program_.sizes[i].meaning = now().comment;
    end_of_line();
  }

  void input(bool target) {
    step();
    ProgramInput made;
    made.target = target;
    made.place = now().place;
    made.name = name("the name of an input");
    expect(":", "and the type of its elements");
    const ProgramPlace type = now().place;
    const std::string elements = name("int64 or float");
    for (const ProgramInput& before : program_.inputs)
      if (target && before.name == elements) {
        made.same_as = elements;
        program_.inputs.push_back(std::move(made));
        return end_of_line();
      }
    if (elements != "int64" && elements != "float")
      fail(type, fmt::format("no elements '{}'; expected int64, or float for the type of the weights", elements));
    made.integers = elements == "int64";
    expect("[", "and its sizes");
    if (!is("]")) made.sizes = expressions();
    expect("]", "behind the sizes");
    program_.inputs.push_back(std::move(made));
    end_of_line();
  }

  void fixed_length() {
    const ProgramPlace place = now().place;
    step();
    expect("=", "and how long every sample is");
    if (!program_.length.empty()) fail(place, "a second length");
    program_.length.push_back(expression());
    end_of_line();
  }

  ProgramBlock definition(const std::string& of) {
    step();
    ProgramBlock block;
    block.place = now().place;
    block.name = name(fmt::format("the name of the {0}, as in '{0} NAME(…):'", of));
    expect("(", "and the parameters");
    bool sizes = false;
    while (!is(")")) {
      if (take("*")) {
        if (std::exchange(sizes, true)) fail(now().place, "a second star: sizes stand behind the first");
      } else {
        const ProgramPlace place = now().place;
        (sizes ? block.sizes : block.tensors).push_back(name("a parameter"));
        if (is("=") && !sizes) fail(place, "a tensor has no default; sizes stand behind a star: (x, *, width=1)");
        if (take("=")) block.defaults.push_back(expression());
        else if (!block.defaults.empty()) fail(place, "a size without a default behind one that has one");
      }
      if (!take(",")) break;
    }
    expect(")", "behind the parameters");
    block.body = suite();
    return block;
  }

  std::vector<Statement> suite() {
    constexpr int kMostLevels = 40;
    if (++depth_ > kMostLevels) fail(now().place, "lines nested too deep: make a part of some");
    std::vector<Statement> body = lines_of_suite();
    --depth_;
    return body;
  }

  std::vector<Statement> lines_of_suite() {
    expect(":", "before the lines that belong to it");
    std::vector<Statement> body;
    if (!take(Kind::line_end)) {  // on the same line
      simple_line(body);
      return body;
    }
    if (!take(Kind::indent)) fail(now().place, "expected an indented line");
    while (!take(Kind::dedent)) {
      if (now().kind == Kind::end) break;
      statement(body);
    }
    return body;
  }

  void statement(std::vector<Statement>& body) {
    Statement made;
    made.place = now().place;
    if (take("for")) {
      made.kind = Statement::Kind::loop;
      made.names.push_back(name("the name of a variable"));
      expect("in", "and what is gone through");
      made.values.push_back(expression());
      made.body = suite();
    } else if (take("if")) {
      branch(made);
    } else if (take("with")) {
      made.kind = Statement::Kind::scope;
      made.names.push_back(name("the name of a module"));
      made.body = suite();
    } else {
      return simple_line(body);
    }
    body.push_back(std::move(made));
  }

  void branch(Statement& made) {
    made.kind = Statement::Kind::branch;
    made.values.push_back(expression());
    made.body = suite();
    while (now().kind == Kind::line_end) step();
    if (is("elif")) {
      Statement inner;
      inner.place = now().place;
      step();
      constexpr int kMostLevels = 40;
      if (++depth_ > kMostLevels) fail(inner.place, "too many elif");
      branch(inner);
      --depth_;
      made.otherwise.push_back(std::move(inner));
    } else if (take("else")) {
      made.otherwise = suite();
    }
  }

  /// Statements of one line, with semicolons between them.
  void simple_line(std::vector<Statement>& body) {
    do {
      if (now().kind == Kind::line_end) break;
      body.push_back(simple());
    } while (take(";"));
    end_of_line();
  }

  Statement simple() {
    Statement made;
    made.place = now().place;
    if (take("del")) {
      made.kind = Statement::Kind::remove;
      do made.names.push_back(name("the name of a variable"));
      while (take(","));
      return made;
    }
    if (take("return")) {
      made.kind = Statement::Kind::leave;
      made.values = expressions();
      return made;
    }
    if (now().kind == Kind::name && before(":")) {
      made.kind = Statement::Kind::declare;
      made.names.push_back(name("the name of a module"));
      expect(":", "and the module");
      made.values.push_back(expression());
      return made;
    }
    made.values = expressions();
    if (!is("=")) {
      made.kind = Statement::Kind::evaluate;
      return made;
    }
    made.kind = Statement::Kind::assign;
    for (const Expression& target : made.values) {
      if (target.kind != Expression::Kind::name) fail(target.place, "only names are assigned: a, b = …");
      made.names.push_back(target.text);
    }
    expect("=", "here");
    made.values = expressions();
    return made;
  }

  int depth_ = 0;
};

}  // namespace

const ProgramBlock* NetworkProgram::block(const std::string& name) const {
  const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const ProgramBlock& b) { return b.name == name; });
  return found == blocks.end() ? nullptr : &*found;
}

void NetworkProgram::fail(const ProgramPlace& place, const std::string& message) const {
  throw config::ConfigError({file, place.line, place.column}, "", message);
}

std::string few_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  const std::vector<std::string> few(names.begin(),
                                     names.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, names.size())));
  return fmt::format("{}{}", fmt::join(few, ", "), names.size() > kMost ? ", …" : "");
}

NetworkProgram parse_network_program(std::string text, std::string file) {
  NetworkProgram program;
  program.file = std::make_shared<const std::string>(std::move(file));
  program.text = std::move(text);
  Parser(program).parse();
  resolve_program(program);
  return program;
}

}  // namespace ridgeline::networks
