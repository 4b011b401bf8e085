// A network as a program: what a .block file says, before sizes are known (docs/networks.md teaches the language).
//
//   size layers, hidden, vocabulary           # a key of the model; with "= expression" it may be left out
//   input tokens: int64[batch, length]        # batch and length are those of the training
//   target labels: int64[batch, length]
//   block layer(x, *, inner):                 # tensors before the star, sizes behind it; "part": never wrapped
//     norm: layer_norm(hidden)                # a module of the block
//     up: linear(hidden, inner)
//     return x + up(norm(x))
//   network tiny(tokens, labels): …           # the same, of the whole
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/config_error.h"

namespace ridgeline::networks {

struct ProgramPlace {
  int line = 0, column = 0;
};

/// Where a name of an expression is found.
enum class NameScope : std::uint8_t { unresolved, local, module, size, given };

struct Expression {
  enum class Kind : std::uint8_t {
    whole,
    real,
    flag,
    none,
    text,
    name,
    list,
    each,    ///< [items[0] for text in items[1]]
    call,    ///< items[0] is what is called, then its arguments
    index,   ///< items[0][items[1]]
    part,    ///< items[0][items[1]:items[2]], None where a bound is left out
    member,  ///< the module `text` of the block items[0]
    negative,
    inverse,  ///< not items[0]
    binary,   ///< items[0] text items[1]
    choice    ///< items[0] if items[1] else items[2]
  };
  Kind kind = Kind::none;
  ProgramPlace place;
  std::int64_t whole = 0;
  double real = 0.0;
  std::string text;
  std::vector<Expression> items;
  std::vector<std::string> keywords;  ///< of a call, for each argument; empty: by position
  NameScope scope = NameScope::unresolved;
  int slot = -1;  ///< of a local variable, a module of the block, a size or a given name
};

struct Statement {
  enum class Kind : std::uint8_t {
    declare,   ///< names[0]: value
    assign,    ///< names = value
    remove,    ///< del names
    loop,      ///< for names[0] in value: body
    branch,    ///< if value: body else: otherwise
    scope,     ///< with names[0]: body
    evaluate,  ///< value alone
    leave      ///< return values
  };
  Kind kind = Kind::evaluate;
  ProgramPlace place;
  std::vector<std::string> names;
  std::vector<int> slots;  ///< of the names
  std::vector<Expression> values;
  std::vector<Statement> body, otherwise;
};

struct ProgramBlock {
  std::string name;
  ProgramPlace place;
  std::vector<std::string> tensors;  ///< parameters before the star
  std::vector<std::string> sizes;    ///< behind it
  std::vector<Expression> defaults;  ///< of the last of `sizes`
  std::vector<Statement> body;
  std::vector<std::string> locals;   ///< tensors, sizes, then variables in the order of their first assignment
  std::vector<std::string> modules;  ///< in the order of their declarations
  bool wrapped = true;               ///< where it stands in a list: checkpointed, sharded, kept whole by a stage
};

struct ProgramSize {
  std::string name, meaning;  ///< the comment behind it
  ProgramPlace place;
  std::vector<Expression> otherwise;  ///< its default, or nothing
};

struct ProgramInput {
  std::string name;
  ProgramPlace place;
  bool integers = true;  ///< token ids and classes; else numbers in the type of the weights
  bool target = false;
  std::string same_as;  ///< an input before it, which a target may be
  std::vector<Expression> sizes;
};

struct NetworkProgram {
  std::shared_ptr<const std::string> file;  ///< as messages name it
  std::string text;
  std::vector<ProgramSize> sizes;
  std::vector<ProgramInput> inputs;
  std::vector<Expression> length;  ///< of every sample, where it is no choice of the training
  std::vector<ProgramBlock> blocks;
  ProgramBlock network;

  [[nodiscard]] const ProgramBlock* block(const std::string& name) const;
  [[noreturn]] void fail(const ProgramPlace& place, const std::string& message) const;
};

/// Throws config::ConfigError with the place of the first mistake.
NetworkProgram parse_network_program(std::string text, std::string file);

/// Names that every program knows: batch, length, …
const std::vector<std::string>& given_names();

/// "a, b, c": at most eight of them.
std::string few_of(const std::vector<std::string>& names);

}  // namespace ridgeline::networks
