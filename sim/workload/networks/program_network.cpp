#include "sim/workload/networks/program_network.h"

#include <fmt/format.h>

#include "sim/workload/networks/program_functions.h"
#include "sim/workload/networks/program_modules.h"

namespace ridgeline::networks {

namespace f = families;

namespace {

constexpr int kDeepestCall = 64;

/// Gives values up from the first to the last, as Python does.
void give_up(std::vector<ProgramValue>& values) {
  for (ProgramValue& value : values) value = NoValue{};
}

/// Arguments of a call: they live until it is over.
struct Arguments {
  std::vector<ProgramValue> values;
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  ~Arguments() { give_up(values); }
};

}  // namespace

ProgramNetwork::ProgramNetwork(eager::Eager& session, const ModelDescription& model,
                               const TrainingDescription& training, AttentionChoice attention)
    : Family(session, model, training, attention),
      ExpressionEvaluator(model.program->program),
      described_(*model.program) {
  root_.block = &program_.network;
  root_.parts.resize(program_.network.modules.size());
  Frame frame = frame_of(root_, {});
  frame_ = &frame;
  if (training.parallel.pipelined()) {
    make_parts();
  } else {
    make_modules(program_.network.body);
    part_ends.push_back(parameters.size());
  }
  frame_ = nullptr;
}

std::string ProgramNetwork::obstacle_to_stages() {
  Frame frame = frame_of(root_, {});
  frame_ = &frame;
  const StageLines lines(program_, list_lengths(program_.network.body));
  frame_ = nullptr;
  return lines.obstacle();
}

ProgramNetwork::Frame ProgramNetwork::frame_of(ProgramModule& module, const std::vector<ProgramValue>& tensors) {
  Frame frame{*module.block, module, {}, {}};
  frame.slots.resize(module.block->locals.size(), NoValue{});
  frame.known.resize(module.block->locals.size(), false);
  const std::size_t first = module.block->tensors.size();
  for (std::size_t i = 0; i < tensors.size(); ++i) frame.slots[i] = tensors[i];
  for (std::size_t i = 0; i < module.sizes.size(); ++i) {
    frame.slots[first + i] = module.sizes[i];
    frame.known[first + i] = true;
  }
  return frame;
}

// Values.

ProgramValue ProgramNetwork::value_of(const Expression& name) {
  const auto slot = static_cast<std::size_t>(name.slot);
  switch (name.scope) {
    case NameScope::local: {
      const ProgramValue& value = frame_->slots[slot];
      if (std::holds_alternative<NoValue>(value))
        fail(name.place, fmt::format("'{}' has no value here: it was deleted, or not assigned yet", name.text));
      return value;
    }
    case NameScope::module: {
      ProgramModule* module = frame_->module.parts[slot].get();
      if (module == nullptr) return {};
      if (module->kind == nullptr || module->kind->run != nullptr) return module;
      return module->buffers.empty() ? module->weights.weight->value : module->buffers.front();
    }
    case NameScope::size: return described_.sizes[slot];
    case NameScope::given:
      if (name.text == "batch") return training_.micro_batch;
      if (name.text == "length")
        return described_.fixed_length > 0 ? described_.fixed_length : training_.tokens_of_rank();
      if (name.text == "ranks") return training_.parallel.tensor;
      if (name.text == "training") return trains();
      return attention_ == AttentionChoice::eager;
    case NameScope::unresolved: break;
  }
  return {};
}

ProgramValue ProgramNetwork::member(const Expression& e) {
  const ProgramValue owner = evaluate(e.items[0]);
  const auto* module = std::get_if<ProgramModule*>(&owner);
  if (module == nullptr || (*module)->block == nullptr)
    fail(e.place, fmt::format("{} has no '.{}'", kind_of(owner), e.text));
  const std::vector<std::string>& names = (*module)->block->modules;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == e.text && (*module)->parts[i] != nullptr) return (*module)->parts[i].get();
  fail(e.place,
       fmt::format("block {} has no module '{}'; there are {}", (*module)->block->name, e.text, few_of(names)));
}

void ProgramNetwork::set_variable(const Expression& each, ProgramValue value) {
  frame_->slots[static_cast<std::size_t>(each.slot)] = std::move(value);
  frame_->known[static_cast<std::size_t>(each.slot)] = true;
}

std::vector<ProgramValue> ProgramNetwork::arguments_of(const Expression& call) {
  std::vector<ProgramValue> values;
  values.reserve(call.items.size() - 1);
  for (std::size_t i = 1; i < call.items.size(); ++i) values.push_back(evaluate(call.items[i]));
  return values;
}

