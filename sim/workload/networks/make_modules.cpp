// Modules of a program, made in the order of their declarations.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/networks/program_modules.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {
namespace {

constexpr std::int16_t kMostBlocks = 10000;
constexpr int kDeepestBlock = 64;

bool declares(const std::vector<Statement>& body) {
  return std::any_of(body.begin(), body.end(), [](const Statement& line) {
    return line.kind == Statement::Kind::declare || declares(line.body) || declares(line.otherwise);
  });
}

}  // namespace

bool ProgramNetwork::is_known(const Expression& e) const {
  if (e.kind == Expression::Kind::name) {
    if (e.scope == NameScope::local) return frame_->known[static_cast<std::size_t>(e.slot)];
    return e.scope == NameScope::size || e.scope == NameScope::given;
  }
  std::size_t first = 0;
  if (e.kind == Expression::Kind::call) {
    if (e.items[0].kind != Expression::Kind::name || !is_number_function(e.items[0].text)) return false;
    first = 1;
  }
  for (std::size_t i = first; i < e.items.size(); ++i)
    if (!is_known(e.items[i])) return false;
  return true;
}

void ProgramNetwork::make_modules(const std::vector<Statement>& body) {
  for (const Statement& line : body) {
    switch (line.kind) {
      case Statement::Kind::declare: declare(line); break;
      case Statement::Kind::assign: make_known(line); break;
      case Statement::Kind::branch: {
        if (!declares(line.body) && !declares(line.otherwise)) break;
        if (!is_known(line.values.front()))
          fail(line.values.front().place,
               "modules below a condition on tensors: conditions on sizes alone make modules");
        make_modules(is_true(evaluate(line.values.front())) ? line.body : line.otherwise);
        break;
      }
      case Statement::Kind::loop:
        if (declares(line.body))
          fail(line.place, "a module in a loop: declare a list, as 'layers: [layer() for i in range(n)]'");
        break;
      case Statement::Kind::scope: {
        const families::ModuleScope scope(eager_.recorder, line.names.front());
        make_modules(line.body);
        break;
      }
      case Statement::Kind::remove:
      case Statement::Kind::evaluate:
      case Statement::Kind::leave: break;
    }
  }
}

void ProgramNetwork::make_known(const Statement& line) {
  bool known = line.names.size() == line.values.size();
  for (const Expression& value : line.values) known = known && is_known(value);
  if (!known) return;
  assign(line);
  for (const int slot : line.slots) frame_->known[static_cast<std::size_t>(slot)] = true;
}

void ProgramNetwork::declare(const Statement& line) {
  if (!is_wanted(line)) return;
  const Expression& e = line.values.front();
  std::unique_ptr<ProgramModule>& module = frame_->module.parts[static_cast<std::size_t>(line.slots.front())];
  const bool list = e.kind == Expression::Kind::each || e.kind == Expression::Kind::list;
  if (stages_ && &frame_->module == &root_ && list) make_blocks_of_part(e, line);
  else if (module == nullptr) module = made(e, line.names.front());
}

std::unique_ptr<ProgramModule> ProgramNetwork::made(const Expression& e, const std::string& name) {
  if (e.kind == Expression::Kind::none) return nullptr;
  if (e.kind == Expression::Kind::choice) return made(e.items[is_true(evaluate(e.items[1])) ? 0 : 2], name);
  if (e.kind == Expression::Kind::list || e.kind == Expression::Kind::each) {
    auto list = std::make_unique<ProgramModule>();
    list->name = name;
    const auto add = [&](const Expression& item) {
      const auto number = static_cast<std::int64_t>(list->parts.size());
      list->parts.push_back(made_item(item, name, number));
    };
    if (e.kind == Expression::Kind::list) {
      for (const Expression& item : e.items) add(item);
      return list;
    }
    const ProgramValue through = evaluate(e.items[1]);
    const auto* values = std::get_if<std::shared_ptr<ProgramList>>(&through);
    if (values == nullptr) fail(e.items[1].place, fmt::format("{}; expected a list or range(n)", kind_of(through)));
    for (const ProgramValue& value : (*values)->items) {
      set_variable(e, value);
      add(e.items[0]);
    }
    return list;
  }
  std::vector<ProgramValue> values = arguments_of(e);
  if (const ModuleKind* kind = find_module_kind(e.items[0].text)) {
    auto module = std::make_unique<ProgramModule>();
    module->name = name;
    module->kind = kind;
    kind->make(*this, CallArguments(program_, e, kind->parameters, values), *module);
    return module;
  }
  const families::ModuleScope scope(eager_.recorder, name);
  return made_block(*program_.block(e.items[0].text), e, name);
}

std::unique_ptr<ProgramModule> ProgramNetwork::made_item(const Expression& e, const std::string& name,
                                                         std::int64_t number) {
  const ProgramBlock* block = e.kind == Expression::Kind::call ? program_.block(e.items[0].text) : nullptr;
  if (block == nullptr) {
    std::unique_ptr<ProgramModule> module = made(e, name);
    if (module == nullptr) fail(e.place, "no module: a list has one in each place");
    return module;
  }
  const bool numbered = eager_.recorder.layer < 0 && block->wrapped;
  if (numbered) {
    if (blocks_ >= kMostBlocks) fail(e.place, fmt::format("more than {} blocks", kMostBlocks));
    eager_.recorder.layer = blocks_++;
  }
  const families::ModuleScope list(eager_.recorder, name), one(eager_.recorder, number);
  std::unique_ptr<ProgramModule> module = made_block(*block, e, name);
  module->number = number;
  if (numbered) module->layer = std::exchange(eager_.recorder.layer, std::int16_t{-1});
  return module;
}

std::unique_ptr<ProgramModule> ProgramNetwork::made_block(const ProgramBlock& block, const Expression& e,
                                                          const std::string& name) {
  if (depth_ > kDeepestBlock) fail(e.place, fmt::format("block {} has itself in it", block.name));
  auto module = std::make_unique<ProgramModule>();
  module->name = name;
  module->block = &block;
  module->parts.resize(block.modules.size());
  std::vector<ProgramValue> values = arguments_of(e);
  module->sizes.resize(block.sizes.size(), NoValue{});
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t at = i;
    if (!e.keywords[i].empty())
      for (at = 0; at < block.sizes.size() && block.sizes[at] != e.keywords[i];) ++at;
    if (at >= block.sizes.size() || !std::holds_alternative<NoValue>(module->sizes[at]))
      fail(e.place, fmt::format("block {} is made of ({})", block.name, fmt::join(block.sizes, ", ")));
    module->sizes[at] = values[i];
  }
  const std::size_t without = block.sizes.size() - block.defaults.size();
  for (std::size_t i = 0; i < module->sizes.size(); ++i) {
    if (!std::holds_alternative<NoValue>(module->sizes[i])) continue;
    if (i < without) fail(e.place, fmt::format("block {}: '{}' is missing", block.name, block.sizes[i]));
    module->sizes[i] = evaluate(block.defaults[i - without]);
  }
  Frame frame = frame_of(*module, {});
  Frame* before = std::exchange(frame_, &frame);
  ++depth_;
  make_modules(block.body);
  --depth_;
  frame_ = before;
  return module;
}

}  // namespace ridgeline::networks
