#include "sim/workload/networks/program_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace ridgeline::networks {
namespace {

using Visit = std::function<void(const Expression&)>;

void names_of(const Expression& e, const Visit& visit) {
  if (e.kind == Expression::Kind::name) visit(e);
  for (const Expression& item : e.items) names_of(item, visit);
}
void names_of(const Statement& line, const Visit& visit) {
  for (const Expression& value : line.values) names_of(value, visit);
  for (const std::vector<Statement>* body : {&line.body, &line.otherwise})
    for (const Statement& inner : *body) names_of(inner, visit);
}
void targets_of(const Statement& line, const std::function<void(int)>& visit) {
  if (line.kind == Statement::Kind::assign || line.kind == Statement::Kind::loop)
    for (const int slot : line.slots) visit(slot);
  for (const std::vector<Statement>* body : {&line.body, &line.otherwise})
    for (const Statement& inner : *body) targets_of(inner, visit);
}

}  // namespace

StageLines::StageLines(const NetworkProgram& program, const std::vector<std::int64_t>& lengths) : program_(program) {
  const ProgramBlock& network = program.network;
  for (std::size_t i = 0; i < network.tensors.size(); ++i)
    for (const ProgramInput& input : program.inputs)
      if (input.name == network.tensors[i]) (input.target ? of_target_ : of_input_).insert(static_cast<int>(i));
  for (const Statement& line : network.body) add(line, lengths);
  if (total_ == 0 && obstacle_.empty())
    obstacle_ =
        "a pipeline cuts networks at their blocks, as 'for layer in layers: x = layer(x)' in the network itself, and "
        "this one has none there: expected 1";
  else find_scores();
}

void StageLines::add(const Statement& statement, const std::vector<std::int64_t>& lengths) {
  StageLine line{&statement, total_};
  if (statement.kind == Statement::Kind::loop && statement.values[0].scope == NameScope::module)
    line.blocks = lengths[static_cast<std::size_t>(statement.values[0].slot)];
  names_of(statement, [&](const Expression& name) {
    if (name.scope != NameScope::local) return;
    line.reads_input = line.reads_input || of_input_.contains(name.slot);
    line.reads_target = line.reads_target || of_target_.contains(name.slot);
  });
  if (statement.kind == Statement::Kind::remove)
    for (const int slot : statement.slots) line.reads_input = line.reads_input || of_input_.contains(slot);
  if (line.blocks > 0) {
    const Statement* step = statement.body.size() == 1 ? &statement.body.front() : nullptr;
    const bool fits = step != nullptr && step->kind == Statement::Kind::assign && step->names.size() == 1 &&
                      step->values.size() == 1 && step->values[0].kind == Expression::Kind::call &&
                      step->values[0].items.size() > 1 && step->values[0].items[1].slot == step->slots[0];
    if (!fits) obstacle_ = "blocks of a list hand one tensor on, as 'for layer in layers: x = layer(x)': expected 1";
    total_ += line.blocks;
  }
  targets_of(statement, [&](int slot) {
    if (line.reads_input) of_input_.insert(slot);
    if (line.reads_target) of_target_.insert(slot);
  });
  lines_.push_back(line);
}

void StageLines::find_scores() {
  for (const StageLine& line : lines_) {
    if (line.statement->kind == Statement::Kind::declare || line.statement->kind == Statement::Kind::remove) continue;
    if (!line.reads_target) {
      if (scores_ >= 0) obstacle_ = "a line that reads no target stands behind one that does: expected 1";
      continue;
    }
    names_of(*line.statement, [&](const Expression& name) {
      if (name.scope != NameScope::local || of_target_.contains(name.slot)) return;
      if (scores_ >= 0 && scores_ != name.slot) obstacle_ = "the loss reads several results of the network: expected 1";
      scores_ = name.slot;
    });
    if (scores_ < 0) scores_ = -2;  // targets alone so far
  }
  if (scores_ < 0) obstacle_ = "the loss reads no variable of the network: expected 1";
}

bool StageLines::runs(const StageLine& line, const families::StagePart& part) const {
  if (line.reads_target) return false;
  if (line.blocks > 0) return line.before < part.last && line.before + line.blocks > part.first;
  if (line.before == 0) return part.embedding || !line.reads_input;
  return line.before == total_ ? part.head
                               : line.before <= part.last && (part.first < line.before || !line.reads_input);
}

// Read before they are assigned anew, from the block on.
std::vector<int> StageLines::carried_before(std::int64_t number) const {
  std::vector<int> carried;
  std::set<int> assigned;
  for (const StageLine& line : lines_) {
    const Statement& statement = *line.statement;
    if (line.before + line.blocks <= number || line.reads_target || statement.kind == Statement::Kind::declare)
      continue;
    if (statement.kind == Statement::Kind::loop) assigned.insert(statement.slots.begin(), statement.slots.end());
    names_of(statement, [&](const Expression& name) {
      const int slot = name.slot;
      if (name.scope == NameScope::local && slot >= static_cast<int>(program_.network.tensors.size()) &&
          of_input_.contains(slot) && !assigned.contains(slot) &&
          std::find(carried.begin(), carried.end(), slot) == carried.end())
        carried.push_back(slot);
    });
    if (statement.kind == Statement::Kind::assign) assigned.insert(statement.slots.begin(), statement.slots.end());
  }
  return carried;
}

std::set<int> StageLines::modules_of(const families::StagePart& part) const {
  std::set<int> slots, read;  // of the part, of any
  for (const StageLine& line : lines_) {
    if (line.statement->kind == Statement::Kind::declare || line.statement->kind == Statement::Kind::scope) continue;
    const bool here = runs(line, part) || (line.reads_target && part.head);
    names_of(*line.statement, [&](const Expression& name) {
      if (name.scope != NameScope::module) return;
      read.insert(name.slot);
      if (here) slots.insert(name.slot);
    });
  }
  for (int slot = 0; slot < static_cast<int>(program_.network.modules.size()); ++slot)
    if (!read.contains(slot)) slots.insert(slot);  // kept by every stage
  return slots;
}

}  // namespace ridgeline::networks
