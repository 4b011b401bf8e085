// A network as its program runs it, line by line, on the eager session.
//
// Variables live as Python's do: a name holds its tensor until it is assigned anew, deleted, or its block returns, when
// variables go in the order of their first assignment; arguments of a call live until it returns.
#pragma once

#include <map>
#include <set>

#include "sim/workload/families/family.h"
#include "sim/workload/networks/evaluate_expression.h"
#include "sim/workload/networks/program_model.h"
#include "sim/workload/networks/program_stages.h"

namespace ridgeline::networks {

/// A tensor that a stage hands on.
struct Carried {
  Dims sizes;
  DType type = DType::fp32;
};
/// Tensors of a whole network on one micro-batch of a training: tensors before each block.
std::vector<std::vector<Carried>> carried_tensors(const ModelDescription& model, const TrainingDescription& training);

class ProgramNetwork final : public families::Family, private ExpressionEvaluator {
 public:
  ProgramNetwork(eager::Eager& session, const ModelDescription& model, const TrainingDescription& training,
                 AttentionChoice attention);

  Tensor loss(const families::Batch& batch) override;
  std::vector<Tensor> run_part(std::size_t part, const families::Batch& batch, std::vector<Tensor> received) override;
  [[nodiscard]] std::vector<Dims> part_input(std::size_t part) const override;
  [[nodiscard]] std::vector<Dims> part_output(std::size_t part) const override;
  Tensor part_loss(const Tensor& output, const std::vector<Tensor>& targets) override;

  [[nodiscard]] std::int64_t blocks() const { return blocks_; }
  void note_carried(std::vector<std::vector<Carried>>* carried);
  /// Why a pipeline cannot cut it; empty where one can.
  [[nodiscard]] std::string obstacle_to_stages();
  // What modules and operations are made of.
  eager::Eager& session() { return eager_; }
  [[nodiscard]] const TrainingDescription& training() const { return training_; }
  [[nodiscard]] AttentionChoice attention_choice() const { return attention_; }
  families::SplitLayers& layers_of_ranks() { return split_; }
  [[nodiscard]] bool trains() const { return !training_.inference; }
  [[nodiscard]] DType weight_type() const { return type(); }
  eager::Parameter* new_parameter(const Dims& sizes) { return parameter(sizes); }
  Tensor new_buffer(const Dims& sizes, DType type) { return buffer(sizes, type); }
  /// Kept with the weights and counted with them, without a gradient.
  Tensor new_frozen(const Dims& sizes) {
    Tensor result = eager_.empty(sizes, type());
    eager_.recorder.set_category(result.storage.id(), Category::weights);
    frozen_elements_ += sizes.product();
    return result;
  }
  families::Affine new_linear(std::int64_t out, std::int64_t in, bool bias, std::optional<LinearRole> role,
                              bool by_inputs) {
    return linear_layer(out, in, bias, role, by_inputs);
  }
  /// The tensor as a leaf whose gradient is wanted: that of an input.
  Tensor leaf(const Tensor& x);
  Tensor attended(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double dropout, const Tensor& mask);

 protected:
  ProgramValue value_of(const Expression& name) override;
  ProgramValue call(const Expression& call) override;
  ProgramValue member(const Expression& e) override;
  void set_variable(const Expression& each, ProgramValue value) override;
  ProgramValue tensor_operation(const Expression& e, const ProgramValue& a, const ProgramValue& b) override;

 private:
  struct Frame {
    const ProgramBlock& block;
    ProgramModule& module;
    std::vector<ProgramValue> slots;
    std::vector<bool> known;  ///< variables that have a value, while modules are made
  };

  // Modules.
  void make_modules(const std::vector<Statement>& body);
  void make_known(const Statement& assignment);
  void declare(const Statement& declaration);
  void make_parts();
  std::vector<std::int64_t> list_lengths(const std::vector<Statement>& body);
  void make_blocks_of_part(const Expression& e, const Statement& declaration);
  [[nodiscard]] bool is_wanted(const Statement& declaration) const;
  std::unique_ptr<ProgramModule> made(const Expression& e, const std::string& name);
  /// Of a list: blocks that no other such block holds are numbered, wrapped and checkpointed.
  std::unique_ptr<ProgramModule> made_item(const Expression& e, const std::string& name, std::int64_t number);
  std::unique_ptr<ProgramModule> made_block(const ProgramBlock& block, const Expression& e, const std::string& name);
  /// Whether an expression says something before tensors are there.
  bool is_known(const Expression& e) const;

  // Runs.
  enum class Flow : std::uint8_t { next, left };
  Flow run(const std::vector<Statement>& body);
  Flow run(const Statement& line);
  void assign(const Statement& line);
  Flow loop(const Statement& line);
  std::vector<ProgramValue> arguments_of(const Expression& call);
  ProgramValue call_block(ProgramModule& module, const Expression& call, std::vector<ProgramValue>& arguments);
  /// Tensors of a batch at the places of the network's own, targets where asked for.
  [[nodiscard]] std::vector<ProgramValue> tensors_of(const families::Batch& batch, bool targets) const;
  /// Tensors that a stage hands on before block `number`.
  [[nodiscard]] std::vector<Tensor> carried_now(std::int64_t number) const;
  ProgramValue run_block_body(ProgramModule& module, std::vector<ProgramValue> tensors);
  Frame frame_of(ProgramModule& module, const std::vector<ProgramValue>& tensors);

  /// Runs a block's lines while it lives, and leaves it however they end: a checkpointed one may stop anywhere.
  class Running {
   public:
    Running(ProgramNetwork& network, ProgramModule& module, const std::vector<ProgramValue>& tensors);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    ProgramNetwork& network_;
    Frame frame_;
    Frame* before_;
  };
  /// The first of what the network returns.
  [[nodiscard]] Tensor loss_of(const ProgramValue& returned) const;

  const ProgramModel& described_;
  std::int16_t blocks_ = 0;  ///< numbered so far
  int depth_ = 0;
  ProgramModule root_;
  Frame* frame_ = nullptr;
  ProgramValue result_;
  std::int64_t calls_ = 0;  ///< of this pass
  std::vector<std::vector<Carried>>* noted_ = nullptr;
  std::deque<eager::Parameter> leaves_;  ///< of the running step
  // Of a pipeline.
  std::optional<StageLines> stages_;
  const families::StagePart* part_ = nullptr;  ///< that is being made
  std::set<int> wanted_;                       ///< modules of it
  std::vector<std::vector<Carried>> carried_;  ///< before each block
};

families::Batch make_program_batch(eager::Eager& eager, const ProgramModel& model, const TrainingDescription& training);

}  // namespace ridgeline::networks
