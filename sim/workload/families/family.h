// A network of one family: its parameters in place, and a forward pass that returns the loss.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/families/functional.h"
#include "sim/workload/families/split_layers.h"
#include "sim/workload/families/stage_part.h"
#include "sim/workload/families/token_place.h"
#include "sim/workload/model.h"
#include "sim/workload/parallel/context_parallel.h"
#include "sim/workload/parallel/expert_parallel.h"
#include "sim/workload/parallel/tensor_parallel.h"
#include "sim/workload/training.h"

namespace ridgeline::families {

/// Token ids and targets of one micro-batch, on the device.
struct Batch {
  Tensor tokens;
  std::vector<Tensor> targets;
  Tensor features;             ///< what an encoder reads
  std::vector<Tensor> others;  ///< what a program reads besides its first input
};

class KeyValueStore;

/// Why packed sequences are not modelled for a network; empty where they are.
std::string why_not_packed(const ModelDescription& model);

/// Why the loss of a network is not modelled in chunks; empty where it is.
std::string why_not_chunked(const ModelDescription& model);

/// What a wrapper does around each block.
class BlockWrapper {
 public:
  virtual ~BlockWrapper() = default;
  virtual Tensor before_block(std::int64_t block, Tensor input) = 0;
  virtual Tensor after_block(std::int64_t block, Tensor output) = 0;
};

/// The type that a network's parameters are kept in while it runs.
DType type_of_parameters(const TrainingDescription& training);

class Family {
 public:
  virtual ~Family() = default;
  /// Loss of one micro-batch. Handles live as long as the Python variables of the original code.
  virtual Tensor loss(const Batch& batch) = 0;
  /// Numbers of the model that are kept as trained ones are and never change.
  [[nodiscard]] virtual std::int64_t frozen() const { return frozen_elements_; }
  /// Ranks that share layers; null: one.
  [[nodiscard]] parallel::TensorParallel* tensor_ranks() { return tensor_ ? &*tensor_ : nullptr; }
  /// Ranks that experts are spread over; null: each has all.
  [[nodiscard]] parallel::ExpertParallel* ranks_of_experts() {
    return ranks_of_experts_ ? &*ranks_of_experts_ : nullptr;
  }
  /// Which parameters are those of norms: whole on each of those ranks.
  [[nodiscard]] const std::vector<std::size_t>& norm_parameters() const { return norms_; }
  /// Elements of a token table that another stage of the pipeline holds too; 0: none.
  [[nodiscard]] virtual std::int64_t shared_table() const { return 0; }
  /// Gradients that a rank has a part of, before the optimizer reads them.
  void add_up_partial_gradients(eager::Parameters& updated) { split_.add_up_gradients(updated); }
  /// Scores [rows, tokens, vocabulary] of every token of a batch. Throws UserError for a network that has none.
  virtual Tensor scores(const Batch& batch);
  /// Logits [rows, vocabulary] of the last of `tokens`, which stand at `place`. Throws UserError for a family that
  /// generates nothing. `positions` are their positions, where the family takes them from outside.
  virtual Tensor next_logits(const Tensor& tokens, const Tensor& positions);

  /// Takes this rank's part of each sequence of a batch, where ranks share them.
  void cut_sequences(const Batch& batch);
  /// Takes a micro-batch from the loader, where the family's script does that on the device.
  virtual void take_batch(const Batch&) {}
  /// Tensors that part number `part` of this rank makes of a micro-batch and of what the part before it hands on: what
  /// it hands on itself, or logits. Throws UserError for a family that cannot be cut.
  virtual std::vector<Tensor> run_part(std::size_t part, const Batch& batch, std::vector<Tensor> received);
  /// Sizes of what part number `part` receives from the part before it.
  [[nodiscard]] virtual std::vector<Dims> part_input(std::size_t part) const;
  /// Sizes of what it hands on.
  [[nodiscard]] virtual std::vector<Dims> part_output(std::size_t part) const;
  /// Loss of the output of the last part.
  virtual Tensor part_loss(const Tensor& output, const std::vector<Tensor>& targets);

  /// Throws UserError where adapters are asked for and no layer has one.
  void check_adapters() const;
  /// Throws UserError where the loss does not read what comes of a parameter: PyTorch's optimizers pass over it, its
  /// wrappers refuse it. After a backward pass.
  void require_gradients() const;
  /// Of the tensors that blocks hand on.
  [[nodiscard]] std::int64_t width() const { return model_.hidden; }

  eager::Parameters parameters;
  std::vector<Parameter*> in_order;    ///< those that nobody trains among them: as Module.parameters() has them
  std::vector<Tensor> buffers;         ///< what belongs to the network besides parameters
  std::vector<std::size_t> part_ends;  ///< for each part of this rank, one behind its last parameter
  TokenPlace place;
  BlockWrapper* wrapper = nullptr;
  KeyValueStore* store = nullptr;  ///< of keys and values, while text is generated

