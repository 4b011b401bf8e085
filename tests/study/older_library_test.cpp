// Matrix products on Hopper by libraries before CUDA 12.6: the same kernels, so many times as long at full clock.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/study/kernel_prediction.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline {
namespace {

double teraflops(const char* chip, const char* software) {
  const Gpu gpu = load_gpu(chip);
  const KernelCase product = kernel_case_from(
      nlohmann::json::parse(R"({"op":"mm","dtype":"fp16","params":{"m":2048,"n":8192,"k":8192,"layout":"nn"}})"));
  const double seconds =
      predict_kernel(product, gpu, load_software(software), *make_engine("analytic", gpu)).time.value();
  return 2.0 * 2048 * 8192 * 8192 / seconds / 1e12;
}

// pytorch issue 100850: 743 and 720 TFLOP/s on an H100 with cuBLAS 12.0 and 11.11.
TEST(OlderLibrary, products_on_hopper_take_what_was_published) {
  const double older = teraflops("nvidia-h100-sxm5-80gb", "pytorch-2.1");
  EXPECT_NEAR(older, 732.0, 0.02 * 732.0);
  EXPECT_NEAR(teraflops("nvidia-h100-sxm5-80gb", "pytorch-2.11") / older,
              load_software("pytorch-2.1").hopper_product_time, 0.005);
}

TEST(OlderLibrary, products_of_other_chips_are_those_of_the_newer) {
  EXPECT_DOUBLE_EQ(teraflops("nvidia-a100-sxm4-80gb", "pytorch-2.1"),
                   teraflops("nvidia-a100-sxm4-80gb", "pytorch-2.11"));
}

}  // namespace
}  // namespace ridgeline
