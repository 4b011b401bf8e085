// The operations of one compiled micro-batch as a graph of values: what torch.compile sees instead of storages.
//
// A value is one content of a storage; writing in place makes a new one. Nodes are in the order the model ran them in,
// forward then backward. Library nodes (products, attention) run as they are; the others are fused (fusion.h).
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::compile {

using ValueId = std::uint32_t;
using NodeId = std::uint32_t;
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Padding makes a buffer longer by less than one part in this many.
inline constexpr std::int64_t kPaddingShare = 256;

struct Value {
  std::int64_t bytes = 0;
  NodeId producer = kNone;      ///< kNone: a weight, an input, or made by the script outside the graphs
  StorageId storage = kNone;    ///< the trace's, for values from outside and those that leave the graphs
  ValueId in_place_of = kNone;  ///< must lie where this value lies
  bool held = false;            ///< the script holds it until the graphs have run: the model's scores
  bool leaves = false;          ///< loss and gradients: they outlive the graphs, in their own storage
  bool ends_here = false;       ///< leaves for another part of the network, and goes with this one
  bool gone = false;            ///< the eager script gives its memory back between the passes
  ValueId again = kNone;        ///< … and this is the same for the backward graph
  bool of_caller = false;       ///< handed in by the script: read, never written over
  bool stored = false;          ///< written to memory by its kernel
  bool kept = false;            ///< a result that cannot be computed again: random numbers, statistics of rows
  Category category = Category::activations;
  std::int16_t layer = -1;
  std::uint16_t module = 0;
};

struct Use {
  ValueId value = kNone;
  std::int64_t bytes = 0;
};

struct Node {
  enum class Kind : std::uint8_t { library, pointwise, rows, long_rows, columns };
  Kind kind = Kind::pointwise;
  bool backward = false;
  bool after = false;     ///< the script's own, behind the graph: adding to gradients that exist already
  bool by_block = false;  ///< backward of a norm whose weight gradients are summed in the same kernel
  bool casts = false;     ///< such a kernel is not appended to one `by_block`
  bool gathers = false;   ///< reads or writes transposed: alone in its kernel
  bool alone = false;     ///< no other kernel runs over the same space
  bool realizes = false;  ///< its result is written even where each user could compute it again
  std::string_view name;  ///< as generated code calls it
  Phase phase = Phase::forward;
  std::int16_t layer = -1;
  std::uint16_t module = 0;
  std::uint32_t op = kNone;  ///< entry of the trace's ops, of library nodes
  std::int64_t rows = 1, cols = 1;
  DType type = DType::fp32;
  std::int64_t arithmetic = 0;  ///< instructions an element
  std::int64_t operations = 0;  ///< by which the compiler judges whether a result is cheap; 0: as `arithmetic`
  std::int64_t column_results = 0;
  std::vector<std::string_view> inner;  ///< names of what is computed again inside
  std::vector<Use> inputs, outputs;
  bool of_product = false;  ///< sums of a product of one row: smaller nodes in its kernel run once a row, not a term
  [[nodiscard]] std::int64_t elements() const { return rows * cols; }
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<StorageId> freed_inside;  ///< storages from outside that die during the graphs
  std::set<StorageId> saved_inputs;     ///< … that the backward graph reads though the eager script let them go
};

}  // namespace ridgeline::compile
