// Every launch of every measured memory-bound op: how many kernels, their grids, blocks, registers, shared memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/families.h"
#include "tests/support/measured_kernels.h"

namespace ridgeline {
namespace {

struct LoweredByFamily {
  const Gpu& gpu;
  const Software& software;
  LoweredOp operator()(const Pointwise& op) const { return lower_pointwise(op, gpu, software); }
  LoweredOp operator()(const Copy& op) const { return lower_copy(op, gpu, software); }
  LoweredOp operator()(const Softmax& op) const { return lower_softmax(op, gpu, software); }
  LoweredOp operator()(const Norm& op) const { return lower_norm(op, gpu, software); }
  LoweredOp operator()(const Reduction& op) const { return lower_reduction(op, gpu, software); }
  LoweredOp operator()(const Dropout& op) const { return lower_dropout(op, gpu, software); }
  LoweredOp operator()(const Embedding& op) const { return lower_embedding(op, gpu, software); }
  LoweredOp operator()(const MultiTensor& op) const { return lower_multi_tensor(op, gpu, software); }
  LoweredOp operator()(const ImageOp& op) const { return lower_image(op, gpu, software); }
  template <typename Other>
  LoweredOp operator()(const Other&) const {
    return {};
  }
};

/// Matrix products, attention and convolutions choose their kernels by time; their tests are elsewhere.
bool memory_bound(const Op& op) {
  return !std::holds_alternative<Matmul>(op) && !std::holds_alternative<Attention>(op) &&
         !std::holds_alternative<Convolution>(op);
}

struct Tally {
  int cases = 0, geometry = 0, registers = 0, shared = 0;
  std::string misses;
};

Tally tally(const std::string& file) {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software;
  Tally result;
  for (const auto& measured : testing::measured_ops(file)) {
    if (!memory_bound(measured.kernel.op)) continue;
    const LoweredOp lowered = std::visit(LoweredByFamily{gpu, software}, measured.kernel.op);
    bool geometry = lowered.launches.size() == measured.kernels.size(), registers = geometry, shared = geometry;
    for (std::size_t i = 0; geometry && i < lowered.launches.size(); ++i) {
      const auto& expected = measured.kernels[i];
      const auto& got = lowered.launches[i];
      if (!expected.has_geometry) continue;
      geometry = geometry && got.grid == expected.grid && got.threads_per_block == expected.threads;
      registers = registers && got.registers_per_thread == expected.registers;
      shared = shared && got.shared_bytes_per_block == expected.shared_bytes;
    }
    ++result.cases;
    result.geometry += geometry;
    result.registers += geometry && registers;
    result.shared += geometry && shared;
    if (!geometry) result.misses += fmt::format("{}:{} {}\n", file, measured.line, measured.op);
  }
  fmt::print("{}: {} cases, geometry {}, registers {}, shared memory {}\n", file, result.cases, result.geometry,
             result.registers, result.shared);
  return result;
}

class MeasuredGeometry : public ::testing::TestWithParam<const char*> {};

TEST_P(MeasuredGeometry, launches_are_those_the_profiler_saw) {
  const Tally t = tally(GetParam());
  ASSERT_GT(t.cases, 0);
  EXPECT_GE(t.geometry, 0.99 * t.cases) << t.misses;
  EXPECT_GE(t.registers, 0.99 * t.cases);
  EXPECT_GE(t.shared, 0.99 * t.cases);
}

INSTANTIATE_TEST_SUITE_P(H200, MeasuredGeometry,
                         ::testing::Values("h200/kernels.jsonl.gz", "h200/kernels_optimizer.jsonl.gz",
                                           "h200/kernels_conv.jsonl.gz"));

}  // namespace
}  // namespace ridgeline
