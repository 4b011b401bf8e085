// torch.nn.DataParallel: one process copies its network to all its GPUs for every forward pass, a thread for each runs
// a part of the batch, and gradients are added up on the first GPU, whose optimizer updates the one set of parameters.
//
// The first GPU is traced. Parameters are sent by ncclBroadcast in buffers of 10 MiB; the threads take turns with the
// interpreter, so that the host's work of the forward pass is done once a GPU before any is through; backward passes
// run in a thread a GPU. The threads of the forward pass are new in every step, and each plans cuDNN's attention
// anew, since PyTorch keeps those plans by thread. Gradients are laid into buffers of at most 10 MiB, which ncclReduce
// adds up.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/op_trace.h"
#include "sim/workload/parallel/communication.h"

namespace ridgeline::parallel {

class Replicas {
 public:
  Replicas(eager::Eager& eager, eager::Parameters& parameters, std::int64_t devices);

  /// Each device gets its part of the batch and the network.
  void before_forward(const eager::Tensor& tokens);
  /// The forward pass began at record `begin` of the trace; what it returns comes to the first device.
  void after_forward(OpTrace& trace, std::uint32_t begin, eager::Tensor& loss);
  void after_backward();

 private:
  eager::Eager& eager_;
  eager::Parameters& parameters_;
  std::int64_t devices_;
  ProcessGroup group_;
  std::size_t setup_ = 0;              ///< record of the threads' beginning
  std::vector<eager::Tensor> before_;  ///< gradients of the micro-batches before
};

}  // namespace ridgeline::parallel
