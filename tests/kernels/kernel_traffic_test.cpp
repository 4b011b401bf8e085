// What the kernels of an operation touch, whatever its shape and the GPU: every operand whole, a whole number of times,
// and nothing else; grids that a driver takes and blocks that an SM holds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/occupancy/occupancy.h"
#include "sim/workload/op_operands.h"
#include "tests/support/operand_sizes.h"
#include "tests/support/random_kernel_cases.h"

namespace ridgeline {
namespace {

/// Shapes that kernel cases do not name, of sizes around the borders of vectors, blocks and grids.
std::vector<Op> further_ops(std::mt19937_64& random) {
  std::vector<Op> ops;
  const auto any = [&](std::initializer_list<std::int64_t> of) { return of.begin()[random() % of.size()]; };
  for (const DType type : {DType::fp32, DType::fp16, DType::bf16}) {
    const std::int64_t rows = any({1, 3, 63, 64, 1000, 4096, 70000}), cols = any({1, 31, 64, 100, 1024, 4099, 32000});
    for (const CopyKind kind : {CopyKind::contiguous, CopyKind::permute, CopyKind::transpose})
      ops.push_back(Copy{kind, type, rows, cols, 1});
    for (const CopyKind kind : {CopyKind::concatenate, CopyKind::concatenate_strided})
      ops.push_back(Copy{kind, type, rows, cols, any({2, 3, 129})});
    for (const ReductionKind kind :
         {ReductionKind::sum_rows, ReductionKind::sum_cols, ReductionKind::mean_cols, ReductionKind::sum_all,
          ReductionKind::norm_all, ReductionKind::scan_rows, ReductionKind::scan_cols})
      ops.push_back(Reduction{kind, type, rows, cols});
    for (const bool backward : {false, true}) {
      for (const bool rms : {false, true})
        for (const bool bias : {false, true}) ops.push_back(Norm{rms, backward, bias, type, rows, cols});
      ops.push_back(NllLoss{backward, type, rows, cols});
      for (const bool log : {false, true}) {
        ops.push_back(Softmax{log, backward, type, type, rows, cols});
        ops.push_back(Softmax{log, backward, backward ? DType::fp32 : type, backward ? type : DType::fp32, rows, cols});
      }
      for (const bool last : {false, true})
        for (const ImageFunction function : {ImageFunction::batch_norm, ImageFunction::relu, ImageFunction::max_pool2d,
                                             ImageFunction::upsample_nearest2d})
          ops.push_back(ImageOp{function, backward, last, type, any({1, 7, 64}), any({1, 3, 64, 500}), any({2, 28})});
    }
    ops.push_back(Sort{type, std::min<std::int64_t>(rows, 4096), cols});
    ops.push_back(Dropout{type, rows * cols});
    for (const Walk walk : {Walk::contiguous, Walk::broadcast_row, Walk::broadcast, Walk::strided, Walk::transposed})
      for (const std::uint8_t inputs : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{3}}) {
        Pointwise op{.function = PointwiseFunction::add, .rows = rows, .cols = cols, .input_count = inputs};
        op.output = type;
        op.walk = walk;
        for (DType& input : op.inputs) input = random() % 2 == 0 ? type : DType::fp32;
        ops.push_back(op);
      }
    for (const auto shape : {FusedKernel::Shape::pointwise, FusedKernel::Shape::rows, FusedKernel::Shape::long_rows,
                             FusedKernel::Shape::columns}) {
      FusedKernel op;
      op.shape = shape;
      op.rows = rows;
      op.cols = cols;
      op.type = type;
      op.reads = {rows * cols * bytes_of(type), cols * 4};
      op.writes = {rows * cols * bytes_of(type)};
      ops.push_back(op);
    }
  }
  return ops;
}

std::string told(const Op& op) { return name_of(op) + " " + shape_of(op); }

class KernelTraffic : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const auto& known : ridgeline::testing::RandomKernelCases(20).of_every_op(12)) ops_.push_back(known.kernel.op);
    std::mt19937_64 random(7);
    for (int i = 0; i < 12; ++i)
      for (const Op& op : further_ops(random)) ops_.push_back(op);
  }

  template <typename Check>
  void for_each_op(Check check) {
    const Software software;
    const Lowering lowering(gpu_, software);
    std::size_t lowered = 0;
    for (const Op& op : ops_) {
      try {
        check(op, lowering.lower(op));
        ++lowered;
      } catch (const std::invalid_argument&) {
        continue;  // this GPU has no kernel for it
      }
    }
    EXPECT_GT(lowered, ops_.size() * 2 / 3);
  }

  const Gpu gpu_ = load_gpu(GetParam());
  std::vector<Op> ops_;
};

/// Rows of a table and scores of classes are touched as they come.
bool touches_parts(const Op& op) {
  return std::holds_alternative<Embedding>(op) || std::holds_alternative<NllLoss>(op);
}

