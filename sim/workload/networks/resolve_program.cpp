#include "sim/workload/networks/resolve_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "sim/units/nearest_name.h"
#include "sim/workload/networks/evaluate_expression.h"
#include "sim/workload/networks/program_functions.h"
#include "sim/workload/networks/program_modules.h"

namespace ridgeline::networks {
namespace {

int place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

class Resolver {
 public:
  explicit Resolver(NetworkProgram& program) : program_(program) {
    for (const ProgramSize& size : program.sizes) {
      if (place_of(sizes_, size.name) >= 0) fail(size.place, fmt::format("a second size '{}'", size.name));
      if (place_of(given_names(), size.name) >= 0 || size.name == "name" || size.name == "family" ||
          size.name == "program")
        fail(size.place, fmt::format("'{}' has a meaning of its own; give the size another name", size.name));
      sizes_.push_back(size.name);
    }
  }

  void resolve() {
    ProgramBlock outside;  // no variables
    block_ = &outside;
    for (std::size_t i = 0; i < program_.sizes.size(); ++i) {
      known_sizes_ = i;
      for (Expression& value : program_.sizes[i].otherwise) expression(value);
    }
    known_sizes_ = sizes_.size();
    for (Expression& value : program_.length) expression(value);
    for (ProgramInput& input : program_.inputs)
      for (Expression& size : input.sizes) expression(size);
    for (ProgramBlock& block : program_.blocks) resolve(block);
    resolve(program_.network);
    for (const std::string& name : program_.network.tensors)
      if (std::none_of(program_.inputs.begin(), program_.inputs.end(), [&](const auto& i) { return i.name == name; }))
        fail(program_.network.place, fmt::format("'{}' is no input or target: declare it", name));
    if (!program_.network.sizes.empty()) fail(program_.network.place, "sizes of the network are keys: 'size NAME'");
  }

 private:
  [[noreturn]] void fail(const ProgramPlace& place, const std::string& message) const { program_.fail(place, message); }

  void resolve(ProgramBlock& block) {
    for (const ProgramBlock& other : program_.blocks) {
      if (&other != &block && other.name == block.name)
        fail(block.place, fmt::format("a second block '{}'", block.name));
    }
    if (find_module_kind(block.name) != nullptr)
      fail(block.place, fmt::format("'{}' is a module of the language; give the block another name", block.name));
    block_ = &block;
    for (Expression& value : block.defaults) expression(value);
    block.locals = block.tensors;
    block.locals.insert(block.locals.end(), block.sizes.begin(), block.sizes.end());
    collect(block.body);
    statements(block.body);
  }

  /// Variables and modules of a block, in the order of their first line.
  void collect(std::vector<Statement>& body) {
    for (Statement& line : body) {
      if (line.kind == Statement::Kind::declare) {
        const std::string& name = line.names.front();
        if (place_of(block_->modules, name) >= 0) fail(line.place, fmt::format("a second module '{}'", name));
        if (place_of(block_->locals, name) >= 0) fail(line.place, fmt::format("'{}' is a variable already", name));
        block_->modules.push_back(name);
      }
      if (line.kind == Statement::Kind::assign || line.kind == Statement::Kind::loop)
        for (const std::string& name : line.names) {
          if (place_of(block_->modules, name) >= 0) fail(line.place, fmt::format("'{}' is a module already", name));
          if (place_of(block_->locals, name) < 0) block_->locals.push_back(name);
        }
      collect(line.body);
      collect(line.otherwise);
    }
  }

  void statements(std::vector<Statement>& body) {
    for (Statement& line : body) {
      for (const std::string& name : line.names) {
        const bool module = line.kind == Statement::Kind::declare, variable = line.kind != Statement::Kind::scope;
        const int slot = place_of(module ? block_->modules : block_->locals, name);
        if (slot < 0 && variable)
          fail(line.place, fmt::format("no variable '{}' here; there are {}", name, few_of(block_->locals)));
        line.slots.push_back(slot);
      }
      for (Expression& value : line.values) {
        declares_ = line.kind == Statement::Kind::declare;
        if (declares_) declaration(value);
        else expression(value);
      }
      statements(line.body);
      statements(line.otherwise);
    }
  }