ProgramValue ProgramNetwork::call(const Expression& e) {
  constexpr std::int64_t kMostCalls = 4'000'000;
  if (++calls_ > kMostCalls) fail(e.place, "more than 4,000,000 calls in one pass");
  const Expression& callee = e.items[0];
  Arguments arguments;
  if (callee.kind == Expression::Kind::name && callee.scope == NameScope::unresolved) {
    const ProgramFunction* function = find_program_function(callee.text);
    arguments.values = arguments_of(e);
    return function->run(*this, CallArguments(program_, e, function->parameters, arguments.values));
  }
  const ProgramValue called = evaluate(callee);
  const auto* module = std::get_if<ProgramModule*>(&called);
  if (module == nullptr) fail(callee.place, fmt::format("{} cannot be called", kind_of(called)));
  if ((*module)->kind == nullptr && (*module)->block == nullptr)
    fail(callee.place, "a list of modules: call its elements, as 'for layer in layers: x = layer(x)'");
  arguments.values = arguments_of(e);
  if ((*module)->kind != nullptr) {
    const std::string_view takes = (*module)->kind->name == "embedding" ? "ids" : "x";
    return (*module)->kind->run(*this, CallArguments(program_, e, takes, arguments.values), **module);
  }
  return call_block(**module, e, arguments.values);
}

ProgramValue ProgramNetwork::call_block(ProgramModule& module, const Expression& e, std::vector<ProgramValue>& values) {
  const ProgramBlock& block = *module.block;
  std::vector<ProgramValue> tensors(block.tensors.size(), NoValue{});
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t at = i;
    if (!e.keywords[i].empty())
      for (at = 0; at < block.tensors.size() && block.tensors[at] != e.keywords[i];) ++at;
    if (at >= tensors.size() || !std::holds_alternative<NoValue>(tensors[at]))
      fail(e.place, fmt::format("block {} takes ({})", block.name, fmt::join(block.tensors, ", ")));
    tensors[at] = values[i];
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (std::holds_alternative<NoValue>(tensors[i]))
      fail(e.place, fmt::format("block {} takes ({}): '{}' is missing", block.name, fmt::join(block.tensors, ", "),
                                block.tensors[i]));
  std::optional<f::ModuleScope> list, one;
  list.emplace(eager_.recorder, module.name);
  if (module.number >= 0) one.emplace(eager_.recorder, module.number);
  if (module.layer < 0 || eager_.recorder.layer >= 0) return run_block_body(module, std::move(tensors));
  const auto* x = std::get_if<Tensor>(&tensors.front());
  if (x == nullptr)
    fail(e.place,
         fmt::format("block {}: its first argument is {}; expected a tensor", block.name, kind_of(tensors.front())));
  Tensor input = *x;
  const std::vector<ProgramValue> others(tensors.begin() + 1, tensors.end());
  give_up(tensors);
  eager_.recorder.layer = module.layer;
  const auto body = [this, &module, &e, others](eager::Eager& eager, Tensor given) {
    eager.recorder.layer = module.layer;
    std::vector<ProgramValue> all{std::move(given)};
    all.insert(all.end(), others.begin(), others.end());
    ProgramValue result = run_block_body(module, std::move(all));
    auto* tensor = std::get_if<Tensor>(&result);
    if (tensor == nullptr)
      fail(e.place, fmt::format("block {} returns {}; a block of a list returns one tensor, and a part what it likes",
                                module.block->name, kind_of(result)));
    return std::move(*tensor);
  };
  if (noted_ != nullptr)
    for (const Tensor& carried : carried_now(module.layer))
      (*noted_)[static_cast<std::size_t>(module.layer)].push_back({carried.sizes, carried.type});
  Tensor result = run_block(body, std::move(input));
  eager_.recorder.layer = -1;
  return result;
}

ProgramNetwork::Running::Running(ProgramNetwork& network, ProgramModule& module,
                                 const std::vector<ProgramValue>& tensors)
    : network_(network), frame_(network.frame_of(module, tensors)), before_(network.frame_) {
  network.frame_ = &frame_;
  ++network.depth_;
}
ProgramNetwork::Running::~Running() {
  give_up(frame_.slots);
  network_.frame_ = before_;
  --network_.depth_;
}

ProgramValue ProgramNetwork::run_block_body(ProgramModule& module, std::vector<ProgramValue> tensors) {
  if (depth_ > kDeepestCall) fail(module.block->place, "blocks that call each other without an end");
  const Running running(*this, module, tensors);
  give_up(tensors);
  result_ = std::monostate{};
  run(module.block->body);
  return std::exchange(result_, std::monostate{});
}

// Lines.

ProgramNetwork::Flow ProgramNetwork::run(const std::vector<Statement>& body) {
  for (const Statement& line : body)
    if (run(line) == Flow::left) return Flow::left;
  return Flow::next;
}

