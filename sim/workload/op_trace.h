// The op trace of a training run: storages born and freed, operations launched, host work, in program order.
//
// A trace knows no GPU and no time. Equal operations share one entry of `ops`, so that lowering and timing look each
// up once. Storage ids are never reused. Records of a run: everything before `steps.front().begin` sets up (weights,
// inputs); then one range per training step. The first step creates optimizer states; the last is the steady state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/host_class.h"
#include "sim/workload/op.h"

namespace ridgeline {

using StorageId = std::uint32_t;

enum class Category : std::uint8_t {
  weights,
  gradients,
  optimizer_state,
  activations,
  temporaries,
  workspaces,
  inputs
};
enum class Phase : std::uint8_t { setup, forward, backward, clipping, optimizer, other };

/// One device allocation as the program requested it. Size 0 storages are never recorded.
struct Storage {
  std::int64_t bytes = 0;
  Category category = Category::activations;
  std::int16_t layer = -1;   ///< block it belongs to; -1 outside the blocks
  std::uint8_t stream = 0;   ///< whose pool of the allocator it comes from
  std::uint16_t module = 0;  ///< for which it was made; of OpTrace::modules, see there
};

/// Bytes of a storage an operation touches.
struct Operand {
  StorageId storage = 0;
  std::int64_t bytes = 0;
};

struct Record {
  enum class Kind : std::uint8_t {
    allocate,             ///< index = storage
    free,                 ///< index = storage
    op,                   ///< index = entry of `calls`
    host,                 ///< host_class, index = how many times
    wait_for_gpu,         ///< the host blocks until all streams are empty (.item(), synchronise)
    record_event,         ///< index = event: happens when what `stream` was given so far is done
    wait_event,           ///< index = event: `stream` goes on when it has happened
    host_waits_for_event  ///< index = event: the host goes on when it has happened
  };
  Kind kind = Kind::op;
  HostClass host_class = HostClass::other;
  std::uint8_t stream = 0;  ///< of events
  std::uint32_t index = 0;
};

/// One execution of an operation on given storages.
struct Call {
  std::uint32_t op = 0;              ///< entry of `ops`
  std::uint32_t operands_begin = 0;  ///< into `operands`: inputs, then outputs
  std::uint16_t inputs = 0, outputs = 0;
  Phase phase = Phase::forward;
  std::uint8_t stream = 0;  ///< 0: the default one
  std::int16_t layer = -1;
  std::uint16_t module = 0;  ///< of OpTrace::modules, see there
};

/// A part of the network, as nn.Module's names spell it: "layers", in it "7", in it "attention".
struct ModuleName {
  std::string name;
  std::uint16_t parent = 0;  ///< as Call::module
};

struct StepRange {
  std::uint32_t begin = 0, end = 0;  ///< records [begin, end)
};

/// Records of a steady micro-batch that runs `times` times in a row and is held once. It stands after an equal one, so
/// that everything it meets is as on each later run, and allocates and frees the same storages.
struct RepeatedRange {
  StepRange records;
  std::int64_t times = 1;
};

/// What the backward graph of a compiled part computes again where its script says so (torch.utils.checkpoint inside
/// torch.compile): nothing, everything but its input, or all but the results of every second product, of attention and
/// of sums over ranks.
enum class Recomputation : std::uint8_t { none, all, operations };

/// Records of one micro-batch that torch.compile would turn into two graphs: what the model does, or one of the parts
/// that it is cut into. `outer_nodes` autograd nodes before the backward range belong to the script (division of the
/// loss, scaling).
struct CompiledRange {
  StepRange forward, backward;
  int outer_nodes = 0;
  bool returns_scores = false;  ///< the model gives its scores back beside the loss, and the script holds them
  /// Of parts: trained tensors that are given to this one. 0: all of them, to a graph that is not cut.
  std::int64_t parameters = 0;
  bool enters_forward = true, enters_backward = true;  ///< the first graph of its pass
  Recomputation recomputation = Recomputation::none;
  bool reordered = true;  ///< the compiler puts kernels in the order of least peak memory
  bool tuned = false;     ///< products of one row become generated sums (coordinate_descent_tuning)
  [[nodiscard]] bool is_part() const { return parameters > 0; }
};

class TokenLoop;

struct OpTrace {
  std::vector<Op> ops;
  std::vector<Storage> storages;
  std::vector<Operand> operands;
  std::vector<Call> calls;
  std::vector<Record> records;
  std::vector<StepRange> steps;
  std::vector<RepeatedRange> repeats;       ///< in order, at most one a step; empty where everything is written out
  bool generates = false;                   ///< a step generates text token by token
  std::shared_ptr<const TokenLoop> tokens;  ///< of a generation, those that are not written out (token_loop.h)
  std::vector<StepRange> stage_actions;     ///< of one rank of a pipeline: records of each action of the last step
  bool without_gradients = false;           ///< operations make no nodes of a graph
  /// Memory that was given back and taken anew for the same tensor (sharded parameters): its first entry of
  /// `storages`, and the new one; in order. Of an eager trace.
  std::vector<std::pair<StorageId, StorageId>> refills;
  bool transformer_engine = false;             ///< products have a workspace of TransformerEngine beside cuBLAS's
  std::vector<CompiledRange> compiled_ranges;  ///< of every micro-batch written out, in the order of forward passes
  std::int64_t parameters = 0;                 ///< trained parameters of the model
  std::int64_t parameter_tensors = 0;
  std::vector<std::string> streams;  ///< what each stream is for; empty: the default one alone
  std::uint32_t events = 0;          ///< of records, numbered from 0
  double model_flops = 0.0;          ///< FLOPs one step needs by the model's definition (no recomputation), for MFU
  std::vector<std::string> notes;    ///< approximations made, for the report
  /// Parents stand before their children. Number n of a call or storage is entry n - 1; 0: outside all modules.
  std::vector<ModuleName> modules;
};

}  // namespace ridgeline