 protected:
  Family(Eager& session, const ModelDescription& description, const TrainingDescription& how, AttentionChoice choice)
      : place{how.micro_batch, how.tokens_of_rank(), 0},
        eager_(session),
        model_(description),
        training_(how),
        attention_(choice),
        tensor_(how.parallel.tensor > 1
                    ? std::optional<parallel::TensorParallel>(std::in_place, session, how.parallel.tensor)
                    : std::nullopt),
        split_(session, how, tensor_ ? &*tensor_ : nullptr),
        parts_(parts_of(description, how.parallel)) {
    if (how.parallel.context > 1) context_.emplace(session, how.parallel);
  }

  /// The type parameters are kept in.
  [[nodiscard]] DType type() const { return type_of_parameters(training_); }
  /// Trained, but where adapters are trained in its place.
  Parameter* parameter(const Dims& sizes);
  /// A trained copy of a frozen one, which stays beside it.
  Parameter* saved_copy(const Dims& sizes);
  /// Of this rank's experts: where no other rank has the same, nobody shards it, and it stays as it is stored.
  Parameter* parameter_of_experts(const Dims& sizes);
  /// One whose place in the order of parameters is known before that on the device.
  Parameter* unallocated_parameter() {
    return in_order.emplace_back(freezes() ? &frozen_parameters_.emplace_back() : &parameters.emplace_back());
  }
  void allocate(Parameter& parameter, const Dims& sizes, DType type);
  /// `role`: of a layer of a block, which adapters and frozen weights of four bits are made for. `by_inputs`: the
  /// weight lies as [in, out].
  Affine linear_layer(std::int64_t out, std::int64_t in, bool bias, std::optional<LinearRole> role = {},
                      bool by_inputs = false);
  Affine norm_layer(bool bias) {
    Affine layer;
    for (Parameter** one : {&layer.weight, &layer.bias}) {
      if (one == &layer.bias && !bias) break;
      norms_.push_back(parameters.size());
      *one = parameter({model_.hidden});
    }
    return layer;
  }
  Affine table(std::int64_t rows) {
    Affine table;
    table.weight = parameter({rows, model_.hidden});
    return table;
  }
  /// A tensor that belongs to the model but is not trained.
  Tensor buffer(const Dims& sizes, DType type);
  [[nodiscard]] eager::aten::ActivationKind activation_kind() const;
  /// The last token of every row of x [rows, length, hidden]: a view.
  [[nodiscard]] Tensor last_token(const Tensor& x) const;
  /// Keys a query of the running pass may look at.
  [[nodiscard]] std::int64_t visible_keys() const;
  /// All keys and values of a layer after these new ones.
  void remember(Tensor& keys, Tensor& values);
  /// Runs a block with what its wrapper does, or checkpoints it when asked to.
  Tensor run_block(const std::function<Tensor(Eager&, Tensor)>& block, Tensor x);

  [[nodiscard]] bool freezes() const { return training_.lora && !trains_head_; }
  [[nodiscard]] Adapter adapter(std::int64_t out, std::int64_t in, LinearRole role);
  // Layers split over tensor parallel ranks, as SplitLayers has them.
  [[nodiscard]] std::int64_t share(std::int64_t whole) const { return split_.share(whole); }

  Tensor run_alone(const std::function<Tensor(Eager&, Tensor)>& block, Tensor x);
  /// Runs block `number` as BlockTreatments says: again in the backward pass, with its tensors on the host, or kept.
  Tensor run_treated(const std::function<Tensor(Eager&, Tensor)>& block, Tensor x, std::int64_t number);

  Eager& eager_;
  const ModelDescription& model_;
  const TrainingDescription& training_;
  AttentionChoice attention_;
  eager::Parameters frozen_parameters_;  ///< of a model that adapters are trained for
  std::int64_t frozen_elements_ = 0;
  std::vector<LinearRole> roles_;  ///< that layers of the network have
  bool has_adapters_ = false;
  /// A head that is not the pretrained model's is trained whole beside adapters, as PEFT does for its tasks.
  bool trains_head_ = false;
  std::optional<parallel::TensorParallel> tensor_;  ///< of more than one rank
  SplitLayers split_;
  std::optional<parallel::ContextParallel> context_;          ///< likewise
  std::optional<parallel::ExpertParallel> ranks_of_experts_;  ///< likewise
  std::vector<std::size_t> norms_;
  std::vector<StagePart> parts_;
};

/// Allocates inputs and weights in the order of `.to(device)`.
std::unique_ptr<Family> make_family(Eager& eager, const ModelDescription& model, const TrainingDescription& training,
                                    AttentionChoice attention);
Batch make_batch(Eager& eager, const ModelDescription& model, const TrainingDescription& training);

}  // namespace ridgeline::families
