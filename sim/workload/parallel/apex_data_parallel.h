// apex.parallel.DistributedDataParallel: gradients of ten million elements and more are copied together once they have
// come, added up over the ranks and divided on a stream of their own, and copied back there.
//
// The code means that to happen beside the rest of the backward pass. In published logs it does not: steps are longer
// than one GPU's by the bytes over the rate of the links, whatever the backward pass takes
// (docs/model/several-gpus.md). The stream of the buckets waits for NCCL's; CUDA has few queues for streams, and what
// shares one with it waits as well. The default stream is taken to.
//
// Follows apex/parallel/distributed.py of 2019 to 2025. The first step reduces all gradients of a type after its
// backward pass and notes in which order they came; the buckets of later ones have that order. Nothing is kept between
// steps. One process alone does the same, except that a reduction in place moves nothing: here in one pass after the
// backward pass.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/parallel.h"

namespace ridgeline::parallel {

class ApexDataParallel {
 public:
  /// Wraps a network on its GPU: parameters are broadcast, hooks made. Of one rank: neither.
  ApexDataParallel(eager::Eager& eager, eager::Parameters& parameters, const ParallelDescription& description);

  void after_backward();

 private:
  using Members = std::vector<std::size_t>;  ///< parameters
  struct Bucket {
    Members members;
    std::size_t missing = 0;
  };
  void broadcast_parameters();
  void gradient_arrived(std::size_t parameter);
  void wait_for_buckets();
  /// Copied together on the default stream; the rest on `stream`.
  void reduce(const Members& members, std::uint8_t stream);

  eager::Eager& eager_;
  eager::Parameters& parameters_;
  std::optional<ProcessGroup> group_;  ///< none: one process
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  ///< by parameter
  Members arrived_;                     ///< of the first step, in order
  std::size_t next_ = 0;                ///< bucket to reduce
};

}  // namespace ridgeline::parallel
