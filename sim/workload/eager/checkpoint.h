// Saved tensors, and activation checkpointing through them (torch.utils.checkpoint without reentrance).
//
// Inside a checkpointed block an operation that saves a tensor gets a promise instead: the number of the tensor in the
// order of saving. The first promise that the backward pass redeems runs the block again; operations then deliver their
// tensors to the promises, and the run stops as soon as the last one is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager {

class Eager;

/// A checkpointed block: what is needed to run it again.
struct CheckpointFrame {
  std::function<Tensor(Eager&, Tensor)> block;
  Tensor input;                   ///< kept until every promise is redeemed and dropped; on the host without its storage
  std::optional<DType> autocast;  ///< type autocast was on with
  std::uint32_t promised = 0;     ///< tensors saved by the forward run
  std::uint32_t holders = 0;      ///< saved tensors that still refer to this frame
  bool recomputed = false;
  std::uint16_t module = 0;       ///< it ran in
  std::vector<Tensor> delivered;  ///< by the second run, in the order of saving
  /// Results of attention and of every second matrix product of the first run are kept for the second, which does not
  /// compute them again (torchtitan's selective checkpointing, torch.utils.checkpoint's context_fn).
  bool keeps_operations = false;
  std::uint32_t products = 0;  ///< of the running run so far
  std::vector<Tensor> kept;    ///< by the first run, in order; taken by the second
  std::size_t taken = 0;
};

/// Leaves a block's second run once all promises are kept.
struct StopRecomputation {};

class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(Tensor tensor) : tensor_(std::move(tensor)) {}
  SavedTensor(CheckpointFrame& frame, std::uint32_t number) : frame_(&frame), number_(number) { ++frame.holders; }
  /// What `tensor` was before it went to the host.
  static SavedTensor on_host(Tensor tensor) {
    SavedTensor saved(std::move(tensor));
    saved.on_host_ = true;
    return saved;
  }
  SavedTensor(SavedTensor&& other) noexcept
      : tensor_(std::move(other.tensor_)),
        frame_(std::exchange(other.frame_, nullptr)),
        number_(other.number_),
        on_host_(other.on_host_) {}
  SavedTensor& operator=(SavedTensor&& other) noexcept {
    release();
    tensor_ = std::move(other.tensor_);
    frame_ = std::exchange(other.frame_, nullptr);
    number_ = other.number_;
    on_host_ = other.on_host_;
    return *this;
  }
  ~SavedTensor() { release(); }

  [[nodiscard]] bool defined() const { return frame_ != nullptr || on_host_ || tensor_.defined(); }
  /// The tensor, running its block again where it was only promised, brought back where it is on the host.
  Tensor unpack(Eager& eager);
  void release();

 private:
  Tensor tensor_;
  CheckpointFrame* frame_ = nullptr;
  std::uint32_t number_ = 0;
  bool on_host_ = false;
};

/// Runs `block` on `input`, keeping only `input` for the backward pass.
Tensor checkpoint(Eager& eager, std::function<Tensor(Eager&, Tensor)> block, Tensor input,
                  bool keeps_operations = false);

}  // namespace ridgeline::eager
