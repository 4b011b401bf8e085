// A program over the stages of a pipeline: modules of each part, its lines, and what parts hand on.
#include <fmt/format.h>

#include <algorithm>

#include "sim/units/user_error.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {
namespace {

std::optional<DType> autocast_of(Precision precision) {
  if (precision == Precision::amp_fp16) return DType::fp16;
  if (precision == Precision::amp_bf16) return DType::bf16;
  return std::nullopt;
}

}  // namespace

std::vector<std::vector<Carried>> carried_tensors(const ModelDescription& model, const TrainingDescription& training) {
  TrainingDescription whole = training;
  whole.parallel = {};
  whole.lora.reset();
  OpTrace trace;
  eager::Eager eager(trace);
  eager.gradients_enabled = false;
  const families::Batch batch = make_program_batch(eager, *model.program, whole);
  ProgramNetwork network(eager, model, whole, AttentionChoice::efficient);
  std::vector<std::vector<Carried>> carried;
  network.note_carried(&carried);
  eager.recorder.phase = Phase::forward;
  const auto type = autocast_of(training.precision);
  if (type) eager.autocast.enter(*type);
  { const Tensor loss = network.loss(batch); }
  if (type) eager.autocast.leave();
  eager.recorder.closed = true;
  return carried;
}

void ProgramNetwork::note_carried(std::vector<std::vector<Carried>>* carried) {
  Frame frame = frame_of(root_, {});
  frame_ = &frame;
  stages_.emplace(program_, list_lengths(program_.network.body));
  frame_ = nullptr;
  carried->resize(static_cast<std::size_t>(blocks_));
  noted_ = carried;
}

std::vector<Tensor> ProgramNetwork::carried_now(std::int64_t number) const {
  std::vector<Tensor> carried;
  for (const int slot : stages_->carried_before(number)) {
    const auto* tensor = std::get_if<Tensor>(&frame_->slots[static_cast<std::size_t>(slot)]);
    if (tensor == nullptr)
      throw UserError(
          fmt::format("training.parallel.pipeline: '{}' goes from stage to stage and is no tensor; expected 1",
                      program_.network.locals[static_cast<std::size_t>(slot)]));
    carried.push_back(*tensor);
  }
  return carried;
}

std::vector<std::int64_t> ProgramNetwork::list_lengths(const std::vector<Statement>& body) {
  std::vector<std::int64_t> lengths(program_.network.modules.size(), 0);
  for (const Statement& line : body) {
    if (line.kind == Statement::Kind::assign) make_known(line);
    if (line.kind != Statement::Kind::declare) continue;
    const Expression& e = line.values.front();
    const bool each = e.kind == Expression::Kind::each, list = e.kind == Expression::Kind::list && !e.items.empty();
    if (!each && !list) continue;
    const Expression& item = e.items.front();
    const ProgramBlock* block = item.kind == Expression::Kind::call ? program_.block(item.items[0].text) : nullptr;
    if (block == nullptr || !block->wrapped) continue;
    const ProgramValue through = each ? evaluate(e.items[1]) : ProgramValue{};
    const auto* values = std::get_if<std::shared_ptr<ProgramList>>(&through);
    lengths[static_cast<std::size_t>(line.slots.front())] =
        static_cast<std::int64_t>(list                ? e.items.size()
                                  : values != nullptr ? (*values)->items.size()
                                                      : 0);
  }
  return lengths;
}

void ProgramNetwork::make_parts() {
  stages_.emplace(program_, list_lengths(program_.network.body));
  if (const std::string& why = stages_->obstacle(); !why.empty()) throw UserError("training.parallel.pipeline: " + why);
  for (const families::StagePart& part : parts_) {
    part_ = &part;
    wanted_ = stages_->modules_of(part);
    make_modules(program_.network.body);
    part_ends.push_back(parameters.size());
  }
  carried_ = carried_tensors(model_, training_);
  for (const std::vector<Carried>& cut : carried_)
    if (std::any_of(cut.begin(), cut.end(), [&](const Carried& one) { return one.type != training_.stage_type(); }))
      throw UserError(
          fmt::format("training.parallel.pipeline: stages hand on tensors in the type of the residual stream, and "
                      "blocks of {} hand on "
                      "another one under autocast: expected training.precision: fp32, tf32 or bf16",
                      model_.name.empty() ? "the program" : model_.name));
}