ProgramNetwork::Flow ProgramNetwork::run(const Statement& line) {
  switch (line.kind) {
    case Statement::Kind::declare: return Flow::next;
    case Statement::Kind::assign: assign(line); return Flow::next;
    case Statement::Kind::evaluate:
      for (const Expression& value : line.values) evaluate(value);
      return Flow::next;
    case Statement::Kind::remove:
      for (std::size_t i = 0; i < line.slots.size(); ++i) {
        ProgramValue& value = frame_->slots[static_cast<std::size_t>(line.slots[i])];
        if (std::holds_alternative<NoValue>(value) && !stages_)  // which may be of another stage
          fail(line.place, fmt::format("'{}' has no value here: it was deleted, or not assigned yet", line.names[i]));
        value = NoValue{};
      }
      return Flow::next;
    case Statement::Kind::loop: return loop(line);
    case Statement::Kind::branch: return run(is_true(evaluate(line.values.front())) ? line.body : line.otherwise);
    case Statement::Kind::scope: {
      const f::ModuleScope scope(eager_.recorder, line.names.front());
      return run(line.body);
    }
    case Statement::Kind::leave: {
      if (line.values.size() == 1) {
        result_ = evaluate(line.values.front());
      } else {
        auto all = std::make_shared<ProgramList>();
        for (const Expression& value : line.values) all->items.push_back(evaluate(value));
        result_ = std::move(all);
      }
      return Flow::left;
    }
  }
  return Flow::next;
}

void ProgramNetwork::assign(const Statement& line) {
  if (line.names.size() == 1 && line.values.size() == 1) {
    ProgramValue value = evaluate(line.values.front());
    frame_->slots[static_cast<std::size_t>(line.slots.front())] = std::move(value);
    return;
  }
  std::vector<ProgramValue> values;
  if (line.values.size() == 1) {
    const ProgramValue all = evaluate(line.values.front());
    const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&all);
    if (list == nullptr || (*list)->items.size() != line.names.size())
      fail(line.place, fmt::format("{} names for {}", line.names.size(),
                                   list == nullptr ? kind_of(all) : fmt::format("{} values", (*list)->items.size())));
    values = (*list)->items;
  } else {
    for (const Expression& value : line.values) values.push_back(evaluate(value));
    if (values.size() != line.names.size())
      fail(line.place, fmt::format("{} names for {} values", line.names.size(), values.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    frame_->slots[static_cast<std::size_t>(line.slots[i])] = std::exchange(values[i], NoValue{});
}

ProgramNetwork::Flow ProgramNetwork::loop(const Statement& line) {
  const ProgramValue through = evaluate(line.values.front());
  const auto slot = static_cast<std::size_t>(line.slots.front());
  if (const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&through)) {
    for (const ProgramValue& item : (*list)->items) {
      frame_->slots[slot] = item;
      if (run(line.body) == Flow::left) return Flow::left;
    }
    return Flow::next;
  }
  const auto* module = std::get_if<ProgramModule*>(&through);
  if (module == nullptr || (*module)->block != nullptr || (*module)->kind != nullptr)
    fail(line.values.front().place,
         fmt::format("{}; expected a list of modules, a list or range(n)", kind_of(through)));
  for (const std::unique_ptr<ProgramModule>& part : (*module)->parts) {
    frame_->slots[slot] = part.get();
    if (run(line.body) == Flow::left) return Flow::left;
  }
  return Flow::next;
}

// The network.

Tensor ProgramNetwork::leaf(const Tensor& x) {
  if (!eager_.gradients_enabled) return x;
  if (eager_.tape.size() == 0) leaves_.clear();  // the last pass is over
  eager::Parameter& leaf = leaves_.emplace_back();
  leaf.value = x;
  eager::Eager::attach(leaf.value, leaf.accumulate);
  leaf.value.leaf = true;
  return leaf.value;
}

std::vector<ProgramValue> ProgramNetwork::tensors_of(const f::Batch& batch, bool with_targets) const {
  std::vector<ProgramValue> tensors(program_.network.tensors.size(), NoValue{});
  std::size_t inputs = 0, targets = 0;
  for (const ProgramInput& input : program_.inputs) {
    const Tensor& given = input.target  ? batch.targets[targets++]
                          : inputs == 0 ? batch.tokens
                                        : batch.others[inputs - 1];
    if (!input.target) ++inputs;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (program_.network.tensors[i] == input.name && (with_targets || !input.target)) tensors[i] = given;
  }
  return tensors;
}

Tensor ProgramNetwork::loss(const f::Batch& batch) {
  calls_ = 0;
  return loss_of(run_block_body(root_, tensors_of(batch, true)));
}

Tensor ProgramNetwork::loss_of(const ProgramValue& returned) const {
  const auto* all = std::get_if<std::shared_ptr<ProgramList>>(&returned);
  const ProgramValue& first = all != nullptr && !(*all)->items.empty() ? (*all)->items.front() : returned;
  const auto* loss = std::get_if<Tensor>(&first);
  if (loss == nullptr || loss->elements() != 1)
    fail(program_.network.place, fmt::format("the network returns {}; expected a loss of one number",
                                             loss == nullptr ? kind_of(first) : text_of(loss->sizes)));
  return *loss;
}

}  // namespace ridgeline::networks