TEST_P(KernelTraffic, IsEveryOperandAWholeNumberOfTimes) {
  for_each_op([&](const Op& op, const LoweredOp& lowered) {
    if (touches_parts(op)) return;
    const testing_support::OperandSizes sizes = testing_support::whole_operands(op);
    const OperandCounts counts = operand_counts(op);
    std::map<int, double> read, written;
    for (const KernelLaunch& launch : lowered.launches) {
      for (const Access& access : launch.reads) read[access.operand] += access.bytes;
      for (const Access& access : launch.writes) written[access.operand] += access.bytes;
    }
    for (int i = 0; i < counts.inputs + counts.outputs && i < static_cast<int>(sizes.bytes.size()); ++i) {
      if (!sizes.bytes[static_cast<std::size_t>(i)]) continue;
      const auto bytes = static_cast<double>(*sizes.bytes[static_cast<std::size_t>(i)]);
      const double times = (i < counts.inputs ? read[i] : written[i]) / bytes;
      EXPECT_NEAR(times, std::round(times), 1e-9) << told(op) << ": operand " << i << " of " << bytes << " bytes";
      EXPECT_GE(times, 1.0 - 1e-9) << told(op) << ": operand " << i << " of " << bytes << " bytes";
    }
  });
}

TEST_P(KernelTraffic, IsOfItsOperandsAlone) {
  for_each_op([&](const Op& op, const LoweredOp& lowered) {
    const OperandCounts counts = operand_counts(op);
    for (const KernelLaunch& launch : lowered.launches) {
      for (const Access& access : launch.reads) {
        EXPECT_LT(access.operand, counts.inputs + counts.outputs) << told(op) << ' ' << launch.name;
        EXPECT_GT(access.bytes, 0.0) << told(op) << ' ' << launch.name;
      }
      for (const Access& access : launch.writes) {
        EXPECT_LT(access.operand, counts.inputs + counts.outputs) << told(op) << ' ' << launch.name;
        EXPECT_TRUE(access.operand < 0 || access.operand >= counts.inputs) << told(op) << ' ' << launch.name;
        EXPECT_GT(access.bytes, 0.0) << told(op) << ' ' << launch.name;
      }
    }
  });
}

/// Of operations that take memory for it; others are given it by whoever records them.
TEST_P(KernelTraffic, BetweenKernelsOfOneOperationGoesThroughItsTemporaries) {
  int with_temporaries = 0;
  for_each_op([&](const Op& op, const LoweredOp& lowered) {
    double held = 0.0, most = 0.0;
    for (const std::int64_t bytes : lowered.temporaries) {
      EXPECT_GT(bytes, 0) << told(op);
      held += static_cast<double>(bytes);
    }
    for (const KernelLaunch& launch : lowered.launches)
      for (const Access& access : launch.writes)  // a clear runs to the end of the last load, past what is kept
        if (access.operand == Access::kTemporary && !launch.reads.empty()) most = std::max(most, access.bytes);
    if (lowered.temporaries.empty() || most == 0.0) return;
    ++with_temporaries;
    EXPECT_LE(most, held) << told(op);
  });
  EXPECT_GT(with_temporaries, 20);
}

TEST_P(KernelTraffic, ComesFromGridsThatADriverTakesAndBlocksThatAnSmHolds) {
  for_each_op([&](const Op& op, const LoweredOp& lowered) {
    ASSERT_FALSE(lowered.launches.empty()) << told(op);
    for (const KernelLaunch& launch : lowered.launches) {
      for (const std::int64_t side : launch.grid) EXPECT_GE(side, 1) << told(op) << ' ' << launch.name;
      EXPECT_GE(launch.threads_per_block, 1) << told(op) << ' ' << launch.name;
      EXPECT_LE(launch.threads_per_block, gpu_.sm.max_threads_per_block) << told(op) << ' ' << launch.name;
      // Shared memory of kernels was read on this GPU; smaller ones have kernels that nobody measured.
      if (gpu_.name == "nvidia-h200-sxm-141gb") {
        EXPECT_GE(occupancy_of(gpu_.sm, launch).blocks, 1) << told(op) << ' ' << launch.name;
      }
      EXPECT_GE(launch.flops, 0.0) << told(op) << ' ' << launch.name;
      const auto* work = std::get_if<MemoryBoundWork>(&launch.work);
      if (work == nullptr) continue;
      EXPECT_GE(work->iterations, 0.0) << told(op) << ' ' << launch.name;
      EXPECT_LE(work->active_blocks, launch.blocks()) << told(op) << ' ' << launch.name;
      EXPECT_GE(work->reread_bytes, 0.0) << told(op) << ' ' << launch.name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Gpus, KernelTraffic,
                         ::testing::Values("nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb", "nvidia-t4",
                                           "nvidia-rtx-4090"),
                         [](const auto& gpu) {
                           std::string name = gpu.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ridgeline
