// A network of one family: its parameters in place, and a forward pass that returns the loss.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/families/functional.h"
#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline::families {

/// Token ids and targets of one micro-batch, on the device.
struct Batch {
  Tensor tokens;
  std::vector<Tensor> targets;
  Tensor features;  ///< what an encoder reads
};

class KeyValueStore;

/// What a stage of a pipeline holds of a network: blocks [first, last), and what is before and behind all of them.
struct StagePart {
  std::int64_t first = 0, last = 0;
  bool embedding = true, head = true;
};

/// The parts that one rank holds; the whole network without a pipeline. As PyTorch's examples cut: blocks evenly,
/// embedding in the first, head in the last.
std::vector<StagePart> parts_of(const ModelDescription& model, const ParallelDescription& parallel);

/// Families that run_part knows, for messages; empty where `model` is of one.
std::string why_not_cut(const ModelDescription& model);

/// What a wrapper does around each block.
class BlockWrapper {
 public:
  virtual ~BlockWrapper() = default;
  virtual Tensor before_block(std::int64_t block, Tensor input) = 0;
  virtual Tensor after_block(std::int64_t block, Tensor output) = 0;
};

class Family {
 public:
  virtual ~Family() = default;
  /// Loss of one micro-batch. Handles live as long as the Python variables of the original code.
  virtual Tensor loss(const Batch& batch) = 0;
  /// Numbers of the model that are kept as trained ones are and never change.
  [[nodiscard]] virtual std::int64_t frozen() const { return 0; }
  /// Logits [rows, vocabulary] of the last of `tokens`, which stand at `place`. Throws UserError for a family that
  /// generates nothing. `positions` are their positions, where the family takes them from outside.
  virtual Tensor next_logits(const Tensor& tokens, const Tensor& positions);

  /// What part number `part` of this rank makes of tokens, or of the output of the part before it: its own output, or
  /// logits. Throws UserError for a family that cannot be cut.
  virtual Tensor run_part(std::size_t part, Tensor input);
  /// Loss of the logits of the last part.
  virtual Tensor part_loss(const Tensor& logits, const Tensor& targets);

  /// Of the tensors that blocks hand on.
  [[nodiscard]] std::int64_t width() const { return model_.hidden; }

  eager::Parameters parameters;
  std::vector<std::size_t> part_ends;  ///< for each part of this rank, one behind its last parameter
  /// Where the tokens of a forward pass stand: a whole sequence in training, one token after `past` others in
  /// generation.
  struct Place {
    std::int64_t rows = 0, length = 0, past = 0;
  };
  Place place;
  BlockWrapper* wrapper = nullptr;
  KeyValueStore* store = nullptr;  ///< of keys and values, while text is generated

 protected:
  Family(Eager& session, const ModelDescription& description, const TrainingDescription& how, AttentionChoice choice)
      : place{how.micro_batch, how.sequence_length, 0},
        eager_(session),
        model_(description),
        training_(how),
        attention_(choice),
        parts_(parts_of(description, how.parallel)) {}

  /// The type parameters are kept in.
  [[nodiscard]] DType type() const {
    if (training_.parallel.shards_parameters() && training_.parallel.parameter_type)
      return *training_.parallel.parameter_type;
    if (training_.precision == Precision::apex_o2) return DType::fp16;
    return training_.precision == Precision::bf16 ? DType::bf16 : DType::fp32;
  }
  Parameter* parameter(const Dims& sizes) {
    Parameter& result = parameters.emplace_back();
    result.allocate(eager_, sizes, type());
    return &result;
  }
  Affine linear_layer(std::int64_t out, std::int64_t in, bool bias) {
    Affine layer;
    layer.weight = parameter({out, in});
    if (bias) layer.bias = parameter({out});
    return layer;
  }
  Affine norm_layer(bool bias) {
    Affine layer;
    layer.weight = parameter({model_.hidden});
    if (bias) layer.bias = parameter({model_.hidden});
    return layer;
  }
  Affine table(std::int64_t rows) { return {parameter({rows, model_.hidden}), nullptr}; }
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

  Tensor run_alone(const std::function<Tensor(Eager&, Tensor)>& block, Tensor x);

  Eager& eager_;
  const ModelDescription& model_;
  const TrainingDescription& training_;
  AttentionChoice attention_;
  std::vector<StagePart> parts_;
};

/// Allocates inputs and weights in the order of `.to(device)`.
std::unique_ptr<Family> make_family(Eager& eager, const ModelDescription& model, const TrainingDescription& training,
                                    AttentionChoice attention);
Batch make_batch(Eager& eager, const ModelDescription& model, const TrainingDescription& training);

}  // namespace ridgeline::families
