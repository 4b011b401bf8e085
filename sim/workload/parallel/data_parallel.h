// DistributedDataParallel: gradients are copied into buckets as they arrive, full buckets are reduced on a stream of
// their own beside the rest of the backward pass, and copied back.
//
// Follows torch/csrc/distributed/c10d/reducer.cpp of PyTorch 2.11. The first step has one bucket of all gradients;
// before the second forward pass the buckets are made anew in the order in which gradients came. A bucket is sent once
// all before it were. The optimizer's stream waits for each bucket before its gradients are copied back.
#pragma once

#include <span>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/parallel.h"

namespace ridgeline::parallel {

class DistributedDataParallel {
 public:
  /// Wraps a network on its GPU: parameters are compared and broadcast, buckets and hooks made. `holds_first_buckets`:
  /// see `outlived_`. `buffers`: what the network keeps besides parameters; none of a pipeline's stages, which run
  /// forward without synchronisation and so leave them alone.
  DistributedDataParallel(eager::Eager& eager, eager::Parameters& parameters, const ParallelDescription& description,
                          bool holds_first_buckets, std::vector<eager::Tensor> buffers = {});

  /// `sync`: the backward pass of this forward pass exchanges gradients.
  void before_forward(bool sync);
  /// The next backward pass exchanges none.
  void skip() { sync_ = false; }
  void after_backward();
  /// Gradients that arrive are kept back until they are `release`d in this order: those of a compiled graph come
  /// together, when all of it has run. Those that have not arrived are left out.
  void hold() { holds_ = true; }
  void release(std::span<const std::size_t> order);
  [[nodiscard]] ProcessGroup& group() { return group_; }

 private:
  struct Bucket {
    std::vector<std::size_t> members;  ///< parameters
    eager::Tensor buffer;
    eager::Tensor compressed;
    std::size_t missing = 0;
    Work work;
  };
  void broadcast_parameters();
  void broadcast_buffers();
  void rebuild();
  void make_buckets(const std::vector<std::size_t>& order, std::span<const std::int64_t> limits);
  void gradient_arrived(std::size_t parameter);
  void send(Bucket& bucket);
  /// The part of a bucket that a gradient has: a view.
  [[nodiscard]] eager::Tensor place_of(std::size_t parameter) const;

  eager::Eager& eager_;
  eager::Parameters& parameters_;
  const ParallelDescription& how_;
  ProcessGroup group_;
  bool holds_first_buckets_ = false;
  std::uint8_t decompressing_ = 0;  ///< stream on which compressed buckets are widened again
  std::vector<Bucket> buckets_;
  /// What was sent in the first step, until the second has been sent: NCCL's work holds its tensors until a thread that
  /// looks every 100 ms (the watchdog of ProcessGroupNCCL.cpp) has seen it done.
  std::vector<eager::Tensor> outlived_;
  std::vector<std::size_t> bucket_of_;   ///< by parameter
  std::vector<std::size_t> kept_equal_;  ///< parameters; experts are others' concern
  std::vector<std::size_t> arrived_;     ///< of the first step, in order
  std::size_t next_ = 0;                 ///< bucket to send
  std::vector<eager::Tensor> buffers_;   ///< of the network
  std::vector<std::size_t> held_;        ///< arrived, and kept back
  bool synced_before_ = true;            ///< the forward pass before was of gradients that are exchanged
  bool sync_ = true, rebuilt_ = false, holds_ = false;
};

}  // namespace ridgeline::parallel
