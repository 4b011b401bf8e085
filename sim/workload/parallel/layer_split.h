// A network that its script has cut over the devices of one process (module.to("cuda:1")): blocks evenly, embeddings on
// the first device, the final norm and the head on the last.
//
// A device is a stream of the trace with a pool of its own. Between two of them the driver copies: on the stream of the
// device that has the tensor, which waits for the other's first, and which the other waits for then (PyTorch's
// copy_kernel_cuda). Nodes of the backward pass run where their forward operation ran.
#pragma once

#include <vector>

#include "sim/workload/families/family.h"
#include "sim/workload/optimizers/optimizer.h"
#include "sim/workload/parallel/communication.h"

namespace ridgeline::parallel {

class LayerSplit final : public families::BlockWrapper {
 public:
  /// Puts the parameters of a network of `blocks` blocks onto `devices` devices: by the layer that they were made in.
  LayerSplit(eager::Eager& eager, eager::Parameters& parameters, std::int64_t blocks, std::int64_t devices);

  eager::Tensor before_block(std::int64_t block, eager::Tensor input) override;
  eager::Tensor after_block(std::int64_t, eager::Tensor output) override { return output; }
  /// The script goes on with the first device.
  void return_to_first() { eager_.recorder.stream = 0; }

  /// One call of the optimizer, whose kernels run device by device.
  void update(optimizers::Optimizer& optimizer);

 private:
  struct Part {
    std::uint8_t stream = 0;
    eager::Parameters parameters;  ///< with gradients during an update
  };
  [[nodiscard]] std::uint8_t device_of(std::int64_t block) const {
    return static_cast<std::uint8_t>(block * devices_ / blocks_);
  }

  eager::Eager& eager_;
  eager::Parameters& parameters_;
  std::int64_t blocks_, devices_;
  std::vector<Part> parts_;
};

/// A copy on another device, without autograd; the current stream is left as it was.
eager::Tensor copy_to_device(eager::Eager& eager, const eager::Tensor& x, std::uint8_t from, std::uint8_t to);

}  // namespace ridgeline::parallel
