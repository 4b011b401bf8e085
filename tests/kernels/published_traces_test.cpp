// Kernels in published traces of an H100 (AMD-AGI/TraceLens: PyTorch 2.5 and CUDA 12.4, bf16), which
// showed what softmax of long rows and the first convolution of a vision transformer run. They were in view when the
// laws were mended.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/analytic_engine.h"

namespace ridgeline {
namespace {

struct Traced {
  std::string name;
  Op op;
  double us, tolerance;
};

double microseconds(const Op& op) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  const AnalyticEngine engine(gpu);
  double seconds = 0.0;
  for (const KernelLaunch& launch : lower(op, gpu, load_software("pytorch-2.5")).launches)
    seconds += engine.time(launch, {}).time.value();
  return 1e6 * seconds;
}

Softmax softmax(std::int64_t rows, std::int64_t columns) {
  return {.input = DType::bf16, .output = DType::bf16, .rows = rows, .cols = columns};
}
Convolution patches(std::int64_t batch, std::int64_t image, std::int64_t patch, std::int64_t width) {
  return {.type = DType::bf16,
          .batch = batch,
          .in_channels = 3,
          .size = image,
          .out_channels = width,
          .kernel = patch,
          .stride = patch};
}

TEST(PublishedTraces, KernelsOfVisionTransformersOnAnH100) {
  const std::vector<Traced> rows{{"timesformer", softmax(301152, 3137), 5724.0, 0.08},
                                 {"owlv2", softmax(82960, 5185), 2187.0, 0.08},
                                 {"timesformer, patches", patches(128, 224, 16, 768), 1233.0, 0.15},
                                 {"owlv2, patches", patches(1, 1008, 14, 1024), 270.2, 0.15}};
  for (const Traced& row : rows)
    EXPECT_NEAR(microseconds(row.op) / row.us, 1.0, row.tolerance) << row.name << " " << microseconds(row.op);
}

// Tensor cores convolve 16-bit images in patches; the CUDA cores' kernels end at filters of 5 x 5.
TEST(PublishedTraces, PatchesAreTurnedClearedAndMultipliedOnTensorCores) {
  const LoweredOp lowered =
      lower(Op{patches(32, 224, 16, 1024)}, load_gpu("nvidia-h200-sxm-141gb"), load_software("pytorch-2.11"));
  std::vector<std::string> names;
  bool tensor = false;
  for (const KernelLaunch& launch : lowered.launches) {
    names.push_back(launch.name);
    tensor = tensor || launch.on_tensor_cores();
  }
  EXPECT_TRUE(tensor);
  ASSERT_GE(names.size(), 5u);
  EXPECT_EQ(names[0], "Memset");  // channels are filled up to eight
  EXPECT_EQ(names[1], "nchwToNhwc");
}

}  // namespace
}  // namespace ridgeline
