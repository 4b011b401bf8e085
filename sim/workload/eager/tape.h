// The autograd tape: nodes made by forward operations, run backwards in the order of PyTorch's engine.
//
// A node holds the tensors its formula needs, which keeps their storages alive, and an edge to the node of each forward
// input. The engine runs the ready node with the highest sequence number (gradient accumulation first), gives the
// incoming gradients up, then the saved tensors, and hands results on: a second gradient for the same place is added in
// place into the first. Order after torch/csrc/autograd/engine.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager {

class Eager;
class Node;

inline constexpr int kMostEdges = 4;
using Gradients = std::array<Tensor, kMostEdges>;

struct Edge {
  Node* node = nullptr;
  std::uint8_t input = 0;
};

class Node {
 public:
  explicit Node(HostClass host) : host_class(host) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  /// Fills `outgoing` for the edges that exist (`needs`), from gradients of the forward outputs; undefined = zero.
  virtual void backward(Eager& eager, Gradients& incoming, Gradients& outgoing) = 0;
  /// Gives saved tensors up, in the order PyTorch does: names of inputs alphabetically, then results.
  virtual void release() {}

  [[nodiscard]] bool needs(int i) const { return edges[static_cast<std::size_t>(i)].node != nullptr; }

  HostClass host_class;
  std::uint8_t edge_count = 0;
  bool sizes_differ = false;  ///< the forward outputs have different sizes: gradients come in the right one
  std::int16_t layer = -1;
  std::uint16_t module = 0;
  DType output_type = DType::fp32;  ///< of the forward outputs: gradients are cast to it …
  Dims output_sizes;                ///< … and summed to this size
  std::array<Edge, kMostEdges> edges;
  std::uint64_t sequence = 0;
  std::uint32_t position = 0;  ///< where the recorder stood when the node was made
  std::uint8_t stream = 0;     ///< that was current then

 private:
  friend class Tape;
  std::uint64_t run_ = 0;  ///< backward run that counted `dependencies_`
  int dependencies_ = 0;
  Gradients* buffer_ = nullptr;
};

class Tape {
 public:
  static constexpr std::uint64_t kAccumulate = ~std::uint64_t{0};

  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape() { destroy_from(0); }

  /// A node whose edges lead to where the gradients of `inputs` go.
  template <typename NodeType, typename... Arguments>
  NodeType& make(std::int16_t layer, std::uint16_t module, std::initializer_list<const Tensor*> inputs,
                 Arguments&&... arguments) {
    auto* node = new (place(sizeof(NodeType), alignof(NodeType))) NodeType(std::forward<Arguments>(arguments)...);
    node->sequence = next_sequence_++;
    node->layer = layer;
    node->module = module;
    for (const Tensor* input : inputs) node->edges[node->edge_count++] = {input->node, input->output};
    nodes_.push_back(node);
    return *node;
  }

  /// From each root that has a graph behind it, with the gradient at its place.
  void run(Eager& eager, std::span<const Tensor> roots, std::vector<Tensor> gradients);
  void run(Eager& eager, const Tensor& root, Tensor gradient) {
    std::vector<Tensor> one;
    one.push_back(std::move(gradient));
    run(eager, std::span(&root, 1), std::move(one));
  }

  /// What run_inputs leaves to run_weights.
  struct Weights {
    struct Split {
      Node* node = nullptr;
      Gradients incoming;
      std::array<bool, kMostEdges> to_input{};  ///< edges that run_inputs followed
    };
    std::vector<Split> splits;  ///< nodes with weights behind them, in the order of the engine
    std::vector<Node*> others;  ///< the other nodes between root and input
  };
  /// Gradients of the tensors that `inputs` make (or receive), alone; nodes keep what they saved. As
  /// torch.distributed.pipelining parts a backward pass: branches that lead to weights alone are left for later.
  Weights run_inputs(Eager& eager, std::span<const Tensor> roots, std::vector<Tensor> gradients,
                     const std::vector<const Node*>& inputs);
  /// Those branches, one call of the engine for each node they part at, and everything saved is given up.
  void run_weights(Eager& eager, Weights& weights);

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  /// Of the node that is made next.
  [[nodiscard]] std::uint64_t next_sequence() const { return next_sequence_; }
  /// Called before each node that is not the end of a parameter's gradient.
  std::function<void(const Node&)> before_node;
  bool follows_streams = false;  ///< nodes run on the streams they were made on
  /// Forgets nodes made since `size()` was `from`, newest first, and with them what they still hold.
  void destroy_from(std::size_t from);

 private:
  void* place(std::size_t size, std::size_t alignment);
  void count_dependencies(Node& root);
  /// Nodes that are ready once every root has its gradient.
  std::vector<Node*> start(Eager& eager, std::span<const Tensor> roots, std::vector<Tensor> gradients);
  void work_off(Eager& eager, std::vector<Node*>& ready, Weights* later);
  void evaluate(Eager& eager, Node& node, std::vector<Node*>& ready, bool keep);
  void add(Eager& eager, const Edge& edge, Tensor gradient);
  Gradients* buffer();

  std::vector<Node*> nodes_;
  std::uint64_t next_sequence_ = 0, run_ = 0;
  static constexpr std::size_t kChunk = std::size_t{256} << 10;
  std::vector<std::unique_ptr<std::byte[]>>
      chunks_;  ///< nodes live here until the tape is empty, then chunks are reused
  std::size_t chunk_ = 0, used_ = 0;
  std::vector<std::unique_ptr<Gradients>> buffers_;
  std::vector<Gradients*> free_buffers_;
};

}  // namespace ridgeline::eager