bool ProgramNetwork::is_wanted(const Statement& declaration) const {
  return !stages_ || &frame_->module != &root_ || wanted_.contains(declaration.slots.front());
}

/// Blocks of the part that is being made; others of the list are not on this rank.
void ProgramNetwork::make_blocks_of_part(const Expression& e, const Statement& declaration) {
  const int slot = declaration.slots.front();
  std::unique_ptr<ProgramModule>& list = frame_->module.parts[static_cast<std::size_t>(slot)];
  if (list == nullptr) {
    list = std::make_unique<ProgramModule>();
    list->name = declaration.names.front();
  }
  std::int64_t before = 0;
  for (const StageLine& line : stages_->lines())
    if (line.blocks > 0 && line.statement->values[0].slot == slot) before = line.before;
  const auto make = [&](const Expression& item, std::size_t i) {
    if (list->parts.size() <= i) list->parts.resize(i + 1);
    const std::int64_t number = before + static_cast<std::int64_t>(i);
    if (number < part_->first || number >= part_->last) return;
    blocks_ = static_cast<std::int16_t>(number);
    list->parts[i] = made_item(item, list->name, static_cast<std::int64_t>(i));
  };
  if (e.kind == Expression::Kind::list) {
    for (std::size_t i = 0; i < e.items.size(); ++i) make(e.items[i], i);
    return;
  }
  const ProgramValue through = evaluate(e.items[1]);
  const std::vector<ProgramValue> values = std::get<std::shared_ptr<ProgramList>>(through)->items;
  for (std::size_t i = 0; i < values.size(); ++i) {
    set_variable(e, values[i]);
    make(e.items[0], i);
  }
}

std::vector<Tensor> ProgramNetwork::run_part(std::size_t part, const families::Batch& batch,
                                             std::vector<Tensor> received) {
  const families::StagePart& held = parts_[part];
  const Running running(*this, root_, tensors_of(batch, false));
  if (!held.embedding) {
    const std::vector<int> slots = stages_->carried_before(held.first);
    for (std::size_t i = 0; i < slots.size(); ++i)
      frame_->slots[static_cast<std::size_t>(slots[i])] = std::move(received[i]);
    received.clear();
  }
  for (const StageLine& line : stages_->lines()) {
    if (!stages_->runs(line, held)) continue;
    if (line.blocks == 0) {
      run(*line.statement);
      continue;
    }
    const Expression& list = line.statement->values.front();
    const auto& blocks = frame_->module.parts[static_cast<std::size_t>(list.slot)]->parts;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::int64_t number = line.before + static_cast<std::int64_t>(i);
      if (number < held.first || number >= held.last) continue;
      frame_->slots[static_cast<std::size_t>(line.statement->slots.front())] = blocks[i].get();
      run(line.statement->body);
    }
  }
  if (!held.head) return carried_now(held.last);
  return {std::get<Tensor>(frame_->slots[static_cast<std::size_t>(stages_->scores())])};
}

Tensor ProgramNetwork::part_loss(const Tensor& output, const std::vector<Tensor>& targets) {
  const Running running(*this, root_, {});
  frame_->slots[static_cast<std::size_t>(stages_->scores())] = output;
  std::size_t number = 0;
  for (const ProgramInput& input : program_.inputs) {
    if (!input.target) continue;
    const Tensor& given = targets[number++];
    for (std::size_t i = 0; i < program_.network.tensors.size(); ++i)
      if (program_.network.tensors[i] == input.name) frame_->slots[i] = given;
  }
  result_ = std::monostate{};
  for (const StageLine& line : stages_->lines())
    if (line.reads_target && run(*line.statement) == Flow::left) break;
  return loss_of(std::exchange(result_, std::monostate{}));
}

namespace {

std::vector<Dims> sizes_of(const std::vector<Carried>& carried) {
  std::vector<Dims> sizes;
  for (const Carried& one : carried) sizes.push_back(one.sizes);
  return sizes;
}

}  // namespace

std::vector<Dims> ProgramNetwork::part_input(std::size_t part) const {
  return sizes_of(carried_[static_cast<std::size_t>(parts_[part].first)]);
}
std::vector<Dims> ProgramNetwork::part_output(std::size_t part) const {
  return sizes_of(carried_[static_cast<std::size_t>(parts_[part].last)]);
}

}  // namespace ridgeline::networks