  /// What a module is: a kind, a block, or a list of them.
  void declaration(Expression& value) {
    if (value.kind == Expression::Kind::each || value.kind == Expression::Kind::list) {
      const bool each = value.kind == Expression::Kind::each;
      if (each) {
        variable(value);
        expression(value.items[1]);
        declaration(value.items[0]);
        return;
      }
      for (Expression& item : value.items) declaration(item);
      return;
    }
    if (value.kind == Expression::Kind::choice) {
      declaration(value.items[0]);
      expression(value.items[1]);
      declaration(value.items[2]);
      return;
    }
    if (value.kind == Expression::Kind::none) return;
    if (value.kind != Expression::Kind::call || value.items[0].kind != Expression::Kind::name)
      fail(value.place, "a module is made by a call, as linear(in, out), or a list of such calls");
    const std::string& kind = value.items[0].text;
    if (find_module_kind(kind) == nullptr && program_.block(kind) == nullptr) {
      std::vector<std::string> known = module_kind_names();
      for (const ProgramBlock& block : program_.blocks) known.push_back(block.name);
      fail(value.items[0].place, unknown("module or block", kind, known));
    }
    for (std::size_t i = 1; i < value.items.size(); ++i) expression(value.items[i]);
  }

  void variable(Expression& value) {
    value.slot = place_of(block_->locals, value.text);
    if (value.slot >= 0) return;
    value.slot = static_cast<int>(block_->locals.size());
    block_->locals.push_back(value.text);
  }

  void expression(Expression& value) {
    if (value.kind == Expression::Kind::name) return name(value);
    if (value.kind == Expression::Kind::each) {
      expression(value.items[1]);
      variable(value);
      return expression(value.items[0]);
    }
    std::size_t first = 0;
    if (value.kind == Expression::Kind::call && value.items[0].kind == Expression::Kind::name) {
      first = 1;
      Expression& callee = value.items[0];
      if (!callable(callee) && !is_number_function(callee.text) && find_program_function(callee.text) == nullptr) {
        std::vector<std::string> names = program_function_names();
        names.insert(names.begin(), block_->modules.begin(), block_->modules.end());
        fail(callee.place, unknown("module or operation", callee.text, names));
      }
    }
    for (std::size_t i = first; i < value.items.size(); ++i) expression(value.items[i]);
  }

  static bool found(Expression& value, NameScope scope, int slot) {
    if (slot < 0) return false;
    value.scope = scope;
    value.slot = slot;
    return true;
  }
  /// Whether it is a variable or a module, which it then says. A size may be called as an operation is.
  bool callable(Expression& value) const {
    return found(value, NameScope::local, place_of(block_->locals, value.text)) ||
           found(value, NameScope::module, place_of(block_->modules, value.text));
  }
  /// Where a module is declared a size of its name is meant: layers: [layer() for i in range(layers)].
  bool known(Expression& value) const {
    if (declares_ && place_of(block_->locals, value.text) < 0 &&
        found(value, NameScope::size, place_of(sizes_, value.text)))
      return true;
    return callable(value) || found(value, NameScope::size, place_of(sizes_, value.text)) ||
           found(value, NameScope::given, place_of(given_names(), value.text));
  }

  void name(Expression& value) {
    if (known(value)) {
      if (value.scope == NameScope::size && static_cast<std::size_t>(value.slot) >= known_sizes_)
        fail(value.place, fmt::format("'{}' is said further below", value.text));
      return;
    }
    std::vector<std::string> names = block_->locals;
    for (const std::span<const std::string> list :
         {std::span(std::as_const(block_->modules)), std::span(std::as_const(sizes_)), std::span(given_names())})
      names.insert(names.end(), list.begin(), list.end());
    fail(value.place, unknown("name", value.text, names));
  }

  static std::string unknown(std::string_view what, const std::string& given, std::vector<std::string> known) {
    std::stable_sort(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
      return edit_distance(given, a) < edit_distance(given, b);
    });
    const std::string nearest = nearest_name(given, known);
    const bool likely = !nearest.empty() && edit_distance(given, nearest) <= std::max<std::size_t>(2, given.size() / 3);
    return fmt::format("no {} '{}'; {} {}", what, given,
                       likely ? fmt::format("did you mean '{}'? There are", nearest) : "there are", few_of(known));
  }

  NetworkProgram& program_;
  ProgramBlock* block_ = nullptr;
  std::vector<std::string> sizes_;
  std::size_t known_sizes_ = 0;
  bool declares_ = false;
};

}  // namespace

const std::vector<std::string>& given_names() {
  static const std::vector<std::string> kNames{"batch", "length", "ranks", "eager_attention", "training"};
  return kNames;
}

void resolve_program(NetworkProgram& program) { Resolver(program).resolve(); }

}  // namespace ridgeline::networks
