// Tensors of a convolution, the passes over them and the groups that a kernel takes together.
#pragma once

#include <vector>

#include "sim/kernels/convolution/convolution_kernel.h"
#include "sim/kernels/convolution/image_layout.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// Groups of one kernel: all, or the one that each of `copies()` kernels takes.
class ConvolutionTensors {
 public:
  enum class Side : std::uint8_t { image, output, filter };
  struct Operand {
    int index;
    Side side;
    ImageTensor tensor;
  };
  /// A pass over two tensors that computes the third.
  struct Direction {
    Gathering::Role role;
    std::vector<Operand> reads;
    Operand write;
  };

  /// Kernels on tensor cores put so many groups side by side that their channels fill a tile, with zeros between them;
  /// the CUDA cores run a kernel a group (profiled on an NVIDIA H200, 300 convolutions).
  ConvolutionTensors(const Convolution& op, bool tensor_cores);

  /// Operands in the order of op_operands.h.
  [[nodiscard]] std::vector<Direction> directions() const;
  [[nodiscard]] ConvolutionProblem problem(Gathering::Role role) const;
  [[nodiscard]] std::int64_t copies() const { return copies_; }
  [[nodiscard]] std::int64_t phases() const { return op_.stride * op_.stride_columns(); }

  [[nodiscard]] const ImageTensor& image() const { return image_; }
  [[nodiscard]] const ImageTensor& output() const { return output_; }
  [[nodiscard]] const ImageTensor& filter() const { return filter_; }

  [[nodiscard]] Access access(const Operand& operand) const;
  [[nodiscard]] std::vector<Access> accesses(const std::vector<Operand>& operands) const;
  /// Bytes of an operand that a kernel reads: a stride wider than the filter leaves pixels out.
  [[nodiscard]] double gathered(const Operand& operand) const;

 private:
  const Convolution& op_;
  std::int64_t together_ = 1;  ///< groups that a tile holds
  std::int64_t copies_ = 1;    ///< kernels
  ImageTensor image_, output_, filter_;
};

}  // namespace ridgeline
